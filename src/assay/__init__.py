"""Assay: a human-in-the-loop benchmarking engine."""
