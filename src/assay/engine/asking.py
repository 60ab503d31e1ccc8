"""Request one answer from a model, with retries, backoff and a budget.

Each call is stored before the next one starts.

One answer takes at most `MAX_CALLS` calls. At most `MAX_READINGS` of these calls may return a
reply that is empty or cannot be parsed. The waits between calls grow, with jitter. They add up to
at most `LONGEST_WAIT_S`, unless the server sends a longer Retry-After. A server that cannot be
reached and has not answered this run before is called `MAX_FIRST_CALLS` times.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import tenacity

from assay.domain.budget import Booking
from assay.domain.calls import ModelRequest, Reply, Role
from assay.domain.events import CallEnded, Listener
from assay.domain.failure import BUDGET, NO_TOOLS, UNREACHABLE, CallFailed, Failure, Fault
from assay.domain.identifiers import TrialKey
from assay.domain.run import CallRecord, Entry
from assay.engine.breaker import Breaker
from assay.engine.spending import Spending
from assay.ports import Clock, Ledger, ModelDirectory, SpendingProvider
from assay.scoring.evaluator import UnreadableReply

MAX_CALLS = 5
# One repetition covers a lost packet. With five calls, a run took 15 s to say that its server is
# not running.
MAX_FIRST_CALLS = 2
MAX_READINGS = 3
LONGEST_WAIT_S = 20.0
LONGEST_ASKED_WAIT_S = 300.0
EMPTY_WAIT_S = 0.4

UNREADABLE = frozenset({"empty", "unparsable"})

Read = TypeVar("Read")


class NotYet(Exception):
    """Raised if a request has no answer yet, so the trial must be continued later.

    Either the answer waits at a provider, or the run paused itself.
    """


class GaveUp(Exception):
    """Raised if a model returned no usable answer. Its calls are already stored.

    `failure`: the reason. `unread`: text of the last reply, if Assay could not parse it. `fatal`:
    True if further calls to the model probably fail for the same reason. `recorded`: True if the
    failed call is in the journal.
    """

    def __init__(
        self, failure: Failure, unread: str = "", *, fatal: bool = False, recorded: bool = False
    ) -> None:
        super().__init__(failure.detail)
        self.failure = failure
        self.unread = unread
        self.fatal = fatal
        self.recorded = recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAnswer(Generic[Read]):
    """A reply, its parsed value and the records of its calls; `calls` is empty if the call is
    already stored.
    """

    reply: Reply
    read: Read
    calls: tuple[CallRecord, ...]


class Asks(Protocol):
    """Interface for sending a run's requests to models, by direct calls or in batches."""

    async def answer(
        self, request: ModelRequest, read: Callable[[Reply], Read], *, trial: TrialKey
    ) -> ReadAnswer[Read]:
        """Return a parsed answer; raises `GaveUp`, or `NotYet` if the answer of a batch is not
        available yet.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Sends a run's requests to models by direct calls.

    `spending` is None for a run without a budget. `breaker` is None for calls that are not part of
    a run in progress.
    """

    spending: Spending | None
    journal: Ledger
    directory: ModelDirectory
    clock: Clock
    listener: Listener
    breaker: Breaker | None = None

    async def answer(
        self, request: ModelRequest, read: Callable[[Reply], Read], *, trial: TrialKey
    ) -> ReadAnswer[Read]:
        """Call the model until a reply can be parsed or the retry limits are reached.

        `read` raises `UnreadableReply` to request another call. Failed calls are recorded under
        `trial`. Raises `GaveUp` with the reason and the number of calls if there was no usable
        answer, and `NotYet` if the run pauses itself meanwhile.
        """
        breaker, model = self.breaker, request.model.ref
        if breaker is None:
            return await self._answer(request, read, trial=trial)
        if not await breaker.admit(model):
            raise NotYet
        try:
            answer = await self._answer(request, read, trial=trial)
        except GaveUp as gave_up:
            if gave_up.failure.kind == BUDGET:
                if not gave_up.recorded:
                    await self._note_refusal(request, gave_up.failure, trial=trial)
                breaker.stop(model, gave_up.failure)
                raise NotYet from gave_up
            if await breaker.failed(model, gave_up.failure, fatal=gave_up.fatal):
                raise NotYet from gave_up
            raise
        except BaseException:
            breaker.left(model)
            raise
        breaker.answered(model)
        return answer

    async def _note_refusal(
        self, request: ModelRequest, failure: Failure, *, trial: TrialKey
    ) -> None:
        """Record why the budget refused a call, because the trial itself stays pending and has no
        failure.
        """
        record = CallRecord(
            request=request,
            reply=None,
            failure=failure,
            number=failure.tries,
            started=self.clock.now(),
        )
        await self.journal.record(Entry(trial=trial, calls=(record,)))

    async def _answer(
        self, request: ModelRequest, read: Callable[[Reply], Read], *, trial: TrialKey
    ) -> ReadAnswer[Read]:
        try:
            # The first call does not use tenacity: most answers need no retry, and its bookkeeping
            # would slow down every call.
            return await self._try(request, read, trial=trial, number=1)
        except CallFailed as error:
            first = error
        return await self._again(request, read, first, trial=trial)

    async def _again(
        self,
        request: ModelRequest,
        read: Callable[[Reply], Read],
        first: CallFailed,
        *,
        trial: TrialKey,
    ) -> ReadAnswer[Read]:
        number = 0

        async def one_try() -> ReadAnswer[Read]:
            nonlocal number
            number += 1
            if number == 1:
                raise first
            return await self._try(request, read, trial=trial, number=number)

        try:
            answered = self.breaker is None or self.breaker.has_answered(request.model.ref)
            patience = _Patience(most_unreached=MAX_CALLS if answered else MAX_FIRST_CALLS)
            return await patience.retrying(self.clock)(one_try)
        except CallFailed as error:
            fault = error.fault or fault_of(error.kind, request.purpose.role)
            failure = Failure(kind=error.kind, fault=fault, detail=error.detail, tries=number)
            raise GaveUp(
                failure, error.unread or first.unread, fatal=error.fatal, recorded=error.recorded
            ) from error

    async def _try(
        self, request: ModelRequest, read: Callable[[Reply], Read], *, trial: TrialKey, number: int
    ) -> ReadAnswer[Read]:
        if self.spending is None or self._spender(request) is not None:
            return await self._call(request, read, Booking(), trial=trial, number=number)
        async with self.spending.booking(request) as booking:
            return await self._call(request, read, booking, trial=trial, number=number)

    def _spender(self, request: ModelRequest) -> SpendingProvider | None:
        """Return the provider of a request if it reserves its calls by itself, such as an agent
        behind a gate.
        """
        if request.model.program is None:
            return None
        provider = self.directory.provider(request.model)
        return provider if isinstance(provider, SpendingProvider) else None

    async def _call(
        self,
        request: ModelRequest,
        read: Callable[[Reply], Read],
        booking: Booking,
        *,
        trial: TrialKey,
        number: int,
    ) -> ReadAnswer[Read]:
        started = self.clock.now()
        reply: Reply | None = None
        try:
            provider = self.directory.provider(request.model)
            if request.tools and not getattr(provider, "calls_tools", False):
                detail = f"{request.model.ref} cannot be offered tools, because its provider does not support them."
                raise CallFailed(
                    NO_TOOLS, detail, transient=False, fault=Fault.HARNESS, charged=False
                )
            spender = self._spender(request)
            if self.spending is not None and spender is not None:
                reply = await spender.complete_within(request, self.spending)
            else:
                reply = await provider.complete(request)
            booking.note(reply)
            understood = read(reply)
        except (CallFailed, UnreadableReply) as error:
            failed, paid, failure = outcome_of(error, reply, request, number)
            if reply is None:
                booking.note_failure(failed)
            reply = paid
            record = CallRecord(
                request=request,
                reply=reply,
                failure=failure,
                number=number,
                started=started,
                log=failed.log,
            )
            # A failed call may have been charged, so it is stored before the next try: if the
            # process is killed in between, nothing is lost.
            await self.journal.record(Entry(trial=trial, calls=(record,)))
            failed.recorded = True
            self.listener(call_ended(request, reply, failure))
            raise failed from error
        self.listener(call_ended(request, reply, None))
        # The call is not recorded here: the caller commits it together with the results of the
        # answer, so that most trials need only one commit.
        record = CallRecord(
            request=request,
            reply=reply,
            failure=None,
            number=number,
            started=started,
            log=reply.log,
        )
        return ReadAnswer(reply=reply, read=understood, calls=(record,))


def call_ended(request: ModelRequest, reply: Reply | None, failure: Failure | None) -> CallEnded:
    return CallEnded(
        role=request.purpose.role,
        model=request.model.ref,
        input_tokens=(reply.usage.input_tokens or 0) if reply else 0,
        output_tokens=(reply.usage.output_tokens or 0) if reply else 0,
        cost_usd=reply.cost_usd if reply else None,
        failure=failure,
    )


def outcome_of(
    error: CallFailed | UnreadableReply, reply: Reply | None, request: ModelRequest, number: int
) -> tuple[CallFailed, Reply | None, Failure]:
    """For a failed attempt, return its error, its reply (if that must be paid for) and the
    `Failure` to record.
    """
    failed = error if isinstance(error, CallFailed) else _unreadable(reply, error)
    fault = failed.fault or fault_of(failed.kind, request.purpose.role)
    failure = Failure(kind=failed.kind, fault=fault, detail=failed.detail, tries=number)
    return failed, reply or _paid_for(failed), failure


def fault_of(kind: str, role: Role) -> Fault:
    """Return who is at fault if the provider did not specify it: the model for unusable text,
    otherwise the provider.
    """
    if kind in UNREADABLE:
        return {
            Role.JUDGE: Fault.JUDGE,
            Role.STRUCTURER: Fault.JUDGE,
            Role.USER: Fault.HARNESS,
        }.get(role, Fault.CANDIDATE)
    return Fault.PROVIDER


def _paid_for(failed: CallFailed) -> Reply | None:
    """Return an empty reply with the failed call's cost, because it must be paid for; None without
    a token count.
    """
    return (
        None
        if failed.usage is None
        else Reply(text="", finish_reason=failed.kind, usage=failed.usage, cost_usd=failed.cost_usd)
    )


def _unreadable(reply: Reply | None, error: UnreadableReply) -> CallFailed:
    kind = "unparsable" if reply is not None and reply.text.strip() else "empty"
    return CallFailed(kind, str(error), transient=True, unread="" if reply is None else reply.text)


class _Patience:
    """Retry limits for one answer. This class counts unreadable replies; tenacity counts the calls.

    `most_unreached`: number of calls if the server cannot be reached.
    """

    def __init__(self, *, most_unreached: int = MAX_CALLS) -> None:
        self.readings = 0
        self.most_unreached = most_unreached

    def retrying(self, clock: Clock) -> tenacity.AsyncRetrying:
        return tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(
                lambda error: isinstance(error, CallFailed) and error.transient
            ),
            after=self.note,
            wait=self.wait_s,
            stop=self.spent,
            sleep=clock.sleep,
            reraise=True,
        )

    def note(self, state: tenacity.RetryCallState) -> None:
        if _error(state).kind in UNREADABLE:
            self.readings += 1

    def wait_s(self, state: tenacity.RetryCallState) -> float:
        error = _error(state)
        if error.retry_after_s is not None:
            return error.retry_after_s
        if error.kind in UNREADABLE:
            wait = EMPTY_WAIT_S * self.readings
        else:
            # Jitter, so that calls that were refused at the same time are not repeated at the same
            # time.
            wait = random.uniform(0.5, 1.0) * min(8.0, 2.0 ** (state.attempt_number - 1))
        return min(wait, max(0.0, LONGEST_WAIT_S - state.idle_for))

    def spent(self, state: tenacity.RetryCallState) -> bool:
        asked_s = _error(state).retry_after_s or 0.0
        error = _error(state)
        unreached = error.kind == UNREACHABLE and not error.charged
        most = self.most_unreached if unreached else MAX_CALLS
        return (
            state.attempt_number >= most
            or self.readings >= MAX_READINGS
            or asked_s > LONGEST_ASKED_WAIT_S
        )


def _error(state: tenacity.RetryCallState) -> CallFailed:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, CallFailed):
        raise TypeError(f"only failed calls are retried, not {error!r}")
    return error
