"""Endpoints for other programs: import a finished run, and read a whole batch."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Body, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from assay.app.integrations import received_runs
from assay.app.registry import removal, runs
from assay.app.review.review_documents import ApprovalsDocument, approvals_document
from assay.app.runs.scenario_runs import count_runs
from assay.app.statistics.statistics_documents import MeanDocument, mean_document
from assay.app.wire import Json, document, inlined
from assay.domain.lifecycle import AssessmentState, RunState, TrialState
from assay.domain.selection import Excluded, RunSummary, Selection
from assay.statistics.warnings import Caution
from assay.web.api.schemas import examples_of, problems
from assay.web.context import services_of
from assay.web.responses import Answer
from assay.web.run_rows import (
    RunRowDocument,
    TelemetryDocument,
    agent_runs,
    approvals_of_runs,
    run_row,
    telemetry,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.statistics.live_report import StatisticsOverview
    from assay.app.workspace import Workspace

router = APIRouter(tags=["runs"])


@document
class BatchRunDocument:
    """A run of a batch."""

    row: RunRowDocument = inlined()
    run_id: str
    runId: str


@document
class ListedBatchDocument:
    """A batch in a list; `completedAt` is null while one of its runs is open."""

    batch_id: str
    batchId: str
    createdAt: str
    completedAt: str | None
    totalRuns: int
    finishedRuns: int
    waiting: int


@document
class RemovedRunDocument:
    """A run of a batch that was deleted, archived or replaced by a later version of its log;
    `removal` says which of them.
    """

    runId: str
    removal: str
    removedAt: str
    replacedBy: str | None


@document
class BatchDocument:
    """A batch with its newest runs, the totals of all runs, and each candidate's mean over the
    trials that count.

    `approvals` counts the counted grades that people approved or corrected, by how each decision
    came about.
    """

    batch: ListedBatchDocument = inlined()
    avgScore: float | None
    runs: tuple[BatchRunDocument, ...]
    trials: dict[str, int]
    assessments: dict[str, int]
    approvals: ApprovalsDocument
    candidates: tuple[MeanDocument, ...]
    excluded: Excluded | dict[str, int]
    warnings: tuple[Caution, ...]
    telemetry: TelemetryDocument
    agentRuns: tuple[Json, ...]
    removedRuns: tuple[RemovedRunDocument, ...] = ()


@document
class BatchListDocument:
    """Batches, newest first."""

    batches: tuple[ListedBatchDocument, ...]


@document
class ReceivedRunDocument:
    """The imported run, which this request or an earlier one created."""

    run_id: str
    runId: str
    message: str


class EvaluatorResult(BaseModel):
    """The result of one evaluator. Unknown fields are kept."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True)

    evaluator_name: str = Field(max_length=200)
    score: float | None = Field(None, description="From 0 to maxScore; null if it gave no score.")
    max_score: float = 1.0
    weight: float = Field(
        1.0, description="At least 0. Share in the run's score; 1 for each evaluator by default."
    )
    details: Any = None
    graded_by: str | None = Field(
        None,
        description="model, rule or person; if absent, `judge`, `llm` or `ai` in the name means model.",
    )


class FinishedRun(BaseModel):
    """A finished run of another harness.

    Unknown fields are kept, and names may be in snake_case, such as `run_id`.
    """

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True)

    suite: str = Field(max_length=200)
    scenario: str = Field(max_length=500)
    agent: str = Field(max_length=200)
    run_id: str | None = Field(None, max_length=200, description="Kept if it is a plain name.")
    batch_id: str | None = Field(None, max_length=200)
    tier: str | None = Field(None, max_length=40)
    family: str | None = Field(
        None, max_length=200, description="The source that it shares with other scenarios."
    )
    model: str | None = Field(None, max_length=200)
    status: str | None = Field(None, max_length=40)
    started_at: str | int | float | None = None
    completed_at: str | int | float | None = None
    total_score: float | None = None
    weighted_score: float | None = None
    is_successful: bool | None = None
    specialist_enabled: bool | None = None
    specialist_name: str | None = Field(None, max_length=200)
    specialist_version: str | None = Field(None, max_length=100)
    evaluations: list[EvaluatorResult] | dict[str, Any] | None = None
    telemetry: dict[str, Any] | None = None


EXAMPLES: Final = examples_of("received_run")


async def _sent(request: Request) -> bytes:
    """Return the raw body, which is stored unchanged."""
    return await request.body()


@router.post(
    "/api/runs",
    status_code=201,
    response_model=ReceivedRunDocument,
    responses=problems(400, 401, 409, 413, 415, 422)
    | {
        200: {"model": ReceivedRunDocument, "description": "The same content was already imported."}
    },
)
def receive_run(
    request: Request,
    body: Annotated[FinishedRun, Body(openapi_examples=EXAMPLES)],
    # The raw body, because the parsed model loses the order of fields and the notation of numbers.
    content: Annotated[bytes, Depends(_sent)],
) -> Response:
    """Import a finished run from another program; scores given by models await review."""
    received = received_runs.receive(services_of(request).workspace, content)
    message = (
        "This run was already imported; nothing was changed."
        if received.again
        else "The run was imported."
    )
    answer = ReceivedRunDocument(run_id=received.run_id, runId=received.run_id, message=message)
    headers = {"location": f"/api/runs/{received.run_id}"}
    return Answer(answer, status_code=200 if received.again else 201, headers=headers)


@router.get("/api/batches", response_model=BatchListDocument, responses=problems(401))
def batches(request: Request, limit: Annotated[int, Query(ge=1, le=1000)] = 20) -> Response:
    """List batches, newest first."""
    by_name: dict[str, list[RunSummary]] = {}
    for run in runs.newest_first(services_of(request).workspace.store):
        if run.batch_id is not None and (run.batch_id in by_name or len(by_name) < limit):
            by_name.setdefault(run.batch_id, []).append(run)
    workspace = services_of(request).workspace
    return Answer(
        BatchListDocument(
            batches=tuple(_listed(workspace, name, of_batch) for name, of_batch in by_name.items())
        )
    )


def _listed(
    workspace: Workspace, name: str, summaries: Sequence[RunSummary]
) -> ListedBatchDocument:
    return ListedBatchDocument(
        batch_id=name,
        batchId=name,
        createdAt=min(summary.started for summary in summaries),
        completedAt=_completed(summaries),
        totalRuns=count_runs(workspace.store, summaries),
        finishedRuns=sum(summary.state is RunState.FINISHED for summary in summaries),
        waiting=sum(summary.assessments.get(AssessmentState.PENDING, 0) for summary in summaries),
    )


def _completed(summaries: Sequence[RunSummary]) -> str | None:
    """Return the time at which the last run of a batch finished; None while any of its runs is
    open.
    """
    if any(summary.finished is None for summary in summaries):
        return None
    return max(summary.finished or "" for summary in summaries)


@router.get("/api/batches/{batch_id}", response_model=BatchDocument, responses=problems(401, 404))
def batch(
    request: Request, batch_id: str, limit: Annotated[int, Query(ge=1, le=1000)] = 200
) -> Response:
    """Return a batch with its newest runs, the totals of all runs, and each candidate's mean over
    the trials that count.
    """
    services = services_of(request)
    # A batch may hold runs with different rubrics; the document then has the warning
    # `pooled_anyway`, and not an error.
    selection = Selection(batch_ids=(batch_id,), pool_anyway=True)
    summaries = runs.runs(services.workspace.store, selection)
    return Answer(_document(services.workspace, summaries, services.overviews.of(selection), limit))


def _document(
    workspace: Workspace, summaries: Sequence[RunSummary], overview: StatisticsOverview, limit: int
) -> BatchDocument:
    trials: Counter[str] = Counter()
    assessments: Counter[str] = Counter()
    for run in summaries:
        trials.update({str(state): n for state, n in run.trials.items()})
        assessments.update({str(state): n for state, n in run.assessments.items()})
    by_run, estimates = approvals_of_runs(workspace, summaries), overview.report.estimates
    weighed = [
        (estimate.mean, estimate.n_trials) for estimate in estimates if estimate.mean is not None
    ]
    n = sum(count for _, count in weighed)
    return BatchDocument(
        batch=_listed(workspace, summaries[0].batch_id or "", summaries),
        avgScore=float(sum(Fraction(mean) * count for mean, count in weighed) / n) if n else None,
        approvals=approvals_document(overview.approvals),
        runs=tuple(
            BatchRunDocument(row=run_row(run, by_run[run.id]), run_id=run.id, runId=run.id)
            for run in summaries[:limit]
        ),
        trials={
            "total": sum(trials.values()),
            **{str(state): trials.get(str(state), 0) for state in TrialState},
        },
        assessments={str(state): assessments.get(str(state), 0) for state in AssessmentState},
        candidates=tuple(map(mean_document, estimates)),
        excluded=overview.excluded,
        warnings=overview.cautions,
        telemetry=telemetry(summaries),
        agentRuns=tuple(
            islice((row for run in summaries for row in agent_runs(workspace, run)), limit)
        ),
        removedRuns=tuple(
            RemovedRunDocument(
                runId=event.run_id,
                removal=removal.REMOVALS[event.verb],
                removedAt=event.at,
                replacedBy=event.replaced_by,
            )
            for event in removal.of_batch(workspace.store, summaries[0].batch_id or "")
        ),
    )
