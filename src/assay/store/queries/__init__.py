"""Queries that read the store without changing it."""
