"""Equivalence and non-inferiority tests against a margin that was chosen before seeing the data."""

import math
from dataclasses import dataclass

from assay.statistics.arrays import Interval
from assay.statistics.distributions import t_below, t_quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """Result of two one-sided tests.

    `holds` is True if `p_value` <= .05, which means that `ci90` lies within ± margin.

    A small `p_lower` shows that a is not worse than b by more than the margin. A small `p_upper`
    shows that a is not better than b by more than the margin.
    """

    margin: float
    p_value: float
    holds: bool
    p_lower: float
    p_upper: float
    ci90: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class NonInferiority:
    """One-sided test that a is not worse than b by more than the margin; `lower95` is the one-sided
    lower bound.
    """

    margin: float
    p_value: float
    holds: bool
    lower95: float


def checked_margin(margin: float | None) -> float | None:
    """Return the margin. Raises ValueError if it is not strictly between 0 and 1."""
    if margin is not None and not 0.0 < margin < 1.0:
        raise ValueError(
            f"margin is {margin}; it must be a difference strictly between 0 and 1 (0.03 is 3 points)"
        )
    return margin


def two_one_sided(difference: float, std_err: float, df: float, *, margin: float) -> Equivalence:
    """Test if two candidates are equivalent within a margin, from their difference and its standard
    error (above 0).

    Source: Schuirmann (1987), J. Pharmacokin. Biopharm. 15:657-680; checked against statsmodels
    ttost_paired and ttost_ind.
    """
    p_lower = float(t_below(-(difference + margin) / std_err, df))
    p_upper = float(t_below((difference - margin) / std_err, df))
    half = float(t_quantile(0.95, df)) * std_err
    p_value = max(p_lower, p_upper)
    return Equivalence(
        margin=margin,
        p_value=p_value,
        holds=p_value <= 0.05,
        p_lower=p_lower,
        p_upper=p_upper,
        ci90=(difference - half, difference + half),
    )


def not_worse(difference: float, std_err: float, df: float, *, margin: float) -> NonInferiority:
    """Test if a is not worse than b by more than a margin, from the difference a - b and its
    standard error (above 0).
    """
    p_value = float(t_below(-(difference + margin) / std_err, df))
    return NonInferiority(
        margin=margin,
        p_value=p_value,
        holds=p_value <= 0.05,
        lower95=difference - float(t_quantile(0.95, df)) * std_err,
    )


def loss_despite_ties(n: float) -> float:
    """Return how much worse a may be, on average, although all n independent differences are 0.

    The one-sided 95% bound needs no model of the scores, which lie between 0 and 1: if differences
    occur with probability q, n of n ties have probability (1 - q)^n, and a difference is at most 1.

    Source: the exact form of the rule of three, Hanley & Lippman-Hand (1983), JAMA 249:1743-1745;
    checked against scipy.stats.binomtest(0, n, alternative="less").proportion_ci("exact").
    """
    return -math.expm1(math.log(0.05) / n)


def ties_needed(margin: float) -> int:
    """Return the smallest number of independent ties that shows a loss of at most the margin."""
    return math.ceil(math.log(0.05) / math.log1p(-margin))
