"""Effect sizes: differences relative to the spread of single trials, with labels."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from assay.statistics.arrays import NO_SPREAD, Floats
from assay.statistics.cells import Cells
from assay.statistics.distributions import log_gamma
from assay.statistics.table import ScoreTable
from assay.statistics.variances import one_way, total_variance

# The bands are half-open: 0.2 is small, 0.5 medium and 0.8 large.
BANDS = ((0.2, "negligible"), (0.5, "small"), (0.8, "medium"))


def effect_label(d: float | None) -> str | None:
    """Return the label of an effect size: negligible below 0.2, small below 0.5, medium below 0.8,
    else large.
    """
    return None if d is None else next((name for bound, name in BANDS if abs(d) < bound), "large")


def small_sample_factor(df: float) -> float | None:
    """Return Hedges' J, which corrects the upward bias of a standardised difference.

    Returns None below 2 degrees of freedom.
    """
    return (
        None
        if df < 2
        else float(np.exp(log_gamma(df / 2) - log_gamma((df - 1) / 2)) / np.sqrt(df / 2))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectSizes:
    """Standardised differences a - b over shared tasks; None if the spread to divide by is 0 or
    unknown.

    `d_total` divides by the spread of a single trial of a random task; the thresholds .2, .5 and .8
    apply to it. On one task it is Hedges' g. `d_within` divides by rerun noise alone. `d_z` divides
    by the spread of task differences and is useful only for power. `g_z` is d_z with Hedges'
    correction. `cohen_d` and `hedges_g` are set only for a single task.
    """

    difference: float | None = None
    sd_total: float | None = None
    d_total: float | None = None
    effect_label: str | None = None
    sd_within: float | None = None
    d_within: float | None = None
    d_z: float | None = None
    g_z: float | None = None
    cohen_d: float | None = None
    hedges_g: float | None = None
    reason: str | None = None


def effect_size(scores: ScoreTable | Cells, a: Hashable, b: Hashable) -> EffectSizes:
    """Compute the effect sizes of a against b over the tasks on which both have counted trials.

    Source: Hedges (2007), J. Educ. Behav. Stat. 32:341-370 (δ_T); Hedges (1981) for J; checked
    against statsmodels anova_lm and pingouin compute_effsize.
    """
    cells = scores.cells if isinstance(scores, ScoreTable) else scores
    code_a, code_b = cells.candidate_code(a), cells.candidate_code(b)
    if code_a is None or code_b is None:
        return EffectSizes(reason="no_approved_trials")
    at = np.flatnonzero(cells.counted[code_a] & cells.counted[code_b])
    if at.size == 0:
        return EffectSizes(reason="no_shared_tasks")
    sides = [
        (cells.n[side, at], cells.mean[side, at], cells.m2[side, at]) for side in (code_a, code_b)
    ]
    return effect_sizes_from_moments(sides[0], sides[1], cells.weight[at])


Moments = tuple[Floats, Floats, Floats]


def effect_sizes_from_moments(a: Moments, b: Moments, weight: Floats) -> EffectSizes:
    """Compute `effect_size` from n, mean and M2 per shared task, each of shape (tasks,); weights
    must be positive.
    """
    differences = a[1] - b[1]
    difference = float((weight / weight.max() * differences).sum() / (weight / weight.max()).sum())
    if weight.size == 1:
        return _one_task(a, b, difference)
    totals = (total_variance(*a), total_variance(*b))
    splits = (one_way(*a), one_way(*b))
    # The spread of run means is not used, because it shrinks with more tasks: the same 5 points,
    # which give d = 0.25 here, would give d = 2.2 with means of 10 tasks and 5.3 with means of 50.
    sd_total = _root_mean(totals)
    sd_within = (
        None
        if splits[0] is None or splits[1] is None
        else _root_mean((splits[0].var_trial, splits[1].var_trial))
    )
    sd_z = float(np.std(differences, ddof=1))
    d_total, d_z = _ratio(difference, sd_total), _ratio(float(differences.mean()), sd_z)
    factor = small_sample_factor(weight.size - 1.0)
    return EffectSizes(
        difference=difference,
        sd_total=sd_total,
        d_total=d_total,
        effect_label=effect_label(d_total),
        sd_within=sd_within,
        d_within=_ratio(difference, sd_within),
        d_z=d_z,
        g_z=None if d_z is None or factor is None else d_z * factor,
        reason=None if d_total is not None else "zero_variance",
    )


def _one_task(a: Moments, b: Moments, difference: float) -> EffectSizes:
    df = float(a[0][0] + b[0][0] - 2.0)
    both = a[0][0] >= 2 and b[0][0] >= 2
    pooled = float(np.sqrt((a[2][0] + b[2][0]) / df)) if both else None
    d = _ratio(difference, pooled)
    factor = small_sample_factor(df)
    # Cohen's d from a few trials is too large on average; Hedges' factor corrects that.
    g = None if d is None or factor is None else d * factor
    return EffectSizes(
        difference=difference,
        sd_total=pooled,
        d_total=g,
        effect_label=effect_label(g),
        sd_within=pooled,
        d_within=d,
        cohen_d=d,
        hedges_g=g,
        reason=None if g is not None else "zero_variance" if both else "need_at_least_2_trials",
    )


def _root_mean(variances: tuple[float | None, float | None]) -> float | None:
    variance_a, variance_b = variances
    return (
        None
        if variance_a is None or variance_b is None
        else float(np.sqrt((variance_a + variance_b) / 2))
    )


def _ratio(difference: float, spread: float | None) -> float | None:
    return None if spread is None or spread < NO_SPREAD else difference / spread
