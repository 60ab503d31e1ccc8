"""The only room that names a table or a column: SQLite and PostgreSQL."""
