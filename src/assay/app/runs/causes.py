"""Count a run's failures once per cause, and say why a run paused itself and how it continues."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from assay.domain.failure import BUDGET, Failure, Fault
from assay.domain.lifecycle import TO_COME, RunState, TrialState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.domain.identifiers import RunId
    from assay.domain.selection import FailureCount, RunSummary
    from assay.store.opening import Store

# Two messages with one cause differ in request ids, times, amounts and token counts.
_VARYING: Final = re.compile(r"\b(?=\w*\d)[\w-]{6,}\b|\d+(?:[.,:]\d+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One cause of failures: its kind and fault, the message of its most frequent case, and the
    number of trials.
    """

    kind: str
    fault: Fault
    detail: str
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(Cause):
    """The reason why a run paused itself; its trials are pending.

    `trials` is the number of trials that met the reason. `model` is the one whose calls failed.
    """

    model: str

    @property
    def by_budget(self) -> bool:
        return self.kind == BUDGET

    @property
    def sentence(self) -> str:
        if self.by_budget:
            return f"paused, because the budget is reached: {self.detail}"
        calls = "1 call" if self.trials == 1 else f"{self.trials:,} calls"
        return f"paused, because further calls would probably fail as {calls} did: {self.detail}"

    def remedy(self, run: RunId, enough_usd: float | None) -> str:
        """Return the command that continues the run; `enough_usd` is a budget that probably covers
        the rest.
        """
        if not self.by_budget:
            resume = f"After fixing it, continue with: assay resume {run}"
            if self.kind.startswith("exit_"):
                return f"{resume} (a resumed run keeps its commands; if you change the suite, run it again with: assay run)"
            return resume
        return f"Continue with a larger budget: assay resume {run} --budget {'USD' if enough_usd is None else f'{enough_usd:g}'}"


def causes_of(store: Store, summary: RunSummary) -> tuple[Cause, ...]:
    """Return the causes of the run's failed trials, the most frequent first."""
    if not summary.trials.get(TrialState.FAILED):
        return ()
    return merged(store.archive.trials.failure_counts(summary.id))


def cause_key(failure: Failure | FailureCount | Cause) -> tuple[str, str, str]:
    """Return equal values for failures that differ only in numbers and identifiers."""
    return failure.kind, str(failure.fault), _VARYING.sub("#", failure.detail)


def merged(counts: Sequence[FailureCount]) -> tuple[Cause, ...]:
    """Add up failures that have one cause; the most frequent cause first."""
    causes: dict[tuple[str, str, str], Cause] = {}
    for count in counts:
        key = cause_key(count)
        cause = causes.get(key)
        causes[key] = (
            Cause(kind=count.kind, fault=count.fault, detail=count.detail, trials=count.trials)
            if cause is None
            else replace(cause, trials=cause.trials + count.trials)
        )
    return tuple(sorted(causes.values(), key=lambda cause: -cause.trials))


def pause_of(store: Store, summary: RunSummary) -> Pause | None:
    """Return the reason why the run paused itself; None if it is not paused, or if a person paused
    it.
    """
    if summary.state is not RunState.PAUSED:
        return None
    counts = store.archive.trials.calls_that_paused(summary.id)
    newest = next((count for count in counts if count.pauses), None)
    if newest is None:
        return _pause_by_first_trial(store, summary)
    trials = sum(
        count.trials for count in counts if (count.kind, count.model) == (newest.kind, newest.model)
    )
    return Pause(
        kind=newest.kind,
        fault=newest.fault,
        detail=newest.detail,
        model=newest.model,
        trials=trials,
    )


def _pause_by_first_trial(store: Store, summary: RunSummary) -> Pause | None:
    """Return the fatal failure of the only trials that ended, such as an agent's; its calls are not
    calls of the run.

    None if any trial succeeded: then the run went on after its first trial, and a person paused it.
    """
    ended = {state for state, n in summary.trials.items() if n and state not in TO_COME}
    if ended != {TrialState.FAILED}:
        return None
    fatal = next(
        (count for count in store.archive.trials.failure_counts(summary.id) if count.pauses), None
    )
    if fatal is None:
        return None
    asked = ", ".join(summary.candidates)
    return Pause(
        kind=fatal.kind,
        fault=fatal.fault,
        detail=fatal.detail,
        model=fatal.model or asked,
        trials=fatal.trials,
    )
