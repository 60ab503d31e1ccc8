"""Scores that count as NumPy columns, and what does not count as numbers; never a record a row.

NumPy is imported when the first column is asked for, so that commands without statistics do not pay for it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Double, Select, and_, case, cast, func, or_, select

from assay.analysis.columns import ScoreColumns, TaskLabel
from assay.domain.lifecycle import COUNTS, AssessmentState, Standing, TrialState
from assay.domain.selection import Excluded
from assay.store import schema
from assay.store.codec import bytes_json
from assay.store.projection import ASSESSMENT, STANDING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sqlalchemy import ColumnElement, Connection

    from assay.store.selecting import Scope

_ROWS_AT_ONCE: Final = 20_000

_JOINT: Final = 1
_UNSEEN: Final = 2

COUNTING: Final = tuple(sorted(state.value for state in COUNTS))


def score_columns(connection: Connection, scope: Scope) -> ScoreColumns:
    """Every score that counts within the scope."""
    import numpy as np

    labels, task_keys = _labels(connection, scope)
    candidates = _candidates(connection, scope)
    judges = _judges(connection, scope)
    rows = _matrix(connection, _scores(scope) if scope.criteria is None else _criteria_scores(scope))
    task = _codes(rows[:, 0], task_keys)
    marks = rows[:, 5].astype(np.int64)
    return ScoreColumns(
        tasks=labels,
        candidates=tuple(candidates.values()),
        judges=tuple(judges.values()),
        task=task,
        candidate=_codes(rows[:, 1], tuple(candidates)),
        judge=_codes(rows[:, 2], tuple(judges)),
        trial=rows[:, 3].astype(np.int64),
        score=np.ascontiguousarray(rows[:, 4]),
        joint=(marks & _JOINT) != 0,
        unseen=(marks & _UNSEEN) != 0,
        runs=scope.ids,
        settings=_settings(connection, scope),
    )


def excluded(connection: Connection, scope: Scope) -> Excluded:
    """Trials by why they do not count, and superseded attempts."""
    if scope.graders is not None:
        trials = _standings_by_grader(connection, scope)
    elif scope.narrows_tasks or scope.families.contested:
        table = schema.trial
        rows = connection.execute(
            select(table.c.standing, func.count())
            .where(*scope.where(table), *scope.families.stand(table))
            .group_by(table.c.standing)
        )
        trials = {stands: int(n) for stands, n in rows}
    else:
        trials = _tallied(connection, scope, STANDING)
    if scope.graders is None and not scope.narrows_tasks:
        superseded = _tallied(connection, scope, ASSESSMENT).get(AssessmentState.SUPERSEDED, 0)
    else:
        its = schema.assessment
        which = (*scope.where(its), *scope.where_grader(its), its.c.state == AssessmentState.SUPERSEDED.value)
        superseded = connection.execute(select(func.count()).select_from(its).where(*which)).scalar_one()
    return Excluded(
        pending=trials.get(Standing.PENDING, 0),
        rejected=trials.get(Standing.REJECTED, 0),
        failed=trials.get(Standing.FAILED, 0),
        superseded=superseded,
    )


def _scores(scope: Scope) -> Select[Any]:
    table = schema.score
    return select(
        table.c.task_key,
        table.c.candidate_key,
        table.c.grader_key,
        table.c.trial_key,
        table.c.value,
        _marks(),
    ).where(
        *scope.where(table),
        *scope.where_grader(table),
        *scope.families.hold(table),
        table.c.state.in_(COUNTING),
        table.c.value.is_not(None),
    )


def _marks() -> ColumnElement[int]:
    """Two yes-or-nos in one column, since each column costs as much as the row itself."""
    table = schema.score
    joint = case((table.c.joint, _JOINT), else_=0)
    return joint + case((table.c.state == AssessmentState.EXEMPT.value, _UNSEEN), else_=0)


def _criteria_scores(scope: Scope) -> Select[Any]:
    """Scores over some criteria only: weighted among them; plain where all their weights are 0."""
    table, grade = schema.score, schema.grade
    weight = func.sum(case((grade.c.value.is_not(None), grade.c.weight), else_=0.0))
    score = case(
        (weight > 0, func.sum(grade.c.weight * grade.c.value) / func.nullif(weight, 0.0)), else_=func.avg(grade.c.value)
    )
    own = (table.c.run_key, table.c.assessment_key, table.c.candidate_key)
    same = and_(*(column == grade.c[column.name] for column in own))
    shown = (table.c.task_key, table.c.candidate_key, table.c.grader_key, table.c.trial_key)
    missing = func.sum(case((and_(grade.c.value.is_(None), grade.c.weight > 0), 1), else_=0))
    return (
        select(*shown, cast(score, Double), _marks())
        .join(grade, same)
        .where(
            *scope.where(table),
            *scope.where_grader(table),
            *scope.families.hold(table),
            table.c.state.in_(COUNTING),
            grade.c.criterion_key.in_(scope.criteria or ()),
        )
        .group_by(table.c.run_key, table.c.assessment_key, *shown, table.c.joint, table.c.state)
        .having(missing == 0, func.count(grade.c.value) > 0)
    )


def _matrix(connection: Connection, statement: Select[Any]) -> NDArray[np.float64]:
    """All rows as float64, shape (rows, columns); keys are far below 2**53 and so exact."""
    import numpy as np

    width = len(statement.selected_columns)
    parts = [np.empty((0, width), dtype=np.float64)]
    result = connection.execute(statement)
    cursor = result.cursor  # the driver's own rows: SQLAlchemy's would cost three times as much, for names nobody reads
    while cursor is not None and (portion := cursor.fetchmany(_ROWS_AT_ONCE)):
        flat = np.fromiter(chain.from_iterable(portion), dtype=np.float64, count=len(portion) * width)
        parts.append(flat.reshape(-1, width))
    result.close()
    return np.concatenate(parts)


def _codes(keys: NDArray[np.float64], known: tuple[int, ...]) -> NDArray[np.int64]:
    """Position of each key in `known`."""
    import numpy as np

    if not len(keys):
        return np.empty(0, dtype=np.int64)
    listed = np.asarray(known, dtype=np.int64)
    order = np.argsort(listed, kind="stable")
    return order[np.searchsorted(listed, keys.astype(np.int64), sorter=order)].astype(np.int64)


def _labels(connection: Connection, scope: Scope) -> tuple[tuple[TaskLabel, ...], tuple[int, ...]]:
    """Planned tasks of the scope, with rows or without, in the order in which the store met them."""
    planned, task, suite, run = schema.run_task, schema.task, schema.suite, schema.run
    rows = connection.execute(
        select(task.c.key, suite.c.name, task.c.task_id, task.c.digest, planned.c.thing, planned.c.weight)
        .select_from(planned)
        .join(run, run.c.key == planned.c.run_key)
        .join(task, task.c.key == planned.c.task_key)
        .join(suite, suite.c.key == task.c.suite_key)
        .where(*scope.where(planned))
        .order_by(run.c.started, run.c.key, planned.c.position)
    )
    newest = {key: rest for key, *rest in rows}
    versions: dict[tuple[str, str], int] = {}
    for suite_name, task_id, *_ in newest.values():
        versions[suite_name, task_id] = versions.get((suite_name, task_id), 0) + 1
    labels = tuple(
        TaskLabel(
            suite=suite_name,
            task=task_id,
            digest=task_digest,
            thing=thing,
            weight=weight,
            changed=versions[suite_name, task_id] > 1,
        )
        for suite_name, task_id, task_digest, thing, weight in newest.values()
    )
    return labels, tuple(newest)


def _candidates(connection: Connection, scope: Scope) -> dict[int, str]:
    """Candidates of the selected runs by key, in the order in which runs list them."""
    table, own = schema.candidate, schema.run_candidate
    rows = connection.execute(
        select(table.c.key, table.c.name)
        .join(own, own.c.candidate_key == table.c.key)
        .where(*scope.where_run(own))
        .order_by(own.c.run_key, own.c.position)
    )
    return {row.key: row.name for row in rows}


def _judges(connection: Connection, scope: Scope) -> dict[int, str]:
    table, own = schema.grader, schema.run_grader
    rows = connection.execute(
        select(table.c.key, table.c.name)
        .join(own, own.c.grader_key == table.c.key)
        .where(*scope.where_run(own), *scope.where_grader(own))
        .order_by(own.c.run_key, own.c.grader_key)
    )
    return {row.key: row.name for row in rows}


def _settings(connection: Connection, scope: Scope) -> tuple[str, ...]:
    table, grader = schema.run, schema.grader
    wanted = None
    if scope.graders is not None:
        wanted = set(connection.execute(select(grader.c.name).where(grader.c.key.in_(scope.graders))).scalars())
    where = [] if scope.every_run else [table.c.key.in_(scope.runs)]
    if replaced := _replaced_runs(connection, scope):
        where.append(table.c.key.not_in(replaced))
    found: dict[str, None] = {}
    for (text,) in connection.execute(select(table.c.settings).where(*where).order_by(table.c.started, table.c.key)):
        found.update((setting, None) for judge, setting in bytes_json(text) if wanted is None or judge in wanted)
    return tuple(found)


def _replaced_runs(connection: Connection, scope: Scope) -> tuple[int, ...]:
    """Runs of which nothing counts beside others that grade the same responses."""
    members = scope.families.members
    if not members:
        return ()
    table = schema.score
    still = connection.execute(
        select(table.c.run_key)
        .where(table.c.run_key.in_(members), *scope.families.hold(table), table.c.state.in_(COUNTING))
        .distinct()
    ).scalars()
    return tuple(sorted(set(members).difference(still)))


def _tallied(connection: Connection, scope: Scope, subject: str) -> dict[str, int]:
    table = schema.run_tally
    rows = connection.execute(
        select(table.c.state, func.sum(table.c.n))
        .where(*scope.where_run(table), table.c.subject == subject)
        .group_by(table.c.state)
    )
    return {state: int(n) for state, n in rows}


def _standings_by_grader(connection: Connection, scope: Scope) -> dict[str, int]:
    """Standings as they were if only the selected judges had graded."""
    trial, its = schema.trial, schema.assessment
    counts = func.max(case((its.c.state.in_(COUNTING), 1), else_=0))
    waits = func.max(case((its.c.state == AssessmentState.PENDING.value, 1), else_=0))
    current = and_(
        its.c.trial_key == trial.c.key,
        its.c.state != AssessmentState.SUPERSEDED.value,
        *scope.where_grader(its),
    )
    open_states = (TrialState.PENDING.value, TrialState.RUNNING.value)
    stands = case(
        (counts == 1, Standing.COUNTED.value),
        (or_(waits == 1, trial.c.state.in_(open_states)), Standing.PENDING.value),
        (trial.c.state == TrialState.FAILED.value, Standing.FAILED.value),
        else_=Standing.REJECTED.value,
    ).label("stands")
    each = (
        select(stands)
        .select_from(trial)
        .join(its, current, isouter=True)
        .where(*scope.where(trial), *scope.families.stand(trial))
        .group_by(trial.c.key, trial.c.state)
        .subquery()
    )
    rows = connection.execute(select(each.c.stands, func.count()).group_by(each.c.stands))
    return {stands: int(n) for stands, n in rows}
