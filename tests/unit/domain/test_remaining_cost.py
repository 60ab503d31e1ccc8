"""The cost of a run's remaining calls follows what its calls so far really cost."""

from __future__ import annotations

import pytest

from assay.domain.remaining_cost import (
    CALLS_NEEDED,
    CallsAhead,
    CallsPaid,
    TrialProgress,
    remaining_usd,
)

CANDIDATE = ("candidate", "openai/m")
JUDGE = ("judge", "openai/j")
AHEAD = (
    CallsAhead(role="candidate", model="openai/m", calls=1_000, usd_per_call=1.0),
    CallsAhead(role="judge", model="openai/j", calls=1_000, usd_per_call=0.5),
)


def progress(begun: int, *, total: int = 1_000, failed: int = 0) -> TrialProgress:
    return TrialProgress(total=total, begun=begun, failed=failed)


def test_the_estimate_is_not_corrected_before_there_are_enough_calls() -> None:
    paid = {CANDIDATE: CallsPaid(calls=CALLS_NEEDED - 1, usd=1.0)}
    assert remaining_usd(AHEAD, paid, progress(CALLS_NEEDED)) is None


def test_a_role_that_was_not_called_yet_keeps_its_estimate() -> None:
    paid = {CANDIDATE: CallsPaid(calls=50, usd=5.0)}
    assert remaining_usd(AHEAD, paid, progress(50)) == pytest.approx(950 * 0.1 + 1_000 * 0.5)


def test_each_role_and_model_counts_with_its_own_mean() -> None:
    paid = {CANDIDATE: CallsPaid(calls=100, usd=10.0), JUDGE: CallsPaid(calls=100, usd=2.0)}
    assert remaining_usd(AHEAD, paid, progress(100)) == pytest.approx(900 * 0.1 + 900 * 0.02)


def test_an_agent_that_calls_more_often_than_planned_is_not_at_its_end() -> None:
    paid = {CANDIDATE: CallsPaid(calls=1_200, usd=12.0)}
    assert remaining_usd(AHEAD[:1], paid, progress(200)) == pytest.approx(800 * 6 * 0.01)


def test_failed_trials_need_no_further_calls() -> None:
    paid = {CANDIDATE: CallsPaid(calls=500, usd=5.0)}
    assert remaining_usd(AHEAD[:1], paid, progress(1_000, failed=500)) == 0.0


def test_an_unknown_price_of_remaining_calls_makes_the_rest_unknown() -> None:
    paid = {CANDIDATE: CallsPaid(calls=50, usd=None)}
    assert remaining_usd(AHEAD, paid, progress(50)) is None
    unpriced = CallsAhead(role="judge", model="openai/j", calls=10, usd_per_call=None)
    known = {CANDIDATE: CallsPaid(calls=50, usd=5.0)}
    assert remaining_usd((AHEAD[0], unpriced), known, progress(50)) is None
