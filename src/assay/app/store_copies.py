"""Back up, restore and copy stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.app.wire import document
from assay.domain.errors import Refused

if TYPE_CHECKING:
    from assay.app.workspace import Workspace


@document
class StoreCopyDocument:
    """JSON of `store backup`, `store restore` and `store copy`."""

    rows: int


def copy_to(workspace: Workspace, target_url: str) -> StoreCopyDocument:
    """Copy the workspace's store into a new or empty store and compare the two row by row."""
    return _copy(workspace, workspace.settings.store_url, target_url, read_only=workspace.read_only)


def copy_from(workspace: Workspace, source_url: str) -> StoreCopyDocument:
    """Copy another store into the workspace's store, which must be new or empty, and compare the two row by row."""
    if workspace.read_only:
        problem = "is open for reading only."
        raise Refused("store", problem, remedy="Restore without --read-only.")
    return _copy(workspace, source_url, workspace.settings.store_url)


def _copy(workspace: Workspace, source_url: str, target_url: str, *, read_only: bool = False) -> StoreCopyDocument:
    from assay.store.copying import copy_rows
    from assay.store.opening import open_store

    source = open_store(source_url, clock=workspace.clock, create=False, read_only=read_only)
    try:
        target = open_store(target_url, clock=workspace.clock)
        try:
            return StoreCopyDocument(rows=copy_rows(source.database, target.database))
        finally:
            target.close()
    finally:
        source.close()
