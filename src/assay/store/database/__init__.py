"""Database connections, tables, codecs, migrations and derived counters."""
