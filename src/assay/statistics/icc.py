"""Intraclass correlation of several raters who scored the same units."""

from dataclasses import dataclass

import numpy as np

from assay.statistics.arrays import NO_SPREAD, Floats, Interval
from assay.statistics.distributions import f_quantile
from assay.statistics.factorize import coded
from assay.statistics.table import Column, Numbers
from assay.statistics.warnings import Caution, caution


@dataclass(frozen=True, slots=True, kw_only=True)
class IntraclassCorrelations:
    """Intraclass correlations with 95% intervals.

    A: absolute agreement, C: consistency, 1: one rater, k: mean of k raters.

    `icc_1` and `icc_1k` assume that each unit's raters are chosen at random. If the same judges
    graded all trials, use `icc_a1`. Negative values are reported unchanged.
    """

    icc_1: float | None = None
    icc_a1: float | None = None
    icc_c1: float | None = None
    icc_1k: float | None = None
    icc_ak: float | None = None
    icc_ck: float | None = None
    icc_1_ci95: Interval | None = None
    icc_a1_ci95: Interval | None = None
    n_units: int
    n_raters: int
    reason: str | None = None
    warnings: tuple[Caution, ...]


def icc(unit: Column, rater: Column, score: Numbers) -> IntraclassCorrelations:
    """Compute all six ICCs from the units that every rater scored; other units are left out, with a
    warning.

    Raises ValueError for columns of unequal length, a score that is not finite, or a rater who
    scored a unit twice.

    Source: Shrout & Fleiss (1979), Psych. Bulletin 86:420-428; McGraw & Wong (1996), Psych. Methods
    1:30-46; checked against their printed table and pingouin intraclass_corr.
    """
    grid, left_out = _complete_grid(unit, rater, score)
    n, k = grid.shape
    warnings = (caution("incomplete_units_left_out", n=left_out),) if left_out else ()
    if n < 2 or k < 2:
        return IntraclassCorrelations(
            n_units=n, n_raters=k, reason="need_at_least_2_units_and_2_raters", warnings=warnings
        )
    grand = grid.mean()
    unit_means, rater_means = grid.mean(axis=1), grid.mean(axis=0)
    ms_unit = float(k * ((unit_means - grand) ** 2).sum()) / (n - 1)
    ms_rater = float(n * ((rater_means - grand) ** 2).sum()) / (k - 1)
    within = float(((grid - unit_means[:, None]) ** 2).sum())
    ms_within = within / (n * (k - 1))
    residual = grid - unit_means[:, None] - rater_means[None, :] + grand
    ms_error = float((residual**2).sum()) / ((n - 1) * (k - 1))
    if grid.max() - grid.min() < NO_SPREAD:
        return IntraclassCorrelations(
            n_units=n, n_raters=k, reason="no_variation", warnings=warnings
        )
    # Mean squares are squares of scores, so their threshold is the square of the threshold for
    # scores.
    tiny = NO_SPREAD**2
    f1 = ms_unit / ms_within if ms_within > tiny else None
    return IntraclassCorrelations(
        icc_1=_ratio(ms_unit - ms_within, ms_unit + (k - 1) * ms_within),
        icc_a1=_ratio(
            ms_unit - ms_error, ms_unit + (k - 1) * ms_error + k * (ms_rater - ms_error) / n
        ),
        icc_c1=_ratio(ms_unit - ms_error, ms_unit + (k - 1) * ms_error),
        icc_1k=_ratio(ms_unit - ms_within, ms_unit),
        icc_ak=_ratio(ms_unit - ms_error, ms_unit + (ms_rater - ms_error) / n),
        icc_ck=_ratio(ms_unit - ms_error, ms_unit),
        icc_1_ci95=None if f1 is None else _one_way_interval(f1, n, k),
        icc_a1_ci95=_absolute_interval(ms_unit, ms_rater, ms_error, n, k),
        n_units=n,
        n_raters=k,
        warnings=warnings,
    )


def _complete_grid(unit: Column, rater: Column, score: Numbers) -> tuple[Floats, int]:
    units, raters = coded(unit), coded(rater)
    values = np.asarray(score, np.float64)
    if not units.codes.size == raters.codes.size == values.size:
        raise ValueError("icc: unit, rater and score must have the same length")
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"row {row} (counted from 0): score {values[row]} is not a finite number")
    grid = np.full((len(units.labels), len(raters.labels)), np.nan)
    grid[units.codes, raters.codes] = values
    if int((~np.isnan(grid)).sum()) != values.size:
        raise ValueError("icc: a rater scored the same unit twice; average repeated ratings first")
    # The formulas need a complete table, so a unit that one rater left out cannot be used at all.
    complete = ~np.isnan(grid).any(axis=1)
    return grid[complete], int((~complete).sum())


def _one_way_interval(f: float, n: int, k: int) -> Interval:
    low = f / float(f_quantile(0.975, n - 1, n * (k - 1)))
    high = f * float(f_quantile(0.975, n * (k - 1), n - 1))
    return (low - 1) / (low + k - 1), (high - 1) / (high + k - 1)


def _absolute_interval(
    ms_unit: float, ms_rater: float, ms_error: float, n: int, k: int
) -> Interval | None:
    if ms_error < NO_SPREAD**2 or ms_unit < NO_SPREAD**2:
        return None
    rho = (ms_unit - ms_error) / (ms_unit + (k - 1) * ms_error + k * (ms_rater - ms_error) / n)
    if rho >= 1 or not np.isfinite(rho):
        return None
    a, b = k * rho / (n * (1 - rho)), 1 + k * rho * (n - 1) / (n * (1 - rho))
    spread = (a * ms_rater) ** 2 / (k - 1) + (b * ms_error) ** 2 / ((n - 1) * (k - 1))
    v = max((a * ms_rater + b * ms_error) ** 2 / spread, 1.0) if spread > 0 else 1.0
    above = float(f_quantile(0.975, n - 1, v))
    below = float(f_quantile(0.975, v, n - 1))
    rest = k * ms_rater + (k * n - k - n) * ms_error
    low = _ratio(n * (ms_unit - above * ms_error), above * rest + n * ms_unit)
    high = _ratio(n * (below * ms_unit - ms_error), rest + n * below * ms_unit)
    return None if low is None or high is None else (low, high)


def _ratio(top: float, bottom: float) -> float | None:
    return top / bottom if abs(bottom) > NO_SPREAD**2 else None
