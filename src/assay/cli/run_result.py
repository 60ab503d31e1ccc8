"""Estimates and results of runs as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.cli.output import counted, dollars, say

if TYPE_CHECKING:
    from assay.app.runs.execution import CostEstimate, RunResult


def asked(estimate: CostEstimate) -> str:
    """Return the estimated calls and cost as text: `35 calls, about $0.42, at most $1.20 without retries`."""
    asked = counted(estimate.calls, "call")
    if estimate.unpriced:
        return f"{asked}; the price of {', '.join(estimate.unpriced)} is unknown"
    if not estimate.calls or estimate.most_usd == 0:
        return f"{asked}, no cost"
    return f"{asked}, about {dollars(estimate.likely_usd)}, at most {dollars(estimate.most_usd)} without retries"


def say_result(result: RunResult) -> None:
    """Print the result of a run as text."""
    from assay.app.runs import documents

    document = documents.run_result(result)
    trials, waiting = document.trials, document.assessments["pending"]
    cost = dollars(document.cost_usd, unpriced=document.unpriced_calls)
    say(f"run {document.run_id}: {trials['done']} of {trials['total']} trials done, {trials['failed']} failed; {cost}")
    if document.budget is not None and document.budget.over_usd:
        over, budget = dollars(document.budget.over_usd), dollars(document.budget.usd)
        say(f"  {over} over the budget of {budget}: a server counted more tokens than the worst case of its call")
    for failure in document.failures[:20]:
        why = f"{failure.kind} ({failure.fault}): {failure.detail}"
        say(f"  failed: {failure.id} {failure.task} trial {failure.trial}: {why}")
    if len(document.failures) > 20:
        say(f"  … and {len(document.failures) - 20} more; `assay show {document.run_id}` lists them")
    if trials["failed"]:
        more = f" --budget {result.enough_usd:g}" if result.enough_usd is not None else ""
        say(f"  try the failed ones again with: assay resume {document.run_id}{more}")
    if unproven := [name for name, record in result.calibrations.items() if record is None]:
        say(f"uncalibrated: {', '.join(unproven)}; `assay calibrate MODEL` measures a judge")
    if waiting:
        wait = f"{counted(waiting, 'assessment')} {'awaits' if waiting == 1 else 'await'} review"
        say(f"{wait}: `assay serve`, or `assay review --run {document.run_id}`")
    elif trials["done"]:
        say(f"no assessment awaits review; see `assay stats --run {document.run_id}`")
