"""Queries about trials: lists, single trials, and trials for comparing runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, func, or_, select

from assay.domain.errors import UnknownName
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import RunId, TrialKey, shown_trial
from assay.domain.lifecycle import TrialState
from assay.domain.selection import FailureCount, Selection, TrialRow
from assay.store.database import schema
from assay.store.queries import participation
from assay.store.queries.answers import answer_rows
from assay.store.queries.filters import scope_of
from assay.store.queries.graded_trials import graded_trials, paired_trials, task_matrix
from assay.store.queries.plans import run_key_of
from assay.store.queries.snapshots import Queries, snapshot

_PORTION: Final = 200


def trial_rows() -> Select[Any]:
    table, planned, suite, run = schema.trial, schema.run_task, schema.suite, schema.run
    return (
        select(table, planned.c.task_id, planned.c.thing, planned.c.trials, suite.c.name, run.c.id)
        .join(
            planned,
            (planned.c.run_key == table.c.run_key) & (planned.c.position == table.c.position),
        )
        .join(run, run.c.key == table.c.run_key)
        .join(suite, suite.c.key == run.c.suite_key)
    )


def trial_row(row: Any) -> TrialRow:
    failure = None
    if row.state == TrialState.FAILED:
        failure = Failure(
            kind=row.fail_kind,
            fault=Fault(row.fail_fault),
            detail=row.fail_detail,
            tries=row.fail_tries,
        )
    return TrialRow(
        key=TrialKey(row.key),
        run_id=RunId(row.id),
        suite=row.name,
        task=row.task_id,
        thing=row.thing,
        k=row.k,
        of=row.trials,
        state=TrialState(row.state),
        failure=failure,
    )


def trial(connection: Connection, key: TrialKey, /) -> TrialRow:
    """Return one trial; raises `UnknownName`."""
    row = connection.execute(trial_rows().where(schema.trial.c.key == key)).first()
    if row is None:
        raise UnknownName("trial", shown_trial(key), remedy="`assay show RUN` lists trials.")
    return trial_row(row)


def under_way(connection: Connection, run: RunId, /) -> tuple[TrialRow | None, TrialRow | None]:
    """Return the first running trial (if no trial is running, the next one) and the first failed
    trial; None if missing.
    """
    run_key = run_key_of(connection, run)
    running = _first(connection, run_key, TrialState.RUNNING)
    return running or _first(connection, run_key, TrialState.PENDING), _first(
        connection, run_key, TrialState.FAILED
    )


def _first(connection: Connection, run_key: int, state: TrialState) -> TrialRow | None:
    table = schema.trial
    seek = select(table.c.key).where(table.c.run_key == run_key, table.c.state == state.value)
    key = connection.execute(
        seek.order_by(table.c.position, table.c.k).limit(1)
    ).scalar_one_or_none()
    return None if key is None else trial(connection, TrialKey(key))


def decided_since(connection: Connection, event: int | None, /) -> tuple[int, tuple[TrialKey, ...]]:
    """Return the newest review event's id, and the trials of all events after `event` (no trials if
    `event` is None).
    """
    table, assessment = schema.review_event, schema.assessment
    if event is None:
        return connection.execute(select(func.coalesce(func.max(table.c.id), 0))).scalar_one(), ()
    rows = connection.execute(
        select(table.c.id, assessment.c.trial_key)
        .join(assessment, assessment.c.key == table.c.assessment_key)
        .where(table.c.id > event)
        .order_by(table.c.id)
    ).all()
    return (rows[-1].id if rows else event), tuple(
        dict.fromkeys(TrialKey(row.trial_key) for row in rows)
    )


def failure_kinds(connection: Connection, run: RunId, /) -> tuple[tuple[str, str, int], ...]:
    """Return (kind, fault, count) of a run's failures, the most frequent first."""
    table, n = schema.trial, func.count().label("n")
    rows = connection.execute(
        select(table.c.fail_kind, table.c.fail_fault, n)
        .where(
            table.c.run_key == run_key_of(connection, run), table.c.state == TrialState.FAILED.value
        )
        .group_by(table.c.fail_kind, table.c.fail_fault)
        .order_by(n.desc(), table.c.fail_kind)
    )
    return tuple((row.fail_kind, row.fail_fault, row.n) for row in rows)


def failure_counts(connection: Connection, run: RunId, /) -> tuple[FailureCount, ...]:
    """Return the failures of a run's failed trials, by kind, fault and detail, the most frequent
    first.
    """
    table, n = schema.trial, func.count().label("n")
    columns = (table.c.fail_kind, table.c.fail_fault, table.c.fail_detail)
    rows = connection.execute(
        select(*columns, n)
        .where(
            table.c.run_key == run_key_of(connection, run), table.c.state == TrialState.FAILED.value
        )
        .group_by(*columns)
        .order_by(n.desc(), *columns)
    )
    return tuple(
        FailureCount(
            kind=row.fail_kind, fault=Fault(row.fail_fault), detail=row.fail_detail, trials=row.n
        )
        for row in rows
    )


def calls_that_paused(connection: Connection, run: RunId, /) -> tuple[FailureCount, ...]:
    """Return the failures of pending trials' calls since the run last started, the newest first.

    For a run that paused itself, the first one is the reason.
    """
    trial_, call_, since = schema.trial, schema.call, schema.stretch
    newest, n = (
        func.max(call_.c.key).label("newest"),
        func.count(func.distinct(call_.c.trial_key)).label("n"),
    )
    columns = (call_.c.model, call_.c.fail_kind, call_.c.fail_fault, call_.c.fail_detail)
    # a run in batches has no stretch
    rows = connection.execute(
        select(*columns, n, newest)
        .join(trial_, trial_.c.key == call_.c.trial_key)
        .join(since, since.c.run_key == trial_.c.run_key, isouter=True)
        .where(
            trial_.c.run_key == run_key_of(connection, run),
            trial_.c.state == TrialState.PENDING.value,
        )
        .where(
            call_.c.fail_kind.is_not(None),
            or_(since.c.since.is_(None), call_.c.started >= since.c.since),
        )
        .group_by(*columns)
        .order_by(newest.desc())
    )
    return tuple(
        FailureCount(
            kind=row.fail_kind,
            fault=Fault(row.fail_fault),
            detail=row.fail_detail,
            trials=row.n,
            model=row.model,
        )
        for row in rows
    )


class TrialQueries(Queries):
    failure_counts = snapshot(failure_counts)
    calls_that_paused = snapshot(calls_that_paused)
    detail = snapshot(trial)
    under_way = snapshot(under_way)
    failure_kinds = snapshot(failure_kinds)
    decided_since = snapshot(decided_since)
    graded = snapshot(graded_trials)
    paired = snapshot(paired_trials)
    matrix = snapshot(task_matrix)
    answer_rows = snapshot(answer_rows)

    def matching(
        self,
        selection: Selection,
        /,
        *,
        failed_only: bool = False,
        candidate: str | None = None,
        number: int | None = None,
    ) -> Iterator[TrialRow]:
        """Yield trials of one run after another, oldest run first, in plan order; each batch is a
        separate read.

        `candidate`: only trials in which this candidate takes part. `number`: only trials with this
        number within their task.
        """
        table = schema.trial
        with self._database.reading() as connection:
            scope = scope_of(connection, selection)
            run_keys = scope.runs
            conditions: list[ColumnElement[bool]] = [] if number is None else [table.c.k == number]
            if failed_only:
                conditions.append(table.c.state == TrialState.FAILED.value)
            if candidate is not None:
                candidate_key, runs_with = participation.runs_of(connection, scope, candidate)
                run_keys = tuple(run_key for run_key in run_keys if run_key in runs_with)
                conditions.append(participation.takes_part(table, candidate_key))
        for run_key in run_keys:
            position, k = -1, 0
            while True:
                statement = trial_rows().where(
                    *scope.where(table),
                    *conditions,
                    table.c.run_key == run_key,
                    (table.c.position > position)
                    | ((table.c.position == position) & (table.c.k > k)),
                )
                with self._database.reading() as connection:
                    rows = connection.execute(
                        statement.order_by(table.c.position, table.c.k).limit(_PORTION)
                    ).all()
                yield from map(trial_row, rows)
                if len(rows) < _PORTION:
                    break
                position, k = rows[-1].position, rows[-1].k
