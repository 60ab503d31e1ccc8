"""Import and export results: importers (one module per format), exporters, and the results
folder.
"""
