"""Cache of run plans, because pages read the newest ones repeatedly. A plan is read again when a candidate or judge joins."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from assay.app.workspace import Workspace
    from assay.domain.run import RunPlan
    from assay.domain.selection import RunSummary

NEWEST: Final = 20
"""Number of newest runs whose models and judges are considered in use."""

_KEPT: Final = 200


class Plans:
    """Plans by run. Thread-safe."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = Lock()
        self._kept: dict[tuple[str, tuple[str, ...], tuple[str, ...]], RunPlan] = {}

    def newest(self) -> tuple[RunPlan, ...]:
        """Return the plans of the newest runs, newest first."""
        return tuple(self.of(summary) for summary in self._workspace.archive.runs.newest(limit=NEWEST))

    def of(self, summary: RunSummary) -> RunPlan:
        """Return the plan of a run."""
        # A new candidate or judge changes the plan. The summary shows that without another query.
        key = (str(summary.id), summary.candidates, summary.judges)
        with self._lock:
            plan = self._kept.get(key)
        if plan is None:
            plan = self._workspace.journal.plan_of(summary.id)
            with self._lock:
                self._kept[key] = plan
                while len(self._kept) > _KEPT:
                    del self._kept[next(iter(self._kept))]
        return plan
