"""Read JSON Lines, CSV and Parquet files row by row, with positions, for suites and imports."""
