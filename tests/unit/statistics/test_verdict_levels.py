"""Intervals at other levels, and the win probability of ordered verdicts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from assay.statistics import ScoreTable, estimate
from assay.statistics.levels import interval_at, level_for
from assay.statistics.superiority import win_probability


def table(*of_tasks: tuple[Sequence[float], Sequence[float]]) -> ScoreTable:
    rows = [
        (task, name, trial, score)
        for task, both in enumerate(of_tasks)
        for name, scores in zip("AB", both, strict=True)
        for trial, score in enumerate(scores)
    ]
    tasks, names, trials, scores = zip(*rows, strict=True)
    return ScoreTable.from_columns(task=tasks, candidate=names, trial=trials, score=scores)


TASKS = (
    ([1, 1, 0], [0, 0, 0]),
    ([1, 0, 1], [1, 0, 0]),
    ([1, 1, 1], [0, 1, 0]),
    ([0, 0, 1], [0, 0, 1]),
    ([1], [0]),
    ([1], [1]),
)
MIXED = table(*TASKS)


def test_the_interval_at_95_percent_is_ci95() -> None:
    for scores in (MIXED, table(([1, 1], [1, 1]), ([1, 1], [1, 1])), table(([1, 0, 1, 1], [0, 0]))):
        for name in "AB":
            whole = estimate(scores, name)
            assert interval_at(whole, 0.95) == pytest.approx(whole.ci95)


def test_a_higher_level_is_wider() -> None:
    whole = estimate(MIXED, "A")
    narrow, wide = interval_at(whole, 0.95), interval_at(whole, level_for(3))
    assert narrow is not None
    assert wide is not None
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert level_for(3) == pytest.approx(0.98333, abs=1e-5)


def test_win_probability_counts_pairs_of_trials_with_ties_as_half() -> None:
    codes = [MIXED.cells.candidate_code(name) for name in "AB"]
    assert codes == [0, 1]
    win = win_probability(MIXED, 0, 1)
    assert win is not None
    pairs = [
        np.mean([(a > b) + 0.5 * (a == b) for a in mine for b in other]) for mine, other in TASKS
    ]
    assert win.value == pytest.approx(np.mean(pairs))
    assert win.odds == pytest.approx(win.value / (1 - win.value))
    back = win_probability(MIXED, 1, 0)
    assert back is not None
    assert back.value == pytest.approx(1 - win.value)
    assert back.p_value == pytest.approx(win.p_value)


def test_win_probability_of_equal_tasks_has_no_range() -> None:
    win = win_probability(table(([1], [0]), ([1], [0])), 0, 1)
    assert win is not None
    assert (win.value, win.ci95, win.p_value, win.odds) == (1.0, None, None, None)
