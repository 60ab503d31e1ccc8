"""How good is one candidate: its mean over tasks with a 95% interval, in both scopes, and task by task."""

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from assay.statistics.arrays import NO_SPREAD, Bools, Floats, Interval, Ints
from assay.statistics.cautions import Caution, caution
from assay.statistics.cells import Cells
from assay.statistics.intervals import identical_interval, logit_interval, trial_intervals
from assay.statistics.scopes import TASKS_LIKE_THESE, THESE_TASKS, THIS_TASK_ONLY, checked_scope, default_scope
from assay.statistics.spread import across_tasks, satterthwaite, shares_of, within_tasks
from assay.statistics.table import ScoreTable


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEstimate:
    """One candidate on one task, from its own trials; `reason` says why there is no interval."""

    task: Hashable
    mean: float
    sd: float | None
    ci95: Interval | None
    n_trials: int
    weight: float
    method: str | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskColumns:
    """Moments of one candidate's cells, each of shape (tasks,), in label order; cells that do not count have n 0."""

    tasks: tuple[Hashable, ...]
    n: Floats
    mean: Floats
    m2: Floats
    low: Floats
    high: Floats
    weight: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedMean:
    """A mean with its interval in one scope."""

    scope: str
    mean: float
    ci95: Interval | None
    std_err: float | None
    df: float | None
    method: str | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One candidate's score over tasks, 0 to 1.

    `mean` weighs task means by task; `sd`, `min` and `max` describe single trials and are no interval; `ci95` is about
    `scope`. `other_scope` answers the other question. `n_eff` is the effective number of tasks after weighting.
    """

    candidate: Hashable
    mean: float | None
    sd: float | None
    min: float | None
    max: float | None
    ci95: Interval | None
    std_err: float | None
    df: float | None
    n_eff: float | None
    n_trials: int
    n_tasks: int
    scope: str
    method: str | None
    reason: str | None
    warnings: tuple[Caution, ...]
    other_scope: ScopedMean | None
    columns: TaskColumns = field(repr=False, compare=False)

    @property
    def by_task(self) -> tuple[TaskEstimate, ...]:
        """The candidate on each of its counted tasks."""
        return _by_task(self.columns)


def estimate(scores: ScoreTable | Cells, candidate: Hashable, scope: str | None = None) -> Estimate:
    """The mean score of a candidate with a 95% interval.

    For new tasks of the kind: CR2 variance of task means with Kish degrees of freedom, on the logit scale. For the
    same tasks again: stratified t over trials, on the logit scale; for one task Wilson's interval where all scores are
    0 or 1. Identical scores get a bounded interval, never one of zero width.

    Args:
        scores: a table, or kept cells.
        candidate: its label; an unknown one gives reason `no_approved_trials`.
        scope: `tasks_like_these`, `these_tasks`, or None for the rule in `scopes`.

    Raises:
        ValueError: another scope.

    Source:
        docs/statistics.md for the choice of methods; checked against scipy.stats and statsmodels in
        tests/golden/test_statistics_reference.py.
    """
    cells = scores.cells if isinstance(scores, ScoreTable) else scores
    asked = checked_scope(scope)
    code = cells.candidate_code(candidate)
    if code is None:
        return _empty(candidate, asked or default_scope(planned_tasks=cells.planned_tasks, repeated=False), None)
    return _estimates(cells, np.array([code]), asked)[0]


def estimates(scores: ScoreTable | Cells, scope: str | None = None) -> tuple[Estimate, ...]:
    """`estimate` of every candidate, in label order, for little more than the price of one.

    Raises:
        ValueError: a scope that is not one.
    """
    cells = scores.cells if isinstance(scores, ScoreTable) else scores
    return _estimates(cells, np.arange(len(cells.candidates)), checked_scope(scope))


class _Means:
    """Everything an estimate needs, for several candidates at once; first axis candidate, last axis task."""

    def __init__(self, cells: Cells, codes: Ints) -> None:
        self.tasks = cells.tasks
        counted = cells.counted[codes]
        self.n = np.where(counted, cells.n[codes], 0.0)
        # Indexing with codes copies, so that results stay as they are when the cells go on.
        self.mean, self.m2 = cells.mean[codes], cells.m2[codes]
        self.low, self.high = cells.low[codes], cells.high[codes]
        self.weight = np.where(counted, cells.weight, 0.0)
        self.n_tasks = counted.sum(axis=1)
        self.repeated: Bools = np.asarray((self.n >= 2).any(axis=1))
        self.weightless: Bools = np.asarray((cells.n[codes] > 0).any(axis=1) & (self.n_tasks == 0))
        self.across = across_tasks(self.mean, self.weight)
        share = shares_of(self.weight)
        self.within = within_tasks(self.n, self.m2, share)
        self.average = np.clip(self.across.estimate, 0.0, 1.0)
        self.df_within = satterthwaite(self.within.variance, self.within.df_denominator)
        self.se_across, self.se_within = np.sqrt(self.across.variance), np.sqrt(self.within.variance)
        self.ci_across = logit_interval(self.average, self.se_across, self.across.df)
        self.ci_within = logit_interval(self.average, self.se_within, self.df_within)
        self.single = (self.n == 1).sum(axis=1)
        self._describe_trials(counted)

    def _describe_trials(self, counted: Bools) -> None:
        self.n_trials = self.n.sum(axis=1)
        total = np.maximum(self.n_trials, 1.0)
        grand = (self.n * self.mean).sum(axis=1) / total
        scatter = np.where(counted, self.m2, 0.0) + self.n * (self.mean - grand[:, None]) ** 2
        self.sd = np.sqrt(scatter.sum(axis=1) / np.maximum(total - 1.0, 1.0))
        self.min = np.where(counted, self.low, np.inf).min(axis=1, initial=np.inf)
        self.max = np.where(counted, self.high, -np.inf).max(axis=1, initial=-np.inf)

    def columns(self, i: int) -> TaskColumns:
        return TaskColumns(
            tasks=self.tasks,
            n=self.n[i],
            mean=self.mean[i],
            m2=self.m2[i],
            low=self.low[i],
            high=self.high[i],
            weight=self.weight[i],
        )


def _estimates(cells: Cells, codes: Ints, asked: str | None) -> tuple[Estimate, ...]:
    means = _Means(cells, codes)
    return tuple(_one(cells, means, i, cells.candidates[int(code)], asked) for i, code in enumerate(codes))


def _one(cells: Cells, means: _Means, i: int, candidate: Hashable, asked: str | None) -> Estimate:
    chosen = asked or default_scope(planned_tasks=cells.planned_tasks, repeated=bool(means.repeated[i]))
    n_tasks = int(means.n_tasks[i])
    if n_tasks == 0:
        return _empty(candidate, chosen, means.columns(i), weightless=bool(means.weightless[i]))
    one, other = _like_these(means, i), _these(means, i)
    if chosen != TASKS_LIKE_THESE:
        one, other = other, one
    n_eff, n_trials = float(means.across.n_eff[i]), int(means.n_trials[i])
    low, high = float(means.min[i]), float(means.max[i])
    return Estimate(
        candidate=candidate,
        mean=one.mean,
        sd=None if n_trials < 2 else 0.0 if high - low < NO_SPREAD else float(means.sd[i]),
        min=low,
        max=high,
        ci95=one.ci95,
        std_err=one.std_err,
        df=one.df,
        n_eff=n_eff,
        n_trials=n_trials,
        n_tasks=n_tasks,
        scope=one.scope,
        method=one.method,
        reason=one.reason,
        warnings=_warnings(one, means, i),
        other_scope=other if n_tasks > 1 or one.reason is not None else None,
        columns=means.columns(i),
    )


def _like_these(means: _Means, i: int) -> ScopedMean:
    mean, n_tasks = float(means.average[i]), int(means.n_tasks[i])
    if n_tasks == 1:
        return _without(TASKS_LIKE_THESE, mean, "need_at_least_2_tasks")
    if means.across.constant[i]:
        low, high = identical_interval(mean, n_tasks)
        return ScopedMean(
            scope=TASKS_LIKE_THESE,
            mean=mean,
            ci95=(max(float(low), 0.0), min(float(high), 1.0)),
            std_err=0.0,
            df=None,
            method="bounded_identical",
            reason=None,
        )
    return ScopedMean(
        scope=TASKS_LIKE_THESE,
        mean=mean,
        ci95=(float(means.ci_across[0][i]), float(means.ci_across[1][i])),
        std_err=float(means.se_across[i]),
        df=float(means.across.df[i]),
        method="cr2_kish_logit_t",
        reason=None,
    )


def _these(means: _Means, i: int) -> ScopedMean:
    if means.n_tasks[i] == 1:
        return _this_task(means.columns(i))
    mean = float(means.average[i])
    if not means.within.known[i]:
        return _without(THESE_TASKS, mean, "need_at_least_2_trials")
    if means.within.constant[i]:
        return _without(THESE_TASKS, mean, "zero_variance", std_err=0.0)
    return ScopedMean(
        scope=THESE_TASKS,
        mean=mean,
        ci95=(float(means.ci_within[0][i]), float(means.ci_within[1][i])),
        std_err=float(means.se_within[i]),
        df=float(means.df_within[i]),
        method="stratified_logit_t",
        reason=None,
    )


def _this_task(columns: TaskColumns) -> ScopedMean:
    only = _by_task(columns)[0]
    identical = only.method == "bounded_identical"
    return ScopedMean(
        scope=THIS_TASK_ONLY,
        mean=only.mean,
        ci95=only.ci95,
        std_err=None if only.sd is None else only.sd / only.n_trials**0.5,
        df=None if identical or only.sd is None else only.n_trials - 1.0,
        method=only.method,
        reason=only.reason,
    )


def _without(scope: str, mean: float, reason: str, *, std_err: float | None = None) -> ScopedMean:
    return ScopedMean(scope=scope, mean=mean, ci95=None, std_err=std_err, df=None, method=None, reason=reason)


def _warnings(headline: ScopedMean, means: _Means, i: int) -> tuple[Caution, ...]:
    found = []
    n_tasks, n_eff = int(means.n_tasks[i]), float(means.across.n_eff[i])
    if 2 <= n_tasks <= 5:
        found.append(caution("few_tasks", n_tasks=n_tasks))
    if n_tasks > 1 and n_eff < 2 - 1e-9:
        found.append(caution("one_task_dominates", n_eff=n_eff))
    if headline.method == "bounded_identical":
        found.append(caution("zero_variance", n=n_tasks if n_tasks > 1 else int(means.n_trials[i])))
    if headline.method == "stratified_logit_t" and means.single[i]:
        found.append(caution("single_trial_tasks", n=int(means.single[i])))
    return tuple(found)


def _by_task(columns: TaskColumns) -> tuple[TaskEstimate, ...]:
    found = trial_intervals(columns.n, columns.mean, columns.m2, columns.low, columns.high)
    return tuple(
        TaskEstimate(
            task=columns.tasks[i],
            mean=float(columns.mean[i]),
            sd=float(found.sd[i]) if found.method[i] else None,
            ci95=(float(found.low[i]), float(found.high[i])) if found.method[i] else None,
            n_trials=int(columns.n[i]),
            weight=float(columns.weight[i]),
            method=found.method[i] or None,
            reason=None if found.method[i] else "need_at_least_2_trials",
        )
        for i in np.flatnonzero(columns.n > 0)
    )


def _empty(candidate: Hashable, scope: str, columns: TaskColumns | None, *, weightless: bool = False) -> Estimate:
    nothing = np.zeros(0)
    return Estimate(
        candidate=candidate,
        mean=None,
        sd=None,
        min=None,
        max=None,
        ci95=None,
        std_err=None,
        df=None,
        n_eff=None,
        n_trials=0,
        n_tasks=0,
        scope=scope,
        method=None,
        reason="no_weight" if weightless else "no_approved_trials",
        warnings=(),
        other_scope=None,
        columns=columns
        or TaskColumns(tasks=(), n=nothing, mean=nothing, m2=nothing, low=nothing, high=nothing, weight=nothing),
    )
