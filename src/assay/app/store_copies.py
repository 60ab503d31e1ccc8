"""Back up, restore and copy stores."""

from __future__ import annotations

import glob
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from assay.app.wire import document
from assay.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from assay.app.workspace import Workspace
    from assay.ports import Clock
    from assay.store.opening import Store


@document
class StoreCopyDocument:
    """JSON of `store backup`, `store restore` and `store copy`."""

    rows: int


def copy_to(workspace: Workspace, target_url: str) -> StoreCopyDocument:
    """Copy the workspace's store into a new or empty store and compare the two row by row."""
    return _copy(
        workspace.clock, workspace.settings.store_url, target_url, read_only=workspace.read_only
    )


def copy_from(workspace: Workspace, source_url: str) -> StoreCopyDocument:
    """Copy another store into the workspace's store, which must be new or empty, and compare the
    two row by row.
    """
    if workspace.read_only:
        problem = "is open for reading only."
        raise Refused("store", problem, remedy="Restore without --read-only.")
    return _copy(workspace.clock, source_url, workspace.settings.store_url)


def _copy(
    clock: Clock, source_url: str, target_url: str, *, read_only: bool = False
) -> StoreCopyDocument:
    from assay.store.opening import new_file_of, open_store

    source = open_store(source_url, clock=clock, create=False, read_only=read_only)
    try:
        file = new_file_of(target_url)
        rows = (
            _to_store(clock, source, target_url)
            if file is None
            else _to_new_file(clock, source, file)
        )
        return StoreCopyDocument(rows=rows)
    finally:
        source.close()


def _to_store(clock: Clock, source: Store, target_url: str) -> int:
    """Copy into an empty database that exists already; it is marked as unfinished until the copy is
    complete.
    """
    from assay.store.copying import copy_rows, mark_unfinished
    from assay.store.opening import open_store

    target = open_store(target_url, clock=clock, unfinished_copy=True)
    try:
        mark_unfinished(target.database)
        return copy_rows(source.database, target.database)
    finally:
        target.close()


def _to_new_file(clock: Clock, source: Store, file: Path) -> int:
    """Copy into a new SQLite file, which gets its name once the copy is complete, verified and on
    disk.
    """
    from assay.exchange.results_folder.atomic_files import force_folder, give_name, part_of
    from assay.store.copying import copy_rows, settle_file
    from assay.store.opening import open_store

    _remove_left_parts(file)
    part = part_of(file)
    try:
        with _held(part):
            target = open_store(f"sqlite:///{part}", clock=clock)
            try:
                rows = copy_rows(source.database, target.database)
            finally:
                target.close()
            settle_file(part)
        give_name(part, file)
    finally:
        _remove(part)
    force_folder(file.absolute().parent)
    return rows


@contextmanager
def _held(part: Path) -> Iterator[None]:
    """Hold a lock beside an unfinished file, so that other processes can tell it from one that a
    killed process left.
    """
    from assay.store.claims.process_locks import try_lock

    lock = part.with_name(f"{part.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("wb") as file:
        try_lock(file.fileno())
        yield


def _remove_left_parts(file: Path) -> None:
    """Remove unfinished copies that killed processes left beside a file."""
    from assay.store.claims.process_locks import try_lock

    for lock in file.absolute().parent.glob(f".{glob.escape(file.name[:100])}.*.part.lock"):
        with suppress(OSError), lock.open("rb") as opened:
            if try_lock(opened.fileno()):
                _remove(lock.with_name(lock.name.removesuffix(".lock")))


def _remove(part: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal", ".lock"):
        part.with_name(f"{part.name}{ending}").unlink(missing_ok=True)
