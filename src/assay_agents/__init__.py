"""Coding agents of others, one module per agent.

They reach Assay only through `assay.plugins`, as the agents of other packages do. Assay finds them
by the entry points of this distribution (group `assay.workspace_agents` in `pyproject.toml`).
"""
