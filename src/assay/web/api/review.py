"""Review endpoints: used by the pages and open to scripts; described at `/openapi.json`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from assay.app.review.decisions import scale_words, score_of
from assay.app.review.drawn_responses import drawn
from assay.app.review.submitted_decision import SubmittedDecision
from assay.domain.errors import InputError
from assay.domain.lifecycle import AssessmentPurpose, AssessmentState, Verb
from assay.domain.people import VisitorRole
from assay.domain.review import Via
from assay.domain.selection import Selection
from assay.web.context import Services, reviewer_of, sender_of, services_of
from assay.web.errors import problem_of
from assay.web.jobs.reruns import RerunRequest
from assay.web.responses import Answer, Body
from assay.web.review_state import (
    as_named,
    by_its_name,
    is_sealed,
    key_of,
    on_the_desk,
    selection_of,
    shown,
)
from assay.web.security.access import visitor_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.app.review.decisions import ScaleWords
    from assay.domain.identifiers import AssessmentKey


MAX_AT_ONCE = 20
_ROUNDS = 4  # rounds of leasing to find enough items that do not wait for another reviewer


class CorrectionBody(Body):
    """One score, from 0 to 1 or as a word of the scale such as `Yes`.

    `pane` is the candidate's position on the page, from 0; without a criterion, this is its overall
    score.
    """

    pane: int = Field(ge=0, le=10_000)
    criterion: str | None = None
    score: Annotated[float, Field(ge=0, le=1)] | Annotated[str, Field(min_length=1, max_length=200)]


class AboutOne(Body):
    """A request about one item. `key` is the idempotency key.

    If `run` is given (a full id), the item must belong to that run, otherwise the request fails,
    because another store may use the same ids.
    """

    key: str = Field(min_length=8, max_length=80)
    id: str
    run: str | None = Field(default=None, max_length=200)
    reviewer: str | None = Field(default=None, max_length=120)


class DecisionBody(AboutOne):
    """One decision."""

    verb: Literal["approve", "correct", "reject", "undo"]
    reason: str = Field(default="", max_length=2_000)
    note: str = Field(default="", max_length=20_000)
    corrections: list[CorrectionBody] = Field(default_factory=list, max_length=10_000)
    active_ms: int | None = Field(default=None, ge=0, le=86_400_000)


class VerdictBody(AboutOne):
    """A reviewer's own scores of a blind item, sent before its grades are shown."""

    scores: list[CorrectionBody] = Field(min_length=1, max_length=10_000)


class SecondBody(AboutOne):
    """A request that two people decide an item; with `withdraw`, the reviewer takes their request
    back.
    """

    withdraw: bool = False


class DecisionsBody(Body):
    """Decisions in order, each independent.

    `run`, `suite`, `task`, `judge`: filters of the returned progress.
    """

    decisions: list[DecisionBody] = Field(min_length=1, max_length=MAX_AT_ONCE)
    run: str | None = None
    suite: str | None = None
    task: str | None = None
    judge: str | None = None


class RerunBody(AboutOne):
    """A request to judge one trial again; `attempt` is the attempt it replaces."""

    attempt: int = Field(ge=1)
    reason: str = Field(default="", max_length=2_000)
    note: str = Field(default="", max_length=20_000)


class DeskBody(Body):
    """A desk (a browser tab), and the item it returns to the queue."""

    desk: str = Field(min_length=4, max_length=80)
    id: str | None = None


router = APIRouter()


@router.get("/api/review/next", tags=["review"])
def review_next(
    request: Request,
    desk: Annotated[str, Query(min_length=4, max_length=80)],
    run: str | None = None,
    suite: str | None = None,
    task: str | None = None,
    judge: str | None = None,
    after: str = "",
    first: str | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_AT_ONCE)] = 5,
) -> Response:
    """Return the next pending assessments, leased to a desk (a browser tab) for five minutes.

    `after` lists the ids that the desk still holds, separated by commas; `first` is an id that it
    wants back after a reload.
    """
    services, selection, reviewer = (
        services_of(request),
        selection_of(run, suite, task, judge),
        reviewer_of(request),
    )
    held = [key_of(request, text) for text in after.split(",") if text]
    waiting = services.review.control_items.waiting(selection, reviewer=reviewer)
    # A control item replaces a real one, because the number of items in a response must not reveal
    # it.
    lying = (
        [key for key in services.queue.lies_on(desk) if key not in held] if waiting or first else []
    )
    control = _wanted_back(services, first, key_of(request, first), desk=desk) if first else None
    if control is None:
        control = _control_item(services, waiting, lying, held=held, desk=desk, limit=limit)
    left = limit - (control is not None)
    holding = [*held, *([] if control is None else [control])]
    taken = (
        _taken(services, selection, desk=desk, reviewer=reviewer, holding=holding, limit=left)
        if left
        else []
    )
    if control is None and not taken:
        control = _control_item(
            services, waiting, lying, held=held, desk=desk, limit=limit, any_left=False
        )
    # After a reload, the items must come back in the same order, otherwise the one that moved would
    # give itself away as the control item.
    place = lying.index(control) if control in lying else None
    keys = services.placement.mixed(taken, control, limit=limit, place=place)
    if control is not None:
        services.queue.arrange(keys, desk=desk)
    items = [as_named(request, item) for item in services.review.items(keys, reviewer=reviewer)]
    return Answer(
        {
            "items": items,
            "progress": on_the_desk(services, selection, reviewer=reviewer),
            "elsewhere": services.queue.on_desks(but=desk),
        }
    )


@router.post("/api/review/skip", tags=["review"])
def review_skip(request: Request, body: DeskBody) -> Response:
    """Put an item back into the queue."""
    if body.id:
        services = services_of(request)
        key = key_of(request, body.id)
        services.queue.put_back(key, desk=body.desk)
        services.placement.put_back(key, desk=body.desk)
    return Answer({"ok": True})


@router.post("/api/review/leave", tags=["review"])
def review_leave(request: Request, body: DeskBody) -> Response:
    """Release the items that a desk holds."""
    services_of(request).queue.leave(body.desk)
    return Answer({"ok": True})


@router.get("/api/assessments/{assessment_id}", tags=["review"])
def assessment(request: Request, assessment_id: str, whole: bool = False) -> Response:
    """Return one assessment, without names while it is pending; with `whole`, with responses in
    full length.
    """
    return Answer(shown(request, assessment_id, whole=whole))


@router.get("/api/assessments/{assessment_id}/panes/{pane}", tags=["review"])
def response_of(
    request: Request, assessment_id: str, pane: Annotated[int, Path(ge=0, le=999)]
) -> Response:
    """Return one response of an assessment in full length, without names while the assessment is
    pending.
    """
    services = services_of(request)
    key = key_of(request, assessment_id)
    with by_its_name(assessment_id, key):
        return Answer(services.review.pane(key, pane, reviewer=reviewer_of(request)))


@router.get("/api/assessments/{assessment_id}/drawn", tags=["review"])
def drawn_responses(request: Request, assessment_id: str, whole: bool = False) -> Response:
    """Return the responses of an assessment for display: Markdown as a tree of elements, and the
    colours of code.
    """
    return Answer(drawn(shown(request, assessment_id, whole=whole)))


@router.post("/api/review/verdict", tags=["review"])
def review_verdict(request: Request, body: VerdictBody) -> Response:
    """Record a reviewer's own scores of a blind item, and return the item with the judge's
    grades.
    """
    services, reviewer = services_of(request), reviewer_of(request, body.reviewer)
    key = key_of(request, body.id)
    scores = _scores_of(request, key, body.scores)
    with by_its_name(body.id, key):
        services.review.check_run(key, body.run)
        return Answer(as_named(request, services.review.verdict(key, scores, reviewer=reviewer)))


@router.post("/api/review/second", tags=["review"])
def review_second(request: Request, body: SecondBody) -> Response:
    """Have two people decide an item independently."""
    services, reviewer = services_of(request), reviewer_of(request, body.reviewer)
    key = key_of(request, body.id)
    with by_its_name(body.id, key):
        services.review.check_run(key, body.run)
        services.review.ask_second(
            key, reviewer=reviewer, idempotency_key=body.key, withdrawn=body.withdraw
        )
    return Answer({"ok": True})


@router.post("/api/decisions", tags=["review"])
def decisions(request: Request, body: DecisionsBody) -> Response:
    """Apply decisions one by one.

    Each has its own result, and a refused decision does not stop the others.
    """
    services = services_of(request)
    if body.judge is not None and not visitor_of(request).may_filter_by("judge"):
        problem = "is not a filter for reviewers, because it would confirm who graded an item."
        raise InputError("judge", problem, remedy="Leave it out.")
    selection = selection_of(body.run, body.suite, body.task, body.judge)
    if selection != Selection():
        # checks every name before anything is applied
        services.workspace.archive.assessments.tally(selection)
    results: list[Mapping[str, object]] = []
    for decision in body.decisions:
        try:
            state = decide(request, decision)
        except InputError as error:
            results.append(
                {"key": decision.key, "id": decision.id, "ok": False, **problem_of(error)}
            )
        else:
            results.append({"key": decision.key, "id": decision.id, "ok": True, "state": state})
    who = visitor_of(request).name or reviewer_of(request, body.decisions[-1].reviewer)
    return Answer({"results": results, "progress": on_the_desk(services, selection, reviewer=who)})


@router.post("/api/rerun", tags=["review"], status_code=202)
async def rerun(request: Request, body: RerunBody) -> Response:
    """Start judging a trial again, or return the state: repeat the same request until `status` is
    not `running`.
    """
    services, sender = services_of(request), sender_of(request, body.reviewer)
    # The store blocks, so calling it in the event loop would delay every stream.
    key = await asyncio.to_thread(key_of, request, body.id)
    served = await asyncio.to_thread(services.review.was_served, key, reviewer=sender.reviewer)
    request_ = RerunRequest(
        key=body.key,
        attempt=body.attempt,
        reason=body.reason,
        note=body.note,
        reviewer=sender.reviewer,
        signed_in=sender.signed_in,
        via=sender.via,
        of_owner=visitor_of(request).role is VisitorRole.OWNER,
        name=body.id,
        sealed=is_sealed(request),
        assessment=key,
        displayed=served and sender.via is not Via.SCRIPT,
    )
    if not (request_.reason.strip() or request_.note.strip()):
        raise InputError("reason", "a rerun needs a reason.")
    with by_its_name(request_.name, request_.assessment):
        await asyncio.to_thread(services.review.check_run, request_.assessment, body.run)
        return Answer(await services.reruns.ask(request_), status_code=202)


def _wanted_back(
    services: Services, name: str, key: AssessmentKey, *, desk: str
) -> AssessmentKey | None:
    """Lease an item again to the desk (browser tab) that held it.

    Returns its key if it is a control item, which no queue lists.
    """
    with by_its_name(name, key):
        row = services.review.control_items.detail(key).row
    leased = row.state is AssessmentState.PENDING and services.queue.claim(key, desk=desk)
    return key if leased and row.purpose is AssessmentPurpose.CONTROL else None


def _control_item(
    services: Services,
    waiting: Sequence[AssessmentKey],
    lying: Sequence[int],
    *,
    held: list[AssessmentKey],
    desk: str,
    limit: int,
    any_left: bool = True,
) -> AssessmentKey | None:
    """Lease a control item to the desk: the item that the desk held before a reload, otherwise a
    newly chosen item.
    """
    if not waiting:
        return None
    chosen = [key for key in waiting if key in lying]
    chosen += services.placement.chosen(
        waiting, held=held, desk=desk, limit=limit, any_left=any_left
    )
    return next((key for key in chosen if services.queue.claim(key, desk=desk)), None)


def _taken(
    services: Services,
    selection: Selection,
    *,
    desk: str,
    reviewer: str,
    holding: list[AssessmentKey],
    limit: int,
) -> list[AssessmentKey]:
    """Lease the next items to a desk, except items that need another person's opinion."""
    given: list[AssessmentKey] = []
    for _ in range(_ROUNDS):
        keys = services.queue.take(
            selection, desk=desk, holding=(*holding, *given), limit=limit - len(given)
        )
        others = (
            services.review.opinions.not_decidable_by(keys, reviewer=reviewer)
            if keys
            else frozenset()
        )
        for key in others:
            services.queue.put_back(key, desk=desk)
        given += [key for key in keys if key not in others]
        if len(given) == limit or not others:
            break
    return given


def decide(request: Request, body: DecisionBody) -> str:
    """Apply one decision and return the new state; raises `InputError` if it is refused."""
    services, sender, key = (
        services_of(request),
        sender_of(request, body.reviewer),
        key_of(request, body.id),
    )
    submitted = SubmittedDecision(
        verb=Verb(body.verb),
        reviewer=sender.reviewer,
        signed_in=sender.signed_in,
        via=sender.via,
        idempotency_key=body.key,
        run=body.run,
        reason=body.reason,
        note=body.note,
        active_ms=body.active_ms,
        corrections=tuple(_scores_of(request, key, body.corrections)),
    )
    with by_its_name(body.id, key):
        # Without this check, a decision during a rerun was accepted and then replaced by the new
        # attempt.
        services.reruns.refuse_meanwhile(key, reviewer=sender.reviewer, idempotency_key=body.key)
        state = services.review.decide(key, submitted)
    services.queue.done_with(key)
    return str(state)


def _scores_of(
    request: Request, key: AssessmentKey, given: Sequence[CorrectionBody]
) -> list[tuple[int, str | None, float]]:
    """Return scores by pane and criterion as numbers; words are read only if one is given, because
    that reads the plan.
    """
    words: ScaleWords = {}
    if any(isinstance(score.score, str) for score in given):
        workspace = services_of(request).workspace
        words = scale_words(workspace.store, workspace.archive.assessments.detail(key).row)
    return [
        (score.pane, score.criterion, score_of(score.score, score.criterion, words, where="score"))
        for score in given
    ]
