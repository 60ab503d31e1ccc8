"""Run endpoints."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from assay.app.registry import runs as registry
from assay.domain.lifecycle import RunState
from assay.domain.selection import Selection
from assay.web.api.schemas import problems
from assay.web.context import services_of
from assay.web.errors import problem_response
from assay.web.responses import Answer
from assay.web.run_rows import (
    ListedRunDocument,
    RunListDocument,
    RunWithEvaluationsDocument,
    approvals_of_runs,
    run_document,
    run_row,
)

router = APIRouter()


@router.get(
    "/api/runs", tags=["runs"], response_model=RunListDocument, responses=problems(401, 404)
)
def runs(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    suite: str | None = None,
    batch_id: str | None = None,
    status: RunState | None = None,
) -> Response:
    """List runs, newest first; `status` filters by run state."""
    selection = Selection(
        suites=(suite,) if suite else (), batch_ids=(batch_id,) if batch_id else ()
    )
    services = services_of(request)
    summaries = registry.runs_in_state(services.workspace.store, selection, status, limit=limit)
    by_run = approvals_of_runs(services.workspace, summaries)
    rows = tuple(
        ListedRunDocument(row=run_row(run, by_run[run.id]), run_id=run.id) for run in summaries
    )
    return Answer(RunListDocument(runs=rows))


@router.get(
    "/api/runs/{run_id}",
    tags=["runs"],
    response_model=RunWithEvaluationsDocument,
    responses=problems(401, 404),
)
def run(
    request: Request,
    run_id: str,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    after: str | None = None,
) -> Response:
    """Return a run with its evaluations and telemetry; pending assessments have no scores."""
    services = services_of(request)
    (summary,) = registry.runs(services.workspace.store, Selection(runs=(run_id,)))
    return Answer(run_document(services.workspace, summary, limit=limit, after=after))


@router.get("/api/live", tags=["runs"])
async def live(request: Request) -> Response:
    """Stream runs as server-sent events when they change; if too many clients listen, answer 503,
    then poll `/queue.json`.
    """
    if not services_of(request).live.has_room:
        return problem_response(
            request.scope, 503, "live", "too many pages are connected.", remedy="Try again later."
        )
    # Without this header nginx holds events back until its buffer is full.
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(
        services_of(request).live.listen(), media_type="text/event-stream", headers=headers
    )
