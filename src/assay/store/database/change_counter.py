"""The number of changes of a store, so that a process sees whether results that it keeps are still
true.

Every transaction of every process counts (`Database.writing`, `Database.staging`), except leases
and notes that an item was shown: reviewers write these whenever they open an item, and no result is
computed from them. The highest keys would not do, because a decision changes rows in place.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, select

from assay.store.database import schema

NAME: Final = "changes"
"""Row of `key_source` that contains the number of changes."""

_ADD_ONE: Final = (
    f"INSERT INTO key_source (name, next) VALUES ('{NAME}', 1) "
    "ON CONFLICT (name) DO UPDATE SET next = key_source.next + 1"
)


def count_change(connection: Connection) -> None:
    """Add 1 to the number of changes, in the transaction that makes the change."""
    connection.exec_driver_sql(_ADD_ONE)


def number_of_changes(connection: Connection) -> int:
    """Return the number of committed changes; 0 for a store that only earlier versions wrote to."""
    source = schema.key_source
    number = connection.execute(select(source.c.next).where(source.c.name == NAME))
    return int(number.scalar_one_or_none() or 0)
