"""Budget rule: decides when a call may start, so that a run stays within its budget even across
processes.

A call reserves `usd`, its expected worst case. Until its cost is known, it counts as `most_usd`,
which is several times as much. While other calls are in flight, it may start only if spent_usd plus
the `most_usd` of all calls in flight (including the new call) is within the budget. Otherwise it
waits until no call is in flight; it is then sent if spent_usd + usd is within the budget.

So spent_usd exceeds the budget by less than the cost of one call, unless two calls in flight at
once both cost more than their `most_usd`. Proof: let S be spent_usd plus the `most_usd` of the
calls in flight. S <= budget while calls run in parallel, and a call that costs at most its
`most_usd` never raises S. So only a call that costs more than its `most_usd`, or a call that was
sent while no other was in flight, can exceed the budget, and by less than its cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from assay.domain.calls import Reply
from assay.domain.failure import CallFailed

_SLACK_USD: Final = 1e-9  # sums of equal reservations must not fail on the last bit


@dataclass(frozen=True, slots=True)
class Reservation:
    """Amounts reserved for one call: `usd` is charged if its cost stays unknown, and `most_usd`
    limits parallel calls.
    """

    usd: float
    most_usd: float


@dataclass(slots=True)
class Booking:
    """The known cost of one call; a call of unknown cost is booked at its worst case."""

    usd: float | None = None
    answered: bool = False

    def note(self, reply: Reply) -> None:
        """Record the cost of a reply; it stays unknown if the reply has no readable token count."""
        self.usd, self.answered = reply.cost_usd, True

    def note_failure(self, failed: CallFailed) -> None:
        """Record a failed call; it costs nothing only if the provider cannot have charged for
        it.
        """
        self.usd = 0.0 if failed.cost_usd is None and not failed.charged else failed.cost_usd


class Grant(StrEnum):
    """Answer to a request for a reservation; `WAIT` means that calls in flight may use up the rest
    of the budget.
    """

    GRANTED = "granted"
    WAIT = "wait"
    REFUSED = "refused"


def decide(
    reservation: Reservation, *, budget_usd: float, spent_usd: float, in_flight_usd: float
) -> Grant:
    """Decide whether a call may start; `in_flight_usd` is the sum of `most_usd` over the calls in
    flight.
    """
    left_usd = budget_usd - spent_usd + _SLACK_USD
    if reservation.usd > left_usd:
        return Grant.REFUSED
    alone = in_flight_usd <= _SLACK_USD
    return (
        Grant.GRANTED if alone or in_flight_usd + reservation.most_usd <= left_usd else Grant.WAIT
    )
