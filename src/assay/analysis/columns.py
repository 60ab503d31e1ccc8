"""Scores as columns: what the store hands to statistics, never a record a row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLabel:
    """What a task code stands for. `weight` is that of the newest selected run; `changed`: other digests were selected too."""

    suite: str
    task: str
    digest: str
    thing: str
    weight: float
    changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreColumns:
    """One row per (assessment that counts, candidate) with a score, as parallel arrays of length rows.

    Attributes:
        tasks: label by task code. Planned tasks without any row are among them.
        candidates: name by candidate code.
        judges: grader by judge code.
        task, candidate, judge: codes, int64.
        trial: the trial's store key, int64; equal for all rows of one (run, task, k).
        score: on 0 to 1, float64.
        joint: whether one call graded all candidates of the trial, bool.
        unseen: whether no person saw the grade (`exempt`), bool.
        runs: ids of the selected runs.
        settings: distinct (judge, rubric, parameters) settings among them; more than one is `mixed_settings`.
    """

    tasks: tuple[TaskLabel, ...]
    candidates: tuple[str, ...]
    judges: tuple[str, ...]
    task: NDArray[np.int64]
    candidate: NDArray[np.int64]
    judge: NDArray[np.int64]
    trial: NDArray[np.int64]
    score: NDArray[np.float64]
    joint: NDArray[np.bool_]
    unseen: NDArray[np.bool_]
    runs: tuple[str, ...] = ()
    settings: tuple[str, ...] = field(default=())
