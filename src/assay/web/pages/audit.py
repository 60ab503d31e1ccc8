"""Audit pages: the log of decisions, its export, and the check of its hash chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from assay.app.registry import removal
from assay.app.review import audit_log, decisions
from assay.app.wire import plain
from assay.domain.errors import UnknownName
from assay.domain.lifecycle import Verb
from assay.domain.review import Via, reviewer_words
from assay.web.context import services_of
from assay.web.formatting import plural
from assay.web.query_params import known, reads
from assay.web.responses import CSV, Answer
from assay.web.safe_text import visible
from assay.web.templating import page_of
from assay.web.texts import t

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.app.review.audit_log import Chain, LogPage
    from assay.app.workspace import Workspace
    from assay.domain.event_log import EventFilter, LoggedEvent
    from assay.domain.run_removal import RunEvent

FILTERS: Final = ("run", "reviewer", "verb", "via", "item", "day")
KINDS: Final = {"csv": CSV, "jsonl": "application/x-ndjson"}

# A larger number overflows the database's 64-bit integers, which its driver would report as an
# internal error.
Number = Annotated[int | None, Query(ge=0, lt=2**62)]

router = APIRouter(include_in_schema=False)


class AuditQuery:
    """The page's filters, read from its address, and addresses built from them."""

    def __init__(self, request: Request) -> None:
        query = request.query_params
        self.filters = {name: value for name in FILTERS if (value := query.get(name, "").strip())}

    @property
    def filter(self) -> EventFilter:
        given: dict[str, Any] = {**dict.fromkeys(FILTERS), **self.filters}
        if given["item"] is not None:
            given["item"] = decisions.assessment_key(given["item"])
        return audit_log.log_filter(**given)

    def address(
        self, path: str = "/audit", *, before: int | None = None, but: str = "", **other: str
    ) -> str:
        """Return a path with these filters except `but`; `other` replaces some of them."""
        pairs: dict[str, str | int] = {
            name: value for name, value in {**self.filters, **other}.items() if name != but
        }
        if before is not None:
            pairs["before"] = before
        return path + (f"?{urlencode(pairs)}" if pairs else "")


@router.get("/audit")
@reads(*FILTERS)
def audit_page(
    request: Request, before: Number = None, check: Number = None, n: Number = None
) -> Response:
    """Show the log, newest first; with `check`, verify the hash chain from that event on, after `n`
    events verified earlier.
    """
    wanted, workspace = AuditQuery(request), services_of(request).workspace
    log_page = _found(request, wanted, before)
    newest = workspace.event_log.newest()
    chain = None if check is None else audit_log.check(workspace.store, after=check)
    return page_of(
        request,
        "audit/audit.html",
        twin=wanted.address("/audit.json", before=before),
        rows=[_row(event, wanted) for event in log_page.events],
        filters=wanted.filters,
        verbs=list(map(str, Verb)),
        vias=list(map(str, Via)),
        stopped=log_page.stopped,
        active=[
            {"name": name, "value": visible(value), "remove": wanted.address(but=name)}
            for name, value in wanted.filters.items()
        ],
        older=None if log_page.next_before is None else wanted.address(before=log_page.next_before),
        first=wanted.address() if before is not None else None,
        files=[
            {"name": kind.upper(), "open": wanted.address(f"/audit/events.{kind}")}
            for kind in KINDS
        ],
        run_events=[_run_row(event) for event in _run_events(workspace, wanted)]
        if before is None
        else [],
        newest=newest,
        empty=newest[0] == 0,
        chain=None if chain is None else _progress(chain, n or 0),
        on=None if chain is None or chain.ended else _continuation(chain, n or 0),
        broken=None if chain is None else chain.broken,
    )


@router.get("/audit.json")
@reads(*FILTERS)
def audit_twin(request: Request, before: Number = None) -> Response:
    wanted, workspace = AuditQuery(request), services_of(request).workspace
    return Answer(
        _document(wanted, _found(request, wanted, before), _run_events(workspace, wanted))
    )


def _found(request: Request, wanted: AuditQuery, before: int | None) -> LogPage:
    """Return a page of the log; raises `UnknownName` for a reviewer who made no decision."""
    workspace = services_of(request).workspace
    log_page = audit_log.page(workspace.store, wanted.filter, before=before)
    if not log_page.events and log_page.next_before is None and "reviewer" in wanted.filters:
        known("reviewer", wanted.filters["reviewer"], workspace.event_log.reviewers())
    return log_page


@router.get("/audit/check.json")
def check_twin(request: Request, after: Annotated[int, Query(ge=0, lt=2**62)] = 0) -> Response:
    """Verify a part of the hash chain.

    If `ended` is false, call again with `after` set to the last intact event.
    """
    return Answer(
        audit_log.chain_document(audit_log.check(services_of(request).workspace.store, after=after))
    )


@router.get("/audit/events.{kind}")
@reads(*FILTERS)
def events_file(request: Request, kind: str) -> Response:
    """Return all matching events as a file."""
    if kind not in KINDS:
        raise UnknownName("format", kind, KINDS)
    workspace, wanted = services_of(request).workspace, AuditQuery(request).filter
    _found(request, AuditQuery(request), None)
    # reports invalid filters before the response starts
    workspace.event_log.portion(wanted, limit=1)
    events = audit_log.everything(workspace.store, wanted)
    lines = audit_log.as_csv(events) if kind == "csv" else audit_log.as_jsonl(events)
    headers = {
        "content-disposition": f'attachment; filename="assay-audit.{kind}"',
        "cache-control": "no-store",
    }
    return StreamingResponse(
        (line.encode("utf-8", "replace") for line in lines), media_type=KINDS[kind], headers=headers
    )


def _run_events(workspace: Workspace, wanted: AuditQuery) -> list[RunEvent]:
    """Return the events of deleted, archived, replaced and restored runs that match the filters,
    newest first.
    """
    if wanted.filters.keys() - {"run", "reviewer", "day"}:
        return []
    run, reviewer, day = (wanted.filters.get(name, "") for name in ("run", "reviewer", "day"))
    return [
        event
        for event in reversed(removal.events(workspace))
        if event.run_id.startswith(run)
        and event.reviewer == (reviewer or event.reviewer)
        and event.at.startswith(day)
    ]


def _run_row(event: RunEvent) -> Mapping[str, object]:
    return {
        "at": event.at,
        "who": visible(event.reviewer),
        "verb": event.verb,
        "run": visible(event.run_id),
        "replaced_by": event.replaced_by,
        "reason": visible(event.reason),
    }


def _document(
    wanted: AuditQuery, log_page: LogPage, run_events: list[RunEvent]
) -> Mapping[str, object]:
    before = log_page.next_before
    return {
        "filters": wanted.filters,
        "events": [audit_log.logged_event(logged) for logged in log_page.events],
        "runs": list(run_events),
        "next": None if before is None else wanted.address("/audit.json", before=before),
    }


def _row(logged: LoggedEvent, wanted: AuditQuery) -> Mapping[str, object]:
    document = audit_log.logged_event(logged)
    event = document.logged
    return {
        **plain(document),
        "verb": event.decision,
        "became": f"{t(f'state.{event.before}')} → {t(f'state.{event.after}')}",
        "way": event.via,
        "reviewer": visible(reviewer_words(event.reviewer, event.stated_by or "")),
        "of_reviewer": wanted.address(reviewer=event.reviewer),
        "of_item": wanted.address(item=event.id),
        "own": f"/audit?{urlencode({'before': event.event + 1})}#e{event.event}",
        "thing": visible(document.thing),
        "suite": visible(document.suite),
        "reason": visible(event.reason),
        "note": visible(event.note),
        "scores": [
            {"name": visible(name), "value": f"{100 * value:.1f}"}
            for name, value in (event.corrections or {}).items()
        ],
        "open": f"/assessments/{event.id}",
        "run_page": f"/runs/{quote(document.run_id, safe='')}",
    }


def _progress(chain: Chain, before: int) -> str:
    """Describe the progress of the chain check in a sentence; `before` is the number of events
    checked earlier.
    """
    if chain.broken is not None:
        return t("audit.broken", broken=chain.broken)
    n = before + chain.checked
    intact = f"The chain is intact up to event {chain.up_to}"
    if not chain.ended:
        return f"Checked {plural(n, '1 event', f'{n} events')}. {intact}."
    if chain.after and not before:
        events = plural(n, "one event", f"{n} events")
        return f"Checked the {events} after event {chain.after}. {intact}, the newest one."
    return t("audit.intact", n=n, up_to=chain.up_to) if chain.up_to else "There are no events yet."


def _continuation(chain: Chain, before: int) -> str:
    return f"/audit?{urlencode({'check': chain.up_to, 'n': before + chain.checked})}"
