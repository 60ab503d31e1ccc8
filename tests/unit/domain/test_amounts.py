"""Money and durations in words, the same in Python and on live pages."""

from __future__ import annotations

import pytest

from assay.domain.amounts import duration, money


@pytest.mark.parametrize(
    ("usd", "words"),
    [
        (0.0, "$0"),
        (0.00001, "less than $0.0001"),
        (0.0042, "$0.0042"),
        (12.3, "$12.30"),
        (1204.4, "$1,204"),
    ],
)
def test_money_is_told_as_it_is_spent(usd: float, words: str) -> None:
    assert money(usd) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.84, "0.8 s"),
        (9.94, "9.9 s"),
        (42, "42 s"),
        (59.6, "1 min 0 s"),
        (1475, "24 min 35 s"),
        (11_100, "3 h 5 min"),
    ],
)
def test_a_duration_has_at_most_two_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words
