"""Structured answers: responses and model solutions that a model has split into their parts."""

from __future__ import annotations

from dataclasses import dataclass

from assay.domain.model import ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Structuring:
    """The model that splits answers into parts for the judge; `prompt` replaces Assay's default
    prompt.
    """

    model: ModelSpec
    prompt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredAnswer:
    steps: tuple[str, ...]
    final_answer: str
    assumptions: str = ""
    intermediate_results: tuple[str, ...] = ()
    format_notes: str = ""
