"""The web app: reads the request, calls one verb, shows the record."""
