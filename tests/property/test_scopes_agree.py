"""The two answers to a comparison, about tasks like these and about exactly these tasks, never
contradict each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as some
from tests.support.examples import examples

from assay import statistics as st

SCORES = some.integers(0, 20).map(lambda k: k / 20)


@some.composite
def small_tables(draw: some.DrawFn) -> st.ScoreTable:
    """Two to five tasks, one to four trials of two candidates, graded jointly or apart, sometimes
    in families.
    """
    cells = [
        (f"t{task}", name, trial, draw(SCORES))
        for task in range(draw(some.integers(2, 5)))
        for trials in [draw(some.integers(1, 4))]
        for name in "AB"
        for trial in range(trials)
    ]
    task, candidate, trial, score = (list(column) for column in zip(*cells, strict=True))
    family = [f"f{int(name[1:]) // 2}" for name in task] if draw(some.booleans()) else None
    return st.ScoreTable.from_columns(
        task=task,
        candidate=candidate,
        trial=trial,
        score=score,
        joint=draw(some.booleans()),
        family=family,
    )


def decided(answer: Any) -> int:
    if answer.p_value is None or answer.p_value > 0.05:
        return 0
    return 1 if answer.difference > 0 else -1


def width(interval: tuple[float, float]) -> float:
    return interval[1] - interval[0]


def check(table: st.ScoreTable, scope: str | None) -> None:
    comparison = st.compare(table, "A", "B", scope)
    other = comparison.other_scope
    if other is not None and other.p_value is not None:
        like, these = (
            (comparison, other) if comparison.scope == "tasks_like_these" else (other, comparison)
        )
        assert not decided(like) or decided(like) == decided(these)
    if other is not None and other.scope == "tasks_like_these" and other.ci95 is not None:
        assert comparison.n_tasks >= 3
        assert comparison.ci95 is None or width(other.ci95) >= width(comparison.ci95)
    for name in "AB":
        mean = st.estimate(table, name, scope)
        beside = mean.other_scope
        if beside is None or beside.ci95 is None or mean.ci95 is None:
            continue
        like_ci, these_ci = (
            (mean.ci95, beside.ci95)
            if mean.scope == "tasks_like_these"
            else (beside.ci95, mean.ci95)
        )
        assert width(like_ci) >= width(these_ci)


@settings(max_examples=examples(400), deadline=None)
@given(small_tables(), some.sampled_from([None, "these_tasks", "tasks_like_these"]))
def test_scopes_of_small_tables_never_contradict_each_other(
    table: st.ScoreTable, scope: str | None
) -> None:
    check(table, scope)


@pytest.mark.parametrize("n_tables", [20, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("n_tasks", [2, 3, 4, 5, 7])
def test_scopes_never_contradict_each_other_with_trial_noise_alone(
    n_tasks: int, n_tables: int
) -> None:
    """Tasks that differ only by chance: here a range over tasks most often came out narrower than
    the one over trials.
    """
    rng = np.random.default_rng(n_tasks)
    for _ in range(n_tables):
        shape = (n_tasks, 2, 3)
        score = np.clip(0.5 + rng.normal(0.0, 0.15, shape), 0, 1)
        task, candidate, trial = (
            np.broadcast_to(at, shape) for at in np.ogrid[tuple(map(slice, shape))]
        )
        table = st.ScoreTable.from_columns(
            task=task.ravel(),
            candidate=np.array(["A", "B"], dtype=object)[candidate.ravel()],
            trial=trial.ravel(),
            score=score.ravel(),
        )
        for scope in (None, "tasks_like_these"):
            check(table, scope)


def test_two_tasks_say_nothing_about_other_tasks_beside_the_headline() -> None:
    scores = {
        ("t0", "A"): [0.9, 0.5, 0.7],
        ("t0", "B"): [0.6, 0.7, 0.5],
        ("t1", "A"): [0.4, 0.8, 0.6],
    }
    scores["t1", "B"] = [0.3, 0.7, 0.49]
    rows = [
        (task, who, k, score)
        for (task, who), values in scores.items()
        for k, score in enumerate(values)
    ]
    task, candidate, trial, score = (list(column) for column in zip(*rows, strict=True))
    table = st.ScoreTable.from_columns(task=task, candidate=candidate, trial=trial, score=score)
    comparison = st.compare(table, "A", "B")
    assert (comparison.scope, comparison.decision) == ("these_tasks", "not_decided")
    assert comparison.other_scope is not None
    assert (comparison.other_scope.ci95, comparison.other_scope.p_value) == (None, None)
    assert comparison.other_scope.reason == "need_at_least_3_tasks"
    beside = st.estimate(table, "A").other_scope
    assert beside is not None
    assert (beside.ci95, beside.reason) == (None, "need_at_least_3_tasks")
    # Asked for by name it is still answered, with the warning about few tasks.
    asked = st.compare(table, "A", "B", "tasks_like_these")
    assert asked.p_value is not None
    assert "few_tasks" in {warning.code for warning in asked.warnings}
