"""Bring the tables of a store from before the first release to schema 0011.

Theory. Until schema 0012, tables changed without a new number: two schemas had the number 0005, one
had three numbers, and thirteen had the number 0011. Therefore nothing here reads the number. The
wanted tables are in `migrations/tables_0011_*.sql`; tables, columns and indexes that a store lacks
are added, and nothing that counts is changed. Almost all of these changes only added things. Three
did not: `observation` renamed a column and got a purpose, bare scores need no body, and the earlier
control items (`aside`) had another form. Control items never count, so those and the answers to
them are dropped.

House rules. SQLite cannot change or move a column, so its table is written anew; the caller turns
foreign keys off meanwhile. This module changes no more, because no store from before the first
release will be new.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, inspect, text

from assay.domain.candidate_identity import identity_of
from assay.domain.errors import AssayError
from assay.store.database.codec import bytes_json, json_bytes, plain, plan_record

WANTED: Final = Path(__file__).parents[1] / "migrations"

_RENAMED: Final = {("observation", "once"): "idempotency_key"}
_FILLED: Final = {
    ("task", "family"): "''",
    ("run_candidate", "identity"): "''",
    ("run_grader", "reference"): "false",
    ("reservation", "most_usd"): "usd",
    ("observation", "purpose"): "'work'",
}
"""Values of new columns that may not be null."""

_DECISION: Final = (
    *(
        "verb",
        "arm",
        "active_ms",
        "corrections",
        "protocol",
        "disclosed",
        "size",
        "distance",
        "shift",
        "left_won",
        "result",
    ),
)
_BODIES: Final = {
    "shown": (),
    "verdict": ("scores", "overall"),
    "decision": _DECISION,
    "second": ("withdrawn",),
    "opinion": ("withdrawn", "verb", "reason", "note", "result", "corrections"),
    "protocol": ("protocol", "decided_before"),
    "ended": (),
    "settled": ("choice", "disagreement", "confidence", "together"),
    "disclosed": ("task", "k"),
}
"""Fields of each kind of observation in schema 0011."""

_NEEDED: Final = {
    "verdict": ("scores", "overall"),
    "decision": ("verb", "arm"),
    "protocol": ("protocol",),
    "settled": ("choice", "disagreement", "confidence", "together"),
    "disclosed": ("task", "k"),
}

_COLUMN: Final = re.compile(
    r'^\t"?(?P<name>\w+)"? (?P<type>[A-Z][A-Z ]*?(?:\(\d+\))?)(?P<filled> NOT NULL)?,?\s*$'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A table of schema 0011: its statement, and for each column its type and if it may not be
    null.
    """

    name: str
    statement: str
    columns: dict[str, tuple[str, bool]]


def are_early(connection: Connection) -> bool:
    """True if a store's tables are older than schema 0012, whatever number they have."""
    return "stated_by" not in _columns(connection, "review_event")


def bring_to_first_release(connection: Connection) -> None:
    """Add what the tables lack.

    Foreign keys of SQLite must be off; tables that are already right stay unchanged.
    """
    tables, indexes = _wanted(connection.dialect.name)
    earlier_observations = "once" in _columns(connection, "observation")
    without_identity = "identity" not in _columns(connection, "run_candidate")
    for table in tables:
        present = _columns(connection, table.name)
        if not present:
            connection.exec_driver_sql(table.statement)
        elif connection.dialect.name == "sqlite":
            _change_sqlite(connection, table, present)
        else:
            _change_postgresql(connection, table, present)
    if earlier_observations:
        _translate_observations(connection)
    if inspect(connection).has_table("aside"):
        connection.exec_driver_sql("DROP TABLE aside")
    there = inspect(connection)
    names = {index["name"] for table in tables for index in there.get_indexes(table.name)}
    for name, statement in indexes.items():
        if name not in names:
            connection.exec_driver_sql(statement)
    if without_identity:
        _identify_candidates(connection)


def _wanted(dialect: str) -> tuple[list[_Wanted], dict[str, str]]:
    tables: list[_Wanted] = []
    indexes: dict[str, str] = {}
    for statement in (WANTED / f"tables_0011_{dialect}.sql").read_text("utf-8").split(";\n"):
        words = statement.split()
        if "INDEX" in words[:3]:
            indexes[words[words.index("INDEX") + 1]] = statement
        elif words:
            columns = {
                match["name"]: (match["type"], match["filled"] is not None)
                for match in map(_COLUMN.match, statement.splitlines())
                if match is not None
            }
            tables.append(_Wanted(name=words[2], statement=statement, columns=columns))
    return tables, indexes


def _columns(connection: Connection, table: str) -> dict[str, bool]:
    """Return a table's columns and if each may not be null; empty for a table that is missing."""
    there = inspect(connection)
    if not there.has_table(table):
        return {}
    keys = set(there.get_pk_constraint(table)["constrained_columns"])
    return {
        column["name"]: not column["nullable"] or column["name"] in keys
        for column in there.get_columns(table)
    }


def _change_sqlite(connection: Connection, table: _Wanted, present: dict[str, bool]) -> None:
    wanted = [(name, filled) for name, (_, filled) in table.columns.items()]
    missing = wanted[len(present) :]
    if list(present.items()) == wanted[: len(present)] and not any(filled for _, filled in missing):
        for name, _ in missing:
            connection.exec_driver_sql(
                f'ALTER TABLE "{table.name}" ADD COLUMN "{name}" {table.columns[name][0]}'
            )
        return
    scratch = f"{table.name}_0011"
    connection.exec_driver_sql(
        table.statement.replace(f"CREATE TABLE {table.name} (", f'CREATE TABLE "{scratch}" (', 1)
    )
    names = ", ".join(f'"{name}"' for name in table.columns)
    values = ", ".join(_value(table.name, name, present) for name in table.columns)
    connection.exec_driver_sql(
        f'INSERT INTO "{scratch}" ({names}) SELECT {values} FROM "{table.name}"'
    )
    connection.exec_driver_sql(f'DROP TABLE "{table.name}"')
    connection.exec_driver_sql(f'ALTER TABLE "{scratch}" RENAME TO "{table.name}"')


def _change_postgresql(connection: Connection, table: _Wanted, present: dict[str, bool]) -> None:
    for (of, old), new in _RENAMED.items():
        if of == table.name and old in present:
            connection.exec_driver_sql(f'ALTER TABLE "{of}" RENAME COLUMN "{old}" TO "{new}"')
            connection.exec_driver_sql(
                f'ALTER TABLE "{of}" RENAME CONSTRAINT "uq_{of}_{old}" TO "uq_{of}_{new}"'
            )
            present = {**present, new: present[old]}
    for name, (kind, filled) in table.columns.items():
        if name not in present:
            connection.exec_driver_sql(f'ALTER TABLE "{table.name}" ADD COLUMN "{name}" {kind}')
            if filled:
                value = _value(table.name, name, present)
                connection.exec_driver_sql(f'UPDATE "{table.name}" SET "{name}" = {value}')
                connection.exec_driver_sql(
                    f'ALTER TABLE "{table.name}" ALTER COLUMN "{name}" SET NOT NULL'
                )
        elif present[name] and not filled:
            connection.exec_driver_sql(
                f'ALTER TABLE "{table.name}" ALTER COLUMN "{name}" DROP NOT NULL'
            )


def _value(table: str, name: str, present: dict[str, bool]) -> str:
    """Return the expression for a column's value in the earlier table."""
    earlier = {new: old for (of, old), new in _RENAMED.items() if of == table and old in present}
    if name in present or name in earlier:
        return f'"{earlier.get(name, name)}"'
    return _FILLED.get((table, name), "NULL")


def _translate_observations(connection: Connection) -> None:
    """Write observations in the form of schema 0011; those of control items, and those that lack a
    field, are dropped.
    """
    controls: set[int] = set()
    if inspect(connection).has_table("aside"):
        controls = set(connection.execute(text('SELECT "key" FROM aside')).scalars())
    for row in connection.execute(
        text("SELECT id, kind, assessment_key, body FROM observation")
    ).all():
        translated = (
            None
            if row.assessment_key in controls
            else _translated(row.kind, bytes_json(bytes(row.body)))
        )
        if translated is None:
            connection.execute(text("DELETE FROM observation WHERE id = :id"), {"id": row.id})
        else:
            kind, body = translated
            values = {"kind": kind, "body": json_bytes(body), "id": row.id}
            connection.execute(
                text("UPDATE observation SET kind = :kind, body = :body WHERE id = :id"), values
            )


def _translated(kind: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return an observation's kind and fields in schema 0011; None if that schema has no such
    observation.
    """
    body = dict(body)
    if kind == "told":
        kind = "disclosed"
        body.setdefault("k", None)
    elif kind == "protocol":
        body = {"protocol": body, "decided_before": body.get("decided_before", 0)}
    elif kind == "verdict":
        body["overall"] = body.get("whole", {})
    elif kind == "decision":
        body["disclosed"] = bool(body.get("told"))
    if kind not in _BODIES or any(name not in body for name in _NEEDED.get(kind, ())):
        return None
    if (
        kind == "opinion"
        and not body.get("withdrawn")
        and ("verb" not in body or "corrections" not in body)
    ):
        return None
    return kind, {name: body[name] for name in _BODIES[kind] if name in body}


def _identify_candidates(connection: Connection) -> None:
    """Fill in the identities of candidates, as `store.restore` does for records without them."""
    plans = connection.execute(
        text('SELECT run."key", body.content FROM run JOIN body ON body."key" = run.plan_key')
    ).all()
    for run_key, content in plans:
        try:
            plan = plan_record(bytes(content), suite_text="")
        except (AssayError, KeyError, TypeError, ValueError):  # an unknown identity is empty
            continue
        for candidate in plan.candidates:
            values = {
                "identity": plain(identity_of(plan, candidate)),
                "run": run_key,
                "name": plain(candidate.name),
            }
            statement = "UPDATE run_candidate SET identity = :identity WHERE run_key = :run AND name = :name"
            connection.execute(text(statement), values)
