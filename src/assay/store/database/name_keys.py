"""Map the names of suites, candidates, graders and criteria to keys, because other tables refer to
them by key.

If a transaction that created keys is rolled back, `Writer` calls `forget` to drop these keys.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, Table, case, insert, select, union

from assay.domain.identifiers import folded, folded_before
from assay.store.database import schema
from assay.store.database.codec import plain


def is_named(column: ColumnElement[str], name: str) -> ColumnElement[bool]:
    """Return the condition that a column of folded names holds this name, in today's fold or in
    that of earlier versions.
    """
    return column.in_(sorted({folded(plain(name)), folded_before(plain(name))}))


def candidate_named(connection: Connection, name: str) -> int | None:
    """Return the key of the candidate with this name now; None if there is none.

    A store of an earlier version may hold two candidates whose names have the same fold today. The
    exact one is meant.
    """
    table = schema.candidate
    exact_first = case((table.c.folded == folded_before(plain(name)), 0), else_=1)
    key = (
        connection.execute(
            select(table.c.key).where(is_named(table.c.folded, name)).order_by(exact_first)
        )
        .scalars()
        .first()
    )
    return None if key is None else int(key)


def candidate_formerly(connection: Connection, name: str) -> int | None:
    """Return the key of the candidate that had this name before a renaming or merge; None if there
    is none.
    """
    table = schema.candidate_alias
    exact_first = case((table.c.folded == folded_before(plain(name)), 0), else_=1)
    keys = select(table.c.candidate_key).where(is_named(table.c.folded, name)).order_by(exact_first)
    key = connection.execute(keys).scalars().first()
    return None if key is None else int(key)


class NameKeys:
    """Keys by name, created on first use. Only the writing thread uses this class."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], int] = {}

    def forget(self) -> None:
        self._known.clear()

    def suite(self, connection: Connection, name: str) -> int:
        return self._key(connection, schema.suite, name)

    def grader(self, connection: Connection, name: str) -> int:
        return self._key(connection, schema.grader, name)

    def criterion(self, connection: Connection, name: str) -> int:
        return self._key(connection, schema.criterion, name)

    def candidate(self, connection: Connection, name: str) -> int:
        """Return a candidate's key.

        Case is ignored, and an old name resolves to the renamed candidate.
        """
        known = self._known.get(("candidate", name))
        if known is not None:
            return known
        key = candidate_formerly(connection, name)
        if key is None:
            key = candidate_named(connection, name)
        if key is None:
            table = schema.candidate
            row = (
                insert(table)
                .values(name=plain(name), folded=folded(plain(name)))
                .returning(table.c.key)
            )
            key = int(connection.execute(row).scalar_one())
        self._known["candidate", name] = key
        return key

    def _key(self, connection: Connection, table: Table, name: str) -> int:
        known = self._known.get((table.name, name))
        if known is not None:
            return known
        key = connection.execute(
            select(table.c.key).where(table.c.name == plain(name))
        ).scalar_one_or_none()
        if key is None:
            key = connection.execute(
                insert(table).values(name=plain(name)).returning(table.c.key)
            ).scalar_one()
        self._known[table.name, name] = key
        return int(key)


def remember(connection: Connection, name: str, candidate_key: int) -> None:
    """Make a name an alias of a candidate, unless the name already refers to another candidate."""
    if candidate_formerly(connection, name) is None:
        row = insert(schema.candidate_alias).values(
            folded=folded(plain(name)), candidate_key=candidate_key
        )
        connection.execute(row)


def candidates_called(connection: Connection, name: str) -> frozenset[int]:
    """Return the keys of the candidates with this name now or before a renaming, however it is
    typed.
    """
    table, alias = schema.candidate, schema.candidate_alias
    now = select(table.c.key).where(is_named(table.c.folded, name))
    before = select(alias.c.candidate_key).where(is_named(alias.c.folded, name))
    return frozenset(map(int, connection.execute(union(now, before)).scalars()))


def candidate_names(connection: Connection, run_key: int) -> dict[int, str]:
    """Return the names of a run's candidates by key, as spelled in the run and in its order."""
    table = schema.run_candidate
    rows = connection.execute(
        select(table.c.candidate_key, table.c.name)
        .where(table.c.run_key == run_key)
        .order_by(table.c.position)
    )
    return {row.candidate_key: row.name for row in rows}
