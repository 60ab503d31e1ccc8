"""The identity of a store: a random number that does not change with the store's address."""

from __future__ import annotations

import secrets
from typing import Final

from sqlalchemy import insert, select

from assay.store.database import schema
from assay.store.database.connections import Database

_NAME: Final = "store"
"""Row of `key_source` that contains the store's id; the other rows are counters."""


def identity_of(database: Database) -> str:
    """Return the store's id: 16 hexadecimal digits, drawn on the first call.

    A copy of the file has the same id.
    """
    source = schema.key_source
    query = select(source.c.next).where(source.c.name == _NAME)
    with database.reading() as connection:
        number = connection.execute(query).scalar_one_or_none()
    if number is None and database.read_only:
        # for this process only, because a read-only store cannot keep it
        number = secrets.randbits(63)
    if number is None:
        with database.writing() as connection:
            number = connection.execute(
                query
            ).scalar_one_or_none()  # another process may have stored one meanwhile
            if number is None:
                # 63 bits fit the signed column.
                number = secrets.randbits(63)
                connection.execute(insert(source).values(name=_NAME, next=number))
    return f"{number:016x}"
