"""Send jobs to providers, poll them and collect their answers.

A kill at any point does not repeat a request.

Before a batch is created, its job gets the state `CREATING` in the store. A process that reads this
state searches for the batch at the provider, and creates it only if it does not exist. A `PLANNED`
job was never created, and is deleted.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from assay.domain.failure import CallFailed
from assay.domain.jobs import FILE, BatchJob, BatchStatus, JobState, ParkedTrial
from assay.domain.lifecycle import RunState
from assay.engine.asking import LONGEST_ASKED_WAIT_S
from assay.engine.batch import PORTION, BatchAsker, Finished, PortionLedger, carry_on
from assay.engine.job_files import AnswerLines, Outbox, PlannedJob

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from assay.domain.identifiers import TrialKey
    from assay.domain.model import ModelSpec
    from assay.domain.run import ClaimedTrial, RunPlan
    from assay.engine.execution import Engine
    from assay.ports import BatchApi, Jobs

T = TypeVar("T")

MAX_TRIES: Final = 3
"""Attempts at one step of a job while the provider is busy; a later process tries again."""

_PAUSED: Final = (RunState.PAUSED, RunState.CANCELLED)


@dataclass(slots=True, kw_only=True)
class Collected:
    """Counts and problems of one pass over a run's jobs.

    `answered`: requests whose answers were stored. `unknown`, `repeated`, `broken`: lines of
    downloaded files that match no request, repeat an id, or are not JSON. `troubles`: one sentence
    per job that could not be sent or collected; a later pass tries again. `sent`: jobs sent.
    """

    answered: int = 0
    unknown: int = 0
    repeated: int = 0
    broken: int = 0
    troubles: list[str] = field(default_factory=list)
    sent: int = 0


@dataclass(slots=True, kw_only=True)
class Collector:
    """Advances a run in batch mode as far as the available answers allow.

    `path` maps a job's token to the path of its file. `tries` has the same meaning as in
    `BatchAsker`. `results`: answer files supplied by a person, for jobs without a provider.
    """

    engine: Engine
    jobs: Jobs
    path: Callable[[str], Path]
    results: Sequence[Path] = ()
    tries: int = 5

    async def collect(self, plan: RunPlan, outbox: Outbox) -> Collected:
        """Store the answers of the run's finished jobs, and send jobs with the next requests of its
        trials.

        `outbox` may contain the first requests of a new run.
        """
        self.jobs.void_dead(plan.id)
        state = self.engine.journal.state_of(plan.id)
        asker = self._asker(plan, outbox, sending=state not in _PAUSED)
        done = Collected()
        models = {(model.ref, model.base_url): model for model in plan.models}
        for known in self.jobs.of_runs([plan.id], only_open=True):
            # Read again: another process may have sent it meanwhile, and a job seen as planned
            # would be dropped.
            if known.key in outbox.by_key or (job := self.jobs.hold(known.key)) is None:
                continue
            try:
                api = self._api(models, job)
                await self._go_on(
                    plan, asker, api, job, done, cancelled=state is RunState.CANCELLED
                )
            except CallFailed as failed:
                done.troubles.append(f"job {job.token}: {failed.detail}")
            finally:
                self.jobs.let_go(job.key)
        asker.finished = None
        await self._carry(plan, asker, self._stranded(plan))
        if state is RunState.SUBMITTED:
            await self._carry(plan, asker, self._pending(plan, asker))
        for planned in outbox.close():
            await self._send(planned, done)
        self.jobs.park(plan.id, [ParkedTrial(trial=trial) for trial in asker.structured])
        # With nothing left but judging, the run stops until it is resumed or submitted again.
        waits = self.jobs.rest(plan.id) is RunState.SUBMITTED
        if (
            waits
            and (asker.structured or asker.budget_spent)
            and not self.jobs.of_runs([plan.id], only_open=True)
        ):
            # Answers that are still to come would free what is reserved for them, and the next
            # collection would go on.
            self.engine.journal.set_state(
                plan.id, RunState.PAUSED if asker.budget_spent else RunState.INTERRUPTED
            )
        return done

    def _asker(self, plan: RunPlan, outbox: Outbox, *, sending: bool) -> BatchAsker:
        return BatchAsker(
            plan=plan,
            live=self.engine.context(plan).asker,
            live_slots=asyncio.Semaphore(plan.concurrency),
            jobs=self.jobs,
            journal=PortionLedger(self.engine.journal),
            directory=self.engine.directory,
            clock=self.engine.clock,
            listener=self.engine.listener,
            outbox=outbox,
            sending=sending,
            tries=self.tries,
            shared=self.jobs.structuring(plan.id),
        )

    def _api(self, models: Mapping[tuple[str, str | None], ModelSpec], job: BatchJob) -> BatchApi:
        model = models.get((job.model, job.base_url))
        api = None if model is None else self.engine.directory.batches(model)
        if api is None:
            detail = f"{job.model} has no batch API in these settings, so the answers at {job.place} cannot be collected."
            raise CallFailed("no_batches", detail, transient=False)
        return api

    async def _go_on(
        self,
        plan: RunPlan,
        asker: BatchAsker,
        api: BatchApi,
        job: BatchJob,
        done: Collected,
        *,
        cancelled: bool,
    ) -> None:
        """Do the next step of one job that this process holds: send, poll or collect it."""
        remote = job.remote_id
        if job.state is JobState.PLANNED:
            self._drop(job)
            return
        if job.state is JobState.CREATING:
            mark = job.input_file or ""
            remote = await self._patiently(
                lambda: api.find(str(self.path(job.token)), job.token, mark, job.requests)
            )
            if remote is None and (cancelled or not self.path(job.token).exists()):
                self._drop(job)
                return
            remote = remote or await self._create(
                api, self.path(job.token), job.token, mark, job.requests
            )
            self._note_sent(job.key, job.token, remote)
        if remote is None:
            return
        status = await self._patiently(lambda: api.look(remote))
        if cancelled and not status.ended:
            await self._patiently(lambda: api.cancel(remote))
            status = await self._patiently(lambda: api.look(remote))
        if status.status != job.status:
            self.jobs.note(job.key, status=status.status)
        if not status.ended or (status.status == FILE and not self.results and not cancelled):
            return
        if status.failure is not None:
            self.jobs.note(job.key, detail=status.failure.detail)
        finished = await self._finished(api, job, status, cancelled=cancelled)
        try:
            await self._settle(plan, asker, job, finished, done)
        finally:
            finished.lines.close()

    async def _finished(
        self, api: BatchApi, job: BatchJob, status: BatchStatus, *, cancelled: bool
    ) -> Finished:
        """Download a job's answers, and repeat the download if a file has fewer lines than the
        provider reported.
        """
        lines = AnswerLines(job.token, ())
        for _ in range(MAX_TRIES):
            lines.close()
            paths = await self._patiently(
                lambda: api.fetch(job.remote_id or "", status, str(self.path(job.token)))
            )
            lines = AnswerLines(job.token, map(Path, paths) if paths else self.results)
            if len(lines) >= (status.done or 0):
                break
        short = len(lines) < (status.done or 0)
        return Finished(
            job=job.key,
            habits=job.habits,
            lines=lines,
            failure=None if status.again else status.failure,
            lost=status.finished or short,
            partial=status.status == FILE and not cancelled,
        )

    async def _settle(
        self, plan: RunPlan, asker: BatchAsker, job: BatchJob, finished: Finished, done: Collected
    ) -> None:
        lines, asker.finished = finished.lines, finished
        seen: set[TrialKey] = set()
        # Again for trials on which another process worked meanwhile.
        while waiting := [trial for trial in self.jobs.trials_of(job.key) if trial not in seen]:
            await self._carry(plan, asker, self._claimed(plan, waiting))
            seen.update(waiting)
        if finished.partial and self.jobs.trials_of(job.key):
            return
        if self.jobs.finish(job.key, answered=lines.numbers):
            done.answered += len(lines)
            done.unknown += lines.unknown
            done.repeated += lines.repeated
            done.broken += lines.broken
            for path in self.path(job.token).parent.glob(f"{job.token}*"):
                path.unlink(missing_ok=True)

    async def _send(self, planned: PlannedJob, done: Collected) -> None:
        try:
            if not planned.requests:
                self.jobs.drop(planned.key)
                return
            mark = await self._patiently(
                lambda: planned.api.prepare(str(planned.path), planned.token)
            )
            self.jobs.note(planned.key, state=JobState.CREATING, input_file=mark)
            remote = await self._create(
                planned.api, planned.path, planned.token, mark, planned.requests
            )
            self._note_sent(planned.key, planned.token, remote)
            done.sent += 1
        except CallFailed as failed:
            done.troubles.append(f"job {planned.token}: {failed.detail}")
        finally:
            self.jobs.let_go(planned.key)

    async def _create(self, api: BatchApi, path: Path, token: str, mark: str, requests: int) -> str:
        for number in range(MAX_TRIES):
            try:
                return await api.create(str(path), token, mark)
            except CallFailed as failed:
                if failed.charged and (
                    remote := await self._patiently(
                        lambda: api.find(str(path), token, mark, requests)
                    )
                ):
                    return remote  # the answer was lost, and not the batch
                if not _worth_a_wait(failed, number):
                    raise
                await self._wait(failed, number)
        raise AssertionError("the last try returns or raises")

    def _note_sent(self, key: int, token: str, remote: str) -> None:
        sent = {"state": JobState.SENT, "remote_id": remote, "sent": self.engine.clock.now()}
        self.jobs.note(key, **sent)
        if remote != str(self.path(token)):
            self.path(token).unlink(missing_ok=True)

    def _drop(self, job: BatchJob) -> None:
        self.jobs.drop(job.key)
        self.path(job.token).unlink(missing_ok=True)

    async def _carry(
        self, plan: RunPlan, asker: BatchAsker, claims: Iterator[Sequence[ClaimedTrial]]
    ) -> None:
        for claimed in claims:
            try:
                await carry_on(self.engine.context(plan), asker, claimed)
            except BaseException:  # a server lives on, and these trials must not stay blocked
                self.engine.journal.release(trial.key for trial in claimed)
                raise

    def _claimed(
        self, plan: RunPlan, trials: Sequence[TrialKey]
    ) -> Iterator[Sequence[ClaimedTrial]]:
        for start in range(0, len(trials), PORTION):
            yield self.jobs.claim(plan.id, trials[start : start + PORTION])

    def _stranded(self, plan: RunPlan) -> Iterator[Sequence[ClaimedTrial]]:
        return self._claimed(plan, self.jobs.stranded(plan.id))

    def _pending(self, plan: RunPlan, asker: BatchAsker) -> Iterator[Sequence[ClaimedTrial]]:
        while (
            not asker.budget_spent and self.engine.journal.state_of(plan.id) is RunState.SUBMITTED
        ):
            if not (claimed := self.engine.journal.claim(plan.id, limit=PORTION)):
                return
            yield claimed

    async def _patiently(self, step: Callable[[], Awaitable[T]]) -> T:
        for number in range(MAX_TRIES):
            try:
                return await step()
            except CallFailed as failed:
                if not _worth_a_wait(failed, number):
                    raise
                await self._wait(failed, number)
        raise AssertionError("the last try returns or raises")

    async def _wait(self, failed: CallFailed, number: int) -> None:
        await self.engine.clock.sleep(
            failed.retry_after_s if failed.retry_after_s is not None else 2.0**number / 2
        )


def _worth_a_wait(failed: CallFailed, number: int) -> bool:
    """True if the step may be retried now; `number` counts its attempts from 0."""
    return (
        failed.transient
        and number < MAX_TRIES - 1
        and (failed.retry_after_s or 0.0) <= LONGEST_ASKED_WAIT_S
    )
