"""Records for browsing a run's grades by judge, candidate, criterion and trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.domain.identifiers import RunId, TrialKey
from assay.domain.lifecycle import TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedRun:
    """Judges, candidates, criteria and tasks by which a run's grades can be filtered.

    Attributes:
        candidates: current names of the candidates; `written` maps each to its name in the run's
            own records.
        judges: names of the models that graded.
        criteria: criteria with at least one grade.
        tasks: ids of the first tasks in the run's plan; a long list is cut off.
        attempts: for each judge with replaced attempts, the number of the latest replaced attempt.
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
    """A trial and its position in the plan: (task position, trial number)."""

    key: TrialKey
    place: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixTrial:
    key: TrialKey
    k: int
    state: TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """One row of a matrix: a task and its trials in several runs.

    Attributes:
        place: (index of the first run with the task, the task's position in that run); the next
            page starts after it.
        thing: the task's display name in the first of the runs.
        trials: trials by run in order of number, up to the requested limit.
        planned: number of planned trials by run.
    """

    place: tuple[int, int]
    task: str
    thing: str
    trials: Mapping[RunId, tuple[MatrixTrial, ...]]
    planned: Mapping[RunId, int]
