"""Review and assessment pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from assay.app.registry import runs
from assay.app.review import decisions
from assay.app.statistics.results import wording
from assay.domain.errors import UnknownName
from assay.domain.identifiers import AssessmentKey, shown_assessment
from assay.domain.lifecycle import AssessmentState
from assay.domain.people import VisitorRole
from assay.domain.selection import RunSummary, Selection
from assay.web import keyboard
from assay.web.context import Services, services_of
from assay.web.pages.runs import _grades_of
from assay.web.query_params import reads, whole
from assay.web.responses import Answer
from assay.web.review_state import is_sealed, key_of, progress, selection_of, shown
from assay.web.security.access import visitor_of
from assay.web.templating import page_of
from assay.web.texts import REJECT_REASONS, REJECT_REASONS_OF_PEOPLE, RERUN_REASONS, for_script, t

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.app.review.item import Item
    from assay.app.workspace import Workspace


router = APIRouter(include_in_schema=False)


@router.get("/runs/{run_id}/trials/{trial_id}")
def trial_page(
    request: Request,
    run_id: str,
    trial_id: str,
    candidate: str | None = None,
    judge: str | None = None,
) -> Response:
    """Redirect to the assessment of a trial, of one candidate or judge if given; a pending one is
    preferred.
    """
    if visitor_of(request).role is VisitorRole.VIEWER:  # a viewer may not open pages for decisions
        return _answers(run_id, trial_id)
    key = decisions.trial_key(trial_id)
    archive, of_run = services_of(request).workspace.archive, Selection(runs=(run_id,))
    rows = (
        []
        if key is None
        else [row for row in archive.assessments.matching(of_run, trial=key) if row.current]
    )
    if not rows:  # ungraded or failed: show its answers instead
        return _answers(run_id, trial_id)
    rows = [
        row for row in rows if candidate in {None, *row.candidates} and judge in {None, row.grader}
    ]
    if not rows:
        raise UnknownName("trial", f"{trial_id} of {candidate or judge}")
    best = next((row for row in rows if row.state is AssessmentState.PENDING), rows[0])
    return RedirectResponse(f"/assessments/{shown_assessment(best.key)}", status_code=303)


def _answers(run_id: str, trial_id: str) -> Response:
    path = f"/runs/{quote(run_id, safe='')}/trials/{quote(trial_id, safe='')}/answers"
    return RedirectResponse(path, status_code=303)


def _check_review(request: Request, selection: Selection) -> None:
    """Raise `UnknownName` or `InputError` if the address names an unknown filter, item, candidate
    or criterion.
    """
    if selection.tasks or selection.judges:  # progress checks runs and suites itself
        services_of(request).workspace.archive.assessments.tally(selection)
    query = request.query_params
    if item := query.get("item"):
        key_of(request, item)
    for name in ("candidate", "criterion"):
        if value := query.get(name):
            whole(name, value, low=1, high=10_000)


@router.get("/review.json")
@reads("candidate", "criterion")
def review_twin(
    request: Request,
    run: str | None = None,
    suite: str | None = None,
    task: str | None = None,
    judge: str | None = None,
    item: str | None = None,
) -> Response:
    """Return the review's progress and the item in the address as JSON, without leasing an item."""
    services, selection = services_of(request), selection_of(run, suite, task, judge)
    _check_review(request, selection)
    document = shown(request, item) if item else None
    waiting = [] if is_sealed(request) else _waiting(services, selection)
    return Answer({"progress": progress(services, selection), "item": document, "waiting": waiting})


def _waiting(services: Services, selection: Selection) -> list[str]:
    """Return the ids of the first pending items, except in runs with control items, because gaps
    would reveal these.
    """
    pending = frozenset({AssessmentState.PENDING})
    rows = decisions.assessments(services.workspace.store, selection, states=pending, limit=50)
    return [
        shown_assessment(row.key) for row in rows if not services.concealment.covers(row.run_id)
    ]


@router.get("/review")
@reads("item", "candidate", "criterion")
def review_page(
    request: Request,
    run: str | None = None,
    suite: str | None = None,
    task: str | None = None,
    judge: str | None = None,
    item: str | None = None,
) -> Response:
    """Show the review page, which presents one pending assessment after another; 404 for an unknown
    name in the address.
    """
    services, selection = services_of(request), selection_of(run, suite, task, judge)
    if selection != Selection():
        services.workspace.archive.assessments.tally(selection)  # checks every name
    if item:
        services.review.control_items.detail(key_of(request, item))
    _check_review(request, selection)
    given = {"run": run, "suite": suite, "task": task, "judge": judge}
    filters = {name: value for name, value in given.items() if value}
    summary = runs.runs(services.workspace.store, Selection(runs=(run,)))[0] if run else None
    if summary is not None:
        filters["run"] = summary.id
    twin = "/review.json" + (f"?{urlencode(filters)}" if filters else "")
    far = progress(services, selection)
    boot = _review_boot(filters, None)
    if not (far["waiting"] or far["decided"]):
        boot["texts"]["review.done.lead"] = t("review.done.never")
    return page_of(
        request,
        "review/review.html",
        twin=twin,
        run=summary,
        single=None,
        grades=None,
        past=(),
        boot=boot,
    )


@router.get("/assessments/{assessment_id}.json")
@reads("candidate", "criterion")
def assessment_twin(request: Request, assessment_id: str) -> Response:
    """Return an assessment as JSON, with responses in full length."""
    _check_review(request, Selection())
    return Answer(shown(request, assessment_id, whole=True))


@router.get("/assessments/{assessment_id}")
@reads("candidate", "criterion")
def assessment_page(request: Request, assessment_id: str) -> Response:
    """Show one assessment at its permanent address, with its decisions."""
    _check_review(request, Selection())
    services = services_of(request)
    item = shown(request, assessment_id)
    (summary,) = runs.runs(services.workspace.store, Selection(runs=(item.run_id,)))
    alone = is_sealed(request) or services.concealment.covers(summary.id)
    others = [] if alone else _same_trial(services, key_of(request, assessment_id))
    title = f"{item.thing} · Trial {item.k} of {item.of}"
    return page_of(
        request,
        "review/review.html",
        page="assessment",
        title=title,
        twin=f"/assessments/{item.id}.json",
        run=summary,
        single=item,
        past=others,
        grades=_grades_beside(services.workspace, summary, item),
        boot=_review_boot({"run": item.run_id}, item.id),
    )


@router.get("/signin")
@reads("next")
def sign_in_page(request: Request) -> Response:
    """Show the sign-in form, for browsers that do not have the address printed at server start."""
    return page_of(request, "frame/signin.html", twin=None)


def _grades_beside(workspace: Workspace, summary: RunSummary, item: Item) -> str | None:
    """Return the address that compares a decided assessment's grades; None if there is nothing to
    compare.
    """
    if item.state == AssessmentState.PENDING or not item.by_model:
        return None
    ways = _grades_of(workspace, summary)
    by = "attempts" if len(item.attempts) > 1 else "people"
    return None if by not in ways else f"{ways[by]}&{urlencode({'task': item.task, 'sort': 'run'})}"


def _same_trial(services: Services, key: AssessmentKey) -> list[dict[str, str]]:
    """List other graders' assessments of the same trial; their names are empty while the run has
    pending assessments.
    """
    row = services.review.control_items.detail(key).row
    of_run = Selection(runs=(row.run_id,))
    (summary,) = runs.runs(services.workspace.store, of_run)
    named = not summary.assessments.get(AssessmentState.PENDING)
    return [
        {
            "id": shown_assessment(other.key),
            "state": str(other.state),
            "who": " · ".join(filter(None, (other.candidate, other.grader))) if named else "",
        }
        for other in services.workspace.archive.assessments.matching(of_run, trial=row.trial)
        if other.current and (other.grader, other.candidate) != (row.grader, row.candidate)
    ]


_TEXTS: Final = "review do said state trial correct form reject rerun panel close cancel remap"


def _review_boot(filters: Mapping[str, str], single: str | None) -> dict[str, Any]:
    return {
        "page": "review",
        "filters": dict(filters),
        "single": single,
        "texts": {**for_script(_TEXTS), "review.done.approved": wording.SESSION_APPROVALS},
        "keys": keyboard.for_script(keyboard.REGISTRY),
        "reject_reasons": [REJECT_REASONS, REJECT_REASONS_OF_PEOPLE],
        "rerun_reasons": RERUN_REASONS,
    }
