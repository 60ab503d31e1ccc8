"""Cost of one trial in the selected runs, in money and reviews."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.domain.lifecycle import AssessmentState, TrialState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.domain.selection import Excluded, RunSummary

_JUDGED: Final = (TrialState.NEEDS_REVIEW, TrialState.APPROVED, TrialState.REJECTED)
_REVIEWED: Final = (
    AssessmentState.PENDING,
    AssessmentState.APPROVED,
    AssessmentState.CORRECTED,
    AssessmentState.REJECTED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCost:
    """Cost of one trial with all candidates of a run.

    Attributes:
        usd: cost of all calls (including failed calls and reruns) divided by the number of judged
            trials; None if unknown.
        reviews: number of assessments per trial that a person reviews; None if no trial was judged
            yet.
        kept: share of decided trials that count, so one counted trial takes 1 / kept trials; 1 if
            unknown.
        reason: why `usd` is None: no_judged_trials, price_unknown or no_calls_recorded.
    """

    usd: float | None
    reviews: float | None
    kept: float
    reason: str | None

    @property
    def usd_counted(self) -> float | None:
        return None if self.usd is None else self.usd / self.kept


def trial_cost(runs: Sequence[RunSummary], excluded: Excluded, *, counted: int) -> TrialCost:
    """Compute the mean cost of a trial in these runs; `counted` is the number of trials that
    count.
    """
    judged = sum(n for run in runs for state, n in run.trials.items() if state in _JUDGED)
    reviewed = sum(n for run in runs for state, n in run.assessments.items() if state in _REVIEWED)
    gone = excluded.rejected + excluded.failed
    costs = [run.cost_usd for run in runs if run.unpriced_calls == 0]
    known = [cost for cost in costs if cost is not None]
    tokens = sum(run.input_tokens + run.output_tokens for run in runs)
    reason = None
    if not judged:
        reason = "no_judged_trials"
    elif len(known) < len(runs):
        reason = "price_unknown"
    elif not tokens:
        reason = "no_calls_recorded"
    return TrialCost(
        usd=None if reason else sum(known) / judged,
        reviews=reviewed / judged if judged else None,
        kept=counted / (counted + gone) if counted else 1.0,
        reason=reason,
    )
