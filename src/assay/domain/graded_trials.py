"""Records for browsing a run's grades: its judges, candidates and criteria, and its trials in the order of the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.domain.identifiers import RunId, TrialKey
    from assay.domain.lifecycle import TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedRun:
    """Names by which a run's grades can be filtered.

    Attributes:
        candidates: their current names; `written` maps each to its name in the run's own records.
        judges: models that graded, by name.
        criteria: criteria with at least one grade.
        tasks: ids of the first tasks of its plan; a long plan is cut.
        attempts: by judge, the highest attempt that a later one replaced; judges without such an attempt are left out.
    """

    run: RunId
    candidates: tuple[str, ...]
    judges: tuple[str, ...]
    criteria: tuple[str, ...]
    tasks: tuple[str, ...]
    attempts: Mapping[str, int] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedTrial:
    """A trial with its place in the plan: (position of its task, number of the trial)."""

    key: TrialKey
    place: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixTrial:
    """One trial of one run, for a matrix."""

    key: TrialKey
    k: int
    state: TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """One row of a matrix: a task and its trials in several runs.

    Attributes:
        place: (number of the run that has it first, its position there), after which the next page starts.
        thing: its display name in the first of the runs.
        trials: by run, first to last, at most as many as were requested.
        planned: number of trials, by run.
    """

    place: tuple[int, int]
    task: str
    thing: str
    trials: Mapping[RunId, tuple[MatrixTrial, ...]]
    planned: Mapping[RunId, int]
