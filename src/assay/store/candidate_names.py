"""Rename and merge candidates, and undo these changes.

Each change is one transaction, recorded as an event.

A run's plan, assessments and `run_candidate.name` never change. A rename changes a candidate's
name. A merge moves the rows of one candidate's runs to another candidate. The old name remains an
alias (`candidate_alias`), so a run that is resumed, extended or regraded still resolves it to the
right candidate.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, insert, select, update

from assay.domain.errors import Refused, UnknownName
from assay.domain.identifiers import RunId, folded
from assay.domain.renaming import CandidateRow, NameEvent, NameVerb
from assay.ports import Clock
from assay.store.database import schema
from assay.store.database.codec import bytes_json, json_text, plain
from assay.store.database.connections import Database
from assay.store.database.name_keys import NameKeys, candidate_named, is_named, remember
from assay.store.execution.writer_thread import Writer
from assay.store.queries.registry import all_candidates

_BY_RUN: Final = (schema.run_candidate, schema.call, schema.assessment, schema.score, schema.grade)
"""Tables with a candidate and a run in each row.

Rows of `response` have no run and are selected through their trials.
"""


class Renaming:
    """Renames and merges candidates, and undoes renames and merges."""

    def __init__(self, database: Database, writer: Writer, names: NameKeys, clock: Clock) -> None:
        self._database = database
        self._writer = writer
        self._names = names
        self._clock = clock

    def candidates(self) -> tuple[CandidateRow, ...]:
        """Return all candidates that took part in a run, sorted by name."""
        with self._database.reading() as connection:
            return all_candidates(connection)

    def events(self) -> tuple[NameEvent, ...]:
        """Return all renames, merges and undos, oldest first."""
        with self._database.reading() as connection:
            return _events(connection)

    def rename(self, source: str, target: str, /, *, reviewer: str, reason: str) -> NameEvent:
        """Rename a candidate.

        Raises `UnknownName`, or `Refused` if another candidate has the new name.
        """

        def rename(connection: Connection) -> NameEvent:
            table, name = schema.candidate, plain(target)
            row = _candidate(connection, source)
            taken = _named(connection, name)
            if taken is not None and taken.key != row.key:
                raise Refused(
                    target,
                    "is already the name of another candidate.",
                    remedy=f"If both names mean the same candidate, merge them: assay candidates merge {source} {target}",
                )
            self._check_free(connection, name, row.key)
            if name == row.name:
                raise Refused(target, "is already its name.")
            self._names.forget()
            alias = schema.candidate_alias
            # It may be an old name of this same candidate, which becomes its current name again.
            connection.execute(delete(alias).where(is_named(alias.c.folded, name)))
            connection.execute(
                update(table).where(table.c.key == row.key).values(name=name, folded=folded(name))
            )
            if folded(name) != folded(row.folded):
                remember(connection, row.name, row.key)
            runs = _runs_of(connection, row.key)
            return self._event(
                connection,
                NameVerb.RENAME,
                row.name,
                name,
                (row.key, row.key),
                runs,
                (),
                reviewer,
                reason,
            )

        return self._writer.call(rename)

    def merge(self, source: str, target: str, /, *, reviewer: str, reason: str) -> NameEvent:
        """Move a candidate's results to another candidate.

        Raises `Refused` if both took part in the same run.
        """

        def merge(connection: Connection) -> NameEvent:
            source_row, target_row = _candidate(connection, source), _candidate(connection, target)
            if source_row.key == target_row.key:
                raise Refused(source, f"and {target!r} are already one candidate.")
            moved, of_target = (
                _runs_of(connection, source_row.key),
                set(_runs_of(connection, target_row.key)),
            )
            both = [run for run in moved if run in of_target]
            if both:
                (name,) = _ids(connection, both[:1])
                problem = f"and {target_row.name!r} both took part in run {name}, so they are different candidates."
                raise Refused(source, problem, remedy="Rename one of them instead.")
            self._names.forget()
            _move(connection, moved, source_row.key, target_row.key)
            alias = schema.candidate_alias
            # Kept in the event, so that an undo reverts exactly these aliases.
            turned = tuple(
                connection.execute(
                    select(alias.c.folded).where(alias.c.candidate_key == source_row.key)
                ).scalars()
            )
            connection.execute(
                update(alias)
                .where(alias.c.candidate_key == source_row.key)
                .values(candidate_key=target_row.key)
            )
            remember(connection, source_row.name, target_row.key)
            keys = (source_row.key, target_row.key)
            return self._event(
                connection,
                NameVerb.MERGE,
                source_row.name,
                target_row.name,
                keys,
                moved,
                turned,
                reviewer,
                reason,
            )

        return self._writer.call(merge)

    def undo(self, number: int, /, *, reviewer: str, reason: str) -> NameEvent:
        """Undo a rename or a merge.

        Raises `UnknownName`, or `Refused` if a later event depends on it.
        """

        def undo(connection: Connection) -> NameEvent:
            table = schema.candidate_event
            row = connection.execute(select(table).where(table.c.id == number)).first()
            if row is None or row.verb == NameVerb.UNDO:
                raise UnknownName(
                    "event",
                    str(number),
                    remedy="`assay candidates list` shows the events that can be undone.",
                )
            known = {event.id: event for event in _events(connection)}
            if known[number].undone_by is not None:
                raise Refused(
                    f"event {number}", f"was already undone by event {known[number].undone_by}."
                )
            later = connection.execute(
                select(table)
                .where(table.c.id > number, table.c.verb != NameVerb.UNDO.value)
                .order_by(table.c.id)
            ).all()
            keys = {row.source_key, row.target_key}
            for event in later:
                if (
                    keys & {event.source_key, event.target_key}
                    and known[event.id].undone_by is None
                ):
                    raise Refused(
                        f"event {number}",
                        (
                            f"cannot be undone, because event {event.id} depends on it. Undo event {event.id} first."
                        ),
                        remedy=f"Undo {event.id} first.",
                    )
            self._names.forget()
            detail = bytes_json(row.detail)
            alias, candidate = schema.candidate_alias, schema.candidate
            connection.execute(delete(alias).where(is_named(alias.c.folded, row.source)))
            if row.verb == NameVerb.RENAME:
                values = {"name": row.source, "folded": folded(row.source)}
                connection.execute(
                    update(candidate).where(candidate.c.key == row.source_key).values(**values)
                )
                runs = _runs_of(connection, row.source_key)
            else:
                runs = _as_written(connection, row.target_key, row.source, also=detail["runs"])
                _move(connection, runs, row.target_key, row.source_key)
                turned = update(alias).where(alias.c.folded.in_(detail["aliases"]))
                connection.execute(turned.values(candidate_key=row.source_key))
            keys_back = (row.target_key, row.source_key)
            return self._event(
                connection,
                NameVerb.UNDO,
                row.target,
                row.source,
                keys_back,
                runs,
                (),
                reviewer,
                reason,
                undoes=number,
            )

        return self._writer.call(undo)

    @staticmethod
    def _check_free(connection: Connection, name: str, key: int) -> None:
        """Refuse a name that an earlier rename or merge freed, because undoing that change would
        need the name.
        """
        candidate, alias = schema.candidate, schema.candidate_alias
        others = (is_named(candidate.c.folded, name), candidate.c.key != key)
        called = connection.execute(select(candidate.c.key).where(*others)).first()
        of_others = (is_named(alias.c.folded, name), alias.c.candidate_key != key)
        renamed = connection.execute(select(alias.c.folded).where(*of_others)).first()
        if called is not None or renamed is not None:
            remedy = "Choose another name, or undo that change first. `assay candidates list` shows its number."
            raise Refused(
                name,
                "was replaced by another name, but is still an alias of that candidate.",
                remedy=remedy,
            )

    def _event(
        self,
        connection: Connection,
        verb: NameVerb,
        source: str,
        target: str,
        keys: tuple[int, int],
        runs: Collection[int],
        aliases: Collection[str],
        reviewer: str,
        reason: str,
        *,
        undoes: int | None = None,
    ) -> NameEvent:
        table = schema.candidate_event
        values = {
            "verb": verb.value,
            "source": source,
            "target": target,
            "source_key": keys[0],
            "target_key": keys[1],
            "detail": json_text({"runs": list(runs), "aliases": list(aliases)}),
            "reviewer": plain(reviewer),
            "reason": plain(reason),
            "at": self._clock.now(),
            "undoes": undoes,
        }
        number = connection.execute(
            insert(table).values(**values).returning(table.c.id)
        ).scalar_one()
        return next(event for event in _events(connection) if event.id == number)


def _candidate(connection: Connection, name: str) -> Row[Any]:
    row = _named(connection, name)
    if row is None:
        known = connection.execute(select(schema.candidate.c.name)).scalars()
        raise UnknownName("candidate", name, known, remedy="`assay candidates list` shows them.")
    return row


def _named(connection: Connection, name: str) -> Row[Any] | None:
    table, own = schema.candidate, schema.run_candidate
    row = connection.execute(
        select(table).where(table.c.key == candidate_named(connection, name))
    ).first()
    if (
        row is None
        or connection.execute(select(own.c.run_key).where(own.c.candidate_key == row.key)).first()
        is None
    ):
        return None
    return row


def _runs_of(connection: Connection, candidate_key: int) -> list[int]:
    own = schema.run_candidate
    rows = connection.execute(
        select(own.c.run_key).where(own.c.candidate_key == candidate_key).order_by(own.c.run_key)
    )
    return list(rows.scalars())


def _as_written(
    connection: Connection, candidate_key: int, name: str, *, also: list[int]
) -> list[int]:
    """Return the candidate's runs that use exactly this spelling of its name, and the runs in
    `also`.
    """
    own = schema.run_candidate
    rows = connection.execute(
        select(own.c.run_key, own.c.name).where(own.c.candidate_key == candidate_key)
    )
    return sorted(
        row.run_key for row in rows if row.run_key in also or folded(row.name) == folded(name)
    )


def _ids(connection: Connection, keys: Collection[int]) -> tuple[RunId, ...]:
    table = schema.run
    rows = connection.execute(
        select(table.c.id).where(table.c.key.in_(keys)).order_by(table.c.started, table.c.key)
    )
    return tuple(RunId(run_id) for run_id in rows.scalars())


def _move(connection: Connection, runs: Collection[int], source_key: int, target_key: int) -> None:
    for table in _BY_RUN:
        mine = (table.c.run_key.in_(runs), table.c.candidate_key == source_key)
        connection.execute(update(table).where(*mine).values(candidate_key=target_key))
    response, trial = schema.response, schema.trial
    of_runs = select(trial.c.key).where(trial.c.run_key.in_(runs))
    connection.execute(
        update(response)
        .where(response.c.candidate_key == source_key, response.c.trial_key.in_(of_runs))
        .values(candidate_key=target_key)
    )


def _events(connection: Connection) -> tuple[NameEvent, ...]:
    table = schema.candidate_event
    rows = connection.execute(select(table).order_by(table.c.id)).all()
    undone = {row.undoes: row.id for row in rows if row.undoes is not None}
    return tuple(
        NameEvent(
            id=row.id,
            verb=NameVerb(row.verb),
            source=row.source,
            target=row.target,
            runs=_ids(connection, bytes_json(row.detail)["runs"]),
            reviewer=row.reviewer,
            reason=row.reason,
            at=row.at,
            undoes=row.undoes,
            undone_by=undone.get(row.id),
        )
        for row in rows
    )
