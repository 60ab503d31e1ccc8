"""Specialists: templates that change the prompts of agents, their enrichment, and snapshots with
measured results.
"""
