"""The effect of a candidate's position in a joint prompt on its score."""

from dataclasses import dataclass

import numpy as np

from assay.statistics.arrays import NO_SPREAD, Floats, Interval, Ints, finite_interval
from assay.statistics.distributions import t_quantile

LEAST_TASKS = 6  # or families; with pass-or-fail scores on 5 tasks, ranges covered 98%
_ALONE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionEffect:
    """Effect of one prompt position (from 1) on scores between 0 and 1.

    If `reason` is `few_tasks` (too few tasks or families) or `zero_variance` (the model leaves no
    noise), `ci95` is None. If it is `confounded`, because no candidate appeared at different
    positions, `effect` is None too.
    """

    position: int
    effect: float | None
    ci95: Interval | None
    n_scores: int
    n_tasks: int
    reason: str | None


def position_effects(
    score: Floats,
    *,
    position: Ints,
    candidate: Ints,
    sitting: Ints,
    task: Ints,
    family: Ints | None = None,
    level: float = 0.95,
) -> tuple[PositionEffect, ...]:
    """Estimate the effect of a candidate's position in the prompt on the judge's score.

    The model is score = candidate + sitting + position + noise, fitted by least squares. Position
    effects sum to 0, so each effect is the difference from the mean of all positions. If every
    candidate takes every position equally often within each task, the effect is the mean of the
    scores at this position minus the candidates' means. Tasks are clusters, because a candidate is
    better at some tasks than at others; if tasks share families, families are the clusters.

    Args:
        score: between 0 and 1.
        position: position in the prompt, from 1; the order must be random.
        candidate, task: codes from 0.
        sitting: code of the prompt, from 0; each sitting belongs to one task.
        family: code of the task's family, from 0; None if no two tasks share a family.

    Source: Bell & McCaffrey (2002), Survey Methodology 28:169-181, for the CR2 variance and its
    degrees of freedom; Pustejovsky & Tipton (2018), JBES 36:672-683, for leaving sittings out of
    the CR2 weights (theorem 2). Checked against the matrix form with all dummies in
    tests/property/test_position_effects.py, and for coverage by bench/position_coverage.py.
    """
    last = int(position.max(initial=0))
    if last < 2:
        return ()
    places = np.zeros((len(score), last - 1))
    for place in range(1, last):
        places[:, place - 1] = (position == place) * 1.0 - (position == last)
    names = (candidate[:, None] == np.unique(candidate)[None, 1:]) * 1.0
    clusters = task if family is None else family
    fit = _Fit(
        _within(np.column_stack((places, names)), sitting),
        _within(score[:, None], sitting)[:, 0],
        clusters,
    )
    contrasts = np.vstack((np.eye(last - 1), -np.ones(last - 1)))
    contrasts = np.hstack((contrasts, np.zeros((last, names.shape[1]))))
    return tuple(
        _effect(fit, contrast, place, position=position, task=task, level=level)
        for place, contrast in enumerate(contrasts, 1)
    )


def _effect(
    fit: "_Fit", contrast: Floats, place: int, *, position: Ints, task: Ints, level: float
) -> PositionEffect:
    here = position == place
    value: float | None = None
    reason: str | None = "confounded"
    ci95: Interval | None = None
    if fit.estimable:
        value, reason = float(contrast @ fit.coefficients), "few_tasks"
        variance, df = fit.variance(contrast)
        if fit.n_clusters >= LEAST_TASKS and df >= 1:
            half = float(t_quantile(0.5 + level / 2, df)) * np.sqrt(variance)
            reason, ci95 = None, finite_interval(value - half, value + half)
            if half < NO_SPREAD:
                reason, ci95 = "zero_variance", None
    return PositionEffect(
        position=place,
        effect=value,
        ci95=ci95,
        n_scores=int(here.sum()),
        n_tasks=len(np.unique(task[here])),
        reason=reason,
    )


def _within(columns: Floats, groups: Ints) -> Floats:
    means: Floats = _sums(columns, groups) / np.maximum(np.bincount(groups), 1)[:, None]
    return columns - means[groups]


class _Fit:
    """Least squares with the CR2 variance of contrasts, computed from matrices whose size is the
    number of columns.
    """

    def __init__(self, design: Floats, y: Floats, clusters: Ints) -> None:
        values, vectors = np.linalg.eigh(design.T @ design)
        self.estimable = bool(values.size) and float(values[0]) > 1e-9 * max(float(values[-1]), 1.0)
        self.n_clusters = len(np.unique(clusters))
        if not self.estimable:
            return
        half = vectors * values**-0.5 @ vectors.T  # (X'X)^-1/2
        self._white = design @ half
        self.coefficients = half @ (self._white.T @ y)
        self._half = half
        residual = y - design @ self.coefficients
        codes = np.unique(clusters, return_inverse=True)[1]
        width = design.shape[1]
        crossed = (self._white[:, :, None] * self._white[:, None, :]).reshape(len(y), width * width)
        self._gram = _sums(crossed, codes).reshape(-1, width, width)
        self._score = _sums(self._white * residual[:, None], codes)

    def variance(self, contrast: Floats) -> tuple[float, float]:
        """Return a contrast's CR2 variance and its Satterthwaite degrees of freedom, which are 0 if
        one cluster determines it.
        """
        share, axes = np.linalg.eigh(self._gram)
        # A cluster that alone determines a coefficient has share 1 and no residual in that
        # direction. With 6 tasks of one trial each, a task whose order differs from all others is
        # such a cluster; without this rule, ranges covered 89%.
        room = np.maximum(1.0 - share, 0.0)
        target = self._half @ contrast
        along = np.einsum("gij,i->gj", axes, target)
        if np.any((room < _ALONE) & (along * along > _ALONE * (target @ target))):
            return 0.0, 0.0
        weight = 1.0 / np.sqrt(np.maximum(room, _ALONE))
        adjusted = np.einsum("gij,gj->gi", axes, weight * along)  # B'A, without the cluster's rows
        terms = np.einsum("gi,gi->g", adjusted, self._score)
        variance = float(np.sum(terms * terms))
        square = np.sum(share * weight * weight * along * along, axis=1)  # a'a
        moved = np.einsum("gij,gj->gi", self._gram, adjusted)
        trace = float(square.sum() - np.sum(moved * moved))
        inner = moved.T @ moved
        frobenius = float(
            np.sum(square * square)
            - 2.0 * np.sum(square * np.sum(moved * moved, axis=1))
            + np.sum(inner * inner)
        )
        return variance, trace * trace / frobenius if frobenius > NO_SPREAD * NO_SPREAD else 0.0


def _sums(rows: Floats, codes: Ints) -> Floats:
    return np.column_stack([np.bincount(codes, weights=column) for column in rows.T]).astype(
        np.float64
    )
