"""Figures of a judge's trust, against independent calculations, and tiers read at the cautious
end.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped] # no stubs are installed

from assay.analysis.judge_errors import JudgedReference, Swap, Trust, tier_of, trust
from assay.domain.calibration_record import Tier


def judged(pairs: list[tuple[float, float]], *, tolerance: float = 0.1) -> list[JudgedReference]:
    return [
        JudgedReference(
            id=f"s{n}", kind="own", source="sample", reference=b, tolerance=tolerance, judged=a
        )
        for n, (a, b) in enumerate(pairs)
    ]


def spread(
    n: int, *, off: float = 0.0, seed: int = 1, noise: float = 0.02
) -> list[tuple[float, float]]:
    dice = np.random.default_rng(seed)
    truth = np.linspace(0.05, 0.9, n)
    return [(float(np.clip(x + off + dice.normal(0, noise), 0, 1)), float(x)) for x in truth]


def test_figures_equal_scipy_s() -> None:
    pairs = spread(25, off=0.04, noise=0.08)
    a, b = np.array(pairs).T
    result = trust(judged(pairs))
    error = a - b
    assert result.bias.value == pytest.approx(error.mean())
    interval = stats.ttest_1samp(error, 0).confidence_interval()
    assert result.bias.ci95 == pytest.approx((interval.low, interval.high))
    assert result.mae.value == pytest.approx(np.abs(error).mean())
    absolute = stats.ttest_1samp(np.abs(error), 0).confidence_interval()
    assert result.mae.ci95 == pytest.approx((absolute.low, absolute.high))
    assert result.max_error == pytest.approx(np.abs(error).max())
    pearson = stats.pearsonr(a, b)
    assert result.pearson.value == pytest.approx(pearson.statistic)
    fisher = pearson.confidence_interval()
    assert result.pearson.ci95 == pytest.approx((fisher.low, fisher.high))
    assert result.spearman.value == pytest.approx(stats.spearmanr(a, b).statistic)
    passed = int((np.abs(error) <= 0.1).sum())
    wilson = stats.binomtest(passed, 25).proportion_ci(method="wilson")
    assert result.pass_rate.ci95 == pytest.approx((wilson.low, wilson.high))


@pytest.mark.parametrize(
    ("pass_rate", "mae", "correlation", "tier"),
    [
        (0.90, 0.10, 0.90, Tier.EXCELLENT),
        (0.89, 0.10, 0.90, Tier.GOOD),
        (0.90, 0.11, 0.90, Tier.GOOD),
        (0.90, 0.10, 0.89, Tier.GOOD),
        (0.75, 0.15, 0.80, Tier.GOOD),
        (1.00, 0.05, 0.79, Tier.FAIR),
        (0.50, 0.25, 0.60, Tier.FAIR),
        (1.00, 0.05, 0.59, Tier.POOR),
        (0.49, 0.05, 0.99, Tier.POOR),
        (1.00, 0.26, 0.99, Tier.POOR),
    ],
)
def test_a_tier_needs_all_three(
    pass_rate: float, mae: float, correlation: float, tier: Tier
) -> None:
    assert tier_of(pass_rate, mae, correlation) is tier


def tier(pairs: list[tuple[float, float]]) -> tuple[Tier, Tier]:
    result = trust(judged(pairs))
    return result.tier, result.tier_at_face_value


def test_a_near_perfect_judge_is_excellent_only_with_enough_references() -> None:
    assert tier(spread(40)) == (Tier.EXCELLENT, Tier.EXCELLENT)
    assert tier(spread(28)) == (Tier.GOOD, Tier.EXCELLENT)
    assert tier(spread(12)) == (Tier.GOOD, Tier.EXCELLENT)
    assert tier(spread(7)) == (Tier.TOO_FEW, Tier.EXCELLENT)


def test_a_judge_that_always_says_zero_is_poor_and_not_short_of_data() -> None:
    references = [1.0, 0.0, 0.8, 0.9, 0.0, 0.0, 0.9, 0.4]
    result = trust(judged([(0.0, one) for one in references], tolerance=0.15))
    assert result.pass_rate.value == pytest.approx(3 / 8)
    assert result.mae.value == pytest.approx(0.5)
    assert result.pearson.value is None
    assert result.tier is Tier.POOR


def test_a_middling_judge_with_few_references_is_neither_fair_nor_poor() -> None:
    pairs = spread(8, noise=0.12, seed=3)
    assert tier(pairs)[0] is Tier.TOO_FEW
    assert tier(pairs)[1] is not Tier.POOR


def test_equal_references_give_no_correlation_and_no_tier() -> None:
    assert tier([(0.9 + n / 1000, 1.0) for n in range(30)]) == (Tier.TOO_FEW, Tier.TOO_FEW)


def test_an_unread_reply_is_a_miss_and_has_no_error() -> None:
    lost = JudgedReference(
        id="lost", kind="own", source="sample", reference=1.0, tolerance=0.1, judged=None
    )
    result = trust([*judged(spread(9)), lost])
    assert (result.n, result.unread) == (9, 1)
    assert result.pass_rate.value == pytest.approx(0.9)
    assert result.mae == trust(judged(spread(9))).mae


def test_items_without_a_judge_count_in_one_rate_only() -> None:
    empty = JudgedReference(
        id="e",
        kind="empty",
        source="sample",
        reference=0.0,
        tolerance=0.05,
        judged=0.0,
        bypassed=True,
    )
    pairs = [(0.5, 0.9), *spread(9)]
    result = trust([*judged(pairs), empty])
    assert result.pass_rate.value == pytest.approx(9 / 10)
    assert result.pass_rate_with_bypassed.value == pytest.approx(10 / 11)
    assert result.n == 10


def swapped(*leads: tuple[float, float]) -> Trust:
    return trust([], [Swap(id=str(n), lead=a, lead_swapped=b) for n, (a, b) in enumerate(leads)])


def test_a_flip_is_a_winner_that_changes_with_the_order() -> None:
    result = swapped((0.2, 0.1), (0.1, -0.1), (0.0, 0.1), (-0.3, -0.2))
    assert result.position_flips.value == pytest.approx(1 / 4)
    assert result.first_place_bonus.value == pytest.approx(np.mean([0.05, 0.1, -0.05, -0.05]))
    nothing = trust([])
    assert nothing.position_flips.value is None
    assert nothing.position_flips.reason == "no_pairs"
    assert nothing.tier is Tier.TOO_FEW


def test_length_bias_is_the_extra_score_of_a_wordy_twin() -> None:
    short = JudgedReference(
        id="a", kind="right", source="sample", reference=0.9, tolerance=0.1, judged=0.8
    )
    wordy = JudgedReference(
        id="b",
        kind="verbose",
        source="sample",
        reference=0.8,
        tolerance=0.1,
        judged=0.9,
        twin_of="a",
    )
    assert trust([short, wordy]).length_bias.value == pytest.approx(0.2)
    assert trust([short]).length_bias.reason == "no_twins"


def test_self_preference_is_a_difference_of_means_with_welch_interval() -> None:
    own, others = [0.2, 0.1, 0.25, 0.15], [0.0, 0.05, -0.1]
    rows = [
        JudgedReference(
            id=f"{mine}{n}",
            kind="c",
            source="correction",
            reference=0.5,
            tolerance=0.1,
            judged=0.5 + e,
            own_family=mine,
        )
        for mine, errors in ((True, own), (False, others))
        for n, e in enumerate(errors)
    ]
    self_preference = trust(rows).self_preference
    welch = stats.ttest_ind(own, others, equal_var=False).confidence_interval()
    assert self_preference.value == pytest.approx(np.mean(own) - np.mean(others))
    assert self_preference.ci95 == pytest.approx((welch.low, welch.high))
    assert trust(rows[:5]).self_preference.value is None


def test_the_spread_of_repeats_is_pooled_within_references() -> None:
    rows = [
        JudgedReference(
            id=str(n),
            kind="r",
            source="sample",
            reference=0.5,
            tolerance=0.1,
            judged=0.5,
            repeats=repeats,
        )
        for n, repeats in enumerate([(0.4, 0.6), (0.9, 0.9, 0.9), (0.1,)])
    ]
    assert trust(rows).repeat_sd.value == pytest.approx((0.02 / 3) ** 0.5)
    assert trust(rows[2:]).repeat_sd.reason == "judged_once"
