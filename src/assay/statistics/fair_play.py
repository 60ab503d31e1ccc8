"""Tests for fair reviewing: equal approval rates, and rejections that do not depend on which
candidate was ahead.

Rejecting only one candidate's poor trials biases a comparison, and unequal approval rates reveal
it. A joint trial is rejected for all of its candidates at once, so their rates cannot differ. For
joint trials, the score differences in rejected trials are therefore compared with those in counted
trials, task by task.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from assay.statistics.arrays import Bools, Floats, Ints
from assay.statistics.distributions import log_gamma, normal_below
from assay.statistics.factorize import coded
from assay.statistics.table import Column, Numbers

MAX_TABLES = 200_000
MAX_SPLITS = 200_000
# More draws would take seconds, and with so many trials the normal approximation is close to exact.
MAX_NUMBERS_DRAWN = 30_000_000
# Tables that are as likely as the observed one also count; rounding may make their last digits
# differ.
SLACK = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTest:
    """Result of a test for equal rates; `method` is fisher_exact, freeman_halton_exact or
    freeman_halton_random.

    `warning` is `unequal_approval` if p < .05.
    """

    candidates: tuple[Hashable, ...]
    rates: tuple[float | None, ...]
    totals: tuple[int, ...]
    p_value: float | None
    method: str | None
    warning: str | None
    reason: str | None


def approval_rates(
    candidates: Sequence[Hashable],
    approved: Sequence[int],
    total: Sequence[int],
    *,
    rng: np.random.Generator | None = None,
    draws: int = 9999,
) -> RateTest:
    """Test if all candidates have the same approval rate; other rates (a count divided by a total)
    can be tested too.

    Args:
        candidates: names.
        approved, total: counts per candidate, 0 <= approved <= total.
        rng: draws random tables if more than two candidates have too many possible tables to
            enumerate (over 200,000).
        draws: number of random tables in that case.

    Raises ValueError for unequal lengths, or counts out of range.

    Source: Fisher (1934); Freeman & Halton (1951), Biometrika 38:141-149; checked against
    scipy.stats.fisher_exact and full enumeration.
    """
    if not len(candidates) == len(approved) == len(total):
        raise ValueError("approval_rates: candidates, approved and total must have the same length")
    for name, k, n in zip(candidates, approved, total, strict=True):
        if not 0 <= k <= n:
            raise ValueError(
                f"approval_rates: {name!r} has {k} of {n}; 0 <= approved <= total must hold"
            )
    rates = tuple(k / n if n else None for k, n in zip(approved, total, strict=True))
    use = [(k, n) for k, n in zip(approved, total, strict=True) if n]
    p_value, method, reason = _rates_differ(use, rng, draws)
    return RateTest(
        candidates=tuple(candidates),
        rates=rates,
        totals=tuple(int(n) for n in total),
        p_value=p_value,
        method=method,
        warning="unequal_approval" if p_value is not None and p_value < 0.05 else None,
        reason=reason,
    )


def _rates_differ(
    counts: list[tuple[int, int]], rng: np.random.Generator | None, draws: int
) -> tuple[float | None, str | None, str | None]:
    if len(counts) < 2:
        return None, None, "need_at_least_2_candidates"
    k = np.array([passed for passed, _ in counts], np.int64)
    n = np.array([two for _, two in counts], np.int64)
    hits = int(k.sum())
    seen = float(_log_ways(k, n).sum())
    method = "fisher_exact" if len(counts) == 2 else "freeman_halton_exact"
    logs = _all_tables(n, hits)
    if logs is not None:
        # With about a thousand assessments or more, the number of ways overflows a float, so
        # weights are relative to the largest.
        weights = np.exp(logs - logs.max())
        likely = logs <= seen + SLACK
        return min(1.0, float(weights[likely].sum() / weights.sum())), method, None
    if rng is None:
        return None, None, "needs_generator"
    # NumPy's other method needs an array with one entry for every assessment.
    drawn = rng.multivariate_hypergeometric(n, hits, size=draws, method="marginals")
    rare = _log_ways(drawn, n).sum(axis=1) <= seen + SLACK
    # The observed table counts as one of the draws, so that p is never 0.
    return (1.0 + float(rare.sum())) / (1.0 + draws), "freeman_halton_random", None


def _log_ways(k: Ints, n: Ints) -> Floats:
    return log_gamma(n + 1.0) - log_gamma(k + 1.0) - log_gamma(n - k + 1.0)


def _all_tables(n: Ints, hits: int) -> Floats | None:
    """Return the log weights of all contingency tables with these row and column sums, or None if
    there are too many.
    """
    given, logs = np.zeros(1, np.int64), np.zeros(1)
    for place, size in enumerate(n):
        left = int(n[place + 1 :].sum())
        low = np.maximum(hits - given - left, 0)
        high = np.minimum(hits - given, size)
        count = np.maximum(high - low + 1, 0)
        if int(count.sum()) > MAX_TABLES:
            return None
        parent = np.repeat(np.arange(given.size), count)
        taken = np.arange(parent.size) - np.repeat(np.cumsum(count) - count, count) + low[parent]
        given = given[parent] + taken
        logs = logs[parent] + _log_ways(taken, np.full(taken.size, size))
    return logs


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectiveRejection:
    """Result of a test for selective rejection: were joint trials rejected depending on which
    candidate was ahead?

    `excess`: mean difference a - b (as judged) in rejected and rerun trials, minus the mean
    difference in counted trials of the same tasks. Above 0, trials in which a was ahead were
    rejected more often. `warning`: `selective_rejection` if p < .05.
    """

    excess: float | None
    p_value: float | None
    n_rejected: int
    n_counted: int
    n_tasks: int
    method: str | None
    warning: str | None
    reason: str | None


def selective_rejection(
    task: Column,
    difference: Numbers,
    rejected: Sequence[bool] | Bools,
    *,
    rng: np.random.Generator | None = None,
    draws: int = 9999,
) -> SelectiveRejection:
    """Compare the judged differences in rejected and in counted joint trials, by permutation within
    tasks.

    Only tasks with both rejected and counted trials are used. The test is exact if there are at
    most 200,000 ways to choose the rejected trials. Otherwise it draws random choices from `rng`,
    or uses the normal approximation if drawing would take seconds. Without `rng`, the result is
    None with the reason `needs_generator`.

    Args:
        task: task of each trial.
        difference: a - b in each trial as the judge graded it; must be finite.
        rejected: True if the trial was rejected or rerun.

    Raises ValueError for columns of unequal length, or a difference that is not finite.
    """
    tasks = coded(task)
    d, out = np.asarray(difference, np.float64), np.asarray(rejected, np.bool_)
    if not tasks.codes.size == d.size == out.size:
        raise ValueError(
            "selective_rejection: task, difference and rejected must have the same length"
        )
    if not np.isfinite(d).all():
        raise ValueError("selective_rejection: a difference is not a finite number")
    strata = []
    order = np.argsort(tasks.codes, kind="stable")
    for mine in np.split(order, np.flatnonzero(np.diff(tasks.codes[order])) + 1):
        gone = out[mine]
        if gone.any() and not gone.all():
            centred = d[mine] - d[mine].mean()
            strata.append((centred, int(gone.sum()), float(centred[gone].sum())))
    seen = sum(stratum[2] for stratum in strata)
    p_value, method, reason = _permuted(strata, seen, rng, draws)
    n_in = sum(k for _, k, _ in strata)
    # The result is the mean of rejected trials minus that of counted trials, not minus that of all
    # trials; the factor n / (n - k) converts the latter to the former, task by task.
    excess = sum(s * len(v) / (len(v) - k) for v, k, s in strata) / n_in if strata else None
    return SelectiveRejection(
        excess=excess,
        p_value=p_value,
        n_rejected=int(out.sum()),
        n_counted=int((~out).sum()),
        n_tasks=len(strata),
        method=method,
        warning="selective_rejection" if p_value is not None and p_value < 0.05 else None,
        reason=reason,
    )


def _permuted(
    strata: list[tuple[Floats, int, float]],
    seen: float,
    rng: np.random.Generator | None,
    draws: int,
) -> tuple[float | None, str | None, str | None]:
    if not strata:
        return None, None, "no_task_with_both"
    # Arrangements as extreme as the observed one also count, although rounding may make them
    # differ.
    bar = abs(seen) - 1e-9
    ways = 1
    for values, k, _ in strata:
        # Stops at the bound, because the full product for thousands of trials has thousands of
        # digits.
        ways *= comb(len(values), k)
        if ways > MAX_SPLITS:
            break
    if ways <= MAX_SPLITS:
        sums = np.zeros(1)
        for values, k, _ in strata:
            sums = (sums[:, None] + _subset_sums(values, k)[None, :]).reshape(-1)
        return float((np.abs(sums) >= bar).mean()), "permutation_exact", None
    if rng is None:
        return None, None, "needs_generator"
    if draws * sum(len(values) for values, _, _ in strata) > MAX_NUMBERS_DRAWN:
        return _by_normal(strata, seen), "permutation_normal", None
    totals = np.zeros(draws)
    for values, k, _ in strata:
        order = np.argsort(rng.random((draws, len(values))), axis=1)[:, :k]
        totals += values[order].sum(axis=1)
    return (1.0 + float((np.abs(totals) >= bar).sum())) / (1.0 + draws), "permutation_random", None


def _by_normal(strata: list[tuple[Floats, int, float]], seen: float) -> float:
    """Approximate the permutation p-value by a normal distribution, which is accurate for thousands
    of trials.
    """
    variance = sum(
        k * (len(values) - k) / (len(values) - 1) * float((values * values).mean())
        for values, k, _ in strata
    )
    return float(2 * normal_below(-abs(seen) / variance**0.5)) if variance > 0 else 1.0


def _subset_sums(values: Floats, size: int) -> Floats:
    groups: list[list[Floats]] = [[np.zeros(1)]] + [[] for _ in range(size)]
    for value in values:
        for taken in range(size, 0, -1):
            groups[taken].extend(group + value for group in list(groups[taken - 1]))
    return np.concatenate(groups[size])
