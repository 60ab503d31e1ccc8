"""Differences from a review sample, and the number of reviews that would decide them.

Theory. A review of n of N trials has the variance V(n) = floor + saved · (1/n - 1/N) / (1/n₀ -
1/N). `floor` is the variance if everything is reviewed, and `saved` is the additional variance with
the present n₀ reviews. As in `planning`, a difference is detected with the desired power if it is
at least (t_.975 + t_power) · √V.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.statistics.arrays import NO_SPREAD, Interval
from assay.statistics.comparisons import ALPHA
from assay.statistics.distributions import t_quantile, t_two_sided
from assay.statistics.families import FEWEST_FAMILIES
from assay.statistics.multiplicity import multiplicity
from assay.statistics.partly_reviewed import method_of
from assay.statistics.sampled_review import Influence, difference, sampled_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledDifference:
    """Difference A - B on shared tasks, estimated from a review sample; never used as the result.

    `lam`: weight of the judge's difference. `n_reviewed`, `n_trials`: number of reviewed trials and
    of all trials. `floor`: variance that would remain if everything were reviewed. `decision`:
    based on `p_holm` in a list of pairs, otherwise on the unadjusted p-value. `assumes`:
    `random_review`.
    """

    difference: float | None
    ci95: Interval | None
    std_err: float | None
    df: float | None
    p_value: float | None
    p_holm: float | None
    decision: str
    lam: float | None
    floor: float | None
    n_tasks: int
    n_reviewed: int
    n_trials: int
    method: str | None
    assumes: str
    reason: str | None


def sampled_difference(
    a: Influence, b: Influence, *, n_tasks: int, refused: str | None = None
) -> SampledDifference:
    """Compare two candidates over the same trials.

    Args:
        a, b: influences of single candidates, from `sampled_review.influence` with the same trials,
            units and strata.
        n_tasks: number of tasks that both have.
        refused: reason code if it is already known that the difference cannot be estimated.

    Source: as `sampled_review.sampled_mean`; coverage in bench/review_sample_simulation.py.
    """
    parts = difference(a, b)
    result = sampled_mean(parts)
    reason = refused
    if reason is None and n_tasks < 2:
        reason = "need_at_least_2_tasks" if n_tasks else "no_shared_tasks"
    if reason is None and not (parts.known and result.known):
        reason = "stratum_without_review"
    if reason is None and parts.by_family and result.n_units < FEWEST_FAMILIES:
        reason = "need_at_least_4_families"
    value, std_err, df = float(result.estimate), float(np.sqrt(result.variance)), float(result.df)
    hidden = reason is not None
    if reason is None and std_err < NO_SPREAD:
        reason = "zero_variance"
    ranged = reason is None
    half = float(t_quantile(1 - ALPHA / 2, df)) * std_err
    p = float(t_two_sided(value / std_err, df)) if ranged else None
    return SampledDifference(
        difference=None if hidden else value,
        ci95=(value - half, value + half) if ranged else None,
        std_err=std_err if ranged else None,
        df=df if ranged else None,
        p_value=p,
        p_holm=None,
        decision=_decision(value, p),
        lam=None if hidden else float(result.lam),
        floor=float(result.floor) if ranged else None,
        n_tasks=n_tasks,
        n_reviewed=int(parts.n_reviewed),
        n_trials=int(parts.n_trials),
        method=None if hidden else method_of(parts),
        assumes="random_review",
        reason=reason,
    )


def adjusted(pairs: Sequence[SampledDifference]) -> tuple[SampledDifference, ...]:
    """Return the pairs with Holm-adjusted p-values and the decisions that follow from them."""
    holm = multiplicity([pair.p_value for pair in pairs]).holm
    return tuple(
        replace(pair, p_holm=p, decision=_decision(pair.difference or 0.0, p))
        for pair, p in zip(pairs, holm, strict=True)
    )


def _decision(value: float, p: float | None) -> str:
    if p is None or p > ALPHA:
        return "not_decided"
    return "better" if value > 0 else "worse"


def more_reviews(pair: SampledDifference, *, detect: float, power: float = 0.8) -> int | None:
    """Return the number of further reviews needed to detect a difference; None if reviewing all
    trials is not enough.

    Args:
        detect: difference between scores of 0 to 1, above 0. Pass the present difference to learn
            how many reviews would decide this comparison.
        power: strictly between 0 and 1.

    Source: Cochran (1977), Sampling Techniques, 12.3 (variance in two-phase sampling as a function
    of the size of the second phase).
    """
    n, all_trials = pair.n_reviewed, pair.n_trials
    if (
        pair.std_err is None
        or pair.floor is None
        or pair.df is None
        or detect <= 0
        or n >= all_trials
    ):
        return None
    saved = pair.std_err**2 - pair.floor
    start, df_each = 1 / n - 1 / all_trials, pair.df / n

    def shown(size: int) -> bool:
        variance = pair.floor + saved * (1 / size - 1 / all_trials) / start  # type: ignore[operator] # checked above
        df = max(df_each * size, 1.0)
        return bool((t_quantile(0.975, df) + t_quantile(power, df)) * np.sqrt(variance) <= detect)

    return bisect_left(range(n, all_trials + 1), True, key=shown) if shown(all_trials) else None
