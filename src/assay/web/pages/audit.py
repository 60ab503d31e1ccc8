"""Audit pages: the log of decisions, its export, and the check of its hash chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Final, TypedDict
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
from assay.web.query_params import PageQuery, known
from assay.web.responses import CSV, Answer
from assay.web.safe_text import visible
from assay.web.templating import page_of
from assay.web.texts import t

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.app.review.audit_log import Chain, LogPage
    from assay.app.workspace import Workspace
    from assay.domain.event_log import EventFilter, LoggedEvent
    from assay.domain.run_removal import RunEvent

KINDS: Final = {"csv": CSV, "jsonl": "application/x-ndjson"}

# A larger number overflows the database's 64-bit integers, which its driver would report as an
# internal error.
Number = Annotated[int | None, Query(ge=0, lt=2**62)]

router = APIRouter(include_in_schema=False)


class AuditFilters(PageQuery):
    """Filters of the log."""

    run: str = ""
    reviewer: str = ""
    verb: str = ""
    via: str = ""
    item: str = ""
    day: str = ""

    @property
    def filters(self) -> dict[str, str]:
        """The filters that are set."""
        return self.model_dump(include={*AuditFilters.model_fields}, exclude_defaults=True)

    @property
    def filter(self) -> EventFilter:
        return audit_log.log_filter(
            run=self.run,
            reviewer=self.reviewer,
            verb=self.verb,
            via=self.via,
            item=decisions.assessment_key(self.item) if self.item else None,
            day=self.day,
        )


class AuditQuery(AuditFilters):
    """Filters of the log, and the event before which a page of it begins."""

    PASSING: ClassVar[tuple[str, ...]] = ("before",)

    before: Number = None


class AuditPageQuery(AuditQuery):
    """The state of the page: with `check`, it verifies the hash chain from that event on, after `n`
    events verified earlier.
    """

    PASSING: ClassVar[tuple[str, ...]] = ("before", "check", "n")

    check: Number = None
    n: Number = None


class AuditContext(TypedDict):
    """Values of `audit/audit.html`."""

    rows: Sequence[Mapping[str, object]]
    filters: dict[str, str]
    verbs: Sequence[str]
    vias: Sequence[str]
    stopped: bool
    active: Sequence[Mapping[str, str]]
    older: str | None
    first: str | None
    files: Sequence[Mapping[str, str]]
    run_events: Sequence[Mapping[str, object]]
    newest: tuple[int, str]
    empty: bool
    chain: str | None
    on: str | None
    broken: int | None


@router.get("/audit")
def audit_page(request: Request, wanted: Annotated[AuditPageQuery, Query()]) -> Response:
    """Show the log, newest first, and the check of its hash chain."""
    workspace = services_of(request).workspace
    log_page = _found(request, wanted, wanted.before)
    check, n = wanted.check, wanted.n or 0
    newest = workspace.event_log.newest()
    chain = None if check is None else audit_log.check(workspace.store, after=check)
    return page_of(
        request,
        "audit/audit.html",
        twin=wanted.address("/audit.json", AuditPageQuery(before=wanted.before)),
        **AuditContext(
            rows=[_row(event, wanted) for event in log_page.events],
            filters=wanted.filters,
            verbs=list(map(str, Verb)),
            vias=list(map(str, Via)),
            stopped=log_page.stopped,
            active=[
                {
                    "name": name,
                    "value": visible(value),
                    "remove": wanted.model_copy(update={name: ""}).address("/audit"),
                }
                for name, value in wanted.filters.items()
            ],
            older=None
            if log_page.next_before is None
            else wanted.address("/audit", AuditPageQuery(before=log_page.next_before)),
            first=None if wanted.before is None else wanted.address("/audit"),
            files=[
                {"name": kind.upper(), "open": wanted.address(f"/audit/events.{kind}")}
                for kind in KINDS
            ],
            run_events=[_run_row(event) for event in _run_events(workspace, wanted)]
            if wanted.before is None
            else [],
            newest=newest,
            empty=newest[0] == 0,
            chain=None if chain is None else _progress(chain, n),
            on=None if chain is None or chain.ended else _continuation(chain, n),
            broken=None if chain is None else chain.broken,
        ),
    )


@router.get("/audit.json")
def audit_twin(request: Request, wanted: Annotated[AuditQuery, Query()]) -> Response:
    log_page = _found(request, wanted, wanted.before)
    return Answer(_document(wanted, log_page, _run_events(services_of(request).workspace, wanted)))


def _found(request: Request, wanted: AuditFilters, before: int | None) -> LogPage:
    """Return a page of the log; raises `UnknownName` for a reviewer who made no decision."""
    workspace = services_of(request).workspace
    log_page = audit_log.page(workspace.store, wanted.filter, before=before)
    if not log_page.events and log_page.next_before is None and wanted.reviewer:
        known("reviewer", wanted.reviewer, workspace.event_log.reviewers())
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
def events_file(request: Request, kind: str, wanted: Annotated[AuditFilters, Query()]) -> Response:
    """Return all matching events as a file."""
    if kind not in KINDS:
        raise UnknownName("format", kind, KINDS)
    workspace = services_of(request).workspace
    _found(request, wanted, None)
    # reports invalid filters before the response starts
    workspace.event_log.portion(wanted.filter, limit=1)
    events = audit_log.everything(workspace.store, wanted.filter)
    lines = audit_log.as_csv(events) if kind == "csv" else audit_log.as_jsonl(events)
    headers = {
        "content-disposition": f'attachment; filename="assay-audit.{kind}"',
        "cache-control": "no-store",
    }
    return StreamingResponse(
        (line.encode("utf-8", "replace") for line in lines), media_type=KINDS[kind], headers=headers
    )


def _run_events(workspace: Workspace, wanted: AuditFilters) -> list[RunEvent]:
    """Return the events of deleted, archived, replaced and restored runs that match the filters,
    newest first.
    """
    if wanted.filters.keys() - {"run", "reviewer", "day"}:
        return []
    return [
        event
        for event in reversed(removal.events(workspace.store))
        if event.run_id.startswith(wanted.run)
        and event.reviewer == (wanted.reviewer or event.reviewer)
        and event.at.startswith(wanted.day)
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
        "next": None
        if before is None
        else wanted.address("/audit.json", AuditQuery(before=before)),
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
        "of_reviewer": wanted.address("/audit", AuditQuery(reviewer=event.reviewer)),
        "of_item": wanted.address("/audit", AuditQuery(item=event.id)),
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
