"""Runs started or resumed on a page, each of which has its own thread and event loop in this
process.

Each run has its own providers and workers, and shares the store with the pages. Stopping the server
stops its runs like Ctrl-C in a terminal: finished work is kept, and any process can resume the
runs.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from assay.app.runs import batch, execution, stopper as stopper_
from assay.app.runs.budget import with_budget
from assay.domain.errors import AssayError, Interrupted, Refused
from assay.domain.lifecycle import RunState
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from assay.app.workspace import Workspace
    from assay.domain.identifiers import RunId
    from assay.domain.run import PlannedTask, RunPlan

MAX_AT_ONCE: Final = 8
"""Maximum number of runs that one server executes at once; more would only slow each other down."""

_TO_BEGIN: Final = frozenset({RunState.PLANNED, RunState.INTERRUPTED})
_REMEMBERED: Final = 1000
_PATIENCE_S: Final = 10.0
_log = logging.getLogger("assay")


class Runner:
    """Executes the runs of this process. Thread-safe."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()  # protects everything below
        self._runs: dict[RunId, tuple[threading.Thread, stopper_.Stopper]] = {}
        self._troubles: dict[RunId, AssayError] = {}
        self._waiting: deque[RunPlan] = deque()
        self._stopped = False

    def check_room(self) -> None:
        """Raise `Refused` if this server already executes `MAX_AT_ONCE` runs."""
        with self._lock:
            self._check_room()

    def begin(self, plan: RunPlan) -> None:
        """Execute a run that was just stored or extended; raises `Refused` if this process executes
        it already.
        """
        self._start(
            plan.id,
            lambda beside, stopper: execution.carry_out(
                beside, plan, retry_failed=False, listener=_nothing, stopper=stopper, ahead=()
            ),
        )

    def queue(self, plan: RunPlan) -> None:
        """Execute a stored run as soon as a slot is free; does nothing if the run already waits or
        is executing.
        """
        with self._lock:
            if plan.id in self._runs or any(waiting.id == plan.id for waiting in self._waiting):
                return
            self._waiting.append(plan)
        self._begin_waiting()

    def resume(self, run: RunId, *, budget_usd: float | None = None) -> None:
        """Execute the rest of a run; raises an error if its models cannot be called or the budget
        is too small.
        """
        plan = execution.resumable(self._workspace, run)
        with_budget(
            self._workspace.directory,
            plan,
            execution.result_of(self._workspace.store, run).summary,
            budget_usd,
        )
        self._start(
            run,
            lambda beside, stopper: execution.resume(
                beside, run, budget_usd=budget_usd, stopper=stopper
            ),
        )

    def submit(self, plan: RunPlan, tasks: Iterable[PlannedTask]) -> None:
        """Store a run and submit its first requests, as `assay batch submit` does; raises an error
        if it cannot be stored.
        """
        self.collect(plan.id, batch.begin(self._workspace.beside(), plan, tasks))

    def collect(self, run: RunId, first: Callable[[], batch.BatchResult] | None = None) -> None:
        """Collect the answers to a run's batches and submit the next requests; `first` submits a
        new run's first requests.
        """

        def collect(beside: Workspace, _: stopper_.Stopper) -> None:
            troubles = (batch.collect(beside, run) if first is None else first()).collected.troubles
            if troubles:
                raise Refused(run, " ".join(troubles), remedy="Collect again later.")

        self._start(run, collect)

    def trouble(self, run: RunId) -> AssayError | None:
        with self._lock:
            return self._troubles.get(run)

    def stop(self) -> None:
        """Stop every run of this process and wait until each has released its trials."""
        with self._lock:
            self._stopped = True
            self._waiting.clear()  # they are stored and not started
            runs = list(self._runs.values())
        for _, stopper in runs:
            stopper.stop()
        for thread, _ in runs:
            thread.join(_PATIENCE_S)

    def _start(self, run: RunId, what: Callable[[Workspace, stopper_.Stopper], object]) -> None:
        stopper = stopper_.Stopper()
        thread = threading.Thread(
            target=self._carry_out, args=(run, what, stopper), name=f"assay-run-{run}", daemon=True
        )
        with self._lock:
            ending = self._runs.get(run)
        if ending is not None and not self._workspace.journal.is_carried_out(run):
            ending[0].join(_PATIENCE_S)  # its trials are done; only cleanup is left
        with self._lock:
            if self._stopped:
                raise Refused(run, "cannot start: the server is stopping.")
            if run in self._runs:
                raise Refused(run, "is already running in this server.")
            self._check_room()
            self._troubles.pop(run, None)
            self._runs[run] = (thread, stopper)
            # within the lock, so that `stop` never joins a thread that was not started
            thread.start()

    def _begin_waiting(self) -> None:
        while True:
            with self._lock:
                if self._stopped or not self._waiting or len(self._runs) >= MAX_AT_ONCE:
                    return
                plan = self._waiting.popleft()
                if plan.id in self._runs:
                    continue
            try:
                (summary,) = self._workspace.archive.runs.matching(Selection(runs=(plan.id,)))
                if summary.state in _TO_BEGIN:  # it may have been cancelled while it waited
                    self.begin(plan)
            except Refused:  # another request started a run in the meantime
                with self._lock:
                    if not self._stopped and plan.id not in self._runs:
                        self._waiting.appendleft(plan)
                return
            except AssayError as error:
                with self._lock:
                    self._troubles[plan.id] = error

    def _check_room(self) -> None:
        if len(self._runs) >= MAX_AT_ONCE:
            problem = f"is already executing {MAX_AT_ONCE} runs."
            raise Refused(
                "the server", problem, remedy="Wait until one of them ends, or use `assay run`."
            )

    def _carry_out(
        self,
        run: RunId,
        what: Callable[[Workspace, stopper_.Stopper], object],
        stopper: stopper_.Stopper,
    ) -> None:
        try:
            # With its own providers, because a run closes its connections when it ends.
            what(self._workspace.beside(), stopper)
        except Interrupted:
            _log.info("run %s was stopped with the server", run)
        except AssayError as error:
            with self._lock:
                self._troubles[run] = error
        except Exception:
            _log.exception("run %s broke off", run)
            with self._lock:
                self._troubles[run] = Refused(
                    run, "failed because of an internal error; see the server's log."
                )
        finally:
            with self._lock:
                self._runs.pop(run, None)
            self._begin_waiting()


@dataclass(slots=True)
class Starts:
    """Started runs by idempotency key, so that a repeated request starts no second run.

    Thread-safe.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    runs: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def once(self, key: str | None, start: Callable[[], str]) -> str:
        if key is None:
            return start()
        with self.lock:
            started = self.runs.get(key)
            if started is None:
                started = self.runs[key] = start()
                while len(self.runs) > _REMEMBERED:
                    self.runs.popitem(last=False)
            return started


def _nothing(_event: object) -> None:
    """Ignore an engine event, because pages read the store instead."""
