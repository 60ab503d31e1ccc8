"""Reads suites from files and writes them; every problem states the file, the line, the field and a
fix.
"""
