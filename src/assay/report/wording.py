"""The words for every finding, in one place: how strongly something may be said is decided here and nowhere else.

Scores are on 0 to 1 inside and on 0 to 100 in words. A standard deviation is called one, a range is called a range, and
what is not decided is never called equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.statistics.scopes import TASKS_LIKE_THESE, THIS_TASK_ONLY

if TYPE_CHECKING:
    from assay.statistics.comparisons import Comparison
    from assay.statistics.estimates import Estimate, TaskEstimate
    from assay.statistics.planning import Plan
    from assay.statistics.ranking import Ranked

MISSING = {
    "no_approved_trials": "No approved trial yet: nothing can be said.",
    "need_at_least_2_trials": "One approved trial: no range can be given. Approve at least one more.",
    "need_at_least_2_tasks": "One task only: nothing can be said about other tasks of the kind.",
    "no_shared_tasks": "They share no task with approved trials, so that their scores cannot be compared fairly.",
    "zero_variance": "The scores do not vary, so that no range can be computed.",
    "all_ties": "Every task ended in a tie.",
    "no_weight": "Every task has weight 0.",
}
"""A sentence for each reason a number is missing."""


def number(value: float, places: int = 1) -> str:
    """A score of 0 to 1 as points of 100 with a real minus sign: 84.2, −3.1."""
    text = f"{100 * value:.{places}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def signed(value: float, places: int = 1) -> str:
    """As `number`, with its sign: +6.0, −3.1, 0.0."""
    text = number(value, places)
    return text if text.startswith("−") or float(text) == 0 else f"+{text}"


def count(n: int, noun: str) -> str:
    """`1 task`, `12 tasks`, `no task`."""
    return f"no {noun}" if n == 0 else f"{n:,} {noun}{'' if n == 1 else 's'}"


def estimate_line(found: Estimate) -> str:
    """`84.2 ± 3.1 sd, 95% range 78.9 to 88.4, 12 tasks, 58 approved trials`."""
    if found.mean is None:
        return MISSING[found.reason or "no_approved_trials"]
    parts = [number(found.mean) + (f" ± {number(found.sd)} sd" if found.sd is not None else "")]
    if found.ci95 is not None:
        parts.append(f"95% range {range_words(found.ci95)}")
    else:
        parts.append("no range")
    parts += [count(found.n_tasks, "task"), count(found.n_trials, "approved trial")]
    return ", ".join(parts)


def estimate_sentence(found: Estimate) -> str:
    """What a candidate's score says, and about what."""
    name = found.candidate
    if found.mean is None or found.ci95 is None:
        score = "" if found.mean is None else f"{name} scores {number(found.mean)}. "
        return score + MISSING.get(found.reason or "", "No range can be given.")
    basis = f"{count(found.n_tasks, 'task')}, {count(found.n_trials, 'approved trial')}"
    if found.scope == TASKS_LIKE_THESE:
        return (
            f"{name} scores {number(found.mean)}. On tasks of this kind its true score is plausibly "
            f"{range_words(found.ci95)} (95% range; {basis})."
        )
    these = "this task" if found.scope == THIS_TASK_ONLY else f"exactly these {found.n_tasks} tasks"
    return (
        f"Across {basis}, {name} scores {number(found.mean)}. Run again on {these}, it would plausibly score "
        f"{range_words(found.ci95)} (95% range); this says nothing yet about other tasks."
    )


def task_line(found: TaskEstimate) -> str:
    """`across 10 approved trials of auth scores 85.0, 95% range 84.2 to 85.8`."""
    text = f"across {count(found.n_trials, 'approved trial')} of {found.task} scores {number(found.mean)}"
    return text + (f", 95% range {range_words(found.ci95)}" if found.ci95 is not None else ", no range yet")


def range_words(interval: tuple[float, float]) -> str:
    """`78.9 to 88.4`."""
    return f"{number(interval[0])} to {number(interval[1])}"


def difference_range(interval: tuple[float, float]) -> str:
    """`+2.0 to +10.1`."""
    return f"{signed(interval[0])} to {signed(interval[1])}"


def verdict(found: Comparison) -> str:
    """The sentence that answers: is A better than B?"""
    a, b = found.a, found.b
    if found.difference is None:
        return f"{a} and {b}: {MISSING.get(found.reason or '', 'nothing can be said.')}"
    match found.decision:
        case "better":
            return _decided(found, f"{a} is better than {b}", abs(found.difference))
        case "worse":
            return _decided(found, f"{a} is worse than {b}", abs(found.difference))
        case "equivalent" if found.equivalence is not None:
            return (
                f"{a} and {b} are practically equal{_where(found)}: the difference lies within "
                f"±{number(found.equivalence.margin)} points, the margin that was set."
            )
        case _:
            return _undecided(found)


def _decided(found: Comparison, claim: str, size: float) -> str:
    text = f"{claim} by {number(size)} points{_where(found)}"
    if found.ci95 is not None:
        low, high = sorted(abs(x) for x in found.ci95) if found.ci95[0] * found.ci95[1] > 0 else found.ci95
        text += f" (95% range {number(low)} to {number(high)})"
    text += f". {_chance(found.p_value)}"
    tally = f"{found.a} won {found.tasks_won}, lost {found.tasks_lost}, tied {found.tasks_tied}"
    text += f" {tally} of {count(found.n_tasks, 'task')}." if found.n_tasks > 1 else ""
    if found.scope != TASKS_LIKE_THESE:
        few = "One task is" if found.n_tasks == 1 else f"{found.n_tasks} tasks are"
        text += f" {few} too few to say it about other tasks."
    return text


def _undecided(found: Comparison) -> str:
    a, b, size = found.a, found.b, found.difference or 0.0
    if abs(size) < 5e-4:
        ahead = f"{a} and {b} have the same mean"
    else:
        ahead = f"{a if size > 0 else b} is {number(abs(size))} points ahead"
    if found.ci95 is None:
        return f"Not decided: {ahead}. {MISSING.get(found.reason or '', 'No range can be given.')}"
    text = (
        f"Not decided: {ahead}, but anything from {difference_range(found.ci95)} for {a} fits the data{_where(found)}."
    )
    if found.to_decide is not None:
        text += f" {what_would_decide(found.to_decide)}"
    return text


def what_would_decide(plan: Plan) -> str:
    """How many tasks or trials would show a difference of the planned size, or that trials cannot."""
    size = f"To show a difference of {number(plan.detect)} points"
    if plan.scope != TASKS_LIKE_THESE:
        if plan.trials_needed is None:
            return f"{size}, more trials than can be run would be needed."
        return f"{size} you need about {count(plan.trials_needed, 'trial')} of each task (now {plan.n_trials:.0f})."
    ways = []
    if plan.tasks_needed is not None:
        ways.append(f"about {count(plan.tasks_needed, 'task')} like these (now {plan.n_tasks})")
    if plan.trials_needed is not None:
        ways.append(f"about {count(plan.trials_needed, 'trial')} of each task (now {plan.n_trials:.0f})")
    text = f"{size} you need {' or '.join(ways)}" if ways else f"{size} takes more tasks than can be run"
    if plan.more_trials_can_decide is False:
        text += "; more trials of the same tasks would not be enough"
    return f"{text}."


def rank_line(found: Ranked) -> str:
    """`rank 2; the data support any rank from 1 to 3`."""
    if found.rank is None:
        return "no rank: no approved trial"
    if found.rank_low == found.rank_high:
        return f"rank {found.rank}"
    return f"rank {found.rank}; the data support any rank from {found.rank_low} to {found.rank_high}"


def _where(found: Comparison) -> str:
    if found.scope == TASKS_LIKE_THESE:
        return " on tasks of this kind"
    return " on this task" if found.scope == THIS_TASK_ONLY else f" on exactly these {found.n_tasks} tasks"


def _chance(p_value: float | None) -> str:
    if p_value is None:
        return ""
    if p_value < 0.0005:
        how_often = "in fewer than 1 of 2,000"
    else:
        how_often = f"in about {max(1, round(1000 * p_value))} of 1,000"
    return f"If the two were equally good, a gap this large would appear {how_often} such benchmarks."
