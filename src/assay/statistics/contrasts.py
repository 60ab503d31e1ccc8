"""Pairwise differences between candidates in both scopes, computed as arrays from cells.

Theory. In each scope, a pair has a difference, a variance and degrees of freedom. For tasks like
these, the units are differences of task means; if the table is complete, one matrix product
computes all pairs. For exactly these tasks, the variance is the sum of trial noise over tasks and
both candidates. Jointly graded trials enter as differences.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from assay.statistics.arrays import NO_SPREAD, Bools, Floats, Interval, Ints
from assay.statistics.cells import Cells
from assay.statistics.distributions import t_quantile, t_two_sided
from assay.statistics.exact_means import weighted_means
from assay.statistics.families import FEWEST_FAMILIES, across, across_family_pairs
from assay.statistics.paired_trials import PairedTrials, paired_trials
from assay.statistics.scopes import TASKS_LIKE_THESE, THESE_TASKS, THIS_TASK_ONLY
from assay.statistics.standard_error import (
    AcrossTasks,
    WithinTasks,
    satterthwaite,
    shares_of,
    within_tasks,
)
from assay.statistics.table import ScoreTable

FEWEST_EFFECTIVE = 2.0 - 1e-9
"""Minimum effective number of tasks or families for a test; two with equal weights have an n_eff of
2, apart from rounding.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedDifference:
    """A difference a - b with its test and interval in one scope; `reason` says why a value is
    None.
    """

    scope: str
    difference: float | None = None
    mean_a: float | None = None
    mean_b: float | None = None
    ci95: Interval | None = None
    std_err: float | None = None
    t: float | None = None
    df: float | None = None
    p_value: float | None = None
    method: str | None = None
    reason: str | None = None


class Contrasts:
    """Moments of candidate pairs on their shared tasks, with axes (pair, task).

    Attributes:
        n_shared: number of shared tasks per pair.
        complete: True if every candidate has counted trials on every task of positive weight.
        paired: moments of joint trials; None if nothing was graded jointly.
    """

    def __init__(
        self, source: ScoreTable | Cells, first: Ints, second: Ints, *, pair_trials: bool = True
    ) -> None:
        cells = source.cells if isinstance(source, ScoreTable) else source
        self.cells, self.first, self.second = cells, first, second
        self.counted = cells.counted
        weighted = cells.weight > 0
        self.complete = bool((self.counted == weighted).all())
        n_weighted = int(weighted.sum())
        self.n_shared: Ints = (
            np.full(first.size, n_weighted) if self.complete else self.shared.sum(axis=1)
        )
        self.paired: PairedTrials | None = (
            paired_trials(source, first, second) if pair_trials else None
        )

    @cached_property
    def shared(self) -> Bools:
        """Mask of shape (pairs, tasks): True if both candidates have counted trials and the task's
        weight is above 0.
        """
        return np.asarray(self.counted[self.first] & self.counted[self.second])

    @cached_property
    def weight(self) -> Floats:
        """Task weights, shape (pairs, tasks); 0 for tasks that the pair does not share."""
        return np.where(self.shared, self.cells.weight, 0.0)

    @cached_property
    def mean(self) -> tuple[Floats, Floats]:
        """Task means of both candidates of each pair: two arrays of shape (pairs, tasks)."""
        return self.cells.mean[self.first], self.cells.mean[self.second]

    @cached_property
    def difference(self) -> Floats:
        """Differences of task means, shape (pairs, tasks)."""
        return self.mean[0] - self.mean[1]

    @property
    def n(self) -> tuple[Floats, Floats]:
        """Numbers of trials of both candidates of each pair: two arrays of shape (pairs, tasks)."""
        return self.cells.n[self.first], self.cells.n[self.second]

    @property
    def m2(self) -> tuple[Floats, Floats]:
        """Sums of squared deviations for both candidates of each pair: two arrays of shape (pairs,
        tasks).
        """
        return self.cells.m2[self.first], self.cells.m2[self.second]

    @property
    def by_trial(self) -> Bools:
        """Mask of shape (pairs, tasks): True if the pair is compared trial by trial on the task."""
        return (
            np.zeros_like(self.shared) if self.paired is None else self.shared & (self.paired.n > 0)
        )

    @property
    def n_joint(self) -> Floats:
        """Number of joint trials that count for both candidates, shape (pairs, tasks)."""
        return np.zeros_like(self.weight) if self.paired is None else self.paired.n

    @property
    def repeated(self) -> Bools:
        """Mask of shape (pairs,): True if both candidates have repeated trials, so that rerun noise
        can be estimated.
        """
        by_trial = self.by_trial
        apart = self.shared & ~by_trial
        sides = [(apart & (n >= 2)).any(axis=1) for n in self.n]
        known_apart = (sides[0] & sides[1]) | ~apart.any(axis=1)
        known_joint = (by_trial & (self.n_joint >= 2)).any(axis=1) | ~by_trial.any(axis=1)
        return np.asarray((self.n_shared > 0) & known_apart & known_joint)


class LikeThese:
    """Pairwise tests for new tasks of the same kind, with CR2 variance and Kish degrees of freedom.

    Source: docs/explanation/statistics.md; with equal weights this is scipy.stats.ttest_rel on task
    means.
    """

    def __init__(self, contrasts: Contrasts) -> None:
        self.pairs = contrasts
        self.across: AcrossTasks
        if contrasts.complete:
            cells = contrasts.cells
            pair = (contrasts.first, contrasts.second)
            self.across = across_family_pairs(cells.mean, cells.weight, *pair, cells.family)
            own = weighted_means(cells.mean, cells.weight)
            self.sides = (own[contrasts.first], own[contrasts.second])
        else:
            self.across = across(contrasts.difference, contrasts.weight, contrasts.cells.family)
            mean_a, mean_b = (weighted_means(mean, contrasts.weight) for mean in contrasts.mean)
            self.sides = (mean_a, mean_b)
        self.estimate = self.across.estimate
        self.grouped = contrasts.cells.family is not None
        self.enough = self.across.n_units >= (FEWEST_FAMILIES if self.grouped else 2)
        self.one_dominates = self.across.n_eff < FEWEST_EFFECTIVE
        self.regular = (
            (contrasts.n_shared >= 2) & ~self.across.constant & self.enough & ~self.one_dominates
        )
        self.std_err = np.where(self.regular, np.sqrt(self.across.variance), 0.0)
        self.df = self.across.df
        self.t, self.p, self.half = _tested(self.estimate, self.std_err, self.df)
        self.tested = _listed(self, self.across.constant)
        self.refused = (~self.enough | self.one_dominates).tolist()

    def scoped(self, i: int) -> ScopedDifference:
        tested, n_shared = self.tested, self.tested.n_shared[i]
        if n_shared == 0:
            return nothing(TASKS_LIKE_THESE, "no_shared_tasks")
        if n_shared == 1:
            return _partial(tested, i, TASKS_LIKE_THESE, "need_at_least_2_tasks")
        if self.refused[i]:
            reason = (
                "need_at_least_2_effective_tasks" if self.enough[i] else "need_at_least_4_families"
            )
            return _partial(tested, i, TASKS_LIKE_THESE, reason)
        if tested.constant[i]:
            # Exact sign flip: of the 2^G patterns, only the two in which all signs are equal are as
            # extreme. The exponent is capped, so that p stays above 0 for very many tasks.
            tied = abs(self.estimate[i]) < NO_SPREAD
            p_value = 1.0 if tied else 2.0 ** (1 - min(int(self.across.n_units[i]), 1000))
            # Families can be tied although their tasks are not.
            ties = tied and bool(
                (np.abs(self.pairs.difference[i][self.pairs.shared[i]]) < NO_SPREAD).all()
            )
            reason = "all_ties" if ties else "zero_variance"
            result = _partial(tested, i, TASKS_LIKE_THESE, reason)
            return replace(result, std_err=0.0, p_value=p_value, method="signflip_exact")
        method = "cr2_families_paired_t" if self.grouped else "cr2_kish_paired_t"
        return _regular(tested, i, TASKS_LIKE_THESE, method)


class TheseTasks:
    """Pairwise tests for reruns of the same tasks: stratified t-tests, trial by trial if trials
    were graded jointly.

    Source: Satterthwaite (1946), Welch (1947); for one task this is
    scipy.stats.ttest_ind(equal_var=False) if graded separately, and scipy.stats.ttest_rel if graded
    jointly.
    """

    def __init__(self, contrasts: Contrasts) -> None:
        self.pairs = contrasts
        share = shares_of(contrasts.weight)
        sides = list(contrasts.mean)
        self.by_trial = contrasts.by_trial
        apart = np.where(self.by_trial, 0.0, share)
        self.n = list(contrasts.n)
        noise = [within_tasks(n, m2, apart) for n, m2 in zip(self.n, contrasts.m2, strict=True)]
        # On joint trials, Welch's test erred in 18% of cases at a correlation of -1 and in 1% at
        # +0.6; pairing keeps the error at 5%.
        if contrasts.paired is not None:
            joint = contrasts.paired
            noise.append(within_tasks(joint.n, joint.m2, share - apart))
            # Both means come from the joint trials alone, so that their difference is the one that
            # was tested.
            halves = (joint.mean / 2, -joint.mean / 2)
            sides = [
                np.where(self.by_trial, joint.middle + h, m)
                for m, h in zip(sides, halves, strict=True)
            ]
            self.n = [np.where(self.by_trial, joint.n, n) for n in self.n]
        self.sides = tuple(weighted_means(mean, contrasts.weight) for mean in sides)
        self.estimate = self.sides[0] - self.sides[1]
        self.task_difference = np.where(contrasts.shared, sides[0] - sides[1], 0.0)
        self._combine(noise)

    def _combine(self, noise: list[WithinTasks]) -> None:
        variance = sum((side.variance for side in noise), np.zeros(len(self.pairs.first)))
        denominator = sum((side.df_denominator for side in noise), np.zeros(len(self.pairs.first)))
        self.known = np.logical_and.reduce([side.known for side in noise])
        self.constant = np.logical_and.reduce([side.constant for side in noise])
        self.single = sum((side.single for side in noise), np.zeros(len(self.pairs.first)))
        self.std_err = np.where(self.known & ~self.constant, np.sqrt(variance), 0.0)
        self.df = satterthwaite(variance, denominator)
        self.t, self.p, self.half = _tested(self.estimate, self.std_err, self.df)
        self.tested = _listed(self, self.constant)

    def scoped(self, i: int) -> ScopedDifference:
        tested, n_shared = self.tested, self.tested.n_shared[i]
        scope = THIS_TASK_ONLY if n_shared == 1 else THESE_TASKS
        if n_shared == 0:
            return nothing(scope, "no_shared_tasks")
        if not self.known[i] or (n_shared == 1 and self.single[i]):
            return _partial(tested, i, scope, "need_at_least_2_trials")
        if tested.constant[i]:
            return self._constant(i, scope)
        by_trial = self.by_trial[i]
        if n_shared == 1:
            method = "paired_trials_t" if by_trial.any() else "welch_t"
        else:
            method = (
                "paired_stratified_t"
                if (by_trial == self.pairs.shared[i]).all()
                else "stratified_t"
            )
        return _regular(tested, i, scope, method)

    def _constant(self, i: int, scope: str) -> ScopedDifference:
        tied = bool((np.abs(self.task_difference[i]) < NO_SPREAD).all())
        result = replace(
            _partial(self.tested, i, scope, "all_ties" if tied else "zero_variance"), std_err=0.0
        )
        # Trial noise of exactly 0 on several tasks is not credible, so no p is given unless all
        # tasks are tied.
        if scope == THESE_TASKS and not tied:
            return result
        by_trial = bool(self.by_trial[i].any())
        method = "signflip_exact" if by_trial else "permutation_exact"
        if tied:
            return replace(result, p_value=1.0, method=method)
        at = int(np.flatnonzero(self.pairs.shared[i])[0])
        n_a, n_b = (int(n[i, at]) for n in self.n)
        p_value = 2.0 ** (1 - min(n_a, 1000)) if by_trial else _two_constants(n_a, n_b)
        return replace(result, p_value=p_value, method=method)


def _two_constants(n_a: int, n_b: int) -> float:
    """Return the exact label-permutation p-value for n_a equal scores of one candidate and n_b
    equal scores of the other.
    """
    # Multiplied step by step, because the binomial coefficient itself may be too large for a float.
    p = 2.0 if n_a == n_b else 1.0
    for k in range(1, min(n_a, n_b) + 1):
        p *= k / (max(n_a, n_b) + k)
    return p


def _tested(estimate: Floats, std_err: Floats, df: Floats) -> tuple[Floats, Floats, Floats]:
    t = estimate / np.where(std_err > 0, std_err, 1.0)
    return t, t_two_sided(t, df), t_quantile(0.975, df) * std_err


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tested:
    """One scope's tests as lists with a value per pair: reading single values from arrays takes
    three times as long.
    """

    estimate: list[float]
    mean_a: list[float]
    mean_b: list[float]
    std_err: list[float]
    df: list[float]
    t: list[float]
    p: list[float]
    half: list[float]
    constant: list[bool]
    n_shared: list[int]


def _listed(test: LikeThese | TheseTasks, constant: Bools) -> _Tested:
    return _Tested(
        estimate=test.estimate.tolist(),
        mean_a=test.sides[0].tolist(),
        mean_b=test.sides[1].tolist(),
        std_err=test.std_err.tolist(),
        df=test.df.tolist(),
        t=test.t.tolist(),
        p=test.p.tolist(),
        half=test.half.tolist(),
        constant=constant.tolist(),
        n_shared=test.pairs.n_shared.tolist(),
    )


def _regular(tested: _Tested, i: int, scope: str, method: str) -> ScopedDifference:
    difference, half = tested.estimate[i], tested.half[i]
    # Built in one step: `replace` took half of the time of a ranking of 1,000 candidates.
    return ScopedDifference(
        scope=scope,
        difference=difference,
        mean_a=tested.mean_a[i],
        mean_b=tested.mean_b[i],
        ci95=(difference - half, difference + half),
        std_err=tested.std_err[i],
        t=tested.t[i],
        df=tested.df[i],
        p_value=tested.p[i],
        method=method,
    )


def _partial(tested: _Tested, i: int, scope: str, reason: str) -> ScopedDifference:
    return ScopedDifference(
        scope=scope,
        difference=tested.estimate[i],
        mean_a=tested.mean_a[i],
        mean_b=tested.mean_b[i],
        reason=reason,
    )


def nothing(scope: str, reason: str) -> ScopedDifference:
    return ScopedDifference(scope=scope, reason=reason)
