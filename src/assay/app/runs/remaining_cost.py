"""Estimate what the rest of a stored run costs, from the cost of its calls so far."""

from __future__ import annotations

from dataclasses import replace
from math import fsum
from typing import TYPE_CHECKING

from assay.app.runs.cost_estimate import Tally
from assay.app.runs.preflight import _requests, _trials_alike
from assay.domain.calls import Role
from assay.domain.lifecycle import TO_COME, RunState, TrialState
from assay.domain.remaining_cost import (
    CALLS_NEEDED,
    CallsPaid,
    RemainingCost,
    TrialProgress,
    remaining_usd,
)

if TYPE_CHECKING:
    from assay.domain.identifiers import RunId
    from assay.domain.remaining_cost import CallsAhead, RoleAndModel
    from assay.domain.run import RunPlan
    from assay.domain.selection import CallTotals, RunSummary
    from assay.providers.directory import Directory
    from assay.store.opening import Store

_ANSWERING = frozenset({Role.CANDIDATE, Role.USER})
_UNFINISHED = frozenset(
    {RunState.RUNNING, RunState.SUBMITTED, RunState.PAUSED, RunState.INTERRUPTED}
)


def remaining_cost(
    store: Store, directory: Directory, plan: RunPlan, summary: RunSummary
) -> RemainingCost | None:
    """Return what an unfinished run will cost; None before `CALLS_NEEDED` answers, if a price is
    unknown, or if it is finished.
    """
    to_come = sum(summary.trials.get(state, 0) for state in TO_COME)
    if plan.imported or not to_come or summary.state not in _UNFINISHED:
        return None
    paid = paid_calls(store, summary.id)
    answered = sum(calls.calls for calls in paid.values())
    costs = [calls.usd for calls in paid.values() if calls.usd is not None]
    if answered < CALLS_NEEDED or len(costs) < len(paid):
        return None
    total = sum(summary.trials.values())
    progress = TrialProgress(
        total=total,
        begun=total - summary.trials.get(TrialState.PENDING, 0),
        failed=summary.trials.get(TrialState.FAILED, 0),
    )
    remaining = remaining_usd(calls_ahead(store, directory, plan), paid, progress)
    if remaining is None:
        return None
    paid_usd = fsum(costs)
    return RemainingCost(
        answered_calls=answered,
        paid_usd=paid_usd,
        remaining_usd=remaining,
        total_usd=paid_usd + remaining,
    )


def calls_ahead(store: Store, directory: Directory, plan: RunPlan) -> tuple[CallsAhead, ...]:
    """Return the predicted calls of all trials of a stored run, by role and model."""
    tally = Tally(directory)
    for planned, count in store.journal.tasks_of(plan.id):
        whole = replace(planned, trials=range(1, count + 1))
        for alike in _trials_alike(plan, whole.trials):
            for request in _requests(plan, whole, k=alike[0]):
                if plan.regrade_of is None or request.purpose.role not in _ANSWERING:
                    tally.add(request, times=len(alike))
    return tally.estimate().ahead


def calls_left(store: Store, directory: Directory, plan: RunPlan) -> tuple[CallsAhead, ...]:
    """Return the predicted calls that a stored run still needs, at the mean cost of its calls so
    far if there are enough.
    """
    paid = paid_calls(store, plan.id)
    enough = sum(calls.calls for calls in paid.values()) >= CALLS_NEEDED
    left = []
    for ahead in calls_ahead(store, directory, plan):
        so_far = paid.get((ahead.role, ahead.model))
        if so_far is not None:
            price = (
                so_far.usd / so_far.calls
                if enough and so_far.usd is not None
                else ahead.usd_per_call
            )
            ahead = replace(ahead, calls=max(0, ahead.calls - so_far.calls), usd_per_call=price)
        left.append(ahead)
    return tuple(left)


def paid_calls(store: Store, run: RunId) -> dict[RoleAndModel, CallsPaid]:
    """Return the number and cost of the run's answered calls by role and model."""
    by_key: dict[RoleAndModel, list[CallTotals]] = {}
    for totals in store.archive.calls.totals(run):
        if totals.calls > totals.failed:
            by_key.setdefault((totals.role, totals.model), []).append(totals)
    return {key: _sum(each) for key, each in by_key.items()}


def _sum(each: list[CallTotals]) -> CallsPaid:
    costs = [totals.cost_usd for totals in each if totals.cost_usd is not None]
    known = len(costs) == len(each)
    return CallsPaid(
        calls=sum(t.calls - t.failed for t in each), usd=fsum(costs) if known else None
    )
