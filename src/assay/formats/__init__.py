"""Readers shared by suites and imports: rows of JSON Lines, CSV and Parquet files with their positions."""
