"""List runs, compute totals, and find runs with pending assessments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, exists, func, select, true, tuple_

from assay.domain.identifiers import RunId
from assay.domain.lifecycle import SET_ASIDE, AssessmentState, RunState
from assay.domain.selection import DrawnOrder, RunSummary, RunTotals, Selection
from assay.store.claims.claims import Claims
from assay.store.database import schema
from assay.store.database.codec import bytes_json
from assay.store.database.connections import Database
from assay.store.database.counters import ASSESSMENT, TRIAL
from assay.store.queries.body_search import body_holds
from assay.store.queries.filters import HIDDEN_STATES, find_run, scope_of
from assay.store.queries.first_look import candidate_totals
from assay.store.queries.graded_trials import graded_run
from assay.store.queries.plans import run_key_of
from assay.store.queries.pooled_runs import run_with_references, suites_with_runs
from assay.store.queries.run_summaries import run_summaries
from assay.store.queries.snapshots import Queries, snapshot

_RUNS_AT_ONCE: Final = 50

_UNFINISHED: Final = tuple(
    state.value
    for state in (RunState.PLANNED, RunState.RUNNING, RunState.PAUSED, RunState.INTERRUPTED)
)

_RANDOM: Final = b'"order":"random"'
"""Bytes that occur in the plan of every run with random review order; a suite's texts may also
contain them.
"""


_PENDING: Final = (
    schema.run_tally.c.subject == ASSESSMENT,
    schema.run_tally.c.state == AssessmentState.PENDING.value,
    schema.run_tally.c.n > 0,
)
"""Conditions on `run_tally` that select pending assessments."""


def run_totals(connection: Connection, selection: Selection, /) -> RunTotals:
    """Sum the counters of the selected runs.

    Twenty thousand run summaries take a second to read; these sums take a few milliseconds.
    """
    scope = scope_of(connection, selection)
    run, tally, planned = schema.run, schema.run_tally, schema.run_task
    where = scope.where_key(run.c.key)
    if scope.narrows_tasks:
        where.append(exists().where(planned.c.run_key == run.c.key, *scope.where(planned)))
    of_them = [tally.c.run_key.in_(select(run.c.key).where(*where))] if where else []
    sums = select(tally.c.subject, tally.c.state, func.sum(tally.c.n)).where(true(), *of_them)
    rows = connection.execute(sums.group_by(tally.c.subject, tally.c.state))
    counted = {(subject, state): int(n) for subject, state, n in rows}
    open_still = select(run.c.key).where(run.c.state.in_(_UNFINISHED), *where).limit(1)
    return RunTotals(
        runs=connection.execute(
            select(func.count()).select_from(run).where(true(), *where)
        ).scalar_one(),
        trials=sum(n for (subject, _), n in counted.items() if subject == TRIAL),
        assessments={
            AssessmentState(state): n
            for (subject, state), n in counted.items()
            if subject == ASSESSMENT and n
        },
        going_on=connection.execute(open_still).first() is not None,
    )


def waiting_runs(connection: Connection) -> frozenset[RunId]:
    run, tally = schema.run, schema.run_tally
    rows = connection.execute(
        select(run.c.id).join(tally, tally.c.run_key == run.c.key).where(*_PENDING)
    )
    return frozenset(RunId(run_id) for run_id in rows.scalars())


def something_waits(run_key: ColumnElement[int]) -> ColumnElement[bool]:
    """Return an SQL condition that is true if the run with this key has a pending assessment."""
    tally = schema.run_tally
    return exists().where(tally.c.run_key == run_key, *_PENDING)


def drawn_orders(connection: Connection, after: int, /) -> tuple[int, tuple[DrawnOrder, ...]]:
    """Return the newest run's number, and the runs numbered above `after` with random review
    order.
    """
    run, suite, body = schema.run, schema.suite, schema.body
    newest = connection.execute(select(func.max(run.c.key))).scalar_one()
    if newest is None or newest <= after:
        return after, ()
    # Searched as bytes, and only after the last run seen: reading the plans of 20,000 runs took
    # 12.7 s.
    rows = connection.execute(
        select(run.c.id, suite.c.name, body.c.content)
        .join(suite, suite.c.key == run.c.suite_key)
        .join(body, body.c.key == run.c.plan_key)
        .where(run.c.key > after, run.c.key <= newest, body_holds(connection, _RANDOM))
        .order_by(run.c.key)
    )
    plans = ((run_id, name, bytes_json(content)) for run_id, name, content in rows)
    return newest, tuple(
        DrawnOrder(run=RunId(run_id), suite=name, seed=int(plan["seed"]))
        for run_id, name, plan in plans
        if plan["protocol"].get("order") == "random"
    )


def regrades(connection: Connection, run: RunId, /) -> tuple[RunId, ...]:
    """Return the runs that grade this run's answers, oldest first."""
    table = schema.run
    which = (table.c.regrade_of == run_key_of(connection, run), table.c.state.not_in(HIDDEN_STATES))
    return tuple(
        map(
            RunId,
            connection.execute(select(table.c.id).where(*which).order_by(table.c.key)).scalars(),
        )
    )


def decided_after(connection: Connection, event: int, /) -> tuple[RunId, ...]:
    """Return the runs with decisions after a review event, oldest first."""
    table, run = schema.review_event, schema.run
    rows = connection.execute(
        select(run.c.id)
        .where(
            run.c.state.not_in(HIDDEN_STATES),
            run.c.key.in_(select(table.c.run_key).where(table.c.id > event)),
        )
        .order_by(run.c.started, run.c.key)
    )
    return tuple(map(RunId, rows.scalars()))


def begun_evaluations(connection: Connection) -> tuple[RunId, ...]:
    """Return submitted evaluations that are not finished, paused or cancelled, oldest first."""
    run = schema.run
    going_on = [state for state in _UNFINISHED if state != RunState.PAUSED.value]
    rows = select(run.c.id).where(
        run.c.id.startswith("eval_", autoescape=True), run.c.state.in_(going_on)
    )
    return tuple(RunId(run_id) for run_id in connection.execute(rows.order_by(run.c.key)).scalars())


def run_numbers(connection: Connection) -> dict[int, RunId]:
    """Return all run ids by number, including half-written imports but excluding runs out of
    use.
    """
    table = schema.run
    in_use = table.c.state.not_in([state.value for state in SET_ASIDE])
    return {
        row.key: RunId(row.id)
        for row in connection.execute(select(table.c.key, table.c.id).where(in_use))
    }


def newest_run_event(connection: Connection) -> int:
    """Return the number of the newest event that took a run out of use or restored it; 0 without
    such events.
    """
    return int(
        connection.execute(select(func.coalesce(func.max(schema.run_event.c.id), 0))).scalar_one()
    )


def _with_suite() -> Select[Any]:
    run, suite = schema.run, schema.suite
    return select(run, suite.c.name.label("suite")).join(suite, suite.c.key == run.c.suite_key)


class RunQueries(Queries):
    """Queries about runs. The newest run comes first unless a method states another order."""

    find = snapshot(find_run)
    totals = snapshot(run_totals)
    waiting = snapshot(waiting_runs)
    drawn_orders = snapshot(drawn_orders)
    regrades = snapshot(regrades)
    decided_after = snapshot(decided_after)
    begun_evaluations = snapshot(begun_evaluations)
    newest_run_event = snapshot(newest_run_event)
    numbers = snapshot(run_numbers)
    graded = snapshot(graded_run)
    candidate_totals = snapshot(candidate_totals)
    suites = snapshot(suites_with_runs)
    with_references = snapshot(run_with_references)

    def __init__(self, database: Database, claims: Claims) -> None:
        super().__init__(database)
        self._claims = claims

    def matching(
        self, selection: Selection | None = None, /, *, limit: int | None = None
    ) -> tuple[RunSummary, ...]:
        """Return summaries of the matching runs; a task filter selects runs that contain such a
        task.

        The cost grows with the number of runs, so a page passes its length as `limit`.
        """
        run, planned = schema.run, schema.run_task
        with self._database.reading() as connection:
            scope = scope_of(connection, selection or Selection())
            where = scope.where_key(run.c.key)
            if scope.narrows_tasks:
                where.append(exists().where(planned.c.run_key == run.c.key, *scope.where(planned)))
            newest_first = (run.c.started.desc(), run.c.key.desc())
            rows = connection.execute(
                _with_suite().where(true(), *where).order_by(*newest_first).limit(limit)
            ).all()
            if limit is None:
                return run_summaries(connection, self._claims, rows, scope.where_run)
            return self._summaries(connection, rows)

    def newest(self, *, limit: int, before: str | None = None) -> tuple[RunSummary, ...]:
        """Return up to `limit` runs older than the run `before`, or the newest runs if `before`
        does not exist.
        """
        run = schema.run
        statement = _with_suite().where(run.c.state.not_in(HIDDEN_STATES))
        with self._database.reading() as connection:
            place = connection.execute(
                select(run.c.started, run.c.key).where(run.c.id == before)
            ).first()
            if place is not None:
                statement = statement.where(tuple_(run.c.started, run.c.key) < tuple_(*place))
            rows = connection.execute(
                statement.order_by(run.c.started.desc(), run.c.key.desc()).limit(limit)
            ).all()
            return self._summaries(connection, rows)

    def newest_first(self, *, before: str | None = None) -> Iterator[RunSummary]:
        """Yield all runs in the order of `newest`; each batch is a separate read."""
        while True:
            page = self.newest(limit=_RUNS_AT_ONCE, before=before)
            yield from page
            if len(page) < _RUNS_AT_ONCE:
                return
            before = page[-1].id

    def _summaries(
        self, connection: Connection, rows: Sequence[Row[Any]]
    ) -> tuple[RunSummary, ...]:
        keys = [row.key for row in rows]
        return run_summaries(
            connection, self._claims, rows, lambda table: [table.c.run_key.in_(keys)]
        )
