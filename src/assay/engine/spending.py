"""Keep a run's calls within its budget.

Each call reserves its worst-case cost before it is sent. The reservation is stored on disk, so it
survives a kill. After the call, the cost that the provider reported replaces the reservation. If
the provider reported no cost, the worst case stays booked, including for timeouts, lost connections
and cancelled calls. Only a call that the provider refused or never received is free.

Some servers count more tokens than the worst case. Reservations for such a model grow by the
largest excess so far. Assay sends a model's calls one at a time until the first call has cost no
more than its reservation, and again after any call that exceeded its reservation.

Several calls in flight could each exceed their reservations. `domain.budget` therefore allows
parallel calls only while the budget covers several times their reservations. Its proof shows that
at most one call can exceed the budget.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from assay.domain.amounts import money
from assay.domain.budget import Booking, Grant, Reservation
from assay.domain.calls import ModelRequest
from assay.domain.failure import BUDGET, CallFailed, Fault
from assay.domain.identifiers import RunId
from assay.domain.model import ModelSpec
from assay.engine.estimate import worst_case_tokens
from assay.ports import Ledger, ModelDirectory

_ROUNDING: Final = 1e-9  # relative difference between two sums of the same prices
# a call may cost this many reservations, once a call to its model has cost no more than reserved
_MOST: Final = 10
_MAX_BEFORE: Final = 100  # the same factor, before that
# the same factor without a price, because programs may state a cost anyway
_MAX_UNPRICED_USD: Final = 10.0
_OTHERS_S: Final = 0.2  # other processes cannot notify this process when their calls end


@dataclass(slots=True)
class _Excess:
    """The largest excess of a model's token counts over the worst case, as a ratio and as an amount
    in US dollars.
    """

    ratio: float = 1.0
    extra_usd: float = 0.0

    def over(self, worst_usd: float) -> float:
        return max(worst_usd * self.ratio, worst_usd + self.extra_usd)

    def learn(self, worst_usd: float, spent_usd: float) -> None:
        self.extra_usd = max(self.extra_usd, spent_usd - worst_usd)
        if worst_usd > 0:
            self.ratio = max(self.ratio, spent_usd / worst_usd)


class Spending:
    """Reserves and books this process's calls against one run's budget."""

    def __init__(self, run: RunId, ledger: Ledger, directory: ModelDirectory) -> None:
        self._run = run
        self._ledger = ledger
        self._directory = directory
        self._excess: defaultdict[str, _Excess] = defaultdict(_Excess)
        self._steady: set[str] = set()  # models whose last call cost no more than was reserved
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        # held by the calls that wait for budget, so that they start in order
        self._queue = asyncio.Lock()
        self._settled = asyncio.Event()
        self._uncounted = 0

    def booking(self, request: ModelRequest) -> AbstractAsyncContextManager[Booking]:
        """Reserve a request's worst-case cost, and book its actual cost at the end; raises as
        `call` does.
        """
        input_tokens, output_tokens = worst_case_tokens(request)
        return self.call(request.model, input_tokens=input_tokens, output_tokens=output_tokens)

    @asynccontextmanager
    async def call(
        self, spec: ModelSpec, /, *, input_tokens: int, output_tokens: int
    ) -> AsyncIterator[Booking]:
        """Reserve the cost of a call with at most these tokens, and book its actual cost at the
        end.

        Raises CallFailed, before the call is sent, if the price is unknown or the budget does not
        cover the call.
        """
        model = spec.ref
        worst = self._directory.cost_usd(
            spec, input_tokens=input_tokens, output_tokens=output_tokens
        )
        # The cap cannot be guaranteed for a model without a price, so no call is made.
        if worst is None:
            raise CallFailed(
                "unknown_price", f"{model} has no known price.", transient=False, fault=Fault.BUDGET
            )
        turn = await self._turn(model)
        try:
            usd = self._excess[model].over(worst)
            most = _MOST * usd if model in self._steady else _MAX_BEFORE * usd or _MAX_UNPRICED_USD
            reservation = Reservation(usd, most)
            await self._reserve(spec, reservation)
            booking = Booking()
            try:
                yield booking
            finally:
                spent = usd if booking.usd is None else booking.usd
                self._uncounted += booking.usd is None
                if spent > usd * (1 + _ROUNDING):
                    self._excess[model].learn(worst, spent)
                    self._steady.discard(model)
                elif booking.answered:
                    self._steady.add(model)
                await self._settle(reservation, spent)
        finally:
            if turn is not None:
                turn.release()

    async def _turn(self, model: str) -> asyncio.Lock | None:
        """Wait until a call may start; return the lock to release if it must run alone, otherwise
        None.
        """
        if model in self._steady:
            return None
        turn = self._turns[model]
        await turn.acquire()
        if model not in self._steady:
            return turn
        turn.release()
        return None

    async def _reserve(self, model: ModelSpec, reservation: Reservation) -> None:
        grant = Grant.WAIT if self._queue.locked() else await self._ask(reservation)
        if grant is Grant.WAIT:
            async with self._queue:
                while (grant := await self._ask(reservation)) is Grant.WAIT:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._settled.wait(), _OTHERS_S)
        if grant is Grant.REFUSED:
            raise CallFailed(
                BUDGET, self._refusal(model, reservation.usd), transient=False, fault=Fault.BUDGET
            )

    async def _ask(self, reservation: Reservation) -> Grant:
        self._settled.clear()
        reserving = asyncio.ensure_future(self._ledger.reserve(self._run, reservation))
        try:
            return await asyncio.shield(reserving)
        except asyncio.CancelledError:
            # The writer thread makes the reservation anyway, and a reservation that is never
            # settled is booked as spent.
            if await reserving is Grant.GRANTED:
                await self._settle(reservation, 0.0)
            raise

    async def _settle(self, reservation: Reservation, spent_usd: float) -> None:
        await self._ledger.settle(self._run, reservation, spent_usd)
        self._settled.set()

    def _refusal(self, model: ModelSpec, usd: float) -> str:
        detail = f"the next call may cost up to {money(usd)}, more than is left of the budget."
        if (extra_usd := self._excess[model.ref].extra_usd) and model.program is not None:
            # A program has no price, so nothing was reserved for its first call.
            detail += f" {model.ref} stated a cost of up to {money(extra_usd)} per call, so Assay reserves as much."
        elif extra_usd:
            detail += (
                f" {model.ref} counts more tokens than the worst case, so Assay reserves more."
            )
        if self._uncounted:
            calls = "1 call" if self._uncounted == 1 else f"{self._uncounted:,} calls"
            detail += f" The cost of {calls} is unknown and booked at the worst case."
        return detail
