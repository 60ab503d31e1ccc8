"""Means are the correctly rounded means of their scores, and the mean of equal scores is that
score.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from assay.statistics.estimates import estimate
from assay.statistics.exact_means import group_means, weighted_means
from assay.statistics.table import ScoreTable

_DECIMALS = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)
_SCORES = st.one_of(
    _DECIMALS, st.floats(0.0, 1.0).filter(lambda score: score == 0 or score > 1e-12)
)


def _mean(scores: list[float]) -> float:
    return float(sum(map(Fraction, scores)) / len(scores))


def _table(tasks: list[list[float]]) -> ScoreTable:
    rows = [
        (f"t{place:06}", trial, score)
        for place, task in enumerate(tasks)
        for trial, score in enumerate(task)
    ]
    return ScoreTable.from_columns(
        task=[row[0] for row in rows],
        candidate=["a"] * len(rows),
        trial=[row[1] for row in rows],
        score=[row[2] for row in rows],
    )


@given(st.lists(st.tuples(st.integers(0, 3), _SCORES), min_size=1, max_size=60))
def test_means_of_groups_are_correctly_rounded(rows: list[tuple[int, float]]) -> None:
    means = group_means(np.array([row[0] for row in rows]), np.array([row[1] for row in rows]), 4)
    for group in range(4):
        own = [score for place, score in rows if place == group]
        assert means[group] == (_mean(own) if own else 0.0)


@given(st.lists(_SCORES, min_size=1, max_size=40), st.sampled_from((0.1, 1.0, 3.0)))
def test_means_with_equal_weights_are_correctly_rounded(scores: list[float], weight: float) -> None:
    assert weighted_means(np.array([scores]), np.full((1, len(scores)), weight))[0] == _mean(scores)


@given(_DECIMALS, st.lists(st.sampled_from((0.1, 0.3, 1.0, 2.5)), min_size=1, max_size=30))
def test_equal_scores_keep_their_value_whatever_the_weights(
    score: float, weights: list[float]
) -> None:
    assert weighted_means(np.full((1, len(weights)), score), np.array([weights]))[0] == score


@settings(max_examples=60)
@given(_DECIMALS, st.integers(1, 40), st.integers(1, 4))
def test_the_estimate_of_equal_scores_is_that_score(
    score: float, n_tasks: int, n_trials: int
) -> None:
    result = estimate(_table([[score] * n_trials] * n_tasks), "a")
    assert result.mean == score
    assert {task.mean for task in result.by_task} == {score}


@settings(max_examples=60)
@given(st.lists(st.lists(_SCORES, min_size=1, max_size=5), min_size=1, max_size=12))
def test_an_estimate_is_the_mean_of_the_means_of_its_tasks(tasks: list[list[float]]) -> None:
    result = estimate(_table(tasks), "a")
    assert [task.mean for task in result.by_task] == [_mean(task) for task in tasks]
    assert result.mean == _mean([_mean(task) for task in tasks])


@settings(max_examples=60)
@given(st.lists(_SCORES, min_size=1, max_size=6))
def test_judge_calls_of_a_trial_are_averaged_exactly(calls: list[float]) -> None:
    table = ScoreTable.from_columns(
        task=["t"] * len(calls), candidate=["a"] * len(calls), trial=[1] * len(calls), score=calls
    )
    assert table.score.tolist() == [_mean(calls)]


@pytest.mark.parametrize("n", [3, 60_000])
def test_many_equal_scores_among_others_do_not_drift(n: int) -> None:
    scores = [0.9] * n + [0.8, 1.0]
    assert estimate(_table([scores]), "a").mean == _mean(scores)
    assert estimate(_table([[score] for score in scores]), "a").mean == _mean(scores)
