"""List trials in plan order, in pages, to compare grades and runs.

Every page is one seek from the end of the previous page, so the last page costs as much as the
first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, func, select, tuple_

from assay.domain.graded_trials import GradedRun, MatrixRow, MatrixTrial, PlacedTrial
from assay.domain.identifiers import RunId, TrialKey
from assay.domain.lifecycle import AssessmentState, TrialState
from assay.domain.selection import Selection
from assay.store.database import schema
from assay.store.database.name_keys import candidate_names
from assay.store.queries.answers import task_places
from assay.store.queries.filters import scope_of
from assay.store.queries.plans import run_key_of

_TASKS_NAMED: Final = 200
_SUPERSEDED: Final = AssessmentState.SUPERSEDED.value


def graded_run(connection: Connection, run: RunId, /) -> GradedRun:
    """Return a run's judges, criteria, candidates and first tasks; raises `UnknownName`."""
    run_key = run_key_of(connection, run)
    assessment, grader, own = schema.assessment, schema.grader, schema.run_grader
    graders = connection.execute(
        select(grader.c.key, grader.c.name)
        .join(own, own.c.grader_key == grader.c.key)
        .where(own.c.run_key == run_key)
        .order_by(grader.c.key)
    ).all()
    judges = [
        (key, name)
        for key, name in graders
        if connection.execute(
            select(assessment.c.by_model)
            .where(assessment.c.run_key == run_key, assessment.c.grader_key == key)
            .limit(1)
        ).scalar()
    ]
    again = connection.execute(
        select(assessment.c.grader_key, func.max(assessment.c.attempt))
        .where(assessment.c.run_key == run_key, assessment.c.state == _SUPERSEDED)
        .group_by(assessment.c.grader_key)
    )
    highest = {key: int(attempt) for key, attempt in again}
    own_names, candidate = candidate_names(connection, run_key), schema.candidate
    called = {
        row.key: row.name
        for row in connection.execute(
            select(candidate.c.key, candidate.c.name).where(candidate.c.key.in_(list(own_names)))
        )
    }
    written = {called[key]: name for key, name in own_names.items()}
    criterion, named, planned = schema.criterion, schema.run_criterion, schema.run_task
    criteria = connection.execute(
        select(criterion.c.name)
        .join(named, named.c.criterion_key == criterion.c.key)
        .where(named.c.run_key == run_key)
        .order_by(criterion.c.key)
    )
    tasks = connection.execute(
        select(planned.c.task_id)
        .where(planned.c.run_key == run_key)
        .order_by(planned.c.position)
        .limit(_TASKS_NAMED)
    )
    return GradedRun(
        run=run,
        candidates=tuple(written),
        written=written,
        judges=tuple(name for _, name in judges),
        criteria=tuple(criteria.scalars()),
        tasks=tuple(tasks.scalars()),
        attempts={name: highest[key] for key, name in judges if key in highest},
    )


def graded_trials(
    connection: Connection,
    run: RunId,
    /,
    *,
    task: str = "",
    again: bool = False,
    after: tuple[int, int] | None = None,
    limit: int,
) -> tuple[PlacedTrial, ...]:
    """Return up to `limit` trials of a run after a position, in plan order; with `again`, only
    trials judged again.

    Raises UnknownName if the run does not exist or has no such task.
    """
    scope = scope_of(connection, Selection(runs=(run,), tasks=(task,) if task else ()))
    run_key, tasks = scope.runs[0], scope.tasks
    table, assessment = schema.trial, schema.assessment
    where = [table.c.run_key == run_key]
    if after is not None:
        where.append(tuple_(table.c.position, table.c.k) > tuple_(*after))
    if tasks is not None:
        planned = schema.run_task
        of_tasks = select(planned.c.position).where(
            planned.c.run_key == run_key, planned.c.task_key.in_(tasks)
        )
        where.append(table.c.position.in_(connection.execute(of_tasks).scalars().all()))
    if again:
        where.append(
            table.c.key.in_(
                select(assessment.c.trial_key).where(
                    assessment.c.run_key == run_key, assessment.c.state == _SUPERSEDED
                )
            )
        )
    rows = connection.execute(
        select(table.c.key, table.c.position, table.c.k)
        .where(*where)
        .order_by(table.c.position, table.c.k)
        .limit(limit)
    )
    return tuple(PlacedTrial(key=TrialKey(row.key), place=(row.position, row.k)) for row in rows)


def paired_trials(
    connection: Connection, other: RunId, trials: Collection[TrialKey], /
) -> dict[TrialKey, TrialKey]:
    other_key = run_key_of(connection, other)
    mine, others = schema.trial.alias("mine"), schema.trial.alias("theirs")
    planned, paired = schema.run_task.alias("planned"), schema.run_task.alias("paired")
    rows = connection.execute(
        select(others.c.key, mine.c.key)
        .select_from(mine)
        .join(
            planned, (planned.c.run_key == mine.c.run_key) & (planned.c.position == mine.c.position)
        )
        .join(paired, (paired.c.run_key == other_key) & (paired.c.task_id == planned.c.task_id))
        .join(
            others,
            (others.c.run_key == other_key)
            & (others.c.position == paired.c.position)
            & (others.c.k == mine.c.k),
        )
        .where(mine.c.key.in_(list(trials)))
    )
    return {TrialKey(other_trial): TrialKey(own_trial) for other_trial, own_trial in rows}


def task_matrix(
    connection: Connection,
    runs: Sequence[RunId],
    /,
    *,
    after: tuple[int, int] | None = None,
    limit: int,
    trials: int,
) -> tuple[MatrixRow, ...]:
    """Return up to `limit` distinct tasks of several runs after a position, with their trials up to
    number `trials`.
    """
    run_keys = {run: run_key_of(connection, run) for run in runs}
    places = task_places(connection, list(run_keys.values()), after=after, limit=limit)
    ids = [task for _, task in places]
    things: dict[str, str] = {}
    planned: dict[str, dict[RunId, int]] = {task: {} for task in ids}
    trials_of: dict[str, dict[RunId, tuple[MatrixTrial, ...]]] = {task: {} for task in ids}
    task, trial = schema.run_task, schema.trial
    for run, key in run_keys.items():
        seek = select(task.c.position, task.c.thing, task.c.trials).where(
            task.c.run_key == key, task.c.task_id == bindparam("id")
        )
        positions: dict[int, str] = {}
        for task_id in ids:  # one seek per id: given a list, SQLite reads the whole run instead
            own = connection.execute(seek, {"id": task_id}).first()
            if own is not None:
                positions[own.position] = task_id
                things.setdefault(task_id, own.thing)
                planned[task_id][run] = own.trials
        rows = connection.execute(
            select(trial.c.key, trial.c.position, trial.c.k, trial.c.state)
            .where(
                trial.c.run_key == key, trial.c.position.in_(list(positions)), trial.c.k <= trials
            )
            .order_by(trial.c.position, trial.c.k)
        ).all()
        for row in rows:
            new = MatrixTrial(key=TrialKey(row.key), k=row.k, state=TrialState(row.state))
            of_task = trials_of[positions[row.position]]
            of_task[run] = (*of_task.get(run, ()), new)
    return tuple(
        MatrixRow(
            place=place,
            task=task_id,
            thing=things[task_id],
            trials=trials_of[task_id],
            planned=planned[task_id],
        )
        for place, task_id in places
    )
