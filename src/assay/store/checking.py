"""Check a whole store: database integrity, references, hash chains, counters, and contents against
their digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Final

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Double,
    Integer,
    LargeBinary,
    String,
    Table,
    and_,
    func,
    or_,
    select,
    text,
)
from sqlalchemy.exc import OperationalError

from assay.domain.errors import StoreError
from assay.domain.lifecycle import AssessmentState, RunState, Standing, TrialState
from assay.store.database import schema
from assay.store.database.codec import assessment_record, bytes_text, plan_record, task_record
from assay.store.database.connections import Database
from assay.store.database.counters import ASSESSMENT, STANDING, TRIAL
from assay.store.event_chain import first_broken
from assay.store.review.votes import first_broken_vote

SHOWN: Final = 5
"""Maximum problems listed per check, because further problems usually have the same cause."""

_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPart:
    """The result of one part of the check: its name, the number of checked entries, and the first
    problems.
    """

    name: str
    checked: int
    problems: tuple[str, ...]


class StoreCheck:
    """Checks a whole store. It reads every row, so a store of gigabytes takes minutes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def first_damage(self, *, within_s: float) -> str:
        """Return the first problem in the store; empty if the check finds none within the time
        limit.
        """
        deadline = monotonic() + within_s
        for part in self.parts():
            if part.problems:
                return f"{part.name}: {part.problems[0]}"
            if monotonic() > deadline:
                break
        return ""

    def parts(self) -> Iterator[CheckedPart]:
        """Yield the result of each part as soon as it is checked; an unreadable part yields a
        problem.
        """
        for name, check in _PARTS.items():
            try:
                with self._database.reading() as connection:
                    checked, problems = check(connection)
            except StoreError as error:
                checked, problems = 0, [error.problem]
            except (ValueError, TypeError, KeyError, OverflowError) as error:
                checked, problems = 0, [f"contains a value that cannot be read: {error}"]
            shown = problems[:SHOWN]
            if len(problems) > SHOWN:
                shown.append(f"and {len(problems) - SHOWN:,} more")
            yield CheckedPart(name=name, checked=checked, problems=tuple(shown))


def _integrity(connection: Connection) -> tuple[int, list[str]]:
    """Check the pages, indexes and constraints of an SQLite file.

    A PostgreSQL server checks its own files.
    """
    if connection.dialect.name != "sqlite":
        return 0, []
    answers = connection.execute(text("PRAGMA integrity_check")).scalars().all()
    pages = int(connection.execute(text("PRAGMA page_count")).scalar_one())
    return pages, [str(answer) for answer in answers if answer != "ok"]


def _values(connection: Connection) -> tuple[int, list[str]]:
    """Check types, times and states in every column, because SQLite accepts any value."""
    checked, problems = 0, []
    for table in schema.metadata.sorted_tables:
        for column in table.columns:
            wrong = _wrong_values(connection, column)
            if wrong is None:
                continue
            checked += 1
            n = int(
                connection.execute(
                    select(func.count()).select_from(table).where(wrong)
                ).scalar_one()
            )
            if n:
                problems.append(
                    f"{n:,} rows of {table.name} have an invalid value in {column.name}"
                )
        texts = [column for column in table.columns if isinstance(column.type, String)]
        try:
            for _ in (
                connection.execute(select(*texts).execution_options(yield_per=_AT_ONCE))
                if texts
                else ()
            ):
                pass
        except OperationalError as error:
            problems.append(f"{table.name}: {error.orig}")
    return checked, problems


def _wrong_values(connection: Connection, column: Column[Any]) -> ColumnElement[bool] | None:
    """Return an SQL condition that matches a column's invalid values; None if the database itself
    rejects such values.
    """
    conditions: list[ColumnElement[bool]] = []
    if connection.dialect.name == "sqlite":
        kinds = next(names for kind, names in _KINDS if isinstance(column.type, kind))
        conditions.append(func.typeof(column).not_in(kinds))
        if isinstance(column.type, String) and column.type.length == _TIME_LENGTH:
            no_time = column.op("NOT GLOB")(
                "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:*"
            )
            # Many imported calls have no recorded time.
            conditions.append(
                and_(no_time, column != "") if column.table.name == "call" else no_time
            )
        if (column.table.name, column.name) in _JSON:
            conditions.append(func.json_valid(column) == 0)
    states = _STATES.get((column.table.name, column.name))
    if states is not None:
        conditions.append(column.not_in([state.value for state in states]))
    return and_(column.is_not(None), or_(*conditions)) if conditions else None


_KINDS: Final = (
    (LargeBinary, ("blob",)),
    (Double, ("real", "integer")),
    (Boolean, ("integer",)),
    (Integer, ("integer",)),
    (String, ("text",)),
)
"""SQLite's storage classes for each column type; the first matching type decides."""

_JSON: Final = frozenset(
    {
        ("run", "judges"),
        ("run", "settings"),
        ("candidate_event", "detail"),
        ("review_event", "corrections"),
        ("control_event", "corrections"),
    }
)
"""Text columns that contain JSON."""

_TIME_LENGTH: Final = 30
"""Declared length of columns that contain a time; no other column has this length."""

_STATES: Final[dict[tuple[str, str], type[RunState | TrialState | AssessmentState | Standing]]] = {
    ("run", "state"): RunState,
    ("trial", "state"): TrialState,
    ("trial", "rest"): TrialState,
    ("trial", "standing"): Standing,
    ("assessment", "state"): AssessmentState,
    ("assessment", "state_before"): AssessmentState,
    ("score", "state"): AssessmentState,
}


def _references(connection: Connection) -> tuple[int, list[str]]:
    """Check every foreign key. Imports write keys while the database's own check is off."""
    checked, problems = 0, []
    for table in schema.metadata.sorted_tables:
        for key in table.foreign_keys:
            column, target = key.parent, key.column.table.alias("target")
            of_target = target.c[key.column.name]
            lost = (
                select(func.count())
                .select_from(table.outerjoin(target, of_target == column))
                .where(column.is_not(None), of_target.is_(None))
            )
            checked += 1
            if n := int(connection.execute(lost).scalar_one()):
                where = f"{table.name}.{column.name}"
                problems.append(f"{n:,} {where} refer to missing rows of {key.column.table.name}")
    return checked, problems


def _chain(
    table: Table, name: str, first: Callable[[Connection], int | None], connection: Connection
) -> tuple[int, list[str]]:
    """Check the hash chain of the review events or of the arena's votes."""
    n = int(connection.execute(select(func.count()).select_from(table)).scalar_one())
    broken = first(connection)
    return n, [] if broken is None else [f"{name} {broken} was changed after it was stored"]


def _counters(connection: Connection) -> tuple[int, list[str]]:
    """Compare the counters of runs with their rows, and the states of scores with their
    assessments.
    """
    trial, assessment, score = schema.trial, schema.assessment, schema.score
    counted: dict[tuple[int, str, str], int] = {}
    for subject, table, column in (
        (TRIAL, trial, trial.c.state),
        (STANDING, trial, trial.c.standing),
        (ASSESSMENT, assessment, assessment.c.state),
    ):
        rows = connection.execute(
            select(table.c.run_key, column, func.count()).group_by(table.c.run_key, column)
        )
        counted.update({(run, subject, state): n for run, state, n in rows})
    kept = {
        (row.run_key, row.subject, row.state): row.n
        for row in connection.execute(select(schema.run_tally))
    }
    names = {
        row.key: row.id for row in connection.execute(select(schema.run.c.key, schema.run.c.id))
    }
    problems = [
        f"run {names.get(run, run)}: its counter for {subject} {state} is {kept.get((run, subject, state), 0):,}, but it has "
        f"{counted.get((run, subject, state), 0):,}"
        for run, subject, state in sorted(kept.keys() | counted.keys())
        if kept.get((run, subject, state), 0) != counted.get((run, subject, state), 0)
    ]
    differing = select(assessment.c.key).join(score, assessment.c.key == score.c.assessment_key)
    differing = differing.where(
        or_(score.c.state != assessment.c.state, score.c.run_key != assessment.c.run_key)
    ).distinct()
    problems += [
        (f"a{key}: its scores have a different state or run than the assessment")
        for key in connection.execute(differing).scalars()
    ]
    return len(counted), problems


def _contents(connection: Connection) -> tuple[int, list[str]]:
    """Compare tasks with their digests, and decode every plan, task, assessment and response."""
    checked, problems = 0, []
    task, run, copy, body = schema.task, schema.run, schema.suite_copy, schema.body
    for table, column, read in (
        (task, task.c.body_key, task_record),
        (schema.run_task, schema.run_task.c.body_key, task_record),
        (schema.assessment, schema.assessment.c.body_key, assessment_record),
        (schema.response, schema.response.c.body_key, bytes_text),
        (copy, copy.c.body_key, bytes_text),
        (run, run.c.plan_key, lambda content: plan_record(content, suite_text="")),
    ):
        n, unreadable = _unreadable(connection, table, column.name, read)
        checked += n
        problems += unreadable
    statement = select(task.c.task_id, task.c.body_digest, body.c.content).join(
        body, body.c.key == task.c.body_key
    )
    for task_id, digest, content in connection.execute(
        statement.execution_options(yield_per=_AT_ONCE)
    ):
        if hashlib.sha256(content).hexdigest()[:32] != digest:
            problems.append(f"task {task_id}: its text does not match its stored digest")
    return checked, problems


def _unreadable(
    connection: Connection, table: Table, column: str, read: Callable[[bytes], object]
) -> tuple[int, list[str]]:
    """Decode the bodies of a table's rows; return their number and one problem per unreadable
    body.
    """
    body, problems, n = schema.body, [], 0
    names = list(table.primary_key)
    statement = select(*names, body.c.content).join(body, body.c.key == table.c[column])
    for *keys, content in connection.execute(statement.execution_options(yield_per=_AT_ONCE)):
        n += 1
        try:
            read(content)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            place = " ".join(map(str, keys))
            problems.append(
                f"{table.name} {place} cannot be read: {type(error).__name__}: {str(error)[:100]}"
            )
    return n, problems


_PARTS: Final[dict[str, Callable[[Connection], tuple[int, list[str]]]]] = {
    "database": _integrity,
    "values": _values,
    "references": _references,
    "review events": partial(_chain, schema.review_event, "review event", first_broken),
    "votes": partial(_chain, schema.vote, "vote", first_broken_vote),
    "counters": _counters,
    "contents": _contents,
}
