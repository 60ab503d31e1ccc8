"""Findings to words, tables, charts and pages."""
