"""Migrations lead to exactly the tables the code describes, on both databases, and a kept store
survives them.
"""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Boolean, Column, Index, MetaData, create_engine, insert, inspect, text
from sqlalchemy.engine.interfaces import ReflectedIndex
from sqlalchemy.schema import SchemaItem
from tests.contract.rows import driven
from tests.contract.stores import StandingClock, a_plan, a_task, planned
from tests.support.postgres import new_database
from tests.upgrade.keep_a_store import DRIVERS, tables_now, tables_of
from tests.upgrade.keep_a_version import VERSIONS
from tests.upgrade.test_versions import assert_usable, unpacked

from assay.store.database import migrate, schema
from assay.store.opening import KEYED, open_store

OLDEST = "0011"
"""The first release; `tests/upgrade/test_versions.py` upgrades earlier stores."""


def plain(index: ReflectedIndex) -> str:
    """An index with the condition of a partial one as text, which SQLAlchemy returns as an
    object.
    """
    options = {name: str(value) for name, value in index.get("dialect_options", {}).items()}
    return str({**index, "dialect_options": options})


def described(url: str) -> dict[str, Any]:
    """Columns, keys, indexes and constraints of every table, as the database itself tells them."""
    engine = create_engine(driven(url))
    try:
        with engine.connect() as connection:
            there = inspect(connection)
            tables: dict[str, Any] = {
                table: {
                    "columns": [
                        (
                            column["name"],
                            str(column["type"]),
                            column["nullable"],
                            str(column["default"]),
                        )
                        for column in there.get_columns(table)
                    ],
                    "key": there.get_pk_constraint(table),
                    "indexes": sorted(map(plain, there.get_indexes(table))),
                    "unique": sorted(map(str, there.get_unique_constraints(table))),
                    "foreign": sorted(map(str, there.get_foreign_keys(table))),
                }
                for table in sorted(there.get_table_names())
            }
            tables["keys"] = connection.execute(
                text("SELECT * FROM key_source ORDER BY name")
            ).all()
            if engine.dialect.name == "sqlite":
                rows = connection.execute(
                    text("SELECT name, sql FROM sqlite_master WHERE sql LIKE '%ROWID%'")
                )
                tables["clustered"] = sorted(row.name for row in rows)
            return tables
    finally:
        engine.dispose()


def migrated(url: str) -> None:
    """Walk through every migration, from the kept tables of the oldest schema."""
    engine = create_engine(driven(url))
    with engine.begin() as connection:
        for statement in (
            tables_of(OLDEST, engine.dialect.name).read_text(encoding="utf-8").split(";\n")
        ):
            if statement.strip():
                connection.exec_driver_sql(statement)
        connection.execute(insert(schema.version), [{"version_num": OLDEST}])
        connection.execute(insert(schema.key_source), [{"name": name, "next": 1} for name in KEYED])
        migrate.upgrade(connection)
    engine.dispose()


@pytest.mark.parametrize("dialect", DRIVERS)
def test_the_tables_of_this_version_are_kept(dialect: str) -> None:
    """Fails if the schema changed: `python -m tests.upgrade.keep_a_store`, or after its release a
    migration.
    """
    assert tables_of(schema.VERSION, dialect).read_text(encoding="utf-8") == tables_now(dialect)


def test_the_version_in_the_code_is_the_last_migration() -> None:
    script = ScriptDirectory.from_config(migrate.configuration())
    assert script.get_heads() == [schema.VERSION]


def test_migrations_make_the_tables_that_a_new_store_has(bare_url: str, tmp_path: Path) -> None:
    migrated(bare_url)
    by_migration = described(bare_url)
    other = f"sqlite:///{tmp_path / 'direct.db'}"
    if not bare_url.startswith("sqlite"):
        server, _, name = bare_url.rpartition("/")
        other = new_database(server, f"{name}_direct")
    open_store(other, clock=StandingClock()).close()
    assert described(other) == by_migration


@pytest.mark.quick_postgresql
def test_the_code_describes_the_migrated_tables(bare_url: str) -> None:
    migrated(bare_url)
    engine = create_engine(driven(bare_url))

    def compared(item: SchemaItem, name: str | None, kind: str, *_: object) -> bool:
        elsewhere = (
            isinstance(item, Index)
            and item._ddl_if is not None
            and engine.dialect.name != "postgresql"
        )
        return not elsewhere and not (kind == "table" and name == "assay_version")

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": compared})
        assert compare_metadata(context, schema.metadata) == []
    engine.dispose()


def test_a_migrated_store_is_used_like_a_new_one(bare_url: str) -> None:
    migrated(bare_url)
    store = open_store(bare_url, clock=StandingClock())
    store.journal.open_run(a_plan(), planned(a_task(), trials=2))
    assert len(store.journal.claim(a_plan().id, limit=5)) == 2
    store.close()


def test_an_early_store_on_postgresql_keeps_its_figures(postgres: str, tmp_path: Path) -> None:
    """The tables of commit c0011569 (0010) with the rows that its store on SQLite has."""
    (kept,) = VERSIONS.glob("0010-*.tar.xz")
    expected = unpacked(kept, tmp_path)
    url = new_database(postgres, f"t{secrets.token_hex(6)}")
    engine = create_engine(driven(url))
    with closing(sqlite3.connect(tmp_path / "assay.db")) as early, engine.begin() as connection:
        for statement in tables_of("0010", "postgresql").read_text(encoding="utf-8").split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)
        # the order of the tables does not matter
        connection.exec_driver_sql("SET session_replication_role = replica")
        reflected = MetaData()
        reflected.reflect(connection)
        for table in reflected.tables.values():
            names = ", ".join(f'"{column.name}"' for column in table.columns)
            rows = [
                {
                    column.name: _as_boolean(column, value)
                    for column, value in zip(table.columns, row, strict=True)
                }
                for row in early.execute(f'SELECT {names} FROM "{table.name}"')
            ]
            if rows:
                connection.execute(insert(table), rows)
        for table_name, key in (("observation", "id"), ("review_event", "id"), ("run", "key")):
            sequence = f"pg_get_serial_sequence('{table_name}', '{key}')"
            connection.exec_driver_sql(
                f'SELECT setval({sequence}, (SELECT COALESCE(MAX("{key}"), 1) FROM {table_name}))'
            )
    engine.dispose()
    open_store(url, clock=StandingClock()).close()
    other = new_database(postgres, f"t{secrets.token_hex(6)}")
    open_store(other, clock=StandingClock()).close()
    upgraded, new = described(url), described(other)
    for name in (*schema.metadata.tables, schema.VERSION_TABLE):
        assert sorted(upgraded[name].pop("columns")) == sorted(new[name].pop("columns")), name
        assert upgraded[name] == new[name]
    assert upgraded.keys() == new.keys()
    assert_usable(url, expected)


def _as_boolean(column: Column[Any], value: object) -> object:
    return bool(value) if isinstance(column.type, Boolean) and value is not None else value
