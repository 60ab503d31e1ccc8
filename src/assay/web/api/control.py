"""Endpoints that pause, resume, cancel, extend and regrade runs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from assay.app.registry import removal, runs
from assay.app.runs import batch, control, extension, regrade as regrading
from assay.app.runs.run_documents import cost_estimate
from assay.app.runs.run_request import ExtendRequest, RegradeRequest
from assay.app.suites import model_candidate
from assay.domain.errors import InputError, Refused, UnknownName
from assay.domain.selection import Selection
from assay.web.context import Services, services_of
from assay.web.responses import Answer, Body
from assay.web.run_rows import LiveRunDocument, approvals_of_runs, looked_at

if TYPE_CHECKING:
    from assay.app.runs.execution import CostEstimate

router = APIRouter()


class WishBody(Body):
    """A requested action on a run; `budget` replaces a resumed run's budget, which includes the
    cost so far.
    """

    wish: Literal["pause", "resume", "cancel", "collect"]
    budget: float | None = None


class RemovalBody(Body):
    """A request to delete, archive or restore a run, with the reason, which the audit log shows."""

    archived: bool = False
    reason: str = Field(default="", max_length=2000)


class ExtensionBody(Body):
    """Additions to a run: more trials per task, trials until enough are approved or pending, or new
    models.

    `replacing` is the number of human decisions that the caller agrees to discard, because a joint
    judge must grade every trial again when a candidate joins.
    """

    trials: int = 0
    until_approved: int | None = None
    candidates: list[str] = Field(default_factory=list, max_length=50)
    replacing: int = Field(default=0, ge=0)
    only_look: bool = False


class RegradeBody(Body):
    """Request to regrade a run's stored answers.

    `judge` is provider/name, `human`, or None for the run's own judges.
    """

    judge: str | None = Field(default=None, max_length=300)
    only_look: bool = False


_FIELDS: Final = {
    "--trials": "trials",
    "--until-approved": "until_approved",
    "--candidate": "candidates",
    "--budget": "budget",
    "": "candidates",
}
"""Maps the command-line option in an error message to the request field; errors about model
references have no option.
"""


@router.post("/api/runs/{run_id}/steer", tags=["runs"])
def steer(request: Request, run_id: str, body: WishBody) -> Response:
    """Pause, resume, cancel or collect a run.

    This server resumes a run only if no other process executes it.
    """
    services = services_of(request)
    if body.wish == control.PAUSE:
        control.pause(services.workspace.store, run_id)
    elif body.wish == control.CANCEL:
        cancelled = control.cancel(services.workspace.store, run_id)
        if control.COLLECT in control.moves(cancelled):
            # this server is busy; the jobs are cancelled when the run is next collected
            with suppress(Refused):
                services.runner.collect(cancelled.id)
    elif body.wish == control.COLLECT:
        services.runner.collect(control.collectable(services.workspace.store, run_id))
    else:
        left = control.needs_somebody(services.workspace, run_id)
        if left is not None:
            try:
                services.runner.resume(left.id, budget_usd=body.budget)
            except InputError as error:
                error.where = _FIELDS.get(error.where, error.where)
                raise
    return Answer({"run": row_of(services, run_id)})


@router.get("/api/runs/{run_id}/jobs", tags=["runs"])
def jobs(request: Request, run_id: str) -> Response:
    """Return a run and the last known state of its batches."""
    (result,) = batch.status(services_of(request).workspace.store, run_id)
    return Answer(batch.batch_document(result))


@router.post("/api/runs/{run_id}/delete", tags=["runs"])
def delete(request: Request, run_id: str, body: RemovalBody) -> Response:
    """Remove a run from all lists and statistics; with `archived`, it stays readable by its id."""
    workspace = services_of(request).workspace
    events = removal.take_out(workspace, [run_id], reason=body.reason, archived=body.archived)
    return Answer(removal.events_document(events))


@router.post("/api/runs/{run_id}/restore", tags=["runs"])
def restore(request: Request, run_id: str, body: RemovalBody) -> Response:
    """Restore a deleted run, or with `archived` an archived run, with its reviews and files."""
    event = removal.restore(
        services_of(request).workspace, run_id, reason=body.reason, archived=body.archived
    )
    return Answer(removal.events_document([event]))


@router.post("/api/runs/{run_id}/extend", tags=["runs"])
def extend(request: Request, run_id: str, body: ExtensionBody) -> Response:
    """Add trials or candidates to a run and execute them; with `only_look`, only estimate the
    cost.
    """
    services = services_of(request)
    if not (body.trials or body.until_approved or body.candidates):
        raise InputError(
            "trials",
            "nothing to add was given.",
            remedy="Set trials, until_approved or candidates.",
        )
    estimates: list[CostEstimate] = []
    replaced = (
        extension.decisions_replaced(services.workspace.store, run_id) if body.candidates else 0
    )
    if not body.only_look:
        services.runner.check_room()
        # Without this check, adding a model to a joint run discarded every decision silently. The
        # number must match, so that decisions made after the confirmation are not discarded with
        # it.
        if replaced > body.replacing:
            decisions = f"{replaced} decision{'s' * (replaced > 1)} on grades given to all candidates together"
            problem = f"has {decisions}. Another candidate requires new grades, which must be reviewed again."
            raise Refused(run_id, problem, remedy=f"To accept this, send replacing: {replaced}.")
    try:
        additions = ExtendRequest(
            more_trials=body.trials,
            until_approved=body.until_approved,
            candidates=tuple(
                model_candidate(services.workspace.settings, name) for name in body.candidates
            ),
        )
        plan = extension.add_to(
            services.workspace,
            run_id,
            additions,
            announce=estimates.append,
            only_look=body.only_look,
        )
    except InputError as error:
        if not isinstance(error, UnknownName):
            error.where = _FIELDS.get(error.where, error.where)
        raise
    # If another process executes the run, it picks up the new trials itself.
    if not body.only_look and not services.workspace.journal.is_carried_out(plan.id):
        services.runner.begin(plan)
    estimate = cost_estimate(estimates[0])
    return Answer({"estimate": estimate, "replaces": replaced, "run": row_of(services, plan.id)})


@router.post("/api/runs/{run_id}/regrade", tags=["runs"])
def regrade(request: Request, run_id: str, body: RegradeBody) -> Response:
    """Regrade a run's stored answers in a new run; with `only_look`, only estimate the cost."""
    services = services_of(request)
    if not body.only_look:
        services.runner.check_room()
    ahead = regrading.planned(services.workspace, run_id, RegradeRequest(judge=body.judge))
    answer = {"estimate": cost_estimate(ahead.estimate), "notes": list(ahead.notes)}
    if body.only_look:
        return Answer(answer)
    services.workspace.journal.open_run(ahead.plan, ahead.tasks)
    services.runner.resume(ahead.plan.id)
    return Answer({**answer, "run_id": ahead.plan.id}, status_code=201)


def row_of(services: Services, run_id: str) -> LiveRunDocument:
    (summary,) = runs.runs(services.workspace.store, Selection(runs=(run_id,)))
    given = approvals_of_runs(services.workspace, [summary])[summary.id]
    return looked_at(services.workspace, summary, given, services.runner)
