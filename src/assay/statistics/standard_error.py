"""Standard errors of weighted means over tasks, in both scopes, for arrays of candidates or pairs.

Theory. Let W_t be the normalised task weights, m_t the task values (means, or differences of means)
and θ = Σ W_t m_t.

* *Tasks like these*: the tasks are a sample. The variance of θ is the CR2 estimate with an identity
  working covariance, V = Σ W_t² (m_t - θ)² / (1 - 2 W_t + Σ W²), and its degrees of freedom are
  Kish's effective number of tasks minus one. With equal weights this is the ordinary t-interval on
  task means.
* *These tasks*: the tasks are fixed, and only the trials within them are a sample. V = Σ W_t² s²_t
  / n_t with Satterthwaite's degrees of freedom; a task with only one trial uses the pooled variance
  of the others, weighted by their degrees of freedom.

House rules. Everything broadcasts over leading axes; the last axis is the task. Weight 0 means that
a task is absent. No division returns NaN: a mask marks values that cannot be computed, and the
arrays contain 0 there.
"""

from dataclasses import dataclass

import numpy as np

from assay.statistics.arrays import NO_SPREAD, Bools, Floats, Ints

LARGEST_ROUNDING = 1e-18
"""Variance above which the values certainly vary; a smaller one may come from rounding, so the
values themselves are compared.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcrossTasks:
    """Moments of a weighted mean if tasks are a sample; every field has the leading axes of the
    input.

    `n_tasks`: number of tasks with positive weight. `n_units`: number of independent units among
    them (tasks or families). `n_eff`: Kish's 1 / Σ W² of the units. `df`: max(n_eff - 1, 1).
    `constant`: True if all units have equal values up to rounding. `share`: normalised weights,
    shape (..., tasks). Without tasks, `estimate` and `n_tasks` are 0.
    """

    estimate: Floats
    variance: Floats
    df: Floats
    n_eff: Floats
    n_tasks: Floats
    n_units: Floats
    constant: Bools
    share: Floats


def across_tasks(values: Floats, weights: Floats) -> AcrossTasks:
    """Compute the CR2 variance and Kish degrees of freedom of Σ W_t m_t.

    Args:
        values: shape (..., tasks); entries with weight 0 are ignored but must be finite.
        weights: shape (..., tasks), finite and not negative, 0 for an absent task; they need not be
            normalised.

    Source: Bell & McCaffrey (2002), Survey Methodology 28:169-181 (CR2); Kish (1965). The closed
    form was checked against the matrix square-root form and, with equal weights,
    scipy.stats.ttest_1samp.
    """
    values, weights = np.broadcast_arrays(values, weights)
    present = weights > 0
    n_tasks = present.sum(axis=-1).astype(np.float64)
    largest = weights.max(axis=-1, keepdims=True, initial=0.0)
    scaled = weights / np.where(largest > 0, largest, 1.0)
    total = scaled.sum(axis=-1, keepdims=True)
    share = scaled / np.where(total > 0, total, 1.0)
    estimate = np.einsum("...t,...t->...", share, values)
    square = share * share
    sum_square = square.sum(axis=-1, keepdims=True)
    # (Σw)²/Σw² instead of 1/ΣW², because it is exactly the number of tasks if the weights are
    # equal.
    n_eff = (
        total * total / np.where(total > 0, (scaled * scaled).sum(axis=-1, keepdims=True), 1.0)
    )[..., 0]
    off = values - estimate[..., None]
    off *= off
    off *= square
    rest = (1.0 + sum_square) - 2.0 * share
    # 1 - 2W + ΣW² loses precision by cancellation only if one task has nearly all the weight; that
    # task is computed separately.
    crowded = share > 0.5
    if crowded.any():
        terms = off / np.where(crowded, 1.0, rest)
        terms = np.where(crowded, _dominant_terms(values, scaled, share, crowded), terms)
    else:
        terms = np.divide(off, rest, out=off)
    # Absent tasks have share 0, so their terms are 0 too.
    variance = terms.sum(axis=-1)
    return AcrossTasks(
        estimate=estimate,
        variance=variance,
        # With weights of 1 (seven times), 5, 5 and 10, these degrees of freedom cover 95.5%. G - 1
        # covers 88%, and Bell and McCaffrey's formula 99.6% at 1.75 times the width.
        df=np.maximum(n_eff - 1.0, 1.0),
        n_eff=n_eff,
        n_tasks=n_tasks,
        n_units=n_tasks,
        constant=_constant(values, present, variance),
        share=share,
    )


def across_pairs(values: Floats, weights: Floats, first: Ints, second: Ints) -> AcrossTasks:
    """Compute `across_tasks` for all pair differences at once, by one matrix product.

    Let r_a be the deviations of candidate a and q_t = W_t² / (1 - 2 W_t + Σ W²). The variance of a
    pair is then Q_aa + Q_bb - 2 Q_ab with Q_ab = Σ_t q_t r_at r_bt. Pairs that are so similar that
    this loses precision are computed one by one. `share` has the shape (tasks,).

    Args:
        values: shape (candidates, tasks).
        weights: shape (tasks,), as in `across_tasks`.
        first, second: shape (pairs,), indices of candidates.
    """
    share = shares_of(weights)
    # A task with more than half the weight needs the rewritten term, which is not a matrix product.
    if not 0.0 < share.max(initial=0.0) <= 0.5:
        return across_tasks(values[first] - values[second], weights)
    square = share * share
    sum_square = float(square.sum())
    mean = values @ share
    off = values - mean[:, None]
    scaled = off * (square / (1.0 - 2.0 * share + sum_square))
    # On a busy machine, the threads of a matrix product wait for each other: 0.1 s instead of 1.5
    # ms with 50 x 1,000 values.
    cross = np.einsum("at,bt->ab", scaled, off, optimize=off.size * len(off) > 10_000_000)
    own = np.diagonal(cross)
    both = own[first] + own[second]
    variance = both - 2.0 * cross[first, second]
    constant = np.zeros(first.size, np.bool_)
    # Floats have 16 digits; above the first bound at least nine of them survive the subtraction.
    # The second bound is for two constant candidates: their own variances are rounding errors too,
    # and the ratio of two rounding errors proves nothing.
    alike = np.flatnonzero(variance <= np.maximum(1e-7 * both, LARGEST_ROUNDING))
    if alike.size:
        exact = across_tasks(values[first[alike]] - values[second[alike]], weights)
        variance[alike], constant[alike] = exact.variance, exact.constant
    scaled = weights / weights.max()
    n_eff = float(scaled.sum()) ** 2 / float((scaled * scaled).sum())
    return AcrossTasks(
        estimate=mean[first] - mean[second],
        variance=variance,
        df=np.full(first.size, max(n_eff - 1.0, 1.0)),
        n_eff=np.full(first.size, n_eff),
        n_tasks=np.full(first.size, float((weights > 0).sum())),
        n_units=np.full(first.size, float((weights > 0).sum())),
        constant=constant,
        share=share,
    )


def _constant(values: Floats, present: Bools, variance: Floats) -> Bools:
    # Values within 1e-12 of each other have a variance below 1e-23, so the ranges are checked only
    # if the variance is smaller.
    if (variance > LARGEST_ROUNDING).all():
        return np.zeros(variance.shape, np.bool_)
    low = np.where(present, values, np.inf).min(axis=-1, initial=np.inf)
    high = np.where(present, values, -np.inf).max(axis=-1, initial=-np.inf)
    return np.asarray(~(high - low >= NO_SPREAD))


def _dominant_terms(values: Floats, scaled: Floats, share: Floats, crowded: Bools) -> Floats:
    """Return the CR2 term of a task with more than half the weight, computed without cancellation.

    If ω are the weights of the other tasks, normalised among themselves, (m - θ)² / (1 - 2W + ΣW²)
    equals (m - Σ ω m)² / (1 + Σ ω²).
    """
    others = np.where(crowded, 0.0, scaled)
    largest = others.max(axis=-1, keepdims=True, initial=0.0)
    others = others / np.where(largest > 0, largest, 1.0)
    total = others.sum(axis=-1, keepdims=True)
    others = others / np.where(total > 0, total, 1.0)
    mean_of_others = (others * values).sum(axis=-1, keepdims=True)
    off = np.where(total > 0, values - mean_of_others, 0.0)
    return np.asarray(
        share * share * off * off / (1.0 + (others * others).sum(axis=-1, keepdims=True))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinTasks:
    """Moments of a weighted mean if tasks are fixed and only trials are a sample.

    `variance` is Σ c_t s²_t and `df_denominator` is Σ (c_t s²_t)² / (n_t - 1). Several sources of
    noise can be added: df = (Σ variance)² / Σ df_denominator. `known`: False if single-trial tasks
    have weight and no task has two trials. `single`: number of tasks with only one trial.
    `constant`: True if the trials of each task have equal scores.
    """

    variance: Floats
    df_denominator: Floats
    known: Bools
    single: Floats
    constant: Bools


def within_tasks(n: Floats, m2: Floats, shares: Floats) -> WithinTasks:
    """Compute the variance of Σ W_t m_t over reruns of the same tasks, and the terms for
    Satterthwaite's degrees of freedom.

    Args:
        n: shape (..., tasks), number of trials per task.
        m2: shape (..., tasks), sums of squared deviations from the task means.
        shares: shape (..., tasks), task weights that sum to 1 over the tasks in use (0 for a task
            that is not in use).

    Source: Satterthwaite (1946), Biometrics Bulletin 2:110-114; for one task and two candidates it
    is Welch's (1947) test, checked against scipy.stats.ttest_ind(equal_var=False).
    """
    used = shares > 0
    repeated = used & (n >= 2)
    nu = np.where(repeated, n - 1.0, 0.0)
    # Each task keeps its own variance. A pooled variance gives slightly narrower ranges, but with
    # selective rejection these covered 90.6% instead of 93.2%.
    s2 = np.where(repeated, m2, 0.0) / np.where(repeated, n - 1.0, 1.0)
    square = shares * shares
    lent = np.where(used & (n == 1), square, 0.0).sum(axis=-1, keepdims=True)
    nu_total = nu.sum(axis=-1, keepdims=True)
    factor = np.where(repeated, square / np.where(repeated, n, 1.0), 0.0)
    factor = factor + lent * nu / np.where(nu_total > 0, nu_total, 1.0)
    terms = factor * s2
    scatter = s2 >= NO_SPREAD * NO_SPREAD
    return WithinTasks(
        variance=terms.sum(axis=-1),
        df_denominator=(terms * terms / np.where(repeated, nu, 1.0)).sum(axis=-1),
        known=(nu_total[..., 0] > 0) | ~used.any(axis=-1),
        single=(used & (n == 1)).sum(axis=-1).astype(np.float64),
        constant=np.logical_not(scatter.any(axis=-1)),
    )


def satterthwaite(variance: Floats, df_denominator: Floats) -> Floats:
    """Return the degrees of freedom V² / Σ(terms² / ν), at least 1; they are 1 if the variance is
    0.
    """
    positive = df_denominator > 0
    df = variance * variance / np.where(positive, df_denominator, 1.0)
    return np.where(positive, np.maximum(df, 1.0), 1.0)


def shares_of(weights: Floats) -> Floats:
    """Return the weights divided by their sum over the last axis; all 0 if the sum is 0."""
    largest = weights.max(axis=-1, keepdims=True, initial=0.0)
    scaled = weights / np.where(largest > 0, largest, 1.0)
    total = scaled.sum(axis=-1, keepdims=True)
    return np.asarray(scaled / np.where(total > 0, total, 1.0))
