"""The log of review events, newest first.

Reads windows of event numbers, so that no filter reads the whole table at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, func, select

from assay.domain.digest import JsonValue
from assay.domain.event_log import ChainLook, EventFilter, LoggedEvent, WaitingRun
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import AssessmentState
from assay.domain.observations import DecisionTaken, ObservationKind
from assay.store.database import schema
from assay.store.database.codec import bytes_json, plain
from assay.store.database.connections import Database, portions
from assay.store.database.counters import ASSESSMENT
from assay.store.database.observation_codec import decoded
from assay.store.event_chain import chain_part, event_of, first_broken
from assay.store.queries.filters import HIDDEN_STATES, find_run
from assay.store.queries.plans import run_key_of

WINDOW: Final = 10_000
"""Maximum events that one page searches."""

CHAIN_PART: Final = 2_000
"""Maximum events whose hashes are checked in one read."""

_PLANS_AT_ONCE: Final = 200


class StoreEventLog:
    """The audit log; may be used from any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._protocols: dict[int, Mapping[str, JsonValue]] = {}

    def portion(
        self, wanted: EventFilter, /, *, before: int | None = None, limit: int = 50
    ) -> tuple[tuple[LoggedEvent, ...], int | None]:
        """Return up to `limit` events below a number, newest first, and the number below which the
        next page begins.

        The number is None after the last page. A page searches `WINDOW` events, so it may be empty
        although older events match. Raises UnknownName if the run does not exist, and InputError if
        several run ids begin with the given text.
        """
        table = schema.review_event
        with self._database.reading() as connection:
            where = _where(connection, wanted)
            top = connection.execute(select(func.max(table.c.id))).scalar_one() or 0
            bottom = connection.execute(select(func.min(table.c.id))).scalar_one() or 0
            end = top + 1 if before is None else min(before, top + 1)
            # The few events of a single item are read by index.
            start = bottom if wanted.item is not None else max(bottom, end - WINDOW)
            rows = connection.execute(
                select(table)
                .where(table.c.id < end, table.c.id >= start, *where)
                .order_by(table.c.id.desc())
                .limit(limit)
            ).all()
            events = _with_items(connection, rows)
        after = int(rows[-1].id) if len(rows) == limit else start
        return events, after if after > bottom else None

    def waiting(self) -> tuple[WaitingRun, ...]:
        """Return runs with pending assessments.

        Their review protocols are cached, because a protocol never changes.
        """
        run, tally, control, body = schema.run, schema.run_tally, schema.control_item, schema.body
        with self._database.reading() as connection:
            pending = (
                tally.c.subject == ASSESSMENT,
                tally.c.state == AssessmentState.PENDING.value,
                tally.c.n > 0,
            )
            waiting = set(connection.execute(select(tally.c.run_key).where(*pending)).scalars())
            # In the log of such a run, a control item could be recognised by its missing events.
            controlled = (
                set(connection.execute(select(control.c.run_key).distinct()).scalars())
                if waiting
                else set()
            )
            ids: dict[int, RunId] = {}
            unknown: dict[int, int] = {}
            runs = select(run.c.key, run.c.id, run.c.plan_key).where(
                run.c.state.not_in(HIDDEN_STATES)
            )
            if len(waiting) <= _PLANS_AT_ONCE:
                runs = runs.where(run.c.key.in_(waiting))
            for key, run_id, plan_key in connection.execute(runs) if waiting else ():
                if key in waiting:
                    ids[key] = RunId(run_id)
                    if key not in self._protocols:
                        unknown[plan_key] = key
            for part in portions(unknown, _PLANS_AT_ONCE):
                for plan_key, content in connection.execute(
                    select(body.c.key, body.c.content).where(body.c.key.in_(part))
                ):
                    self._protocols[unknown[plan_key]] = bytes_json(content).get("protocol") or {}
        return tuple(
            WaitingRun(
                id=run_id,
                has_control_items=key in controlled,
                protocol=self._protocols.get(key, {}),
            )
            for key, run_id in ids.items()
        )

    def reviewers(self) -> tuple[str, ...]:
        """Return the names of all reviewers.

        It reads every event, so only hints in error messages use it.
        """
        table = schema.review_event
        with self._database.reading() as connection:
            return tuple(sorted(connection.execute(select(table.c.reviewer).distinct()).scalars()))

    def first_broken(self) -> int | None:
        """Return the id of the first review event that was changed after it was stored, or None."""
        with self._database.reading() as connection:
            return first_broken(connection)

    def newest(self) -> tuple[int, str]:
        """Return the newest event's number and hash; 0 and an empty text if the log is empty."""
        table = schema.review_event
        with self._database.reading() as connection:
            row = connection.execute(
                select(table.c.id, table.c.hash).order_by(table.c.id.desc()).limit(1)
            ).first()
        return (0, "") if row is None else (int(row.id), row.hash)

    def check(self, after: int, /) -> ChainLook:
        """Check the hashes of the next events after a number, oldest first."""
        with self._database.reading() as connection:
            checked, last, broken = chain_part(connection, after=after, limit=CHAIN_PART)
        return ChainLook(
            checked=checked,
            up_to=last,
            broken=broken,
            ended=broken is not None or checked < CHAIN_PART,
        )


def _where(connection: Connection, wanted: EventFilter) -> list[ColumnElement[bool]]:
    table = schema.review_event
    where: list[ColumnElement[bool]] = []
    if wanted.run is not None:
        where.append(table.c.run_key == run_key_of(connection, find_run(connection, wanted.run)))
    if wanted.reviewer is not None:
        where.append(table.c.reviewer == plain(wanted.reviewer))
    if wanted.verb is not None:
        where.append(table.c.verb == wanted.verb.value)
    if wanted.via is not None:
        where.append(table.c.via == wanted.via.value)
    if wanted.item is not None:
        where.append(table.c.assessment_key == int(wanted.item))
    if wanted.day is not None:
        # U sorts after the T in every time of that day.
        where += [table.c.at >= wanted.day, table.c.at < f"{wanted.day}U"]
    return where


def _with_items(connection: Connection, rows: Sequence[Row[Any]]) -> tuple[LoggedEvent, ...]:
    if not rows:
        return ()
    runs = _runs(connection, {row.run_key for row in rows})
    items = _items(connection, {row.assessment_key for row in rows})
    active = _active(
        connection, [row.idempotency_key for row in rows if row.idempotency_key is not None]
    )
    return tuple(
        LoggedEvent(
            event=event_of(row),
            run_id=runs[row.run_key][0],
            suite=runs[row.run_key][1],
            task=item.task_id,
            thing=item.thing,
            k=item.k,
            of=item.trials,
            active_ms=active.get(row.idempotency_key),
        )
        for row in rows
        for item in (items[row.assessment_key],)
    )


def _items(connection: Connection, keys: Collection[int]) -> dict[int, Any]:
    table, trial, planned = schema.assessment, schema.trial, schema.run_task
    rows = connection.execute(
        select(table.c.key, planned.c.task_id, planned.c.thing, planned.c.trials, trial.c.k)
        .join(trial, trial.c.key == table.c.trial_key)
        .join(
            planned,
            (planned.c.run_key == table.c.run_key) & (planned.c.task_key == table.c.task_key),
        )
        .where(table.c.key.in_(keys))
    )
    return {row.key: row for row in rows}


def _runs(connection: Connection, keys: Collection[int]) -> dict[int, tuple[RunId, str]]:
    run, suite = schema.run, schema.suite
    rows = connection.execute(
        select(run.c.key, run.c.id, suite.c.name)
        .join(suite, suite.c.key == run.c.suite_key)
        .where(run.c.key.in_(keys))
    )
    return {key: (RunId(run_id), name) for key, run_id, name in rows}


def _active(connection: Connection, keys: Sequence[str]) -> dict[str | None, int]:
    table = schema.observation
    if not keys:
        return {}
    own_key = {f"decision:{key}": key for key in keys}
    active: dict[str | None, int] = {}
    statement = select(table.c.idempotency_key, table.c.body).where(
        table.c.idempotency_key.in_(own_key)
    )
    for name, content in connection.execute(statement):
        taken = decoded(ObservationKind.DECISION, content)
        if isinstance(taken, DecisionTaken) and taken.active_ms is not None:
            active[own_key[name]] = taken.active_ms
    return active
