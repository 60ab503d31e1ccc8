"""Differences by trial for jointly graded trials, whose scores are correlated because they come
from one judge call.

A pair is compared by trial on a task if every counted trial of both candidates on it was graded
jointly and at least one trial counts for both. Otherwise the two are treated as graded separately.
Pairing by trial is exact for any correlation between the two scores; treating them as independent
is wrong unless the correlation is 0 (docs/explanation/statistics.md).
"""

from dataclasses import dataclass

import numpy as np

from assay.statistics.arrays import Bools, Floats, Ints
from assay.statistics.cells import Cells, PairCells
from assay.statistics.table import ScoreTable

# A few temporary arrays of this size stay in the processor's cache.
VALUES_AT_A_TIME = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTrials:
    """Differences first - second per task, over trials that count for both; `n` is 0 for tasks that
    were graded separately.

    All fields have shape (..., tasks). `middle`: mean of the two candidates' scores over these
    trials.
    """

    n: Floats
    mean: Floats
    m2: Floats
    middle: Floats


def paired_trials(source: ScoreTable | Cells, first: Ints, second: Ints) -> PairedTrials | None:
    """Return the moments of trial differences for candidate pairs; None if no trial was graded
    jointly.

    Args:
        first, second: shape (pairs,), candidate codes; the two codes of a pair must differ.
    """
    cells = source.cells if isinstance(source, ScoreTable) else source
    if cells.pairs is not None:
        moments = cells.pairs.of(first, second)
    elif isinstance(source, Cells) or source.joint is None or first.size == 0:
        return None
    else:
        moments = _Layout(source, np.arange(len(source.tasks)), len(source.tasks)).moments(
            first, second
        )
    return PairedTrials(n=moments[0], mean=moments[1], m2=moments[2], middle=moments[3])


def paired_rows(
    table: ScoreTable, first: int, second: int, task: int
) -> tuple[Floats, Floats] | None:
    """Return both candidates' scores in the trials of one task that count for both; None if graded
    separately.
    """
    if table.joint is None:
        return None
    rows_a, rows_b = table.rows_of(first, task), table.rows_of(second, task)
    if not (table.joint[rows_a].all() and table.joint[rows_b].all()):
        return None
    _, at_one, at_other = np.intersect1d(
        table.trial_codes[rows_a], table.trial_codes[rows_b], return_indices=True
    )
    if at_one.size == 0:
        return None
    return table.score[rows_a[at_one]], table.score[rows_b[at_other]]


def kept_cells(table: ScoreTable) -> Cells:
    """Copy a table's cells, which are smaller than its rows.

    If trials were graded jointly, the cells include the differences of all pairs.
    """
    cells = Cells(
        tasks=table.tasks,
        candidates=table.candidates,
        weight=table.weight.copy(),
        planned_tasks=table.planned_tasks,
        family=table.cells.family,
        planned_families=table.cells.planned_families,
    )
    for name in ("n", "mean", "m2", "low", "high"):
        setattr(cells, name, getattr(table.cells, name).copy())
    cells.pairs = pair_cells(table, np.arange(len(table.tasks)), len(table.tasks))
    return cells


def pair_cells(table: ScoreTable, place: Ints, n_tasks: int) -> PairCells | None:
    """Return the differences of all pairs, each computed when first needed; None if no trial was
    graded jointly.

    Args:
        place: shape (tasks of the table,), code of each of its tasks in the result, which has
            `n_tasks` tasks.
    """
    if table.joint is None or len(table.candidates) < 2:
        return None
    return PairCells(len(table.candidates), _Layout(table, place, n_tasks).moments)


def pair_moments(score: Floats, starts: Ints, first: Ints, second: Ints) -> Floats:
    """Return n, mean and m2 of differences and the mean of (first + second) / 2, shape (4, pairs,
    tasks).

    Args:
        score: shape (candidates, trials), NaN if a trial does not count for the candidate.
        starts: shape (tasks,), the first trial of each task, increasing.
        first, second: shape (pairs,), codes of the candidates.
    """
    a, b = score[first], score[second]
    difference, middle = a - b, (a + b) / 2
    both = ~np.isnan(difference)
    n = np.add.reduceat(both, starts, axis=1, dtype=np.float64)
    count = np.maximum(n, 1.0)
    mean = np.add.reduceat(np.where(both, difference, 0.0), starts, axis=1) / count
    difference -= np.repeat(mean, np.diff(starts, append=score.shape[1]), axis=1)
    difference *= difference
    m2 = np.add.reduceat(np.where(both, difference, 0.0), starts, axis=1)
    return np.stack(
        (n, mean, m2, np.add.reduceat(np.where(both, middle, 0.0), starts, axis=1) / count)
    )


class _Layout:
    """The jointly graded rows as a matrix with one row per candidate and one column per trial, in
    order of tasks.
    """

    def __init__(self, table: ScoreTable, place: Ints, n_tasks: int) -> None:
        assert table.joint is not None  # called only for tables with joint rows
        n_trials = int(table.trial_codes.max(initial=0)) + 1
        self.n_tasks, n_candidates = n_tasks, len(table.candidates)
        joint = np.flatnonzero(table.joint)
        candidate, task = table.candidate_codes[joint], table.task_codes[joint]
        units, line = np.unique(task * n_trials + table.trial_codes[joint], return_inverse=True)
        tasks, self.starts = np.unique(units // n_trials, return_index=True)
        self.places = place[tasks]
        self.score = np.full((n_candidates, len(units)), np.nan)
        self.score[candidate, line.reshape(-1)] = table.score[joint]
        cell = candidate * len(table.tasks) + task
        n_joint = np.bincount(cell, minlength=table.cells.n.size).reshape(table.cells.n.shape)
        # A task is not paired if even one trial was graded separately, because the numbers of
        # separate trials are arbitrary.
        self.wholly_joint: Bools = (n_joint == table.cells.n)[:, tasks]

    def moments(self, first: Ints, second: Ints) -> Floats:
        moments = np.zeros((4, len(first), self.n_tasks))
        step = max(VALUES_AT_A_TIME // max(self.score.shape[1], 1), 1)
        for at in (slice(start, start + step) for start in range(0, len(first), step)):
            a, b = first[at], second[at]
            use = self.wholly_joint[a] & self.wholly_joint[b]
            moments[:, at, self.places] = np.where(
                use, pair_moments(self.score, self.starts, a, b), 0.0
            )
        return moments
