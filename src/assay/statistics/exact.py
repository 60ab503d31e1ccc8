"""Exact permutation p-values, computed by splitting the observations into two halves.

A sign-flip test of G observations has 2^G sign patterns. Each half of the observations has only
2^(G/2) sums. One half is sorted, and each sum of the other half is looked up in it. So 32
observations take 65,536 sums instead of four billion, and no random draws are needed.
"""

from math import comb

import numpy as np
from numpy.typing import ArrayLike

from assay.statistics.arrays import NO_SPREAD, Floats

EXACT_UP_TO = 32
# The smallest possible p with G differences is 2 / 2^G, so .0625 with 5 and .031 with 6.
FEWEST_FOR_FIVE_PERCENT = 6


def sign_flip(
    differences: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    rng: np.random.Generator | None = None,
    draws: int = 9999,
) -> float | None:
    """Compute the two-sided p-value of a weighted mean difference by a sign-flip test.

    It is exact for up to 32 differences. With more, it draws random flips from `rng` and returns (1
    + hits) / (1 + draws), or None without `rng`. The smallest possible p with G differences is 2 /
    2^G, so fewer than 6 differences cannot reach 5%.

    Args:
        differences: shape (observations,).
        weights: shape (observations,), at least 0; default equal.

    Source: Fisher (1935); checked against full enumeration and scipy.stats.permutation_test.
    """
    d = np.asarray(differences, np.float64)
    w = np.ones(d.size) if weights is None else np.asarray(weights, np.float64)
    shares = w / max(float(w.max(initial=0.0)), 1e-300)
    terms = (shares * d)[shares > 0]
    terms = terms / max(float(shares.sum()), 1.0)
    seen = abs(float(terms.sum()))
    if terms.size == 0 or np.abs(terms).max() < NO_SPREAD:
        return 1.0
    if d.max() - d.min() < NO_SPREAD:
        return float(2.0 ** (1 - min(terms.size, 1000)))
    if terms.size <= EXACT_UP_TO:
        half = terms.size // 2
        left, right = _signed_sums(terms[:half]), np.sort(_signed_sums(terms[half:]))
        above = right.size - np.searchsorted(right, seen - NO_SPREAD - left, side="left")
        # Patterns and their negatives mirror each other, so the lower tail has as many patterns as
        # the upper tail.
        return min(1.0, 2.0 * float(above.sum()) / 2.0**terms.size) if seen > NO_SPREAD else 1.0
    if rng is None:
        return None
    sums = _sums_by_byte(terms)
    groups = np.arange(len(sums))
    hits = 0
    # Draws are made in parts, so that memory use does not grow with draws times differences.
    for start in range(0, draws, 1000):
        flips = rng.integers(0, 256, size=(min(1000, draws - start), groups.size), dtype=np.uint8)
        hits += int((np.abs(sums[groups, flips].sum(axis=1)) >= seen - NO_SPREAD).sum())
    return (1 + hits) / (1 + draws)


def _sums_by_byte(terms: Floats) -> Floats:
    """Return a table of signed sums, shape (groups, 256), in which one random byte selects eight
    signs.

    With a thousand differences, this takes a tenth of the time of drawing and multiplying each
    sign.
    """
    padded = np.zeros((-(-terms.size // 8), 8))
    padded.reshape(-1)[: terms.size] = terms
    signs = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) * 2.0 - 1.0
    return padded @ signs.T


def _signed_sums(terms: Floats) -> Floats:
    sums = np.zeros(1)
    for term in terms:
        sums = np.concatenate([sums + term, sums - term])
    return sums


def label_permutation(
    a: ArrayLike, b: ArrayLike, *, rng: np.random.Generator | None = None, draws: int = 9999
) -> float | None:
    """Compute the two-sided p-value of a difference of means by a label permutation test.

    It is exact for up to 32 scores. With more, it draws random splits from `rng`, or returns None
    without `rng`.

    Args:
        a, b: each candidate's scores, at least one.

    Source: Pitman (1937); checked against full enumeration and scipy.stats.permutation_test.
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    pooled = np.concatenate([a, b])
    if pooled.max() - pooled.min() < NO_SPREAD:
        return 1.0
    centred = pooled - pooled.mean()
    seen = abs(float(centred[: a.size].sum()))
    slack = NO_SPREAD * min(a.size, b.size)
    if pooled.size <= EXACT_UP_TO:
        return _exact_split(centred, a.size, seen - slack)
    if a.max() - a.min() < NO_SPREAD and b.max() - b.min() < NO_SPREAD:
        return (
            (2.0 if a.size == b.size else 1.0) / comb(pooled.size, a.size)
            if a.size and b.size
            else None
        )
    if rng is None:
        return None
    hits = sum(
        abs(float(rng.permutation(centred)[: a.size].sum())) >= seen - slack for _ in range(draws)
    )
    return (1 + hits) / (1 + draws)


def _exact_split(centred: Floats, size: int, bar: float) -> float:
    half = centred.size // 2
    left, right = _sums_by_size(centred[:half]), _sums_by_size(centred[half:])
    hits = 0
    for taken, sums in enumerate(left):
        rest = size - taken
        if 0 <= rest < len(right):
            other = right[rest]
            above = other.size - np.searchsorted(other, bar - sums, side="left")
            below = np.searchsorted(other, -bar - sums, side="right")
            hits += int(above.sum() + below.sum())
    total = comb(centred.size, size)
    return min(hits, total) / total


def _sums_by_size(terms: Floats) -> list[Floats]:
    """Return the sorted sums of all subsets, grouped by the number of terms in each subset."""
    groups: list[Floats] = [np.zeros(1)]
    for term in terms:
        taken = [np.zeros(0), *(group + term for group in groups)]
        kept = [*groups, np.zeros(0)]
        groups = [
            np.concatenate([kept_scores, taken_scores])
            for kept_scores, taken_scores in zip(kept, taken, strict=True)
        ]
    return [np.sort(group) for group in groups]
