"""Open a workspace as commands, the server and Python functions do: its decisions mint snapshots.

Minting needs most verbs, which is why `Workspace` does not import it and receives it from here.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from assay.app.workspace import Workspace
from assay.domain.errors import AssayError
from assay.domain.lifecycle import AssessmentPurpose
from assay.domain.observations import ObservationKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from assay.domain.review import ReviewEvent


def open_workspace(
    folder: Path | None = None,
    *,
    options: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    read_only: bool = False,
) -> Workspace:
    """Open a folder's workspace, whose decisions carry out the mints that awaited them.

    `options` override settings. With `read_only`, store and results stay unchanged.
    """
    return Workspace.open(
        folder,
        options=options,
        environment=environment,
        read_only=read_only,
        after_decisions=mint_awaited,
    )


def mint_awaited(workspace: Workspace, events: Sequence[ReviewEvent]) -> None:
    """Mint the snapshots that awaited these decisions."""
    numbers = [event.id for event in events if event.decision.purpose is AssessmentPurpose.WORK]
    # the decisions are stored; `assay mint --pending` repeats what is lost here
    with suppress(AssayError):
        store = workspace.store
        runs = store.archive.runs.decided_after(min(numbers) - 1) if numbers else ()
        if any(store.observations.read(kinds=(ObservationKind.MINT,), run=run) for run in runs):
            # few projects wait for a mint, and the others load nothing
            from assay.app.specialists.waiting import mint_due

            mint_due(workspace, runs)
