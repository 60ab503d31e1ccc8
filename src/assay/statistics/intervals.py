"""Intervals for a mean between 0 and 1: on the logit scale, for identical scores, and for yes-or-no
scores.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from assay.statistics.arrays import NO_SPREAD, Floats, Interval
from assay.statistics.distributions import beta_quantile, expit, logit, normal_quantile, t_quantile


def logit_interval(
    mean: ArrayLike, std_err: ArrayLike, df: ArrayLike, *, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Compute a t interval for a mean on the logit scale, so that it stays between 0 and 1.

    `mean` must be strictly between 0 and 1: at 0 or 1 both bounds would equal it, so use
    `identical_interval` there. The arguments broadcast.

    Source: delta method on the logit; its coverage and that of the plain interval are in
    docs/explanation/statistics.md.
    """
    mean, std_err, df = (
        np.asarray(mean, np.float64),
        np.asarray(std_err, np.float64),
        np.asarray(df, np.float64),
    )
    inside = (mean > 0) & (mean < 1)
    safe = np.where(inside, mean, 0.5)
    centre = logit(safe)
    # Close to 0 or 1 the half width overflows to infinity, which expit correctly turns into 0 and
    # 1.
    with np.errstate(over="ignore"):
        half = t_quantile(0.5 + level / 2, df) * std_err / (safe * (1.0 - safe))
    return np.where(inside, expit(centre - half), mean), np.where(
        inside, expit(centre + half), mean
    )


def identical_interval(
    value: ArrayLike, n: ArrayLike, *, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Compute an interval for the mean of scores between 0 and 1 if all n scores are equal.

    An outcome that occurred in n of n cases has, with confidence 1 - α, a probability of at least
    α^(1/n). The remaining probability may be anywhere between 0 and 1, so the interval never has
    zero width. The arguments broadcast; n must be at least 1.

    Source: closed form; for the value 1 it is the one-sided Clopper-Pearson bound.
    """
    value, n = np.asarray(value, np.float64), np.asarray(n, np.float64)
    # Three trials with scores near the maximum are all equal in 27% of cases, and three yes-or-no
    # trials with a pass rate of 80% in 53%. Student's t interval then has no width, so overall it
    # covers only 70% and 47% instead of 95%.
    mass = (1.0 - level) ** (1.0 / n)
    return value * mass, 1.0 - (1.0 - value) * mass


def wilson_bounds(mean: ArrayLike, n: ArrayLike, *, level: float = 0.95) -> tuple[Floats, Floats]:
    """Compute the Wilson score bounds for a share of successes.

    The arguments broadcast; n must be at least 1.

    Source: Wilson (1927), JASA 22:209-212; checked against statsmodels
    proportion_confint(method="wilson").
    """
    mean, n = np.asarray(mean, np.float64), np.asarray(n, np.float64)
    z2 = float(normal_quantile(0.5 + level / 2)) ** 2
    centre = (mean + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (mean * (1 - mean) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    # At 0 of n and n of n the bounds are exactly 0 and 1, except for rounding, which may move them
    # past these values.
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion:
    """A proportion with its default interval (`ci95`) and other common intervals."""

    mean: float
    n_trials: int
    ci95: Interval
    method: str
    wilson: Interval
    clopper_pearson: Interval
    jeffreys: Interval
    agresti_coull: Interval


def proportion(successes: int, n: int) -> Proportion:
    """Return the share of successes in n independent attempts, with 95% intervals.

    `ci95` is Wilson's interval, or `identical_interval` for 0 of n and n of n. Use the
    Clopper-Pearson interval if coverage must be at least 95% in every case and not only on average.

    Args:
        successes: 0 to n.
        n: at least 1.

    Raises ValueError for n below 1, or successes outside 0 to n.

    Source: Wilson (1927); Clopper & Pearson (1934); Agresti & Coull (1998); checked against
    statsmodels proportion_confint.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(
            f"proportion: {successes} successes of {n} is not possible; 0 <= successes <= n and n >= 1 must hold"
        )
    mean = successes / n
    wilson = plain_interval(wilson_bounds(mean, n))
    # Equal outcomes get the same interval as equal scores, so that the two never disagree.
    identical = successes in (0, n)
    z = float(normal_quantile(0.975))
    n_plus = n + z * z
    centre = (successes + z * z / 2) / n_plus
    half = z * float(np.sqrt(centre * (1 - centre) / n_plus))
    failures = n - successes
    return Proportion(
        mean=mean,
        n_trials=n,
        ci95=plain_interval(identical_interval(mean, n)) if identical else wilson,
        method="bounded_identical" if identical else "wilson",
        wilson=wilson,
        clopper_pearson=(
            float(beta_quantile(0.025, successes, failures + 1)) if successes else 0.0,
            float(beta_quantile(0.975, successes + 1, failures)) if failures else 1.0,
        ),
        jeffreys=(
            float(beta_quantile(0.025, successes + 0.5, failures + 0.5)),
            float(beta_quantile(0.975, successes + 0.5, failures + 0.5)),
        ),
        agresti_coull=(max(centre - half, 0.0), min(centre + half, 1.0)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialIntervals:
    """95% intervals of task means from each task's own trials; `method` is empty for tasks with
    fewer than 2 trials.
    """

    low: Floats
    high: Floats
    sd: Floats
    method: tuple[str, ...]


def trial_intervals(
    n: Floats, mean: Floats, m2: Floats, low: Floats, high: Floats
) -> TrialIntervals:
    """Compute each task's interval: logit t, Wilson's for scores of 0 and 1, or bounded if all
    scores are equal.

    Args:
        n, mean, m2, low, high: shape (tasks,): number of trials, mean, sum of squared deviations,
            smallest and largest score.
    """
    repeated = n >= 2
    nu = np.where(repeated, n - 1.0, 1.0)
    count = np.where(repeated, n, 1.0)
    sd = np.sqrt(np.where(repeated, m2, 0.0) / nu)
    identical = high - low < NO_SPREAD
    # Σ(y - y²) is 0 if and only if every score is 0 or 1, and the moments are enough to compute it.
    binary = (low == 0) & (high == 1) & (np.abs(n * mean * (1 - mean) - m2) < 1e-9)
    plain = logit_interval(mean, sd / np.sqrt(count), nu)
    score = wilson_bounds(mean, count)
    same = identical_interval(np.where(identical, low, mean), count)
    ends = [np.where(identical, same[i], np.where(binary, score[i], plain[i])) for i in (0, 1)]
    names = np.where(identical, "bounded_identical", np.where(binary, "wilson", "logit_t"))
    return TrialIntervals(
        low=np.clip(ends[0], 0.0, 1.0),
        high=np.clip(ends[1], 0.0, 1.0),
        sd=np.where(identical, 0.0, sd),
        method=tuple(str(name) for name in np.where(repeated, names, "")),
    )


def plain_interval(bounds: tuple[Floats, Floats]) -> Interval:
    return float(bounds[0]), float(bounds[1])
