"""Reads suites from files and writes them; every problem names the file, the line, the field and a fix."""
