"""Open the store at an address, and create or upgrade it if needed."""

from __future__ import annotations

import os
import secrets
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from stat import S_ISDIR
from typing import Final
from urllib.parse import quote

from sqlalchemy import URL, Connection, create_mock_engine, insert, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.schema import ExecutableDDLElement

from assay.domain.errors import SettingsError, StoreError
from assay.ports import Clock
from assay.store.calibrations import StoreCalibrations
from assay.store.candidate_names import Renaming
from assay.store.checking import StoreCheck
from assay.store.claims.claims import Claims
from assay.store.claims.process_locks import AdvisoryLocks, FileLocks, OwnerLocks, alone
from assay.store.database import schema
from assay.store.database.change_counter import number_of_changes
from assay.store.database.connections import WAIT_S, Database
from assay.store.database.identity import identity_of
from assay.store.database.name_keys import NameKeys
from assay.store.execution.group_commit import Recorder
from assay.store.execution.jobs import StoreJobs
from assay.store.execution.journal import StoreJournal
from assay.store.execution.writer_thread import Writer
from assay.store.imports.import_runs import StoreImports
from assay.store.people import StorePeople
from assay.store.queries.archive import Archive
from assay.store.queries.event_log import StoreEventLog
from assay.store.queries.registry import StoreRegister
from assay.store.restore import Restoring
from assay.store.review.control_items import StoreControlItems
from assay.store.review.decisions import StoreDecisions
from assay.store.review.leases import StoreLeases
from assay.store.review.observations import StoreObservations
from assay.store.review.secret import StoreSecret
from assay.store.review.votes import StoreArena
from assay.store.sessions import StoreSessions
from assay.store.set_aside import RunRemoval

KEYED: Final = ("task", "trial", "call", "response", "assessment", "body")
"""Tables that get their keys from `key_source`."""

_OLDEST_SQLITE: Final = (3, 35, 0)  # the first version with RETURNING


@dataclass(frozen=True, slots=True)
class Store:
    """An open store, with one attribute per group of operations."""

    journal: StoreJournal
    jobs: StoreJobs
    decisions: StoreDecisions
    archive: Archive
    calibrations: StoreCalibrations
    restoring: Restoring
    renaming: Renaming
    imports: StoreImports
    run_removal: RunRemoval
    leases: StoreLeases
    observations: StoreObservations
    control_items: StoreControlItems
    secret: StoreSecret
    people: StorePeople
    sessions: StoreSessions
    register: StoreRegister
    event_log: StoreEventLog
    arena: StoreArena
    check: StoreCheck
    database: Database
    clock: Clock
    """Dates the store's events; notes about them are dated by the same clock."""

    def identity(self) -> str:
        """Return the store's id: 16 hexadecimal digits."""
        return identity_of(self.database)

    def changes(self) -> int:
        """Return the number of changes of results that any process has committed."""
        with self.database.asking() as connection:
            return number_of_changes(connection)

    def close(self) -> None:
        """Release claims, finish writing and close the database; safe to call twice."""
        self.journal.close()


def open_store(
    url: str,
    *,
    clock: Clock,
    create: bool = True,
    read_only: bool = False,
    unfinished_copy: bool = False,
) -> Store:
    """Open the store at an address, and create or upgrade it if needed.

    Args:
        url: `sqlite:///path` (relative to the working folder, `sqlite:////path` from the root) or
            `postgresql://…`.
        clock: returns the times of events and runs.
        create: if False, raise `StoreError` instead of creating a store.
        read_only: never create, upgrade or change the store; every write raises `StoreError`.
        unfinished_copy: also open a store into which a copy was cut off, to copy into it again.

    Raises SettingsError if the address has a different form, and StoreError if the store cannot be
    opened, is damaged, is not an Assay store, or was written by a newer Assay.
    """
    address = _address(url)
    where = (
        address.database if address.get_backend_name() == "sqlite" else address.render_as_string()
    )
    where = f"store {where}"
    if address.get_backend_name() == "sqlite":
        _prepare_file(Path(address.database or ""), where=where, create=create and not read_only)
    database = _connected(address, where, read_only=read_only)
    try:
        _bring_up_to_date(database, create=create and not read_only)
        if not unfinished_copy:
            _refuse_unfinished_copy(database)
    except BaseException:
        database.close()
        raise
    owner = secrets.token_hex(8)
    names = NameKeys()
    locks: OwnerLocks
    if database.is_sqlite:
        locks = FileLocks(Path(address.database or "").absolute().parent / "workers", owner)
    else:
        locks = AdvisoryLocks(database, owner)
    claims = Claims(database, locks)
    writer = Writer(database, Recorder(database, names, claims, clock))
    writer.after_rollback(names.forget)
    writer.after_rollback(claims.doubt_lock)
    decisions = StoreDecisions(database, writer, clock)
    return Store(
        journal=StoreJournal(database, writer, names, claims, clock),
        jobs=StoreJobs(database, writer, claims, clock),
        decisions=decisions,
        archive=Archive.of(database, claims),
        calibrations=StoreCalibrations(database, writer),
        restoring=Restoring(database, writer, names),
        renaming=Renaming(database, writer, names, clock),
        imports=StoreImports(database, writer, names, claims, clock, decisions),
        run_removal=RunRemoval(database, writer, claims, clock),
        leases=StoreLeases(database),
        observations=StoreObservations(database, writer),
        control_items=StoreControlItems(database, writer, clock),
        secret=StoreSecret(database, writer),
        people=StorePeople(database, writer),
        sessions=StoreSessions(database, writer),
        register=StoreRegister(database, claims),
        event_log=StoreEventLog(database),
        arena=StoreArena(database, writer, clock),
        check=StoreCheck(database),
        database=database,
        clock=clock,
    )


def new_file_of(url: str) -> Path | None:
    """Return the path of a SQLite store that does not exist yet; None for any other store."""
    address = _address(url)
    if address.get_backend_name() != "sqlite":
        return None
    path = Path(address.database or "")
    return None if os.path.lexists(path) else path


def _address(url: str) -> URL:
    remedy = "Use sqlite:///path/to/assay.db or postgresql://user@host/database."
    try:
        address = make_url(url)
        backend = address.get_backend_name()
    except ArgumentError:
        raise SettingsError("store", f"{url!r} is not a store address.", remedy=remedy) from None
    if backend == "sqlite" and address.database and address.database != ":memory:":
        return address.set(drivername="sqlite+pysqlite")
    if backend in ("postgresql", "postgres"):
        return address.set(drivername="postgresql+psycopg")
    shown = address.render_as_string()  # without a password
    raise SettingsError("store", f"{shown!r} is not a store address.", remedy=remedy)


def _prepare_file(path: Path, *, where: str, create: bool) -> None:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreError(
            where, f"SQLite {sqlite3.sqlite_version} is too old.", remedy="Use 3.35 or later."
        )
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = None
    except (
        OSError,
        ValueError,
    ) as error:  # a folder without search permission, a name that is too long, or a NUL
        problem = f"cannot be reached: {getattr(error, 'strerror', None) or error}."
        raise StoreError(
            where, problem, remedy="Check the permissions of its folder, or select another file."
        ) from error
    if mode is not None:
        if S_ISDIR(mode):
            raise StoreError(
                where,
                "is a folder, not a file.",
                remedy="Select a file in it, for example assay.db.",
            )
        return
    if not create:
        raise StoreError(
            where,
            "there is no store yet.",
            remedy=("Create a store with `assay run`, or select another with --store."),
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"its folder cannot be created: {error.strerror}."
        raise StoreError(where, problem, remedy="Select another file with --store.") from error
    _begin_in_wal(path)


def _begin_in_wal(path: Path) -> None:
    """Create the file with a write-ahead log from the start.

    A later switch needs exclusive use of the file and fails if two processes try it at once. Errors
    are ignored here, because opening the file afterwards reports them better.
    """
    # Under load, six processes that opened a new file at the same time waited 30 s for each other.
    with (
        suppress(sqlite3.Error, OSError),
        alone(path.absolute().parent / "workers" / "opening.lock", most_s=WAIT_S),
    ):
        connection = sqlite3.connect(path, timeout=WAIT_S)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()


def _for_reading(path: Path, **how: str) -> URL:
    """Return the address of a file that SQLite opens without changing it."""
    query = {"mode": "ro", "uri": "true", **how}
    return URL.create(
        "sqlite+pysqlite", database=f"file:{quote(str(path.absolute()))}", query=query
    )


def _on_read_only_disk(path: Path, where: str) -> URL:
    """Return the address of a file on a read-only disk, where SQLite cannot create its log
    files.
    """
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        problem = "is on a read-only disk, and its log (-wal) contains results that Assay can read only in a writable folder."
        raise StoreError(
            where,
            problem,
            remedy="Copy both files to a writable folder, and select that copy with --store.",
        )
    return _for_reading(path, immutable="1")


def _connected(address: URL, where: str, *, read_only: bool) -> Database:
    path = Path(address.database or "")
    if address.get_backend_name() == "sqlite":
        if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            address, read_only = _on_read_only_disk(path, where), True
        elif read_only:
            address = _for_reading(path)
    try:
        return Database(address, where=where, read_only=read_only)
    except ModuleNotFoundError as error:
        problem = "needs the PostgreSQL driver, which is not installed."
        raise StoreError(
            where, problem, remedy='Install it with: pip install "assay-bench[postgres]"'
        ) from error


def _bring_up_to_date(database: Database, *, create: bool) -> None:
    with database.reading() as connection:
        version = _version(connection)
    # The usual case needs no write lock, so that opening does not wait for a run that is
    # committing.
    if version == schema.VERSION:
        return
    if database.read_only and version is not None:
        problem = f"has tables of version {version}, but this Assay needs version {schema.VERSION}."
        raise StoreError(
            database.where,
            problem,
            remedy=(
                "Open it once without --read-only to upgrade it, or use the Assay that wrote it."
            ),
        )
    if database.read_only:
        raise StoreError(
            database.where, "is not an Assay store.", remedy="Select another store with --store."
        )
    # Migrations write tables anew, to which other tables refer; `staging` turns SQLite's foreign
    # keys off.
    with database.writing_uncounted() if version is None else database.staging() as connection:
        # again: another process may have created or upgraded the store since
        version = _version(connection)
        if version is None:
            _refuse_foreign(connection, database, create=create)
            _create(connection)
        elif version > schema.VERSION:
            known = schema.VERSION
            problem = f"was written by a newer Assay (its tables have version {version}, this Assay supports up to {known})."
            raise StoreError(
                database.where,
                problem,
                remedy="Update Assay, or select another store with --store.",
            )
        elif version < schema.VERSION:
            _upgrade(connection, database, version)


def _upgrade(connection: Connection, database: Database, version: str) -> None:
    # Imported late, because Alembic takes half a second.
    from alembic.util import CommandError

    from assay.store.database import migrate

    try:
        migrate.upgrade(connection)
    except (CommandError, DBAPIError) as error:
        cause = error.orig or error if isinstance(error, DBAPIError) else error
        if isinstance(error, DBAPIError) and database.unusable(cause).remedy:
            raise  # such as a full disk, which has its own message
        problem = f"has tables of version {version} that cannot be upgraded ({' '.join(str(cause).split()).rstrip('.')})."
        aside = (
            "Move the file away" if database.is_sqlite else "Select an empty database with --store"
        )
        remedy = f"{aside}, then `assay import results --rebuild` restores its runs from the results folder."
        raise StoreError(database.where, problem, remedy=remedy) from error


def _refuse_unfinished_copy(database: Database) -> None:
    mark = select(schema.key_source.c.next).where(
        schema.key_source.c.name == schema.UNFINISHED_COPY
    )
    with database.reading() as connection:
        if connection.execute(mark).first() is not None:
            problem = "holds an unfinished copy of another store: the copy was cut off, and no row of it was kept."
            remedy = "Copy again with `assay store copy` or `assay store restore`, or remove it."
            raise StoreError(database.where, problem, remedy=remedy)


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(schema.VERSION_TABLE):
        return None
    return connection.execute(select(schema.version.c.version_num)).scalar_one_or_none()


def _refuse_foreign(connection: Connection, database: Database, *, create: bool) -> None:
    present = set(inspect(connection).get_table_names())
    foreign = present if database.is_sqlite else present & set(schema.metadata.tables)
    if foreign:
        problem = f"contains tables that are not Assay's ({', '.join(sorted(foreign)[:3])})."
        raise StoreError(
            database.where,
            problem,
            remedy="Select an empty database, or a file that does not exist yet.",
        )
    if not create:
        raise StoreError(
            database.where, "there is no store yet.", remedy="`assay run` creates one."
        )


def _create(connection: Connection) -> None:
    """Create the current tables directly, so that a new store needs no migration and no import of
    Alembic.
    """
    for statement in table_statements(connection.dialect.name, connection.dialect.driver):
        connection.exec_driver_sql(statement)
    connection.execute(insert(schema.key_source), [{"name": name, "next": 1} for name in KEYED])
    connection.execute(insert(schema.version), [{"version_num": schema.VERSION}])


@cache
def table_statements(dialect: str, driver: str) -> tuple[str, ...]:
    """Return the statements that create all tables and indexes; cached, because compiling them is
    slow.
    """
    statements: list[str] = []

    def keep(statement: ExecutableDDLElement, *_: object, **__: object) -> None:
        statements.append(str(statement.compile(dialect=engine.dialect)))

    engine = create_mock_engine(f"{dialect}+{driver}://", keep)
    for tables in (schema.metadata, schema.version_metadata):
        tables.create_all(engine, checkfirst=False)
    return tuple(statements)
