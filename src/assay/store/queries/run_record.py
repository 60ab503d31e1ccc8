"""Write a run as lines for a restore: one `run`, then every `task`, then every `trial`, and finally
a `mark`.

A `trial` line contains all data of a trial: calls, responses, assessments with scores and grades,
decisions, observations of them, and votes. A later line for the same trial replaces an earlier one,
so changes can be appended. A reader ignores lines after the last mark and incomplete lines. Names
replace the store's keys. Only numbers that people see (`t5`, `a17`, events) are written, and an
empty store keeps them on restore.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Table, func, select

from assay.domain.identifiers import RunId, TrialKey
from assay.domain.lifecycle import AssessmentPurpose, RunState
from assay.domain.observations import ObservationKind
from assay.store.database import schema
from assay.store.database.connections import portions
from assay.store.queries.plans import run_key_of
from assay.store.queries.snapshots import Queries, streamed

FORMAT: Final = 1

_RECORDED: Final = (
    ObservationKind.SHOWN,
    ObservationKind.VERDICT,
    ObservationKind.DECISION,
    ObservationKind.SECOND,
    ObservationKind.OPINION,
    ObservationKind.SETTLED,
)
"""Kinds of observations on items; without them, a restored run would have achieved nothing of its
review protocol.
"""

_TRIALS_AT_ONCE: Final = 100
_KEYS_AT_ONCE: Final = 400

Line = dict[str, Any]
"""One line of a record: a JSON object whose keys depend on `kind`."""


def whole_record(connection: Connection, run: RunId, /) -> Iterator[Line]:
    """Yield every line of a run; raises `UnknownName`."""
    run_key = run_key_of(connection, run)
    yield head(connection, run_key)
    yield from _tasks(connection, run_key)
    yield from _trials(connection, run_key, None)
    yield mark(connection, run_key)


def changes(
    connection: Connection, run: RunId, /, *, since_event: int, trials: Collection[TrialKey] = ()
) -> Iterator[Line]:
    """Yield the lines to append to a record: `trials` and trials with later decisions, then a mark.

    Yields nothing if nothing has changed since the event `since_event`.
    """
    run_key = run_key_of(connection, run)
    table, assessment = schema.review_event, schema.assessment
    decided = connection.execute(
        select(assessment.c.trial_key)
        .join(table, table.c.assessment_key == assessment.c.key)
        .where(table.c.run_key == run_key, table.c.id > since_event)
        .distinct()
    ).scalars()
    keys = sorted({*decided, *map(int, trials)})
    if not keys:
        return
    yield from _trials(connection, run_key, keys)
    yield mark(connection, run_key)


def head(connection: Connection, run_key: int) -> Line:
    """Return the first line: the run without tasks and trials."""
    run, suite, body = schema.run, schema.suite, schema.body
    row = connection.execute(select(run).where(run.c.key == run_key)).one()
    copy = connection.execute(
        select(body.c.content)
        .join(schema.suite_copy, schema.suite_copy.c.body_key == body.c.key)
        .where(schema.suite_copy.c.digest == row.suite_digest)
    ).scalar_one()
    plan = connection.execute(select(body.c.content).where(body.c.key == row.plan_key)).scalar_one()
    candidate, own = schema.candidate, schema.run_candidate
    origin = None
    if row.regrade_of is not None:
        origin = connection.execute(
            select(run.c.id).where(run.c.key == row.regrade_of)
        ).scalar_one_or_none()
    return {
        "kind": "run",
        "format": FORMAT,
        "store": schema.VERSION,
        "run": _run(row),
        "suite": connection.execute(
            select(suite.c.name).where(suite.c.key == row.suite_key)
        ).scalar_one(),
        "regrade_of": origin,
        "suite_text": shown(copy),
        "plan": shown(plan),
        "candidates": [
            {"candidate": line.candidate, "name": line.name, "position": line.position}
            for line in connection.execute(
                select(candidate.c.name.label("candidate"), own.c.name, own.c.position)
                .join(candidate, candidate.c.key == own.c.candidate_key)
                .where(own.c.run_key == run_key)
                .order_by(own.c.position)
            )
        ],
        "imported": [
            {
                name: value
                for name, value in line._mapping.items()
                if name not in ("key", "suite_key", "run_key", "owner")
            }
            for line in connection.execute(
                select(schema.imported).where(schema.imported.c.run_key == run_key)
            )
        ],
        "graders": _names_of(connection, schema.grader, schema.run_grader, run_key),
        "references": _names_of(
            connection,
            schema.grader,
            schema.run_grader,
            run_key,
            schema.run_grader.c.reference.is_(True),
        ),
        "criteria": _names_of(connection, schema.criterion, schema.run_criterion, run_key),
    }


def mark(connection: Connection, run_key: int) -> Line:
    """Return the line that completes a record: the run's state and the last recorded decision."""
    run, table = schema.run, schema.review_event
    row = connection.execute(select(run).where(run.c.key == run_key)).one()
    last = connection.execute(
        select(func.max(table.c.id)).where(table.c.run_key == run_key)
    ).scalar_one()
    return {"kind": "mark", "last_event": last or 0, "run": _run(row)}


def shown(content: bytes) -> str | dict[str, str]:
    """Convert bytes to a JSON value: text for UTF-8, otherwise base64."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def hidden(value: str | dict[str, str]) -> bytes:
    """Convert the output of `shown` back to bytes."""
    return value.encode("utf-8") if isinstance(value, str) else base64.b64decode(value["base64"])


def _run(row: Row[Any]) -> Line:
    """Return the run's columns.

    A running run is recorded as interrupted, because a reader cannot know if it still runs.
    """
    without = {"suite_key", "plan_key", "regrade_of"}
    line = {name: value for name, value in row._mapping.items() if name not in without}
    if line["state"] == RunState.RUNNING.value:
        line["state"] = RunState.INTERRUPTED.value
    return line


def _names_of(
    connection: Connection, named: Table, own: Table, run_key: int, *only: ColumnElement[bool]
) -> list[str]:
    own_key = own.c[f"{named.name}_key"]
    rows = connection.execute(
        select(named.c.name)
        .join(own, own_key == named.c.key)
        .where(own.c.run_key == run_key, *only)
        .order_by(named.c.key)
    )
    return list(rows.scalars())


def _tasks(connection: Connection, run_key: int) -> Iterator[Line]:
    planned, task, body, tag = schema.run_task, schema.task, schema.body, schema.run_tag
    last = -1
    while True:
        rows = connection.execute(
            select(planned, task.c.digest, task.c.language, task.c.family, body.c.content)
            .join(task, task.c.key == planned.c.task_key)
            .join(body, body.c.key == planned.c.body_key)
            .where(planned.c.run_key == run_key, planned.c.position > last)
            .order_by(planned.c.position)
            .limit(_TRIALS_AT_ONCE)
        ).all()
        tags: defaultdict[int, list[str]] = defaultdict(list)
        for row in connection.execute(
            select(tag)
            .where(tag.c.run_key == run_key, tag.c.task_key.in_([row.task_key for row in rows]))
            .order_by(tag.c.tag)
        ):
            tags[row.task_key].append(row.tag)
        for row in rows:
            yield {
                "kind": "task",
                "key": row.task_key,
                "position": row.position,
                "task_id": row.task_id,
                "digest": row.digest,
                "language": row.language,
                "family": row.family,
                "thing": row.thing,
                "weight": row.weight,
                "trials": row.trials,
                "tags": tags[row.task_key],
                "body": shown(row.content),
            }
        if len(rows) < _TRIALS_AT_ONCE:
            return
        last = rows[-1].position


def _trials(connection: Connection, run_key: int, keys: Sequence[int] | None) -> Iterator[Line]:
    """Yield the lines of a run's trials in plan order; `keys` limits them to some trials."""
    table = schema.trial
    names = _NamesByKey(connection)
    if keys is not None:
        for some in portions(keys, _TRIALS_AT_ONCE):
            rows = connection.execute(
                select(table).where(table.c.key.in_(some)).order_by(table.c.key)
            ).all()
            yield from _images(connection, rows, names)
        return
    position, k = -1, 0
    while True:
        rows = connection.execute(
            select(table)
            .where(
                table.c.run_key == run_key,
                (table.c.position > position) | ((table.c.position == position) & (table.c.k > k)),
            )
            .order_by(table.c.position, table.c.k)
            .limit(_TRIALS_AT_ONCE)
        ).all()
        yield from _images(connection, rows, names)
        if len(rows) < _TRIALS_AT_ONCE:
            return
        position, k = rows[-1].position, rows[-1].k


class _NamesByKey:
    def __init__(self, connection: Connection) -> None:
        self._names = {
            column: {
                row.key: row.name for row in connection.execute(select(table.c.key, table.c.name))
            }
            for column, table in (
                ("candidate_key", schema.candidate),
                ("grader_key", schema.grader),
                ("criterion_key", schema.criterion),
            )
        }

    def line(self, row: Row[Any], *, without: Collection[str]) -> Line:
        line: Line = {}
        for column, value in row._mapping.items():
            if column in without:
                continue
            if column in self._names:
                line[column.removesuffix("_key")] = (
                    None if value is None else self._names[column][value]
                )
            else:
                line[column] = value
        return line


def _images(
    connection: Connection, trials: Sequence[Row[Any]], names: _NamesByKey
) -> Iterator[Line]:
    keys = [row.key for row in trials]
    body = schema.body
    parts: dict[str, defaultdict[int, list[Line]]] = {}
    for name, table in (
        ("calls", schema.call),
        ("responses", schema.response),
        ("assessments", schema.assessment),
    ):
        lines: defaultdict[int, list[Line]] = defaultdict(list)
        for row in connection.execute(
            select(table, body.c.content)
            .join(body, body.c.key == table.c.body_key, isouter=True)
            .where(table.c.trial_key.in_(keys))
            .order_by(table.c.key)
        ):
            line = names.line(
                row, without={"run_key", "trial_key", "task_key", "body_key", "content"}
            )
            line["body"] = None if row.content is None else shown(row.content)
            lines[row.trial_key].append(line)
        parts[name] = lines
    owners = {line["key"]: trial for trial, lines in parts["assessments"].items() for line in lines}
    for name, table in (
        ("scores", schema.score),
        ("grades", schema.grade),
        ("events", schema.review_event),
    ):
        parts[name] = _of_assessments(connection, table, owners, names)
    parts["observations"] = _observations(connection, owners)
    parts["votes"] = _votes(connection, keys)
    for row in trials:
        yield {
            "kind": "trial",
            "key": row.key,
            "position": row.position,
            "k": row.k,
            # A trial that is being judged again is recorded in its earlier state, because the claim
            # ends with its process.
            "state": row.rest or row.state,
            "standing": row.standing,
            "tries": row.tries,
            "fail_kind": row.fail_kind,
            "fail_fault": row.fail_fault,
            "fail_detail": row.fail_detail,
            "fail_tries": row.fail_tries,
            **{name: lines[row.key] for name, lines in parts.items()},
        }


def _votes(connection: Connection, trials: Sequence[int]) -> defaultdict[int, list[Line]]:
    """Return arena votes, including withdrawn ones, by trial, oldest first."""
    table = schema.vote
    votes: defaultdict[int, list[Line]] = defaultdict(list)
    for row in connection.execute(
        select(table).where(table.c.trial_key.in_(trials)).order_by(table.c.id)
    ):
        line = {
            name: value
            for name, value in row._mapping.items()
            if name not in ("run_key", "trial_key")
        }
        votes[row.trial_key].append(line)
    return votes


def _observations(connection: Connection, owners: dict[int, int]) -> defaultdict[int, list[Line]]:
    """Return the observations that tell how people decided, by trial, oldest first; those of
    control items stay secret.
    """
    table = schema.observation
    by_trial: defaultdict[int, list[Line]] = defaultdict(list)
    for some in portions(sorted(owners), _KEYS_AT_ONCE):
        rows = connection.execute(
            select(table)
            .where(
                table.c.assessment_key.in_(some),
                table.c.kind.in_([kind.value for kind in _RECORDED]),
                table.c.purpose == AssessmentPurpose.WORK.value,
            )
            .order_by(table.c.id)
        )
        for row in rows:
            line = {
                name: value
                for name, value in row._mapping.items()
                if name not in ("purpose", "run_key")
            }
            by_trial[owners[row.assessment_key]].append({**line, "body": shown(row.body)})
    return by_trial


def _of_assessments(
    connection: Connection, table: Table, owners: dict[int, int], names: _NamesByKey
) -> defaultdict[int, list[Line]]:
    by_trial: defaultdict[int, list[Line]] = defaultdict(list)
    wanted = sorted(owners)
    runs: list[int] = []
    if wanted:
        assessment = schema.assessment
        # All assessments are of one run. Its key leads to the rows of `score` and `grade`, which
        # are clustered by run.
        runs = list(
            connection.execute(
                select(assessment.c.run_key).where(assessment.c.key.in_(wanted[:1]))
            ).scalars()
        )
    for some in portions(wanted, _KEYS_AT_ONCE):
        rows = connection.execute(
            select(table)
            .where(table.c.run_key.in_(runs), table.c.assessment_key.in_(some))
            .order_by(*table.primary_key)
        )
        for row in rows:
            line = names.line(row, without={"run_key", "task_key", "trial_key"})
            by_trial[owners[row.assessment_key]].append(line)
    return by_trial


class RecordQueries(Queries):
    """Queries that return runs as the JSON lines from which a store can be restored."""

    whole = streamed(whole_record)
    changes = streamed(changes)
