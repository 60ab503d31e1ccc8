"""The verbs of the registry: what runs there are, and what exactly one was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.domain.selection import Selection

if TYPE_CHECKING:
    from assay.app.wiring import Workspace
    from assay.domain.run import RunPlan
    from assay.domain.selection import RunSummary, TrialRow


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInFull:
    """A run with its plan and its trials."""

    summary: RunSummary
    plan: RunPlan
    trials: tuple[TrialRow, ...]


def runs(workspace: Workspace, selection: Selection | None = None) -> tuple[RunSummary, ...]:
    """Runs that match, newest first."""
    return workspace.archive.runs(selection or Selection())


def run_in_full(workspace: Workspace, run_id: str) -> RunInFull:
    """One run; a unique beginning of its id is enough. Raises `UnknownName`."""
    (summary,) = workspace.archive.runs(Selection(runs=(run_id,)))
    return RunInFull(
        summary=summary,
        plan=workspace.journal.plan_of(summary.id),
        trials=tuple(workspace.archive.trials(Selection(runs=(summary.id,)))),
    )
