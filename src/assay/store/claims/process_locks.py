"""Locks that show if a process is alive.

They need no clock, because the system releases a lock when its process ends.

On SQLite the lock is a file in `workers/` next to the store; on PostgreSQL it is a session advisory
lock. If a lock can be taken, its owner has ended, even if it wrote recently. If a lock cannot be
taken, its owner is alive, even if it has been silent for hours.
"""

from __future__ import annotations

import errno
import os
import sys
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Final, Protocol

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from assay.domain.errors import MORE_FILES, StoreError
from assay.store.database.connections import REST_S, Database


class OwnerLocks(Protocol):
    """Interface that holds this process's lock and tests the locks of other processes."""

    @property
    def owner(self) -> str: ...

    def hold(self) -> None:
        """Take this process's lock if this process does not hold it."""
        ...

    def doubt(self) -> None:
        """Make the next `hold` check the lock, because a connection was lost."""
        ...

    def gone(self, owner: str, /, *, patient: bool = False) -> bool:
        """True if the owner's process has ended.

        If `patient`, wait briefly for a process that is ending.
        """
        ...

    def forget(self, owner: str, /) -> None:
        """Delete the lock of an owner whose claims were voided."""
        ...

    def close(self) -> None: ...


class FileLocks:
    """File locks between processes on one machine.

    They use `flock` instead of POSIX record locks, because two journals in one process must also
    exclude each other. Forked children close their copy; otherwise a killed parent would appear
    alive.
    """

    def __init__(self, folder: Path, owner: str) -> None:
        self.owner = owner
        self._folder = folder
        self._held: int | None = None

    def hold(self) -> None:
        if self._held is not None:
            return
        path = self._path(self.owner)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            problem = f"its lock file cannot be created: {error.strerror}."
            exhausted = error.errno in (errno.EMFILE, errno.ENFILE)
            remedy = MORE_FILES if exhausted else "Check the permissions of the folder."
            raise StoreError(str(path), problem, remedy=remedy) from error
        if not try_lock(held):
            os.close(held)
            raise StoreError(str(path), "is locked by another process.", remedy="Try again.")
        self._held = held
        _close_in_children(self)

    def doubt(self) -> None:
        """Do nothing, because only the end of this process releases a file lock."""

    def gone(self, owner: str, /, *, patient: bool = False) -> bool:
        try:
            descriptor = os.open(self._path(owner), os.O_RDWR)
        except FileNotFoundError:
            return True
        except OSError:
            return False  # unreadable: assume that it is alive
        try:
            return try_lock(descriptor)
        finally:
            os.close(descriptor)

    def forget(self, owner: str, /) -> None:
        self._path(owner).unlink(missing_ok=True)

    def close(self) -> None:
        if self._held is not None:
            self._path(self.owner).unlink(missing_ok=True)
            self.let_go()

    def let_go(self) -> None:
        """Close the lock file, but leave it in place."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _path(self, owner: str) -> Path:
        return self._folder / f"{owner}.lock"


@contextmanager
def alone(path: Path, *, most_s: float) -> Iterator[None]:
    """Hold a file lock, and create the file if needed; continue without the lock after `most_s`
    seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    held = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        deadline = monotonic() + most_s
        while not try_lock(held) and monotonic() < deadline:
            sleep(0.01)
        yield
    finally:
        os.close(held)


_ADVISORY_CLASS: Final = 0x41535359
_PATIENCE_MS: Final = 500


class AdvisoryLocks:
    """PostgreSQL session locks between processes on any machine, held by a dedicated connection.

    A restart of the server or network ends the connection and releases the lock. `hold` detects
    this and takes the lock again. Meanwhile other processes may have voided this process's claims.
    The owner column of each trial then prevents this process from storing results for a trial that
    another process took over.
    """

    def __init__(self, database: Database, owner: str) -> None:
        self.owner = owner
        self._database = database
        self._open = ExitStack()
        self._session: Connection | None = None
        self._checked = 0.0

    def hold(self) -> None:
        if self._session is not None and monotonic() - self._checked > REST_S:
            try:
                self._session.execute(text("SELECT 1"))
                self._checked = monotonic()
            except SQLAlchemyError:
                self._drop()
        if self._session is None:
            with self._database.translated():
                self._session = self._open.enter_context(self._database.dedicated())
                self._session.execute(
                    text("SELECT pg_advisory_lock(:room, :owner)"), self._names(self.owner)
                )
            self._checked = monotonic()

    def doubt(self) -> None:
        self._checked = 0.0

    def gone(self, owner: str, /, *, patient: bool = False) -> bool:
        with (
            self._database.dedicated() as connection,
            self._trying(connection, owner, patient=patient) as taken,
        ):
            return taken

    def forget(self, owner: str, /) -> None:
        pass

    def close(self) -> None:
        if self._session is not None:
            # The connection goes back to the pool, and would keep its lock there. After a restart
            # of the server there is no lock to release, and an error here would hide why the run
            # stopped.
            with suppress(SQLAlchemyError):
                self._session.execute(text("SELECT pg_advisory_unlock_all()"))
        self._drop()

    def _drop(self) -> None:
        self._session = None
        with suppress(SQLAlchemyError, StoreError):
            self._open.close()

    @contextmanager
    def _trying(self, connection: Connection, owner: str, *, patient: bool) -> Iterator[bool]:
        """Try to take the lock, yield True on success, and release the lock at the end."""
        names = self._names(owner)
        taken = connection.execute(
            text("SELECT pg_try_advisory_lock(:room, :owner)"), names
        ).scalar_one()
        waited = 0
        while patient and not taken and waited < _PATIENCE_MS:
            # The server notices a few milliseconds late that a killed client is gone.
            connection.execute(text("SELECT pg_sleep(0.02)"))
            waited += 20
            taken = connection.execute(
                text("SELECT pg_try_advisory_lock(:room, :owner)"), names
            ).scalar_one()
        try:
            yield bool(taken)
        finally:
            if taken:
                connection.execute(text("SELECT pg_advisory_unlock(:room, :owner)"), names)

    @staticmethod
    def _names(owner: str) -> dict[str, int]:
        # 28 bits of the owner: PostgreSQL takes two signed 32-bit numbers.
        return {"room": _ADVISORY_CLASS, "owner": int(owner[:7], 16)}


if sys.platform == "win32":
    import msvcrt

    def try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _close_in_children(locks: FileLocks) -> None:
        """Close the lock in forked children; does nothing on Windows, which does not fork."""

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _close_in_children(locks: FileLocks) -> None:
        # A weak reference: a fork hook cannot be removed, and would keep the locks of every closed
        # store.
        remembered = weakref.ref(locks)

        def close() -> None:
            held_locks = remembered()
            if held_locks is not None:
                held_locks.let_go()

        os.register_at_fork(after_in_child=close)
