"""Sentences about one candidate: its score, its range and its rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.report.wording.numbers import count, number, range_words, tasks_in_families
from assay.report.wording.reasons import MISSING, why_no_range
from assay.statistics.scopes import TASKS_LIKE_THESE, THIS_TASK_ONLY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.analysis.anytime import Anytime
    from assay.statistics.estimates import Estimate, TaskEstimate
    from assay.statistics.ranking import Ranked


def estimate_line(estimate: Estimate) -> str:
    """Summarise a score: `84.2 ± 3.1 sd, 95% range 78.9 to 88.4, 12 tasks, 58 trials`."""
    if estimate.mean is None:
        return MISSING[estimate.reason or "no_approved_trials"]
    return ", ".join(
        (
            number(estimate.mean)
            + (f" ± {number(estimate.sd)} sd" if estimate.sd is not None else ""),
            range_or_none(estimate.ci95, estimate.n_tasks),
            tasks_in_families(estimate.n_tasks, estimate.n_families),
            count(estimate.n_trials, "trial"),
        )
    )


def estimate_sentence(estimate: Estimate) -> str:
    name = estimate.candidate
    if estimate.mean is None or estimate.ci95 is None:
        score = "" if estimate.mean is None else f"{name} scores {number(estimate.mean)}. "
        return score + _why_no_range(estimate)
    basis = f"{tasks_in_families(estimate.n_tasks, estimate.n_families)}, {count(estimate.n_trials, 'trial')}"
    if estimate.method == "bounded_identical":
        return _identical_scores(estimate, estimate.mean, estimate.ci95)
    if estimate.scope == TASKS_LIKE_THESE:
        return (
            f"{name} scores {number(estimate.mean)}. On tasks of this kind its true score is plausibly "
            f"{range_words(estimate.ci95)} (95% range; {basis})."
        )
    single = estimate.scope == THIS_TASK_ONLY or estimate.n_tasks == 1
    these = "this task" if single else f"exactly these {estimate.n_tasks} tasks"
    return (
        f"Across {basis}, {name} scores {number(estimate.mean)}. Run again on {these}, it would plausibly score "
        f"{range_words(estimate.ci95)} (95% range); this says nothing yet about other tasks."
    )


def range_scope(estimates: Sequence[Estimate]) -> str:
    """State which tasks the ranges in a table of scores apply to; empty without ranges, or if the
    ranges differ in scope.
    """
    scopes = {
        (estimate.scope, estimate.n_tasks) for estimate in estimates if estimate.ci95 is not None
    }
    if not scopes:
        return ""
    if {scope for scope, _ in scopes} == {TASKS_LIKE_THESE}:
        return "95% range: plausible scores on tasks of this kind."
    if TASKS_LIKE_THESE in {scope for scope, _ in scopes}:
        return ""
    again = (
        "if this task is run again"
        if {n for _, n in scopes} == {1}
        else "if exactly these tasks are run again"
    )
    return f"95% range: plausible scores {again}; it says nothing yet about other tasks."


def task_line(task: TaskEstimate) -> str:
    """Summarise a task: `auth: 85.0 over 10 trials (95% range 84.2 to 85.8)`."""
    ranged = "no range yet" if task.ci95 is None else f"95% range {range_words(task.ci95)}"
    return f"{task.task}: {number(task.mean)} over {count(task.n_trials, 'trial')} ({ranged})"


def anytime_mean(name: str, anytime: Anytime) -> str:
    """State a candidate's anytime-valid range, which remains valid if it is checked repeatedly."""
    if anytime.ci95 is None:
        return f"{name}, at any time: {MISSING.get(anytime.reason or '', 'no range.')}"
    return f"{name}, at any time: {range_words(anytime.ci95)} over {count(anytime.n, anytime.unit)}"


def rank_line(candidate: Ranked) -> str:
    """State a rank: `rank 2; the data support any rank from 1 to 3`."""
    if candidate.rank is None:
        return "no rank: no trials count"
    if candidate.rank_low == candidate.rank_high:
        return f"rank {candidate.rank}"
    return f"rank {candidate.rank}; the data support any rank from {candidate.rank_low} to {candidate.rank_high}"


def rank_range(candidate: Ranked) -> str:
    """List the ranks that cannot be ruled out: `2`, or `1 to 3`."""
    if candidate.rank is None:
        return "–"
    if candidate.rank_low == candidate.rank_high:
        return f"{candidate.rank_low}"
    return f"{candidate.rank_low} to {candidate.rank_high}"


def range_or_none(interval: tuple[float, float] | None, n_tasks: int) -> str:
    """Write the range of a score, or state that the score has none (although single tasks may have
    a range).
    """
    if interval is not None:
        return f"95% range {range_words(interval)}"
    return "no range" if n_tasks < 2 else "no range over all tasks"


def _why_no_range(estimate: Estimate) -> str:
    if estimate.reason == "zero_variance":
        return "No task's score varies between its trials, so no range can be computed from them."
    return why_no_range(estimate.reason, estimate.n_tasks)


def _identical_scores(estimate: Estimate, mean: float, ci95: tuple[float, float]) -> str:
    like = estimate.scope == TASKS_LIKE_THESE
    families = estimate.n_families
    n, unit = (estimate.n_tasks, "task") if like else (estimate.n_trials, "trial")
    if like and families is not None:
        n, unit = families, "family"
    # The share p of different outcomes that n equal outcomes cannot rule out at 5%: (1 - p)**n =
    # 0.05.
    share = 100 * (1 - 0.05 ** (1 / n))
    others = "other tasks" if like else "runs"
    direction = "lower" if mean >= 1 else "higher" if mean <= 0 else "differently"
    if like:
        given = f"All {count(n, unit)} average {number(mean)} for {estimate.candidate}."
    else:
        given = f"All {count(n, 'trial')} of {estimate.candidate} gave {number(mean)}."
    return (
        f"{given} {count(n, f'identical {unit} score').capitalize()} cannot rule out that up to about {share:.0f}% of {others} "
        f"would score {direction}; the range is {range_words(ci95)}."
    )
