"""Map the names of suites, candidates, graders and criteria to keys, because other tables refer to them by key.

If a transaction that created keys is rolled back, `Writer` calls `forget` to drop these keys.
"""

from __future__ import annotations

from sqlalchemy import Connection, Table, insert, select, union

from assay.domain.identifiers import folded
from assay.store.database import schema
from assay.store.database.codec import plain


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
        """Return a candidate's key. Case is ignored, and an old name resolves to the renamed candidate."""
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
    """Make a name an alias of a candidate, unless the name already refers to another candidate."""
    table = schema.candidate_alias
    same = folded(plain(name))
    if connection.execute(select(table.c.folded).where(table.c.folded == same)).first() is None:
        connection.execute(insert(table).values(folded=same, candidate_key=candidate_key))


def candidates_called(connection: Connection, name: str) -> frozenset[int]:
    """Return the keys of the candidates with this name now or before a renaming, ignoring case."""
    table, alias = schema.candidate, schema.candidate_alias
    same = folded(plain(name))
    now = select(table.c.key).where(table.c.folded == same)
    before = select(alias.c.candidate_key).where(alias.c.folded == same)
    return frozenset(map(int, connection.execute(union(now, before)).scalars()))


def candidate_names(connection: Connection, run_key: int) -> dict[int, str]:
    """Return the names of a run's candidates by key, as spelled in the run and in its order."""
    table = schema.run_candidate
    rows = connection.execute(
        select(table.c.candidate_key, table.c.name).where(table.c.run_key == run_key).order_by(table.c.position)
    )
    return {row.candidate_key: row.name for row in rows}
