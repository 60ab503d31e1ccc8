"""Take runs out of use and restore them.

Their rows stay, and an event records who did it, when and why.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, func, insert, or_, select, update

from assay.domain.errors import Refused, UnknownName
from assay.domain.identifiers import RunId, folded
from assay.domain.lifecycle import SET_ASIDE, RunState
from assay.domain.run_removal import RunEvent
from assay.ports import Clock
from assay.store.claims.claims import Claims
from assay.store.database import schema
from assay.store.database.codec import plain
from assay.store.database.connections import Database
from assay.store.execution.job_requests import waits_for_jobs
from assay.store.execution.writer_thread import Writer
from assay.store.queries.filters import HIDDEN_STATES, find_run
from assay.store.queries.run_summaries import left_alone


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNote:
    """Author, reason and time of a run's removal or restoration; an import has no author."""

    reviewer: str
    reason: str
    at: str


_VERBS: Final = {"deleted": "delete", "replaced": "replace", "archived": "archive"}
"""Event verb for each state in `SET_ASIDE`; an event for any other state restores the run."""


class RunRemoval:
    """Deletes or archives runs, and restores them."""

    def __init__(self, database: Database, writer: Writer, claims: Claims, clock: Clock) -> None:
        self._database = database
        self._writer = writer
        self._claims = claims
        self._clock = clock

    def take_out(
        self, runs: Sequence[RunId], /, *, reviewer: str, reason: str, archived: bool = False
    ) -> tuple[RunEvent, ...]:
        """Take runs out of use, all or none; with `archived`, people can still open them by id.

        Raises UnknownName if a run does not exist. Raises Refused if a process executes a run, if a
        run waits for batch jobs or is already archived, or if a remaining run grades its answers.
        """
        after = RunState.ARCHIVED if archived else RunState.DELETED
        note = RunNote(reviewer=reviewer, reason=reason, at=self._clock.now())

        def take_out(connection: Connection) -> tuple[RunEvent, ...]:
            table = schema.run
            events: list[int] = []
            keys = [_key_of(connection, find_run(connection, run)) for run in dict.fromkeys(runs)]
            for run, key in zip(dict.fromkeys(runs), keys, strict=True):
                state = connection.execute(
                    select(table.c.state).where(table.c.key == key)
                ).scalar_one()
                if state == RunState.RUNNING.value and not left_alone(
                    connection, self._claims, [key]
                ):
                    raise Refused(
                        run, "is being executed.", remedy="Cancel it first, or wait until it ends."
                    )
                if waits_for_jobs(connection, key):
                    remedy = f"Collect its answers with `assay batch collect {run}`, or discard them with `assay cancel {run}`."
                    raise Refused(run, "waits for batch jobs at a provider.", remedy=remedy)
                if state == RunState.ARCHIVED.value:
                    raise Refused(
                        run, "is archived.", remedy=f"Restore it first: assay archive {run} --undo"
                    )
                refuse_regraded(connection, run, keys)
                events.append(set_aside(connection, key, after, note))
            return _events(connection, events)

        return self._writer.call(take_out)

    def restore(
        self, run: str, /, *, reviewer: str, reason: str, archived: bool = False
    ) -> RunEvent:
        """Restore a deleted or replaced run unchanged; with `archived`, restore an archived run.

        Raises UnknownName if no run out of use has this id, and Refused if a run in use contains
        the same results.
        """

        def restore(connection: Connection) -> RunEvent:
            table, event = schema.run, schema.run_event
            wanted = {RunState.ARCHIVED} if archived else SET_ASIDE - {RunState.ARCHIVED}
            aside = [state.value for state in wanted]
            row = connection.execute(
                select(table.c.key, table.c.id, table.c.state).where(
                    table.c.id == plain(run), table.c.state.in_(aside)
                )
            ).first()
            if row is None:
                known = connection.execute(
                    select(table.c.id).where(table.c.state.in_(aside))
                ).scalars()
                verb = "archive" if archived else "delete"
                raise UnknownName(
                    f"{verb}d run", run, known, remedy=f"`assay {verb} --list` lists these runs."
                )
            double = _same_results(connection, row.key)
            if double is not None:
                problem = (
                    f"contains results that run {double} also contains, so they would count twice."
                )
                raise Refused(run, problem, remedy=f"Delete that run first: assay delete {double}")
            before = connection.execute(
                select(event.c.before)
                .where(event.c.run_key == row.key)
                .order_by(event.c.id.desc())
                .limit(1)
            ).scalar_one()
            connection.execute(update(table).where(table.c.key == row.key).values(state=before))
            note = RunNote(reviewer=reviewer, reason=reason, at=self._clock.now())
            number = _note(connection, row.key, row.state, before, note, None)
            return _events(connection, [number])[0]

        return self._writer.call(restore)

    def is_aside(self, run: str, /) -> bool:
        """True if a run with exactly this id was deleted, archived or replaced."""
        table = schema.run
        aside = (table.c.id == plain(run), table.c.state.in_([state.value for state in SET_ASIDE]))
        with self._database.reading() as connection:
            return connection.execute(select(table.c.key).where(*aside)).first() is not None

    def of_batch(self, batch_id: str, /) -> tuple[RunEvent, ...]:
        """Return the event that keeps each deleted, archived or replaced run of a batch out of use,
        oldest first.

        Upper and lower case are the same, as in `Selection`. Empty for an unknown batch.
        """
        run = schema.run
        aside = run.c.state.in_([state.value for state in SET_ASIDE])
        with self._database.reading() as connection:
            names = connection.execute(
                select(run.c.batch_id).where(run.c.batch_id.is_not(None), aside).distinct()
            ).scalars()
            same = [name for name in names if folded(name) == folded(batch_id)]
            ids = (
                set(
                    connection.execute(
                        select(run.c.id).where(run.c.batch_id.in_(same), aside)
                    ).scalars()
                )
                if same
                else set()
            )
            return tuple(
                event for event in _events(connection, None) if event.stands and event.run_id in ids
            )

    def events(self) -> tuple[RunEvent, ...]:
        """Return all events that took runs out of use or restored them, oldest first."""
        with self._database.reading() as connection:
            return _events(connection, None)


def set_aside(
    connection: Connection,
    run_key: int,
    state: RunState,
    note: RunNote,
    *,
    other_key: int | None = None,
) -> int:
    """Take a run out of use in an open transaction, and return the event's number."""
    table = schema.run
    before = connection.execute(select(table.c.state).where(table.c.key == run_key)).scalar_one()
    connection.execute(update(table).where(table.c.key == run_key).values(state=state.value))
    return _note(connection, run_key, before, state.value, note, other_key)


def refuse_regraded(connection: Connection, run: str, leaving: Collection[int]) -> None:
    """Raise `Refused` if a run that stays in use grades answers of a run that is being taken
    out.
    """
    table = schema.run
    staying = connection.execute(
        select(table.c.id)
        .where(
            table.c.regrade_of.in_(leaving),
            table.c.key.not_in(leaving),
            table.c.state.not_in(HIDDEN_STATES),
        )
        .order_by(table.c.key)
        .limit(1)
    ).scalar_one_or_none()
    if staying is not None:
        raise Refused(
            run,
            (f"contains the answers that run {staying} grades."),
            remedy=f"Include {staying} too, or delete it first.",
        )


def _key_of(connection: Connection, run: RunId) -> int:
    return int(
        connection.execute(select(schema.run.c.key).where(schema.run.c.id == run)).scalar_one()
    )


def _same_results(connection: Connection, run_key: int) -> str | None:
    """Return a run in use with the same results, recognised by the identity of the evaluation or
    its responses, or None.
    """
    run, imported, response = schema.run, schema.imported, schema.imported_response
    mine = connection.execute(
        select(imported.c.identity, imported.c.content).where(imported.c.run_key == run_key)
    ).first()
    if mine is None:
        return None
    theirs = response.alias("theirs")
    shared = (
        select(theirs.c.run_key)
        .join(response, response.c.identity == theirs.c.identity)
        .where(response.c.run_key == run_key)
    )
    alike = [imported.c.content == mine.content, run.c.key.in_(shared)]
    if mine.identity is not None:
        alike.append(imported.c.identity == mine.identity)
    return connection.execute(
        select(run.c.id)
        .join(imported, imported.c.run_key == run.c.key)
        .where(run.c.key != run_key, run.c.state.not_in(HIDDEN_STATES), or_(*alike))
        .limit(1)
    ).scalar_one_or_none()


def _note(
    connection: Connection,
    run_key: int,
    before: str,
    after: str,
    note: RunNote,
    other_key: int | None,
) -> int:
    table = schema.run_event
    verb = _VERBS.get(after, "restore")
    values = {
        "run_key": run_key,
        "verb": verb,
        "before": before,
        "after": after,
        "other_key": other_key,
        "reviewer": plain(note.reviewer),
        "reason": plain(note.reason),
        "at": note.at,
    }
    return int(
        connection.execute(insert(table).values(**values).returning(table.c.id)).scalar_one()
    )


def _events(connection: Connection, numbers: Collection[int] | None) -> tuple[RunEvent, ...]:
    table, run = schema.run_event, schema.run
    other = run.alias("other")
    newest = select(func.max(table.c.id)).group_by(table.c.run_key)
    current = set(connection.execute(newest).scalars())
    statement = (
        select(table, run.c.id.label("run_id"), other.c.id.label("other_id"))
        .join(run, run.c.key == table.c.run_key)
        .join(other, other.c.key == table.c.other_key, isouter=True)
        .order_by(table.c.id)
    )
    if numbers is not None:
        statement = statement.where(table.c.id.in_(numbers))
    return tuple(
        RunEvent(
            id=row.id,
            run_id=RunId(row.run_id),
            verb=row.verb,
            replaced_by=None if row.other_id is None else RunId(row.other_id),
            reviewer=row.reviewer,
            reason=row.reason,
            at=row.at,
            stands=row.id in current and row.after in HIDDEN_STATES,
        )
        for row in connection.execute(statement)
    )
