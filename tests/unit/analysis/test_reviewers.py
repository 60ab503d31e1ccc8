"""Figures of reviewers: each with a range from a printed source, and none where nothing is known."""

from __future__ import annotations

import numpy as np
import pytest

from assay.analysis.reviewers import Material, Pairs, Taken, difference_of_shares, median, reviewer_of, share


def test_the_range_of_a_difference_of_shares_is_newcombe_s() -> None:
    """Newcombe (1998), table II, method 10: 56/70 - 48/80."""
    found = difference_of_shares([True] * 56 + [False] * 14, [True] * 48 + [False] * 32)
    assert found.value == pytest.approx(0.2)
    assert found.ci95 == pytest.approx((0.0524, 0.3339), abs=1e-4)


def test_the_range_of_a_catch_rate_is_wilson_s() -> None:
    found = share([True] * 18 + [False] * 2)
    assert found.ci95 == pytest.approx((0.699, 0.972), abs=1e-3)


def test_a_median_of_few_has_no_range_and_one_of_ten_the_order_statistics() -> None:
    assert median([1.0, 2.0, 3.0, 4.0, 5.0]).ci95 is None
    assert median([float(n) for n in range(1, 11)]).ci95 == (2.0, 9.0)


def test_the_range_of_a_median_covers_it() -> None:
    rng = np.random.default_rng(3)
    for n in (8, 40, 1200):
        hits = 0
        for _ in range(300):
            found = median(list(rng.exponential(size=n)))
            assert found.ci95 is not None
            hits += found.ci95[0] <= np.log(2) <= found.ci95[1]
        assert hits / 300 >= 0.92  # at least .95; three standard errors of 300 draws are .038


def test_what_is_not_known_has_a_reason_and_no_number() -> None:
    found = reviewer_of(Material(), rng=np.random.default_rng(1))
    for figure in (
        found.catch_rate,
        found.self_alpha,
        found.anchoring,
        found.active_s,
        found.drift,
        found.others_alike,
    ):
        assert figure.value is None
        assert figure.ci95 is None
        assert figure.reason
    assert found.decisions == 0


def test_a_reviewer_who_approves_all_they_see_and_half_of_what_is_blind_is_anchored() -> None:
    taken = [Taken(verb="approve", arm="assisted", active_s=5.0)] * 40
    taken += [Taken(verb=verb, arm="blind", active_s=20.0) for verb in ("approve", "correct") * 20]
    found = reviewer_of(Material(taken=taken), rng=np.random.default_rng(1))
    assert found.anchoring.value == pytest.approx(0.5)
    assert found.anchoring.ci95 is not None
    assert found.anchoring.ci95[0] > 0.3
    assert found.drift.value is not None
    assert found.drift.value < -0.4
    assert len(found.drift_parts) == 8


def test_alike_means_at_most_five_points_apart() -> None:
    again = Pairs(first=[0.5, 0.5, 0.5, 0.9], second=[0.5, 0.55, 0.56, 0.1])
    found = reviewer_of(Material(again=again), rng=np.random.default_rng(1))
    assert found.self_alike.value == 0.5
    assert found.self_distance.value == pytest.approx((0 + 0.05 + 0.06 + 0.8) / 4)
