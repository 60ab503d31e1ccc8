"""Accuracy of a judge: its scores compared with people's scores for the same responses."""

from dataclasses import dataclass

import numpy as np

from assay.statistics.agreement import midranks
from assay.statistics.arrays import NO_SPREAD, Floats, Interval
from assay.statistics.distributions import normal_quantile, t_quantile, t_two_sided
from assay.statistics.table import Numbers

# Applied to the lower end of the interval for the concordance, which falls with bias as well as
# with scatter.
BANDS = ((0.4, "poor"), (0.6, "fair"), (0.8, "good"))
# A correlation of .90 has a range of .53 to .98 with 8 pairs, and of .80 to .95 with 30.
ENOUGH_PAIRS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Bias, errors and correlations of a judge's scores, relative to people's scores.

    `bias`: mean of judge - human; above 0 means that the judge is too generous. `pass_rate`: share
    of pairs within `tolerance`. `limits_of_agreement`: range of about 95% of single differences.
    `concordance`: Lin's coefficient, which is 1 only if the scores agree in value and not just in
    order. `label`: from the lower end of `concordance_ci95`: poor, fair from .4, good from .6,
    excellent from .8; None without that interval. `pairs_advised`: 30.
    """

    n: int
    bias: float | None
    bias_ci95: Interval | None
    bias_p: float | None
    mae: float | None
    rmse: float | None
    max_error: float | None
    pass_rate: float | None
    tolerance: float
    pearson: float | None
    pearson_ci95: Interval | None
    spearman: float | None
    concordance: float | None
    concordance_ci95: Interval | None
    limits_of_agreement: Interval | None
    label: str | None
    pairs_advised: int
    reason: str | None


def calibration(judge: Numbers, human: Numbers, *, tolerance: float = 0.10) -> Calibration:
    """Compare a judge's scores with people's scores: bias, error and correlation, with intervals.

    Args:
        judge, human: scores of the same responses in the same order, finite.
        tolerance: the largest difference at which two scores agree, at least 0.

    The reason is `need_at_least_3_pairs` below 3 pairs (no correlation), and
    `judge_has_no_variation` or `no_variation` if the judge's scores or the people's scores are all
    equal.

    Raises ValueError for unequal lengths, a score that is not finite, or a negative tolerance.

    Source: Lin (1989), Biometrics 45:255-268, with his z-transform interval; Bland & Altman (1986);
    Fisher's z; checked against scipy.stats pearsonr, spearmanr and ttest_1samp.
    """
    a, b = np.asarray(judge, np.float64), np.asarray(human, np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"calibration: {a.size} scores by the judge, but {b.size} by people")
    if not tolerance >= 0:
        raise ValueError(f"tolerance is {tolerance}; it must be a number of at least 0")
    bad = ~(np.isfinite(a) & np.isfinite(b))
    if bad.any():
        raise ValueError(
            f"row {int(np.flatnonzero(bad)[0])} (counted from 0): a score is not a finite number"
        )
    n = a.size
    error = a - b
    spread = float(np.std(error, ddof=1)) if n >= 2 else None
    bias = float(error.mean()) if n else None
    tested = _bias(bias, spread, n)
    reason, relation = _relation(a, b)
    return Calibration(
        n=n,
        bias=bias,
        bias_ci95=tested[0],
        bias_p=tested[1],
        mae=float(np.abs(error).mean()) if n else None,
        rmse=float(np.sqrt((error**2).mean())) if n else None,
        max_error=float(np.abs(error).max()) if n else None,
        # In floating point, 0.4 - 0.3 is above 0.1, but should still count as within 0.10.
        pass_rate=float((np.abs(error) <= tolerance + NO_SPREAD).mean()) if n else None,
        tolerance=tolerance,
        pearson=relation.pearson,
        pearson_ci95=relation.pearson_ci95,
        spearman=relation.spearman,
        concordance=relation.concordance,
        concordance_ci95=relation.concordance_ci95,
        limits_of_agreement=None
        if bias is None or spread is None
        else (bias - 1.96 * spread, bias + 1.96 * spread),
        # The label uses the concordance instead of Pearson's r, which does not detect bias.
        label=_label(relation.concordance_ci95),
        pairs_advised=ENOUGH_PAIRS,
        reason=reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Relation:
    pearson: float | None = None
    pearson_ci95: Interval | None = None
    spearman: float | None = None
    concordance: float | None = None
    concordance_ci95: Interval | None = None


def _bias(bias: float | None, spread: float | None, n: int) -> tuple[Interval | None, float | None]:
    if bias is None or spread is None or spread < NO_SPREAD:
        return None, None
    std_err = spread / n**0.5
    half = float(t_quantile(0.975, n - 1)) * std_err
    return (bias - half, bias + half), float(t_two_sided(bias / std_err, n - 1))


def _relation(a: Floats, b: Floats) -> tuple[str | None, _Relation]:
    n = a.size
    if n < 3:
        return "need_at_least_3_pairs" if n else "no_pairs", _Relation()
    if np.ptp(a) < NO_SPREAD:
        return "judge_has_no_variation", _Relation()
    if np.ptp(b) < NO_SPREAD:
        return "no_variation", _Relation()
    pearson = _correlation(a, b)
    concordance = _lin(a, b)
    relation = _Relation(
        pearson=pearson,
        pearson_ci95=_fisher_interval(pearson, n),
        spearman=_correlation(midranks(a), midranks(b)),
        concordance=concordance,
        concordance_ci95=_lin_interval(a, b, pearson, concordance),
    )
    return None, relation


def _correlation(a: Floats, b: Floats) -> float:
    x, y = a - a.mean(), b - b.mean()
    # Scaled first, because the squares of tiny spreads would underflow.
    x, y = x / np.abs(x).max(), y / np.abs(y).max()
    return float(np.clip((x @ y) / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))


def _fisher_interval(r: float, n: int) -> Interval | None:
    # The variance 1 / (n - 3) has no meaning below 4 pairs, and atanh is infinite at 1.
    if n < 4 or abs(r) >= 1 - 1e-12:
        return None
    centre = float(np.arctanh(r))
    half = float(normal_quantile(0.975)) / (n - 3) ** 0.5
    return float(np.tanh(centre - half)), float(np.tanh(centre + half))


def _lin(a: Floats, b: Floats) -> float:
    # Moments divide by n, as in Lin's paper.
    shift = float(a.mean() - b.mean())
    return (
        2
        * float(((a - a.mean()) * (b - b.mean())).mean())
        / (float(np.var(a)) + float(np.var(b)) + shift**2)
    )


def _lin_interval(a: Floats, b: Floats, r: float, c: float) -> Interval | None:
    n = a.size
    if n < 4 or abs(c) >= 1 - 1e-12 or abs(r) < 1e-6 or abs(r) >= 1 - 1e-12:
        return None
    u2 = float((a.mean() - b.mean()) ** 2 / np.sqrt(np.var(a) * np.var(b)))
    inner = (1 - r * r) * c * c / ((1 - c * c) * r * r)
    inner += 2 * c**3 * (1 - c) * u2 / (r * (1 - c * c) ** 2)
    inner -= c**4 * u2 * u2 / (2 * r * r * (1 - c * c) ** 2)
    if not inner > 0:
        return None
    half = float(normal_quantile(0.975)) * float(np.sqrt(inner / (n - 2)))
    centre = float(np.arctanh(c))
    return float(np.tanh(centre - half)), float(np.tanh(centre + half))


def _label(interval: Interval | None) -> str | None:
    return (
        None
        if interval is None
        else next((word for bound, word in BANDS if interval[0] < bound), "excellent")
    )
