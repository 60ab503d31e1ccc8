"""Events that delete, archive, replace or restore a run."""

from __future__ import annotations

from dataclasses import dataclass

from assay.domain.errors import Refused
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import SET_ASIDE, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """Event: a run was deleted, archived, replaced by a later import, or restored.

    Attributes:
        verb: `delete`, `archive`, `replace` or `restore`.
        replaced_by: the run of the later version; None for the other verbs.
        reviewer: who did it; empty for an import.
        stands: True if the run is still out of use because of this event.
    """

    id: int
    run_id: RunId
    verb: str
    replaced_by: RunId | None
    reviewer: str
    reason: str
    at: str
    stands: bool


def brings_back(run: str, state: str) -> str:
    """Return the command that restores a run whose state is in `SET_ASIDE`."""
    return f"assay {'archive' if state == RunState.ARCHIVED else 'delete'} {run} --undo"


def check_in_use(run: str, state: RunState) -> None:
    """Raise `Refused` if a run is deleted, replaced or archived, and therefore read-only."""
    if state in SET_ASIDE:
        raise Refused(
            run, f"was {state}, so it can only be read.", remedy=f"First: {brings_back(run, state)}"
        )
