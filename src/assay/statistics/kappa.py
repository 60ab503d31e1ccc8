"""Agreement on categories: Cohen's kappa for two raters and Fleiss' kappa for more, each with
percent agreement.

Kappa falls if one category dominates, even if the raters agree often. Compare it with percent
agreement to see if that is the case.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from assay.statistics.arrays import NO_SPREAD, Floats, Interval
from assay.statistics.distributions import normal_quantile
from assay.statistics.factorize import coded


@dataclass(frozen=True, slots=True, kw_only=True)
class Kappa:
    """Agreement beyond chance, and percent agreement; kappa is None if all ratings are in one
    category or are missing.
    """

    kappa: float | None = None
    std_err: float | None = None
    ci95: Interval | None = None
    percent_agreement: float | None
    n_units: int
    weights: str
    reason: str | None


def cohen_kappa(
    first: Sequence[Hashable], second: Sequence[Hashable], *, weights: str = "none"
) -> Kappa:
    """Compute Cohen's kappa of two raters over the same units, in the same order.

    Args:
        first, second: the category that each rater chose for each unit; None if missing (the unit
            is then left out).
        weights: `none` for categories, `linear` or `quadratic` for ordered grades. Numeric
            categories keep their distances; other labels are sorted and spaced evenly.

    Raises ValueError for unequal lengths, or unknown weights.

    Source: Cohen (1960, 1968); large-sample standard error from Fleiss, Cohen & Everitt (1969),
    Psych. Bulletin 72:323-327; checked against statsmodels cohens_kappa.
    """
    if len(first) != len(second):
        raise ValueError(
            f"cohen_kappa: {len(first)} ratings by one rater, but {len(second)} by the other"
        )
    if weights not in ("none", "linear", "quadratic"):
        raise ValueError(f"weights is {weights!r}; it must be none, linear or quadratic")
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    n = len(pairs)
    if n == 0:
        return Kappa(
            percent_agreement=None, n_units=0, weights=weights, reason="no_pairable_ratings"
        )
    both = coded([a for a, _ in pairs] + [b for _, b in pairs])
    size = len(both.labels)
    table = (
        np.bincount(both.codes[:n] * size + both.codes[n:], minlength=size * size).reshape(
            size, size
        )
        / n
    )
    w = _agreement_weights(both.labels, weights)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    observed, expected = float((w * table).sum()), float(rows @ w @ columns)
    percent = float(np.trace(table))
    if 1 - expected < 1e-12:
        return Kappa(percent_agreement=percent, n_units=n, weights=weights, reason="no_variation")
    kappa = (observed - expected) / (1 - expected)
    mixed = (w @ columns)[:, None] + (rows @ w)[None, :]
    inner = (
        float((table * (w - mixed * (1 - kappa)) ** 2).sum())
        - (kappa - expected * (1 - kappa)) ** 2
    )
    # With perfect agreement the variance is 0, and rounding makes it a little more or less.
    std_err = float(np.sqrt(inner / n)) / (1 - expected) if inner > NO_SPREAD else 0.0
    half = float(normal_quantile(0.975)) * std_err
    return Kappa(
        kappa=kappa,
        std_err=std_err,
        ci95=(kappa - half, kappa + half) if std_err > 0 else None,
        percent_agreement=percent,
        n_units=n,
        weights=weights,
        reason=None if std_err > 0 else "zero_variance",
    )


def _agreement_weights(labels: tuple[Hashable, ...], weights: str) -> Floats:
    if weights == "none" or len(labels) < 2:
        return np.eye(len(labels))
    # Grades such as 1, 2 and 5 keep their distances; words have no distances and are spaced evenly.
    numeric = all(isinstance(label, (int, float)) for label in labels)
    at = np.asarray(labels if numeric else range(len(labels)), np.float64)
    distance = np.abs(at[:, None] - at[None, :]) / (at.max() - at.min())
    return np.asarray(1 - (distance if weights == "linear" else distance**2))


def fleiss_kappa(counts: ArrayLike) -> Kappa:
    """Compute Fleiss' kappa of several raters.

    Args:
        counts: shape (units, categories): number of raters who put the unit into the category;
            every unit must have the same number of ratings, at least 2.

    Raises ValueError if the counts are not whole numbers of at least 0, or the row sums are not
    equal and at least 2.

    Source: Fleiss (1971), Psych. Bulletin 76:378-382; checked against its example and statsmodels
    fleiss_kappa.
    """
    table = np.asarray(counts, np.float64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(
            f"fleiss_kappa takes a table of units by categories; it has shape {table.shape}"
        )
    sums = table.sum(axis=1)
    if not np.isfinite(table).all() or (table < 0).any() or (table != np.round(table)).any():
        raise ValueError("fleiss_kappa takes whole numbers of at least 0")
    if (sums != sums[0]).any() or sums[0] < 2:
        raise ValueError("fleiss_kappa: every unit needs the same number of ratings, at least 2")
    raters = float(sums[0])
    observed = float((((table**2).sum(axis=1) - raters) / (raters * (raters - 1))).mean())
    share = table.sum(axis=0) / table.sum()
    expected = float((share**2).sum())
    if 1 - expected < 1e-12:
        return Kappa(
            percent_agreement=observed, n_units=len(table), weights="none", reason="no_variation"
        )
    return Kappa(
        kappa=(observed - expected) / (1 - expected),
        percent_agreement=observed,
        n_units=len(table),
        weights="none",
        reason="interval_not_offered",
    )
