"""Enrich templates of specialists and mint snapshots."""
