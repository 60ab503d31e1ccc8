"""Store invited people with their names, roles and hashed tokens."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from assay.domain.errors import UnknownName
from assay.domain.people import Person, VisitorRole
from assay.store.database import schema
from assay.store.database.codec import plain
from assay.store.database.connections import Database
from assay.store.execution.writer_thread import Writer


class StorePeople:
    """Stores invitations; may be used from any thread and by several processes at once."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    def invite(self, person: Person, /, *, digest: str) -> None:
        """Store an invitation.

        It replaces an earlier invitation with the same name, whose token stops working.
        """
        table = schema.person

        def store(connection: Connection) -> None:
            _end(connection, person.name, at=person.invited)
            values = {
                "name": plain(person.name),
                "role": person.role.value,
                "digest": digest,
                "invited": person.invited,
            }
            connection.execute(insert(table).values(**values))

        self._writer.call(store)

    def revoke(self, name: str, /, *, at: str) -> None:
        """End a person's invitation; raises `UnknownName` if the person has no invitation."""

        def end(connection: Connection) -> None:
            if not _end(connection, name, at=at):
                query = select(schema.person.c.name).where(schema.person.c.revoked.is_(None))
                raise UnknownName("invitation", name, connection.execute(query).scalars())

        self._writer.call(end)

    def read(self) -> dict[str, Person]:
        """Return all invitations, including revoked ones, by the hash of their token, oldest
        first.
        """
        with self._database.reading() as connection:
            rows = connection.execute(select(schema.person).order_by(schema.person.c.key))
            return {row.digest: _person(row) for row in rows}


def _end(connection: Connection, name: str, *, at: str) -> bool:
    table = schema.person
    open_ = (table.c.name == plain(name), table.c.revoked.is_(None))
    return bool(connection.execute(update(table).where(*open_).values(revoked=at)).rowcount)


def _person(row: Row[Any]) -> Person:
    return Person(
        name=row.name, role=VisitorRole(row.role), invited=row.invited, revoked=row.revoked
    )
