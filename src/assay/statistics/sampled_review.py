"""Estimates from a random review sample: prediction-powered inference over tasks.

Theory. Every trial i of a candidate has a score f_i from the judge, and every trial in the review
sample S has a person's verdict: kept with the score y_i, or not kept. Each task weight W_t is
divided among the trials of its task, so the trial weights w_i sum to 1. With strata h of the sample
and q_h = Σ_h w / Σ_(h,S) w,

    θ(λ) = ȳ + λ (f̄ - f̄_S),    ȳ = Σ_S q w y [kept] / Σ_S q w [kept],    f̄ = Σ w f,    f̄_S = Σ_S
    q w f.

f̄ - f̄_S has mean 0 whatever the judge does, so no λ can bias θ. θ estimates the mean over the
trials that people would keep: a rejected trial of the sample stays in f̄_S but has no y. With λ = 1
and a review in every task, θ is the judge's mean corrected task by task. With one trial per task
and λ tuned, it is PPI++, which is the regression estimator of survey sampling.

Each trial's influence on θ is linear in λ. Influences are summed within each independent unit (a
task or a family), as over the ultimate clusters of a survey; the squares of these sums add up to
the variance. The influence on a difference of two candidates is the difference of their influences,
so pairs and ranks need no further theory.

House rules. Everything broadcasts over leading axes, so that a simulation can compute thousands of
reviews at once. The last axis is the trial. Codes of tasks, strata and families are the same for
all leading axes. λ is the value between 0 and 1 that minimises the variance.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from assay.statistics.arrays import NO_SPREAD, Bools, Floats, Ints
from assay.statistics.families import bell_mccaffrey

FEWEST_TO_TUNE = 5.0
"""Minimum number of effective units with a review for tuning λ; with fewer, the judge gets full
weight.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Influence:
    """Parts of θ(λ) = human + λ · shift for one candidate, with the influence of each unit and
    trial.

    Attributes:
        of_human, of_shift: influence of each independent unit, shape (..., units).
        own_human, own_shift: part of each trial's influence that is due to the random choice of
            trials, shape (..., trials).
        spared: share of that part's variance that a review of everything would remove, shape (...,
            trials).
        leverage: share of each unit in the reviewed weight, shape (..., units); sums to 1, and is 0
            for a unit without a review.
        n_reviewed, n_trials: number of decided trials and of all trials.
        known: False if no trial was kept, or a stratum has no review.
    """

    human: Floats
    shift: Floats
    of_human: Floats
    of_shift: Floats
    own_human: Floats
    own_shift: Floats
    spared: Floats
    leverage: Floats
    n_reviewed: Floats
    n_trials: Floats
    n_strata: int
    by_family: bool
    known: Bools


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledMean:
    """A mean or a difference from a review sample; every field has the leading axes of the input.

    `floor`: variance that would remain if everything were reviewed. `tuned`: False if the judge has
    full weight because too few units have a review. `n_units`: number of independent units with a
    review.
    """

    estimate: Floats
    variance: Floats
    df: Floats
    lam: Floats
    tuned: Bools
    floor: Floats
    n_units: Floats
    known: Bools


def influence(
    judge: Floats,
    human: Floats,
    sampled: Bools,
    kept: Bools,
    weights: Floats,
    unit: Ints,
    *,
    n_units: int,
    stratum: Ints | None = None,
    by_family: bool = False,
) -> Influence:
    """Compute the influence of each unit and trial on a candidate's mean.

    Args:
        judge, human: shape (..., trials), between 0 and 1; human scores are used only if `kept`,
            but must be finite.
        sampled: shape (..., trials), True if the trial was drawn for the sample and decided.
        kept: shape (..., trials), True if the person kept the trial; only possible if `sampled`.
        weights: shape (..., trials), the weight of the trial's task divided by the task's number of
            trials, 0 if absent.
        unit: shape (trials,), code of the task or family below `n_units`.
        stratum: shape (trials,), code of the stratum within which the sample was drawn; None if it
            was drawn from all trials.
        by_family: True if units are families, whose degrees of freedom use the formula in
            `families`.

    Source: Angelopoulos, Duchi & Zrnic (2023), arXiv:2311.01453 (λ); Fisch et al. (2024),
    arXiv:2406.04291 (strata); Särndal, Swensson & Wretman (1992), Model Assisted Survey Sampling,
    6.4 and 9.7 (difference estimators in two phases); Cochran (1977), Sampling Techniques, 12.2 to
    12.6 (strata and regression in two phases).
    """
    judge, human, sampled, kept, weights = np.broadcast_arrays(judge, human, sampled, kept, weights)
    total = weights.sum(axis=-1, keepdims=True)
    w = weights / np.where(total > 0, total, 1.0)
    strata = np.zeros(unit.size, np.int64) if stratum is None else stratum
    n_strata = int(strata.max(initial=0)) + 1
    seen = w * sampled
    whole, part = _sums(w, strata, n_strata), _sums(seen, strata, n_strata)
    q = np.where(part > 0, whole / np.where(part > 0, part, 1.0), 0.0)[..., strata]
    drawn = seen * q
    held = drawn * kept
    keeping = held.sum(axis=-1, keepdims=True)
    safe = np.where(keeping > 0, keeping, 1.0)
    mean = (held * human).sum(axis=-1, keepdims=True) / safe
    judge_mean = (w * judge).sum(axis=-1, keepdims=True)
    judge_drawn = (drawn * judge).sum(axis=-1, keepdims=True)
    off_human = np.where(kept & sampled, human - mean, 0.0) / safe
    off_judge = np.where(weights > 0, judge - judge_drawn, 0.0)
    centre_human, centre_judge = (
        _centres(off_human, seen, strata, n_strata),
        _centres(off_judge, seen, strata, n_strata),
    )
    own_human, own_judge = drawn * (off_human - centre_human), drawn * (off_judge - centre_judge)
    n_seen = (sampled & (weights > 0)).sum(axis=-1).astype(np.float64)
    known = (keeping[..., 0] > 0) & ((part > 0) | (whole <= 0)).all(axis=-1)
    return Influence(
        human=mean[..., 0],
        shift=(judge_mean - judge_drawn)[..., 0],
        of_human=_sums(w * centre_human + own_human, unit, n_units),
        of_shift=_sums(w * (judge - judge_mean - centre_judge) - own_judge, unit, n_units),
        own_human=own_human,
        own_shift=-own_judge,
        spared=np.where(drawn > 0, 1.0 - 1.0 / np.where(q > 0, q, 1.0), 0.0),
        leverage=_sums(drawn, unit, n_units),
        n_reviewed=n_seen,
        n_trials=(weights > 0).sum(axis=-1).astype(np.float64),
        n_strata=n_strata,
        by_family=by_family,
        known=known,
    )


def difference(a: Influence, b: Influence) -> Influence:
    """Subtract candidate b's influence from candidate a's, over the same trials."""
    return Influence(
        human=a.human - b.human,
        shift=a.shift - b.shift,
        of_human=a.of_human - b.of_human,
        of_shift=a.of_shift - b.of_shift,
        own_human=a.own_human - b.own_human,
        own_shift=a.own_shift - b.own_shift,
        spared=np.maximum(a.spared, b.spared),
        leverage=(a.leverage + b.leverage) / 2,
        n_reviewed=np.minimum(a.n_reviewed, b.n_reviewed),
        n_trials=np.minimum(a.n_trials, b.n_trials),
        n_strata=max(a.n_strata, b.n_strata),
        by_family=a.by_family or b.by_family,
        known=a.known & b.known,
    )


def sampled_mean(parts: Influence, *, lam: float | None = None) -> SampledMean:
    """Compute the mean or difference, its variance and degrees of freedom.

    Args:
        lam: weight of the judge, between 0 and 1; None tunes it if enough units have a review.

    Source: Variance: Bell & McCaffrey (2002), CR2 with the leverage of the reviewed units; without
    a judge this equals `across_tasks`. One degree of freedom is lost for λ and one for each stratum
    except the first.
    """
    leverage = parts.leverage
    square = (leverage * leverage).sum(axis=-1, keepdims=True)
    rest = np.maximum(1.0 - 2.0 * leverage + square, 1e-3)
    scale = np.where(leverage > 0, 1.0 / rest, 1.0)
    n_eff = 1.0 / np.where(square[..., 0] > 0, square[..., 0], 1.0)
    df = n_eff - 1.0
    if parts.by_family:
        df = (df + bell_mccaffrey(leverage)) / 2
    df = df - (parts.n_strata - 1.0)
    both = (scale * parts.of_human * parts.of_shift).sum(axis=-1)
    shift2 = (scale * parts.of_shift * parts.of_shift).sum(axis=-1)
    tuned = (df >= FEWEST_TO_TUNE - 1.0) if lam is None else np.zeros(df.shape, np.bool_)
    # A judge that gives everything the same score shifts nothing, so any weight is equally good.
    shifts = shift2 > NO_SPREAD**2
    best = np.where(shifts, np.clip(-both / np.where(shifts, shift2, 1.0), 0.0, 1.0), 0.0)
    weight = np.where(tuned, best, 1.0 if lam is None else lam)
    total = parts.of_human + weight[..., None] * parts.of_shift
    variance = (scale * total * total).sum(axis=-1)
    own = parts.own_human + weight[..., None] * parts.own_shift
    grow = parts.n_reviewed / np.maximum(parts.n_reviewed - 1.0, 1.0)
    saved = (parts.spared * own * own).sum(axis=-1) * grow
    # Without subtracting a degree of freedom for λ, ranges of the tuned estimate covered 91% at 10
    # reviews.
    variance = np.where(tuned, variance * df / np.maximum(df - 1.0, 1.0), variance)
    return SampledMean(
        estimate=parts.human + weight * parts.shift,
        variance=variance,
        df=np.maximum(np.where(tuned, df - 1.0, df), 1.0),
        lam=weight,
        tuned=tuned,
        floor=np.maximum(variance - saved, 0.0),
        n_units=(leverage > 0).sum(axis=-1).astype(np.float64),
        known=parts.known & (df > 0.5),
    )


def _sums(values: Floats, code: Ints, n: int) -> Floats:
    """Return sums over the last axis by code, shape (..., n)."""
    # -1 would be ambiguous if there are no trials
    flat = values.reshape(prod(values.shape[:-1]), values.shape[-1])
    rows = np.arange(flat.shape[0])[:, None] * n + code
    sums = np.bincount(rows.reshape(-1), flat.reshape(-1), flat.shape[0] * n)
    return np.asarray(sums.reshape(*values.shape[:-1], n), np.float64)


def _centres(values: Floats, seen: Floats, strata: Ints, n_strata: int) -> Floats:
    part = _sums(seen, strata, n_strata)
    return (_sums(seen * values, strata, n_strata) / np.where(part > 0, part, 1.0))[..., strata]
