"""Store observations about how people review, separately from all data that counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, exists, func, insert, select

from assay.domain.errors import Refused, UnknownName
from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import AssessmentPurpose, AssessmentState
from assay.domain.observations import Observation, ObservationKind
from assay.domain.selection import Selection
from assay.store.database import schema
from assay.store.database.codec import plain
from assay.store.database.connections import Database
from assay.store.database.counters import ASSESSMENT
from assay.store.database.observation_codec import decoded, encoded
from assay.store.execution.writer_thread import Writer
from assay.store.queries.filters import scope_of


class StoreObservations:
    """Stores and reads observations; may be used from any thread and by several processes at
    once.
    """

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    def note(self, observations: Sequence[Observation], /) -> tuple[Observation, ...]:
        """Store observations; for a known idempotency key, return the observation stored first.

        Raises Refused if another opinion used an opinion's key.
        """
        if not observations:
            return ()
        # Every opened item stores that it was shown, which only the rules of its decision read.
        return self._writer.call(
            lambda connection: tuple(note_in(connection, given) for given in observations),
            counts=any(given.kind is not ObservationKind.SHOWN for given in observations),
        )

    def read(
        self,
        *,
        kinds: Collection[ObservationKind] = (),
        purpose: AssessmentPurpose | None = None,
        run: RunId | None = None,
        runs: Collection[RunId] | None = None,
        assessments: Collection[AssessmentKey] | None = None,
        reviewer: str | None = None,
        idempotency_keys: Collection[str] | None = None,
        newest: int | None = None,
    ) -> tuple[Observation, ...]:
        """Return matching observations, oldest first; `newest` limits them to the latest ones."""
        table = schema.observation
        where: list[ColumnElement[bool]] = []
        if kinds:
            where.append(table.c.kind.in_([kind.value for kind in kinds]))
        if purpose is not None:
            where.append(table.c.purpose == purpose.value)
        if assessments is not None:
            where.append(table.c.assessment_key.in_([int(key) for key in assessments]))
        if reviewer is not None:
            where.append(table.c.reviewer == plain(reviewer))
        if idempotency_keys is not None:
            where.append(table.c.idempotency_key.in_([plain(key) for key in idempotency_keys]))
        if run is not None:
            where.append(schema.run.c.id == plain(run))
        if runs is not None:
            where.append(schema.run.c.id.in_([plain(each) for each in runs]))
        with self._database.asking() as connection:
            return read_in(connection, *where, newest=newest)

    def opinions_that_wait(self, selection: Selection, /) -> tuple[Observation, ...]:
        """Return opinions and withdrawn opinions on a selection's pending assessments, oldest
        first.

        Counters show which runs have pending assessments, so opinions in finished runs are not
        read.
        """
        table, item, tally = schema.observation, schema.assessment, schema.run_tally
        pending = AssessmentState.PENDING.value
        with self._database.reading() as connection:
            scope = scope_of(connection, selection)
            runs = select(tally.c.run_key).where(
                tally.c.subject == ASSESSMENT,
                tally.c.state == pending,
                tally.c.n > 0,
                *scope.where_run(tally),
            )
            waits = exists().where(
                item.c.key == table.c.assessment_key,
                item.c.state == pending,
                *scope.where(item),
                *scope.where_grader(item),
            )
            keys = connection.execute(runs).scalars().all()
            if not keys:
                return ()
            opinions = table.c.kind == ObservationKind.OPINION.value
            return read_in(connection, table.c.run_key.in_(keys), opinions, waits)

    def newest_id(self) -> int:
        """Return the id of the newest observation of all runs; 0 without any."""
        with self._database.reading() as connection:
            return int(
                connection.execute(
                    select(func.coalesce(func.max(schema.observation.c.id), 0))
                ).scalar_one()
            )

    def decided_since(self, observation: int, /, *, reviewer: str) -> int:
        """Count this reviewer's decisions, in all runs, after the observation with this id."""
        table = schema.observation
        decisions = (
            table.c.reviewer == plain(reviewer),
            table.c.kind == ObservationKind.DECISION.value,
        )
        statement = (
            select(func.count()).select_from(table).where(*decisions, table.c.id > observation)
        )
        with self._database.asking() as connection:
            return int(connection.execute(statement).scalar_one())


def run_key_of(connection: Connection, run: RunId) -> int:
    """Return the key of the run with exactly this id; raises `UnknownName`."""
    key = connection.execute(
        select(schema.run.c.key).where(schema.run.c.id == plain(run))
    ).scalar_one_or_none()
    if key is None:
        raise UnknownName("run", run, remedy="`assay runs` lists them.")
    return int(key)


def note_in(connection: Connection, observation: Observation) -> Observation:
    """Store an observation in the caller's write transaction, like `StoreObservations.note`."""
    table = schema.observation
    known = read_in(connection, table.c.idempotency_key == plain(observation.idempotency_key))
    if known:
        if observation.kind is ObservationKind.OPINION and not _same_opinion(observation, known[0]):
            problem = f"was sent before with another opinion, by {known[0].reviewer}."
            raise Refused("key", problem, remedy="Use a different key for each decision.")
        return known[0]
    values = {
        "kind": observation.kind.value,
        "purpose": observation.purpose.value,
        "run_key": run_key_of(connection, observation.run_id),
        "assessment_key": int(observation.assessment),
        "reviewer": plain(observation.reviewer),
        "at": observation.at,
        "idempotency_key": plain(observation.idempotency_key),
        "body": encoded(observation.body),
    }
    key = connection.execute(insert(table).values(**values).returning(table.c.id)).scalar_one()
    return replace(observation, id=int(key))


def _same_opinion(sent: Observation, stored: Observation) -> bool:
    alike = (sent.run_id, sent.assessment, sent.kind, plain(sent.reviewer), encoded(sent.body))
    return alike == (
        stored.run_id,
        stored.assessment,
        stored.kind,
        stored.reviewer,
        encoded(stored.body),
    )


def read_in(
    connection: Connection, *where: ColumnElement[bool], newest: int | None = None
) -> tuple[Observation, ...]:
    """Return the observations that match all conditions, oldest first, within the caller's
    transaction.
    """
    table, run = schema.observation, schema.run
    statement = (
        select(table, run.c.id.label("run_id"))
        .join(run, run.c.key == table.c.run_key)
        .where(*where)
    )
    if newest is None:
        return tuple(
            _observation(row) for row in connection.execute(statement.order_by(table.c.id))
        )
    rows = connection.execute(statement.order_by(table.c.id.desc()).limit(newest))
    return tuple(_observation(row) for row in reversed(rows.all()))


def _observation(row: Row[Any]) -> Observation:
    return Observation(
        run_id=RunId(row.run_id),
        assessment=AssessmentKey(row.assessment_key),
        reviewer=row.reviewer,
        at=row.at,
        idempotency_key=row.idempotency_key,
        body=decoded(ObservationKind(row.kind), row.body),
        purpose=AssessmentPurpose(row.purpose),
        id=int(row.id),
    )
