"""Facts about pooled runs: the runs whose scores count, and the tasks and rules in which they
differ.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, func, select

from assay.analysis.columns import PooledRuns
from assay.domain.identifiers import RunId
from assay.domain.selection import Selection
from assay.store.database import schema
from assay.store.database.counters import ASSESSMENT
from assay.store.queries.filters import HIDDEN_STATES, Scope, scope_of
from assay.store.queries.mixed_rules import mixed_rules
from assay.store.queries.score_columns import COUNTING, replaced_runs


def suites_with_runs(connection: Connection) -> tuple[str, ...]:
    """Return the names of all suites with a run, the suite of the newest run first."""
    run, suite = schema.run, schema.suite
    newest = func.max(run.c.started)
    rows = (
        select(suite.c.name)
        .join(run, run.c.suite_key == suite.c.key)
        .where(run.c.state.not_in(HIDDEN_STATES))
    )
    return tuple(
        connection.execute(
            rows.group_by(suite.c.name).order_by(newest.desc(), suite.c.name)
        ).scalars()
    )


def counted_by_run(connection: Connection, selection: Selection, /) -> dict[RunId, int]:
    """Count the trials with a counted score by run; a run without any is missing."""
    scope = scope_of(connection, selection)
    score, run = schema.score, schema.run
    rows = connection.execute(
        select(run.c.id, func.count(score.c.trial_key.distinct()))
        .join(run, run.c.key == score.c.run_key)
        .where(
            *scope.where(score),
            *scope.where_grader(score),
            *scope.families.hold(score),
            score.c.state.in_(COUNTING),
            score.c.value.is_not(None),
        )
        .group_by(run.c.id)
    )
    return {RunId(identifier): int(n) for identifier, n in rows}


def pooled_runs(
    connection: Connection, selection: Selection, /, *, with_replaced: bool = False
) -> PooledRuns:
    """Return the facts that decide if the selected runs may be pooled; empty if fewer than two of
    them count.

    `with_replaced`: also look at runs whose responses another selected run grades, because the
    caller contrasts the runs.
    """
    scope = scope_of(connection, selection)
    # People's grades that were imported with the responses stay in force beside a later grading,
    # response by response.
    newer, older, references = scope.families.newer, scope.families.older, scope.families.references
    beside = {
        key for run in references for key in (*newer.get(run, ()), *older.get(run, ()))
    }.difference(references)
    dropped = () if with_replaced else tuple({*replaced_runs(connection, scope), *beside})
    run, suite = schema.run, schema.suite
    rows = connection.execute(
        select(run.c.id, run.c.key, suite.c.name)
        .join(suite, suite.c.key == run.c.suite_key)
        .where(*scope.where_key(run.c.key), *_counting(run.c.key, dropped))
        .order_by(run.c.started, run.c.key)
    ).all()
    suites: defaultdict[str, list[RunId]] = defaultdict(list)
    for row in rows:
        suites[row.name].append(RunId(row.id))
    several = {name: tuple(runs) for name, runs in suites.items() if len(runs) > 1}
    if not several:
        return PooledRuns()
    changed, missing = _tasks(
        connection, scope, dropped, {name: len(runs) for name, runs in several.items()}
    )
    variants = scope.variants(connection)
    pooled, apart = _shared(connection, scope, dropped, {variant.candidate for variant in variants})
    return PooledRuns(
        suites=several,
        mixed_rules=mixed_rules(connection, scope, frozenset(selection.judges) or None, dropped),
        changed=changed,
        missing={name: tasks for name, tasks in missing.items() if name in pooled},
        apart=frozenset(apart - pooled),
        graders=_imported_graders(connection, scope, dropped),
    )


def _counting(run_key: ColumnElement[int], dropped: tuple[int, ...]) -> list[ColumnElement[bool]]:
    tally = schema.run_tally
    counts = (tally.c.subject == ASSESSMENT, tally.c.state.in_(COUNTING), tally.c.n > 0)
    return [
        run_key.in_(select(tally.c.run_key).where(*counts)),
        *([run_key.not_in(dropped)] if dropped else []),
    ]


def _rows_of(scope: Scope, table: Table, dropped: tuple[int, ...]) -> list[ColumnElement[bool]]:
    return [*scope.where_run(table), *_counting(table.c.run_key, dropped)]


def _tasks(
    connection: Connection, scope: Scope, dropped: tuple[int, ...], n_runs: dict[str, int]
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Return the tasks by suite that changed, and those that only some of its runs have."""
    planned, task, suite = schema.run_task, schema.task, schema.suite
    rows: Any = connection.execute(
        select(
            suite.c.name,
            planned.c.task_id,
            func.count(),
            func.min(task.c.digest),
            func.max(task.c.digest),
        )
        .select_from(planned)
        .join(task, task.c.key == planned.c.task_key)
        .join(suite, suite.c.key == task.c.suite_key)
        .where(*scope.where(planned), *_counting(planned.c.run_key, dropped))
        .group_by(suite.c.name, planned.c.task_id)
        .order_by(suite.c.name, planned.c.task_id)
    )
    changed: defaultdict[str, list[str]] = defaultdict(list)
    missing: defaultdict[str, list[str]] = defaultdict(list)
    for name, task_id, n, first, last in rows:
        if first != last:
            changed[name].append(task_id)
        if n < n_runs.get(name, 0):
            missing[name].append(task_id)
    return {name: tuple(ids) for name, ids in changed.items()}, {
        name: tuple(ids) for name, ids in missing.items()
    }


def _shared(
    connection: Connection, scope: Scope, dropped: tuple[int, ...], variants: set[int]
) -> tuple[set[str], set[str]]:
    """Return the suites with a pooled candidate in several runs, and those with candidates that are
    kept apart.
    """
    own, run, suite = schema.run_candidate, schema.run, schema.suite
    rows = connection.execute(
        select(suite.c.name, own.c.candidate_key)
        .select_from(own)
        .join(run, run.c.key == own.c.run_key)
        .join(suite, suite.c.key == run.c.suite_key)
        .where(*_rows_of(scope, own, dropped))
        .group_by(suite.c.name, own.c.candidate_key)
        .having(func.count() > 1)
    ).all()
    pooled = {row.name for row in rows if row.candidate_key not in variants}
    return pooled, {row.name for row in rows if row.candidate_key in variants}


def _imported_graders(
    connection: Connection, scope: Scope, dropped: tuple[int, ...]
) -> dict[RunId, frozenset[str]]:
    own, grader, run, imported = schema.run_grader, schema.grader, schema.run, schema.imported
    rows = connection.execute(
        select(run.c.id, grader.c.name)
        .select_from(own)
        .join(grader, grader.c.key == own.c.grader_key)
        .join(run, run.c.key == own.c.run_key)
        .join(imported, imported.c.run_key == own.c.run_key)
        .where(*_rows_of(scope, own, dropped), *scope.where_grader(own))
    )
    names: defaultdict[RunId, set[str]] = defaultdict(set)
    for identifier, name in rows:
        names[RunId(identifier)].add(name)
    return {identifier: frozenset(graders) for identifier, graders in names.items()}


def run_with_references(connection: Connection, run: RunId, /) -> RunId | None:
    """Return the imported run whose responses a regrade grades, if it has people's reference
    grades; otherwise None.
    """
    table, own = schema.run, schema.run_grader
    key = connection.execute(
        select(table.c.regrade_of).where(table.c.id == run)
    ).scalar_one_or_none()
    while key is not None:
        row = connection.execute(
            select(table.c.id, table.c.state, table.c.regrade_of).where(table.c.key == key)
        ).first()
        if row is None or row.state in HIDDEN_STATES:
            return None
        if connection.execute(
            select(own.c.run_key).where(own.c.run_key == key, own.c.reference).limit(1)
        ).first():
            return RunId(row.id)
        key = row.regrade_of
    return None
