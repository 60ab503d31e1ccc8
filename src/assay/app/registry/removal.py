"""Delete, archive and restore runs, as recorded events. Results and decisions stay in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from assay.app.wire import document
from assay.domain.identifiers import RunId
from assay.domain.run_removal import RunEvent
from assay.domain.selection import RunSummary, Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.workspace import Workspace
    from assay.domain.run_removal import RunEvent
    from assay.store.opening import Store

REMOVALS: Final = {"delete": "deleted", "archive": "archived", "replace": "replaced"}
"""Kind of removal, as documents name it, for each verb of an event that takes a run out of use."""


@document
class RunEventsDocument:
    """JSON of `assay delete`, `assay archive` and their option `--list`."""

    events: tuple[RunEvent, ...]


def runs_to_take_out(store: Store, runs: Sequence[str]) -> tuple[RunSummary, ...]:
    """Return the runs that `assay delete` or `assay archive` would remove; raises `UnknownName`."""
    return store.archive.runs.matching(Selection(runs=tuple(runs)))


def take_out(
    workspace: Workspace,
    runs: Sequence[str],
    *,
    reason: str = "",
    reviewer: str | None = None,
    archived: bool = False,
) -> tuple[RunEvent, ...]:
    """Delete or archive runs and set their files aside; archived runs stay readable.

    Raises `UnknownName` or `Refused`.
    """
    events = workspace.store.run_removal.take_out(
        [RunId(run) for run in runs],
        reviewer=reviewer or workspace.reviewer,
        reason=reason,
        archived=archived,
    )
    for event in events:
        workspace.results.set_aside(event)
    return events


def restore(
    workspace: Workspace,
    run: str,
    *,
    reason: str = "",
    reviewer: str | None = None,
    archived: bool = False,
) -> RunEvent:
    """Restore a deleted or replaced run (with `archived`, an archived run); raises `UnknownName` or
    `Refused`.
    """
    event = workspace.store.run_removal.restore(
        run, reviewer=reviewer or workspace.reviewer, reason=reason, archived=archived
    )
    workspace.results.bring_back(event.run_id)
    return event


def events(store: Store) -> tuple[RunEvent, ...]:
    """Return all deletions, replacements and restorations of runs, oldest first."""
    return store.run_removal.events()


def of_batch(store: Store, batch_id: str) -> tuple[RunEvent, ...]:
    """Return the event that keeps each deleted, archived or replaced run of a batch out of use,
    oldest first.
    """
    return store.run_removal.of_batch(batch_id)


def events_document(listed: Sequence[RunEvent]) -> RunEventsDocument:
    return RunEventsDocument(events=tuple(listed))
