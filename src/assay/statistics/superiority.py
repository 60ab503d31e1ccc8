"""Probability of superiority: the chance that a random trial of A beats a random trial of B on the same task."""

from dataclasses import dataclass

import numpy as np

from assay.statistics.arrays import Bools, Floats, Interval, Ints
from assay.statistics.families import FEWEST_FAMILIES, across
from assay.statistics.intervals import logit_interval
from assay.statistics.table import ScoreTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Superiority:
    """Probability that a trial of A beats a trial of B; a tie counts half. `ci95` may be None."""

    value: float
    ci95: Interval | None


def superiority(table: ScoreTable, a: int, b: int, shared: Bools) -> Superiority:
    """Compute the probability that a trial of a beats a trial of b, with an interval over tasks.

    Args:
        shared: shape (tasks,), True for tasks on which both have counted trials; at least one.

    Source: Mann-Whitney U / (n_a n_b) per task; checked against scipy.stats.mannwhitneyu.
    """
    values = superiority_by_task(table, a, b)
    weights = np.where(shared, table.weight, 0.0)
    family = table.cells.family
    moments = across(values, weights, family)
    value = min(max(float(moments.estimate), 0.0), 1.0)
    if moments.n_units < (2 if family is None else FEWEST_FAMILIES) or moments.constant or not 0.0 < value < 1.0:
        return Superiority(value=value, ci95=None)
    low, high = logit_interval(value, np.sqrt(moments.variance), moments.df)
    return Superiority(value=value, ci95=(float(low), float(high)))


def superiority_by_task(table: ScoreTable, a: int, b: int) -> Floats:
    """Return U / (n_a n_b) by task, shape (tasks,); 0 if one of the candidates has no trials."""
    rows_a, rows_b = table.rows_of(a), table.rows_of(b)
    rows = np.concatenate([rows_a, rows_b])
    n_tasks = len(table.tasks)
    task = table.task_codes[rows]
    # Averages of judge calls that should be equal may differ in the last digit; these count as ties.
    score = np.round(table.score[rows], 12)
    order = np.lexsort((score, task))
    rank = np.empty(rows.size)
    rank[order] = _midranks(task[order], score[order])
    n_a = np.bincount(task[: rows_a.size], minlength=n_tasks).astype(np.float64)
    n_b = np.bincount(task[rows_a.size :], minlength=n_tasks).astype(np.float64)
    before = np.concatenate([[0.0], np.cumsum(n_a + n_b)[:-1]])
    rank_sum = np.bincount(task[: rows_a.size], weights=rank[: rows_a.size], minlength=n_tasks) - n_a * before
    both = (n_a > 0) & (n_b > 0)
    return np.where(both, (rank_sum - n_a * (n_a + 1) / 2) / np.where(both, n_a * n_b, 1.0), 0.0)


def _midranks(task: Ints, score: Floats) -> Floats:
    """Return ranks from 1 along sorted rows; equal (task, score) rows share the mean of their ranks."""
    if task.size == 0:
        return np.zeros(0)
    starts = np.flatnonzero(np.concatenate([[True], (task[1:] != task[:-1]) | (score[1:] != score[:-1])]))
    ends = np.concatenate([starts[1:], [task.size]])
    return np.repeat((starts + ends + 1) / 2.0, ends - starts)
