"""Execute runs through batch APIs: submit requests, check jobs, and collect answers, in one process
or several.
"""

from __future__ import annotations

import asyncio
import secrets
import subprocess
import time
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from assay.app.review.carry_over import keep_reviews
from assay.app.runs.budget import enough_usd, with_budget
from assay.app.runs.execution import RunResult, engine_of, result_of, resumable, run_named
from assay.app.runs.first_look import first_look
from assay.app.runs.remaining_cost import remaining_cost
from assay.app.runs.run_documents import RunInBatchesDocument, job_document, run_result
from assay.domain.errors import InputError, Refused, SettingsError
from assay.domain.events import RunStarted, nobody
from assay.domain.identifiers import RunId
from assay.domain.jobs import FILE, JobState
from assay.domain.lifecycle import TO_COME, RunState, TrialState
from assay.domain.secret_masking import masked_command
from assay.domain.selection import Selection
from assay.engine.collecting import Collected, Collector
from assay.engine.job_files import Outbox, first_requests
from assay.exchange.readers.batch_server_log import facts_of_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from assay.app.settings import Settings
    from assay.app.workspace import Workspace
    from assay.domain.digest import JsonValue
    from assay.domain.events import Listener
    from assay.domain.jobs import BatchJob
    from assay.domain.run import PlannedTask, RunPlan
    from assay.domain.selection import RunSummary
    from assay.ports import Workers
    from assay.providers.directory import Directory
    from assay.store.opening import Store

_STAGE: Final = "stage"
_LOG_KEPT: Final = 1 << 20
"""Maximum number of bytes that are stored from the end of a command's output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """A run in batch mode: results so far, and counts from the last check for answers."""

    result: RunResult
    jobs: tuple[BatchJob, ...]
    collected: Collected = field(default_factory=Collected)


def batch_document(batch: BatchResult) -> RunInBatchesDocument:
    collected = batch.collected
    return RunInBatchesDocument(
        run=run_result(batch.result),
        jobs=tuple(map(job_document, batch.jobs)),
        answered=collected.answered,
        unknown_lines=collected.unknown,
        repeated_lines=collected.repeated,
        broken_lines=collected.broken,
        troubles=tuple(collected.troubles),
    )


class HowToSubmit(TypedDict, total=False):
    """How `begin` and `submit_stored` submit a run: see their arguments."""

    to_file: Path | None
    by_files: bool
    only_structure: bool
    listener: Listener


def submit(
    workspace: Workspace, plan: RunPlan, tasks: Iterable[PlannedTask], **how: Unpack[HowToSubmit]
) -> BatchResult:
    """Store a run and submit its first requests, with the arguments of `begin`; `collect` continues
    the run.
    """
    return begin(workspace, plan, tasks, **how)()


def begin(
    workspace: Workspace,
    plan: RunPlan,
    tasks: Iterable[PlannedTask],
    *,
    to_file: Path | None = None,
    by_files: bool = False,
    only_structure: bool = False,
    listener: Listener = nobody,
) -> Callable[[], BatchResult]:
    """Store a run as submitted; return the function that sends its first requests.

    `only_structure` stops before judging.
    """
    workspace.directory.batch_files = by_files or to_file is not None
    check_batchable(workspace.directory, plan)
    plan = _staged(plan, only_structure=only_structure)
    outbox = _outbox(
        workspace.store, workspace.settings, plan, _JobFiles(workspace.settings, to_file=to_file)
    )
    ask = first_requests(plan, workspace.jobs, workspace.directory, outbox)
    try:  # submitted from the beginning, so that `collect` goes on after a kill
        workspace.journal.open_run(plan, tasks, state=RunState.SUBMITTED, ask=ask)
    except BaseException:
        outbox.discard()
        raise
    workspace.results.begin(plan.id)
    return lambda: collect(
        workspace, plan.id, to_file=to_file, by_files=by_files, listener=listener, outbox=outbox
    )


def submit_stored(
    workspace: Workspace,
    run_id: str,
    *,
    to_file: Path | None = None,
    by_files: bool = False,
    only_structure: bool = False,
    budget_usd: float | None = None,
    listener: Listener = nobody,
) -> BatchResult:
    """Submit the pending and failed trials of a stored run; with `only_structure`, no judge is
    called.

    `budget_usd` replaces the run's budget and includes its cost so far.

    Models without a batch API get their requests in the file `to_file`; `by_files` writes these
    files below `.assay` instead. Raises `Refused` if another process executes the run.
    """
    plan = resumable(workspace, run_id)
    workspace.directory.batch_files = by_files or to_file is not None
    check_batchable(workspace.directory, plan)
    if workspace.journal.is_carried_out(plan.id):
        raise Refused(
            plan.id,
            "is being executed by another process.",
            remedy=f"Pause it first: assay pause {plan.id}",
        )
    staged = _staged(plan, only_structure=only_structure)
    if budget_usd is not None:
        staged = with_budget(
            workspace.directory, staged, result_of(workspace.store, plan.id).summary, budget_usd
        )
    if staged != plan:
        workspace.journal.extend_run(staged, ())
    workspace.jobs.retry_failed(plan.id)
    workspace.journal.set_state(plan.id, RunState.SUBMITTED)
    workspace.results.begin(plan.id)
    return collect(workspace, plan.id, to_file=to_file, by_files=by_files, listener=listener)


def models_by_batch_api(directory: Directory, plan: RunPlan) -> tuple[list[str], list[str]]:
    """Return (models with a batch API, models without one, which are called directly) of a run."""
    batched: list[str] = []
    called: list[str] = []
    for ref, model in {model.ref: model for model in plan.models}.items():
        (called if directory.batches(model) is None else batched).append(ref)
    return batched, called


def check_batchable(directory: Directory, plan: RunPlan) -> None:
    """Raise `InputError` if no model of the run has a batch API."""
    batched, called = models_by_batch_api(directory, plan)
    if not batched:
        raise InputError(
            plan.suite,
            f"no model has a batch API ({', '.join(called) or 'the run has no models'}).",
            remedy="Models from openai and anthropic have one. For vllm, write a file with --to-file, or use assay batch exec.",
        )


def collect(
    workspace: Workspace,
    run_id: str,
    *,
    to_file: Path | None = None,
    by_files: bool = False,
    results: Sequence[Path] = (),
    listener: Listener = nobody,
    outbox: Outbox | None = None,
) -> BatchResult:
    """Store the answers of finished jobs (or those in the files `results`), then submit the trials'
    next requests.
    """
    plan = workspace.journal.plan_of(run_named(workspace.store, run_id))
    jobs = workspace.jobs.of_runs([plan.id])
    workspace.directory.batch_files = (
        by_files or to_file is not None or any(job.place == FILE for job in jobs)
    )
    for path in results:
        if not path.is_file():
            raise InputError(str(path), "there is no such file.")
    if results and not any(job.place == FILE and job.state is JobState.SENT for job in jobs):
        raise InputError(
            plan.id,
            "is not waiting for answers from files.",
            remedy=f"See assay batch status {plan.id}",
        )
    before = result_of(workspace.store, plan.id).summary
    listener, watch = workspace.notices.watch(plan, before, listener)
    known = {
        job.token: Path(job.input_file) for job in jobs if job.place == FILE and job.input_file
    }
    outbox = outbox or _outbox(
        workspace.store,
        workspace.settings,
        plan,
        _JobFiles(workspace.settings, known, to_file=to_file),
    )
    collector = Collector(
        engine=engine_of(
            workspace, plan, listener, only_structure=plan.environment.get(_STAGE) == "structure"
        ),
        jobs=workspace.jobs,
        path=outbox.path,
        results=results,
        tries=int(_positive(workspace.settings, "batch_tries")),
    )
    began = workspace.clock.monotonic()
    total = sum(before.trials.values())
    left = sum(before.trials.get(state, 0) for state in TO_COME)
    listener(RunStarted(run=plan.id, suite=plan.suite, total=total, left=left))
    collected = asyncio.run(
        _until_done(workspace.directory, workspace.workers, collector, plan, outbox)
    )
    result = result_of(workspace.store, plan.id, seconds=workspace.clock.monotonic() - began)
    if (
        plan.regrade_of is not None
        and result.summary.state is RunState.FINISHED
        and keep_reviews(workspace.store, workspace.decisions, plan)
    ):
        result = replace(result_of(workspace.store, plan.id), seconds=result.seconds)
    if before.state is not result.summary.state or collected.answered:
        workspace.results.end(plan.id)
    if before.state is not result.summary.state:
        watch.ended(result.summary)
    look = (
        first_look(workspace.store, plan)
        if result.summary.state is RunState.FINISHED
        else result.look
    )
    result = replace(
        result,
        enough_usd=enough_usd(workspace.store, workspace.directory, plan, result.summary),
        remaining=remaining_cost(workspace.store, workspace.directory, plan, result.summary),
        look=look,
    )
    return BatchResult(result=result, jobs=workspace.jobs.of_runs([plan.id]), collected=collected)


def collect_all(
    workspace: Workspace,
    run_ids: Sequence[str] = (),
    *,
    watch: bool = False,
    every_s: float | None = None,
    to_file: Path | None = None,
    results: Sequence[Path] = (),
    listening: Callable[[], AbstractContextManager[Listener]] = lambda: nullcontext(nobody),
) -> tuple[BatchResult, ...]:
    """Collect the named runs, or all runs with open jobs.

    With `watch`, repeat until the runs are done.
    """
    interval_s = _positive(workspace.settings, "batch_interval") if every_s is None else every_s
    done: dict[str, BatchResult] = {}
    runs: Sequence[str] = run_ids or waiting_runs(workspace.store)
    while True:
        with listening() as listener:
            for run in runs:
                done[run] = collect(
                    workspace, run, to_file=to_file, results=results, listener=listener
                )
        runs = [run for run in runs if waits(done[run].result.summary)]
        if not watch or not runs:
            return tuple(done.values())
        time.sleep(interval_s)


async def _until_done(
    directory: Directory, workers: Workers, collector: Collector, plan: RunPlan, outbox: Outbox
) -> Collected:
    try:
        return await collector.collect(plan, outbox)
    finally:
        await workers.close()
        await directory.close()


def execute(
    workspace: Workspace, run_id: str, command: Sequence[str], *, listener: Listener = nobody
) -> BatchResult:
    """Let a command answer a run's batch files, stage after stage, until the run is done or the
    command fails.

    `{input}` and `{output}` in the command stand for the two files; a command without them gets `-i
    INPUT -o OUTPUT`.
    """
    result = status(workspace.store, run_id)[0]
    run = result.result.summary.id
    while jobs := [
        job
        for job in workspace.jobs.of_runs([run])
        if job.place == FILE and job.state is JobState.SENT
    ]:
        failed = []
        outputs = []
        for job in jobs:
            output, problem = _answered_by(workspace.store, job, command)
            failed += [problem] if problem else []
            outputs += [output] if output.exists() else []
        result = collect(workspace, run, results=outputs, by_files=True, listener=listener)
        result.collected.troubles.extend(failed)
        if failed or not result.collected.answered:
            break
    return result


def _answered_by(store: Store, job: BatchJob, command: Sequence[str]) -> tuple[Path, str]:
    """Run a command on the file of a job; return (file with answers, reason for a failure)."""
    source = Path(job.input_file or "")
    output, log = source.with_suffix(".answers-0"), source.with_suffix(".log")
    words = [
        word.replace("{input}", str(source)).replace("{output}", str(output)) for word in command
    ]
    if words == list(command):
        words += ["-i", str(source), "-o", str(output)]
    started, began = store.clock.now(), store.clock.monotonic()
    with log.open("wb") as out:
        try:
            code = subprocess.run(
                words, stdout=out, stderr=subprocess.STDOUT, check=False
            ).returncode
        except OSError as error:
            raise InputError(words[0], f"cannot be executed: {error.strerror}.") from error
    seconds = store.clock.monotonic() - began
    text = log.read_bytes()[-_LOG_KEPT:].decode("utf-8", "replace")
    store.jobs.keep_log(job.key, text)
    facts = facts_of_text(text)
    carried: JsonValue = {
        "job": job.token,
        "stage": str(job.stage),
        "command": masked_command(command),
        "version": facts.get("server_version"),
        "req_per_sec": facts.get("requests_per_s"),
        "started_at": started,
        "completed_at": store.clock.now(),
        "duration_seconds": round(seconds, 3),
        "exit_code": code,
    }
    _note_carried(store, job.run, carried)
    if not code and output.exists():
        return output, ""
    last = text.strip().splitlines()[-1:] or ["it printed nothing"]
    problem = f"ended with exit code {code}" if code else "wrote no answers"
    return output, f"job {job.token}: {words[0]} {problem}: {last[0][:300]}"


def _note_carried(store: Store, run: RunId, carried: JsonValue) -> None:
    plan = store.journal.plan_of(run)
    before = plan.environment.get("batch")
    batch: JsonValue = [*(before if isinstance(before, list) else ()), carried]
    state = store.journal.state_of(run)
    store.journal.extend_run(replace(plan, environment={**plan.environment, "batch": batch}), ())
    store.journal.set_state(run, state)


def status(store: Store, run_id: str | None = None) -> tuple[BatchResult, ...]:
    """Return the runs with open jobs, or one run with all of its jobs, without calling a
    provider.
    """
    if run_id is not None:
        run = run_named(store, run_id)
        return (BatchResult(result=result_of(store, run), jobs=store.jobs.of_runs([run])),)
    jobs = store.jobs.of_runs(only_open=True)
    return tuple(
        BatchResult(result=result_of(store, run), jobs=tuple(job for job in jobs if job.run == run))
        for run in waiting_runs(store)
    )


def waits(summary: RunSummary) -> bool:
    """True if a later check of the run's jobs may bring new answers."""
    return summary.state is RunState.SUBMITTED or bool(summary.trials.get(TrialState.SUBMITTED))


def waiting_runs(store: Store) -> tuple[RunId, ...]:
    """Return the runs in use that have trials or jobs at a provider, newest first."""
    open_ = {job.run for job in store.jobs.of_runs(only_open=True)}
    return tuple(
        summary.id
        for summary in store.archive.runs.matching(Selection())
        if summary.id in open_ or waits(summary)
    )


def _staged(plan: RunPlan, *, only_structure: bool) -> RunPlan:
    """Return the plan with the stage after which batches stop, so that later processes stop there
    too.
    """
    environment = {name: value for name, value in plan.environment.items() if name != _STAGE}
    if only_structure:
        environment[_STAGE] = "structure"
    return replace(plan, environment=environment)


def _outbox(store: Store, settings: Settings, plan: RunPlan, files: _JobFiles) -> Outbox:
    most = settings.values["batch_requests"]
    most = None if most is None else int(_positive(settings, "batch_requests"))
    return Outbox(
        store.jobs, plan, name=lambda: secrets.token_hex(6), path=files.path, most_requests=most
    )


def _positive(settings: Settings, key: str) -> float:
    value = float(settings.values[key])
    if not value > 0:
        raise SettingsError(
            key, f"is {value:g}, but must be more than 0.", remedy="Correct it in assay.yaml."
        )
    return value


class _JobFiles:
    """Paths of the files of batch jobs: below the project's `.assay`, or in the folder that the
    user chose.
    """

    def __init__(
        self,
        settings: Settings,
        known: Mapping[str, Path] = MappingProxyType({}),
        *,
        to_file: Path | None = None,
    ) -> None:
        self._folder = settings.folder / ".assay" / "batches"
        self._known = dict(known)
        self._next = to_file
        self._given = 0

    def path(self, token: str) -> Path:
        if token not in self._known:
            self._known[token] = self._folder / f"{token}.jsonl"
            if self._next is not None:
                self._given += 1
                name = (
                    self._next.name
                    if self._given == 1
                    else f"{self._next.stem}-{self._given}{self._next.suffix}"
                )
                self._known[token] = self._next.absolute().with_name(name)
        return self._known[token]
