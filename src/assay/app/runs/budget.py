"""Change a stored run's budget, and suggest a budget that covers trials that failed for lack of budget."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from assay.app.runs.cost_estimate import Tally, check_cap
from assay.app.runs.preflight import _requests
from assay.domain.errors import InputError
from assay.domain.failure import Fault
from assay.engine.estimate import CostEstimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.workspace import Workspace
    from assay.domain.run import RunPlan
    from assay.domain.selection import RunSummary, TrialRow


def with_budget(workspace: Workspace, plan: RunPlan, summary: RunSummary, budget_usd: float | None) -> RunPlan:
    """Return the plan with this budget (None keeps the current one); raises `InputError` if the run cannot have it."""
    if budget_usd is None:
        return plan
    models = [candidate.model for candidate in plan.candidates] if plan.regrade_of is None else []
    asked = [model for model in (*models, *(judge.model for judge in plan.judges)) if model is not None]
    unpriced = [model.ref for model in asked if workspace.directory.cost_usd(model, input_tokens=1, output_tokens=1) is None]
    check_cap(CostEstimate(calls=0, likely_usd=None, most_usd=None, unpriced=tuple(dict.fromkeys(unpriced))), budget_usd)
    spent = max(summary.booked_usd, summary.cost_usd or 0.0)
    if spent >= budget_usd:
        from assay.report import wording  # loads NumPy, which most runs do not need

        problem = f"is {wording.money(budget_usd)}, but run {plan.id} has already cost {wording.money(spent)}."
        remedy = "The budget covers the whole run, including what it has cost so far. Set a larger one."
        raise InputError("--budget", problem, remedy=remedy)
    return replace(plan, budget_usd=budget_usd)


def enough_usd(workspace: Workspace, plan: RunPlan, summary: RunSummary, failures: Sequence[TrialRow]) -> float | None:
    """Return a budget for the whole run that probably covers its trials that failed for lack of budget.

    The budget is above the current one and covers the worst case of the next calls. None if a price is unknown or no trial
    failed for lack of budget.
    """
    left: dict[str, list[int]] = {}
    for row in failures:
        if row.failure is not None and row.failure.fault is Fault.BUDGET:
            left.setdefault(row.task, []).append(row.k)
    if not left or summary.budget_usd is None:
        return None
    rest, dearest = Tally(workspace), 0.0
    for planned, count in workspace.journal.tasks_of(plan.id):
        for k in left.get(planned.task.id, ()):
            for request in _requests(plan, replace(planned, trials=range(1, count + 1)), k=k):
                rest.add(request, times=1)
                single = Tally(workspace)
                single.add(request, times=1)
                dearest = max(dearest, single.estimate().most_usd or 0.0)
    likely = rest.estimate().likely_usd
    if likely is None:
        return None
    # Near the end of a budget, calls are made one at a time, and a model that uses more tokens than expected reserves more.
    enough = summary.booked_usd + max(likely, plan.concurrency * dearest)
    return _rounded_up(enough if enough > summary.budget_usd else 1.5 * summary.budget_usd)


def _rounded_up(usd: float) -> float:
    """Round up to two significant digits, so that the suggested amount is easy to type."""
    if usd <= 0:
        return 0.01
    digits = 1 - floor(log10(usd))
    return round(ceil(usd * 10.0**digits - 1e-9) / 10.0**digits, max(digits, 0))
