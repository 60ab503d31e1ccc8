"""Pages about reviewers: statistics of their reviews, and the settlement of disputes between two
reviewers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypedDict
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from assay.analysis.reviewers import BASE, Reviewer
from assay.app.registry import runs
from assay.app.review import adjudication, attention, reviewer_metrics as verbs
from assay.app.review.item_view import panes_of
from assay.app.review.own_decisions import OwnDecision, own_decisions
from assay.app.statistics.results import wording
from assay.app.wire import to_json
from assay.domain.errors import UnknownName
from assay.domain.identifiers import RunId, shown_assessment
from assay.domain.people import VisitorRole
from assay.domain.selection import Selection
from assay.web.context import reviewer_of, sender_of, services_of
from assay.web.query_params import known
from assay.web.responses import Answer, Body
from assay.web.review_state import by_its_name, is_sealed, key_of
from assay.web.security.access import visitor_of
from assay.web.templating import page_of
from assay.web.texts import WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.analysis.figures import Figure
    from assay.domain.attention import Attention

router = APIRouter()

Before = Annotated[int | None, Query(ge=1, lt=2**62)]

_REASONS: Final = WORDS["reviewer_reasons"]

_ALTERATIONS: Final = WORDS["alterations"]

_SIGNS: Final = {
    "few_changes": "At most 2% of grades changed or rejected, with at least 20 approved",
    "quick": "Median pace faster than 95% of all decisions",
    "misses": "Fewer than 80% of at least 20 altered checks caught",
}

_SHOWN: Final = ("catch_rate", "self_alike", "anchoring", "others_alike", "active_s", "drift")
_DIFFERENCES: Final = frozenset({"anchoring", "drift"})
_PLAIN: Final = frozenset({"sensitivity", "caution"})
_GROUPS: Final = (
    ("checks", ("catch_rate", "false_alarms", "sensitivity", "caution")),
    ("self", ("self_alike", "self_alpha", "self_distance")),
    (
        "judge",
        (
            "acceptance",
            "anchoring",
            "apart_blind",
            "apart_assisted",
            "toward",
            "away",
            "judge_alpha",
            "judge_distance",
        ),
    ),
    ("others", ("others_alike", "others_alpha")),
    ("habits", ("rejections", "reruns", "position")),
    ("pace", ("active_s", "pace", "hasty", "drift")),
)
_CHART: Final = (640, 150)  # width and height of the moving average's chart


class AdjudicationBody(Body):
    """The settlement of a dispute; `together` is true if the two reviewers agreed on it."""

    key: str = Field(min_length=8, max_length=80)
    id: str
    choice: Literal["first", "second", "reject"]
    reason: str = Field(max_length=2_000)
    kind: str = Field(max_length=40)
    confidence: str = Field(max_length=40)
    together: bool = False
    reviewer: str | None = Field(default=None, max_length=120)


@router.get("/reviewers.json", include_in_schema=False)
def reviewers_twin(request: Request, run: str | None = None) -> Response:
    workspace, run_id = services_of(request).workspace, _run(request, run)
    by_name, stated = (
        verbs.reviewers(workspace.store, run=run_id),
        verbs.stated_reviewers(workspace.store, run=run_id),
    )
    documents = [
        verbs.document(name, reviewer, stated.get(name, {})) for name, reviewer in by_name.items()
    ]
    signs = _attention(request, run_id)
    named = [
        {"reviewer": name, **to_json(attention.attention_document(own))}
        for name, own in signs.items()
    ]
    return Answer({"reviewers": documents, "attention": named})


@router.get("/reviewers", include_in_schema=False)
def reviewers_page(request: Request, run: str | None = None) -> Response:
    """Show all reviewers with statistics of their reviews."""
    run = _run(request, run)
    workspace = services_of(request).workspace
    by_name, stated = (
        verbs.reviewers(workspace.store, run=run),
        verbs.stated_reviewers(workspace.store, run=run),
    )
    query = f"?{urlencode({'run': run})}" if run else ""
    rows = [
        {
            "name": name,
            "stated_by": stated.get(name, {}),
            "href": f"/reviewers/{quote(name, safe='')}{query}",
            "decisions": reviewer.decisions,
            "cells": [said(key, getattr(reviewer, key)) for key in _SHOWN],
        }
        for name, reviewer in by_name.items()
    ]
    signs = [(name, wording.attention(own)) for name, own in _attention(request, run).items()]
    return page_of(
        request,
        "reviewers/reviewers.html",
        twin=f"/reviewers.json{query}",
        rows=rows,
        signs=signs,
        run=run,
    )


def _attention(request: Request, run: RunId | None) -> Mapping[str, Attention]:
    """Return the signs of careless reviewing by reviewer, in one run or in all; empty unless the
    owner asks.
    """
    if visitor_of(request).role is not VisitorRole.OWNER:
        return {}
    workspace = services_of(request).workspace
    listed = (
        [run] if run else [summary.id for summary in workspace.archive.runs.matching(Selection())]
    )
    return attention.by_reviewer(workspace.store, listed)


@router.get("/reviewers/{name}/decisions.json", include_in_schema=False)
def decisions_twin(request: Request, name: str, before: Before = None) -> Response:
    rows, older = _decisions(request, name, before)
    return Answer(
        {
            "reviewer": name,
            "decisions": rows,
            "next": older and f"{_own_page(name)}.json?before={older}",
        }
    )


@router.get("/reviewers/{name}/decisions", include_in_schema=False)
def decisions_page(request: Request, name: str, before: Before = None) -> Response:
    """List a reviewer's decisions, newest first."""
    rows, older = _decisions(request, name, before)
    return page_of(
        request,
        "reviewers/decisions.html",
        page="decisions" if is_sealed(request) else "reviewers",
        title=f"Decisions of {name}",
        twin=f"{_own_page(name)}.json" + (f"?before={before}" if before else ""),
        name=name,
        rows=rows,
        older=older and f"{_own_page(name)}?before={older}",
        first=before and _own_page(name),
    )


def _own_page(name: str) -> str:
    return f"/reviewers/{quote(name, safe='')}/decisions"


def _decisions(
    request: Request, name: str, before: int | None
) -> tuple[list[OwnDecision], int | None]:
    """Return a page of decisions with the item ids that the visitor may see, and the start of the
    next page.
    """
    services = services_of(request)
    as_id = services.concealment.sealed if is_sealed(request) else shown_assessment
    items = services.review.control_items
    rows, older = own_decisions(
        services.workspace.store, items, services.showcase, name, as_id=as_id, before=before
    )
    if not rows and name != reviewer_of(request):
        known("reviewer", name, verbs.reviewers(services.workspace.store))
    return rows, older


@router.get("/reviewers/{name}/checks.json", include_in_schema=False)
def checks_twin(request: Request, name: str, run: str | None = None) -> Response:
    return Answer({"reviewer": name, "checks": _checks(request, name, _run(request, run))})


@router.get("/reviewers/{name}/checks", include_in_schema=False)
def checks_page(request: Request, name: str, run: str | None = None) -> Response:
    """Show and explain the outcomes of a reviewer's planted checks from ended sessions and runs."""
    run = _run(request, run)
    query = f"?{urlencode({'run': run})}" if run else ""
    return page_of(
        request,
        "reviewers/control_items.html",
        title=f"Checks of {name}",
        twin=f"/reviewers/{quote(name, safe='')}/checks.json{query}",
        name=name,
        run=run,
        checks=_checks(request, name, run),
        mine=name == reviewer_of(request),
    )


class EndBody(Body):
    """Request to end a reviewer's session."""

    key: str = Field(min_length=8, max_length=80)
    reviewer: str | None = Field(default=None, max_length=120)


@router.post("/api/review/end", tags=["review"])
def end(request: Request, body: EndBody) -> Response:
    """End a reviewer's session. The outcomes of its planted checks may be shown afterwards."""
    verbs.end_session(
        services_of(request).workspace.store,
        reviewer_of(request, body.reviewer),
        idempotency_key=body.key,
    )
    return Answer({"ok": True})


@router.get("/reviewers/{name}.json", include_in_schema=False)
def reviewer_twin(request: Request, name: str, run: str | None = None) -> Response:
    run_id = _run(request, run)
    stated = verbs.stated_reviewers(services_of(request).workspace.store, run=run_id).get(name, {})
    return Answer(verbs.document(name, _reviewer(request, name, run_id), stated))


class ReviewerContext(TypedDict):
    """Values of `reviewers/reviewer.html`."""

    name: str
    counts: str
    stated_by: dict[str, int]
    groups: Sequence[tuple[str, Sequence[dict[str, object]]]]
    run: RunId | None
    parts: Sequence[object]
    kinds: Sequence[Mapping[str, object]]
    watch: Mapping[str, object] | None
    stamp: Mapping[str, object]
    checks: str
    decisions: str


@router.get("/reviewers/{name}", include_in_schema=False)
def reviewer_page(request: Request, name: str, run: str | None = None) -> Response:
    """Show one reviewer's figures, each with its range and definition."""
    run = _run(request, run)
    reviewer = _reviewer(request, name, run)
    query = f"?{urlencode({'run': run})}" if run else ""
    groups = [
        (group, [{"key": key, **said(key, getattr(reviewer, key))} for key in keys])
        for group, keys in _GROUPS
    ]
    return page_of(
        request,
        "reviewers/reviewer.html",
        title=f"Reviewer {name}",
        twin=f"/reviewers/{quote(name, safe='')}.json{query}",
        one=reviewer,
        **ReviewerContext(
            name=name,
            counts=wording.reviewer_decisions(
                approved=reviewer.by_verb["approve"],
                corrected=reviewer.by_verb["correct"],
                rejected=reviewer.by_verb["reject"],
                blind=reviewer.blind,
            ),
            stated_by=verbs.stated_reviewers(services_of(request).workspace.store, run=run).get(
                name, {}
            ),
            groups=groups,
            run=run,
            parts=[said("drift_part", part) for part in reviewer.drift_parts],
            kinds=_kinds(reviewer),
            watch=_watch(reviewer),
            stamp=_stamp(reviewer),
            checks=f"/reviewers/{quote(name, safe='')}/checks{query}",
            decisions=_own_page(name),
        ),
    )


@router.get("/adjudication.json", include_in_schema=False)
def adjudication_twin(request: Request) -> Response:
    """Return the disputes as JSON, without the reviewers' names."""
    return Answer({"disputes": _disputes(request), "settled": _settled(request)})


@router.get("/adjudication", include_in_schema=False)
def adjudication_page(request: Request) -> Response:
    """List disputes between two reviewers, without their names, with the form that settles each."""
    return page_of(
        request,
        "reviewers/adjudication.html",
        twin="/adjudication.json",
        disputes=_disputes(request),
        settled=_settled(request),
        kinds=adjudication.DISAGREEMENTS,
        confidences=adjudication.CONFIDENCES,
    )


@router.post("/api/adjudicate", tags=["review"])
def adjudicate(request: Request, body: AdjudicationBody) -> Response:
    """Settle a dispute."""
    services = services_of(request)
    key = key_of(request, body.id)
    sender = sender_of(request, body.reviewer)
    with by_its_name(body.id, key):
        state = adjudication.settle(
            services.workspace.store,
            services.workspace.decisions,
            services.review,
            key,
            choice=body.choice,
            reason=body.reason,
            kind=body.kind,
            confidence=body.confidence,
            together=body.together,
            reviewer=sender.reviewer,
            via=sender.via,
            signed_in=sender.signed_in,
            idempotency_key=body.key,
        )
    services.queue.done_with(key)
    return Answer({"ok": True, "state": state})


def _reviewer(request: Request, name: str, run: RunId | None) -> Reviewer:
    services = services_of(request)
    # Otherwise a reviewer could learn from a change of their own figures that an item was a planted
    # check.
    covered = services.concealment.covered() if is_sealed(request) else frozenset()
    also = (name,) if _is_own(request, name) else ()
    return verbs.reviewer(services.workspace.store, name, run=run, covered=covered, also=also)


def _is_own(request: Request, name: str) -> bool:
    """True for the visitor's own pages, which open before the first decision too."""
    return visitor_of(request).name == name


def said(key: str, figure: Figure) -> Mapping[str, object]:
    """Return a figure's value, range and count as texts, or the reason if it has no value."""
    if figure.value is None:
        return {
            "value": None,
            "range": None,
            "n": figure.n,
            "reason": _REASONS[figure.reason or "nothing_yet"],
        }
    shown = _range(key, figure.ci95)
    return {"value": _number(key, figure.value), "range": shown, "n": figure.n, "reason": None}


def _number(key: str, value: float) -> str:
    if key == "active_s":
        return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s"
    if key == "pace":
        return f"{round(value)} characters/s"
    if key.endswith("alpha") or key in _PLAIN:
        return f"{value:.2f}"
    shown = round(100 * value)
    if key in _DIFFERENCES:
        return f"{'+' if shown > 0 else '−' if shown < 0 else ''}{abs(shown)} points"
    return (
        f"{100 * value:.1f} points"
        if key.endswith("distance") or key.startswith("apart")
        else f"{shown}%"
    )


def _range(key: str, ci95: tuple[float, float] | None) -> str | None:
    if ci95 is None:
        return None
    low, high = (_number(key, bound) for bound in ci95)
    return f"{low} to {high}"


def _kinds(reviewer: Reviewer) -> list[Mapping[str, object]]:
    return [
        {"kind": _ALTERATIONS[kind], "caught": k, "n": n}
        for kind, (k, n) in reviewer.caught_by_kind.items()
    ]


def _stamp(reviewer: Reviewer) -> Mapping[str, object]:
    """Return the signs that a reviewer approves without reading, and `raised`, which is true if all
    signs are present.
    """
    signs = [(sign, _ANSWERS[getattr(reviewer.stamp, name)]) for name, sign in _SIGNS.items()]
    return {"raised": reviewer.stamp.raised, "signs": signs}


_ANSWERS: Final = {True: "yes", False: "no", None: "unknown"}


def _watch(reviewer: Reviewer) -> Mapping[str, object] | None:
    """Return the moving average of blind verdicts, in points, as lines of a chart and as table
    rows.
    """
    watch = reviewer.watch
    if watch is None:
        return None
    width, height = _CHART
    most = max(max(abs(value - watch.centre) for value in point) for point in watch.points) or 1.0
    step = width / max(1, len(watch.points) - 1)

    def line(which: int) -> str:
        ys = (height / 2 * (1 - (point[which] - watch.centre) / most) for point in watch.points)
        return " ".join(f"{place * step:.1f},{y:.1f}" for place, y in enumerate(ys))

    # The drawing has every point; the table beside it has about twelve rows.
    every = max(1, len(watch.points) // 12)
    names = ("average", "low", "high")
    rows = [
        {
            "at": BASE + place + 1,
            **{name: f"{100 * value:+.1f}" for name, value in zip(names, point, strict=True)},
        }
        for place, point in enumerate(watch.points)
        if (place + 1) % every == 0 or place + 1 == len(watch.points)
    ]
    return {
        "width": width,
        "height": height,
        "average": line(0),
        "low": line(1),
        "high": line(2),
        "rows": rows,
        "centre": f"{100 * watch.centre:+.1f}",
        "left_at": watch.left_at,
    }


def _checks(request: Request, name: str, run: RunId | None) -> list[Mapping[str, object]]:
    services = services_of(request)
    rows: list[Mapping[str, object]] = []
    as_id = services.concealment.sealed if is_sealed(request) else shown_assessment
    try:
        answered = verbs.answered(services.workspace.store, name, run=run)
    except UnknownName:
        if not _is_own(request, name):
            raise
        answered = ()
    for check in answered:
        row = check.detail.row
        label = services.showcase.labels(row)
        changes = {
            part: [
                {
                    "candidate": label.get(who, ""),
                    "criterion": criterion,
                    "was": was,
                    "shown": shown,
                }
                for who, criterion, was, shown in cells
            ]
            for part, cells in (("changed", check.changed), ("words", check.words))
        }
        document = {name: getattr(check, name) for name in ("how", "verb", "right", "at")}
        rows.append(
            {
                "id": as_id(row.key),
                "thing": row.thing,
                "k": row.k,
                "of": row.of,
                **document,
                **changes,
            }
        )
    return rows


def _run(request: Request, run: str | None) -> RunId | None:
    return (
        None
        if run is None
        else runs.runs(services_of(request).workspace.store, Selection(runs=(run,)))[0].id
    )


def _settled(request: Request) -> dict[str, dict[str, int]]:
    return adjudication.settled(services_of(request).workspace.store)


def _disputes(request: Request) -> list[Mapping[str, object]]:
    services = services_of(request)
    rows: list[Mapping[str, object]] = []
    disputes = adjudication.disputes(services.workspace.store, services.review)
    services.review.note_served(
        [dispute.detail.row.key for dispute in disputes], reviewer=reviewer_of(request)
    )
    for dispute in disputes:
        row, order = dispute.detail.row, panes_of(dispute.detail.row)
        labels = [*services.showcase.labels(row).values()]
        rows.append(
            {
                "id": shown_assessment(row.key),
                **{name: getattr(row, name) for name in ("thing", "k", "of", "suite", "run_id")},
                "labels": labels,
                "opinions": [
                    {
                        "verb": str(opinion.given.verb),
                        "reason": opinion.given.reason,
                        "note": opinion.given.note,
                        "scores": [opinion.given.result.get(name) for name in order],
                        "set": [
                            {
                                "candidate": labels[order.index(name)],
                                "criterion": criterion,
                                "score": value,
                            }
                            for (name, criterion), value in opinion.given.corrections.items()
                            if name in order
                        ],
                    }
                    for opinion in dispute.opinions
                ],
            }
        )
    return rows
