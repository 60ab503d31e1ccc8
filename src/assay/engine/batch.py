"""Carry trials as far as they go without waiting: answers come from finished jobs, and new requests go into new jobs.

Theory. A trial in batch mode is carried out by the same code as any other, again and again: `BatchAsker` answers a request
from the job that held it, or raises `NotYet` and puts the request into a new job. What a trial has learned is stored on the
way, so each pass begins where the last one ended, and the records are those of a live run.

House rules. A request is stored before it is in a file, and its file is complete before anything is sent. An answer is marked
as read in the commit that uses it.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import orjson

from assay.domain.calls import Role
from assay.domain.errors import StoreError
from assay.domain.events import TrialEnded
from assay.domain.failure import CallFailed, Failure, Fault
from assay.domain.jobs import (
    STAGE_OF,
    JobAnswer,
    JobRequest,
    ParkedTrial,
    RequestKey,
    RequestState,
    custom_id,
    number_of,
)
from assay.domain.run import CallRecord, Entry
from assay.engine.asking import (
    MOST_CALLS,
    MOST_READINGS,
    UNREADABLE,
    GaveUp,
    NotYet,
    ReadAnswer,
    call_ended,
    outcome_of,
)
from assay.engine.estimate import worst_case_tokens
from assay.engine.trial import carry_out
from assay.ports import NeverAnswered
from assay.scoring.evaluator import UnreadableReply

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from assay.domain.calls import ModelRequest, Reply
    from assay.domain.events import Listener
    from assay.domain.identifiers import TrialKey
    from assay.domain.jobs import JobStage
    from assay.domain.run import ClaimedTrial, RunPlan
    from assay.engine.asking import Asks, Read
    from assay.engine.bench import Bench
    from assay.ports import BatchApi, Clock, Jobs, Ledger, ModelDirectory

PORTION: Final = 500
"""Trials that are carried on together; their answers and new requests are in memory at once."""

MOST_JOBS: Final = 5
"""Jobs in which a request may be left unanswered before its trial fails."""

_MOST_OWN: Final = 1024
"""More than the requests that one trial ever has in jobs."""

LOST: Final = "no_line"
"""Kind of failure of a request for which a finished batch has no line; it may have been charged."""


class AnswerLines:
    """The lines of a job's downloaded files, by the number of their request; of two with one number, the first counts."""

    def __init__(self, token: str, paths: Iterable[Path]) -> None:
        self.unknown = self.repeated = self.broken = 0
        self._files: list[mmap] = []
        self._places: dict[int, tuple[mmap, int, int]] = {}
        for path in paths:
            with path.open("rb") as file:
                if not path.stat().st_size:
                    continue
                # Mapped and not read: 50,000 reads in another order took a third of the time of collecting.
                mapped = mmap(file.fileno(), 0, access=ACCESS_READ)
                self._files.append(mapped)
                offset = 0
                for line in file:
                    self._note(token, mapped, offset, line)
                    offset += len(line)

    def __len__(self) -> int:
        return len(self._places)

    def _note(self, token: str, file: mmap, offset: int, line: bytes) -> None:
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            self.broken += bool(line.strip())
            return
        number = number_of(row.get("custom_id"), token) if isinstance(row, dict) else None
        if number is None:
            self.unknown += 1
        elif number in self._places:
            self.repeated += 1
        else:
            self._places[number] = (file, offset, offset + len(line))

    def line(self, number: int) -> Mapping[str, object] | None:
        """Return the line of a request; None if there is none."""
        place = self._places.get(number)
        if place is None:
            return None
        file, start, end = place
        row: Mapping[str, object] = orjson.loads(file[start:end])
        return row

    @property
    def numbers(self) -> Collection[int]:
        """The numbers of the requests with a line."""
        return self._places.keys()

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()


@dataclass(slots=True, kw_only=True)
class PlannedJob:
    """A job whose file is being written."""

    key: int
    token: str
    api: BatchApi
    path: Path
    file: BinaryIO
    requests: int = 0
    size: int = 0
    taken: int = 0
    """Numbers given to requests, of which some may not have been written."""


class Outbox:
    """New requests of a run, in files by model and stage; `name` gives the token of a job, `path` the place of its file."""

    def __init__(self, jobs: Jobs, plan: RunPlan, *, name: Callable[[], str], path: Callable[[str], Path]) -> None:
        self._jobs = jobs
        self._plan = plan
        self._name = name
        self._path = path
        self._open: dict[tuple[str, str | None, JobStage], PlannedJob] = {}
        self._lines: dict[RequestKey, bytes] = {}
        self._by_key: dict[int, PlannedJob] = {}

    def place(self, api: BatchApi, request: ModelRequest) -> RequestKey:
        """Return the key of a new request; it is sent only if `write` gets this key after the request was stored."""
        model, stage = request.model, STAGE_OF[request.purpose.role]
        job = self._open.get((model.ref, model.base_url, stage))
        while True:
            if job is None:
                job = self._open[model.ref, model.base_url, stage] = self._begin(api, request, stage)
            key = RequestKey(job.key, job.taken + 1)
            line = api.line(custom_id(job.token, key.number), request)
            if job.taken == 0 or (job.taken < api.most_requests and job.size + len(line) < api.most_bytes):
                break
            job = None
        job.taken += 1
        job.size += len(line) + 1
        self._lines[key] = line
        return key

    def write(self, keys: Iterable[RequestKey]) -> None:
        """Write stored requests to the files of their jobs, and forget the others."""
        for key in keys:
            job = self._by_key[key.job]
            job.file.write(self._lines[key] + b"\n")
            job.requests += 1
        self._lines.clear()

    def close(self) -> tuple[PlannedJob, ...]:
        """Complete the files and return the jobs, in the order in which they were begun."""
        for job in self._by_key.values():
            job.file.flush()
            os.fsync(job.file.fileno())
            job.file.close()
            self._jobs.note(job.key, requests=job.requests)
        return tuple(self._by_key.values())

    def _begin(self, api: BatchApi, request: ModelRequest, stage: JobStage) -> PlannedJob:
        token = self._name()
        path = self._path(token)
        path.parent.mkdir(parents=True, exist_ok=True)
        key = self._jobs.plan(
            self._plan.id,
            token=token,
            stage=stage,
            place=api.place,
            model=request.model.ref,
            base_url=request.model.base_url,
            habits=api.habits(request.model),
        )
        file = path.open("wb")
        job = self._by_key[key] = PlannedJob(key=key, token=token, api=api, path=path, file=file)
        return job


@dataclass(slots=True, kw_only=True)
class Finished:
    """The answers of a job that has ended; `lost` is the failure of requests without a line, None if they were not charged."""

    job: int
    habits: str
    lines: AnswerLines
    failure: Failure | None = None
    lost: bool = False
    partial: bool = False
    """True if further lines may come, so that a request without one goes on waiting."""


@dataclass(slots=True)
class _Portion:
    """Requests of the trials at hand, and their effects."""

    visits: dict[TrialKey, int] = field(default_factory=dict)
    asked: defaultdict[tuple[TrialKey, str], list[JobRequest]] = field(default_factory=lambda: defaultdict(list))
    by_key: dict[RequestKey, JobRequest] = field(default_factory=dict)
    heard: Mapping[tuple[int, str], Sequence[Reply]] = field(default_factory=dict)
    new: defaultdict[TrialKey, list[JobRequest]] = field(default_factory=lambda: defaultdict(list))
    open: set[TrialKey] = field(default_factory=set)
    void: list[RequestKey] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class BatchAsker:
    """Answers requests from a finished job, and places the others into new jobs; models without a batch API are called.

    `sending` is False for a run that was paused or cancelled: then no new request is placed.
    """

    plan: RunPlan
    live: Asks
    live_slots: asyncio.Semaphore
    jobs: Jobs
    journal: Ledger
    directory: ModelDirectory
    clock: Clock
    listener: Listener
    outbox: Outbox
    sending: bool
    finished: Finished | None = None
    shared: dict[str, RequestKey] = field(default_factory=dict)
    _portion: _Portion = field(default_factory=_Portion)

    def begin(self, trials: Sequence[ClaimedTrial]) -> None:
        """Take on a portion of claimed trials."""
        keys = [trial.key for trial in trials]
        portion = self._portion = _Portion(visits={trial.key: trial.tries for trial in trials})
        portion.heard = self.jobs.heard(keys)
        for request in self.jobs.requests_of(keys):
            portion.by_key[request.key] = request
            if portion.visits.get(request.trial) == request.visit:
                portion.asked[request.trial, request.digest].append(request)

    def waiting(self, trials: Iterable[TrialKey]) -> list[ParkedTrial]:
        """Return these trials, which cannot go on, with their new requests."""
        portion = self._portion
        return [
            ParkedTrial(trial=trial, requests=tuple(portion.new[trial]), open=trial in portion.open) for trial in trials
        ]

    @property
    def void(self) -> list[RequestKey]:
        """Requests of this portion that were never carried out."""
        return self._portion.void

    async def answer(
        self, request: ModelRequest, read: Callable[[Reply], Read], *, trial: TrialKey
    ) -> ReadAnswer[Read]:
        """Return the answer of a finished job, as `Asker.answer` returns that of a call.

        Raises:
            NotYet: it waits at the provider, or will wait there.
            GaveUp: every try failed.
        """
        api = self.directory.batches(request.model)
        if api is None:
            async with self.live_slots:
                return await self.live.answer(request, read, trial=trial)
        portion, digest = self._portion, self.jobs.digest(request)
        calls = readings = missed = 0
        for kept in portion.heard.get((trial, digest), ()):
            try:
                return ReadAnswer(reply=kept, read=read(kept), calls=())
            except UnreadableReply:
                calls, readings = calls + 1, readings + 1
        for asked in portion.asked[trial, digest]:
            job, shares = asked.key.job, asked.shares
            source = asked if shares is None else portion.by_key.get(RequestKey(job, shares))
            if source is None or (source is not asked and source.state is not RequestState.SENT):
                continue  # its answer failed; this trial asks for itself, as in a live run
            match source.state:
                case RequestState.SENT:
                    try:
                        answer = await self._read(
                            api, request, source, read, trial=trial, calls=calls, readings=readings
                        )
                        self.shared.pop(digest, None)
                        return answer
                    except NeverAnswered:
                        source.state = RequestState.VOID
                        portion.void.append(source.key)
                        missed += 1
                    except CallFailed as failed:
                        calls, readings = calls + 1, readings + (failed.kind in UNREADABLE)
                case RequestState.GIVEN_UP if source.failure is not None:
                    raise GaveUp(source.failure, source.unread)
                case RequestState.READ if source.failure is not None:
                    calls, readings = calls + 1, readings + (source.failure.kind in UNREADABLE)
                case _:
                    missed += source.state is RequestState.VOID
        if missed >= MOST_JOBS:
            detail = f"{api.place} left the request unanswered in {missed} batches."
            raise GaveUp(Failure(kind="expired", fault=Fault.PROVIDER, detail=detail, tries=missed))
        if self.sending:
            self._ask(api, request, digest, trial)
        raise NotYet

    def _ask(self, api: BatchApi, request: ModelRequest, digest: str, trial: TrialKey) -> None:
        portion, role = self._portion, request.purpose.role
        worst = self.directory.cost_usd(
            request.model, **dict(zip(("input_tokens", "output_tokens"), worst_case_tokens(request), strict=True))
        )
        if worst is None and self.plan.budget_usd is not None:
            detail = f"{request.model.ref} has no known price."
            raise GaveUp(Failure(kind="unknown_price", fault=Fault.BUDGET, detail=detail))
        # Only the first trial of a task pays for its model solution, as in a live run.
        first = self.shared.get(digest) if role is Role.STRUCTURER else None
        if first is None:
            key = self.outbox.place(api, request)
        else:  # no line of its own, so a number that no line has
            known = sum(request.trial == trial for request in portion.by_key.values())
            key = RequestKey(first.job, -(trial * _MOST_OWN + known + len(portion.new[trial])))
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
        if first is None and role is Role.STRUCTURER:
            self.shared[digest] = key

    async def _read(
        self,
        api: BatchApi,
        request: ModelRequest,
        asked: JobRequest,
        read: Callable[[Reply], Read],
        *,
        trial: TrialKey,
        calls: int,
        readings: int,
    ) -> ReadAnswer[Read]:
        """Read the answer to a request that waits; a failed one is stored before the next try.

        Raises:
            NotYet, NeverAnswered, GaveUp
            CallFailed: it failed and is asked for again.
        """
        reply: Reply | None = None
        number = calls + 1
        try:
            reply = self._reply(api, request, asked, trial)
            understood = read(reply)
        except (CallFailed, UnreadableReply) as error:
            failed, reply, failure = outcome_of(error, reply, request, number)
            readings += failed.kind in UNREADABLE
            over = not failed.transient or number >= MOST_CALLS or readings >= MOST_READINGS
            answer = JobAnswer(key=asked.key, digest=asked.digest, given_up=over, unread=failed.unread)
            call = self._call(request, reply, failure, number, answer)
            await self.journal.record(Entry(trial=trial, calls=(call,)))
            asked.state = RequestState.GIVEN_UP if over else RequestState.READ
            asked.failure, asked.unread = failure, failed.unread
            if over:
                raise GaveUp(failure, failed.unread) from error
            raise failed from error
        asked.state = RequestState.READ
        return ReadAnswer(
            reply=reply,
            read=understood,
            calls=(self._call(request, reply, None, number, JobAnswer(key=asked.key, digest=asked.digest)),),
        )

    def _reply(self, api: BatchApi, request: ModelRequest, asked: JobRequest, trial: TrialKey) -> Reply:
        finished = self.finished
        if finished is None or finished.job != asked.key.job:
            self._portion.open.add(trial)
            raise NotYet
        line = finished.lines.line(asked.key.number)
        if line is None and finished.partial:
            self._portion.open.add(trial)
            raise NotYet
        self.shared.pop(asked.digest, None)  # an equal request finds the stored reply, or is asked for by its own trial
        if finished.failure is not None:
            failure = finished.failure
            raise CallFailed(failure.kind, failure.detail, transient=False, fault=failure.fault, charged=False)
        if line is not None:
            return api.reply(request, line, finished.habits)
        if not finished.lost:
            raise NeverAnswered
        detail = f"the batch at {api.place} ended without an answer to this request, which may have been charged."
        raise CallFailed(LOST, detail, transient=False, fault=Fault.PROVIDER)

    def _call(
        self, request: ModelRequest, reply: Reply | None, failure: Failure | None, number: int, job: JobAnswer
    ) -> CallRecord:
        self.listener(call_ended(request, reply, failure))
        return CallRecord(
            request=request, reply=reply, failure=failure, number=number, started=self.clock.now(), job=job
        )


async def carry_on(bench: Bench, asker: BatchAsker, claims: Iterator[Sequence[ClaimedTrial]]) -> None:
    """Carry each portion of claimed trials as far as it goes, and let those wait that need answers."""
    bench = replace(bench, asker=asker, slots=asyncio.Semaphore(PORTION))
    for claimed in claims:
        try:
            await _carry(bench, asker, claimed)
        except BaseException:  # a server lives on, and these trials must not stay blocked
            bench.journal.release(trial.key for trial in claimed)
            raise


async def _carry(bench: Bench, asker: BatchAsker, claimed: Sequence[ClaimedTrial]) -> None:
    asker.begin(claimed)
    async with asyncio.TaskGroup() as group:
        outcomes = {trial.key: group.create_task(_one(bench, trial, asker.listener)) for trial in claimed}
    waiting = asker.waiting(key for key, task in outcomes.items() if not task.result())
    refused = await asyncio.to_thread(asker.jobs.park, bench.plan.id, waiting, void=asker.void)
    asker.outbox.write(
        request.key
        for trial in waiting
        if trial.trial not in refused
        for request in trial.requests
        if request.shares is None
    )
    for trial in claimed:
        if trial.key in refused:
            usd = sum(request.usd for parked in waiting if parked.trial == trial.key for request in parked.requests)
            detail = f"its requests may cost up to ${usd:.4f}, more than is left of the budget."
            failure = Failure(kind="budget", fault=Fault.BUDGET, detail=detail)
            await bench.journal.record(Entry(trial=trial.key, finished=True, failure=failure))
            _tell(asker.listener, trial, failure)


async def _one(bench: Bench, trial: ClaimedTrial, listener: Listener) -> bool:
    """Carry a trial on; True if it ended."""
    try:
        failure = await carry_out(bench, trial)
    except NotYet:
        return False
    except StoreError:
        raise
    except Exception as error:  # a bug in one trial must not stop the others
        detail = f"{type(error).__name__}: {error}"[:500]
        failure = Failure(kind="internal", fault=Fault.HARNESS, detail=detail, tries=trial.tries + 1)
        await bench.journal.record(Entry(trial=trial.key, finished=True, failure=failure))
    _tell(listener, trial, failure)
    return True


def _tell(listener: Listener, trial: ClaimedTrial, failure: Failure | None) -> None:
    task = trial.task
    listener(TrialEnded(task=task.id, thing=task.thing, k=trial.k, of=trial.of, failure=failure))
