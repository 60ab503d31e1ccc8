"""Sentences about planning: the number of tasks or trials that would show a difference, and their
cost.
"""

from __future__ import annotations

from typing import Final

from assay.domain.amounts import money
from assay.report.wording.numbers import count, number, tasks_in_families
from assay.report.wording.reasons import MISSING
from assay.statistics.planning import Plan
from assay.statistics.scopes import TASKS_LIKE_THESE

TOO_MANY: Final = 10_000
"""Larger numbers of tasks or trials are not printed, because nobody would run them."""


def what_would_decide(plan: Plan) -> str:
    """State how many tasks or trials would show a difference of the planned size, or that more
    trials cannot.
    """
    size = f"To show a difference of {number(plan.detect)} points"
    ways = _ways(plan)
    if plan.scope != TASKS_LIKE_THESE:
        return (
            f"{size} you need {ways[0]}."
            if ways
            else f"{size} would take more trials than is practical."
        )
    text = (
        f"{size} you need {' or '.join(ways)}"
        if ways
        else f"{size} would take more tasks than is practical"
    )
    return f"{text}{_trials_alone(plan)}."


def plan_sentence(
    a: str,
    b: str,
    plan: Plan,
    *,
    more_tasks: tuple[int, int | None, float | None] | None,
    more_trials: tuple[int, int | None, float | None] | None,
) -> str:
    """State how many tasks or trials would show the planned difference between two candidates, and
    what they cost.

    `more_tasks`, `more_trials`: trials to run, reviews needed, and cost in USD, for more tasks or
    for more trials per task.
    """
    pair, size, often = (
        f"{a} and {b}",
        f"a difference of {number(plan.detect)} points",
        _often(plan.power),
    )
    now = f"{count(plan.n_tasks, 'task')} of {_trials_now(plan)} counted {'trial' if plan.n_trials == 1 else 'trials'} each"
    if plan.mde is not None and plan.mde <= plan.detect:
        return f"{pair}: {now} already show {size} {often}."
    start = f"{pair}: with {now}, "
    if plan.mde is None:
        few = plan.reason == "need_at_least_4_families"
        start += (
            "there are fewer than four families of tasks, too few to"
            if few
            else "there is too little variation yet to"
        )
        start += " say what difference could be shown"
    elif plan.mde >= 1:
        start += "not even a difference of 100 points could be shown"
    else:
        start += f"only a difference of {number(plan.mde)} points would show {often}"
    ways = []
    if plan.tasks_needed is not None and plan.tasks_needed <= TOO_MANY and more_tasks is not None:
        tasks = f"about {count(plan.tasks_needed, 'task')} like these{_from_families(plan)}"
        ways.append(f"{tasks} in all ({_bill(*more_tasks)})")
    if (
        plan.trials_needed is not None
        and plan.trials_needed <= TOO_MANY
        and more_trials is not None
    ):
        each = "of each task " if plan.n_tasks > 1 else ""
        ways.append(
            f"about {count(plan.trials_needed, 'trial')} {each}in all ({_bill(*more_trials)})"
        )
    if not ways:
        unit = "tasks" if plan.scope == TASKS_LIKE_THESE else "trials"
        text = f"{start}. To show a difference of {number(plan.detect)} points would take more {unit} than is practical"
    else:
        text = f"{start}. To show a difference of {number(plan.detect)} points you need {', or '.join(ways)}"
    return f"{text}{_trials_alone(plan) if plan.scope == TASKS_LIKE_THESE else ''}."


def no_plan(a: str, b: str, *, reason: str | None) -> str:
    return f"{a} and {b}: no plan yet. {MISSING.get(reason or '', MISSING['no_shared_tasks'])}"


def plan_summary(
    *,
    detect: float,
    n_pairs: int,
    n_already: int,
    hardest: str | None,
    closest: str | None,
    all_decided: bool,
) -> str:
    """Summarise the plans for all pairs: the sample size that is enough for each, and the
    highest-ranked undecided pair.
    """
    size = f"a difference of {number(detect)} points"
    if n_already == n_pairs:
        which = "The pair" if n_pairs == 1 else f"Each of the {n_pairs} pairs"
        text = f"{which} already has enough trials to show {size}."
    elif n_pairs == 1:
        text = hardest or closest or f"It is not known yet how many trials it takes to show {size}."
    elif hardest is None:
        text = f"For some pairs, it is not known yet how many trials it takes to show {size}."
    else:
        text = f"The pair that needs the most determines what is enough for all {n_pairs} pairs. {hardest}"
    if all_decided:
        return f"{text} {'All pairs are' if n_pairs > 1 else 'It is'} already decided."
    if closest is not None and closest != hardest and n_pairs > 1:
        text += f" The highest-ranked open question: {closest}"
    return text


def _ways(plan: Plan) -> list[str]:
    ways = []
    if plan.tasks_needed is not None and plan.tasks_needed <= TOO_MANY:
        now = (
            str(plan.n_tasks)
            if plan.families_needed is None
            else tasks_in_families(plan.n_tasks, plan.n_families)
        )
        ways.append(
            f"about {count(plan.tasks_needed, 'task')} like these{_from_families(plan)} (now {now})"
        )
    if plan.trials_needed is not None and plan.trials_needed <= TOO_MANY:
        of_each = "of each task " if plan.n_tasks > 1 else ""
        ways.append(
            f"about {count(plan.trials_needed, 'trial')} {of_each}(now {_trials_now(plan)})"
        )
    return ways


def _from_families(plan: Plan) -> str:
    """State how many families the needed tasks must come from; empty if no tasks share a family."""
    return "" if plan.families_needed is None else f" from {count(plan.families_needed, 'family')}"


def _trials_now(plan: Plan) -> str:
    return f"{plan.n_trials:.1f}".removesuffix(".0")


def _trials_alone(plan: Plan) -> str:
    """State that more trials of the same tasks cannot decide, or that this is unknown."""
    if plan.more_trials_can_decide is None:
        return "; no task has two counted trials yet, so the effect of more trials is unknown"
    if not plan.more_trials_can_decide:
        return "; more trials of the same tasks would not be enough"
    return ""


def _bill(trials: int, reviews: int | None, usd: float | None) -> str:
    parts = [
        f"{trials:,} more {'trial' if trials == 1 else 'trials'} to run"
        if trials
        else "no more trials to run"
    ]
    if reviews:
        parts.append(f"about {count(reviews, 'review')}")
    parts.append(f"about {money(usd)}" if usd is not None else "cost unknown")
    return ", ".join(parts)


def _often(power: float) -> str:
    """Write a power in words: `4 times in 5` for the usual power, otherwise for example `90% of the
    time`.
    """
    return "4 times in 5" if abs(power - 0.8) < 1e-9 else f"{100 * power:.0f}% of the time"
