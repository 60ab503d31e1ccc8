"""Store runs, reviews and imports in SQLite or PostgreSQL.

Only this package contains names of tables and columns.
"""
