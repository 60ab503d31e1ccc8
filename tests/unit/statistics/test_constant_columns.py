"""Candidates with one score on every task: exact tests instead of t-tests on rounding errors."""

import numpy as np
import pytest

from assay.statistics import (
    ScoreTable,
    cohen_kappa,
    compare,
    design_variances,
    e_value,
    equivalence,
    plan,
    rank,
    variance_components,
)
from assay.statistics.families import across_family_pairs
from assay.statistics.positions import position_effects
from assay.statistics.standard_error import across_pairs, across_tasks

HUNDRED = np.arange(101) / 100
FIRST, SECOND = (side.astype(np.int64) for side in np.triu_indices(101, 1))


def constants(scores: list[float], *, tasks: int, trials: int = 1) -> ScoreTable:
    n = len(scores)
    return ScoreTable.from_columns(
        task=np.repeat(np.arange(tasks), n * trials),
        candidate=np.tile(np.repeat(np.arange(n), trials), tasks),
        trial=np.tile(np.arange(trials), n * tasks),
        score=np.tile(np.repeat(scores, trials), tasks),
    )


def test_five_equal_differences_get_the_exact_p_and_decide_nothing() -> None:
    table = constants([0.9, 0.7], tasks=5)
    comparison = compare(table, 0, 1)
    assert (comparison.p_value, comparison.ci95, comparison.reason) == (
        0.0625,
        None,
        "zero_variance",
    )
    assert (comparison.method, comparison.decision) == ("signflip_exact", "not_decided")
    pair = rank(table).pairs[0]
    assert (pair.p_value, pair.p_holm, pair.ci95, pair.decision) == (
        0.0625,
        0.0625,
        None,
        "not_decided",
    )


def test_constant_scores_never_show_equivalence() -> None:
    table = constants([1.0, 0.99], tasks=6, trials=3)
    assert equivalence(table, 0, 1, margin=0.02) is None
    assert compare(table, 0, 1, margin=0.02).non_inferiority is None


@pytest.mark.parametrize("tasks", range(3, 21))
def test_every_pair_of_whole_point_constants_is_recognised(tasks: int) -> None:
    values = np.repeat(HUNDRED[:, None], tasks, axis=1)
    unequal = np.array([1.0 + task % 3 * 0.7 for task in range(tasks)])
    for weights in (np.ones(tasks), unequal):
        moments = across_pairs(values, weights, FIRST, SECOND)
        assert moments.constant.all(), f"{(~moments.constant).sum()} of {FIRST.size} pairs"
        assert moments.estimate == pytest.approx(HUNDRED[FIRST] - HUNDRED[SECOND])
    if tasks >= 8:
        family = np.arange(tasks, dtype=np.int64) // 2
        assert across_family_pairs(values, unequal, FIRST, SECOND, family).constant.all()


@pytest.mark.parametrize("tasks", [3, 6, 20])
def test_holm_over_all_pairs_of_constants_uses_the_exact_p(tasks: int) -> None:
    ranking = rank(constants(HUNDRED.tolist(), tasks=tasks, trials=2), "tasks_like_these")
    assert {pair.p_value for pair in ranking.pairs} == {2.0 ** (1 - tasks)}
    assert {pair.reason for pair in ranking.pairs} == {"zero_variance"}
    expected = min(1.0, FIRST.size * 2.0 ** (1 - tasks))
    assert {pair.p_holm for pair in ranking.pairs} == {expected}
    assert {pair.decision for pair in ranking.pairs} == {
        "better" if expected <= 0.05 else "not_decided"
    }


def test_differences_that_do_vary_keep_their_variance() -> None:
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-6, 1e-8):
        values = 0.5 + size * rng.random((6, 9))
        first, second = (side.astype(np.int64) for side in np.triu_indices(6, 1))
        pairs = across_pairs(values, np.ones(9), first, second)
        each = across_tasks(values[first] - values[second], np.ones(9))
        assert not pairs.constant.any()
        assert pairs.variance == pytest.approx(each.variance, rel=1e-6)


def test_rounding_errors_are_no_variance_between_tasks() -> None:
    for n in range(2, 21):
        shift = ScoreTable.from_columns(
            task=[t for t in range(n) for _ in range(4)],
            candidate=["a", "a", "b", "b"] * n,
            trial=[0, 1, 0, 1] * n,
            score=[
                score + 0.01 * (t * 7 % 13) for t in range(n) for score in (0.43, 0.43, 0.28, 0.28)
            ],
        )
        design = design_variances(shift, "a", "b")
        assert design is not None
        assert (design.interaction, design.trial) == (0.0, 0.0)
        # Signs of fewer than six equal differences cannot reach 5%.
        assert plan(design, detect=0.05).mde == (0.0 if n >= 6 else None)
        same = variance_components(constants([0.78], tasks=n, trials=3), 0)
        assert (same.var_task, same.icc1, same.reason) == (0.0, None, "zero_variance")


def test_perfect_agreement_has_no_range_of_kappa_whatever_the_shares() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        ratings = rng.integers(0, rng.integers(2, 6), rng.integers(4, 40)).tolist()
        if len(set(ratings)) > 1:
            for weights in ("none", "linear", "quadratic"):
                kappa = cohen_kappa(ratings, ratings, weights=weights)
                assert kappa.kappa == pytest.approx(1.0)
                assert (kappa.ci95, kappa.reason) == (None, "zero_variance")


def test_a_position_effect_without_noise_has_no_range() -> None:
    grading = np.repeat(np.arange(24), 2)
    position = np.tile([1, 2], 24)
    candidate = np.where(grading % 2, position - 1, 2 - position)
    score = 0.5 + 0.07 * (position == 1) + 0.1 * candidate + 0.003 * (grading // 2)
    effects = position_effects(
        score, position=position, candidate=candidate, sitting=grading, task=grading // 2
    )
    assert [(effect.ci95, effect.reason) for effect in effects] == [(None, "zero_variance")] * 2


@pytest.mark.parametrize("t", [1e8, 1e10, 1e153, 1e154, 1e155, -1e155, 1e300, 1.7e308])
@pytest.mark.parametrize("n", [2, 6, 1000])
def test_an_e_value_of_an_enormous_t_is_a_number(t: float, n: float) -> None:
    evidence = e_value(t, n)
    # For a large t, both logarithms grow alike, so the evidence depends on n alone.
    limit = -0.5 * np.log(1 + n) + n / 2 * np.log(1 + n)
    assert evidence.log_e_value == pytest.approx(limit, rel=1e-6)
    assert evidence.anytime_p is not None
    assert evidence.anytime_p <= 1.0


def test_arguments_beyond_any_benchmark_are_refused_not_answered_with_nan() -> None:
    for n, g in ((float("inf"), 1.0), (float("nan"), 1.0), (6, 1e308), (1e200, 1.0)):
        with pytest.raises(ValueError, match="e_value"):
            e_value(2.0, n, g=g)
