"""Importers of the files of other harnesses, one module per format.

They reach Assay only through `assay.plugins`, as the importers of other packages do. Assay finds
them by the entry points of this distribution (group `assay.importers` in `pyproject.toml`).
"""
