"""Map names to keys, because suites, candidates, graders and criteria are stored once and referred to by key.

Keys that were created in a transaction that is rolled back must be forgotten; `Writer` calls `forget` for that.
"""

from __future__ import annotations

from sqlalchemy import Connection, Table, insert, select

from assay.domain.identifiers import folded
from assay.store.database import schema
from assay.store.database.codec import plain


class NameKeys:
    """Keys by name, created on first use; only the writing thread uses it."""

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
        """Return a candidate's key. `Alice` and `alice` are the same candidate; an old name refers to the renamed candidate."""
        known = self._known.get(("candidate", name))
        if known is not None:
            return known
        table, alias = schema.candidate, schema.candidate_alias
        same = folded(plain(name))
        key = connection.execute(select(alias.c.candidate_key).where(alias.c.folded == same)).scalar_one_or_none()
        if key is None:
            key = connection.execute(select(table.c.key).where(table.c.folded == same)).scalar_one_or_none()
        if key is None:
            row = insert(table).values(name=plain(name), folded=same).returning(table.c.key)
            key = connection.execute(row).scalar_one()
        self._known["candidate", name] = key
        return int(key)

    def _key(self, connection: Connection, table: Table, name: str) -> int:
        known = self._known.get((table.name, name))
        if known is not None:
            return known
        key = connection.execute(select(table.c.key).where(table.c.name == plain(name))).scalar_one_or_none()
        if key is None:
            key = connection.execute(insert(table).values(name=plain(name)).returning(table.c.key)).scalar_one()
        self._known[table.name, name] = key
        return int(key)


def remember(connection: Connection, name: str, candidate_key: int) -> None:
    """Make a name refer to a candidate, unless it already refers to another candidate."""
    table = schema.candidate_alias
    same = folded(plain(name))
    if connection.execute(select(table.c.folded).where(table.c.folded == same)).first() is None:
        connection.execute(insert(table).values(folded=same, candidate_key=candidate_key))


def candidate_names(connection: Connection, run_key: int) -> dict[int, str]:
    """Return a run's candidates by key, with the run's names and in its order."""
    table = schema.run_candidate
    rows = connection.execute(
        select(table.c.candidate_key, table.c.name).where(table.c.run_key == run_key).order_by(table.c.position)
    )
    return {row.candidate_key: row.name for row in rows}
