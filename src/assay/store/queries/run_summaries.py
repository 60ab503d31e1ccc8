"""Summarise runs: their counters and candidates, and whether a process still executes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, case, select

from assay.domain.identifiers import RunId, folded
from assay.domain.lifecycle import AssessmentState, RunState, TrialState
from assay.domain.selection import RunSummary, StartedFrom
from assay.store.claims.claims import Claims
from assay.store.database import schema
from assay.store.database.codec import bytes_json
from assay.store.database.counters import ASSESSMENT, TRIAL
from assay.store.queries.body_search import body_holds

Where = Callable[[Table], list[ColumnElement[bool]]]
"""Function that returns conditions for a table with `run_key` that select the runs; no condition
selects all runs.
"""


def run_summaries(
    connection: Connection, claims: Claims, rows: Sequence[Row[Any]], where: Where
) -> tuple[RunSummary, ...]:
    """Return summaries of rows of `run`, which contain the suite's name as `suite`, in the rows'
    order.
    """
    tallies = _tallies(connection, where)
    names = candidates_of(connection, where)
    running = [row.key for row in rows if row.state == RunState.RUNNING]
    alone = left_alone(connection, claims, running)
    stretches = _stretches(connection, running)
    brought = _imported(connection, where)
    criteria = _criteria(connection, where)
    return tuple(
        RunSummary(
            id=RunId(row.id),
            suite=row.suite,
            # Determined while reading, because a process killed with -9 could not record that its
            # run stopped.
            state=RunState.INTERRUPTED if row.key in alone else RunState(row.state),
            started=row.started,
            finished=row.finished,
            batch_id=row.batch_id,
            candidates=tuple(names.get(row.key, ())),
            judges=tuple(bytes_json(row.judges)),
            trials={TrialState(state): n for state, n in tallies.get((row.key, TRIAL), {}).items()},
            assessments={
                AssessmentState(state): n
                for state, n in tallies.get((row.key, ASSESSMENT), {}).items()
            },
            input_tokens=row.input_tokens,
            output_tokens=row.output_tokens,
            # If no call with a cost has a known price, the cost is unknown instead of 0.
            cost_usd=None if row.unpriced_calls and not row.cost_usd else row.cost_usd,
            unpriced_calls=row.unpriced_calls,
            since=stretches.get(row.key, (None, 0))[0],
            done_before=stretches.get(row.key, (None, 0))[1],
            imported=row.key in brought,
            started_from=brought.get(row.key),
            budget_usd=row.budget_usd,
            booked_usd=row.spent_usd,
            criteria=frozenset(criteria.get(row.key, ())),
        )
        for row in rows
    )


def left_alone(connection: Connection, claims: Claims, running: Sequence[int]) -> set[int]:
    if not running:
        return set()
    table = schema.execution
    rows = connection.execute(
        select(table.c.run_key, table.c.owner).where(table.c.run_key.in_(running))
    ).all()
    living = {owner for owner in {owner for _, owner in rows} if not claims.seems_gone(owner)}
    return set(running) - {run_key for run_key, owner in rows if owner in living}


def _stretches(connection: Connection, running: Sequence[int]) -> dict[int, tuple[str | None, int]]:
    """Return (time of the last start or resume, number of trials done by then) by running run."""
    if not running:
        return {}
    table = schema.stretch
    rows = connection.execute(select(table).where(table.c.run_key.in_(running))).all()
    return {row.run_key: (row.since, row.done) for row in rows}


def _imported(connection: Connection, where: Where) -> dict[int, StartedFrom | None]:
    """Return the source of the start time of each imported run; None if the importer did not record
    it.
    """
    table, run, body = schema.imported, schema.run, schema.body
    # Searched as bytes, because parsing the plan of each run takes more time than the rest of its
    # summary.
    sources: list[tuple[ColumnElement[bool], str]] = [
        (body_holds(connection, b'"started_from":"%s"' % source.value.encode()), source.value)
        for source in StartedFrom
    ]
    rows = connection.execute(
        select(table.c.run_key, case(*sources))
        .join(run, run.c.key == table.c.run_key)
        .join(body, body.c.key == run.c.plan_key)
        .where(*where(table))
    )
    return {run_key: None if source is None else StartedFrom(source) for run_key, source in rows}


def candidates_of(connection: Connection, where: Where) -> dict[int, list[str]]:
    """Return each run's candidates in its order, by their names in the run or, after a rename, by
    their new names.
    """
    table, candidate = schema.run_candidate, schema.candidate
    names: dict[int, list[str]] = {}
    for run_key, name, now, same in connection.execute(
        select(table.c.run_key, table.c.name, candidate.c.name, candidate.c.folded)
        .join(candidate, candidate.c.key == table.c.candidate_key)
        .where(*where(table))
        .order_by(table.c.run_key, table.c.position)
    ):
        names.setdefault(run_key, []).append(name if folded(name) == folded(same) else now)
    return names


def _criteria(connection: Connection, where: Where) -> dict[int, set[str]]:
    table, criterion = schema.run_criterion, schema.criterion
    names: dict[int, set[str]] = {}
    for run_key, name in connection.execute(
        select(table.c.run_key, criterion.c.name)
        .join(criterion, criterion.c.key == table.c.criterion_key)
        .where(*where(table))
    ):
        names.setdefault(run_key, set()).add(name)
    return names


def _tallies(connection: Connection, where: Where) -> dict[tuple[int, str], dict[str, int]]:
    table = schema.run_tally
    tallies: dict[tuple[int, str], dict[str, int]] = {}
    for run_key, subject, state, n in connection.execute(
        select(table.c.run_key, table.c.subject, table.c.state, table.c.n).where(*where(table))
    ):
        if n:
            tallies.setdefault((run_key, subject), {})[state] = n
    return tallies
