"""`assay batch`: execute runs through providers' batch APIs."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.app.runs.run_request import RunRequest
from assay.cli.options import (
    STAGE,
    common,
    file_option,
    keys_over_http,
    run_options,
    without_sandbox,
    workspace,
)
from assay.cli.output import counted, print_json, remaining_words, say, say_result, say_table, tell
from assay.cli.parameters import argument, option
from assay.cli.progress import progress_on
from assay.domain.lifecycle import TrialState
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from assay.app.runs.batch import BatchResult
    from assay.app.workspace import Workspace
    from assay.domain.jobs import BatchJob
    from assay.domain.run import PlannedTask, RunPlan

_TO_FILE = option(
    "--to-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the requests of models without a batch API to FILE, for a program such as vLLM's run-batch.",
)


@click.group()
def batch() -> None:
    """Ask the models of a run through batch APIs, which take up to a day and cost half."""


@batch.command()
@argument("suite", required=False, metavar="[SUITE]", type=click.Path(path_type=Path))
@option(
    "--run",
    "run_id",
    metavar="RUN",
    help="Submit the pending and failed trials of this run instead, with a new --budget if given.",
)
@run_options
@_TO_FILE
@STAGE
@keys_over_http
@without_sandbox
@common
def submit(
    request: RunRequest,
    suite: Path | None,
    run_id: str | None,
    rubric: Path | None,
    to_file: Path | None,
    only_structure: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Store a run of SUITE and send its first requests as a batch.

    `assay batch collect` continues it.
    """
    if (suite is None) == (run_id is None):
        raise click.UsageError(
            "Give a SUITE, or a stored run with --run.", click.get_current_context()
        )
    with workspace(store, budget=request.budget_usd) as opened, progress_on(sys.stderr) as listener:
        from assay.app.runs import batch as batches

        _collect_garbage_rarely()
        how = batches.HowToSubmit(to_file=to_file, only_structure=only_structure, listener=listener)
        if suite is None:
            done = [
                batches.submit_stored(opened, run_id or "", budget_usd=request.budget_usd, **how)
            ]
        else:
            done = [
                batches.submit(opened, plan, tasks, **how)
                for plan, tasks in _planned(opened, suite, request, rubric)
            ]
    return _show(done, as_json=as_json, single=len(done) == 1)


def _planned(
    opened: Workspace, suite: Path, request: RunRequest, rubric: Path | None = None
) -> Iterator[tuple[RunPlan, Iterable[PlannedTask]]]:
    """Yield the plan of a suite's run, or the plan of each run that grades a file of answers with a
    rubric.
    """
    from assay.app.imports.raw_answers import is_raw
    from assay.app.runs import regrade as regrading
    from assay.app.runs.start import tasks_of
    from assay.app.suites import default_rubric, rubric_of_file
    from assay.cli.run import import_answers, looked_ahead

    given = None if rubric is None else rubric_of_file(opened.settings, rubric)
    of_answers = given or default_rubric(opened.settings)
    if of_answers is None or not is_raw(suite):
        loaded, chosen, ahead = looked_ahead(opened, suite, request, given)
        for note in ahead.notes:
            tell(f"note: {note}")
        yield ahead.plan, tasks_of(loaded, chosen, ahead.plan)
        return
    values = opened.settings.values
    wanted = request.of_answers(values["judge"])
    for run in import_answers(opened, [suite], request):
        regraded = regrading.planned(opened, run, wanted, rubric=of_answers)
        yield regraded.plan, regraded.tasks


def _collect_garbage_rarely() -> None:
    """Exempt long-lived objects from garbage collection, which took a third of a large batch's
    time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@batch.command("exec", context_settings={"ignore_unknown_options": True})
@argument("suite", required=False, metavar="[SUITE]", type=click.Path(path_type=Path))
@option("--run", "run_id", metavar="RUN", help="Go on with this run instead.")
@argument("command", nargs=-1, required=True, metavar="-- COMMAND…", type=click.UNPROCESSED)
@keys_over_http
@without_sandbox
@common
def execute(
    suite: Path | None,
    run_id: str | None,
    command: tuple[str, ...],
    store: str | None,
    as_json: bool,
) -> int:
    """Answer the requests of SUITE with COMMAND, such as `vllm run-batch --model M`, until the run
    is done.

    {input} and {output} in COMMAND stand for the files of requests and answers; without them,
    COMMAND gets -i and -o.
    """
    from assay.app.runs import batch as batches

    with workspace(store) as opened, progress_on(sys.stderr) as listener:
        if run_id is not None:
            # Click gave the first word of the command to SUITE.
            command = (str(suite), *command) if suite is not None else command
            if not batches.waits(opened.archive.runs.matching(Selection(runs=(run_id,)))[0]):
                batches.submit_stored(opened, run_id, by_files=True, listener=listener)
        elif suite is not None:
            for plan, tasks in _planned(opened, suite, RunRequest()):
                run_id = batches.submit(
                    opened, plan, tasks, by_files=True, listener=listener
                ).result.summary.id
        done = batches.execute(opened, run_id or "", command, listener=listener)
    return _show([done], as_json=as_json, single=True)


@batch.command()
@argument("run_id", metavar="[RUN]", required=False)
@common
def status(run_id: str | None, store: str | None, as_json: bool) -> int:
    """Show the last known state of RUN's jobs, or of all waiting runs' jobs, without asking a
    provider.
    """
    from assay.app.runs import batch as batches

    with workspace(store) as opened:
        results = batches.status(opened.store, run_id)
    return _show(results, as_json=as_json, failures_count=False)


@batch.command()
@argument("run_ids", metavar="[RUN]…", nargs=-1)
@option("--watch", is_flag=True, help="Check again until the runs are done.")
@option(
    "--every",
    "every_s",
    type=click.FloatRange(min=0.01),
    metavar="S",
    help="Seconds between checks; default: batch_interval, 30.",
)
@file_option(
    "--from-file",
    "results",
    multiple=True,
    about="Read answers from FILE, which a program such as vLLM's run-batch wrote. May be repeated.",
)
@_TO_FILE
@keys_over_http
@without_sandbox
@common
def collect(
    run_ids: tuple[str, ...],
    watch: bool,
    every_s: float | None,
    results: tuple[Path, ...],
    to_file: Path | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Store the answers of finished jobs and send the next requests, for each RUN or for all
    waiting runs.
    """
    from assay.app.runs import batch as batches

    if results and len(run_ids) != 1:
        raise click.UsageError("--from-file needs one RUN.", click.get_current_context())
    _collect_garbage_rarely()
    with workspace(store) as opened:
        done = batches.collect_all(
            opened,
            run_ids,
            watch=watch,
            every_s=every_s,
            to_file=to_file,
            results=results,
            listening=lambda: progress_on(sys.stderr),
        )
    return _show(done, as_json=as_json)


def _show(
    results: Sequence[BatchResult],
    *,
    as_json: bool,
    single: bool = False,
    failures_count: bool = True,
) -> int:
    from assay.app.runs.batch import batch_document

    documents = [batch_document(result) for result in results]
    if as_json:
        print_json(documents[0] if single else {"runs": documents})
    else:
        for result in results:
            _say(result)
        if not results:
            say("no run waits for a batch")
    trouble = any(
        document.troubles or document.run.failures or document.run.paused for document in documents
    )
    return int(failures_count and trouble)


def _say(done: BatchResult) -> None:
    from assay.app.runs.batch import waits

    summary, collected = done.result.summary, done.collected
    if done.jobs:
        say_jobs(done.jobs)
    for count, what in (
        (collected.unknown, "no request has this id"),
        (collected.repeated, "repeated id; only the first answer counts"),
        (collected.broken, "not JSON"),
    ):
        if count:
            tell(f"note: {counted(count, 'line')} in the answers: {what}")
    for trouble in collected.troubles:
        tell(f"assay: {trouble}")
    if waits(summary):
        n = summary.trials.get(TrialState.SUBMITTED, 0)
        waiting = f"{counted(n, 'trial')} {'waits' if n == 1 else 'wait'}"
        say(
            f"run {summary.id}: {waiting} at a provider; continue with: assay batch collect {summary.id}"
        )
        if done.result.remaining is not None and done.result.remaining.total_usd:
            say(remaining_words(done.result.remaining, summary.budget_usd))
    else:
        say_result(done.result)


def say_jobs(jobs: Sequence[BatchJob]) -> None:
    rows = [
        (
            job.token,
            job.stage,
            job.model,
            job.place,
            job.remote_id or "",
            job.status or job.state,
            f"{job.answered:,} of {job.requests:,}",
            (job.sent or job.created)[:16].replace("T", " "),
        )
        for job in jobs
    ]
    say_table(("job", "asks for", "model", "at", "batch", "state", "answered", "since"), rows)
    for job in jobs:
        if job.detail:
            say(f"{job.token}: {job.detail}")
