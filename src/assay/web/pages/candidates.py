"""Pages of candidates and of versions of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response

from assay.app.registry import candidates as names
from assay.app.registry.candidates import standings
from assay.app.runs.counts import trial_counts
from assay.domain.errors import UnknownName
from assay.domain.lifecycle import AssessmentState
from assay.web.context import services_of
from assay.web.responses import Answer
from assay.web.safe_text import visible
from assay.web.templating import page_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.domain.renaming import NameEvent

RUNS_OF_CANDIDATE: Final = 100

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRuns:
    """A candidate with its newest runs, and its mean in the newest run of each of their suites.

    `all_runs` is true if no run is left out.
    """

    candidate: str
    runs: list[dict[str, object]]
    all_runs: bool
    means: list[dict[str, object]]


@router.get("/candidates.json")
def candidates_twin(request: Request) -> Response:
    """Return the list of candidates as JSON, like `assay candidates list`."""
    return Answer(names.list_document(*_candidates(request)))


@router.get("/candidates")
def candidates_page(request: Request) -> Response:
    """List the candidates, and their renames and merges."""
    candidates, changes = _candidates(request)
    return page_of(
        request,
        "registry/candidates.html",
        twin="/candidates.json",
        rows=[
            {
                "name": visible(candidate.name),
                "open": address_of(candidate.name),
                "runs": candidate.runs,
                "first": candidate.first,
                "last": candidate.last,
                "written": [visible(name) for name in candidate.written],
            }
            for candidate in candidates
        ],
        spelt=any(candidate.written for candidate in candidates),
        mended=[
            {
                "at": event.at,
                "who": visible(event.reviewer),
                "why": visible(event.reason),
                "n": event.id,
                "undone_by": event.undone_by,
                "what": _name_change(event),
            }
            for event in reversed(changes)
        ],
    )


# Declared before the page's route, which accepts any path because names of candidates contain
# slashes.
@router.get("/candidates/{name:path}.json")
def candidate_twin(request: Request, name: str) -> Response:
    return Answer(_candidate(request, name))


@router.get("/candidates/{name:path}")
def candidate_page(request: Request, name: str) -> Response:
    """Show one candidate with its runs, its names in them, and its mean in the newest run of each
    suite.
    """
    candidate = _candidate(request, name)
    shown = visible(candidate.candidate)
    return page_of(
        request,
        "registry/candidate.html",
        title=shown,
        twin=f"{address_of(candidate.candidate)}.json",
        name=shown,
        found=candidate,
        show=visible,
        registry=f"/runs?{urlencode({'candidate': candidate.candidate})}",
    )


@router.get("/results/task.json")
def task_twin(request: Request, suite: str = "", task: str = "") -> Response:
    return Answer({"suite": suite, "task": task, "versions": _versions(request, suite, task)})


@router.get("/results/task")
def task_page(request: Request, suite: str = "", task: str = "") -> Response:
    """List the versions of a task by digest, with the runs that used each."""
    return page_of(
        request,
        "registry/task.html",
        title=visible(task),
        twin=f"/results/task.json?{urlencode({'suite': suite, 'task': task})}",
        task=visible(task),
        suite=visible(suite),
        versions=_versions(request, suite, task),
        show=visible,
        trials=urlencode({"task": task}),
        registry=f"/runs?{urlencode({'suite': suite})}",
    )


def _versions(request: Request, suite: str, task: str) -> list[Mapping[str, object]]:
    versions: dict[str, list[Mapping[str, object]]] = {}
    for task_use in services_of(request).workspace.register.task_uses(suite, task):
        use = {name: getattr(task_use, name) for name in ("started", "thing", "weight", "trials")}
        versions.setdefault(task_use.digest, []).append({"run_id": task_use.run, **use})
    if not versions:
        raise UnknownName("task", task, remedy="Write /results/task?suite=NAME&task=ID.")
    return [{"digest": digest, "runs": runs} for digest, runs in versions.items()]


def task_address(suite: str, task: str) -> str:
    return f"/results/task?{urlencode({'suite': suite, 'task': task})}"


def address_of(candidate: str) -> str:
    return f"/candidates/{quote(candidate, safe='')}"


def _name_change(event: NameEvent) -> str:
    source, target = visible(event.source), visible(event.target)
    if event.verb == "undo":
        return f"event {event.undoes} undone: {target} is separate again"
    return (
        f"{source} renamed to {target}"
        if event.verb == "rename"
        else f"{source} merged into {target}"
    )


def _candidates(request: Request) -> tuple[Any, Any]:
    workspace = services_of(request).workspace
    candidates = tuple(workspace.register.candidates())
    known = {name for candidate in candidates for name in (candidate.name, *candidate.written)}
    return candidates, tuple(
        event for event in names.events(workspace.store) if {event.source, event.target} & known
    )


def _candidate(request: Request, name: str) -> CandidateRuns:
    workspace = services_of(request).workspace
    called, runs = workspace.register.runs_of_candidate(name, limit=RUNS_OF_CANDIDATE)
    suites = list(dict.fromkeys(summary.suite for summary, _ in runs))
    return CandidateRuns(
        candidate=called,
        runs=[
            {
                "run_id": summary.id,
                **{
                    field: getattr(summary, field)
                    for field in ("suite", "state", "started", "finished", "batch_id")
                },
                "waiting": summary.assessments.get(AssessmentState.PENDING, 0),
                "trials": trial_counts(summary),
                "named": own if own != called else None,
            }
            for summary, own in runs
        ],
        all_runs=len(runs) < RUNS_OF_CANDIDATE,
        means=[
            {
                "suite": standing.suite,
                "runs": standing.runs,
                "of": standing.of,
                **{
                    field: getattr(standing.estimate, field, None)
                    for field in ("mean", "ci95", "n_trials", "n_tasks")
                },
                "too_large": standing.too_large,
                "open": f"/results?{urlencode({'run': standing.runs}, doseq=True)}",
                "trend": f"/results/trend?{urlencode({'suite': standing.suite, 'candidate': called})}",
            }
            for standing in standings(workspace.store, called, suites)
        ],
    )
