"""Other people's results, read and written: importers (one module a format), exporters, the results folder."""
