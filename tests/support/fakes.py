"""Small stand-ins for what lies outside: a clock that is advanced, a provider that says what it is
told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from assay.domain.budget import Grant, Reservation
from assay.domain.calls import ModelRequest, Reply
from assay.domain.failure import CallFailed
from assay.domain.model import ModelSpec
from assay.domain.run import Entry


@dataclass
class FakeClock:
    """Time that only passes when somebody sleeps."""

    seconds: float = 0.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> str:
        return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)).strftime(
            "%Y-%m-%dT%H:%M:%S.000Z"
        )

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float, /) -> None:
        self.slept.append(seconds)
        self.seconds += seconds


@dataclass
class FakeProvider:
    """Answers with each of `outcomes` in turn, and with the last one from then on."""

    outcomes: Sequence[Reply | CallFailed]
    asked: list[ModelRequest] = field(default_factory=list)

    async def complete(self, request: ModelRequest, /) -> Reply:
        outcome = self.outcomes[min(len(self.asked), len(self.outcomes) - 1)]
        self.asked.append(request)
        if isinstance(outcome, CallFailed):
            raise outcome
        return outcome

    async def close(self) -> None:
        """Nothing is held."""


@dataclass
class FakeDirectory:
    """Hands out one provider; a token costs what `usd_per_token` says."""

    one: FakeProvider
    usd_per_token: float | None = None

    def provider(self, model: ModelSpec, /) -> FakeProvider:
        return self.one

    def batches(self, model: ModelSpec, /) -> None:
        return None

    def cost_usd(
        self, model: ModelSpec, /, *, input_tokens: int, output_tokens: int
    ) -> float | None:
        return (
            None
            if self.usd_per_token is None
            else self.usd_per_token * (input_tokens + output_tokens)
        )

    def context_tokens(self, model: ModelSpec, /) -> int | None:
        return None


@dataclass
class FakeJournal:
    """Remembers entries; `allow` answers reservations."""

    entries: list[Entry] = field(default_factory=list)
    settled: list[tuple[float, float]] = field(default_factory=list)
    allow: Callable[[float], bool] = lambda usd: True

    async def record(self, entry: Entry, /) -> None:
        self.entries.append(entry)

    async def reserve(self, run: str, reservation: Reservation, /) -> Grant:
        return Grant.GRANTED if self.allow(reservation.usd) else Grant.REFUSED

    async def settle(self, run: str, reservation: Reservation, spent_usd: float, /) -> None:
        self.settled.append((reservation.usd, spent_usd))
