"""Means that are correct to the last digit.

A float sum rounds after each addition: added one by one, 200,000 scores of 0.9 have the mean
0.8999999999966726. `math.fsum` rounds the sum once and the division a second time, so that even the
mean of 0.1, 0.1 and 0.1 differs from 0.1. Here, scores are split into integers, which add up
without rounding, and the only rounding is that of the final quotient.
"""

from math import fsum

import numpy as np

from assay.statistics.arrays import Floats, Ints

_BITS = 32
_PARTS = 3
# Floats add integers below 2^53 without rounding, so that this many parts of 32 bits fit into one
# sum.
_ROWS_AT_A_TIME = 1 << 21
_CELLS_AT_A_TIME = 1 << 18


def group_means(group: Ints, values: Floats, n_groups: int) -> Floats:
    """Return the mean of each group's values; 0 for an empty group.

    Correctly rounded for values that are multiples of 2^-96, which all floats above 1.2e-13 are;
    smaller values may lose less than 2^-96 of their value.

    Args:
        group: shape (rows,), codes from 0.
        values: shape (rows,), between 0 and 1.

    Checked against fractions.Fraction in tests/property/test_exact_means.py.
    """
    n = np.bincount(group, minlength=n_groups)
    # A sum of at most two values is rounded once, and division by 2 is exact.
    means = np.bincount(group, weights=values, minlength=n_groups) / np.maximum(n, 1)
    longer = n > 2
    if not longer.any():
        return np.asarray(means, np.float64)
    places = np.cumsum(longer) - 1
    rows = longer[group]
    totals = _totals(places[group[rows]], values[rows], int(longer.sum()))
    means[longer] = _quotients(totals, n[longer])
    return np.asarray(means, np.float64)


def weighted_means(values: Floats, weights: Floats) -> Floats:
    """Return the weighted mean of each row; 0 for a row without weight.

    Correctly rounded if all positive weights of a row are equal. Otherwise the products, their sum
    and the quotient are each rounded once, and the mean lies between the smallest and the largest
    value.

    Args:
        values, weights: shape (rows, columns); values between 0 and 1, weights not negative.
    """
    values, weights = np.broadcast_arrays(values, weights)
    means = np.zeros(len(values))
    step = max(1, _CELLS_AT_A_TIME // max(values.shape[1], 1))
    for start in range(0, len(values), step):
        piece = slice(start, start + step)
        means[piece] = _row_means(values[piece], weights[piece])
    return means


def _row_means(values: Floats, weights: Floats) -> Floats:
    present = weights > 0
    heaviest = weights.max(axis=1, initial=0.0)
    totals, rest = [0] * len(values), np.where(present, values, 0.0)
    for part in reversed(range(_PARTS)):
        rest *= float(1 << _BITS)
        whole = np.floor(rest)
        totals = _plus(totals, whole.sum(axis=1), part)
        rest -= whole
        if not rest.any():
            break
    means = _quotients(totals, present.sum(axis=1))
    uneven = (present & (weights != heaviest[:, None])).any(axis=1)
    for row in np.flatnonzero(uneven):
        own = present[row]
        part_values, share = values[row, own], weights[row, own] / heaviest[row]
        mean = fsum((part_values * share).tolist()) / fsum(share.tolist())
        means[row] = min(max(mean, part_values.min()), part_values.max())
    return means


def _totals(group: Ints, values: Floats, n_groups: int) -> list[int]:
    """Return the sum of each group's values in units of 2^-96."""
    totals = [0] * n_groups
    for start in range(0, values.size, _ROWS_AT_A_TIME):
        own, rest = group[start : start + _ROWS_AT_A_TIME], values[start : start + _ROWS_AT_A_TIME]
        for part in reversed(range(_PARTS)):
            rest = rest * float(1 << _BITS)
            whole = np.floor(rest)
            totals = _plus(
                totals, np.bincount(own, weights=whole, minlength=n_groups).astype(np.float64), part
            )
            rest -= whole
            if not rest.any():
                break
    return totals


def _plus(totals: list[int], sums: Floats, part: int) -> list[int]:
    added = sums.astype(np.int64).tolist()
    return [total + (units << (_BITS * part)) for total, units in zip(totals, added, strict=True)]


def _quotients(totals: list[int], n: Ints) -> Floats:
    """Return totals in units of 2^-96 divided by `n`; 0 for an n of 0."""
    # Python rounds the quotient of two integers correctly, however long they are.
    pairs = zip(totals, np.maximum(n, 1).tolist(), strict=True)
    return np.fromiter(
        (total / (count << (_BITS * _PARTS)) for total, count in pairs), np.float64, len(totals)
    )
