"""One portion of an import: a batch of records stored together, with the keys and sums of its
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from sqlalchemy import Connection, Table, insert, select, update

from assay.domain.import_records import (
    FoundAssessment,
    FoundResponse,
    FoundScores,
    FoundTask,
    GradedBy,
    Skipped,
)
from assay.store.database import schema
from assay.store.database.codec import plain
from assay.store.database.connections import Database, take_keys
from assay.store.database.counters import CounterChanges
from assay.store.database.name_keys import NameKeys

Row = tuple[object, ...]
TableRows = list[tuple[Table, list[Row]]]
"""Rows by table, in the order in which foreign keys allow them to be inserted."""


@dataclass(slots=True)
class OpenRun:
    """The run that is being imported. Its memory use does not depend on the number of rows.

    `shared`: True if an answer whose task the file lacks may belong to a task that was stored
    before. `weights`: those of the rubric's criteria. `declared`: True if the file lists tasks, so
    that a task without an answer counts as missing. `seen_missing`: last position searched for a
    missing answer. `looks_up`: True if the store has other runs' responses to compare with.
    `next_task`, `next_response`: the next keys, unless another process writes at the same time.
    `overlapping`: keys of other runs that contain some of the same responses.
    """

    run_key: int
    suite_key: int
    shared: bool
    weights: dict[str, float]
    now: str
    tasks: int = 0
    trials: int = 0
    responses: int = 0
    assessments: int = 0
    most_k: int = 1
    declared: bool = False
    seen_missing: int = -1
    looks_up: bool = False
    next_task: int = 0
    next_response: int = 0
    overlapping: set[int] = field(default_factory=set)
    judges: set[str] = field(default_factory=set)
    candidates: dict[str, int] = field(default_factory=dict)
    graders: set[int] = field(default_factory=set)
    criteria: set[int] = field(default_factory=set)

    def note_keys(self, tasks: range, responses: range) -> None:
        """Start looking up tasks and responses if a gap in the keys shows that another process
        stored such rows.
        """
        self.shared = self.shared or tasks.start != self.next_task
        self.looks_up = self.looks_up or responses.start != self.next_response
        self.next_task, self.next_response = tasks.stop, responses.stop


@dataclass(slots=True)
class CallSums:
    """Sums over a portion's calls, which are added to the run's row."""

    calls: int = 0
    unpriced: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    def add(self, response: FoundResponse | FoundAssessment) -> None:
        self.calls += 1
        self.input_tokens += response.input_tokens or 0
        self.output_tokens += response.output_tokens or 0
        if response.cost_usd is None:
            self.unpriced += 1
        else:
            self.cost_usd += response.cost_usd


class Portion:
    """The connection, keys and sums shared by the functions that write one portion.

    Only the writing thread uses it.
    """

    def __init__(
        self, database: Database, connection: Connection, names: NameKeys, run: OpenRun
    ) -> None:
        self.database = database
        self.connection = connection
        self.run = run
        self.counters = CounterChanges()
        self.sums = CallSums()
        self.bodies: list[Row] = []
        self.skipped: list[Skipped] = []
        self.identified: list[tuple[int, int, int, int]] = []
        self._names = names

    def take_keys(
        self,
        tasks: Sequence[FoundTask],
        responses: Sequence[FoundResponse],
        assessments: Sequence[FoundAssessment],
        scores: Sequence[FoundScores],
    ) -> None:
        bare = sum(len(batch.rows) for batch in scores)
        size = len(tasks) + len(responses) + len(assessments) + bare
        graded = sum(
            1 if assessment.joint else len(assessment.grades) for assessment in assessments
        )
        keys = take_keys(
            self.connection,
            task=size,
            trial=len(responses) + len(assessments) + bare,
            call=len(responses) + len(assessments),
            response=len(responses),
            assessment=graded + bare,
            body=len(tasks) + 2 * len(responses) + len(assessments) + graded + bare,
        )
        self.run.note_keys(keys["task"], keys["response"])
        self.task_keys, self.trial_keys, self.body_keys = (
            iter(keys["task"]),
            iter(keys["trial"]),
            iter(keys["body"]),
        )
        self.call_keys, self.assessment_keys = iter(keys["call"]), iter(keys["assessment"])
        self.response_keys: Iterator[int] = iter(keys["response"])
        self.response_limit = keys["response"].stop

    def insert(self, table: Table, rows: Sequence[Row]) -> None:
        self.database.insert(self.connection, table, rows)

    def insert_many(self, table: Table, rows: Sequence[Row]) -> None:
        self.database.insert_many(self.connection, table, rows)

    def rows_among(self, statement: str, first: Row, values: Sequence[object]) -> list[Any]:
        return rows_among(self.database, self.connection, statement, first, values)

    def insert_bodies(self) -> None:
        self.insert(schema.body, self.bodies)
        self.bodies.clear()

    def skip(self, where: str, why: str) -> None:
        self.skipped.append(Skipped(where=where, why=why))

    def candidate(self, name: str) -> int:
        """Return a candidate's key, and add the candidate to the run."""
        known = self.run.candidates.get(name)
        if known is not None:
            return known
        table = schema.run_candidate
        key = self._names.candidate(self.connection, name)
        of_run = table.c.run_key == self.run.run_key
        positions = (
            self.connection.execute(select(table.c.candidate_key).where(of_run)).scalars().all()
        )
        if key not in positions:
            row = {
                "run_key": self.run.run_key,
                "candidate_key": key,
                "position": len(positions),
                "name": plain(name),
            }
            self.connection.execute(insert(table).values(**row))
        self.run.candidates[name] = key
        return key

    def grader(self, name: str, by: GradedBy) -> int:
        """Return a grader's key, and add the grader to the run."""
        key = self._names.grader(self.connection, name)
        if by is GradedBy.MODEL:
            self.run.judges.add(name)
        self._add_to_run(schema.run_grader, key, self.run.graders, reference=by is GradedBy.PERSON)
        return key

    def criterion(self, name: str) -> int:
        """Return a criterion's key, and add the criterion to the run."""
        key = self._names.criterion(self.connection, name)
        self._add_to_run(schema.run_criterion, key, self.run.criteria)
        return key

    def _add_to_run(self, table: Table, key: int, known: set[int], **more: bool) -> None:
        if key in known:
            return
        run_column, key_column, *_ = table.c
        pair = (run_column == self.run.run_key, key_column == key)
        if self.connection.execute(select(key_column).where(*pair)).first() is None:
            self.connection.execute(
                insert(table), {run_column.name: self.run.run_key, key_column.name: key, **more}
            )
        known.add(key)

    def write_identities(self) -> None:
        """Store the identities of responses, and remember other runs that already contain some of
        them.
        """
        rows, self.identified = self.identified, []
        if not rows:
            return
        if self.run.looks_up:
            text = "SELECT DISTINCT run_key FROM imported_response WHERE run_key <> {} AND identity"
            found_in = self.rows_among(text, (self.run.run_key,), [row[0] for row in rows])
            self.run.overlapping.update(run_key for (run_key,) in found_in)
        rows.sort()  # sorted, so that the index is walked once instead of at random
        self.insert_many(schema.imported_response, rows)

    def write_sums(self) -> None:
        """Store the counters and the sums of calls. This is the last step of a portion."""
        self.write_identities()
        self.counters.write(self.connection)
        sums, table = self.sums, schema.run
        if sums.calls:
            self.connection.execute(
                update(table)
                .where(table.c.key == self.run.run_key)
                .values(
                    calls=table.c.calls + sums.calls,
                    unpriced_calls=table.c.unpriced_calls + sums.unpriced,
                    input_tokens=table.c.input_tokens + sums.input_tokens,
                    output_tokens=table.c.output_tokens + sums.output_tokens,
                    cost_usd=table.c.cost_usd + sums.cost_usd,
                )
            )


def rows_among(
    database: Database, connection: Connection, statement: str, first: Row, values: Sequence[object]
) -> list[Any]:
    """Return the rows whose last named column equals one of the values.

    `{}` in the statement marks a parameter. A single parameter contains all values, so their number
    is unlimited and all portions share one prepared statement.
    """
    if not values:
        return []
    if database.is_sqlite:
        text = statement.replace("{}", "?") + " IN (SELECT value FROM json_each(?))"
        parameter: object = orjson.dumps(values).decode()
    else:
        # Not `= ANY`, which compares each row with the whole list as long as a table has no
        # statistics.
        kind = "text" if isinstance(values[0], str) else "bigint"
        text, parameter = (
            statement.replace("{}", "%s") + f" IN (SELECT unnest(%s::{kind}[]))",
            list(values),
        )
    return list(connection.exec_driver_sql(text, (*first, parameter)))
