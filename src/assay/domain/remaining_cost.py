"""Correct a run's estimated cost by the cost of its calls so far.

The estimate before a run assumes answers of half the token limit, which real answers miss by a
factor of ten in either direction. After `CALLS_NEEDED` answers, the mean cost of a role's calls to
a model replaces the estimate of that role and model. A role that has not been called yet, such as a
judge that waits for the candidates, keeps its estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum
from typing import Final, TypeAlias

CALLS_NEEDED: Final = 50
"""Number of answered calls from which a run's own costs are used instead of the estimate."""

RoleAndModel: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingCost:
    """Cost of a run's answered calls so far, and what the rest and the whole run will probably
    cost.
    """

    answered_calls: int
    paid_usd: float
    remaining_usd: float
    total_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsAhead:
    """Predicted calls of one role to one model; `usd_per_call` is their estimated cost, None if the
    price is unknown.
    """

    role: str
    model: str
    calls: int
    usd_per_call: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsPaid:
    """Answered calls of one role to one model, and their cost; None if the cost of one of them is
    unknown.
    """

    calls: int
    usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialProgress:
    """Number of trials in all, of trials that have begun (including those that have ended), and of
    failed trials.
    """

    total: int
    begun: int
    failed: int


def remaining_usd(
    ahead: Iterable[CallsAhead], paid: Mapping[RoleAndModel, CallsPaid], progress: TrialProgress
) -> float | None:
    """Return the probable cost of a run's remaining calls.

    Args:
        ahead: predicted calls of all trials, including those that have ended.
        paid: answered calls of these trials by role and model.

    Returns:
        None before `CALLS_NEEDED` answers, or if a price is unknown.
    """
    if sum(calls.calls for calls in paid.values()) < CALLS_NEEDED:
        return None
    predicted = {(calls.role, calls.model): calls for calls in ahead}
    costs = []
    for key in dict.fromkeys((*predicted, *paid)):
        left = _calls_left(predicted.get(key), paid.get(key), progress)
        price = _usd_per_call(predicted.get(key), paid.get(key))
        if left and price is None:
            return None
        costs.append(left * (price or 0.0))
    return fsum(costs)


def _calls_left(ahead: CallsAhead | None, paid: CallsPaid | None, progress: TrialProgress) -> float:
    answered = 0 if paid is None else paid.calls
    succeeding = 1.0 - progress.failed / progress.total if progress.total else 0.0
    by_plan = 0.0 if ahead is None else ahead.calls * succeeding - answered
    # An agent with tools may make many more calls than the plan predicts.
    by_rate = (
        answered / progress.begun * (progress.total - progress.begun) if progress.begun else 0.0
    )
    return max(0.0, by_plan, by_rate)


def _usd_per_call(ahead: CallsAhead | None, paid: CallsPaid | None) -> float | None:
    if paid is not None and paid.calls:
        return None if paid.usd is None else paid.usd / paid.calls
    return None if ahead is None else ahead.usd_per_call
