"""pass@k and pass^k against all draws of k trials."""

from __future__ import annotations

from itertools import combinations

import pytest

from assay.statistics.repeated_success import pass_all_k, pass_at_k


@pytest.mark.parametrize("successes", range(6))
@pytest.mark.parametrize("k", range(1, 6))
def test_estimates_are_shares_of_all_draws_without_replacement(successes: int, k: int) -> None:
    draws = list(combinations([True] * successes + [False] * (5 - successes), k))
    assert pass_at_k(5, successes, k) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert pass_all_k(5, successes, k) == pytest.approx(sum(map(all, draws)) / len(draws))


@pytest.mark.parametrize(("trials", "successes", "k"), [(3, 1, 4), (3, 1, 0), (0, 0, 1), (3, 4, 1)])
def test_impossible_counts_are_refused(trials: int, successes: int, k: int) -> None:
    with pytest.raises(ValueError, match="expected 1 to"):
        pass_at_k(trials, successes, k)
    with pytest.raises(ValueError, match="expected 1 to"):
        pass_all_k(trials, successes, k)
