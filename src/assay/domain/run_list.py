"""Records for run lists: filters, sort orders and filter values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from assay.domain.identifiers import RunId

WAITS: Final = "waits"
"""Filter value used in place of a run state: selects runs with pending assessments."""

FAILS: Final = "failed"
"""Filter value used in place of a run state: selects runs with failed trials."""


class RunOrder(StrEnum):
    """Sort order for lists of runs.

    Runs with the same name, cost or number of pending assessments are listed newest first.
    """

    NEWEST = "newest"
    OLDEST = "oldest"
    NAME = "name"
    WAITING = "waiting"
    COST = "cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Filter for runs; fields that are None or empty match everything, and all others must match.

    Attributes:
        state: the state of a run, `WAITS` or `FAILS`. Archived runs are selected only by
            `archived`.
        candidate: name of a candidate.
        text: text that the run's id, suite or batch, or a candidate's name must contain; case is
            ignored.
    """

    suite: str | None = None
    batch_id: str | None = None
    candidate: str | None = None
    state: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """A filter value, and the number of runs that match it."""

    value: str
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUse:
    """One run's version of a task: its content digest, display name, weight and number of
    trials.
    """

    run: RunId
    started: str
    digest: str
    thing: str
    weight: float
    trials: int
