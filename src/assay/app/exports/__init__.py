"""Export results as tables, reports and files for other programs, with pseudonyms on request."""
