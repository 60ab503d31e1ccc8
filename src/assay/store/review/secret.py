"""The store's secret: random bytes, drawn once and shared by all processes."""

from __future__ import annotations

import secrets
from typing import Final

from sqlalchemy import Connection, insert, select

from assay.store.database import schema
from assay.store.database.connections import Database
from assay.store.execution.writer_thread import Writer

_NAME: Final = "names"


class StoreSecret:
    """Stores the secret for opaque item names and the arena's left-right order; may be used from
    any thread.
    """

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._value: bytes | None = None

    def value(self) -> bytes:
        """Return the sixteen secret bytes; the first call draws them."""
        if self._value is None:
            with self._database.reading() as connection:
                known = _stored(connection)
            if known is None:
                known = (
                    secrets.token_bytes(16)
                    if self._database.read_only
                    else self._writer.call(_drawn)
                )
            self._value = known
        return self._value


def _stored(connection: Connection) -> bytes | None:
    table = schema.secret
    return connection.execute(
        select(table.c.value).where(table.c.name == _NAME)
    ).scalar_one_or_none()


def _drawn(connection: Connection) -> bytes:
    known = _stored(connection)  # another process may have been faster
    if known is None:
        known = secrets.token_bytes(16)
        connection.execute(insert(schema.secret).values(name=_NAME, value=known))
    return known
