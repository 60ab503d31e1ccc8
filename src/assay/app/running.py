"""The verbs that carry out runs: run, resume, extend, and the look ahead before anything is asked."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from assay.app.estimating import Tally, check_cap
from assay.app.kept_reviews import keep_reviews
from assay.app.notices import check_webhook
from assay.app.stamps import Stamps, check_demands
from assay.app.surroundings import surroundings
from assay.domain.assessment import Response
from assay.domain.calls import ModelRequest, Role
from assay.domain.errors import AssayError, InputError, Interrupted, Refused, StoreError
from assay.domain.events import RunStarted, nobody
from assay.domain.identifiers import RunId, TaskKey, TrialKey, folded
from assay.domain.lifecycle import COUNTS, UNDOABLE, AssessmentState
from assay.domain.run import ClaimedTrial, PlannedTask, RunOptions, check_number_of_trials, within_bounds
from assay.domain.selection import Selection
from assay.domain.suite import CandidateSpec
from assay.engine.estimate import Estimate as Estimate
from assay.engine.estimate import likely_tokens
from assay.engine.execution import Engine
from assay.engine.planning import chosen_candidates, planned_run, planned_tasks
from assay.engine.trial import candidate_request
from assay.scoring.blinding import labels_for
from assay.scoring.building import evaluators_for
from assay.scoring.evaluator import Sitting

if TYPE_CHECKING:
    from pathlib import Path

    from assay.app.wiring import Workspace
    from assay.domain.calibration import CalibrationRecord
    from assay.domain.events import Listener
    from assay.domain.failure import Failure
    from assay.domain.run import RunPlan
    from assay.domain.selection import RunSummary, TrialRow
    from assay.domain.suite import Suite, Task


Held = Iterable[tuple[PlannedTask, int, Mapping[str, Response]]]
"""Trials that hold responses: the task, k, and what each candidate gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What came of carrying out a run, as stored; `seconds` is wall time of this process's part.

    `calibrations`: the current one of each judge; None for a judge that has none.
    """

    summary: RunSummary
    failures: tuple[TrialRow, ...]
    seconds: float
    calibrations: Mapping[str, CalibrationRecord | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAhead:
    """What a run would do: its plan, how much it would ask and cost, notes, and the prompts of its first task."""

    plan: RunPlan
    trials: int
    tasks: int
    estimate: Estimate
    notes: tuple[str, ...]
    prompts: tuple[ModelRequest, ...]


class Stopper:
    """Stops a run that is carried out in another thread, as cleanly as Ctrl-C does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._cancel: Callable[[], object] | None = None

    def holds(self, cancel: Callable[[], object] | None) -> None:
        """What stops it from now on; None once it has ended. If it was stopped before it began, it is stopped now."""
        with self._lock:
            self._cancel = cancel
            if self._stopped and cancel is not None:
                cancel()

    def stop(self) -> None:
        """Drop calls in flight, give claimed trials back; a run that has ended is left alone."""
        with self._lock:
            self._stopped = True
            if self._cancel is not None:
                self._cancel()


def load(workspace: Workspace, path: Path, *, judge: str | None = None) -> Suite:
    """The suite in a file, with the judge of `--judge` or of the settings where it names none itself.

    Raises:
        InputError: everything that is wrong with the file, each with its place and its mend.
    """
    from assay.app.suites import read_suite  # YAML and validation are only needed where a file is read

    return read_suite(workspace, path, judge=judge)


def options_for(
    workspace: Workspace, suite: Suite, options: RunOptions, *, candidates: tuple[str, ...] = ()
) -> RunOptions:
    """The options with candidates looked up by name; a name such as `openai/gpt-4o-mini` adds that model."""
    if not candidates:
        return options
    from assay.app.suites import model_candidate

    known = {folded(candidate.name) for candidate in suite.candidates}
    models = [name for name in candidates if folded(name) not in known and ("/" in name or name == "echo")]
    named = chosen_candidates(suite, tuple(name for name in candidates if name not in models))
    return replace(options, candidates=(*named, *(model_candidate(workspace, name) for name in models)))


def look_ahead(workspace: Workspace, suite: Suite, options: RunOptions) -> LookAhead:
    """Everything that can be known before the first call.

    Raises:
        InputError: a key that is unset, a provider that is refused, a prompt that does not fit, a model that would be asked
            nothing, an unknown price under a budget, a suite without tasks, or more trials than a run holds.
    """
    from assay.app.suites import notes_on

    plan = planned_run(
        suite, options, started=workspace.clock.now(), seed=workspace.seed(),
        nonce=workspace.nonce(),
    )  # fmt: skip
    check_providers(workspace, plan)
    check_demands(workspace, plan)
    plan = replace(plan, environment=surroundings(workspace, plan))
    trials = tasks = 0
    tally = Tally(workspace)
    nothing_asked = _NothingAsked(plan.candidates)
    prompts: tuple[ModelRequest, ...] = ()
    for planned in planned_tasks(suite, options):
        tasks += 1
        nothing_asked.note(planned.task)
        trials += len(planned.trials)
        for alike in _trials_alike(plan, planned.trials):
            requests = tuple(_requests(plan, planned, k=alike[0]))
            for request in requests:
                tally.add(request, times=len(alike))
                _check_context(workspace, request)
            prompts = prompts or requests
    if not tasks:
        raise InputError(suite.name, "has no task with a weight above 0, so that there is nothing to run.")
    nothing_asked.check()
    estimate = tally.estimate()
    check_cap(estimate, plan.budget_usd)
    return LookAhead(
        plan=plan, trials=trials, tasks=tasks, estimate=estimate, notes=notes_on(suite, options), prompts=prompts
    )


def run(
    workspace: Workspace,
    suite: Suite,
    options: RunOptions,
    *,
    ahead: LookAhead | None = None,
    listener: Listener = nobody,
) -> RunResult:
    """Plan, write down and carry out a run. A second run of the same suite is a new run of the same tasks."""
    plan = write_down(workspace, suite, options, ahead or look_ahead(workspace, suite, options))
    return carry_out(workspace, plan, retry_failed=False, listener=listener)


def write_down(workspace: Workspace, suite: Suite, options: RunOptions, ahead: LookAhead) -> RunPlan:
    """Store a run that was looked at, every trial of it waiting to be carried out."""
    workspace.journal.open_run(ahead.plan, planned_tasks(suite, options))
    return ahead.plan


def resume(
    workspace: Workspace, run_id: str, *, listener: Listener = nobody, stopper: Stopper | None = None
) -> RunResult:
    """Finish a run: only what is not done is asked; failed trials are tried again."""
    plan = resumable(workspace, run_id)
    result = carry_out(workspace, plan, retry_failed=True, listener=listener, stopper=stopper)
    if plan.regrade_of is not None and keep_reviews(workspace, plan):
        return replace(result_of(workspace, plan.id), seconds=result.seconds)
    return result


def resumable(workspace: Workspace, run_id: str) -> RunPlan:
    """The plan of a run whose models can be asked now; raises what keeps them from being asked."""
    plan = workspace.journal.plan_of(_run_named(workspace, run_id))
    if plan.imported:
        raise Refused(
            plan.id,
            "was imported: what it lacks is missing in its file, and there is nobody to ask for it.",
            remedy=f"Import a file that has it, or have the answers it holds judged: {how_to_judge(plan.id)}",
        )
    check_providers(workspace, plan)
    return plan


def how_to_judge(run: str) -> str:
    """The command that has a run's stored answers judged."""
    return f"assay regrade {run} --judge PROVIDER/MODEL"


def extend(
    workspace: Workspace,
    run_id: str,
    *,
    more_trials: int = 0,
    until_approved: int | None = None,
    candidates: tuple[CandidateSpec, ...] = (),
    listener: Listener = nobody,
    announce: Callable[[Estimate], None] | None = None,
) -> RunResult:
    """More trials or candidates in the same run; what is stored is not asked again.

    Args:
        more_trials: so many new trials of every task.
        until_approved: as many new trials of each task as it lacks to so many that count or still wait for review.
        candidates: models that join the run.
        announce: told, before anything is asked, how much will be.
    """
    plan = add_to(
        workspace, run_id, more_trials=more_trials, until_approved=until_approved, candidates=candidates,
        announce=announce,
    )  # fmt: skip
    return carry_out(workspace, plan, retry_failed=False, listener=listener)


def add_to(
    workspace: Workspace,
    run_id: str,
    *,
    more_trials: int = 0,
    until_approved: int | None = None,
    candidates: tuple[CandidateSpec, ...] = (),
    announce: Callable[[Estimate], None] | None = None,
    only_look: bool = False,
) -> RunPlan:
    """Write down what `extend` adds, without asking anything yet; with `only_look` nothing is written either."""
    plan = workspace.journal.plan_of(_run_named(workspace, run_id))
    if plan.regrade_of is not None:
        raise Refused(
            plan.id,
            f"grades the responses of run {plan.regrade_of} and asks no candidate.",
            remedy=f"Extend that run, and regrade it again: assay regrade {plan.regrade_of}",
        )
    if plan.imported:
        raise Refused(
            plan.id, "was imported, and no model of it can be asked for more.", remedy="Import a file that has more."
        )
    present = {folded(candidate.name) for candidate in plan.candidates}
    for candidate in candidates:
        if folded(candidate.name) in present:
            raise InputError("--candidate", f"{candidate.name!r} takes part in run {plan.id} already.")
    check_number_of_trials("--trials", more_trials, least=0)
    check_number_of_trials("--until-approved", until_approved)
    if not (more_trials or until_approved or candidates):
        raise InputError(
            "", "nothing to add is named.", remedy="Say --trials N, --until-approved N or --candidate NAME."
        )
    plan = replace(plan, candidates=(*plan.candidates, *candidates))
    check_providers(workspace, plan)
    hopeful = _hopeful_trials(workspace, plan.id) if until_approved else {}

    def added() -> Iterator[PlannedTask]:
        for planned, count in workspace.journal.tasks_of(plan.id):
            lacking = max(0, (until_approved or 0) - hopeful.get(planned.task.id, 0))
            yield replace(planned, trials=range(count + 1, count + 1 + max(more_trials, lacking)))

    said = "--until-approved" if until_approved else "--trials"
    more = within_bounds(added(), said)
    estimate = _estimate_of_more(workspace, plan, more, joining={candidate.name for candidate in candidates})
    if announce is not None:
        announce(estimate)
    if not only_look:
        workspace.journal.extend_run(plan, added())
    return plan


def decisions_replaced(workspace: Workspace, run_id: str) -> int:
    """How many decisions give way when a candidate joins the run: those on grades that were given to all candidates
    together, which are given anew. Each keeps its event in the record."""
    run = _run_named(workspace, run_id)
    return sum(
        row.current and row.candidate is None and row.state in UNDOABLE
        for row in workspace.archive.assessments(Selection(runs=(run,)))
    )


def _estimate_of_more(
    workspace: Workspace, plan: RunPlan, added: Iterable[PlannedTask], *, joining: set[str]
) -> Estimate:
    """What new trials and joining candidates ask; those who join are asked in the trials there are as well, and so is a judge."""
    tally = Tally(workspace)
    nothing_asked = _NothingAsked(candidate for candidate in plan.candidates if candidate.name in joining)
    for planned in added:
        nothing_asked.note(planned.task)
        for alike in _trials_alike(plan, range(1, planned.trials.stop)):
            new = sum(k >= planned.trials.start for k in alike)
            for request in _requests(plan, planned, k=alike[0]):
                asked_before = bool(joining) and request.purpose.candidate in {None, *joining}
                tally.add(request, times=new + (len(alike) - new if asked_before else 0))
                _check_context(workspace, request)
    nothing_asked.check()
    return tally.estimate()


class _NothingAsked:
    """Finds models that would have to answer tasks in which nothing is asked: those without a prompt, as in a set."""

    def __init__(self, candidates: Iterable[CandidateSpec]) -> None:
        self._models = tuple(candidate.name for candidate in candidates if candidate.model is not None)
        self._tasks = self._mute = 0
        self._found: dict[str, None] = {}

    def note(self, task: Task) -> None:
        """Take a task in."""
        self._tasks += 1
        if any(message.role != "system" for message in task.prompt):
            return
        found = [name for name in self._models if task.snippet_of(name) is None]
        self._mute += bool(found)
        self._found.update(dict.fromkeys(found))

    def check(self) -> None:
        """Raise `InputError` where there is such a model."""
        if not self._found:
            return
        names = ", ".join(map(repr, self._found))
        how_many = "no task here has" if self._mute == self._tasks else f"{self._mute} of {self._tasks} tasks here lack"
        raise InputError(
            "--candidate",
            f"{names} would have to be asked, and {how_many} a prompt.",
            remedy="Leave it out, or give every task a `prompt` or a snippet of this name. A set file holds no prompts; a "
            "suite does.",
        )  # fmt: skip


def estimate_of_judging(
    workspace: Workspace, plan: RunPlan, planned: Iterable[PlannedTask], *, held: Held | None = None
) -> Estimate:
    """What judging the stored responses of these trials asks; responses count as long as they may be at most.

    Args:
        held: the responses themselves where only the store knows how long they are: tasks, trials and what was answered.
    """
    tally = Tally(workspace)
    for one, k, responses in held or ():
        for request in _requests(plan, one, k=k, held=responses):
            if request.purpose.role is Role.JUDGE:
                tally.add(request, times=1)
                _check_context(workspace, request)
    for one in planned if held is None else ():
        for alike in _trials_alike(plan, one.trials):
            for request in _requests(plan, one, k=alike[0]):
                if request.purpose.role is Role.JUDGE:
                    tally.add(request, times=len(alike))
                    _check_context(workspace, request)
    return tally.estimate()


def _trials_alike(plan: RunPlan, trials: range) -> list[Sequence[int]]:
    """The trials k in groups that the same judges grade; without judges who take turns, one group."""
    if not any(judge.turn for judge in plan.judges):
        return [trials] if trials else []
    groups: dict[tuple[bool, ...], list[int]] = {}
    for k in trials:
        groups.setdefault(tuple(judge.grades_trial(k) for judge in plan.judges if judge.turn), []).append(k)
    return list(groups.values())


def result_of(workspace: Workspace, run_id: RunId, *, seconds: float = 0.0) -> RunResult:
    """The stored outcome of a run."""
    selection = Selection(runs=(run_id,))
    (summary,) = workspace.archive.runs(selection)
    return RunResult(
        summary=summary,
        failures=tuple(workspace.archive.trials(selection, failed_only=True)),
        seconds=seconds,
        calibrations=Stamps(workspace).judges_of(run_id),
    )


def carry_out(
    workspace: Workspace, plan: RunPlan, *, retry_failed: bool, listener: Listener, stopper: Stopper | None = None
) -> RunResult:
    """Do what is pending of a stored run.

    Args:
        stopper: stops it from another thread; signals stop it where there is none.

    Raises:
        Interrupted: somebody stopped it; what is done is kept.
    """
    began = workspace.clock.monotonic()
    summary = result_of(workspace, plan.id).summary
    listener, watch = workspace.notices.watch(plan, summary, listener)
    engine = Engine(
        journal=workspace.journal,
        directory=workspace.directory,
        workers=workspace.workers,
        pages=workspace.pages,
        clock=workspace.clock,
        listener=listener,
        inherited=_failures_of(workspace, plan.regrade_of),
    )
    total = sum(summary.trials.values())
    done = sum(n for state, n in summary.trials.items() if state not in {"pending", "running", "failed"})
    listener(RunStarted(run=plan.id, suite=plan.suite, total=total, left=total - done))
    workspace.results.begin(plan.id)
    try:
        asyncio.run(_until_stopped(engine, workspace, plan, retry_failed=retry_failed, stopper=stopper))
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        raise Interrupted(
            plan.id, "was stopped; what is done is kept.", remedy=f"Go on with: assay resume {plan.id}"
        ) from error
    except StoreError as error:
        watch.broke(summary)
        raise _stopped_by(error, plan) from error
    except BaseExceptionGroup as group:
        watch.broke(_as_it_is(workspace, summary))
        found = _first_expected(group)
        raise (_stopped_by(found, plan) if isinstance(found, StoreError) else found) from group
    finally:
        workspace.results.end(plan.id)
    result = result_of(workspace, plan.id, seconds=workspace.clock.monotonic() - began)
    watch.ended(result.summary)
    return result


def _as_it_is(workspace: Workspace, before: RunSummary) -> RunSummary:
    """The run as it stands now; as it stood before where the store cannot be asked."""
    try:
        return result_of(workspace, before.id).summary
    except StoreError:
        return before


async def _until_stopped(
    engine: Engine, workspace: Workspace, plan: RunPlan, *, retry_failed: bool, stopper: Stopper | None
) -> None:
    """Execute, with SIGTERM and a terminal that is closed, or a stopper, stopping as cleanly as Ctrl-C does."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    cancel = task.cancel if task else _nothing
    if stopper is not None:
        stopper.holds(lambda: loop.call_soon_threadsafe(cancel))
    for name in ("SIGTERM", "SIGHUP") if stopper is None else ():
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is None or signal.getsignal(number) is signal.SIG_IGN:  # under nohup a run outlives its terminal
            continue
        with suppress(NotImplementedError, ValueError, RuntimeError):  # Windows, or not in the main thread
            loop.add_signal_handler(number, cancel)
    try:
        await engine.execute(plan, retry_failed=retry_failed)
    finally:
        if stopper is not None:
            stopper.holds(None)
        await workspace.workers.close()
        await workspace.directory.close()


def _stopped_by(error: StoreError, plan: RunPlan) -> Interrupted:
    """A store that gave up in the middle of a run, with how to go on once it is mended."""
    return Interrupted(
        plan.id, f"was stopped; what was committed is kept. {error}", remedy=f"Then go on with: assay resume {plan.id}"
    )


def _nothing() -> None:
    """There is no task to cancel."""


def _first_expected(group: BaseExceptionGroup[BaseException]) -> BaseException:
    expected = group.subgroup(lambda error: isinstance(error, AssayError))
    found: BaseException = expected or group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def _run_named(workspace: Workspace, run_id: str) -> RunId:
    (summary,) = workspace.archive.runs(Selection(runs=(run_id,)))
    return summary.id


def _hopeful_trials(workspace: Workspace, run: RunId) -> dict[str, int]:
    """How many trials of each task count or still wait for a person."""
    hopeful = frozenset({*COUNTS, AssessmentState.PENDING})
    trials: dict[str, set[int]] = {}
    for row in workspace.archive.assessments(Selection(runs=(run,)), states=hopeful):
        trials.setdefault(row.task, set()).add(row.k)
    return {task: len(ks) for task, ks in trials.items()}


def check_providers(workspace: Workspace, plan: RunPlan) -> None:
    """Raise what keeps the models of a run from being asked; the candidates of a regrade never are."""
    check_webhook(workspace.settings)
    asked = plan.candidates if plan.regrade_of is None else ()
    candidates = [c.model for c in asked if c.model is not None]
    problems = workspace.directory.problems(candidates, judges=[judge.model for judge in plan.judges])
    if problems:
        raise problems[0]


def _requests(
    plan: RunPlan, planned: PlannedTask, *, k: int = 1, held: Mapping[str, Response] | None = None
) -> Iterable[ModelRequest]:
    """The calls of the k-th trial of a task, as far as they are known before any answer is; `held`: answers that are."""
    responses = {s.candidate: Response(candidate=s.candidate, text=s.text) for s in planned.task.snippets}
    responses.update(held or {})
    claimed = ClaimedTrial(
        key=TrialKey(0), run_id=plan.id, task_key=TaskKey(0), task=planned.task, k=k, of=len(planned.trials),
        responses=responses, done=frozenset(),
    )  # fmt: skip
    for candidate in plan.candidates:
        if candidate.model is not None:
            request = candidate_request(plan, claimed, candidate.name, candidate.model)
            responses[candidate.name] = Response(
                candidate=candidate.name, text="x" * 2 * (request.parameters.max_tokens or 0)
            )
            yield request
    for evaluator in evaluators_for(planned.task, plan.judges, plan.rubric, k=k):
        if not evaluator.by_model:
            continue
        for slot in evaluator.slots(tuple(responses)):
            names = tuple(responses) if slot.candidate is None else (slot.candidate,)
            labels = labels_for(names, plan.seed)
            shown = tuple(responses[name] for name in labels)
            asked = evaluator.foreseen(Sitting(task=planned.task, responses=shown, labels=labels, k=k, seed=plan.seed))
            yield from (request for request in asked if isinstance(request, ModelRequest))


def _failures_of(workspace: Workspace, run: RunId | None) -> dict[tuple[str, int], Failure]:
    """Why trials of a run failed, by task and k."""
    if run is None:
        return {}
    rows = workspace.archive.trials(Selection(runs=(run,)), failed_only=True)
    return {(row.task, row.k): row.failure for row in rows if row.failure is not None}


def _check_context(workspace: Workspace, request: ModelRequest) -> None:
    room = workspace.directory.context_tokens(request.model)
    asked, _ = likely_tokens(request)
    answered = request.parameters.max_tokens or 0
    if room is not None and asked + answered > room:
        what = "the judge's prompt" if request.purpose.role == "judge" else "the prompt"
        raise InputError(
            f"task {request.purpose.task}",
            f"{what} is about {asked:,} tokens and its answer up to {answered:,}; {request.model.ref} holds {room:,}.",
            remedy="Use `mode: each`, fewer or shorter candidates, a lower max_tokens, or a model with more room.",
        )
