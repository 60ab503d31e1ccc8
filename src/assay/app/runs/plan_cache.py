"""Cache of run plans for pages; a plan is reloaded after a candidate or judge was added to the
run.
"""

from __future__ import annotations

from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Final

from cachetools import FIFOCache, cachedmethod

if TYPE_CHECKING:
    from assay.domain.run import RunPlan
    from assay.domain.selection import RunSummary
    from assay.store.opening import Store

NEWEST: Final = 20
"""Number of newest runs whose models and judges count as in use."""

_KEPT: Final = 200


class Plans:
    """Caches run plans. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._kept: FIFOCache[tuple[str, tuple[str, ...], tuple[str, ...]], RunPlan] = FIFOCache(
            _KEPT
        )

    def newest(self) -> tuple[RunPlan, ...]:
        return tuple(self.of(summary) for summary in self._store.archive.runs.newest(limit=NEWEST))

    # A new candidate or judge changes the plan. The summary shows that without another query.
    @cachedmethod(
        attrgetter("_kept"),
        lambda _, run: (run.id, run.candidates, run.judges),
        attrgetter("_lock"),
    )
    def of(self, summary: RunSummary) -> RunPlan:
        """Return the plan of a run."""
        return self._store.journal.plan_of(summary.id)
