"""Store control items (planted checks) and their decisions, in separate tables that no statistic
reads.

Control items share key numbers, rules and events with real assessments, so that reviewers cannot
tell them apart. They are rows of `control_item` instead of `assessment`, because some 40 queries
read `assessment` and `score`. A query without a filter on the purpose would include control items
in a statistic, and the filter would prevent the use of covering indexes.
"""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, func, insert, select, update

from assay.domain import decisions as rules
from assay.domain.control_items import (
    AttemptOrigin,
    CheckOrigin,
    ControlItem,
    ControlKind,
    ControlOrigin,
    RepeatOrigin,
)
from assay.domain.errors import UnknownName
from assay.domain.identifiers import AssessmentKey, RunId, shown_assessment
from assay.domain.lifecycle import AssessmentPurpose, AssessmentState
from assay.domain.review import Decision, ReviewEvent
from assay.ports import Clock
from assay.store.database import schema
from assay.store.database.codec import assessment_record, bytes_json, json_bytes, plain
from assay.store.database.connections import Database, take_keys
from assay.store.event_chain import event_of, event_values
from assay.store.execution.writer_thread import Writer
from assay.store.review.observations import run_key_of

_NEAR: Final = 500  # number of keys on either side that are searched for a free one


class StoreControlItems:
    """Stores and reads control items; may be used from any thread and by several processes at
    once.
    """

    def __init__(self, database: Database, writer: Writer, clock: Clock) -> None:
        self._database = database
        self._writer = writer
        self._clock = clock

    def put(self, item: ControlItem, /) -> ControlItem:
        return self._writer.call(lambda connection: _put(connection, item))

    def supersede(self, decision: Decision, item: ControlItem, /) -> AssessmentKey:
        """Store a new attempt and the event of the rerun that requested it; return the new key.

        A rerun with a known idempotency key changes nothing.
        """

        def supersede(connection: Connection) -> AssessmentKey:
            known = control_event_of_key(connection, decision.key)
            if known is not None:
                rules.check_key(decision.assessment, of=known.decision.assessment)
                alike = _read(connection, schema.control_item.c.source_key == int(item.source))
                return max(
                    (other for other in alike if other.first == item.first),
                    key=lambda other: other.attempt,
                ).key
            new = _put(connection, item)
            before = control_item(connection, decision.assessment).state
            append_control_event(
                connection,
                decision,
                before=before,
                after=AssessmentState.SUPERSEDED,
                at=self._clock.now(),
            )
            return new.key

        return self._writer.call(supersede)

    def read(
        self,
        *,
        reviewer: str | None = None,
        run: RunId | None = None,
        states: Collection[AssessmentState] | None = None,
        keys: Collection[AssessmentKey] | None = None,
        source: AssessmentKey | None = None,
    ) -> tuple[ControlItem, ...]:
        """Return the control items that match all filters, sorted by key."""
        table = schema.control_item
        where: list[ColumnElement[bool]] = (
            [] if reviewer is None else [table.c.reviewer == plain(reviewer)]
        )
        if keys is not None:
            where.append(table.c.key.in_([int(key) for key in keys]))
        if source is not None:
            where.append(table.c.source_key == int(source))
        if run is not None:
            where.append(schema.run.c.id == plain(run))
        if states is not None:
            where.append(table.c.state.in_([state.value for state in states]))
        with self._database.asking() as connection:
            return _read(connection, *where)

    def events(
        self, keys: Collection[AssessmentKey], /
    ) -> dict[AssessmentKey, tuple[ReviewEvent, ...]]:
        """Return decisions on control items by key, oldest first."""
        if not keys:
            return {}
        table = schema.control_event
        statement = (
            select(table)
            .where(table.c.assessment_key.in_([int(key) for key in keys]))
            .order_by(table.c.id)
        )
        events: defaultdict[AssessmentKey, list[ReviewEvent]] = defaultdict(list)
        with self._database.asking() as connection:
            for row in connection.execute(statement):
                events[AssessmentKey(row.assessment_key)].append(_event(row))
        return {key: tuple(events[key]) for key in keys}

    def tally(self) -> dict[RunId, Counter[AssessmentState]]:
        table, run = schema.control_item, schema.run
        statement = (
            select(run.c.id, table.c.state, func.count())
            .join(run, run.c.key == table.c.run_key)
            .group_by(run.c.id, table.c.state)
        )
        counts: defaultdict[RunId, Counter[AssessmentState]] = defaultdict(Counter)
        with self._database.reading() as connection:
            for run_id, state, n in connection.execute(statement):
                counts[RunId(run_id)][AssessmentState(state)] = n
        return dict(counts)

    def count(self, run: RunId, /, *, before: str | None = None) -> int:
        """Count a run's control items; `before` limits them to those created before a time."""
        table = schema.control_item
        where = [
            schema.run.c.id == plain(run),
            *([] if before is None else [table.c.made < before]),
        ]
        statement = select(func.count()).select_from(
            table.join(schema.run, schema.run.c.key == table.c.run_key)
        )
        with self._database.reading() as connection:
            return int(connection.execute(statement.where(*where)).scalar_one())


def control_event_of_key(connection: Connection, idempotency_key: str | None) -> ReviewEvent | None:
    if idempotency_key is None:
        return None
    table = schema.control_event
    row = connection.execute(
        select(table).where(table.c.idempotency_key == plain(idempotency_key))
    ).first()
    return None if row is None else _event(row)


def append_control_event(
    connection: Connection,
    decision: Decision,
    *,
    before: AssessmentState,
    after: AssessmentState,
    at: str,
) -> ReviewEvent:
    """Store a decision on a control item, whose state it changes."""
    table, item = schema.control_event, schema.control_item
    connection.execute(
        update(item).where(item.c.key == int(decision.assessment)).values(state=after.value)
    )
    values = event_values(decision, before=before, after=after, at=at)
    return _event(connection.execute(insert(table).values(**values).returning(*table.c)).one())


def control_item(connection: Connection, key: AssessmentKey) -> ControlItem:
    """Return the control item with this key; raises `UnknownName`."""
    items = _read(connection, schema.control_item.c.key == int(key))
    if not items:
        raise UnknownName(
            "assessment", shown_assessment(key), remedy="`assay review list` lists all assessments."
        )
    return items[0]


def attempts_at(connection: Connection, item: ControlItem) -> tuple[AssessmentKey, ...]:
    """Return the keys of all attempts at a control item."""
    table = schema.control_item
    alike = _read(
        connection, table.c.source_key == int(item.source), table.c.reviewer == plain(item.reviewer)
    )
    return tuple(other.key for other in alike if other.first == item.first)


def _event(row: Row[Any]) -> ReviewEvent:
    event = event_of(row)
    return replace(event, decision=replace(event.decision, purpose=AssessmentPurpose.CONTROL))


def _put(connection: Connection, item: ControlItem) -> ControlItem:
    key = _free_key(connection, int(item.source))
    connection.execute(
        insert(schema.control_item).values(
            key=key,
            kind=item.kind.value,
            run_key=run_key_of(connection, item.run_id),
            source_key=int(item.source),
            reviewer=plain(item.reviewer),
            made=item.made,
            attempt=item.attempt,
            state=item.state.value,
            body=json_bytes({"judged": item.judged, "origin": asdict(item.origin)}),
        )
    )
    return replace(item, key=AssessmentKey(key))


def _free_key(connection: Connection, near: int) -> int:
    """Return an unused key between real assessments' keys near `near`; if no key is free, the next
    key after all others.

    A run with control items leaves keys unused while it grades (`Entry.spare`), so that a key does
    not reveal a control item.
    """
    taken: set[int] = set()
    last = 0
    for table in (schema.assessment, schema.control_item):
        between = table.c.key.between(near - _NEAR, near + _NEAR)
        keys = [
            int(key) for key in connection.execute(select(table.c.key).where(between)).scalars()
        ]
        taken.update(keys)
        if table is schema.assessment:
            last = max(keys, default=0)
    first = min(taken, default=last)
    free = [key for key in range(first, last) if key not in taken]
    return secrets.choice(free) if free else take_keys(connection, assessment=1)["assessment"].start


def _read(connection: Connection, *where: ColumnElement[bool]) -> tuple[ControlItem, ...]:
    table, run = schema.control_item, schema.run
    statement = (
        select(table, run.c.id.label("run_id"))
        .join(run, run.c.key == table.c.run_key)
        .where(*where)
    )
    return tuple(_control_item(row) for row in connection.execute(statement.order_by(table.c.key)))


def _control_item(row: Row[Any]) -> ControlItem:
    content = bytes_json(row.body)
    return ControlItem(
        key=AssessmentKey(row.key),
        run_id=RunId(row.run_id),
        source=AssessmentKey(row.source_key),
        reviewer=row.reviewer,
        made=row.made,
        judged=assessment_record(json_bytes(content["judged"])),
        origin=_origin(ControlKind(row.kind), content["origin"]),
        attempt=row.attempt,
        state=AssessmentState(row.state),
    )


def _origin(kind: ControlKind, content: Mapping[str, Any]) -> ControlOrigin:
    match kind:
        case ControlKind.CHECK:
            places = tuple((candidate, criterion) for candidate, criterion in content["places"])
            return CheckOrigin(how=content["how"], places=places, vouched_by=content["vouched_by"])
        case ControlKind.REPEAT:
            return RepeatOrigin(**content)
        case ControlKind.ATTEMPT:
            return AttemptOrigin(first=AssessmentKey(content["first"]))
