"""A candidate's mean score over tasks with a 95% interval, in both scopes, and its mean on each
task.

`_Means` computes all candidates together as arrays, because a NumPy call takes about the same time
for one candidate as for many. Moments within tasks are computed on demand. At the end, each
candidate gets a record of plain numbers.
"""

from collections.abc import Collection, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from assay.statistics import scopes
from assay.statistics.arrays import NO_SPREAD, Bools, Floats, Interval, Ints
from assay.statistics.cells import Cells
from assay.statistics.exact_means import weighted_means
from assay.statistics.families import FEWEST_FAMILIES, across
from assay.statistics.identical_tasks import identical_tasks
from assay.statistics.intervals import identical_interval, logit_interval, trial_intervals
from assay.statistics.standard_error import WithinTasks, satterthwaite, within_tasks
from assay.statistics.table import ScoreTable
from assay.statistics.warnings import Caution, about_sample, caution


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEstimate:
    """One candidate's result on one task; `reason` is set if there is no interval."""

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
    """Moments of one candidate's cells, each of shape (tasks,), in label order.

    Cells that do not count have n = 0.

    `family`: code of each task's family; None if tasks are independent.
    """

    tasks: tuple[Hashable, ...]
    n: Floats
    mean: Floats
    m2: Floats
    low: Floats
    high: Floats
    weight: Floats
    family: Ints | None = None


_MOMENTS = ("n", "mean", "m2", "low", "high", "weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedMean:
    scope: str
    mean: float
    ci95: Interval | None = None
    std_err: float | None = None
    df: float | None = None
    method: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One candidate's score over tasks, between 0 and 1.

    `mean`: weighted mean of task means. `ci95`: interval of the mean in `scope`. `sd`, `min` and
    `max` describe single trials and are not an interval. `n_families`: number of families; None if
    no tasks share a family. `n_eff`: effective number of tasks (or families) after weighting.
    """

    candidate: Hashable
    mean: float | None = None
    sd: float | None = None
    min: float | None = None
    max: float | None = None
    ci95: Interval | None = None
    std_err: float | None = None
    df: float | None = None
    n_eff: float | None = None
    n_trials: int = 0
    n_tasks: int = 0
    n_families: int | None = None
    scope: str
    method: str | None = None
    reason: str | None
    warnings: tuple[Caution, ...] = ()
    columns: TaskColumns = field(repr=False, compare=False)

    @property
    def other_scope(self) -> ScopedMean | None:
        """Return the mean in the other scope (new tasks of the same kind, or these tasks again);
        None if there is no mean.

        The range for tasks like these is left out if there are fewer than 3 tasks, or if it would
        be narrower than the range for exactly these tasks.
        """
        if self.mean is None:
            return None
        columns = self.columns
        # Computed when read, because a report of many candidates seldom needs the other scope.
        lifted = _Means(
            replace(columns, **{name: getattr(columns, name)[None] for name in _MOMENTS})
        )
        if self.scope == scopes.TASKS_LIKE_THESE:
            beside = _these(lifted, 0)
            narrower = _width(self.ci95) < _width(beside.ci95)
            return (
                replace(beside, ci95=None, reason="wider_than_tasks_like_these")
                if narrower
                else beside
            )
        beside = _like_these(lifted, 0)
        if beside.ci95 is not None and self.n_tasks < scopes.FEWEST_TASKS_BESIDE:
            return replace(beside, ci95=None, reason="need_at_least_3_tasks")
        narrower = beside.ci95 is not None and _width(beside.ci95) < _width(self.ci95)
        return (
            replace(beside, ci95=None, reason="narrower_than_these_tasks") if narrower else beside
        )

    @property
    def by_task(self) -> tuple[TaskEstimate, ...]:
        return _by_task(self.columns)

    def on_tasks(self, tasks: Collection[Hashable]) -> tuple[TaskEstimate, ...]:
        """Return `by_task` for the given tasks only, which is faster in a suite with thousands of
        tasks.
        """
        columns = self.columns
        places = [i for i, task in enumerate(columns.tasks) if task in tasks]
        moments = {name: getattr(columns, name)[places] for name in _MOMENTS}
        return _by_task(TaskColumns(tasks=tuple(columns.tasks[i] for i in places), **moments))


def _width(interval: Interval | None) -> float:
    return 0.0 if interval is None else interval[1] - interval[0]


def estimate(scores: ScoreTable | Cells, candidate: Hashable, scope: str | None = None) -> Estimate:
    """Compute the mean score of a candidate with a 95% interval.

    For new tasks of the same kind, the interval comes from the CR2 variance of task means (family
    means if tasks share families) with Kish degrees of freedom, on the logit scale. For reruns of
    the same tasks, it is a stratified t interval over trials, on the logit scale; for a single task
    whose scores are all 0 or 1, it is Wilson's interval. Identical scores get a bounded interval,
    never one of zero width.

    Args:
        scores: a table, or cells.
        candidate: the candidate's label; an unknown label gives the reason `no_approved_trials`.
        scope: `tasks_like_these`, `these_tasks`, or None for the rule in `scopes`.

    Raises ValueError if the scope is unknown.

    Source: docs/explanation/statistics.md for the choice of methods; checked against scipy.stats
    and statsmodels in tests/golden/test_statistics_reference.py.
    """
    cells = scores.cells if isinstance(scores, ScoreTable) else scores
    asked = scopes.checked_scope(scope)
    code = cells.candidate_code(candidate)
    if code is None:
        return _empty(
            candidate,
            asked or scopes.default_scope(planned_units=cells.planned_units, repeated=False),
            None,
        )
    return _estimates(cells, np.array([code]), asked)[0]


def estimates(scores: ScoreTable | Cells, scope: str | None = None) -> tuple[Estimate, ...]:
    """Compute `estimate` for all candidates, in label order, in little more time than for one.

    Raises ValueError if the scope is unknown.
    """
    cells = scores.cells if isinstance(scores, ScoreTable) else scores
    return _estimates(cells, np.arange(len(cells.candidates)), scopes.checked_scope(scope))


class _Means:
    """Means and variances of several candidates, with axes (candidate, task).

    Cells that do not count have n = 0 and weight 0.
    """

    def __init__(self, columns: TaskColumns) -> None:
        self.columns = columns
        self.across = across(columns.mean, columns.weight, columns.family)
        self.n_tasks = self.across.n_tasks.astype(np.int64)
        # The estimate of `across` may differ in the last digits, and be slightly past 0 or 1, where
        # the logit is undefined.
        self.average = weighted_means(columns.mean, columns.weight)
        self.se_across = np.sqrt(self.across.variance)
        self.ci_across = logit_interval(self.average, self.se_across, self.across.df)
        self.repeated: Bools = np.asarray((columns.n >= 2).any(axis=1))

    @cached_property
    def within(self) -> WithinTasks:
        return within_tasks(self.columns.n, self.columns.m2, self.across.share)

    @cached_property
    def se_within(self) -> Floats:
        return np.sqrt(self.within.variance)

    @cached_property
    def df_within(self) -> Floats:
        return satterthwaite(self.within.variance, self.within.df_denominator)

    @cached_property
    def ci_within(self) -> tuple[Floats, Floats]:
        return logit_interval(self.average, self.se_within, self.df_within)

    def describe_trials(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return each candidate's number of trials, standard deviation, lowest score and highest
        score.
        """
        columns = self.columns
        n_trials = columns.n.sum(axis=1)
        total = np.maximum(n_trials, 1.0)
        off = columns.mean - (np.einsum("kt,kt->k", columns.n, columns.mean) / total)[:, None]
        off *= off
        off *= columns.n
        off += columns.m2
        sd = np.sqrt(off.sum(axis=1) / np.maximum(total - 1.0, 1.0))
        # Empty cells contain 0 everywhere, which may be lower than the lowest score.
        low = columns.low.min(axis=1, initial=1.0) if (columns.n > 0).all() else _lowest(columns)
        return n_trials, sd, low, columns.high.max(axis=1, initial=0.0)

    def row(self, i: int) -> TaskColumns:
        moments = {name: getattr(self.columns, name)[i] for name in _MOMENTS}
        return replace(self.columns, **moments)


def _lowest(columns: TaskColumns) -> Floats:
    return np.asarray(np.where(columns.n > 0, columns.low, 1.0).min(axis=1, initial=1.0))


def _estimates(cells: Cells, codes: Ints, asked: str | None) -> tuple[Estimate, ...]:
    # Indexing with codes and masking create copies, so results do not change when the cells are
    # updated.
    mask = cells.counted[codes]
    moments = {name: getattr(cells, name)[codes] for name in _MOMENTS if name != "weight"}
    if not mask.all():
        moments = {name: np.where(mask, values, 0.0) for name, values in moments.items()}
    means = _Means(
        TaskColumns(tasks=cells.tasks, weight=mask * cells.weight, family=cells.family, **moments)
    )
    described = tuple(column.tolist() for column in means.describe_trials())
    copies = identical_tasks(cells)
    results = []
    for i, code in enumerate(codes.tolist()):
        # The planned tasks decide, not the counted ones, so that the scope cannot flip while
        # reviews come in.
        chosen = asked or scopes.default_scope(
            planned_units=cells.planned_units, repeated=bool(means.repeated[i])
        )
        candidate = cells.candidates[code]
        if means.n_tasks[i] == 0:
            results.append(
                _empty(candidate, chosen, means.row(i), weightless=bool((cells.n[code] > 0).any()))
            )
        else:
            results.append(
                _one(means, i, candidate, chosen, [column[i] for column in described], copies)
            )
    return tuple(results)


def _one(
    means: _Means,
    i: int,
    candidate: Hashable,
    scope: str,
    described: list[float],
    copies: tuple[Caution, ...],
) -> Estimate:
    head = _like_these(means, i) if scope == scopes.TASKS_LIKE_THESE else _these(means, i)
    n_trials, sd, low, high = described
    return Estimate(
        candidate=candidate,
        mean=head.mean,
        # Rounding gives equal scores a tiny sd; their range shows that nothing varies.
        sd=None if n_trials < 2 else 0.0 if high - low < NO_SPREAD else sd,
        min=low,
        max=high,
        ci95=head.ci95,
        std_err=head.std_err,
        df=head.df,
        n_eff=float(means.across.n_eff[i]),
        n_trials=int(n_trials),
        n_tasks=int(means.n_tasks[i]),
        n_families=None if means.columns.family is None else int(means.across.n_units[i]),
        scope=head.scope,
        method=head.method,
        reason=head.reason,
        warnings=(*_warnings(candidate, head, means, i, int(n_trials)), *copies),
        columns=means.row(i),
    )


def _like_these(means: _Means, i: int) -> ScopedMean:
    mean, n_tasks = float(means.average[i]), int(means.n_tasks[i])
    if n_tasks == 1:
        return _without(scopes.TASKS_LIKE_THESE, mean, "need_at_least_2_tasks")
    n_units = int(means.across.n_units[i])
    if means.columns.family is not None and n_units < FEWEST_FAMILIES:
        return _without(scopes.TASKS_LIKE_THESE, mean, "need_at_least_4_families")
    # Equal task means show that there are few observations, not that the result is certain: a t
    # interval would have no width.
    if means.across.constant[i]:
        low, high = identical_interval(mean, n_units)
        return ScopedMean(
            scope=scopes.TASKS_LIKE_THESE,
            mean=mean,
            ci95=(max(float(low), 0.0), min(float(high), 1.0)),
            std_err=0.0,
            method="bounded_identical",
        )
    return ScopedMean(
        scope=scopes.TASKS_LIKE_THESE,
        mean=mean,
        ci95=(float(means.ci_across[0][i]), float(means.ci_across[1][i])),
        std_err=float(means.se_across[i]),
        df=float(means.across.df[i]),
        method="cr2_kish_logit_t" if means.columns.family is None else "cr2_families_logit_t",
    )


def _these(means: _Means, i: int) -> ScopedMean:
    if means.n_tasks[i] == 1:
        return _this_task(means.row(i))
    mean = float(means.average[i])
    if not means.within.known[i]:
        return _without(scopes.THESE_TASKS, mean, "need_at_least_2_trials")
    # Several tasks without any trial noise are not credible, so there is no interval instead of one
    # without width.
    if means.within.constant[i]:
        return _without(scopes.THESE_TASKS, mean, "zero_variance", std_err=0.0)
    return ScopedMean(
        scope=scopes.THESE_TASKS,
        mean=mean,
        ci95=(float(means.ci_within[0][i]), float(means.ci_within[1][i])),
        std_err=float(means.se_within[i]),
        df=float(means.df_within[i]),
        method="stratified_logit_t",
    )


def _this_task(columns: TaskColumns) -> ScopedMean:
    only = _by_task(columns)[0]
    identical = only.method == "bounded_identical"
    return ScopedMean(
        scope=scopes.THIS_TASK_ONLY,
        mean=only.mean,
        ci95=only.ci95,
        std_err=None if only.sd is None else only.sd / only.n_trials**0.5,
        df=None if identical or only.sd is None else only.n_trials - 1.0,
        method=only.method,
        reason=only.reason,
    )


def _without(scope: str, mean: float, reason: str, *, std_err: float | None = None) -> ScopedMean:
    return ScopedMean(scope=scope, mean=mean, std_err=std_err, reason=reason)


def _warnings(
    candidate: Hashable, headline: ScopedMean, means: _Means, i: int, n_trials: int
) -> tuple[Caution, ...]:
    n_tasks, n_eff = int(means.n_tasks[i]), float(means.across.n_eff[i])
    n_units = int(means.across.n_units[i])
    warnings = about_sample(n_tasks, None if means.columns.family is None else n_units, n_eff)
    if headline.method == "bounded_identical":
        unit, n = ("trials", n_trials) if n_tasks == 1 else ("tasks", n_tasks)
        if n_tasks > 1 and means.columns.family is not None:
            unit, n = "families", n_units
        values = (
            f"{candidate}: all scores"
            if unit == "trials"
            else f"{candidate}: the means of all {n} {unit}"
        )
        warnings.append(caution("zero_variance", values=values, n=n))
    if headline.method == "stratified_logit_t" and means.within.single[i]:
        warnings.append(caution("single_trial_tasks", n=int(means.within.single[i])))
    return tuple(warnings)


def _by_task(columns: TaskColumns) -> tuple[TaskEstimate, ...]:
    intervals = trial_intervals(columns.n, columns.mean, columns.m2, columns.low, columns.high)
    return tuple(
        TaskEstimate(
            task=columns.tasks[i],
            mean=float(columns.mean[i]),
            sd=float(intervals.sd[i]) if intervals.method[i] else None,
            ci95=(float(intervals.low[i]), float(intervals.high[i]))
            if intervals.method[i]
            else None,
            n_trials=int(columns.n[i]),
            weight=float(columns.weight[i]),
            method=intervals.method[i] or None,
            reason=None if intervals.method[i] else "need_at_least_2_trials",
        )
        for i in np.flatnonzero(columns.n > 0)
    )


def _empty(
    candidate: Hashable, scope: str, columns: TaskColumns | None, *, weightless: bool = False
) -> Estimate:
    none = np.zeros(0)
    return Estimate(
        candidate=candidate,
        scope=scope,
        reason="no_weight" if weightless else "no_approved_trials",
        columns=columns
        or TaskColumns(tasks=(), n=none, mean=none, m2=none, low=none, high=none, weight=none),
    )
