"""Variance estimates from data, for planning a benchmark."""

from collections.abc import Hashable

import numpy as np

from assay.statistics.arrays import Floats, beyond_rounding
from assay.statistics.cells import Cells
from assay.statistics.contrasts import Contrasts
from assay.statistics.families import across
from assay.statistics.planning import DesignVariances
from assay.statistics.table import ScoreTable


def design_variances(
    scores: ScoreTable | Cells, a: Hashable, b: Hashable
) -> DesignVariances | None:
    """Estimate how much the difference of two candidates varies between tasks and between trials;
    None without shared tasks.

    The interaction is the variance of task differences minus the part that trial noise causes, and
    at least 0. With unequal weights, both variances are multiplied by the design effect (tasks /
    effective tasks). The formulas for equally weighted tasks then remain correct.
    """
    cells = scores.cells if isinstance(scores, ScoreTable) else scores
    code_a, code_b = cells.candidate_code(a), cells.candidate_code(b)
    if code_a is None or code_b is None:
        return None
    return variances_of(Contrasts(scores, np.array([code_a]), np.array([code_b])))


def variances_of(contrasts: Contrasts) -> DesignVariances | None:
    """Compute `design_variances` for the first pair of `contrasts`."""
    at = np.flatnonzero(contrasts.shared[0])
    if at.size == 0:
        return None
    paired = bool(contrasts.by_trial[0, at].all())
    if paired and contrasts.paired is not None:
        sides = [(contrasts.paired.n[0, at], contrasts.paired.m2[0, at])]
        difference = contrasts.paired.mean[0, at]
    else:
        sides = [(n[0, at], m2[0, at]) for n, m2 in zip(contrasts.n, contrasts.m2, strict=True)]
        difference = contrasts.difference[0, at]
    noise = [_pooled(n, m2) for n, m2 in sides]
    known = all(side is not None for side in noise)
    trial = sum(side for side in noise if side is not None) if known else 0.0
    share = contrasts.weight[0, at] / contrasts.weight[0, at].max()
    effect = at.size * float((share * share).sum()) / float(share.sum()) ** 2
    observed = beyond_rounding(float(np.var(difference, ddof=1))) if at.size > 1 else 0.0
    expected = sum(
        _mean_noise(n, m2, side)
        for (n, m2), side in zip(sides, noise, strict=True)
        if side is not None
    )
    interaction = observed - (expected if known else 0.0)
    family = contrasts.cells.family
    n_families, between, evenness = None, 0.0, 1.0
    if family is not None:
        moments = across(difference, contrasts.weight[0, at], family[at])
        n_families = int(moments.n_units)
        # The trial noise of the mean, which is expected times the design effect, is not part of the
        # variance between families.
        noise_of_mean = expected * effect / at.size if known else 0.0
        between = max(beyond_rounding(float(moments.variance)) - noise_of_mean, 0.0) * n_families
        evenness = float(moments.n_eff) / n_families
    return DesignVariances(
        interaction=max(interaction, 0.0) * effect,
        trial=trial * effect,
        n_tasks=int(at.size),
        n_trials=float(len(sides) * at.size / sum(float((1 / n).sum()) for n, _ in sides)),
        paired=paired,
        split_known=known,
        below_zero=interaction < 0,
        n_families=n_families,
        between=between,
        evenness=evenness,
    )


def _pooled(n: Floats, m2: Floats) -> float | None:
    df = float((n - 1).sum())
    return beyond_rounding(float(m2.sum()) / df) if df >= 1 else None


def _mean_noise(n: Floats, m2: Floats, pooled: float) -> float:
    """Return the mean of s²/n over tasks; a task with only one trial uses the pooled s²."""
    s2 = np.where(n >= 2, m2 / np.maximum(n - 1, 1.0), pooled)
    return beyond_rounding(float((s2 / n).mean()))
