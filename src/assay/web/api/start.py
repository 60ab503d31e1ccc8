"""Endpoints that estimate and start a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from assay.app.review import protocol as protocols
from assay.app.runs import batch, demo, execution, start as starting, suite_files
from assay.app.runs.pasted_texts import PLACE, grade_pasted
from assay.app.runs.rubric_choices import rubric_for_texts
from assay.app.runs.run_documents import cost_estimate
from assay.app.runs.run_request import RunRequest
from assay.domain.errors import InputError, Refused, SuiteError
from assay.domain.lifecycle import Policy
from assay.web.api.control import row_of
from assay.web.context import services_of
from assay.web.errors import problem_of
from assay.web.responses import Answer, Body

if TYPE_CHECKING:
    from assay.app.runs.preflight import LookAhead
    from assay.app.workspace import Workspace
    from assay.domain.run import RunOptions
    from assay.domain.suite import Suite

router = APIRouter()


class ParametersBody(Body):
    """Model parameters. Missing fields keep the values of the suite file."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None


class ProtocolBody(Body):
    """A run's review protocol: shares between 0 and 1, and the distance of a repeat from its item;
    see `domain.protocol`.
    """

    blind: float | None = None
    plants: float | None = None
    rereview: float | None = None
    second: float | None = None
    gap_items: float | None = None
    gap_hours: float | None = None


class StartBody(Body):
    """Settings of a run to start. Missing fields keep the values of the suite file."""

    suite: str = Field(max_length=1_000)
    trials: int | None = None
    candidates: list[str] = Field(default_factory=list, max_length=200)
    judges: list[str] = Field(default_factory=list, max_length=20)
    rotate: bool = False
    mode: Literal["joint", "each", "pairwise"] | None = None
    review: str | None = Field(default=None, max_length=40)
    protocol: ProtocolBody | None = None
    parameters: ParametersBody | None = None
    rubric: list[dict[str, Any]] | None = Field(default=None, max_length=100)
    benchmark: bool = False
    batch_id: str | None = Field(default=None, max_length=200)
    budget: float | None = None
    limit: int | None = None
    provider_batch: bool = False
    key: str | None = Field(default=None, min_length=8, max_length=80)

    def look(self, workspace: Workspace) -> tuple[Suite, RunOptions, LookAhead]:
        """Return the run's suite, options and preview."""
        request = RunRequest(
            trials=self.trials,
            candidates=tuple(self.candidates),
            benchmark=self.benchmark,
            batch_id=self.batch_id or None,
            budget_usd=self.budget,
            limit=self.limit,
        )
        changes = self.model_dump(
            exclude_none=True, include={"review", "protocol", "parameters", "rubric"}
        )
        judges = starting.judges_of(self.judges, mode=self.mode, rotate=self.rotate)
        return starting.look(workspace, self.suite, request, judges=judges, changes=changes)


class DemoBody(Body):
    """A request to start the demo run; `key` is the idempotency key."""

    key: str | None = Field(default=None, min_length=8, max_length=80)


@router.post("/api/start/look", tags=["start"])
def look(request: Request, body: StartBody) -> Response:
    """Estimate a run's calls, cost and reviews without calling a model; list the models with and
    without a batch API.

    `problems` lists the reasons that prevent a start, each with its field.
    """
    workspace = services_of(request).workspace
    try:
        suite, options, ahead = body.look(workspace)
        batched, called = batch.models_by_batch_api(workspace.directory, ahead.plan)
    except InputError as error:
        nothing = dict.fromkeys(("tasks", "trials", "estimate", "review", "reviews", "models"))
        return Answer({**nothing, "notes": [], "problems": _problems(error, body.suite)})
    load = protocols.load_of(ahead.plan, starting.tasks_of(suite, options, ahead.plan))
    return Answer(
        {
            "tasks": ahead.tasks,
            "trials": ahead.trials,
            "estimate": cost_estimate(ahead.estimate),
            "review": protocols.cost(suite.protocol, load),
            "reviews": {"n": ahead.reviews, "at_most": ahead.plan.policy is Policy.FLAGGED},
            "models": {"batched": batched, "called": called},
            "notes": list(ahead.notes),
            "problems": [],
        }
    )


@router.post("/api/start", tags=["start"], status_code=201)
def start(request: Request, body: StartBody) -> Response:
    """Start a run in this server, or submit it as a provider batch.

    A repeated request with the same `key` returns the same run.
    """
    services = services_of(request)

    def begin() -> str:
        services.runner.check_room()
        suite, options, ahead = body.look(services.workspace)
        if body.provider_batch:
            services.runner.submit(ahead.plan, starting.tasks_of(suite, options, ahead.plan))
            return ahead.plan.id
        services.runner.begin(execution.write_down(services.workspace.store, suite, options, ahead))
        return ahead.plan.id

    try:
        run = services.starts.once(body.key, begin)
    except InputError as error:
        return _refused(error, body.suite)
    return Answer({"run_id": run, "run": row_of(services, run)}, status_code=201)


@router.post("/api/demo", tags=["start"], status_code=201)
def start_demo(request: Request, body: DemoBody) -> Response:
    """Start the demo run in a store without runs.

    The judge's replies are pre-recorded, so no model is called.
    """
    services = services_of(request)

    def begin() -> str:
        services.runner.check_room()
        plan = demo.write_down_demo(services.workspace)
        services.runner.begin(plan)
        return plan.id

    return Answer({"run_id": services.starts.once(body.key, begin)}, status_code=201)


class PastedBody(Body):
    """Pasted texts that people will grade.

    `rubric` is written as in a suite file; if missing, the default criteria apply.
    """

    thing: str = Field(max_length=200)
    context: str = Field(default="", max_length=200_000)
    snippets: list[tuple[str, str]] = Field(max_length=20)
    trials: int = Field(default=1, ge=1, le=100)
    rubric: list[dict[str, Any]] | None = Field(default=None, max_length=100)


@router.post("/api/pasted", tags=["runs"], status_code=201)
def pasted(request: Request, body: PastedBody) -> Response:
    """Save pasted texts as a suite and start a run that people grade, without model calls."""
    try:
        run = grade_pasted(
            services_of(request).workspace,
            thing=body.thing,
            context=body.context,
            snippets=body.snippets,
            trials=body.trials,
            rubric=body.rubric,
        )
    except InputError as error:
        return _refused(error, PLACE)
    return Answer({"run_id": run.summary.id}, status_code=201)


class TextsBody(Body):
    """Texts that need a fitting rubric."""

    texts: list[Annotated[str, Field(max_length=200_000)]] = Field(max_length=20)


@router.post("/api/start/rubric", tags=["start"])
def fitting_rubric(body: TextsBody) -> Response:
    """Return the name of the ready-made rubric that fits the texts best."""
    return Answer({"rubric": rubric_for_texts(body.texts)})


def _problem(error: SuiteError | InputError, path: str) -> dict[str, str]:
    return {"field": suite_files.field_of(error, path), **problem_of(error)["error"]}


def _problems(error: InputError, path: str) -> list[dict[str, str]]:
    each: tuple[InputError, ...] = getattr(error, "errors", (error,))
    return [_problem(error, path) for error in each]


def _refused(error: InputError, path: str) -> Response:
    first: InputError = getattr(error, "errors", (error,))[0]
    document = {**problem_of(first), "problems": _problems(error, path)}
    return Answer(document, status_code=409 if isinstance(error, Refused) else 422)
