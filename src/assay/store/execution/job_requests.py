"""Update requests in batch jobs, and the money reserved for them, inside a transaction of the
writing thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, insert, or_, select, update

from assay.domain.failure import Failure
from assay.domain.jobs import JobRequest, JobState, RequestKey, RequestState
from assay.domain.run import CallRecord
from assay.store.claims.claims import JOBS
from assay.store.database import schema
from assay.store.database.codec import json_text, plain
from assay.store.database.connections import among

_MANY: Final = 1000
_SENT: Final = RequestState.SENT.value


def note_answers(connection: Connection, calls: Sequence[CallRecord]) -> None:
    """Mark the requests that these calls answer as read, in the calls' commit, and book their
    costs.
    """
    table, run = schema.job_request, schema.job.c.run_key
    by_key = {call.job.key: call for call in calls if call.job is not None}
    for start in range(0, len(by_key), _MANY):
        keys = list(by_key)[start : start + _MANY]
        which = _among(keys)
        rows = connection.execute(
            select(table.c.job_key, table.c.number, table.c.usd, run)
            .join(schema.job, schema.job.c.key == table.c.job_key)
            .where(which, table.c.state == _SENT)
        ).all()
        connection.execute(update(table).where(which).values(state=RequestState.READ.value))
        costs: defaultdict[int, list[tuple[float, float | None]]] = defaultdict(list)
        for job, number, usd, run_key in rows:
            call = by_key[RequestKey(job, number)]
            costs[run_key].append((usd, _cost(call)))
        book(connection, costs)
    for key, call in by_key.items():
        if call.failure is not None and call.job is not None:
            given_up = call.job.given_up
            failure = {**_plain(call.failure), "unread": call.job.unread}
            state = RequestState.GIVEN_UP if given_up else RequestState.READ
            values = {"state": state.value, "failure": json_text(failure)}
            connection.execute(update(table).where(_among([key])).values(**values))


def request_row(asked: JobRequest) -> tuple[Any, ...]:
    own = (asked.role.value, asked.digest, asked.visit, _SENT, asked.usd, asked.shares, None)
    return (*asked.key, asked.trial, *own)


def shareable(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the new rows, without requests that share an answer no job will deliver; their trials
    send a request later.
    """
    table, job = schema.job_request, schema.job
    shared = {RequestKey(row[0], row[8]) for row in rows if row[8] is not None}
    coming = {RequestKey(row[0], row[1]) for row in rows}
    if others := list(shared - coming):
        waiting = (_among(others), table.c.state == _SENT, job.c.state != JobState.COLLECTED.value)
        of_job = table.join(job, job.c.key == table.c.job_key)
        sent = connection.execute(
            select(table.c.job_key, table.c.number).select_from(of_job).where(*waiting)
        )
        coming |= {RequestKey(*key) for key in sent}
    return [row for row in rows if row[8] is None or RequestKey(row[0], row[8]) in coming]


def waits_for_jobs(connection: Connection, run_key: int) -> bool:
    """True if a run has unanswered requests at a provider."""
    table = schema.job
    waiting = select(table.c.key).where(
        table.c.run_key == run_key, table.c.state != JobState.COLLECTED.value
    )
    return connection.execute(waiting.limit(1)).first() is not None


def _cost(call: CallRecord) -> float | None:
    if call.reply is not None:
        return call.reply.cost_usd
    return None if call.failure is not None and call.failure.kind == "no_line" else 0.0


def mark_void(connection: Connection, run_key: int, keys: Iterable[RequestKey]) -> None:
    """Mark requests as never carried out, and release the money reserved for them."""
    table, all_keys = schema.job_request, list(keys)
    for start in range(0, len(all_keys), _MANY):
        which = and_(_among(all_keys[start : start + _MANY]), table.c.state == _SENT)
        void = (
            update(table).where(which).values(state=RequestState.VOID.value).returning(table.c.usd)
        )
        reserve(connection, run_key, -sum(connection.execute(void).scalars()))


def book(connection: Connection, costs: Mapping[int, Sequence[tuple[float, float | None]]]) -> None:
    """Replace reservations with costs, per run; a request of unknown cost (None) stays booked at
    its worst case.
    """
    run = schema.run
    for run_key, pairs in costs.items():
        reserve(connection, run_key, -sum(usd for usd, _ in pairs))
        spent = sum(usd if cost is None else cost for usd, cost in pairs)
        has_budget = (run.c.key == run_key, run.c.budget_usd.is_not(None))
        connection.execute(update(run).where(*has_budget).values(spent_usd=run.c.spent_usd + spent))


def reserve(connection: Connection, run_key: int, usd: float) -> None:
    """Add an amount in US dollars to the reservation for a run's jobs; a negative amount releases
    money.
    """
    if not usd:
        return
    table = schema.reservation
    of_jobs = (table.c.run_key == run_key, table.c.owner == JOBS)
    more = {"usd": table.c.usd + usd, "most_usd": table.c.most_usd + usd}
    if not connection.execute(update(table).where(*of_jobs).values(**more)).rowcount:
        connection.execute(insert(table).values(run_key=run_key, owner=JOBS, usd=usd, most_usd=usd))


def _among(keys: Sequence[RequestKey]) -> ColumnElement[bool]:
    table = schema.job_request
    by_job: defaultdict[int, list[int]] = defaultdict(list)
    for job, number in keys:
        by_job[job].append(number)
    return or_(
        *(
            and_(table.c.job_key == job, among(table.c.number, numbers))
            for job, numbers in by_job.items()
        )
    )


def _plain(failure: Failure) -> dict[str, object]:
    return {
        "kind": failure.kind,
        "fault": failure.fault.value,
        "detail": plain(failure.detail),
        "tries": failure.tries,
    }
