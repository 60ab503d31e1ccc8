"""Benchmark planning: detectable differences, and the tasks, trials and money needed to detect a
given difference.

Model. With G tasks and n trials of each candidate on each task, the variance of a mean difference
is (σ²_int + σ²_trial / n) / G. σ²_int is the variance of the true difference between tasks.
σ²_trial is the trial noise of a difference: the sum of both candidates' noise, or the noise of
paired differences. The smallest difference that is detected with the desired power is (t_.975 +
t_power) · √variance. The normal version of this formula promises 80% power but reaches only 62 to
70% with 6 to 10 tasks.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt

from assay.statistics.arrays import beyond_rounding
from assay.statistics.distributions import t_quantile
from assay.statistics.exact import FEWEST_FOR_FIVE_PERCENT
from assay.statistics.families import FEWEST_FAMILIES

MOST = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignVariances:
    """Variances of the difference between two candidates, as input for planning.

    Attributes:
        interaction: variance of the true task differences.
        trial: variance of the difference between one trial of each candidate; if `paired`, of the
            differences in joint trials.
        n_tasks, n_trials: present numbers of tasks, and of trials per task and candidate.
        paired: True if trials are graded jointly.
        split_known: False if no task has two trials. `interaction` then contains both variances, so
            the effect of more trials is unknown.
        below_zero: True if the estimated interaction was negative and was set to 0.
        n_families: number of families, None if no tasks share a family. With families, `between` is
            the variance of a family's difference without trial noise, and `evenness` is the
            effective share of the families after weighting.
    """

    interaction: float
    trial: float
    n_tasks: int
    n_trials: float
    paired: bool = False
    split_known: bool = True
    below_zero: bool = False
    n_families: int | None = None
    between: float = 0.0
    evenness: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Number of tasks or trials that detect a difference with the given power at the two-sided 5%
    level.

    Attributes:
        mde: smallest difference that the present design detects.
        tasks_needed: number of tasks with the present trials per task; None if the question is
            about these tasks only.
        families_needed: number of families (of the present size) that these tasks must come from;
            None if no tasks share a family.
        trials_needed: number of trials per task on the present tasks; None if no number is enough
            or if it is unknown.
        more_trials_can_decide: False if no number of trials on these tasks is enough; None if no
            task has two trials yet.
        floor_mde: smallest difference that infinitely many trials would detect.
        best_trials: cost-optimal number of trials per task; None without prices.
        cost: cost of the cheaper way (more tasks or more trials), in the currency of the prices;
            None without prices.

    Numbers above ten million are None.
    """

    detect: float
    power: float
    scope: str
    n_tasks: int
    n_trials: float
    std_err: float | None
    mde: float | None
    floor_mde: float | None
    tasks_needed: int | None
    trials_needed: int | None
    more_trials_can_decide: bool | None
    best_trials: float | None
    cost_of_tasks: float | None
    cost_of_trials: float | None
    cost: float | None
    reason: str | None
    n_families: int | None = None
    families_needed: int | None = None


def plan(
    design: DesignVariances,
    *,
    detect: float,
    power: float = 0.8,
    scope: str = "tasks_like_these",
    cost_task: float | None = None,
    cost_trial: float | None = None,
) -> Plan:
    """Compute how many tasks, or trials per task, are needed to detect a difference of `detect`.

    Args:
        design: variances and the present size; see `designs.design_variances`.
        detect: difference between scores of 0 to 1, above 0.
        power: strictly between 0 and 1.
        scope: `these_tasks` plans for reruns of the same tasks, for which the interaction does not
            matter.
        cost_task: cost of one more task, without its trials; at least 0.
        cost_trial: cost of one trial of both candidates; above 0.

    Raises ValueError if an argument is out of range.
    """
    _check_plan(detect, power, cost_task, cost_trial)
    same_tasks = scope != "tasks_like_these"
    by_families = design.n_families is not None and not same_tasks
    # The units are families of the present size instead of tasks: one more task of the same family
    # is not a new unit.
    units = design.n_families if by_families and design.n_families is not None else design.n_tasks
    size = design.n_tasks / units if by_families and units else 1.0
    interaction = 0.0 if same_tasks else design.between if by_families else design.interaction
    trial, evenness = design.trial / size, design.evenness if by_families else 1.0
    sides = 1.0 if design.paired else 2.0
    g, n = design.n_tasks, max(design.n_trials, 1.0)
    # Differences that do not vary are tested by signs, which cannot reach 5% with fewer tasks.
    constant = not same_tasks and beyond_rounding(design.interaction + design.trial) == 0
    fewest = FEWEST_FAMILIES if by_families else FEWEST_FOR_FIVE_PERCENT if constant else 2

    def mde(units: float, trials: float) -> float:
        df = sides * units * (trials - 1.0) if same_tasks else units * evenness - 1.0
        return _bar(df, power) * sqrt((interaction + trial / trials) / units)

    defined = sides * g * (n - 1.0) >= 1 and design.split_known if same_tasks else units >= fewest
    now = mde(units, n) if defined and g else None
    units_needed = None if same_tasks else _least(lambda units: mde(units, n), detect, start=fewest)
    tasks_needed = None if units_needed is None else ceil(units_needed * size - 1e-9)
    floor = None
    if same_tasks:
        floor = 0.0
    elif units >= fewest:
        floor = _bar(units * evenness - 1.0, power) * (interaction / units) ** 0.5
    can_decide = floor is not None and floor < detect and g > 0 and design.split_known
    # With reruns of the same tasks, trial noise can be measured only if there are two trials.
    trials_needed = (
        _least(lambda trials: mde(units, trials), detect, start=2 if same_tasks else 1)
        if can_decide
        else None
    )
    best, of_tasks, of_trials = _costs(
        design, interaction, n, tasks_needed, trials_needed, cost_task, cost_trial
    )
    return Plan(
        detect=detect,
        power=power,
        scope=scope,
        n_tasks=g,
        n_trials=design.n_trials,
        std_err=((interaction + trial / n) / units) ** 0.5 if g else None,
        mde=now,
        floor_mde=floor if design.split_known else None,
        tasks_needed=tasks_needed,
        trials_needed=trials_needed,
        more_trials_can_decide=trials_needed is not None if design.split_known else None,
        best_trials=best,
        cost_of_tasks=of_tasks,
        cost_of_trials=of_trials,
        cost=min((cost for cost in (of_tasks, of_trials) if cost is not None), default=None),
        reason=None
        if now is not None
        else _why_no_plan(same_tasks=same_tasks, by_families=by_families, constant=constant),
        n_families=design.n_families,
        families_needed=units_needed if by_families else None,
    )


def _why_no_plan(*, same_tasks: bool, by_families: bool, constant: bool) -> str:
    if same_tasks:
        return "need_at_least_2_trials"
    if by_families:
        return "need_at_least_4_families"
    return "zero_variance" if constant else "need_at_least_2_tasks"


def _check_plan(
    detect: float, power: float, cost_task: float | None, cost_trial: float | None
) -> None:
    if not 0.0 < detect <= 1.0:
        raise ValueError(
            f"detect is {detect}; it must be a difference above 0 and at most 1 (0.03 is 3 points)"
        )
    _check_power(power)
    for name, cost in (("cost_task", cost_task), ("cost_trial", cost_trial)):
        if cost is not None and not 0.0 <= cost < float("inf"):
            raise ValueError(f"{name} is {cost}; it must be a finite cost of at least 0")


def _check_power(power: float, alpha: float = 0.05) -> None:
    for name, value in (("power", power), ("alpha", alpha)):
        if not 0.0 < value < 1.0:
            raise ValueError(f"{name} is {value}; it must be a number strictly between 0 and 1")


def _costs(
    design: DesignVariances,
    interaction: float,
    n: float,
    tasks_needed: int | None,
    trials_needed: int | None,
    cost_task: float | None,
    cost_trial: float | None,
) -> tuple[float | None, float | None, float | None]:
    if cost_trial is None:
        return None, None, None
    per_task = (cost_task or 0.0) + n * cost_trial
    of_tasks = None if tasks_needed is None else max(tasks_needed - design.n_tasks, 0) * per_task
    of_trials = (
        None if trials_needed is None else max(trials_needed - n, 0.0) * design.n_tasks * cost_trial
    )
    return (
        cost_optimal_trials(interaction, design.trial, cost_task or 0.0, cost_trial),
        of_tasks,
        of_trials,
    )


def cost_optimal_trials(
    interaction: float, trial: float, cost_task: float, cost_trial: float
) -> float | None:
    """Return the cost-optimal number of trials per task, at least 1; None if more is always better.

    Source: √((cost_task / cost_trial) · σ²_trial / σ²_int), the classical two-stage allocation
    (Cochran 1977, 10.6).
    """
    if interaction <= 0 or cost_trial <= 0:
        return None
    # Square roots are taken separately, because trial / interaction overflows if the interaction is
    # almost 0.
    best = max(sqrt(cost_task / cost_trial) * sqrt(trial) / sqrt(interaction), 1.0)
    return best if best <= MOST else None


def _bar(df: float, power: float, alpha: float = 0.05) -> float:
    df = max(df, 1.0)
    # This is within 0.6% of the noncentral t, which is not used because SciPy 1.17 returns NaN in
    # its far tail.
    return float(t_quantile(1 - alpha / 2, df)) + float(t_quantile(power, df))


def _least(mde: Callable[[float], float], detect: float, *, start: int) -> int | None:
    """Return the smallest whole number >= `start` at which the minimum detectable difference is at
    most `detect`.
    """
    if mde(start) <= detect:
        return start
    low, high = start, start * 2
    while mde(high) > detect:
        low, high = high, high * 2
        if high > MOST:
            return None
    return low + bisect_left(range(low, high), True, key=lambda n: mde(n) <= detect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Result of `power`; values that were not requested are None.

    `se_if_trials_doubled`, `se_if_tasks_doubled`: standard error with twice the trials or tasks.
    `floor_with_infinite_trials`: standard error that remains however many trials there are.
    """

    mde: float | None = None
    n_tasks: int | None = None
    n_trials_each: int | None = None
    se: float | None = None
    se_if_trials_doubled: float | None = None
    se_if_tasks_doubled: float | None = None
    floor_with_infinite_trials: float | None = None


def power(
    *,
    effect: float | None = None,
    n_tasks: int | None = None,
    n_trials: float | None = None,
    sd_task_diff: float | None = None,
    sd_trial: float | None = None,
    var_interaction: float | None = None,
    var_trial: float | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
) -> Power:
    """Answer a sample-size question without data: leave out the quantity that you want to know.

    * `n_tasks` and `sd_task_diff` (spread of task differences) give the smallest detectable
      difference.
    * `effect` and `sd_task_diff` give the number of tasks needed.
    * `effect` and `sd_trial` give the number of separately graded trials of each candidate needed
      on one task.
    * `n_trials` and `sd_trial` give the smallest detectable difference on one task.
    * `var_interaction`, `var_trial` (each per candidate, so differences have twice that), `n_tasks`
      and `n_trials` give the standard error of the difference, and the standard error with twice
      the trials or tasks.

    Raises ValueError if the combination is not one of these, or a number is out of range.

    Source: (t_.975 + t_power) · SE, within 0.6% of the noncentral t; checked against statsmodels
    TTestPower and TTestIndPower.
    """
    _check_power(power, alpha)
    for name, value in (("effect", effect), ("sd_task_diff", sd_task_diff), ("sd_trial", sd_trial)):
        if value is not None and not 0.0 < value < float("inf"):
            raise ValueError(f"{name} is {value}; it must be a finite number above 0")
    if var_interaction is not None and var_trial is not None and n_tasks and n_trials:
        return _design_error(var_interaction, var_trial, n_tasks, n_trials)
    if sd_task_diff is not None and n_tasks is not None and effect is None:
        if n_tasks < 2:
            raise ValueError(f"n_tasks is {n_tasks}; a detectable difference needs at least 2")
        return Power(mde=_bar(n_tasks - 1.0, power, alpha) * sd_task_diff / n_tasks**0.5)
    if sd_task_diff is not None and effect is not None:
        return Power(
            n_tasks=_least(
                lambda g: _bar(g - 1.0, power, alpha) * sd_task_diff / g**0.5, effect, start=2
            )
        )
    if sd_trial is not None and effect is not None:
        return Power(
            n_trials_each=_least(
                lambda n: _bar(2 * n - 2.0, power, alpha) * sd_trial * (2 / n) ** 0.5,
                effect,
                start=2,
            )
        )
    if sd_trial is not None and n_trials is not None and n_trials >= 2:
        return Power(mde=_bar(2 * n_trials - 2.0, power, alpha) * sd_trial * (2 / n_trials) ** 0.5)
    raise ValueError(
        "power: give n_tasks and sd_task_diff, effect and sd_task_diff, effect and sd_trial, n_trials and sd_trial, or "
        "var_interaction, var_trial, n_tasks and n_trials"
    )


def _design_error(var_interaction: float, var_trial: float, n_tasks: int, n_trials: float) -> Power:
    if var_interaction < 0 or var_trial < 0 or n_tasks < 1 or n_trials < 1:
        raise ValueError("power: variances must be at least 0, n_tasks and n_trials at least 1")

    def error(tasks: float, trials: float) -> float:
        return sqrt((2 * var_interaction + 2 * var_trial / trials) / tasks)

    return Power(
        se=error(n_tasks, n_trials),
        se_if_trials_doubled=error(n_tasks, 2 * n_trials),
        se_if_tasks_doubled=error(2 * n_tasks, n_trials),
        floor_with_infinite_trials=(2 * var_interaction / n_tasks) ** 0.5,
    )
