"""Copy a whole store into an empty one on SQLite or PostgreSQL, and compare all rows before the
commit.
"""

from __future__ import annotations

import os
import sqlite3
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    String,
    Table,
    delete,
    func,
    insert,
    select,
    text,
)

from assay.domain.errors import Refused, StoreError
from assay.store.database import schema
from assay.store.database.connections import Database

_AT_ONCE: Final = 1_000


def copy_rows(source: Database, target: Database) -> int:
    """Copy a snapshot of all rows and return their number.

    The target stays empty unless all copied rows are equal.

    Raises `Refused` if the target contains results, and `StoreError` if a copied row differs from
    its original.
    """
    with source.reading() as reader, target.writing() as writer:
        _refuse_filled(writer, target)
        writer.execute(delete(schema.key_source))
        copied = sum(
            _copy_table(reader, writer, target, table) for table in schema.metadata.sorted_tables
        )
        for table in schema.metadata.sorted_tables:
            _compare(reader, writer, target, table)
            if not target.is_sqlite:
                _continue_numbers(writer, table)
    return copied


def mark_unfinished(target: Database) -> None:
    """Mark an empty store as the target of a copy, so that a copy that is cut off does not look
    like an empty, valid store.

    The transaction of `copy_rows` replaces the mark. Raises `Refused` if the target contains
    results.
    """
    with target.writing() as writer:
        _refuse_filled(writer, target)
        writer.execute(
            delete(schema.key_source).where(schema.key_source.c.name == schema.UNFINISHED_COPY)
        )
        writer.execute(insert(schema.key_source).values(name=schema.UNFINISHED_COPY, next=1))


def settle_file(path: Path) -> None:
    """Move a closed SQLite store's log into its file, check the file's structure, and force it to
    disk; raises `StoreError`.
    """
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        problem = str(error)
    finally:
        connection.close()
    if problem != "ok":
        remedy = "Check the disk, and copy again. The original is unchanged."
        raise StoreError(
            str(path),
            f"the copy cannot be read back ({problem}), so it was deleted.",
            remedy=remedy,
        )
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _refuse_filled(writer: Connection, target: Database) -> None:
    for table in schema.metadata.sorted_tables:
        if (
            table is not schema.key_source
            and writer.execute(select(table).limit(1)).first() is not None
        ):
            raise Refused(
                target.where, "is not empty.", remedy="Select a new file or an empty database."
            )


def _copy_table(reader: Connection, writer: Connection, target: Database, table: Table) -> int:
    n = 0
    for rows in reader.execute(_all_rows(reader, table)).partitions(_AT_ONCE):
        target.insert_many(writer, table, [tuple(row) for row in rows])
        n += len(rows)
    return n


def _compare(reader: Connection, writer: Connection, target: Database, table: Table) -> None:
    """Raise `StoreError` at the first row that differs between the two stores."""
    rows = zip_longest(
        reader.execute(_all_rows(reader, table)), writer.execute(_all_rows(writer, table))
    )
    for number, (original, copy) in enumerate(rows, 1):
        if original is None or copy is None or tuple(original) != tuple(copy):
            raise StoreError(
                target.where,
                f"row {number:,} of {table.name} differs from its original, so the copy was deleted; the original is unchanged.",
                remedy="Check both stores with `assay doctor --check-store`.",
            )


def _all_rows(connection: Connection, table: Table) -> Select[tuple[object, ...]]:
    """Return the query of all rows, in an order that both databases share regardless of the
    server's collation.
    """
    order: list[ColumnElement[Any]] = [
        column.collate("C")
        if connection.dialect.name != "sqlite" and isinstance(column.type, String)
        else column
        for column in table.primary_key
    ]
    return select(table).order_by(*order).execution_options(yield_per=_AT_ONCE)


def _continue_numbers(connection: Connection, table: Table) -> None:
    """Set PostgreSQL's key counters so that new rows get keys after those of the copied rows."""
    column = table.autoincrement_column
    if column is None or not isinstance(column.type, Integer):
        return
    sequence = connection.execute(
        text("SELECT pg_get_serial_sequence(:of, :column)"),
        {"of": table.name, "column": column.name},
    ).scalar_one()
    last = connection.execute(select(func.max(column))).scalar_one()
    if sequence is not None and last is not None:
        connection.execute(
            text("SELECT setval(CAST(:sequence AS regclass), :last)"),
            {"sequence": sequence, "last": last},
        )
