"""Records for browsing a run's grades: its judges, candidates and criteria, and its trials in plan order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.domain.identifiers import RunId, TrialKey
    from assay.domain.lifecycle import TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedRun:
    """The names that a run's grades can be filtered by.

    Attributes:
        candidates: current names of the candidates; `written` maps each to the name in the run's own records.
        judges: names of the models that graded.
        criteria: criteria with at least one grade.
        tasks: ids of the first tasks in its plan; a long list is cut off.
        attempts: for each judge, the highest number of an attempt that a later one replaced; judges without one are left out.
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
    """A trial with its place in the plan, which is (position of its task, number of the trial)."""

    key: TrialKey
    place: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixTrial:
    """One trial of one run, as a matrix shows it."""

    key: TrialKey
    k: int
    state: TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """One row of a matrix: a task and its trials in several runs.

    Attributes:
        place: (number of the first run that has the task, the task's position there); the next page starts after this place.
        thing: the task's display name in the first of the runs.
        trials: for each run, its trials from first to last, but no more than were requested.
        planned: for each run, the number of its planned trials.
    """

    place: tuple[int, int]
    task: str
    thing: str
    trials: Mapping[RunId, tuple[MatrixTrial, ...]]
    planned: Mapping[RunId, int]
