"""The command line.

Each command parses its options, calls one function of `app`, and prints the result.
"""
