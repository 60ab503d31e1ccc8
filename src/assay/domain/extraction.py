"""Settings for extracting fields from answers, and row titles from task inputs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One value to extract from a text.

    Attributes:
        name: the field's name on pages and in tables.
        path: a method of `scoring.extraction` (`$.a.b`, `final_answer`, …), tried first; empty for
            the whole text.
        pattern: a regular expression to search for in the result of `path`; the value is its first
            group, or the whole match if it has no group.
        labels: the allowed values, best first; any other text counts as unreadable. If empty, every
            text is allowed.
    """

    name: str
    path: str = ""
    pattern: str = ""
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionSpec:
    """Fields to extract; answers with equal first fields agree.

    `title` and `subtitle` come from a task's input.
    """

    fields: tuple[Field, ...] = ()
    title: Field | None = None
    subtitle: Field | None = None
