"""Execute a run: claim trials, carry them out and release them until no trial is left.

One feeder claims a few trials at a time, and workers carry them out. The number of workers is the
run's concurrency. This module starts all asyncio tasks, in one TaskGroup. Pausing or cancelling a
run sets its state in the store, which the feeder reads before every claim and every `LOOK_S`
seconds. Then trials that have begun are finished, and the other claimed trials are released. A run
pauses itself in the same way when its `Breaker` has seen that further calls would fail.

The first trial is carried out alone. It asks each of its candidates and judges once, so that a
wrong key, model name or address costs one call of each and not a whole run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from assay.domain.errors import StoreError
from assay.domain.events import Listener, RunEnded, TrialEnded
from assay.domain.failure import Failure, Fault, is_fatal
from assay.domain.lifecycle import RunState
from assay.domain.review import Decision
from assay.domain.review_sample import ReviewLottery
from assay.domain.run import ClaimedTrial, Entry, RunPlan
from assay.domain.suite import PERSON
from assay.engine.asking import Asker, NotYet
from assay.engine.breaker import Breaker, Halt
from assay.engine.run_context import RunContext
from assay.engine.spending import Spending
from assay.engine.trial import carry_out
from assay.ports import (
    Clock,
    CommandRunner,
    Journal,
    ModelDirectory,
    Pages,
    Workers,
    WorkspaceSource,
)

LOOK_S = 0.25
"""Seconds between checks for pause and cancel; trials may still start during this time."""
_LOCAL = frozenset({"echo", "replay", PERSON})
"""Providers that answer without a network."""
QUICK_S = 1.0
LARGEST_HANDFUL = 8
"""Maximum trials claimed at once per worker. The number doubles while the workers finish a claim
within `QUICK_S`, because each claim is a commit that quick trials should not wait for. Slow trials
are better left to other processes on the same run.
"""


@dataclass(slots=True)
class _Wish:
    """The run's state when it was last read; `gave_back` is True if that state caused a trial to be
    released.
    """

    state: RunState = RunState.RUNNING
    gave_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Executes runs with the given ports.

    `Bench` documents `inherited`, `lottery` and `only_structure`.
    """

    journal: Journal
    directory: ModelDirectory
    workers: Workers
    pages: Pages
    commands: CommandRunner
    clock: Clock
    listener: Listener
    inherited: Mapping[tuple[str, int], Failure] = field(default_factory=dict)
    lottery: ReviewLottery | None = None
    only_structure: bool = False
    workspaces: WorkspaceSource | None = None

    async def execute(self, plan: RunPlan, *, retry_failed: bool) -> Halt | None:
        """Carry out a run's pending trials. Other processes may work on the same run.

        Returns the reason if the run paused itself, otherwise None. Trials that met the reason are
        pending again.

        If this coroutine is cancelled, the run stops cleanly: it drops calls in flight, releases
        claimed trials, and marks the run as interrupted.
        """
        self.journal.begin(plan.id, retry_failed=retry_failed)
        breaker = Breaker()
        context = self.context(plan, breaker=breaker)
        held: set[int] = set()
        try:
            failure = await self._first_trial(context, held, breaker)
            stops = failure is not None and is_fatal(failure.kind)
            while not stops and breaker.halt is None and await self._round(context, held, breaker):
                pass
        except BaseException:
            # Claims become void only when their process ends. A server keeps running, so these
            # trials would stay blocked.
            self.journal.release(held)  # type: ignore[arg-type] # TrialKey is int
            self.journal.set_state(plan.id, RunState.INTERRUPTED)
            self.listener(RunEnded(run=plan.id, finished=False))
            raise
        if breaker.halt is not None or stops:
            self.journal.release(held)  # type: ignore[arg-type] # TrialKey is int
            self.journal.leave_paused(plan.id)
            self.listener(RunEnded(run=plan.id, finished=False))
            return breaker.halt
        # the answers are only structured so far; a later run of the same trials judges them
        if held:
            self.journal.release(held)  # type: ignore[arg-type] # TrialKey is int
            self.journal.set_state(plan.id, RunState.INTERRUPTED)
            self.listener(RunEnded(run=plan.id, finished=False))
            return None
        self.journal.set_state(plan.id, RunState.FINISHED)
        # The state is read again, because `FINISHED` has no effect while another process still
        # holds trials of the run.
        self.listener(
            RunEnded(run=plan.id, finished=self.journal.state_of(plan.id) is RunState.FINISHED)
        )
        return None

    async def _first_trial(
        self, context: RunContext, held: set[int], breaker: Breaker
    ) -> Failure | None:
        """Carry out one trial before all others and return its failure; None if it succeeded, or if
        the run calls no server.
        """
        if not _calls_servers(context.plan):
            return None
        claimed = self._claim(context.plan, 1, _Wish(), breaker)
        if not claimed:
            return None
        held.update(trial.key for trial in claimed)
        return await self._carry_out(context, claimed[0], held)

    async def _round(self, context: RunContext, held: set[int], breaker: Breaker) -> bool:
        """Work until no trial can be claimed; return True if trials released because of a pause
        must be claimed again.
        """
        # The queue is bounded, because other processes that work on the same run cannot claim a
        # trial that waits in it.
        queue: asyncio.Queue[ClaimedTrial | None] = asyncio.Queue(maxsize=context.plan.concurrency)
        wish = _Wish()
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(self._look(context.plan, wish))
            feeding = group.create_task(self._feed(context.plan, queue, held, wish, breaker))
            working = [
                group.create_task(self._work(context, queue, held, wish, breaker))
                for _ in range(context.plan.concurrency)
            ]
            await asyncio.wait([feeding, *working])
            looking.cancel()
        return wish.gave_back and wish.state is not RunState.CANCELLED and breaker.halt is None

    async def _look(self, plan: RunPlan, wish: _Wish) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            wish.state = await asyncio.to_thread(self.journal.state_of, plan.id)

    def context(
        self, plan: RunPlan, *, rerun: Decision | None = None, breaker: Breaker | None = None
    ) -> RunContext:
        """Return the settings, ports and limits that the trials of this run or rerun share."""
        asker = Asker(
            spending=None
            if plan.budget_usd is None
            else Spending(plan.id, self.journal, self.directory),
            journal=self.journal,
            directory=self.directory,
            clock=self.clock,
            listener=self.listener,
            breaker=breaker,
        )
        return RunContext(
            plan=plan,
            journal=self.journal,
            asker=asker,
            workers=self.workers,
            pages=self.pages,
            commands=self.commands,
            slots=asyncio.Semaphore(plan.concurrency),
            work=asyncio.Semaphore(plan.concurrency),
            inherited=self.inherited,
            rerun=rerun,
            lottery=self.lottery,
            only_structure=self.only_structure and rerun is None,
            workspaces=self.workspaces,
        )

    async def _feed(
        self,
        plan: RunPlan,
        queue: asyncio.Queue[ClaimedTrial | None],
        held: set[int],
        wish: _Wish,
        breaker: Breaker,
    ) -> None:
        handful = 1
        while True:
            began = self.clock.monotonic()
            # A claim waits for a commit, so it runs in a thread.
            claiming = asyncio.create_task(
                asyncio.to_thread(self._claim, plan, handful * plan.concurrency, wish, breaker)
            )
            try:
                # The thread cannot be cancelled, so it claims trials even after cancellation. Wait
                # for them, so that they can be released.
                claimed = await asyncio.shield(claiming)
            except asyncio.CancelledError:
                held.update(trial.key for trial in await claiming or ())
                raise
            if claimed is None:
                await self.clock.sleep(LOOK_S)
                continue
            held.update(trial.key for trial in claimed)
            for trial in claimed:
                await queue.put(trial)
            quick = self.clock.monotonic() - began < QUICK_S * handful
            handful = min(2 * handful, LARGEST_HANDFUL) if quick else 1
            if not claimed:
                break
        for _ in range(plan.concurrency):
            await queue.put(None)

    def _claim(
        self, plan: RunPlan, limit: int, wish: _Wish, breaker: Breaker
    ) -> Sequence[ClaimedTrial] | None:
        """Claim the next trials; empty if this process claims no more trials, None while a person
        has paused the run.
        """
        if breaker.halt is not None:
            return ()
        wish.state = self.journal.state_of(plan.id)
        if wish.state is RunState.PAUSED:
            return None
        return () if wish.state is RunState.CANCELLED else self.journal.claim(plan.id, limit=limit)

    async def _work(
        self,
        context: RunContext,
        queue: asyncio.Queue[ClaimedTrial | None],
        held: set[int],
        wish: _Wish,
        breaker: Breaker,
    ) -> None:
        while (claimed := await queue.get()) is not None:
            if breaker.halt is not None or wish.state in (RunState.PAUSED, RunState.CANCELLED):
                wish.gave_back = True
                await asyncio.to_thread(self.journal.release, [claimed.key])
                held.discard(claimed.key)
                continue
            await self._carry_out(context, claimed, held)

    async def _carry_out(
        self, context: RunContext, claimed: ClaimedTrial, held: set[int]
    ) -> Failure | None:
        """Carry out a claimed trial, report its end and return its failure, if any."""
        try:
            failure = await carry_out(context, claimed)
        except (
            NotYet
        ):  # the run pauses itself; the trial keeps its answers so far and becomes pending again
            await asyncio.to_thread(self.journal.release, [claimed.key])
            held.discard(claimed.key)
            return None
        except StoreError:
            raise  # this trial itself did not fail, and the next trials could not be stored either
        except (
            Exception
        ) as error:  # a bug in one trial must not stop the others; it is a fault of the harness
            failure = Failure(
                kind="internal",
                fault=Fault.HARNESS,
                detail=f"{type(error).__name__}: {error}"[:500],
                tries=claimed.tries + 1,
            )
            await self.journal.record(Entry(trial=claimed.key, finished=True, failure=failure))
        if failure is not None or not context.only_structure:
            held.discard(claimed.key)
        task = claimed.task
        self.listener(
            TrialEnded(task=task.id, thing=task.thing, k=claimed.k, of=claimed.of, failure=failure)
        )
        return failure


def _calls_servers(plan: RunPlan) -> bool:
    """True if the run calls a model over a network, so that a key, a name or an address may be
    wrong.
    """
    asked = plan.candidates if plan.regrade_of is None else ()
    models = [*(candidate.model for candidate in asked), *(judge.model for judge in plan.judges)]
    return any(
        model is not None and model.program is None and model.provider not in _LOCAL
        for model in models
    )
