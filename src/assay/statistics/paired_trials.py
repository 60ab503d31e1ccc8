"""Differences by trial for jointly graded trials, whose scores are correlated because they come from one judge call.

A pair is compared by trial on a task if every counted trial of both candidates on it was graded jointly and at least one trial
counts for both. Otherwise the two are treated as graded separately. Pairing by trial is exact for any correlation between the
two scores; treating them as independent is wrong unless the correlation is 0 (docs/explanation/statistics.md).
"""

from dataclasses import dataclass

import numpy as np

from assay.statistics.arrays import Floats, Ints
from assay.statistics.cells import Cells, PairCells
from assay.statistics.table import ScoreTable


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTrials:
    """Differences first - second per task, over trials that count for both; `n` is 0 for tasks that were graded separately.

    All fields have shape (..., tasks). `middle`: mean of the two candidates' scores over these trials.
    """

    n: Floats
    mean: Floats
    m2: Floats
    middle: Floats


def paired_trials(source: ScoreTable | Cells, first: Ints, second: Ints) -> PairedTrials | None:
    """Return the moments of trial differences for candidate pairs; None if no trial was graded jointly.

    Args:
        first, second: shape (pairs,), candidate codes; the two codes of a pair must differ.
    """
    cells = source.cells if isinstance(source, ScoreTable) else source
    if cells.pairs is not None:
        return _from_pair_cells(cells.pairs, first, second)
    if isinstance(source, Cells) or source.joint is None or first.size == 0:
        return None
    layout = _Layout(source)
    moments = [layout.pair(int(a), int(b)) for a, b in zip(first, second, strict=True)]
    return PairedTrials(
        n=np.array([pair.n for pair in moments]),
        mean=np.array([pair.mean for pair in moments]),
        m2=np.array([pair.m2 for pair in moments]),
        middle=np.array([pair.middle for pair in moments]),
    )


def paired_rows(table: ScoreTable, first: int, second: int, task: int) -> tuple[Floats, Floats] | None:
    """Return both candidates' scores in the trials of one task that count for both; None if graded separately."""
    if table.joint is None:
        return None
    rows_a, rows_b = table.rows_of(first, task), table.rows_of(second, task)
    if not (table.joint[rows_a].all() and table.joint[rows_b].all()):
        return None
    _, at_one, at_other = np.intersect1d(table.trial_codes[rows_a], table.trial_codes[rows_b], return_indices=True)
    if at_one.size == 0:
        return None
    return table.score[rows_a[at_one]], table.score[rows_b[at_other]]


def kept_cells(table: ScoreTable) -> Cells:
    """Copy a table's cells, for incremental updates.

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
    if table.joint is not None and len(table.candidates) > 1:
        pairs = PairCells(len(table.candidates), len(table.tasks))
        moments = paired_trials(table, pairs.first, pairs.second)
        assert moments is not None  # the table has jointly graded rows
        pairs.n, pairs.mean, pairs.m2, pairs.middle = moments.n, moments.mean, moments.m2, moments.middle
        cells.pairs = pairs
    return cells


def _from_pair_cells(pairs: PairCells, first: Ints, second: Ints) -> PairedTrials:
    low, high = np.minimum(first, second), np.maximum(first, second)
    at = low * pairs.n_candidates - low * (low + 1) // 2 + high - low - 1
    # Stored pairs have the lower code first; for the other order only the sign of the mean changes.
    sign = np.where(first < second, 1.0, -1.0)[:, None]
    return PairedTrials(n=pairs.n[at], mean=sign * pairs.mean[at], m2=pairs.m2[at], middle=pairs.middle[at])


class _Layout:
    """The jointly graded rows as a matrix with one row per trial and one column per candidate."""

    def __init__(self, table: ScoreTable) -> None:
        assert table.joint is not None  # called only for tables with joint rows
        n_trials = int(table.trial_codes.max(initial=0)) + 1
        self.n_tasks, n_candidates = len(table.tasks), len(table.candidates)
        joint = np.flatnonzero(table.joint)
        key = table.task_codes[joint] * n_trials + table.trial_codes[joint]
        units, line = np.unique(key, return_inverse=True)
        line = line.reshape(-1)
        self.task = units // n_trials
        self.score = np.zeros((n_candidates, len(units)))
        self.present = np.zeros((n_candidates, len(units)), np.bool_)
        self.score[table.candidate_codes[joint], line] = table.score[joint]
        self.present[table.candidate_codes[joint], line] = True
        cell = table.candidate_codes[joint] * self.n_tasks + table.task_codes[joint]
        n_joint = np.bincount(cell, minlength=n_candidates * self.n_tasks).reshape(n_candidates, self.n_tasks)
        # A task is not paired if even one trial was graded separately, because the numbers of separate trials are arbitrary.
        self.wholly_joint = n_joint == table.cells.n

    def pair(self, first: int, second: int) -> PairedTrials:
        both = np.flatnonzero(self.present[first] & self.present[second])
        task = self.task[both]
        score_a, score_b = self.score[first][both], self.score[second][both]
        difference = score_a - score_b
        n = np.bincount(task, minlength=self.n_tasks).astype(np.float64)
        count = np.maximum(n, 1.0)
        mean = np.bincount(task, weights=difference, minlength=self.n_tasks) / count
        off = difference - mean[task]
        use = self.wholly_joint[first] & self.wholly_joint[second]
        return PairedTrials(
            n=np.where(use, n, 0.0),
            mean=np.where(use, mean, 0.0),
            m2=np.where(use, np.bincount(task, weights=off * off, minlength=self.n_tasks), 0.0),
            middle=np.where(use, np.bincount(task, weights=(score_a + score_b) / 2, minlength=self.n_tasks) / count, 0.0),
        )
