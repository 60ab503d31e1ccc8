"""Agents: candidates that work on a repository in a sandboxed workspace."""
