"""Signs of careless reviewing: each threshold is absolute, and only measured times are judged."""

from __future__ import annotations

import pytest

from assay.domain.attention import (
    LONG_RUN,
    Attention,
    TimedDecision,
    attention_by_reviewer,
    reading_s,
)
from assay.domain.lifecycle import Verb


def decision(
    active_ms: int | None, *, verb: Verb = Verb.APPROVE, size: int = 3_000, reviewer: str = "ann"
) -> TimedDecision:
    return TimedDecision(reviewer=reviewer, verb=verb, active_ms=active_ms, size=size)


def signs(*decisions: TimedDecision) -> Attention:
    return Attention.total(attention_by_reviewer(decisions).values())


def test_500_words_take_50_seconds_at_600_words_per_minute() -> None:
    assert reading_s(3_000) == pytest.approx(50)


@pytest.mark.parametrize(
    ("active_ms", "size", "too_quick", "unread"),
    [
        (999, 3_000, 1, 1),
        (1_000, 3_000, 0, 1),
        (49_999, 3_000, 0, 1),
        (50_000, 3_000, 0, 0),
        # Two words need 0.2 s to read, but nobody reacts to them in 0.5 s.
        (500, 12, 1, 0),
        # A text of unknown length can be read in any time.
        (1_500, 0, 0, 0),
    ],
)
def test_a_decision_is_judged_by_the_clock_and_by_its_text(
    active_ms: int, size: int, too_quick: int, unread: int
) -> None:
    judged = signs(decision(active_ms, size=size))
    assert (judged.timed, judged.too_quick, judged.unread) == (1, too_quick, unread)


def test_a_decision_without_a_measured_time_is_counted_apart() -> None:
    judged = signs(decision(None), decision(100_000))
    assert (judged.decisions, judged.timed, judged.not_timed, judged.too_quick, judged.unread) == (
        2,
        1,
        1,
        0,
        0,
    )


def test_a_correction_or_a_rejection_breaks_a_run_of_approvals() -> None:
    careful = [decision(60_000) for _ in range(LONG_RUN - 1)]
    broken = signs(*careful, decision(60_000, verb=Verb.REJECT), decision(60_000))
    assert (broken.longest_run, broken.in_long_runs) == (LONG_RUN - 1, 0)
    unbroken = signs(*careful, decision(60_000), decision(60_000))
    assert (unbroken.longest_run, unbroken.in_long_runs) == (LONG_RUN + 1, LONG_RUN + 1)


def test_runs_of_two_reviewers_who_take_turns_are_two_runs() -> None:
    turns = [
        decision(60_000, reviewer=name) for _ in range(LONG_RUN - 1) for name in ("ann", "bea")
    ]
    assert (signs(*turns).longest_run, signs(*turns).in_long_runs) == (LONG_RUN - 1, 0)


def test_one_name_in_two_spellings_is_one_reviewer() -> None:
    by_name = attention_by_reviewer(
        [decision(10), decision(20, reviewer="Ann")], [("ANN", False), ("bea", True)]
    )
    assert by_name == {
        "ann": Attention(
            decisions=2, timed=2, too_quick=2, unread=2, longest_run=2, planted=1, missed=1
        ),
        "bea": Attention(planted=1),
    }
