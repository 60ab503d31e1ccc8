"""Runs untrusted code and renders untrusted pages, with limits."""
