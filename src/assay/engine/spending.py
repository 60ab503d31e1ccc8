"""Keep the calls of a run within its budget.

Each call reserves its worst case before it is sent. The reservation is on disk, so it outlives a killed process. Afterwards
the cost that the provider stated replaces it. If the provider stated no cost, the worst case stays booked, also for
time-outs, lost connections and cancelled calls; only a call that the provider refused, or never received, is free.

Some servers count more tokens than the worst case. Reservations for such a model grow by the excess seen so far. A model's
first call in a run, and its first one after such a surprise, goes alone: then one call at most costs more than was reserved.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.domain.failure import CallFailed, Fault
from assay.engine.estimate import worst_case_tokens

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from assay.domain.calls import ModelRequest, Reply
    from assay.domain.identifiers import RunId
    from assay.ports import Ledger, ModelDirectory

_ROUNDING: Final = 1e-9
"""Relative difference between two sums of the same prices."""


@dataclass(slots=True)
class Booking:
    """The cost of one call as far as it is known; without a cost the call is booked at its worst case."""

    usd: float | None = None
    answered: bool = False

    def note(self, reply: Reply) -> None:
        """Note a reply; its cost is None if its token count cannot be read."""
        self.usd, self.answered = reply.cost_usd, True

    def note_failure(self, failed: CallFailed) -> None:
        """Note a failure, which costs nothing only if the provider cannot have charged for it."""
        self.usd = 0.0 if failed.cost_usd is None and not failed.charged else failed.cost_usd


@dataclass(slots=True)
class _Excess:
    """By how much one model's calls cost more than their worst case; servers add a fixed or a proportional number of tokens."""

    ratio: float = 1.0
    extra_usd: float = 0.0

    def over(self, worst_usd: float) -> float:
        return max(worst_usd * self.ratio, worst_usd + self.extra_usd)

    def learn(self, worst_usd: float, spent_usd: float) -> None:
        self.extra_usd = max(self.extra_usd, spent_usd - worst_usd)
        if worst_usd > 0:
            self.ratio = max(self.ratio, spent_usd / worst_usd)


class Spending:
    """The budget of one run, as this process uses it."""

    def __init__(self, run: RunId, ledger: Ledger, directory: ModelDirectory) -> None:
        self._run = run
        self._ledger = ledger
        self._directory = directory
        self._excess: defaultdict[str, _Excess] = defaultdict(_Excess)
        self._steady: set[str] = set()  # models whose last call cost no more than was reserved
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._uncounted = 0

    @asynccontextmanager
    async def booking(self, request: ModelRequest) -> AsyncIterator[Booking]:
        """Reserve the cost of one call, and book its cost at the end.

        Raises:
            CallFailed: the price is unknown, or the budget does not cover the call; no call may be made.
        """
        model = request.model.ref
        worst = self._worst_case_usd(request)
        # A program without a price may state a cost all the same.
        free = not worst and request.model.program is None
        turn = None if free else await self._turn(model)
        try:
            reserved = self._excess[model].over(worst)
            await self._reserve(model, reserved)
            booking = Booking()
            try:
                yield booking
            finally:
                spent = reserved if booking.usd is None else booking.usd
                self._uncounted += booking.usd is None
                if spent > reserved * (1 + _ROUNDING):
                    self._excess[model].learn(worst, spent)
                    self._steady.discard(model)
                elif booking.answered:
                    self._steady.add(model)
                await self._ledger.settle(self._run, reserved, spent)
        finally:
            if turn is not None:
                turn.release()

    async def _turn(self, model: str) -> asyncio.Lock | None:
        """Wait until calls to the model may run in parallel, and return None, or the lock of a call that goes alone."""
        if model in self._steady:
            return None
        turn = self._turns[model]
        await turn.acquire()
        if model not in self._steady:
            return turn
        turn.release()
        return None

    async def _reserve(self, model: str, usd: float) -> None:
        reserving = asyncio.ensure_future(self._ledger.reserve(self._run, usd))
        try:
            allowed = await asyncio.shield(reserving)
        except asyncio.CancelledError:
            # The writing thread reserves all the same, and a reservation that nobody settles is booked as spent.
            if await reserving:
                await self._ledger.settle(self._run, usd, 0.0)
            raise
        if not allowed:
            raise CallFailed("budget", self._refusal(model, usd), transient=False, fault=Fault.BUDGET)

    def _refusal(self, model: str, usd: float) -> str:
        detail = f"the next call may cost up to ${usd:.4f}, more than is left of the budget."
        if self._excess[model].extra_usd:
            detail += f" {model} counts more tokens than the worst case, so Assay reserves more."
        if self._uncounted:
            calls = "1 call" if self._uncounted == 1 else f"{self._uncounted:,} calls"
            detail += f" The cost of {calls} is unknown and booked at the worst case."
        return detail

    def _worst_case_usd(self, request: ModelRequest) -> float:
        input_tokens, output_tokens = worst_case_tokens(request)
        worst = self._directory.cost_usd(request.model, input_tokens=input_tokens, output_tokens=output_tokens)
        # A cap cannot be promised for a model without a price, so no call is made.
        if worst is None:
            raise CallFailed(
                "unknown_price", f"{request.model.ref} has no known price.", transient=False, fault=Fault.BUDGET
            )
        return worst
