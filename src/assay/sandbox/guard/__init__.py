"""Programs that run inside a sandbox around the checks of graded code; they need Python 3.8 and no
other file.
"""
