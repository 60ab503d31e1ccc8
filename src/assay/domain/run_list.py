"""Lists of runs: filters, orders, and values to filter by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from assay.domain.identifiers import RunId

WAITS: Final = "waits"
"""Filter value used in place of a run state: selects runs with pending assessments."""

FAILS: Final = "failed"
"""Filter value used in place of a run state: selects runs with failed trials."""


class RunOrder(StrEnum):
    """An order of lists of runs. Runs with equal name, cost or number of pending assessments come newest first."""

    NEWEST = "newest"
    OLDEST = "oldest"
    NAME = "name"
    WAITING = "waiting"
    COST = "cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Filter of runs; None or empty matches everything, and all given filters must match.

    Attributes:
        state: a state of runs, `WAITS` or `FAILS`. Only `archived` selects archived runs.
        candidate: its name.
        text: part of the run's id, suite or batch, or of a candidate's name; case is ignored.
    """

    suite: str | None = None
    batch_id: str | None = None
    candidate: str | None = None
    state: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """A value that runs can be filtered by, and the number of runs that have it."""

    value: str
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskUse:
    """A run's use of a task: its content digest, display name and number of trials."""

    run: RunId
    started: str
    digest: str
    thing: str
    weight: float
    trials: int
