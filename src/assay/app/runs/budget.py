"""Change a stored run's budget, and suggest a budget that covers the trials that a spent budget
left undone.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, fsum, log10
from typing import TYPE_CHECKING, Final

from assay.app.runs.causes import pause_of
from assay.app.runs.cost_estimate import Tally, check_cap
from assay.app.runs.preflight import _requests
from assay.domain.amounts import money
from assay.domain.errors import InputError
from assay.domain.failure import Fault
from assay.domain.lifecycle import TrialState
from assay.domain.selection import Selection
from assay.engine.estimate import CostEstimate

if TYPE_CHECKING:
    from assay.domain.identifiers import RunId
    from assay.domain.run import RunPlan
    from assay.domain.selection import CallTotals, RunSummary
    from assay.providers.directory import Directory
    from assay.store.opening import Store


_MARGIN: Final = 1.1
"""Allowance for remaining calls that cost more than the calls so far did on average."""


def with_budget(
    directory: Directory, plan: RunPlan, summary: RunSummary, budget_usd: float | None
) -> RunPlan:
    """Return the plan with this budget (None keeps the current one); raises `InputError` if the run
    cannot have it.
    """
    if budget_usd is None:
        return plan
    models = [candidate.model for candidate in plan.candidates] if plan.regrade_of is None else []
    asked = [
        model for model in (*models, *(judge.model for judge in plan.judges)) if model is not None
    ]
    unpriced = [
        model.ref
        for model in asked
        if directory.cost_usd(model, input_tokens=1, output_tokens=1) is None
    ]
    check_cap(
        CostEstimate(
            calls=0, likely_usd=None, most_usd=None, unpriced=tuple(dict.fromkeys(unpriced))
        ),
        budget_usd,
    )
    spent = max(summary.booked_usd, summary.cost_usd or 0.0)
    if spent >= budget_usd:
        problem = f"is {money(budget_usd)}, but run {plan.id} has already cost {money(spent)}."
        remedy = (
            "The budget covers the whole run, including what it has cost so far. Set a larger one."
        )
        raise InputError("--budget", problem, remedy=remedy)
    return replace(plan, budget_usd=budget_usd)


def enough_usd(
    store: Store, directory: Directory, plan: RunPlan, summary: RunSummary
) -> float | None:
    """Return a budget for the whole run that probably covers the trials that its budget left
    undone.

    It adds to the cost so far what the remaining calls cost if they cost what this run's calls of
    the same model and role really cost, plus the reservation of one call. A model that has not
    answered yet counts with its estimate. None if a price is unknown, or if the budget has not
    stopped the run.
    """
    if summary.budget_usd is None:
        return None
    left = _left_by_budget(store, summary)
    if not left:
        return None
    rest, dearest = Tally(directory, paid=paid_per_call(store, plan.id)), 0.0
    for planned, count in store.journal.tasks_of(plan.id):
        for k in left.get(planned.task.id, ()):
            for request in _requests(plan, replace(planned, trials=range(1, count + 1)), k=k):
                rest.add(request, times=1)
                dearest = max(dearest, rest.worst_usd(request) or 0.0)
    likely = rest.estimate().likely_usd
    if likely is None:
        return None
    # The last call is made only if its worst case fits, even if it will cost less.
    enough = summary.booked_usd + _MARGIN * likely + dearest
    return _rounded_up(enough if enough > summary.budget_usd else 1.5 * summary.budget_usd)


def _left_by_budget(store: Store, summary: RunSummary) -> dict[str, list[int]]:
    """Return the trial numbers, by task, of the trials that a spent budget left undone."""
    pause = pause_of(store, summary)
    paused = pause is not None and pause.by_budget
    left: dict[str, list[int]] = {}
    if not paused and not summary.trials.get(TrialState.FAILED):
        return left
    for row in store.archive.trials.matching(Selection(runs=(summary.id,)), failed_only=not paused):
        failed = row.failure is not None and (paused or row.failure.fault is Fault.BUDGET)
        if failed or row.state is TrialState.PENDING:
            left.setdefault(row.task, []).append(row.k)
    return left


def paid_per_call(store: Store, run: RunId) -> dict[tuple[str, str], float]:
    """Return the mean cost of the run's calls so far by role and model; models with a call of
    unknown cost are left out.
    """
    paid: dict[tuple[str, str], list[CallTotals]] = {}
    for totals in store.archive.calls.totals(run):
        paid.setdefault((totals.role, totals.model), []).append(totals)
    means = {}
    for key, each in paid.items():
        calls = sum(totals.calls - totals.failed for totals in each)
        costs = [totals.cost_usd for totals in each if totals.calls > totals.failed]
        known = [cost for cost in costs if cost is not None]
        if calls and len(known) == len(costs):
            means[key] = fsum(known) / calls
    return means


def _rounded_up(usd: float) -> float:
    """Round up to two significant digits, so that the suggested amount is easy to type."""
    if usd <= 0:
        return 0.01
    digits = 1 - floor(log10(usd))
    return round(ceil(usd * 10.0**digits - 1e-9) / 10.0**digits, max(digits, 0))
