"""Events that rename or merge candidates, or undo such a change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from assay.domain.identifiers import RunId


class NameVerb(StrEnum):
    """Kinds of name corrections."""

    RENAME = "rename"
    MERGE = "merge"
    UNDO = "undo"


@dataclass(frozen=True, slots=True, kw_only=True)
class NameEvent:
    """One name correction; `undoes` is the event that it reverts, and `undone_by` the event that
    reverted it.
    """

    id: int
    verb: NameVerb
    source: str
    target: str
    runs: tuple[RunId, ...]
    reviewer: str
    reason: str
    at: str
    undoes: int | None
    undone_by: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRow:
    """A candidate under its current name.

    `written`: other spellings in the records of its runs; `runs`: number of its runs.
    """

    name: str
    written: tuple[str, ...]
    runs: int
    first: str
    last: str
