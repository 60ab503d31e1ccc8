"""The command line: reads the request, calls one verb, shows the record."""
