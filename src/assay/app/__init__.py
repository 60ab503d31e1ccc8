"""The use cases behind the command line, the web app and the Python API."""
