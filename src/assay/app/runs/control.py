"""Pause, resume and cancel runs from any process, and list the actions that a run's state allows.

Pause and cancel are requests in the store. The process that executes the run checks for them: it
finishes the trials in progress, releases the others, and then waits (pause) or exits (cancel).
Resume withdraws the request if a process is still waiting; otherwise it returns the run, which the
caller must then execute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from assay.app.runs.execution import resumable
from assay.domain.errors import Refused
from assay.domain.lifecycle import TO_COME, RunState, TrialState
from assay.domain.selection import RunSummary, Selection

if TYPE_CHECKING:
    from assay.app.workspace import Workspace
    from assay.domain.identifiers import RunId
    from assay.store.opening import Store

PAUSE, RESUME, CANCEL, EXTEND, COLLECT = "pause", "resume", "cancel", "extend", "collect"

_MOVES: Final = {
    RunState.PLANNED: (RESUME, CANCEL),
    RunState.RUNNING: (PAUSE, CANCEL),
    RunState.SUBMITTED: (COLLECT, PAUSE, CANCEL),
    RunState.PAUSED: (RESUME, CANCEL),
    RunState.INTERRUPTED: (RESUME, CANCEL),
    RunState.CANCELLED: (RESUME,),
    RunState.FINISHED: (EXTEND,),
}
_OPEN: Final = (*TO_COME, TrialState.FAILED)


def moves(summary: RunSummary) -> tuple[str, ...]:
    """Return the actions that a run's state allows; none for an imported run."""
    if summary.imported:
        return ()
    if summary.state is RunState.FINISHED and summary.trials.get(TrialState.FAILED):
        return (RESUME, EXTEND)
    if summary.state is RunState.CANCELLED and not any(
        summary.trials.get(state) for state in _OPEN
    ):
        return (EXTEND,)
    known = _MOVES.get(summary.state, ())
    return (
        (COLLECT, *known)
        if summary.trials.get(TrialState.SUBMITTED) and COLLECT not in known
        else known
    )


def pause(store: Store, run_id: str) -> RunSummary:
    """Request that no new trial starts until the run is resumed; raises `Refused` for a run that is
    not executing.
    """
    return _wish(store, run_id, PAUSE, RunState.PAUSED)


def cancel(store: Store, run_id: str) -> RunSummary:
    """Request that no new trial starts. Finished trials are kept, and the run can be resumed."""
    return _wish(store, run_id, CANCEL, RunState.CANCELLED)


def collectable(store: Store, run_id: str) -> RunId:
    """Return the id of a run whose batches can be collected; raises `Refused` for any other run."""
    summary = named(store, run_id)
    if COLLECT not in moves(summary):
        _refuse(summary, COLLECT)
    return summary.id


def needs_somebody(workspace: Workspace, run_id: str) -> RunSummary | None:
    """Resume a run; return the run if the caller must execute it, None if a waiting process does.

    Raises `Refused`.
    """
    summary = named(workspace.store, run_id)
    if summary.imported:
        resumable(workspace, summary.id)  # raises the reason
    if RESUME not in moves(summary):
        _refuse(summary, RESUME)
    if not any(summary.trials.get(state) for state in _OPEN):
        raise Refused(summary.id, "has no trials left.", remedy="Extend it to add more.")
    if summary.state is RunState.PAUSED and workspace.journal.is_carried_out(summary.id):
        workspace.journal.set_state(summary.id, RunState.RUNNING)
        return None
    return summary


def _wish(store: Store, run_id: str, move: str, state: RunState) -> RunSummary:
    summary = named(store, run_id)
    if summary.state is not state:  # a repeated request succeeds
        if move not in moves(summary):
            _refuse(summary, move)
        store.journal.set_state(summary.id, state)
    return named(store, summary.id)


def named(store: Store, run_id: str) -> RunSummary:
    (summary,) = store.archive.runs.matching(Selection(runs=(run_id,)))
    return summary


def _refuse(summary: RunSummary, move: str) -> None:
    possible = moves(summary)
    remedy = f"It can be: {', '.join(_DONE[verb] for verb in possible)}." if possible else ""
    raise Refused(summary.id, f"is {summary.state} and cannot be {_DONE[move]}.", remedy=remedy)


_DONE: Final = {
    PAUSE: "paused",
    RESUME: "resumed",
    CANCEL: "cancelled",
    EXTEND: "extended",
    COLLECT: "collected",
}
