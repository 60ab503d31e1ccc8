"""Ties only: the loss that they leave possible, and the number of ties that a margin takes."""

import pytest
from hypothesis import given, strategies as st
from scipy.stats import binomtest  # type: ignore[import-untyped]  # SciPy ships no types

from assay.statistics.equivalence import loss_despite_ties, ties_needed


@pytest.mark.parametrize("n", [1, 2, 7, 16, 60, 99, 1000])
def test_the_bound_is_the_exact_one_for_no_event_in_n(n: int) -> None:
    exact = binomtest(0, n, alternative="less").proportion_ci(0.95, "exact")
    assert loss_despite_ties(n) == pytest.approx(exact.high)


@given(st.floats(0.001, 0.9))
def test_the_number_of_ties_is_the_smallest_that_shows_the_margin(margin: float) -> None:
    n = ties_needed(margin)
    assert loss_despite_ties(n) <= margin + 1e-12
    assert n == 1 or loss_despite_ties(n - 1) > margin - 1e-12
