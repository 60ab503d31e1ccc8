"""Audit log of review decisions: pages, exports, and a check that no event was changed."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from time import monotonic
from typing import TYPE_CHECKING, Final

from assay.app.review.review_documents import ReviewEventDocument, review_event
from assay.app.wire import document, inlined, plain, to_json
from assay.domain.errors import InputError
from assay.domain.event_log import ChainLook, EventFilter, LoggedEvent
from assay.domain.lifecycle import Verb
from assay.domain.review import Via
from assay.domain.unescaped_json import unescaped_json
from assay.formats.csv_lines import CsvLines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from assay.domain.identifiers import AssessmentKey
    from assay.store.opening import Store

PORTION: Final = 50
SCAN_S: Final = 0.3
"""Maximum seconds to search for events that match a page's filter; the next page continues where
the search stopped.
"""
CHECK_S: Final = 0.8
"""Maximum seconds that one request checks the hash chain; the next request continues where the
check stopped.
"""
_EXPORTED_AT_ONCE: Final = 500

COLUMNS: Final = (
    "event",
    "at",
    "reviewer",
    "decision",
    "before",
    "after",
    "run",
    "suite",
    "task",
    "thing",
    "trial",
    "assessment",
    "via",
    "displayed",
    "active_s",
    "reason",
    "note",
    "corrections",
    "road",
    "stated_by",
)


@document
class LoggedEventDocument:
    """JSON of one audit log event, with its run, task and trial."""

    logged: ReviewEventDocument = inlined()
    n_corrections: int
    active_s: float | None
    run_id: str
    suite: str
    task: str
    thing: str
    trial: int
    trials: int


@document
class ChainDocument:
    """JSON of a hash chain check; see `Chain`."""

    after: int
    checked: int
    intact_up_to: int
    first_broken_event: int | None
    ended: bool
    newest_event: int
    newest_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """A page of events, newest first.

    Attributes:
        next_before: number below which the next page begins; None on the last page.
        stopped: True if the page is not full because the search reached its time limit.
    """

    events: tuple[LoggedEvent, ...]
    next_before: int | None
    stopped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Result of a check of the hash chain.

    The hash of an event includes the hash of the previous event.

    Attributes:
        after: event number after which the check began.
        checked: number of events that this call checked.
        up_to: last event with a correct hash.
        broken: first event with a wrong hash; None if all hashes are correct.
        ended: True if the check reached the newest event or a wrong hash.
        newest, hash: number and hash of the newest event.
    """

    after: int
    checked: int
    up_to: int
    broken: int | None
    ended: bool
    newest: int
    hash: str


def log_filter(
    *,
    run: str | None = None,
    reviewer: str | None = None,
    verb: str | None = None,
    via: str | None = None,
    item: AssessmentKey | None = None,
    day: str | None = None,
) -> EventFilter:
    """Return a filter from the parameters of a web address, ignoring empty parameters; raises
    `InputError`.
    """
    for name, value, choices in (("verb", verb, [*map(str, Verb)]), ("via", via, [*map(str, Via)])):
        if value and value not in choices:
            raise InputError(name, f"is {value!r}.", remedy=f"Use one of {', '.join(choices)}.")
    if day and not _is_day(day):
        raise InputError("day", f"is {day!r}.", remedy="Write a day as 2026-01-31, in UTC.")
    return EventFilter(
        run=run or None,
        reviewer=reviewer or None,
        verb=Verb(verb) if verb else None,
        via=Via(via) if via else None,
        item=item,
        day=day or None,
    )


def _is_day(text: str) -> bool:
    with suppress(ValueError):
        return bool(re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) and date.fromisoformat(text))
    return False


def page(
    store: Store,
    wanted: EventFilter,
    *,
    before: int | None = None,
    limit: int = PORTION,
    clock: Callable[[], float] = monotonic,
) -> LogPage:
    """Return a page of matching events, newest first; raises the errors of `EventLog.portion`."""
    began, place = clock(), before
    events_shown: list[LoggedEvent] = []
    while True:
        events, after = store.event_log.portion(wanted, before=place, limit=limit)
        for entry in events:
            events_shown.append(entry)
            if len(events_shown) == limit:
                last = entry is events[-1] and after is None
                next_before = None if last else entry.event.id
                return LogPage(events=tuple(events_shown), next_before=next_before, stopped=False)
        place = after
        if place is None or clock() - began > SCAN_S:
            return LogPage(events=tuple(events_shown), next_before=place, stopped=place is not None)


def everything(store: Store, wanted: EventFilter) -> Iterator[LoggedEvent]:
    """Yield all matching events, newest first."""
    place: int | None = None
    while True:
        events, place = store.event_log.portion(wanted, before=place, limit=_EXPORTED_AT_ONCE)
        yield from events
        if place is None:
            return


def as_csv(events: Iterator[LoggedEvent]) -> Iterator[str]:
    """Yield events as CSV lines with a header; text that a spreadsheet would run as a formula is
    escaped.
    """
    lines: list[str] = []
    table = CsvLines(lines.append, COLUMNS)
    for logged in events:
        row = plain(logged_event(logged))
        corrections = json.dumps(row["corrections"]) if row["corrections"] else ""
        row |= {"run": row["run_id"], "assessment": row["id"], "corrections": corrections}
        table.row([row[name] for name in COLUMNS])
        if len(lines) >= _EXPORTED_AT_ONCE:
            yield "".join(lines)
            lines.clear()
    yield "".join(lines)


def as_jsonl(events: Iterator[LoggedEvent]) -> Iterator[str]:
    for logged in events:
        yield unescaped_json(logged_event(logged), default=to_json) + "\n"


def check(
    store: Store, *, after: int = 0, most_s: float = CHECK_S, clock: Callable[[], float] = monotonic
) -> Chain:
    """Check the hashes after an event number, oldest first, until a hash is wrong or `most_s`
    seconds have passed.
    """
    began, checked, place = clock(), 0, after
    while True:
        look: ChainLook = store.event_log.check(place)
        checked, place = checked + look.checked, look.up_to
        if look.ended or clock() - began > most_s:
            newest, digest = store.event_log.newest()
            return Chain(
                after=after,
                checked=checked,
                up_to=place,
                broken=look.broken,
                ended=look.ended,
                newest=newest,
                hash=digest,
            )


def logged_event(entry: LoggedEvent) -> LoggedEventDocument:
    """Return the JSON of an event: the fields in `assay review show`, with run, task and trial."""
    return LoggedEventDocument(
        logged=review_event(entry.event),
        n_corrections=len(entry.event.decision.corrections),
        active_s=None if entry.active_ms is None else entry.active_ms / 1000,
        run_id=entry.run_id,
        suite=entry.suite,
        task=entry.task,
        thing=entry.thing,
        trial=entry.k,
        trials=entry.of,
    )


def chain_document(chain: Chain) -> ChainDocument:
    return ChainDocument(
        after=chain.after,
        checked=chain.checked,
        intact_up_to=chain.up_to,
        first_broken_event=chain.broken,
        ended=chain.ended,
        newest_event=chain.newest,
        newest_hash=chain.hash,
    )
