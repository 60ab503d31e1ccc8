"""Variance components of scores: between tasks, between trials and between judge calls."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from assay.statistics.arrays import (
    NO_SPREAD,
    Floats,
    Interval,
    beyond_rounding,
    finite,
    finite_interval,
)
from assay.statistics.cells import Cells
from assay.statistics.distributions import f_quantile
from assay.statistics.table import ScoreTable
from assay.statistics.warnings import Caution, caution


@dataclass(frozen=True, slots=True, kw_only=True)
class OneWay:
    """Mean squares of tasks and of trials within tasks, and the variances that they estimate.

    `balance` is n0, the number of trials per task in the equivalent balanced design. `below_zero`
    is True if the task variance came out negative and was set to 0.
    """

    ms_task: float
    ms_trial: float
    var_task: float
    var_trial: float
    balance: float
    df_task: float
    df_trial: float
    below_zero: bool


def one_way(n: Floats, mean: Floats, m2: Floats) -> OneWay | None:
    """Compute a one-way analysis of variance by task; None unless there are two tasks and one of
    them has two trials.

    Args:
        n, mean, m2: shape (tasks,), number of trials (at least 1), mean and sum of squared
            deviations of each task.

    Source: Henderson's method I; checked against statsmodels anova_lm.
    """
    n_tasks, total = n.size, float(n.sum())
    df_task, df_trial = n_tasks - 1.0, total - n_tasks
    if n_tasks < 2 or df_trial < 1:
        return None
    grand = float((n * mean).sum()) / total
    ms_task = beyond_rounding(float((n * (mean - grand) ** 2).sum()) / df_task)
    ms_trial = beyond_rounding(float(m2.sum()) / df_trial)
    balance = (total - float((n * n).sum()) / total) / df_task
    var_task = (ms_task - ms_trial) / balance
    return OneWay(
        ms_task=ms_task,
        ms_trial=ms_trial,
        # It is negative by chance alone in 1.5% of simulated benchmarks of 5 tasks with 3 trials.
        var_task=max(var_task, 0.0),
        var_trial=ms_trial,
        balance=balance,
        df_task=df_task,
        df_trial=df_trial,
        below_zero=var_task < 0,
    )


def total_variance(n: Floats, mean: Floats, m2: Floats) -> float | None:
    """Return the variance of a single trial on a random task: between-task plus within-task
    variance.

    With one trial per task the two cannot be separated, but their sum is the variance of the
    scores. With a single task, the result is the variance of its trials. Returns None with fewer
    than two observations.
    """
    split = one_way(n, mean, m2)
    if split is not None:
        return split.var_task + split.var_trial
    if n.size == 1:
        return beyond_rounding(float(m2[0]) / (float(n[0]) - 1.0)) if n[0] >= 2 else None
    return (
        beyond_rounding(float(((mean - mean.mean()) ** 2).sum()) / (n.size - 1.0))
        if n.size >= 2
        else None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceComponents:
    """One candidate's variance, split into task, trial and (with repeated judge calls) judge
    variance.

    `icc1`: share of a single trial's variance that tasks explain, with its F interval (None if
    tasks share families). `reliability`: the same share for the mean of `n_trials_per_task` trials;
    None if tasks differ in their number of trials. With one judge call per trial, trial and judge
    noise cannot be separated: `var_trial` then contains both, and `var_judge` is None.
    """

    candidate: Hashable
    ms_task: float | None = None
    ms_trial: float | None = None
    var_task: float | None = None
    var_trial: float | None = None
    var_judge: float | None = None
    icc1: float | None = None
    icc1_ci95: Interval | None = None
    reliability: float | None = None
    n_trials_per_task: float | None
    n_tasks: int
    n_trials: int
    reason: str | None
    warnings: tuple[Caution, ...] = ()


def variance_components(scores: ScoreTable | Cells, candidate: Hashable) -> VarianceComponents:
    """Estimate the task, trial and judge components of a candidate's variance.

    The reason is `need_repeated_trials` if no task has two trials, and `need_at_least_2_tasks` if
    there is a single task. A task variance below zero is set to 0, with a warning.

    Source: Henderson's method I; Shrout & Fleiss (1979), Psych. Bulletin 86:420-428 for the
    interval of the ICC; checked against statsmodels anova_lm and pingouin.
    """
    cells = scores.cells if isinstance(scores, ScoreTable) else scores
    code = cells.candidate_code(candidate)
    at = np.flatnonzero(cells.counted[code]) if code is not None else np.zeros(0, np.int64)
    n = cells.n[code, at] if code is not None else np.zeros(0)
    split = (
        one_way(n, cells.mean[code, at], cells.m2[code, at])
        if code is not None and at.size
        else None
    )
    if split is None:
        return _no_split(candidate, n)
    var_judge, var_trial = (
        split_judge(scores, code, split.var_trial)
        if isinstance(scores, ScoreTable)
        else (None, None)
    )
    total = split.var_task + split.var_trial
    balanced = bool((n == n[0]).all())
    reliable = (
        (split.ms_task - split.ms_trial) / split.ms_task if split.ms_task > NO_SPREAD**2 else None
    )
    return VarianceComponents(
        candidate=candidate,
        ms_task=split.ms_task,
        ms_trial=split.ms_trial,
        var_task=split.var_task,
        var_trial=split.var_trial if var_trial is None else var_trial,
        var_judge=var_judge,
        icc1=split.var_task / total if total > NO_SPREAD**2 else None,
        # The F distribution assumes that tasks are independent, which tasks of a family are not.
        icc1_ci95=None if cells.family is not None else icc1_interval(split),
        reliability=max(reliable, 0.0) if reliable is not None and balanced else None,
        n_trials_per_task=split.balance,
        n_tasks=int(n.size),
        n_trials=int(n.sum()),
        reason=None if total > NO_SPREAD**2 else "zero_variance",
        warnings=(caution("task_variance_below_zero_clipped"),) if split.below_zero else (),
    )


def icc1_interval(split: OneWay) -> Interval | None:
    """Return the 95% interval of ICC(1) from the F distribution; None if scores do not vary within
    tasks.
    """
    if split.ms_trial < NO_SPREAD**2:
        return None
    ratio = split.ms_task / split.ms_trial
    low = ratio / float(f_quantile(0.975, split.df_task, split.df_trial))
    high = ratio * float(f_quantile(0.975, split.df_trial, split.df_task))
    k = split.balance
    return finite_interval(
        max((low - 1) / (low + k - 1), 0.0), max((high - 1) / (high + k - 1), 0.0)
    )


def split_judge(
    table: ScoreTable, code: int | None, ms_trial: float
) -> tuple[float | None, float | None]:
    """Return the judge variance and the remaining trial variance, or (None, None) without repeated
    calls.
    """
    if table.calls is None or code is None:
        return None, None
    rows = table.rows_of(code)
    count = table.calls.count[rows]
    extra = float((count - 1).sum())
    if extra < 1:
        return None, None
    var_judge = float(table.calls.m2[rows].sum()) / extra
    return var_judge, max(ms_trial - var_judge * float((1 / count).mean()), 0.0)


def _no_split(candidate: Hashable, n: Floats) -> VarianceComponents:
    reason = "need_repeated_trials" if n.size >= 2 else "need_at_least_2_tasks"
    return VarianceComponents(
        candidate=candidate,
        n_trials_per_task=finite(float(n.mean())) if n.size else None,
        n_tasks=int(n.size),
        n_trials=int(n.sum()),
        reason=reason if n.size else "no_approved_trials",
    )
