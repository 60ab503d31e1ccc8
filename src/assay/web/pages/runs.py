"""Pages of one run and of starting a run. Each address holds the page's full state."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, islice
from statistics import mean
from typing import TYPE_CHECKING, Annotated, Final, TypedDict
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from assay.app.registry import runs
from assay.app.review import decisions, protocol
from assay.app.runs import run_documents, start as starting, suite_files
from assay.app.runs.budget import enough_usd
from assay.app.runs.causes import Cause, cause_key, causes_of, pause_of
from assay.app.runs.remaining_cost import remaining_cost
from assay.app.runs.rubric_choices import rubric_choices
from assay.app.statistics.results import wording
from assay.app.statistics.run_choice import named_run
from assay.domain.identifiers import TrialKey, shown_trial
from assay.domain.lifecycle import AssessmentState
from assay.domain.protocol import SUGGESTED
from assay.domain.remaining_cost import RemainingCost
from assay.domain.run_choice import LATEST
from assay.domain.selection import RunSummary, Selection, TrialRow
from assay.domain.suite import PERSON
from assay.web.api.protocol import ProtocolStanding, standing
from assay.web.api.suites import SuiteChoices, suite_document
from assay.web.context import services_of
from assay.web.links import side_by_side
from assay.web.query_params import one_of, reads, whole, within
from assay.web.responses import Answer
from assay.web.run_rows import (
    LiveRunDocument,
    MatrixCellDocument,
    MatrixRowDocument,
    approvals_of_runs,
    looked_at,
    matrix,
)
from assay.web.templating import page_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.app.workspace import Workspace
    from assay.domain.failure import Failure

TASKS_SHOWN: Final = 100
FAILURES_SHOWN: Final = 100
_KEYS_AT_ONCE: Final = 5_000
_RUN_OPTIONS: Final = (
    "trials",
    "mode",
    "review",
    "batch_id",
    "limit",
    "budget",
    "benchmark",
    "rotate",
    "provider_batch",
)
CHOICES: Final = (*_RUN_OPTIONS, "protocol", "candidate", "judge")
"""Query parameters in which the start page's script stores the choices."""
CHOSEN: Final = {
    "mode": ("joint", "each", "pairwise"),
    "review": ("every", "flagged", "sample:0.1", "sample:0.2", "sample:0.5", "none"),
    "benchmark": ("1",),
    "rotate": ("1",),
    "provider_batch": ("1",),
}


class StartPage(TypedDict):
    """Contents of the start page: the suite or its problems; without a `path`, the files to choose
    from.
    """

    path: str | None
    suite: SuiteChoices | None
    problems: list[dict[str, str]]
    files: list[str]
    models: list[dict[str, str]]
    suggested: dict[str, float]


class RunPage(TypedDict):
    """Contents of a run's page.

    Attributes:
        facts: candidates, judges, seed and policy; `enough_usd` is a budget that probably covers a
            retry of the failures, or None if the budget was enough.
        start: number of tasks before this page; `earlier` and `later` are the starts of the
            previous and the next page.
    """

    run: LiveRunDocument
    facts: dict[str, object]
    review: ProtocolStanding
    grades: dict[str, str]
    said_protocol: str
    suggested: dict[str, float]
    models: list[str]
    tasks: list[MatrixRowDocument]
    start: int
    earlier: int | None
    later: int | None
    failures: list[dict[str, object]]
    failure_kinds: list[dict[str, object]]
    causes: list[dict[str, object]]
    paused: run_documents.PauseDocument | None
    remaining: RemainingCost | None


router = APIRouter(include_in_schema=False)


@router.get("/start")
@reads(*CHOICES)
def start_page(request: Request, suite: str | None = None, edit: str | None = None) -> Response:
    """Show the form that starts a run; the address contains the choices.

    `edit`: a set to edit, saved as a new version.
    """
    suite = suite or None
    data = _start_data(request, suite)
    boot = {
        "path": suite,
        "suite": data["suite"],
        "suggested": data["suggested"],
        "rubrics": rubric_choices(),
        "edit": {
            "path": edit,
            "text": suite_files.text_of_set(services_of(request).workspace.settings, edit),
        }
        if edit
        else None,
    }
    twin = "/start.json" + (f"?{urlencode({'suite': suite})}" if suite else "")
    title = "Start a run" if data["suite"] is None else data["suite"]["name"]
    texts = "start drop protocol"
    return page_of(
        request, "start/start.html", title=title, twin=twin, texts=texts, **data, boot=boot
    )


@router.get("/start.json")
@reads(*CHOICES)
def start_twin(request: Request, suite: str | None = None) -> Response:
    return Answer(_start_data(request, suite or None))


def _start_data(request: Request, path: str | None) -> StartPage:
    workspace, query = services_of(request).workspace, request.query_params
    for name, values in CHOSEN.items():
        if value := query.get(name):
            one_of(name, value, values)
    for name in ("trials", "limit"):
        if value := query.get(name):
            whole(name, value, low=1)
    form = None if path is None else suite_document(workspace, path)
    models = {
        PERSON: "",
        **{
            model.ref: model.origin
            for model in starting.known_models(workspace.store, workspace.settings)
        },
    }
    return {
        "path": path,
        "suite": None if form is None else form["suite"],
        "problems": [] if form is None else form["problems"],
        "files": list(suite_files.suite_files(workspace.settings)) if path is None else [],
        "models": [{"ref": ref, "from": origin} for ref, origin in models.items()],
        "suggested": protocol.numbers(SUGGESTED),
    }


@router.get("/runs/latest")
@router.get("/runs/latest.json")
def newest_run(request: Request) -> Response:
    """Redirect to the newest run, which commands call `latest` too."""
    run = named_run(services_of(request).workspace.store, LATEST)
    ending = ".json" if request.url.path.endswith(".json") else ""
    return RedirectResponse(f"/runs/{quote(run, safe='')}{ending}", status_code=307)


@router.get("/runs/{run_id}.json")
def run_twin(
    request: Request, run_id: str, start: Annotated[int, Query(ge=0, le=10**9, alias="from")] = 0
) -> Response:
    return Answer(_run_data(request, run_id, start))


@router.get("/runs/{run_id}")
def run_page(
    request: Request, run_id: str, start: Annotated[int, Query(ge=0, le=10**9, alias="from")] = 0
) -> Response:
    """Show one run: its facts, its matrix of tasks and trials, and its failures."""
    data = _run_data(request, run_id, start)
    run = data["run"]
    query = f"?{urlencode({'from': start})}" if start else ""
    return page_of(
        request,
        "runs/run.html",
        title=run.suite,
        twin=f"/runs/{run.id}.json{query}",
        **data,
        boot={"run": run.id, "suggested": data["suggested"], "live": True},
    )


def _run_data(request: Request, run_id: str, start: int) -> RunPage:
    services = services_of(request)
    (summary,) = runs.runs(services.workspace.store, Selection(runs=(run_id,)))
    where = Selection(runs=(summary.id,))
    plan = services.workspace.journal.plan_of(summary.id)
    given = approvals_of_runs(services.workspace, [summary])[summary.id]
    row = looked_at(
        services.workspace,
        summary,
        given,
        services.runner,
        verdict=services.verdicts.of([summary])[summary.id],
    )
    trials = services.workspace.archive.trials
    tasks, more = _tasks_from(trials.matching(where), start, not_graded=bool(summary.not_graded))
    tasks = _with_scores(services.workspace, summary, tasks)
    if start and not tasks:
        # Counted only for a page beyond the last one, because counting reads every trial of the
        # run.
        within("from", start, len({trial.task for trial in trials.matching(where)}))
    review = standing(request, str(summary.id))
    kinds = trials.failure_kinds(summary.id) if row.failed else ()
    failed = list(islice(trials.matching(where, failed_only=True), FAILURES_SHOWN)) if kinds else []
    judges = [judge.name for judge in plan.judges if judge.name != PERSON]
    enough, pause = (
        enough_usd(services.workspace.store, services.workspace.directory, plan, summary),
        pause_of(services.workspace.store, summary),
    )
    return {
        "run": row,
        "facts": {
            "candidates": len(summary.candidates),
            "judges": len(summary.judges),
            "candidate_names": list(summary.candidates),
            "judge_names": list(summary.judges),
            "judge_stamps": sorted(
                {runs.stamp_of(services.workspace.store, summary.id, name) for name in judges}
            ),
            "seed": plan.seed,
            "policy": str(plan.policy),
            "enough_usd": enough,
            "budget_usd": plan.budget_usd,
            "regrade": plan.regrade_of is not None,
            "regrades": list(services.workspace.archive.runs.regrades(summary.id))
            if summary.not_graded
            else [],
            "beside": side_by_side([summary]) if summary.not_graded else None,
        },
        "review": review,
        "grades": _grades_of(services.workspace, summary),
        "said_protocol": wording.checks(review["protocol"]),
        "suggested": protocol.numbers(SUGGESTED),
        "models": [
            model.ref
            for model in starting.known_models(
                services.workspace.store, services.workspace.settings
            )
            if model.ref != PERSON
        ],
        "tasks": tasks,
        "start": start,
        "earlier": max(0, start - TASKS_SHOWN) if start else None,
        "later": start + TASKS_SHOWN if more else None,
        "failures": [
            _failure(trial, trial.failure) for trial in failed if trial.failure is not None
        ],
        "failure_kinds": [{"kind": kind, "fault": fault, "n": n} for kind, fault, n in kinds],
        "causes": [_cause(cause, failed) for cause in causes_of(services.workspace.store, summary)],
        "paused": None
        if pause is None
        else run_documents.pause_document(pause, summary.id, enough),
        "remaining": remaining_cost(
            services.workspace.store, services.workspace.directory, plan, summary
        ),
    }


def _grades_of(workspace: Workspace, summary: RunSummary) -> dict[str, str]:
    """Return the addresses that compare a run's grades, by what is compared; empty if there is
    nothing to compare.
    """
    decided = sum(
        n for state, n in summary.assessments.items() if state is not AssessmentState.PENDING
    )
    if not decided or not any(judge != PERSON for judge in summary.judges):
        return {}
    ways = ["people", *(["judges"] if len(summary.judges) > 1 else [])]
    ways += ["attempts"] if summary.assessments.get(AssessmentState.SUPERSEDED) else []
    return {by: f"/compare/grades?{urlencode({'run': summary.id, 'by': by})}" for by in ways}


def _tasks_from(
    trials: Iterable[TrialRow], start: int, *, not_graded: bool
) -> tuple[list[MatrixRowDocument], bool]:
    rows: list[MatrixRowDocument] = []
    # Trials come in plan order, so reading stops at the end of this page.
    for place, (_, group) in enumerate(groupby(trials, key=lambda trial: trial.task)):
        if place >= start + TASKS_SHOWN:
            return rows, True
        if place >= start:
            rows += matrix(group, not_graded=not_graded)
    return rows, False


def _with_scores(
    workspace: Workspace, summary: RunSummary, tasks: list[MatrixRowDocument]
) -> list[MatrixRowDocument]:
    """Add to each cell the score that counts; if no person approved it, also add the state of the
    trial's grades.
    """
    keys = {
        cell.id: key
        for task in tasks
        for cell in task.cells
        if cell.state in {"approved", "needs_review"}
        and (key := decisions.trial_key(cell.id)) is not None
    }
    passed = runs.passed_unseen(workspace.store, summary, tuple(keys.values()))
    selection, listed = Selection(runs=(summary.id,)), list(keys.values())
    means = {
        shown_trial(TrialKey(trial.trial)): mean(trial.scores.values())
        for start in range(0, len(listed), _KEYS_AT_ONCE)
        for trial in workspace.archive.scores.of_trials(
            selection, listed[start : start + _KEYS_AT_ONCE]
        )
        if trial.scores
    }
    states = {shown: str(passed[key]) for shown, key in keys.items() if key in passed}

    def scored(cell: MatrixCellDocument) -> MatrixCellDocument:
        return replace(cell, state=states.get(cell.id, cell.state), score=means.get(cell.id))

    return [replace(task, cells=tuple(map(scored, task.cells))) for task in tasks]


def _cause(cause: Cause, failed: Iterable[TrialRow]) -> dict[str, object]:
    """Return a cause with the first trials that failed for it."""
    alike = [
        trial
        for trial in failed
        if trial.failure is not None and cause_key(trial.failure) == cause_key(cause)
    ]
    shown = [_failure(trial, trial.failure) for trial in alike if trial.failure is not None]
    return {
        "kind": cause.kind,
        "detail": cause.detail,
        "fault": str(cause.fault),
        "n": cause.trials,
        "trials": shown,
    }


def _failure(trial: TrialRow, failure: Failure) -> dict[str, object]:
    return {
        "id": shown_trial(trial.key),
        "task": trial.task,
        "thing": trial.thing,
        "k": trial.k,
        "of": trial.of,
        "kind": failure.kind,
        "fault": str(failure.fault),
        "detail": failure.detail,
        "tries": failure.tries,
    }
