"""Trial counts by state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.lifecycle import TrialState

if TYPE_CHECKING:
    from assay.domain.selection import RunSummary


_DONE = frozenset(
    {TrialState.NEEDS_REVIEW, TrialState.APPROVED, TrialState.REJECTED, TrialState.LEFT_OUT}
)


def trial_counts(summary: RunSummary) -> dict[str, int]:
    """Return trial counts: `total`, `done` (stored, reviewed or not), `failed`, and the number in
    each state.
    """
    return {
        "total": sum(summary.trials.values()),
        "done": sum(n for state, n in summary.trials.items() if state in _DONE),
        **{str(state): summary.trials.get(state, 0) for state in TrialState},
    }
