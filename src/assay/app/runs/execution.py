"""Store, execute and resume runs."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from assay.app.calibration_status import CalibrationStatus
from assay.app.review.carry_over import keep_reviews
from assay.app.review.lottery import stored_lottery
from assay.app.runs.budget import enough_usd, with_budget
from assay.app.runs.causes import Cause, Pause, causes_of, pause_of
from assay.app.runs.first_look import first_look
from assay.app.runs.preflight import LookAhead, check_providers, look_ahead
from assay.app.runs.remaining_cost import calls_left, remaining_cost
from assay.app.runs.stopper import Stopper
from assay.domain.errors import (
    AssayError,
    DamagedValue,
    Interrupted,
    ReadOnlyStore,
    Refused,
    StoreError,
)
from assay.domain.events import RunStarted, nobody
from assay.domain.first_look import NO_LOOK, FirstLook
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import TO_COME, TrialState
from assay.domain.remaining_cost import RemainingCost
from assay.domain.run import RunOptions
from assay.domain.run_removal import check_in_use
from assay.domain.selection import Selection
from assay.engine.estimate import CostEstimate as CostEstimate
from assay.engine.execution import Engine
from assay.engine.planning import planned_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.app.workspace import Workspace
    from assay.domain.calibration_record import CalibrationRecord
    from assay.domain.events import Listener
    from assay.domain.failure import Failure
    from assay.domain.remaining_cost import CallsAhead
    from assay.domain.run import RunPlan
    from assay.domain.selection import RunSummary, TrialRow
    from assay.domain.suite import Suite
    from assay.ports import Workers
    from assay.providers.directory import Directory
    from assay.store.opening import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Result of an executed run. `seconds` is the wall time in this process.

    `calibrations` contains each judge's current calibration (None without one). `enough_usd` is a
    budget that probably covers the trials that are left for lack of budget; None if the budget was
    enough. `causes` counts the failures by cause. `pause` is the reason if the run paused itself.
    `remaining` is what the rest of an unfinished run costs. `look` is empty for a run that was not
    executed in this process.
    """

    summary: RunSummary
    failures: tuple[TrialRow, ...]
    seconds: float
    calibrations: Mapping[str, CalibrationRecord | None] = field(default_factory=dict)
    enough_usd: float | None = None
    look: FirstLook = NO_LOOK
    causes: tuple[Cause, ...] = ()
    pause: Pause | None = None
    remaining: RemainingCost | None = None


class HowToExecute(TypedDict, total=False):
    """How `carry_out` executes a run: see its arguments."""

    listener: Listener
    stopper: Stopper | None
    only_structure: bool


def run(
    workspace: Workspace,
    suite: Suite,
    options: RunOptions,
    *,
    ahead: LookAhead | None = None,
    **how: Unpack[HowToExecute],
) -> RunResult:
    """Plan, store and execute a run with the arguments of `carry_out`.

    Each call creates a new run, even for the same suite.
    """
    ahead = ahead or look_ahead(workspace, suite, options)
    plan = write_down(workspace.store, suite, options, ahead)
    return carry_out(workspace, plan, retry_failed=False, ahead=ahead.estimate.ahead, **how)


def write_down(store: Store, suite: Suite, options: RunOptions, ahead: LookAhead) -> RunPlan:
    store.journal.open_run(ahead.plan, planned_tasks(suite, options, seed=ahead.plan.seed))
    return ahead.plan


def resume(
    workspace: Workspace,
    run_id: str,
    *,
    budget_usd: float | None = None,
    **how: Unpack[HowToExecute],
) -> RunResult:
    """Execute a run's unfinished and failed trials; `budget_usd` replaces its budget and includes
    its cost so far.
    """
    plan = resumable(workspace, run_id)
    if budget_usd is not None:
        plan = with_budget(
            workspace.directory, plan, result_of(workspace.store, plan.id).summary, budget_usd
        )
        workspace.journal.extend_run(plan, ())
    result = carry_out(workspace, plan, retry_failed=True, **how)
    if plan.regrade_of is not None and keep_reviews(workspace.store, workspace.decisions, plan):
        return replace(
            result_of(workspace.store, plan.id),
            seconds=result.seconds,
            enough_usd=result.enough_usd,
            remaining=result.remaining,
        )
    return result


def resumable(workspace: Workspace, run_id: str) -> RunPlan:
    """Return the plan of a run that can be resumed; raises an error if its models cannot be called
    now.
    """
    plan = workspace.journal.plan_of(run_named(workspace.store, run_id))
    if plan.imported:
        problem = "was imported, so answers that are missing from its file cannot be requested."
        remedy = (
            f"Import a file that has them, or judge the existing answers: {how_to_judge(plan.id)}"
        )
        raise Refused(plan.id, problem, remedy=remedy)
    check_providers(workspace.settings, workspace.directory, plan)
    return plan


def how_to_judge(run: str) -> str:
    return f"assay regrade {run} --judge PROVIDER/MODEL"


def result_of(store: Store, run_id: RunId, *, seconds: float = 0.0) -> RunResult:
    selection = Selection(runs=(run_id,))
    (summary,) = store.archive.runs.matching(selection)
    return RunResult(
        summary=summary,
        failures=tuple(store.archive.trials.matching(selection, failed_only=True)),
        seconds=seconds,
        calibrations=CalibrationStatus(store).judges_of(run_id),
        causes=causes_of(store, summary),
        pause=pause_of(store, summary),
    )


def carry_out(
    workspace: Workspace,
    plan: RunPlan,
    *,
    retry_failed: bool,
    listener: Listener = nobody,
    stopper: Stopper | None = None,
    only_structure: bool = False,
    ahead: tuple[CallsAhead, ...] | None = None,
) -> RunResult:
    """Execute the pending trials of a stored run.

    Args:
        stopper: stops the run from another thread; without a stopper, signals stop the run.
        only_structure: stops before judging; `resume` continues from there.
        ahead: the calls that the trials need, for the listener; None to predict them if there is a
            listener.

    Raises Interrupted if the run was stopped; finished trials are kept.
    """
    began, heard = workspace.clock.monotonic(), listener
    with _resume_named(plan):
        summary = result_of(workspace.store, plan.id).summary
        listener, watch = workspace.notices.watch(plan, summary, listener)
        engine = engine_of(workspace, plan, listener, only_structure=only_structure)
    total = sum(summary.trials.values())
    done = sum(
        n for state, n in summary.trials.items() if state not in (*TO_COME, TrialState.FAILED)
    )
    if ahead is None:
        ahead = () if heard is nobody else calls_left(workspace.store, workspace.directory, plan)
    started = RunStarted(
        run=plan.id,
        suite=plan.suite,
        total=total,
        left=total - done,
        concurrency=plan.concurrency,
        ahead=ahead,
        budget_left_usd=None if plan.budget_usd is None else plan.budget_usd - summary.booked_usd,
    )
    listener(started)
    workspace.results.begin(plan.id)
    try:
        asyncio.run(
            _until_stopped(
                engine,
                workspace.directory,
                workspace.workers,
                plan,
                retry_failed=retry_failed,
                stopper=stopper,
            )
        )
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        raise Interrupted(
            plan.id,
            "was stopped; finished trials are kept.",
            remedy=f"Continue with: assay resume {plan.id}",
        ) from error
    except ReadOnlyStore:  # nothing was executed, so there is nothing to resume
        raise
    except StoreError as error:
        watch.broke(summary)
        raise _stopped_by(error, plan) from error
    except BaseExceptionGroup as group:
        watch.broke(_as_it_is(workspace.store, summary))
        # The engine's task group wraps every error; exit codes and messages need the original.
        cause = _first_expected(group)
        raise (_stopped_by(cause, plan) if isinstance(cause, StoreError) else cause) from group
    finally:
        workspace.results.end(plan.id)
    with _resume_named(plan):
        result = result_of(workspace.store, plan.id, seconds=workspace.clock.monotonic() - began)
        watch.ended(result.summary)
        enough = enough_usd(workspace.store, workspace.directory, plan, result.summary)
        remaining = remaining_cost(workspace.store, workspace.directory, plan, result.summary)
        return replace(
            result, enough_usd=enough, remaining=remaining, look=first_look(workspace.store, plan)
        )


def engine_of(
    workspace: Workspace, plan: RunPlan, listener: Listener, *, only_structure: bool = False
) -> Engine:
    return Engine(
        journal=workspace.journal,
        directory=workspace.directory,
        workers=workspace.workers,
        pages=workspace.pages,
        commands=workspace.commands,
        workspaces=workspace.workspaces,
        clock=workspace.clock,
        listener=listener,
        inherited=_failures_of(workspace.store, plan.regrade_of),
        lottery=stored_lottery(workspace.store, plan),
        only_structure=only_structure,
    )


@contextmanager
def _resume_named(plan: RunPlan) -> Iterator[None]:
    """Add the command that resumes the run to errors raised because the store cannot be reached."""
    try:
        yield
    except (ReadOnlyStore, DamagedValue):  # resuming would not help
        raise
    except StoreError as error:
        raise _stopped_by(error, plan) from error


def _as_it_is(store: Store, before: RunSummary) -> RunSummary:
    """Return a run's current state, or the last known state if the store does not respond."""
    try:
        return result_of(store, before.id).summary
    except StoreError:
        return before


async def _until_stopped(
    engine: Engine,
    directory: Directory,
    workers: Workers,
    plan: RunPlan,
    *,
    retry_failed: bool,
    stopper: Stopper | None,
) -> None:
    """Execute the run.

    SIGTERM, a closed terminal or the stopper end it as Ctrl-C does: finished trials are kept.
    """
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    cancel = task.cancel if task else _nothing
    if stopper is not None:
        stopper.holds(lambda: loop.call_soon_threadsafe(cancel))
    # Without this handler, closing the terminal (SIGHUP) left the run marked as running.
    before: dict[int, Any] = {}
    for name in ("SIGTERM", "SIGHUP") if stopper is None else ():
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        # under nohup a run outlives its terminal
        if number is None or signal.getsignal(number) is signal.SIG_IGN:
            continue
        earlier = signal.getsignal(number)
        # Windows, or not in the main thread
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, cancel)
            before[number] = earlier
    try:
        await engine.execute(plan, retry_failed=retry_failed)
    finally:
        for number, earlier in before.items():
            # asyncio would restore the default action, which ends the process while it writes the
            # results folder.
            loop.remove_signal_handler(number)
            signal.signal(number, earlier)
        if stopper is not None:
            stopper.holds(None)
        await workers.close()
        await directory.close()


def _stopped_by(error: StoreError, plan: RunPlan) -> Interrupted:
    """Return the error for a store failure during a run; its message names the command that resumes
    the run.
    """
    return Interrupted(
        plan.id,
        f"was stopped; finished trials are kept. {error}",
        remedy=f"Then continue with: assay resume {plan.id}",
    )


def _nothing() -> None:
    """Do nothing; used as `cancel` if there is no task to cancel."""


def _first_expected(group: BaseExceptionGroup[BaseException]) -> BaseException:
    expected = group.subgroup(lambda error: isinstance(error, AssayError))
    base_exception: BaseException = expected or group
    while isinstance(base_exception, BaseExceptionGroup):
        base_exception = base_exception.exceptions[0]
    return base_exception


def run_named(store: Store, run_id: str) -> RunId:
    """Return the full id of a run in use, given the id or a unique prefix."""
    (summary,) = store.archive.runs.matching(Selection(runs=(run_id,)))
    check_in_use(summary.id, summary.state)
    return summary.id


def _failures_of(store: Store, run: RunId | None) -> dict[tuple[str, int], Failure]:
    """Return the failures of a run's trials, by (task, k)."""
    if run is None:
        return {}
    rows = store.archive.trials.matching(Selection(runs=(run,)), failed_only=True)
    return {(row.task, row.k): row.failure for row in rows if row.failure is not None}
