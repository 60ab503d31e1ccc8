"""Compare answers: one row per task, one column per chosen candidate of a run.

Rows have the order of the first run's tasks; tasks that only the second run contains follow in that
run's order. Each page is one seek from the end of the previous page, so the millionth row costs as
much as the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from sqlalchemy import Connection, Row, bindparam, exists, select

from assay.domain.answer_rows import AnswerColumn, AnswerRow, CandidateAnswer
from assay.domain.calls import Role
from assay.domain.errors import UnknownName
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import TrialKey
from assay.domain.lifecycle import COUNTS, AssessmentState, TrialState
from assay.domain.scenarios import readable
from assay.domain.suite import Task
from assay.store.database import schema
from assay.store.database.codec import bytes_text, task_record
from assay.store.database.name_keys import candidate_named, candidate_names
from assay.store.queries.filters import find_run
from assay.store.queries.plans import run_key_of

_AMOUNTS = ("input_tokens", "output_tokens", "latency_s", "cost_usd")

_COUNTED = frozenset(state.value for state in COUNTS)


def answer_rows(
    connection: Connection,
    columns: Sequence[AnswerColumn],
    /,
    *,
    after: tuple[int, int] | None = None,
    limit: int = 50,
    task: str | None = None,
) -> tuple[AnswerRow, ...]:
    """Return up to `limit` rows after a position, or the single row of a task.

    Raises UnknownName if a run does not exist or has no such candidate.
    """
    run_keys = {column.run: _run_with(connection, column) for column in columns}
    runs = list(dict.fromkeys(run_keys[column.run] for column in columns))
    places = (
        task_places(connection, runs, after=after, limit=limit)
        if task is None
        else [((0, 0), task)]
    )
    ids = [task_id for _, task_id in places]
    planned = {run: _planned(connection, run, ids) for run in runs}
    places = [place for place in places if any(place[1] in by_id for by_id in planned.values())]
    tasks = _tasks(
        connection, {row.body_key for by_id in planned.values() for row in by_id.values()}
    )
    by_column = [
        _answers(connection, run_keys[column.run], column, planned[run_keys[column.run]], tasks)
        for column in columns
    ]
    page = []
    for place, task_id in places:
        first = next(planned[run][task_id] for run in runs if task_id in planned[run])
        rows = [planned[run_keys[column.run]].get(task_id) for column in columns]
        page.append(
            AnswerRow(
                place=place,
                task=tasks[first.body_key],
                digests=tuple(None if row is None else row.digest for row in rows),
                answers=tuple(by_id.get(task_id, CandidateAnswer()) for by_id in by_column),
            )
        )
    return tuple(page)


def _run_with(connection: Connection, column: AnswerColumn) -> int:
    """Return the key of a column's run.

    Raises UnknownName if the column's candidate is not in it.
    """
    run = find_run(connection, column.run)
    run_key = run_key_of(connection, run)
    names = candidate_names(connection, run_key).values()
    if column.candidate not in names:
        raise UnknownName(
            "candidate", column.candidate, names, remedy=f"{run} has {', '.join(names)}."
        )
    return run_key


def task_places(
    connection: Connection, runs: Sequence[int], *, after: tuple[int, int] | None, limit: int
) -> list[tuple[tuple[int, int], str]]:
    """Return the next distinct tasks of several runs as ((run number, position), task id)."""
    table = schema.run_task
    number, position = after or (0, -1)
    places: list[tuple[tuple[int, int], str]] = []
    while number < len(runs) and len(places) < limit:
        earlier = table.alias()
        statement = select(table.c.position, table.c.task_id).where(
            table.c.run_key == runs[number], table.c.position > position
        )
        if number:
            same = (earlier.c.run_key.in_(runs[:number]), earlier.c.task_id == table.c.task_id)
            statement = statement.where(~exists().where(*same))
        rows = connection.execute(
            statement.order_by(table.c.position).limit(limit - len(places))
        ).all()
        places += [((number, row.position), row.task_id) for row in rows]
        number, position = number + 1, -1
    return places


def _planned(connection: Connection, run: int, ids: Sequence[str]) -> dict[str, Row[Any]]:
    table, task = schema.run_task, schema.task
    statement = (
        select(table.c.task_id, table.c.task_key, table.c.position, table.c.body_key, task.c.digest)
        .join(task, task.c.key == table.c.task_key)
        .where(table.c.run_key == run, table.c.task_id == bindparam("id"))
    )
    # One seek per id: given a list, SQLite reads the whole run instead.
    rows: dict[str, Any] = {
        task_id: connection.execute(statement, {"id": task_id}).first() for task_id in ids
    }
    return {task_id: row for task_id, row in rows.items() if row is not None}


def _tasks(connection: Connection, keys: set[int]) -> dict[int, Task]:
    table = schema.body
    rows = connection.execute(select(table.c.key, table.c.content).where(table.c.key.in_(keys)))
    return {key: task_record(content) for key, content in rows}


def _answers(
    connection: Connection,
    run: int,
    column: AnswerColumn,
    planned: Mapping[str, Row[Any]],
    tasks: Mapping[int, Task],
) -> dict[str, CandidateAnswer]:
    candidate = candidate_named(connection, column.candidate)
    trials = _trials(connection, run, column.k, {row.position for row in planned.values()})
    keys = [row.key for row in trials.values()]
    asked, turns = _asked(connection, keys, candidate), _calls(connection, keys, candidate)
    scores = _scores(connection, run, keys, candidate)
    answers = {}
    for task_id, row in planned.items():
        trial = trials.get(row.position)
        if trial is None:
            continue
        text, truncated = asked.get(trial.key, (None, False))
        if (
            text is None
            and (snippet := tasks[row.body_key].snippet_of(column.candidate)) is not None
        ):
            text = snippet.text
        if text is not None and tasks[row.body_key].scenario is not None:
            text = readable(text)
        call = turns[trial.key][-1] if trial.key in turns else None
        values = scores[trial.key]
        counted = [value for value, state in values if state in _COUNTED and value is not None]
        answers[task_id] = CandidateAnswer(
            text=text,
            truncated=truncated,
            failure=None if text is not None else _failure(trial, call),
            trial=TrialKey(trial.key),
            score=mean(counted) if counted else None,
            waits=any(state == AssessmentState.PENDING for _, state in values),
            **{name: _summed(turns.get(trial.key, ()), name) for name in _AMOUNTS},
        )
    return answers


def _failure(trial: Row[Any], call: Row[Any] | None) -> Failure | None:
    """Return the reason for a missing answer: the failure of the candidate's last call or, without
    one, the trial's failure.
    """
    if call is not None and call.fail_kind is not None:
        return Failure(
            kind=call.fail_kind,
            fault=Fault(call.fail_fault),
            detail=call.fail_detail,
            tries=call.number,
        )
    if trial.state == TrialState.FAILED:
        return Failure(
            kind=trial.fail_kind,
            fault=Fault(trial.fail_fault),
            detail=trial.fail_detail,
            tries=trial.fail_tries,
        )
    return None


def _trials(connection: Connection, run: int, k: int, positions: set[int]) -> dict[int, Row[Any]]:
    table = schema.trial
    where = (table.c.run_key == run, table.c.position.in_(positions), table.c.k == k)
    return {row.position: row for row in connection.execute(select(table).where(*where))}


def _asked(
    connection: Connection, trials: Sequence[int], candidate: int | None
) -> dict[int, tuple[str, bool]]:
    """Return (text, True if truncated) of each trial's last response."""
    table, body = schema.response, schema.body
    rows = connection.execute(
        select(table.c.trial_key, table.c.truncated, body.c.content)
        .join(body, body.c.key == table.c.body_key)
        .where(table.c.trial_key.in_(trials), table.c.candidate_key == candidate)
        .order_by(table.c.round)
    )
    return {row.trial_key: (bytes_text(row.content), row.truncated) for row in rows}


def _calls(
    connection: Connection, trials: Sequence[int], candidate: int | None
) -> dict[int, list[Row[Any]]]:
    """Return, by trial, the calls that led to the candidate's last answer, or only the last call if
    all failed.

    A conversation has one call per turn.
    """
    table = schema.call
    where = (
        table.c.trial_key.in_(trials),
        table.c.role == Role.CANDIDATE,
        table.c.candidate_key == candidate,
    )
    turns: dict[int, list[Row[Any]]] = {}
    for row in connection.execute(select(table).where(*where).order_by(table.c.key)):
        before = turns.get(row.trial_key, [])
        turns[row.trial_key] = [
            call for call in before if call.attempt == row.attempt and call.fail_kind is None
        ] + [row]
    return turns


def _summed(calls: Sequence[Row[Any]], name: str) -> Any:
    """Return the sum of an amount over calls; None if one call's amount is unknown."""
    amounts = [getattr(call, name) for call in calls]
    return sum(amounts) if amounts and None not in amounts else None


def _scores(
    connection: Connection, run: int, trials: Sequence[int], candidate: int | None
) -> defaultdict[int, list[tuple[float | None, str]]]:
    table, assessment = schema.score, schema.assessment
    of_trials = select(assessment.c.key, assessment.c.trial_key, assessment.c.state).where(
        assessment.c.trial_key.in_(trials), assessment.c.state != AssessmentState.SUPERSEDED.value
    )
    known = {key: (trial, state) for key, trial, state in connection.execute(of_trials)}
    values = select(table.c.assessment_key, table.c.value).where(
        table.c.run_key == run,
        table.c.assessment_key.in_(known),
        table.c.candidate_key == candidate,
    )
    scores: defaultdict[int, list[tuple[float | None, str]]] = defaultdict(list)
    for key, value in connection.execute(values):
        trial, state = known[key]
        scores[trial].append((value, state))
    return scores
