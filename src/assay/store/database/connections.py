"""Connections, transactions and bulk inserts that hide the differences between SQLite and
PostgreSQL.

A store has one write transaction at a time: `BEGIN IMMEDIATE` on SQLite, an advisory lock on
PostgreSQL. Therefore a transaction may read and then write without checking again, keys follow the
order of commits, and deadlocks cannot occur. Group commits make up for the lost parallelism. Reads
use a snapshot and never wait.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Table,
    bindparam,
    case,
    create_engine,
    event,
    text,
    update,
)
from sqlalchemy.exc import DBAPIError, DisconnectionError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from assay.domain.errors import (
    MORE_FILES,
    AssayError,
    ConnectionLost,
    InputError,
    ReadOnlyStore,
    StoreError,
)
from assay.store.database import schema
from assay.store.database.change_counter import count_change

T = TypeVar("T")

WAIT_S: Final = 30.0
"""Seconds to wait for another process's transaction or for a restarting server."""

_LONGEST_PAUSE_S: Final = 2.0
"""Longest pause in seconds between two connection attempts.

The first pause is 0.05 s, and each further pause doubles.
"""

REST_S: Final = 0.5
"""Seconds after which an idle PostgreSQL connection is tested before use, because servers restart
and networks fail.
"""

WRITE_LOCK: Final = 0x41737361
"""The PostgreSQL advisory lock that allows one write transaction at a time."""

# FULL: with NORMAL, a power failure may lose the last commits after callers were told that their
# answers are stored.
_AS_USUAL: Final = (
    "PRAGMA synchronous=FULL",
    "PRAGMA wal_autocheckpoint=1000",
    "PRAGMA foreign_keys=ON",
)
_STAGING: Final = (
    "PRAGMA synchronous=NORMAL",
    "PRAGMA wal_autocheckpoint=16000",
    "PRAGMA cache_size=-64000",
    "PRAGMA foreign_keys=OFF",
)
"""A large cache and rare checkpoints: an import changes pages all over its indexes, and each page
should be written only once. Foreign keys are off, because an import creates all of its keys in the
same transaction; tests check them afterwards.
"""

_FILES_NEEDED: Final = 4
"""Files that SQLite opens per connection: the database, its log, the log's index, and a temporary
file.
"""

_CHUNKS: Final = (128, 32, 8, 2, 1)
"""Rows per INSERT. One statement for many rows releases the interpreter lock only once. With
executemany, a busy event loop would take the lock after every row. There are few sizes, so that
prepared statements are reused.
"""


class Database:
    """An open SQLite or PostgreSQL database, and its transactions.

    `url`: a complete SQLAlchemy address. `where`: the store's name in messages, without a password.
    `read_only`: write transactions raise `ReadOnlyStore`.
    """

    def __init__(self, url: URL, *, where: str, read_only: bool = False) -> None:
        self.where = where
        self.read_only = read_only
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self._engine = _sqlite_engine(url) if self.is_sqlite else _postgres_engine(url)
        if self.is_sqlite:
            self._asker = self._engine
            self._reader: Engine = self._engine.execution_options(assay_begin="BEGIN")
            # Measured for decisions next to a committing engine: with plain BEGIN, 237 of 300 ended
            # with "database is locked", because a snapshot that another commit has overtaken cannot
            # be upgraded to a write. With IMMEDIATE: none, p95 2.7 ms.
            self._writer: Engine = self._engine.execution_options(assay_begin="BEGIN IMMEDIATE")
        else:
            self._asker = self._engine.execution_options(isolation_level="AUTOCOMMIT")
            # At the server's default, READ COMMITTED, each statement would see a different
            # snapshot.
            self._reader = self._engine.execution_options(isolation_level="REPEATABLE READ")
            # The server's number is kept for `was_committed`, which needs it if COMMIT gets no
            # reply.
            begin = f"SELECT pg_advisory_xact_lock({WRITE_LOCK}), txid_current()"
            self._writer = self._engine.execution_options(assay_begin=begin)
        self._path = url.database if self.is_sqlite else None
        self._file = self._identity()
        self._mark = "?" if self.is_sqlite else "%s"
        self._statements: dict[tuple[str, int], str] = {}
        self._given_up = False

    def patiently(self, attempt: Callable[[], T], *, lost: Callable[[], None] | None = None) -> T:
        """Call `attempt` and return its result; while the server is unreachable, retry for up to
        `WAIT_S`.

        `attempt` opens its own transactions and may be repeated after a rollback. `lost` is called
        before each repetition.
        """
        # Once one attempt is given up, the others that wait behind it fail immediately, so that the
        # process can end.
        deadline = time.monotonic() + (0.0 if self._given_up else WAIT_S)
        pause = 0.05
        while True:
            try:
                result = attempt()
            except ConnectionLost:
                if time.monotonic() > deadline:
                    self._given_up = True
                    raise
                if lost is not None:
                    lost()
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            else:
                self._given_up = False
                return result

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self.translated(), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def asking(self) -> Iterator[Connection]:
        """Yield a connection for a single query without a transaction, which saves two thirds of
        the network round trips.
        """
        with self.translated(), self._asker.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a write transaction, which is committed at the end or rolled back by an exception.

        Raises StoreError if the store's file was deleted or replaced since it was opened.
        """
        with self.writing_uncounted() as connection:
            # First, so that a copy of a store, which replaces all rows, equals its original.
            count_change(connection)
            yield connection

    @contextmanager
    def writing_uncounted(self) -> Iterator[Connection]:
        """Yield a transaction of `writing` that is no change of a result (`change_counter`): the
        creation of the tables, or rows that only review itself reads.
        """
        self._check_writable()
        with self.translated(), self._writer.begin() as connection:
            self._check_file(connection)
            yield connection

    def transaction_of(self, connection: Connection) -> int | None:
        """Return the server's number of an open write transaction; None on SQLite, whose connection
        cannot be lost.
        """
        return connection.info.get(_TRANSACTION)

    def was_committed(self, connection: Connection, transaction: int | None) -> bool:
        """True if an earlier write transaction was committed although its connection was lost
        during the commit.
        """
        status = connection.execute(text("SELECT txid_status(:number)"), {"number": transaction})
        return bool(status.scalar_one() == "committed")

    @contextmanager
    def staging(self) -> Iterator[Connection]:
        """Yield a write transaction for rows that stay invisible until a later `writing`
        transaction publishes them.

        A power failure may undo the last of these transactions. The commit of the later one also
        puts their rows on disk.
        """
        if not self.is_sqlite:
            with self.writing() as connection:
                yield connection
            return
        self._check_writable()
        with self.translated(), self._engine.connect() as plain:
            raw = plain.connection.driver_connection
            assert raw is not None
            # Before BEGIN: within a transaction SQLite ignores a change of foreign_keys and refuses
            # one of synchronous.
            for pragma in _STAGING:
                raw.execute(pragma)
            try:
                connection = plain.execution_options(assay_begin="BEGIN IMMEDIATE")
                with connection.begin():
                    self._check_file(connection)
                    count_change(connection)
                    yield connection
            finally:
                for pragma in _AS_USUAL:
                    raw.execute(pragma)

    @contextmanager
    def writing_lightly(self) -> Iterator[Connection]:
        """Yield a write transaction that a power failure may undo; other connections see its rows
        at once.

        It is for leases, and so does not count as a change (`change_counter`).
        """
        self._check_writable()
        with self.translated(), self._writer.connect() as connection:
            driver = connection.connection.dbapi_connection
            assert driver is not None
            if self.is_sqlite:
                driver.execute("PRAGMA synchronous=NORMAL")
            try:
                with connection.begin():
                    self._check_file(connection)
                    if not self.is_sqlite:
                        connection.exec_driver_sql("SET LOCAL synchronous_commit TO OFF")
                    yield connection
            finally:
                if self.is_sqlite:
                    driver.execute("PRAGMA synchronous=FULL")

    @contextmanager
    def dedicated(self) -> Iterator[Connection]:
        """Yield a separate connection without a transaction, for session locks."""
        with self.translated(), self._engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    def insert(
        self, connection: Connection, table: Table, rows: Sequence[tuple[object, ...]]
    ) -> None:
        """Insert rows with values in the order of the table's columns."""
        start = 0
        for size in _CHUNKS:
            while len(rows) - start >= size:
                flat = [value for row in rows[start : start + size] for value in row]
                # Measured: the ORM's `add_all` takes 3.5 times as long as SQLAlchemy Core, and 6
                # times as long as plain SQL.
                connection.exec_driver_sql(self._insert_statement(table, size), tuple(flat))
                start += size

    def insert_many(
        self, connection: Connection, table: Table, rows: Sequence[tuple[object, ...]]
    ) -> None:
        """Insert thousands of rows at once.

        Use this only if no event loop in this process is waiting.
        """
        if not self.is_sqlite:
            self.insert(connection, table, rows)
        elif rows:
            # The driver directly: SQLAlchemy looks at every row, which took half the time of an
            # import.
            raw = connection.connection.driver_connection
            assert raw is not None
            raw.executemany(self._insert_statement(table, 1), rows)

    def close(self) -> None:
        self._engine.dispose()

    def _check_writable(self) -> None:
        if self.read_only:
            remedy = "Omit --read-only, and check that you may write the file and its folder."
            raise ReadOnlyStore(
                self.where, "cannot be changed, because it is open for reading only.", remedy=remedy
            )

    def _check_file(self, connection: Connection) -> None:
        """Raise `StoreError` if the store's file or log was deleted or replaced while the store was
        open.
        """
        # SQLite keeps writing to a deleted file, and reports every commit as a success.
        if self._path is None:
            return
        identity, log = self._identity(), self._identity("-wal")
        # SQLite keeps the file as long as a connection has it open
        known_log = connection.info.setdefault(_LOG, log)
        if (identity, log) == (self._file, known_log):
            return
        happened = "was deleted" if identity is None else "was replaced by another file"
        if identity == self._file:
            happened = "had its log (-wal) deleted or replaced"
        raise StoreError(
            self.where,
            f"{happened} while this process had it open, so nothing more is stored.",
            remedy="Put the file back, or start Assay again; `assay import FOLDER --rebuild` restores runs from the "
            "results folder.",
        )

    def _identity(self, ending: str = "") -> tuple[int, int] | None:
        try:
            status = os.stat(f"{self._path or ''}{ending}")
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _insert_statement(self, table: Table, size: int) -> str:
        key = (table.name, size)
        statement = self._statements.get(key)
        if statement is None:
            columns = ", ".join(f'"{column.name}"' for column in table.columns)
            row = "(" + ", ".join([self._mark] * len(table.columns)) + ")"
            statement = f'INSERT INTO "{table.name}" ({columns}) VALUES ' + ", ".join([row] * size)
            self._statements[key] = statement
        return statement

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self.unusable(error.orig or error, lost=error.connection_invalidated) from error
        except SQLAlchemyError as error:
            raise self.unusable(error) from error
        except UnicodeDecodeError as error:
            # A damaged schema, which SQLite quotes in its message, or a damaged text.
            raise self.unusable(sqlite3.DatabaseError("Could not decode to UTF-8")) from error
        except Exception as error:
            # If not even a connection can be made, the driver's own error is raised.
            if isinstance(error, self._engine.dialect.loaded_dbapi.Error):
                raise self.unusable(error) from error
            raise

    def unusable(self, error: BaseException, *, lost: bool = False) -> AssayError:
        """Return the driver's error as a `StoreError` with a remedy, or as an `InputError` if the
        caller's input caused it.
        """
        complaint = " ".join(str(error).split())
        if "contain NUL" in complaint:
            # No stored name contains a NUL character, so the caller asked for something that does
            # not exist.
            return InputError(
                "", "a name or filter contains a NUL character (\\x00).", remedy="Remove it."
            )
        if "unable to open database file" in complaint and _files_exhausted():
            return StoreError(
                self.where, "cannot be opened: too many files are open.", remedy=MORE_FILES
            )
        for sign, problem, remedy in _COMPLAINTS:
            if sign in complaint:
                return StoreError(self.where, problem, remedy=remedy)
        if lost or any(sign in complaint for sign in _UNREACHABLE):
            problem = "the PostgreSQL server cannot be reached."
            return ConnectionLost(
                self.where, problem, remedy="Check that it runs and that the address is right."
            )
        return StoreError(self.where, f"the database refused: {complaint}.")


def _files_exhausted() -> bool:
    """True if this process cannot open the files that SQLite needs; SQLite reports this as a
    missing folder.
    """
    held: list[int] = []
    try:
        held.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(_FILES_NEEDED))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    finally:
        for descriptor in held:
            os.close(descriptor)
    return False


_COMPLAINTS: Final = (
    (
        "file is not a database",
        "is not an Assay store.",
        "Select another file with --store, or move this one away.",
    ),
    (
        "malformed",
        "is damaged.",
        "Restore it from a backup; `sqlite3 FILE .recover` may save part of the data.",
    ),
    (
        "Could not decode to UTF-8",
        "is damaged.",
        "Restore it from a backup; `assay doctor --check-store` lists the damage.",
    ),
    (
        "database is locked",
        f"another process has kept it locked for {WAIT_S:.0f} s.",
        "Stop that process, or try again after it has finished.",
    ),
    (
        "unable to open database file",
        "cannot be opened.",
        "Check that its folder exists and that you may write there, or select another with --store.",
    ),
    (
        "readonly database",
        "may not be written.",
        "Check that you may write the file and its folder.",
    ),
    ("disk is full", "the disk is full.", "Free some space. Committed data is safe."),
    (
        "disk I/O error",
        "the disk failed to read or write.",
        "Use a folder on a local disk with free space.",
    ),
    (
        "authentication failed",
        "the PostgreSQL server refused the login.",
        "Check the user name and the password.",
    ),
)

_UNREACHABLE: Final = (
    *("connection failed", "connection is bad", "the connection is closed", "connection is lost"),
    # SQLAlchemy does not notice if a process loses its first connection while setting it up.
    *("terminating connection", "consuming input failed"),
)

_TRANSACTION: Final = "assay_transaction"
_LOG: Final = "assay_log"


def take_keys(connection: Connection, **counts: int) -> dict[str, range]:
    """Reserve new keys of some tables in a write transaction, so that no other process gets the
    same keys.
    """
    source = schema.key_source
    # Blocks of keys replace AUTOINCREMENT, because each insert would have to return its key before
    # the next row could refer to it. Blocks are taken in the transaction, so a rollback leaves no
    # gaps.
    more = case(
        *((source.c.name == name, bindparam(name, type_=schema.Key)) for name in counts), else_=0
    )
    statement = (
        update(source)
        .where(source.c.name.in_(list(counts)))
        .values(next=source.c.next + more)
        .returning(source.c.name, source.c.next)
    )
    after = {name: int(following) for name, following in connection.execute(statement, counts)}
    return {name: range(after[name] - count, after[name]) for name, count in counts.items()}


def portions(items: Collection[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of at most `size`, because a statement accepts only a few thousand
    parameters.
    """
    listed = list(items)
    for start in range(0, len(listed), size):
        yield listed[start : start + size]


def among(column: Column[int], keys: Collection[int]) -> ColumnElement[bool]:
    """Return the condition that a column holds one of these keys, as a range if no number between
    them is missing.

    A range has two parameters. With one parameter for each of 1,000 keys, building the statement
    took longer than executing it.
    """
    distinct = set(keys)
    if len(distinct) > 1 and (high := max(distinct)) - (low := min(distinct)) == len(distinct) - 1:
        return column.between(low, high)
    return column.in_(distinct)


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(
        url,
        connect_args={"timeout": WAIT_S, "cached_statements": 512, "check_same_thread": False},
        pool_size=4,
        max_overflow=64,
    )

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # `_begin_by_option` sends BEGIN
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA cache_size=-4000")
        # The mode is read first: setting it needs exclusive use of the file, and would wait for
        # every other process.
        if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            cursor.execute("PRAGMA journal_mode=WAL")
        cursor.close()

    _begin_by_option(engine)
    return engine


def _postgres_engine(url: URL) -> Engine:
    engine = create_engine(url, pool_size=4, max_overflow=64)
    _look_after_rest(engine)
    _begin_by_option(engine)
    return engine


def _look_after_rest(engine: Engine) -> None:
    """Test an idle connection before its use; testing before every use would double the time of a
    small query.
    """

    @event.listens_for(engine, "checkin")
    def _rests(_connection: object, record: ConnectionPoolEntry) -> None:
        record.info["since"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _looked_at(connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
        # Every statement is a round trip. This test, single queries without BEGIN and reading the
        # protocol only once reduced a decision from 87 statements to 47.
        if time.monotonic() - record.info.get("since", float("inf")) > REST_S:
            try:
                engine.dialect.do_ping(connection)
            except engine.dialect.loaded_dbapi.Error as error:
                raise DisconnectionError from error  # the pool makes a new one


def _begin_by_option(engine: Engine) -> None:
    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        statement = connection.get_execution_options().get("assay_begin")
        if statement:
            begun = connection.exec_driver_sql(statement)
            if begun.returns_rows:
                connection.info[_TRANSACTION] = begun.one()[1]
