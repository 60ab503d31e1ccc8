"""Figures of reviewers: each with a range from a printed source, and none where nothing is
known.
"""

from __future__ import annotations

import numpy as np
import pytest

from assay.analysis.figures import difference_of_shares, median, share
from assay.analysis.reviewers import (
    Pairs,
    Reviewer,
    ReviewerDecision,
    ReviewerEvidence,
    detection,
    quickest,
    reviewer_of,
    watch,
)


def test_the_range_of_a_difference_of_shares_is_newcombe_s() -> None:
    """Newcombe (1998), table II, method 10: 56/70 - 48/80."""
    result = difference_of_shares([True] * 56 + [False] * 14, [True] * 48 + [False] * 32)
    assert result.value == pytest.approx(0.2)
    assert result.ci95 == pytest.approx((0.0524, 0.3339), abs=1e-4)


def test_the_range_of_a_catch_rate_is_wilson_s() -> None:
    result = share([True] * 18 + [False] * 2)
    assert result.ci95 == pytest.approx((0.699, 0.972), abs=1e-3)


def test_a_median_of_few_has_no_range_and_one_of_ten_the_order_statistics() -> None:
    assert median([1.0, 2.0, 3.0, 4.0, 5.0]).ci95 is None
    assert median([float(n) for n in range(1, 11)]).ci95 == (2.0, 9.0)


def test_the_range_of_a_median_covers_it() -> None:
    rng = np.random.default_rng(3)
    for n in (8, 40, 1200):
        hits = 0
        for _ in range(300):
            result = median(list(rng.exponential(size=n)))
            assert result.ci95 is not None
            hits += result.ci95[0] <= np.log(2) <= result.ci95[1]
        assert hits / 300 >= 0.92  # at least .95; three standard errors of 300 draws are .038


def test_unknown_reviewer_figures_have_a_reason_and_no_number() -> None:
    result = reviewer_of(ReviewerEvidence(), rng=np.random.default_rng(1))
    for figure in (
        result.catch_rate,
        result.self_alpha,
        result.anchoring,
        result.active_s,
        result.drift,
        result.others_alike,
    ):
        assert figure.value is None
        assert figure.ci95 is None
        assert figure.reason
    assert result.decisions == 0


def test_reviewer_who_approves_more_when_seeing_grades_is_anchored() -> None:
    taken = [ReviewerDecision(verb="approve", arm="assisted", active_s=5.0)] * 40
    taken += [
        ReviewerDecision(verb=verb, arm="blind", active_s=20.0)
        for verb in ("approve", "correct") * 20
    ]
    result = reviewer_of(ReviewerEvidence(taken=taken), rng=np.random.default_rng(1))
    assert result.anchoring.value == pytest.approx(0.5)
    assert result.anchoring.ci95 is not None
    assert result.anchoring.ci95[0] > 0.3
    assert result.drift.value is not None
    assert result.drift.value < -0.4
    assert len(result.drift_parts) == 8


def test_alike_means_at_most_five_points_apart() -> None:
    again = Pairs(first=[0.5, 0.5, 0.5, 0.9], second=[0.5, 0.55, 0.56, 0.1])
    result = reviewer_of(ReviewerEvidence(again=again), rng=np.random.default_rng(1))
    assert result.self_alike.value == 0.5
    assert result.self_distance.value == pytest.approx((0 + 0.05 + 0.06 + 0.8) / 4)


def of(material: ReviewerEvidence) -> Reviewer:
    return reviewer_of(material, rng=np.random.default_rng(1))


def test_sensitivity_and_caution_by_hand() -> None:
    """20 of 25 found, 10 of 25 suspected: rates 20.5/26 and 10.5/26; z .8005 and -.2425 (tables of
    the normal).
    """
    d, c = detection([True] * 20 + [False] * 5, [True] * 10 + [False] * 15)
    assert d.value == pytest.approx(1.043, abs=2e-3)
    assert c.value == pytest.approx(-0.279, abs=2e-3)
    assert d.ci95 is not None
    assert c.ci95 is not None
    assert (d.ci95[1] - d.ci95[0]) == pytest.approx(2 * (c.ci95[1] - c.ci95[0]))


def test_all_found_and_none_suspected_is_a_number() -> None:
    d, c = detection([True] * 20, [False] * 20)
    assert d.value == pytest.approx(2 * 1.981, abs=2e-3)
    assert c.value == pytest.approx(0.0, abs=1e-9)


def test_no_rate_under_twenty() -> None:
    result = of(ReviewerEvidence(plants=[("moved_score", True)] * 19, good=[False] * 25))
    assert (result.catch_rate.value, result.catch_rate.n, result.catch_rate.reason) == (
        None,
        19,
        "fewer_than_20",
    )
    assert result.sensitivity.reason == result.caution.reason == "fewer_than_20"
    assert result.false_alarms.value == 0
    assert not result.enough_plants
    assert result.caught_by_kind == {"moved_score": (19, 19)}


@pytest.mark.parametrize("true", [0.0, 1.0, 2.0])
def test_the_range_of_sensitivity_covers_it(true: float) -> None:
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(1000):
        items = list(rng.normal(true, 1, 40) > true / 2)
        d, _ = detection(items, list(rng.normal(0, 1, 40) > true / 2))
        assert d.ci95 is not None
        hits += d.ci95[0] <= true <= d.ci95[1]
    assert hits / 1000 >= 0.93


def test_drift_band_is_left_by_a_milder_reviewer_only() -> None:
    rng = np.random.default_rng(5)
    steady = [watch(list(rng.normal(0.02, 0.1, 130))) for _ in range(400)]
    assert sum(one is not None and one.left_at is not None for one in steady) / 400 <= 0.25
    milder = [watch([*rng.normal(0.02, 0.1, 60), *rng.normal(0.14, 0.1, 70)]) for _ in range(400)]
    places = [one.left_at for one in milder if one is not None and one.left_at is not None]
    assert sum(place > 60 for place in places) / 400 >= 0.8
    assert watch([0.1] * 30) is None
    alike = watch([0.1] * 60)
    assert alike is not None
    assert alike.left_at is None


def test_moves_after_seeing_the_judge_s_scores() -> None:
    def blind(before: float, after: float) -> ReviewerDecision:
        return ReviewerDecision(
            verb="correct", arm="blind", active_s=None, before=before, apart=after
        )

    result = of(
        ReviewerEvidence(
            taken=[blind(0.2, 0.0)] * 6
            + [blind(0.2, 0.2)] * 3
            + [blind(0.2, 0.3)]
            + [blind(0.0, 0.0)] * 5
        )
    )
    assert (result.toward.value, result.toward.n) == (0.6, 10)
    assert result.away.value == 0.1
    assert result.apart_blind.value == pytest.approx(2 / 15)
    assert result.apart_assisted.value is None


def test_position_rejections_and_reruns_are_shares_with_ranges() -> None:
    taken = [
        ReviewerDecision(verb="approve", arm="assisted", active_s=None, left=place % 4 > 0)
        for place in range(40)
    ]
    taken += [ReviewerDecision(verb="reject", arm="assisted", active_s=None)] * 10
    result = of(ReviewerEvidence(taken=taken, reruns=10))
    assert (result.position.value, result.position.n) == (0.75, 40)
    assert result.position.ci95 is not None
    assert result.position.ci95[0] > 0.5  # one who prefers the first place is seen
    assert result.rejections.value == 0.2
    assert result.reruns.value == pytest.approx(10 / 60)


def test_a_stamp_needs_its_signs_to_agree() -> None:
    quick = [ReviewerDecision(verb="approve", arm="assisted", active_s=1.0, size=9000)] * 40
    missed = [("moved_score", False)] * 20
    assert of(ReviewerEvidence(taken=quick, plants=missed, quickest=3000)).stamp.raised
    assert not of(
        ReviewerEvidence(taken=quick, plants=[("moved_score", True)] * 20, quickest=3000)
    ).stamp.raised
    assert not of(ReviewerEvidence(taken=quick, plants=missed[:19], quickest=3000)).stamp.raised
    assert not of(ReviewerEvidence(taken=quick, plants=missed, quickest=10_000)).stamp.raised
    some = [ReviewerDecision(verb="correct", arm="assisted", active_s=1.0, size=9000)] * 2
    assert not of(
        ReviewerEvidence(taken=[*quick, *some], plants=missed, quickest=3000)
    ).stamp.raised
    assert of(ReviewerEvidence(taken=quick, quickest=3000)).hasty.value == 1.0
    assert quickest([1.0] * 29) is None
    assert quickest([float(n) for n in range(101)]) == 95
