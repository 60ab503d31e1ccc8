"""Store the sessions of signed-in browsers, with hashed cookies."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select, update

from assay.domain.people import Session, VisitorRole
from assay.store.database import schema
from assay.store.database.codec import plain
from assay.store.database.connections import Database
from assay.store.execution.writer_thread import Writer


class StoreSessions:
    """Stores sessions; may be used from any thread and by several processes at once."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    def begin(self, session: Session, /, *, digest: str) -> bool:
        """Store a session; False, without storing it, if an invited person's token has opened a
        session before.

        The owner's token may open any number. The owner's expired sessions are removed; those of
        invited people are kept, because they show that the invitation was used.
        """
        table = schema.session

        def store(connection: Connection) -> bool:
            expired = (table.c.name.is_(None), table.c.until < session.begun)
            connection.execute(delete(table).where(*expired))
            if session.name is not None:
                used = select(table.c.digest).where(table.c.granted_by == session.granted_by)
                opened = connection.execute(used).scalar()
                if opened is not None:
                    # equal if a lost connection repeats this transaction
                    return bool(opened == digest)
            values = {
                "digest": digest,
                "role": session.role.value,
                "name": None if session.name is None else plain(session.name),
                "granted_by": session.granted_by,
                "begun": session.begun,
                "until": session.until,
            }
            connection.execute(insert(table).values(**values))
            return True

        return self._writer.call(store)

    def end(self, digest: str, /, *, at: str) -> None:
        """End a session; an unknown or ended one stays as it is."""
        table = schema.session
        ended = (
            update(table).where(table.c.digest == digest, table.c.ended.is_(None)).values(ended=at)
        )
        self._writer.call(lambda connection: connection.execute(ended))

    def read(self) -> dict[str, Session]:
        """Return all sessions, ended ones included, by the hash of their cookie."""
        table = schema.session
        with self._database.reading() as connection:
            rows = connection.execute(select(table))
            return {
                row.digest: Session(
                    role=VisitorRole(row.role),
                    name=row.name,
                    granted_by=row.granted_by,
                    begun=row.begun,
                    until=row.until,
                    ended=row.ended,
                )
                for row in rows
            }
