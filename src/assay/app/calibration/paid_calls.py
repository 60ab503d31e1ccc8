"""Calls to models outside of runs: each paid answer is on disk before it is used, and a budget
limits their cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from assay.app.calibration.answer_cache import PaidAnswers, question_of
from assay.domain.budget import Grant, Reservation, decide
from assay.domain.events import nobody
from assay.domain.identifiers import RunId, TrialKey
from assay.engine.asking import Asker
from assay.engine.spending import Spending

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.app.workspace import Workspace
    from assay.domain.calls import ModelRequest, Reply
    from assay.domain.run import Entry

Read = TypeVar("Read")

MAX_OF_A_REPLY: Final = 2_000
"""Maximum number of characters stored from the reply in a failed attempt."""


@dataclass(slots=True, kw_only=True)
class PaidCalls:
    """Makes calls, counts them, and records failed attempts as a `ports.Ledger`; `cap_usd` is the
    budget.
    """

    workspace: Workspace
    paid: PaidAnswers
    cap_usd: float | None = None
    held_usd: float = 0.0
    in_flight: list[Reservation] = field(default_factory=list)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    versions: set[str] = field(default_factory=set)
    taken_over: int = 0

    def open(self) -> Asker:
        """Return the sender of requests.

        Count the cost of an interrupted attempt too, so that budget and record cover both.
        """
        for reply in self.paid.unusable:
            self._count(reply)
        # Usable answers are counted when `answer` reads them again; only their cost is added here.
        # An attempt without a budget reserved nothing, so that only the costs of its replies are
        # known.
        replies = (*self.paid.unusable, *self.paid.replies.values())
        self.held_usd = max(self.paid.held_usd, sum(reply.cost_usd or 0.0 for reply in replies))
        return Asker(
            spending=None
            if self.cap_usd is None
            else Spending(RunId("paid-calls"), self, self.workspace.directory),
            journal=self,
            directory=self.workspace.directory,
            clock=self.workspace.clock,
            listener=nobody,
        )

    async def answer(
        self, asker: Asker, request: ModelRequest, read: Callable[[Reply], Read]
    ) -> Read:
        """Return the parsed answer, from the cache if an earlier attempt paid for it; raises
        `GaveUp`.
        """
        question = question_of(request)

        def counted(reply: Reply) -> Read:
            self._count(reply)
            return read(reply)

        known = self.paid.replies.get(question)
        if known is not None:
            self.taken_over += 1
            return counted(known)
        # There is no trial in the store; the key only satisfies the signature.
        answer = await asker.answer(request, counted, trial=TrialKey(0))
        self.paid.keep(question, answer.reply)
        return answer.read

    def _count(self, reply: Reply) -> None:
        self.calls += 1
        self.input_tokens += reply.usage.input_tokens or 0
        self.output_tokens += reply.usage.output_tokens or 0
        known = self.cost_usd is not None and reply.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (reply.cost_usd or 0.0) if known else None
        if reply.model_version:
            self.versions.add(reply.model_version)

    async def record(self, entry: Entry, /) -> None:
        """Record a failed attempt."""
        for call in entry.calls:
            if call.failure is None:
                continue
            # this reply was paid for but never parsed
            if call.reply is not None and not call.reply.text:
                self._count(call.reply)
            self.paid.keep_try(
                {
                    "id": call.request.purpose.task.removeprefix("calibration/"),
                    "try": call.number,
                    "at": call.started,
                    "kind": call.failure.kind,
                    "fault": str(call.failure.fault),
                    "detail": call.failure.detail,
                    "reply": "" if call.reply is None else call.reply.text[:MAX_OF_A_REPLY],
                    "cost_usd": None if call.reply is None else call.reply.cost_usd,
                },
                call.reply,
            )

    async def reserve(self, run: RunId, reservation: Reservation, /) -> Grant:
        if self.cap_usd is not None:
            spent_usd = self.held_usd - sum(waiting.usd for waiting in self.in_flight)
            most_usd = sum(waiting.most_usd for waiting in self.in_flight)
            grant = decide(
                reservation, budget_usd=self.cap_usd, spent_usd=spent_usd, in_flight_usd=most_usd
            )
            if grant is not Grant.GRANTED:
                return grant
        self.in_flight.append(reservation)
        self._hold(reservation.usd)
        return Grant.GRANTED

    async def settle(self, run: RunId, reservation: Reservation, spent_usd: float, /) -> None:
        self.in_flight.remove(reservation)
        self._hold(spent_usd - reservation.usd)

    def _hold(self, usd: float) -> None:
        self.held_usd += usd
        if usd:
            self.paid.hold(usd)
