"""Advance trials in batch mode: answers come from finished jobs, and new requests go into new jobs.

Theory. A trial in batch mode runs the same code as any other trial, once per pass. `BatchAsker`
answers each request from the job that contained it. If there is no answer yet, it puts the request
into a new job and raises `NotYet`. Answers are stored on the way, so each pass continues where the
last one ended, and the stored records equal those of a live run.

House rules. A request is stored before it is written to a file, and the file is complete before
anything is sent. The commit that uses an answer also marks it as read.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import fsum
from typing import Final

from assay.domain.amounts import money
from assay.domain.calls import ModelRequest, Reply, Role
from assay.domain.errors import ConnectionLost, StoreError
from assay.domain.events import Listener, TrialEnded
from assay.domain.failure import BUDGET, CallFailed, Failure, Fault
from assay.domain.identifiers import TrialKey
from assay.domain.jobs import JobAnswer, JobRequest, ParkedTrial, RequestKey, RequestState
from assay.domain.run import CallRecord, ClaimedTrial, Entry, RunPlan
from assay.engine.asking import (
    MAX_CALLS,
    MAX_READINGS,
    UNREADABLE,
    Asks,
    GaveUp,
    NotYet,
    Read,
    ReadAnswer,
    call_ended,
    outcome_of,
)
from assay.engine.job_files import AnswerLines, Outbox, slot_digest, worst_usd
from assay.engine.run_context import RunContext
from assay.engine.trial import carry_out
from assay.ports import BatchApi, Clock, Jobs, Journal, ModelDirectory, NeverAnswered
from assay.scoring.evaluator import UnreadableReply
from assay.scoring.scorers import SCORERS

PORTION: Final = 1000
"""Number of trials that are advanced together; their answers and new requests are in memory at
once.
"""

_MAX_OWN: Final = 1024
"""Greater than the number of requests that one trial ever has in jobs."""

LOST: Final = "no_line"
"""Failure kind of a request that has no line in the finished batch; the provider may have charged
for it.
"""


@dataclass(slots=True, kw_only=True)
class Finished:
    """The answers of a job that has ended.

    `failure`: failure of the whole job. `lost`: True if a request without a line may have been
    charged.
    """

    job: int
    habits: str
    lines: AnswerLines
    failure: Failure | None = None
    lost: bool = False
    partial: bool = False
    """True if more lines may follow, so a request without a line keeps waiting."""


class PortionLedger:
    """Collects the entries of several trials and stores them in one commit.

    The entries come from downloaded answers, so a kill before the commit loses nothing. Entries
    with direct calls, or with structured texts that other trials may reuse, are committed at once.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._entries: defaultdict[TrialKey, list[Entry]] = defaultdict(list)
        self.finished: set[TrialKey] = set()
        self.structured = journal.structured
        self.reserve = journal.reserve
        self.settle = journal.settle

    async def record(self, entry: Entry, /) -> None:
        """Keep an entry for the next commit; commit it at once, with its trial's earlier entries,
        if it must not be lost.
        """
        self._entries[entry.trial].append(entry)
        if entry.finished:
            self.finished.add(entry.trial)
        if any(
            call.job is None or call.request.purpose.role is Role.STRUCTURER for call in entry.calls
        ):
            await self._one_by_one(self._entries.pop(entry.trial))

    async def commit(self) -> None:
        entries, self._entries = self._entries, defaultdict(list)
        together = list(chain.from_iterable(entries.values()))
        try:
            if together:
                await self._journal.record_together(together)
        except ConnectionLost:
            raise
        except Exception:  # one entry that cannot be stored must not take the others with it
            for of_trial in entries.values():
                await self._one_by_one(of_trial)

    async def _one_by_one(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            try:
                await self._journal.record(entry)
            except StoreError:
                raise
            except Exception as error:
                failure = Failure(kind="internal", fault=Fault.HARNESS, detail=_detail(error))
                await self._journal.record(Entry(trial=entry.trial, finished=True, failure=failure))
                return


@dataclass(slots=True)
class _Portion:
    """Old and new requests of the trials that are being advanced together."""

    visits: dict[TrialKey, int] = field(default_factory=dict)
    asked: defaultdict[tuple[TrialKey, str], list[JobRequest]] = field(
        default_factory=lambda: defaultdict(list)
    )
    by_key: dict[RequestKey, JobRequest] = field(default_factory=dict)
    heard: Mapping[tuple[int, str], Sequence[Reply]] = field(default_factory=dict)
    new: defaultdict[TrialKey, list[JobRequest]] = field(default_factory=lambda: defaultdict(list))
    newest: dict[TrialKey, ModelRequest] = field(default_factory=dict)
    open: set[TrialKey] = field(default_factory=set)
    void: list[RequestKey] = field(default_factory=list)
    read_at: str = ""


@dataclass(slots=True, kw_only=True)
class BatchAsker:
    """Answers requests from a finished job and puts new requests into new jobs; calls models that
    have no batch API directly.

    `sending`: False for a paused or cancelled run, which gets no new requests. `tries`: number of
    jobs that may leave a request unanswered before its trial fails.
    """

    plan: RunPlan
    live: Asks
    live_slots: asyncio.Semaphore
    jobs: Jobs
    journal: PortionLedger
    directory: ModelDirectory
    clock: Clock
    listener: Listener
    outbox: Outbox
    sending: bool
    tries: int
    finished: Finished | None = None
    structured: list[TrialKey] = field(default_factory=list)
    """Claimed trials that wait before judging, because the run ends after the structuring stage."""
    shared: dict[str, RequestKey] = field(default_factory=dict)
    budget_spent: bool = False
    """True once the budget did not cover a trial's requests; the trial stays pending, and no
    further trial is begun.
    """
    _portion: _Portion = field(default_factory=_Portion)

    def begin(self, trials: Sequence[ClaimedTrial]) -> None:
        """Load the stored requests and replies of some claimed trials, to advance these trials
        next.
        """
        keys = [trial.key for trial in trials]
        portion = self._portion = _Portion(
            visits={trial.key: trial.tries for trial in trials}, read_at=self.clock.now()
        )
        portion.heard = self.jobs.heard(keys)
        for request in self.jobs.requests_of(keys):
            portion.by_key[request.key] = request
            if portion.visits.get(request.trial) == request.visit:
                portion.asked[request.trial, request.digest].append(request)

    def waiting(self, trials: Iterable[TrialKey]) -> list[ParkedTrial]:
        portion = self._portion
        return [
            ParkedTrial(trial=trial, requests=tuple(portion.new[trial]), open=trial in portion.open)
            for trial in trials
        ]

    def newest_request(self, trial: TrialKey) -> ModelRequest:
        return self._portion.newest[trial]

    @property
    def void(self) -> list[RequestKey]:
        """Requests of the current trials that the provider never carried out."""
        return self._portion.void

    async def answer(
        self, request: ModelRequest, read: Callable[[Reply], Read], *, trial: TrialKey
    ) -> ReadAnswer[Read]:
        """Return a finished job's answer in the form of `Asker.answer`.

        Raises `NotYet` if the answer is not available yet, and `GaveUp` if every attempt failed.
        """
        api = self.directory.batches(request.model)
        if api is None:
            async with self.live_slots:
                try:
                    return await self.live.answer(request, read, trial=trial)
                except GaveUp as gave_up:
                    if gave_up.failure.kind != BUDGET:
                        raise
                    await self.note_refusal(request, gave_up.failure, trial=trial)
                    raise NotYet from gave_up
        portion, digest = self._portion, self.jobs.digest(request)
        slot = slot_digest(digest, request)
        calls = readings = missed = 0
        last: JobRequest | None = None
        for kept in portion.heard.get((trial, digest), ()):
            try:
                return ReadAnswer(reply=kept, read=read(kept), calls=())
            except UnreadableReply:
                calls, readings = calls + 1, readings + 1
        for asked in portion.asked[trial, slot]:
            job, shares = asked.key.job, asked.shares
            source = asked if shares is None else portion.by_key.get(RequestKey(job, shares))
            if source is None or (source is not asked and source.state is not RequestState.SENT):
                continue  # its answer failed; this trial asks for itself, as in a live run
            match source.state:
                case RequestState.SENT:
                    try:
                        answer = await self._read(
                            api,
                            request,
                            source,
                            read,
                            digest,
                            trial=trial,
                            calls=calls,
                            readings=readings,
                        )
                        self.shared.pop(digest, None)
                        return answer
                    except NeverAnswered:
                        source.state = RequestState.VOID
                        portion.void.append(source.key)
                        missed += 1
                    except CallFailed as failed:
                        calls, readings, last = (
                            calls + 1,
                            readings + (failed.kind in UNREADABLE),
                            source,
                        )
                case RequestState.GIVEN_UP if source.failure is not None:
                    raise GaveUp(source.failure, source.unread)
                case RequestState.READ if source.failure is not None:
                    calls, readings, last = (
                        calls + 1,
                        readings + (source.failure.kind in UNREADABLE),
                        source,
                    )
                case _:
                    missed += source.state is RequestState.VOID
        # A trial that shared the last answer may have read it first, with fewer tries of its own.
        if (
            last is not None
            and last.failure is not None
            and (calls >= MAX_CALLS or readings >= MAX_READINGS)
        ):
            raise GaveUp(replace(last.failure, tries=calls), last.unread)
        if missed >= self.tries:
            detail = f"{api.place} left the request unanswered in {missed} batches."
            raise GaveUp(Failure(kind="expired", fault=Fault.PROVIDER, detail=detail, tries=missed))
        if self.sending:
            self._ask(api, request, slot, trial)
        raise NotYet

    async def note_refusal(
        self, request: ModelRequest, failure: Failure, *, trial: TrialKey
    ) -> None:
        """Record why the budget refused a request, because the trial stays pending and has no
        failure.
        """
        if not self.budget_spent:  # one refusal is enough to say why
            record = CallRecord(
                request=request, reply=None, failure=failure, number=1, started=self.clock.now()
            )
            await self.journal.record(Entry(trial=trial, calls=(record,)))
        self.budget_spent = True

    def _ask(self, api: BatchApi, request: ModelRequest, digest: str, trial: TrialKey) -> None:
        portion, role = self._portion, request.purpose.role
        worst = worst_usd(self.directory, request)
        if worst is None and self.plan.budget_usd is not None:
            detail = f"{request.model.ref} has no known price."
            raise GaveUp(Failure(kind="unknown_price", fault=Fault.BUDGET, detail=detail))
        # Only the first trial of a task pays for its model solution, as in a live run.
        first = self.shared.get(digest) if role is Role.STRUCTURER else None
        if first is None:
            key = self.outbox.place(api, request)
        else:  # no line of its own, so a number that no line has
            known = sum(request.trial == trial for request in portion.by_key.values())
            key = RequestKey(first.job, -(trial * _MAX_OWN + known + len(portion.new[trial])))
        asked = JobRequest(
            key=key,
            trial=trial,
            role=role,
            digest=digest,
            visit=portion.visits[trial],
            usd=(worst or 0.0) * api.share if first is None else 0.0,
            shares=None if first is None else first.number,
        )
        portion.new[trial].append(asked)
        portion.newest[trial] = request
        if first is None and role is Role.STRUCTURER:
            self.shared[digest] = key

    async def _read(
        self,
        api: BatchApi,
        request: ModelRequest,
        asked: JobRequest,
        read: Callable[[Reply], Read],
        digest: str,
        *,
        trial: TrialKey,
        calls: int,
        readings: int,
    ) -> ReadAnswer[Read]:
        """Read the answer to a sent request.

        If the answer is a failure, it is stored before the next attempt.

        Raises `NotYet`, `NeverAnswered`, `GaveUp`, or `CallFailed` if the request must be sent
        again.
        """
        reply: Reply | None = None
        number = calls + 1
        try:
            reply = self._reply(api, request, asked, trial)
            understood = read(reply)
        except (CallFailed, UnreadableReply) as error:
            failed, reply, failure = outcome_of(error, reply, request, number)
            readings += failed.kind in UNREADABLE
            over = not failed.transient or number >= MAX_CALLS or readings >= MAX_READINGS
            answer = JobAnswer(key=asked.key, digest=digest, given_up=over, unread=failed.unread)
            call = self._call(request, reply, failure, number, answer)
            asked.state = RequestState.GIVEN_UP if over else RequestState.READ
            asked.failure, asked.unread = failure, failed.unread
            await self.journal.record(Entry(trial=trial, calls=(call,)))
            if over:
                raise GaveUp(failure, failed.unread) from error
            raise failed from error
        asked.state = RequestState.READ
        return ReadAnswer(
            reply=reply,
            read=understood,
            calls=(
                self._call(request, reply, None, number, JobAnswer(key=asked.key, digest=digest)),
            ),
        )

    def _reply(
        self, api: BatchApi, request: ModelRequest, asked: JobRequest, trial: TrialKey
    ) -> Reply:
        finished = self.finished
        if finished is None or finished.job != asked.key.job:
            self._portion.open.add(trial)
            raise NotYet
        line = finished.lines.line(asked.key.number)
        if line is None and finished.partial:
            self._portion.open.add(trial)
            raise NotYet
        # an equal request finds the stored reply, or is asked for by its own trial
        self.shared.pop(asked.digest, None)
        if finished.failure is not None:
            failure = finished.failure
            raise CallFailed(
                failure.kind, failure.detail, transient=False, fault=failure.fault, charged=False
            )
        if line is not None:
            return api.reply(request, line, finished.habits)
        if not finished.lost:
            raise NeverAnswered
        detail = f"the batch at {api.place} ended without an answer to this request, which may have been charged."
        raise CallFailed(LOST, detail, transient=False, fault=Fault.PROVIDER)

    def _call(
        self,
        request: ModelRequest,
        reply: Reply | None,
        failure: Failure | None,
        number: int,
        job: JobAnswer,
    ) -> CallRecord:
        self.listener(call_ended(request, reply, failure))
        at = self._portion.read_at
        return CallRecord(
            request=request, reply=reply, failure=failure, number=number, started=at, job=job
        )


async def carry_on(context: RunContext, asker: BatchAsker, claimed: Sequence[ClaimedTrial]) -> None:
    context = replace(context, asker=asker, slots=asyncio.Semaphore(PORTION), journal=asker.journal)
    asker.begin(claimed)
    asker.journal.finished.clear()
    ended: dict[TrialKey, Failure | None] = {}
    waits_for_none = all(
        asker.directory.batches(model) is not None for model in context.plan.models
    )
    async with asyncio.TaskGroup() as group:
        for trial in claimed:
            if (
                waits_for_none
                and trial.task.scoring.method in SCORERS
                and trial.task.scenario is None
            ):
                # no call and no other process: a task of its own would only take time
                await _one(context, trial, ended)
            else:
                group.create_task(_one(context, trial, ended))
    await asker.journal.commit()
    asker.structured += [key for key in ended if key not in asker.journal.finished]
    waiting = asker.waiting(trial.key for trial in claimed if trial.key not in ended)
    refused: frozenset[TrialKey] = frozenset()
    if waiting or asker.void:
        refused = await asyncio.to_thread(
            asker.jobs.park, context.plan.id, waiting, void=asker.void
        )
    asker.outbox.write(
        request.key
        for trial in waiting
        if trial.trial not in refused
        for request in trial.requests
        if request.shares is None
    )
    await _give_back(context, asker, [parked for parked in waiting if parked.trial in refused])
    await asker.journal.commit()
    for trial in claimed:
        if trial.key in ended and trial.key not in asker.structured:
            task = trial.task
            asker.listener(
                TrialEnded(
                    task=task.id, thing=task.thing, k=trial.k, of=trial.of, failure=ended[trial.key]
                )
            )


async def _give_back(
    context: RunContext, asker: BatchAsker, refused: Sequence[ParkedTrial]
) -> None:
    """Make trials pending whose requests the budget does not cover; those with open requests keep
    waiting for them.
    """
    for parked in refused:
        usd = fsum(request.usd for request in parked.requests)
        detail = f"the next requests of a trial may cost up to {money(usd)}, more than is left of the budget."
        failure = Failure(kind=BUDGET, fault=Fault.BUDGET, detail=detail)
        await asker.note_refusal(asker.newest_request(parked.trial), failure, trial=parked.trial)
    if refused:
        without = [replace(parked, requests=()) for parked in refused]
        await asyncio.to_thread(asker.jobs.park, context.plan.id, without)


async def _one(
    context: RunContext, trial: ClaimedTrial, ended: dict[TrialKey, Failure | None]
) -> None:
    try:
        ended[trial.key] = await carry_out(context, trial)
    except NotYet:
        return
    except StoreError:
        raise
    except Exception as error:  # a bug in one trial must not stop the others
        failure = Failure(
            kind="internal", fault=Fault.HARNESS, detail=_detail(error), tries=trial.tries + 1
        )
        ended[trial.key] = failure
        await context.journal.record(Entry(trial=trial.key, finished=True, failure=failure))


def _detail(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]
