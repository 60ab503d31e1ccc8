"""The writing thread: commits queued writes together and resumes their callers after the commit.

Entries and other small writes share transactions. Calls that may be refused or take long get a
transaction each, in order of arrival. A transaction that loses its connection is repeated, unless
the server reports that it was committed. If a shared transaction fails, it is rolled back and each
of its writes is tried separately, so that one bad entry does not make the others fail.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import Connection

from assay.domain.errors import ConnectionLost, StoreError
from assay.domain.run import Entry
from assay.store.database.connections import Database
from assay.store.execution.group_commit import Recorded, Recorder

T = TypeVar("T")

SHARE_LIMIT: Final = 500
"""Maximum writes per commit, so that the first write does not wait for too many later ones."""


@dataclass(slots=True)
class _Shared:
    """A small write of an asyncio task, committed together with other writes."""

    what: Sequence[Entry] | Callable[[Connection], object]
    loop: asyncio.AbstractEventLoop
    waiter: asyncio.Future[Any]


@dataclass(slots=True)
class _Alone(Generic[T]):
    """A write with a separate transaction, whose caller blocks until the commit."""

    what: Callable[[Connection], T]
    waiter: Future[T]
    staging: bool = False
    once: bool = False
    counts: bool = True


class Writer:
    """Runs write transactions one after another in a separate thread, which the first write
    starts.
    """

    def __init__(self, database: Database, recorder: Recorder) -> None:
        self._database = database
        self._recorder = recorder
        self._queue: SimpleQueue[_Shared | _Alone[Any] | None] = SimpleQueue()
        self._starting = threading.Lock()  # protects _thread and _closed
        self._thread: threading.Thread | None = None
        self._closed = False
        self._forget: list[Callable[[], None]] = []
        self._joined: Connection | None = None
        self.commits = 0

    def after_rollback(self, forget: Callable[[], None]) -> None:
        self._forget.append(forget)

    def call(
        self, what: Callable[[Connection], T], *, once: bool = False, counts: bool = True
    ) -> T:
        """Run a function in a separate write transaction and wait for the commit.

        With `once`, a lost connection is an error, because the function can read its input only
        once. Without `counts`, the rows are none that a result is computed from. A nested call
        joins the outer call's transaction.
        """
        if self._joined is not None and threading.current_thread() is self._thread:
            return what(self._joined)
        return self.begin(what, once=once, counts=counts).result()

    def begin(
        self,
        what: Callable[[Connection], T],
        *,
        staging: bool = False,
        once: bool = False,
        counts: bool = True,
    ) -> Future[T]:
        """Start a function in a separate write transaction, and return without waiting for the
        commit.

        With `staging`, the transaction is one of `Database.staging`, whose rows are not visible
        yet; it is not repeated.
        """
        waiter: Future[T] = Future()
        self._put(_Alone(what, waiter, staging, once, counts))
        return waiter

    async def share(self, what: Sequence[Entry] | Callable[[Connection], T]) -> T | None:
        """Write entries, or run a small function that never raises, in a commit shared with other
        writes.
        """
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Any] = loop.create_future()
        self._put(_Shared(what, loop, waiter))
        result: T | None = await waiter
        return result

    def close(self) -> None:
        """Execute the queued writes and stop the thread; later writes raise `StoreError`."""
        with self._starting:
            self._closed = True
            thread = self._thread
        if thread is not None and thread.is_alive():
            self._queue.put(None)
            thread.join()

    def _put(self, item: _Shared | _Alone[Any]) -> None:
        with self._starting:
            if self._closed:
                raise StoreError(self._database.where, "is closed.")
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="assay-writer", daemon=True)
                self._thread.start()
            # Within the lock, so that no write is queued after the end mark of `close`.
            self._queue.put(item)

    def _work(self) -> None:
        following: _Shared | _Alone[Any] | None = None
        while True:
            item = following or self._queue.get()
            following = None
            if item is None:
                return
            if isinstance(item, _Alone):
                self._write_alone(item)
                continue
            together = [item]
            stop = False
            while len(together) < SHARE_LIMIT:
                try:
                    next_item = self._queue.get_nowait()
                except Empty:
                    break
                if next_item is None:
                    stop = True
                    break
                if isinstance(next_item, _Alone):
                    following = next_item
                    break
                together.append(next_item)
            self._write_shared(together)
            if stop:
                return

    def _write_alone(self, item: _Alone[Any]) -> None:
        try:
            if item.staging or item.once:
                with (
                    self._database.staging()
                    if item.staging
                    else self._database.writing() as connection
                ):
                    self._joined = connection
                    result = item.what(connection)
            else:
                result = self._write(item.what, counts=item.counts)
        except BaseException as error:
            self._rolled_back()
            item.waiter.set_exception(error)
        else:
            self.commits += 1
            item.waiter.set_result(result)
        finally:
            self._joined = None

    def _write_shared(self, together: Sequence[_Shared]) -> None:
        outcomes: list[tuple[_Shared, object, BaseException | None]]
        try:
            outcomes = [
                (item, result, None)
                for item, result in zip(together, self._transact(together), strict=True)
            ]
        except BaseException as error:
            self._rolled_back()
            if len(together) == 1 or isinstance(error, ConnectionLost):
                outcomes = [(item, None, error) for item in together]
            else:
                for item in together:
                    self._write_shared([item])
                return
        # One call for each loop instead of one for each write, because every call wakes its
        # selector.
        by_loop: dict[
            asyncio.AbstractEventLoop, list[tuple[_Shared, object, BaseException | None]]
        ] = defaultdict(list)
        for outcome in outcomes:
            by_loop[outcome[0].loop].append(outcome)
        for loop, of_loop in by_loop.items():
            try:
                loop.call_soon_threadsafe(_tell, of_loop)
            except (
                RuntimeError
            ):  # the loop was closed while its writes were under way; nobody is waiting any more
                continue

    def _transact(self, together: Sequence[_Shared]) -> list[object]:
        entries = [entry for item in together if not callable(item.what) for entry in item.what]

        def transact(connection: Connection) -> tuple[Recorded | None, list[object]]:
            recorded = self._recorder.record(connection, entries) if entries else None
            return recorded, [
                item.what(connection) if callable(item.what) else None for item in together
            ]

        recorded, results = self._write(transact)
        self.commits += 1
        if recorded is not None:
            # Only after the commit: a rollback must not change this process's records of its
            # trials.
            recorded.committed()
        return results

    def _write(self, what: Callable[[Connection], T], *, counts: bool = True) -> T:
        """Run a function in a write transaction; if the connection is lost before the commit,
        repeat it once.
        """
        unsure: tuple[int | None, T] | None = None
        writing = self._database.writing if counts else self._database.writing_uncounted

        def attempt() -> T:
            nonlocal unsure
            with writing() as connection:
                # This process has the write lock again, so the lost transaction has ended.
                if unsure is not None and self._database.was_committed(connection, unsure[0]):
                    return unsure[1]
                unsure = None
                result = what(connection)
                unsure = (self._database.transaction_of(connection), result)
            return result

        return self._database.patiently(attempt, lost=self._rolled_back)

    def _rolled_back(self) -> None:
        for forget in self._forget:
            forget()


def _tell(outcomes: Sequence[tuple[_Shared, object, BaseException | None]]) -> None:
    for item, result, error in outcomes:
        if item.waiter.done():
            continue  # cancelled in the meantime
        if error is None:
            item.waiter.set_result(result)
        else:
            item.waiter.set_exception(error)
