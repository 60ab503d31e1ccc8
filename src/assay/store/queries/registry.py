"""Pages of runs, and the values that can filter them.

Only narrow columns are sorted; a page's other columns are read by run key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    exists,
    false,
    func,
    or_,
    select,
    tuple_,
)

from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import RunId, folded
from assay.domain.lifecycle import HIDDEN, AssessmentState, RunState, TrialState
from assay.domain.renaming import CandidateRow
from assay.domain.run_list import FAILS, WAITS, Facet, RunFilter, RunOrder, TaskUse
from assay.domain.selection import RunSummary
from assay.store.claims.claims import Claims
from assay.store.database import schema
from assay.store.database.codec import plain
from assay.store.database.connections import Database
from assay.store.database.counters import ASSESSMENT, TRIAL
from assay.store.database.name_keys import candidate_formerly, candidate_named
from assay.store.queries.filters import HIDDEN_STATES
from assay.store.queries.run_summaries import left_alone, run_summaries
from assay.store.queries.runs import something_waits

FACETS: Final = 12
"""Number of most frequent values of each field that a list offers as filters."""


class StoreRegister:
    """Lists of runs, candidates and tasks; may be used from any thread."""

    def __init__(self, database: Database, claims: Claims) -> None:
        self._database = database
        self._claims = claims

    def page(
        self,
        wanted: RunFilter,
        /,
        *,
        before: RunId | None = None,
        limit: int = 50,
        order: RunOrder = RunOrder.NEWEST,
    ) -> tuple[tuple[RunSummary, ...], bool]:
        """Return up to `limit` runs that follow `before` in the given order, and True if more runs
        match.

        Raises UnknownName if the run `before` does not exist, and InputError for an unknown state.
        """
        run, (lead, falls) = schema.run, _lead(order)
        recency = (run.c.started, run.c.key)
        with self._database.reading() as connection:
            where = self._where(connection, wanted)
            if before is not None:
                where.append(_follows(connection, before, order))
            query = connection.execute(
                select(run.c.key)
                .where(*where)
                .order_by(
                    *(column.desc() if falls else column for column in lead),
                    *(column if order is RunOrder.OLDEST else column.desc() for column in recency),
                )
                .limit(limit + 1)
            )
            keys = list(query.scalars())
            return self._summaries(connection, keys[:limit]), len(keys) > limit

    def facets(self, wanted: RunFilter, /) -> dict[str, tuple[Facet, ...]]:
        """Count the matching runs by state, and by suite for the most frequent suites."""
        run, suite = schema.run, schema.suite
        with self._database.reading() as connection:
            where = self._where(connection, wanted)
            n = func.count().label("n")
            by_suite = (
                select(suite.c.name, n).select_from(run).join(suite, suite.c.key == run.c.suite_key)
            )
            return {
                "suite": _counted(connection, by_suite.where(*where).group_by(suite.c.name)),
                "state": self._states(connection, where),
            }

    def runs_of_candidate(
        self, candidate: str, /, *, limit: int
    ) -> tuple[str, tuple[tuple[RunSummary, str], ...]]:
        """Return a candidate's current name, and its newest runs, each with the candidate's name in
        that run.

        Raises UnknownName.
        """
        run, own = schema.run, schema.run_candidate
        with self._database.reading() as connection:
            wanted = self._where(connection, RunFilter(candidate=candidate))
            keys = list(
                connection.execute(
                    select(run.c.key)
                    .where(*wanted)
                    .order_by(run.c.started.desc(), run.c.key.desc())
                    .limit(limit)
                ).scalars()
            )
            if not keys:
                known = [row.name for row in self.candidates()]
                raise UnknownName(
                    "candidate", candidate, known, remedy="/candidates lists all candidates."
                )
            key = _candidate_key(connection, candidate)
            rows = connection.execute(
                select(own.c.run_key, own.c.name).where(
                    own.c.candidate_key == key, own.c.run_key.in_(keys)
                )
            )
            names = {row.run_key: row.name for row in rows}
            now = connection.execute(
                select(schema.candidate.c.name).where(schema.candidate.c.key == key)
            ).scalar_one()
            return now, tuple(
                zip(self._summaries(connection, keys), (names[key] for key in keys), strict=True)
            )

    def candidates(self) -> tuple[CandidateRow, ...]:
        """Return the candidates of all runs, sorted by name."""
        with self._database.reading() as connection:
            return all_candidates(connection)

    def task_uses(self, suite: str, task: str, /, *, limit: int = 200) -> tuple[TaskUse, ...]:
        """Return a task's uses in the newest `limit` runs of its suite, newest first."""
        run, suites, planned, version = schema.run, schema.suite, schema.run_task, schema.task
        with self._database.reading() as connection:
            newest = (
                select(run.c.key)
                .join(suites, suites.c.key == run.c.suite_key)
                .where(suites.c.name == plain(suite), run.c.state.not_in(HIDDEN_STATES))
                .order_by(run.c.started.desc(), run.c.key.desc())
                .limit(limit)
            )
            keys = list(connection.execute(newest).scalars())
            rows = connection.execute(
                select(
                    run.c.id,
                    run.c.started,
                    version.c.digest,
                    planned.c.thing,
                    planned.c.weight,
                    planned.c.trials,
                )
                .join(planned, planned.c.run_key == run.c.key)
                .join(version, version.c.key == planned.c.task_key)
                .where(
                    run.c.key.in_(keys),
                    planned.c.run_key.in_(keys),
                    planned.c.task_id == plain(task),
                )
                .order_by(run.c.started.desc(), run.c.key.desc())
            )
            return tuple(
                TaskUse(
                    run=RunId(row.id),
                    started=row.started,
                    digest=row.digest,
                    thing=row.thing,
                    weight=row.weight,
                    trials=row.trials,
                )
                for row in rows
            )

    def _summaries(self, connection: Connection, keys: Sequence[int]) -> tuple[RunSummary, ...]:
        if not keys:
            return ()
        run, suite = schema.run, schema.suite
        rows = connection.execute(
            select(run, suite.c.name.label("suite"))
            .join(suite, suite.c.key == run.c.suite_key)
            .where(run.c.key.in_(keys))
        ).all()
        place = {key: n for n, key in enumerate(keys)}

        def of_runs(table: Table) -> list[ColumnElement[bool]]:
            return [table.c.run_key.in_(keys)]

        return run_summaries(
            connection, self._claims, sorted(rows, key=lambda row: place[row.key]), of_runs
        )

    def _where(self, connection: Connection, wanted: RunFilter) -> list[ColumnElement[bool]]:
        # Aliases, because a list that is grouped by suite or candidate uses these tables too.
        run, suite = schema.run, schema.suite.alias()
        archived = wanted.state == RunState.ARCHIVED
        where: list[ColumnElement[bool]] = [] if archived else [run.c.state.not_in(HIDDEN_STATES)]
        if wanted.suite is not None:
            where.append(
                run.c.suite_key.in_(select(suite.c.key).where(suite.c.name == plain(wanted.suite)))
            )
        if wanted.batch_id is not None:
            where.append(run.c.batch_id == plain(wanted.batch_id))
        if wanted.candidate is not None:
            own = schema.run_candidate.alias()
            key = _candidate_key(connection, wanted.candidate)
            if key is None:
                return [false()]
            where += [exists().where(own.c.run_key == run.c.key, own.c.candidate_key == key)]
        if wanted.state is not None:
            where.append(self._in_state(connection, wanted.state))
        if wanted.text.strip():
            where.append(_holds(run, wanted.text.strip()))
        return where

    def _in_state(self, connection: Connection, state: str) -> ColumnElement[bool]:
        run = schema.run
        if state == WAITS:
            return something_waits(run.c.key)
        if state == FAILS:
            return _some_fail(run)
        known = [str(each) for each in RunState if each not in HIDDEN or each is RunState.ARCHIVED]
        if state not in known:
            raise InputError(
                "state", f"is {state!r}.", remedy=f"Use one of {', '.join([*known, WAITS, FAILS])}."
            )
        if state not in (RunState.RUNNING, RunState.INTERRUPTED):
            return run.c.state == state
        alone = self._alone(connection)
        running = run.c.state == RunState.RUNNING.value
        if state == RunState.RUNNING:
            return running & run.c.key.not_in(alone) if alone else running
        return or_(
            run.c.state == RunState.INTERRUPTED.value,
            running & run.c.key.in_(alone) if alone else false(),
        )

    def _alone(self, connection: Connection) -> set[int]:
        run = schema.run
        running = connection.execute(
            select(run.c.key).where(run.c.state == RunState.RUNNING.value)
        ).scalars()
        return left_alone(connection, self._claims, list(running))

    def _states(
        self, connection: Connection, where: list[ColumnElement[bool]]
    ) -> tuple[Facet, ...]:
        run, n = schema.run, func.count()
        counts: dict[str, int] = {}
        for state, runs in connection.execute(
            select(run.c.state, n).where(*where).group_by(run.c.state)
        ):
            counts[str(state)] = runs
        alone = self._alone(connection) if counts.get(RunState.RUNNING) else set()
        if alone:
            left = connection.execute(select(n).where(*where, run.c.key.in_(alone))).scalar_one()
            counts[RunState.RUNNING] -= left
            counts[RunState.INTERRUPTED] = counts.get(RunState.INTERRUPTED, 0) + left
        for state, some in ((WAITS, something_waits(run.c.key)), (FAILS, _some_fail(run))):
            counts[state] = connection.execute(select(n).where(*where, some)).scalar_one()
        return tuple(Facet(value=str(state), runs=runs) for state, runs in counts.items() if runs)


def all_candidates(connection: Connection) -> tuple[CandidateRow, ...]:
    """Return all candidates that took part in a run, sorted by name, with the other names that runs
    use for them.
    """
    candidate, own, run = schema.candidate, schema.run_candidate, schema.run
    statement = (
        select(
            candidate.c.name,
            candidate.c.folded,
            own.c.name.label("written"),
            func.count().label("runs"),
            func.min(run.c.started).label("first"),
            func.max(run.c.started).label("last"),
        )
        .join(own, own.c.candidate_key == candidate.c.key)
        .join(run, run.c.key == own.c.run_key)
        .where(run.c.state.not_in(HIDDEN_STATES))
        .group_by(candidate.c.key, candidate.c.name, candidate.c.folded, own.c.name)
        .order_by(candidate.c.folded, func.min(run.c.started))
    )
    by_name: dict[str, list[Any]] = {}
    for row in connection.execute(statement):
        by_name.setdefault(row.name, []).append(row)
    return tuple(
        CandidateRow(
            name=name,
            written=tuple(row.written for row in rows if folded(row.written) != folded(row.folded)),
            runs=sum(row.runs for row in rows),
            first=min(row.first for row in rows),
            last=max(row.last for row in rows),
        )
        for name, rows in by_name.items()
    )


def _lead(order: RunOrder) -> tuple[tuple[ColumnElement[Any], ...], bool]:
    """Return the columns that are sorted before the time, and True if they are sorted from high to
    low.
    """
    run, suite, tally = schema.run, schema.suite.alias(), schema.run_tally.alias()
    match order:
        case RunOrder.NAME:
            return (
                select(func.lower(suite.c.name))
                .where(suite.c.key == run.c.suite_key)
                .scalar_subquery(),
            ), False
        case RunOrder.COST:
            return (run.c.cost_usd,), True
        case RunOrder.WAITING:
            pending = (
                tally.c.subject == ASSESSMENT,
                tally.c.state == AssessmentState.PENDING.value,
            )
            n = select(tally.c.n).where(tally.c.run_key == run.c.key, *pending).scalar_subquery()
            return (func.coalesce(n, 0),), True
        case _:
            return (), True


def _follows(connection: Connection, before: RunId, order: RunOrder) -> ColumnElement[bool]:
    run, (lead, falls) = schema.run, _lead(order)
    place = connection.execute(
        select(run.c.started, run.c.key, *lead).where(run.c.id == plain(before))
    ).first()
    if place is None:
        raise UnknownName("run", before, remedy="Remove `before` from the page's address.")
    recency, mark = tuple_(run.c.started, run.c.key), tuple_(*place[:2])
    later: ColumnElement[bool] = recency > mark if order is RunOrder.OLDEST else recency < mark
    for column, value in zip(lead, place[2:], strict=True):
        later = or_(column < value if falls else column > value, and_(column == value, later))
    return later


def _candidate_key(connection: Connection, name: str) -> int | None:
    key = candidate_named(connection, name)
    return candidate_formerly(connection, name) if key is None else key


def _some_fail(run: Table) -> ColumnElement[bool]:
    tally = schema.run_tally
    failed = (tally.c.subject == TRIAL, tally.c.state == TrialState.FAILED.value, tally.c.n > 0)
    return exists().where(tally.c.run_key == run.c.key, *failed)


def _holds(run: Table, text: str) -> ColumnElement[bool]:
    suite, own, candidate = (
        schema.suite.alias(),
        schema.run_candidate.alias(),
        schema.candidate.alias(),
    )
    needle = plain(text).lower()

    def has(column: Any) -> ColumnElement[bool]:
        return func.lower(column).contains(needle, autoescape=True)

    named = (
        select(own.c.run_key)
        .join(candidate, candidate.c.key == own.c.candidate_key)
        .where(or_(has(own.c.name), has(candidate.c.name)))
    )
    return or_(
        has(run.c.id),
        has(func.coalesce(run.c.batch_id, "")),
        run.c.suite_key.in_(select(suite.c.key).where(has(suite.c.name))),
        run.c.key.in_(named),
    )


def _counted(connection: Connection, statement: Select[Any]) -> tuple[Facet, ...]:
    """Convert rows of (value, count) to facets, the most frequent first."""
    value, n = statement.selected_columns
    rows = connection.execute(statement.order_by(n.desc(), value).limit(FACETS))
    return tuple(Facet(value=value, runs=runs) for value, runs in rows)
