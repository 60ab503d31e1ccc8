"""Adjustment of p-values for multiple comparisons."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.statistics.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjusted:
    """Adjusted p-values, in the order of the input; None stays None and does not count as a
    comparison.

    `holm` limits the probability of any false claim to the significance level. `bh` limits the
    expected share of false claims, which suits screening lists. `bonferroni` is for intervals that
    accompany claims by Holm's method.
    """

    holm: tuple[float | None, ...]
    bh: tuple[float | None, ...]
    bonferroni: tuple[float | None, ...]


def multiplicity(p_values: Sequence[float | None]) -> Adjusted:
    """Adjust p-values by Holm, Benjamini-Hochberg and Bonferroni.

    Raises ValueError if a p-value is NaN or outside 0 to 1.

    Source: Holm (1979), Scand. J. Statist. 6:65-70; Benjamini & Hochberg (1995), JRSS B 57:289-300;
    checked against statsmodels multipletests.
    """
    for place, p in enumerate(p_values):
        if p is not None and not 0.0 <= p <= 1.0:
            raise ValueError(f"p-value {p} at index {place} (counted from 0) is outside 0 to 1")
    known = np.array([p for p in p_values if p is not None], np.float64)
    adjusted = (holm(known), benjamini_hochberg(known), np.minimum(known * known.size, 1.0))
    if known.size == len(p_values):
        return Adjusted(
            holm=tuple(adjusted[0].tolist()),
            bh=tuple(adjusted[1].tolist()),
            bonferroni=tuple(adjusted[2].tolist()),
        )
    spread = []
    for values in adjusted:
        left = iter(values.tolist())
        spread.append(tuple(None if p is None else next(left) for p in p_values))
    return Adjusted(holm=spread[0], bh=spread[1], bonferroni=spread[2])


def holm(p: Floats) -> Floats:
    """Apply Holm's step-down adjustment; input and output have shape (comparisons,)."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(np.minimum(p[order] * np.arange(p.size, 0, -1), 1.0))
    return _back(stepped, order)


def benjamini_hochberg(p: Floats) -> Floats:
    """Apply Benjamini and Hochberg's step-up adjustment; input and output have shape
    (comparisons,).
    """
    order = np.argsort(p, kind="stable")
    raised = np.minimum(p[order] * p.size / np.arange(1, p.size + 1), 1.0)
    return _back(np.minimum.accumulate(raised[::-1])[::-1], order)


def _back(stepped: Floats, order: Ints) -> Floats:
    out = np.empty_like(stepped)
    out[order] = stepped
    return out
