"""Append review events.

Each event's hash covers the previous event's hash, which reveals later edits.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Row, insert, select

from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.review import Decision, ReviewEvent, Via
from assay.store.database import schema
from assay.store.database.codec import bytes_json, json_bytes, json_text, plain

_AT_ONCE: Final = 5_000
_NOT_HASHED: Final = frozenset({"id", "hash", "stated_by"})


def append_event(
    connection: Connection,
    decision: Decision,
    *,
    run_key: int,
    before: AssessmentState,
    after: AssessmentState,
    at: str,
) -> ReviewEvent:
    table = schema.review_event
    last = connection.execute(
        select(table.c.hash).order_by(table.c.id.desc()).limit(1)
    ).scalar_one_or_none()
    values: dict[str, Any] = {
        **event_values(decision, before=before, after=after, at=at),
        "run_key": run_key,
        "previous_hash": last or "",
    }
    values["hash"] = hash_of(values)
    row = connection.execute(insert(table).values(**values).returning(*table.c)).one()
    return event_of(row)


def as_stored(decision: Decision) -> Decision:
    """Return a decision with its texts cleaned for storage, to compare it with a stored
    decision.
    """
    return replace(
        decision,
        reviewer=plain(decision.reviewer),
        stated_by=plain(decision.stated_by),
        login=plain(decision.login),
        reason=plain(decision.reason),
        note=plain(decision.note),
        corrections=dict(decision.corrections),
        key=None if decision.key is None else plain(decision.key),
    )


def event_values(
    decision: Decision, *, before: AssessmentState, after: AssessmentState, at: str
) -> dict[str, str | int | bool | None]:
    """Return an event's columns without those of the hash chain."""
    # Sorted, because the hash must not depend on the order in which a page sent the corrections.
    corrections = sorted(
        (
            [candidate, criterion, value]
            for (candidate, criterion), value in decision.corrections.items()
        ),
        key=lambda row: (row[0], row[1] is not None, row[1] or ""),
    )
    return {
        "idempotency_key": None if decision.key is None else plain(decision.key),
        "assessment_key": int(decision.assessment),
        "verb": decision.verb.value,
        "before": before.value,
        "after": after.value,
        "reviewer": plain(decision.reviewer),
        "via": decision.via.value,
        "displayed": decision.displayed,
        "reason": plain(decision.reason),
        "note": plain(decision.note),
        "corrections": json_text(corrections),
        "at": at,
        "stated_by": plain(decision.stated_by) or None,
    }


def event_of_key(connection: Connection, key: str) -> ReviewEvent | None:
    table = schema.review_event
    row = connection.execute(select(table).where(table.c.idempotency_key == plain(key))).first()
    return None if row is None else event_of(row)


def events_of(connection: Connection, assessments: Collection[int]) -> dict[int, list[ReviewEvent]]:
    table = schema.review_event
    events: defaultdict[int, list[ReviewEvent]] = defaultdict(list)
    rows = connection.execute(
        select(table).where(table.c.assessment_key.in_(assessments)).order_by(table.c.id)
    )
    for row in rows:
        events[row.assessment_key].append(event_of(row))
    return events


def first_broken(connection: Connection) -> int | None:
    """Return the id of the first event whose hash does not match the previous event; None if the
    chain is intact.
    """
    last, checked = 0, 1
    while checked:
        checked, last, broken = chain_part(connection, after=last, limit=_AT_ONCE)
        if broken is not None:
            return broken
    return None


def chain_part(connection: Connection, *, after: int, limit: int) -> tuple[int, int, int | None]:
    """Check the hashes of up to `limit` events above a number.

    Returns (events checked, last event with a correct hash or `after`, first event with a wrong
    hash or None).
    """
    table = schema.review_event
    before = select(table.c.hash).where(table.c.id <= after).order_by(table.c.id.desc()).limit(1)
    previous, last = connection.execute(before).scalar_one_or_none() or "", after
    rows = connection.execute(
        select(table).where(table.c.id > after).order_by(table.c.id).limit(limit)
    ).all()
    for checked, row in enumerate(rows, 1):
        values = dict(row._mapping)
        if values["previous_hash"] != previous or values["hash"] != hash_of(values):
            return checked, last, int(row.id)
        previous, last = row.hash, int(row.id)
    return len(rows), last, None


def hash_of(values: Mapping[str, Any]) -> str:
    """Return an event's hash over all columns except its id and hash, including the previous
    event's hash.
    """
    hashed = [
        values[column.name] for column in schema.review_event.c if column.name not in _NOT_HASHED
    ]
    # Without a stater the hash is the one of schema 0011, so that the chains of older stores and
    # records stay intact.
    if values.get("stated_by") is not None:
        hashed.append(values["stated_by"])
    return hashlib.sha256(json_bytes(hashed)).hexdigest()


def event_of(row: Row[Any]) -> ReviewEvent:
    return ReviewEvent(
        id=row.id,
        decision=Decision(
            assessment=AssessmentKey(row.assessment_key),
            verb=Verb(row.verb),
            reviewer=row.reviewer,
            via=Via(row.via),
            displayed=row.displayed,
            reason=row.reason,
            note=row.note,
            corrections={
                (candidate, criterion): value
                for candidate, criterion, value in bytes_json(row.corrections)
            },
            key=row.idempotency_key,
            stated_by=row.stated_by or "",
        ),
        before=AssessmentState(row.before),
        after=AssessmentState(row.after),
        at=row.at,
    )
