"""One-line verdicts for lists of runs."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from assay.app.statistics.cell_cache import KeptCells
from assay.domain.lifecycle import COUNTS, AssessmentState, RunState
from assay.domain.selection import RunSummary, Selection
from assay.report import wording

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.domain.identifiers import RunId
    from assay.store.opening import Store

KEPT: Final = 5_000

_OPEN: Final = (RunState.PLANNED, RunState.RUNNING, RunState.SUBMITTED, RunState.PAUSED)


class RunVerdicts:
    """Caches the verdict of each run until the run gets a decision or a new result. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._known: LRUCache[RunId, tuple[object, str]] = LRUCache(maxsize=KEPT)
        self._newest = -1

    def of(
        self, summaries: Sequence[RunSummary], *, most: int | None = None
    ) -> Mapping[RunId, str | None]:
        """Return a verdict per run; computes at most `most` new verdicts (15 ms each) and returns
        None for further runs.
        """
        with self._lock:
            self._forget_changed()
            verdicts: dict[RunId, str | None] = {}
            for summary in summaries:
                if not any(summary.assessments.get(state) for state in COUNTS):
                    verdicts[summary.id] = _without_scores(summary)
                    continue
                state = (summary.trials, summary.assessments, summary.candidates)
                known = self._known.get(summary.id)
                if known is None or known[0] != state:
                    if most is not None and most <= 0:
                        verdicts[summary.id] = None
                        continue
                    most = None if most is None else most - 1
                    report = KeptCells(self._store.archive, Selection(runs=(summary.id,))).report()
                    known = self._known[summary.id] = (
                        state,
                        wording.standings_line(report.ranking),
                    )
                waits = summary.assessments.get(AssessmentState.PENDING) or summary.state in _OPEN
                verdicts[summary.id] = f"Provisional: {known[1]}" if waits else known[1]
            return verdicts

    def _forget_changed(self) -> None:
        """Remove runs with new decisions from the cache, even if a repeated correction left all
        counts of a run unchanged.
        """
        newest, _ = self._store.archive.trials.decided_since(None)
        if 0 <= self._newest < newest:
            for run in self._store.archive.runs.decided_after(self._newest):
                self._known.pop(run, None)
        self._newest = newest


def _without_scores(summary: RunSummary) -> str:
    if summary.not_graded:
        return "Not graded yet."
    if summary.assessments.get(AssessmentState.PENDING):
        return "Nothing reviewed yet."
    return "No trials count." if summary.state is RunState.FINISHED else "No trials count yet."
