"""`assay run`, `resume`, `pause`, `cancel` and `extend`: execute runs and control them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.app.runs.run_request import ExtendRequest
from assay.cli.options import STAGE, common, keys_over_http, run_options, without_sandbox, workspace
from assay.cli.output import answer, asked, counted, exit_of, print_json, say, say_result, tell
from assay.cli.parameters import argument, option
from assay.cli.progress import progress_on
from assay.cli.requests import takes
from assay.domain.errors import InputError, Interrupted
from assay.domain.lifecycle import Policy, TrialState

EXIT_INTERRUPTED = 130

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.runs.execution import RunResult
    from assay.app.runs.preflight import LookAhead
    from assay.app.runs.run_documents import DryRunDocument, RunResultDocument
    from assay.app.runs.run_request import RunRequest
    from assay.app.workspace import Workspace
    from assay.domain.review import Approvals
    from assay.domain.run import RunOptions
    from assay.domain.selection import RunSummary
    from assay.domain.suite import Rubric, Suite

_BUDGET = option(
    "--budget",
    "budget_usd",
    type=float,
    metavar="USD",
    help="Maximum cost of the whole run, including what it has cost so far.",
)


@click.command()
@argument("suites", nargs=-1, required=True, metavar="SUITE…", type=click.Path(path_type=Path))
@run_options
@option(
    "--concurrency",
    type=int,
    metavar="N",
    help="Maximum number of model calls at the same time; default 5.",
)
@option(
    "--dry-run", is_flag=True, help="Show the planned calls and their cost without making them."
)
@option(
    "--show-prompt", is_flag=True, help="With --dry-run: also print the prompts of the first task."
)
@STAGE
@keys_over_http
@without_sandbox
@common
def run(
    request: RunRequest,
    suites: tuple[Path, ...],
    rubric: Path | None,
    concurrency: int | None,
    dry_run: bool,
    show_prompt: bool,
    only_structure: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Run each SUITE: ask every candidate, grade every trial, and store the results.

    A set file is a suite too; its judge comes from --judge or from assay.yaml. Each call creates a
    new run.
    """
    if show_prompt and not dry_run:
        raise click.UsageError("--show-prompt needs --dry-run.", click.get_current_context())
    documents: list[Any] = []
    code = 0
    with workspace(store, concurrency=concurrency, budget=request.budget_usd) as opened:
        # All suites are checked before the first call, so that no suite fails its checks after
        # others have cost money.
        from assay.app.imports.raw_answers import is_raw
        from assay.app.suites import default_rubric, rubric_of_file
        from assay.cli.regrade import grade_again

        given = None if rubric is None else rubric_of_file(opened.settings, rubric)
        of_answers = given or default_rubric(opened.settings)
        raw: list[Path] = [] if of_answers is None else [*filter(is_raw, suites)]
        wanted = request.of_answers(opened.settings.values["judge"])
        for imported in import_answers(opened, raw, request) if raw else ():
            document = grade_again(
                opened,
                imported,
                wanted,
                rubric=of_answers,
                dry_run=dry_run,
                only_structure=only_structure,
                as_json=as_json,
            )
            documents.append(document)
            code = max(code, exit_of(document))
        aheads = [looked_ahead(opened, path, request, given) for path in suites if path not in raw]
        for suite, chosen, ahead in aheads:
            if dry_run:
                documents.append(_dry_run(ahead, show_prompt=show_prompt, as_json=as_json))
                continue
            try:
                documents.append(
                    _run_one(
                        opened, suite, chosen, ahead, only_structure=only_structure, as_json=as_json
                    )
                )
            except Interrupted as error:
                # With --json, runs that finished before the interruption must still be reported.
                if not (as_json and documents):
                    raise
                tell(f"assay: {error}")
                print_json(
                    [
                        *documents,
                        {"suite": ahead.plan.suite, "run_id": ahead.plan.id, "error": str(error)},
                    ]
                )
                return EXIT_INTERRUPTED
            code = max(code, exit_of(documents[-1]))
    if as_json:
        print_json(documents[0] if len(documents) == 1 else documents)
    return code


@click.command()
@argument("run_id", metavar="RUN")
@_BUDGET
@keys_over_http
@without_sandbox
@common
def resume(run_id: str, budget_usd: float | None, store: str | None, as_json: bool) -> int:
    """Finish RUN: retry failed trials and execute the remaining ones.

    Finished calls are not repeated.
    """
    from assay.app.runs import execution
    from assay.cli.bench import push_results

    with workspace(store) as opened, progress_on(sys.stderr) as listener:
        result = execution.resume(opened, run_id, budget_usd=budget_usd, listener=listener)
        push_results(opened, result.summary.id)
    if waiting := result.summary.trials.get(TrialState.SUBMITTED):
        run = result.summary.id
        tell(
            f"note: {counted(waiting, 'trial')} of {run} stay at a provider; continue with: assay batch collect {run}"
        )
    return _show(result, as_json=as_json)


@click.command()
@argument("run_id", metavar="RUN")
@common
def pause(run_id: str, store: str | None, as_json: bool) -> int:
    """Stop RUN after its current trials until it is resumed, whichever process runs it."""
    from assay.app.runs import control

    with workspace(store) as opened:
        summary = control.pause(opened.store, run_id)
        given = opened.archive.scores.approvals_by_run([summary.id])[summary.id]
    return _steered(
        summary, given, as_json=as_json, message=f"continue with: assay resume {summary.id}"
    )


@click.command()
@argument("run_id", metavar="RUN")
@common
def cancel(run_id: str, store: str | None, as_json: bool) -> int:
    """Stop RUN after its current trials, whichever process runs it. Finished trials are kept."""
    from assay.app.runs import control

    with workspace(store) as opened:
        summary = control.cancel(opened.store, run_id)
        if opened.jobs.of_runs([summary.id], only_open=True):
            from assay.app.runs import batch

            for trouble in batch.collect(opened, summary.id).collected.troubles:
                tell(f"note: {trouble}")
            summary = control.named(opened.store, summary.id)
            if batch.waits(summary):
                tell(
                    f"note: the provider is still cancelling; then: assay batch collect {summary.id}"
                )
        given = opened.archive.scores.approvals_by_run([summary.id])[summary.id]
    return _steered(
        summary, given, as_json=as_json, message=f"if that was a mistake: assay resume {summary.id}"
    )


def _steered(summary: RunSummary, given: Approvals, *, as_json: bool, message: str) -> int:
    from assay.app.runs import run_documents

    text = f"run {summary.id} is {summary.state}; trials in progress will finish; {message}"
    return answer(run_documents.run_summary(summary, given), text, as_json=as_json)


@click.command()
@takes(ExtendRequest, without=("candidates",))
@argument("run_id", metavar="RUN")
@option(
    "--trials", "more_trials", type=int, default=0, metavar="N", help="Add N trials to every task."
)
@option(
    "--until-approved",
    type=int,
    metavar="N",
    help="Add trials until N per task are approved or await review.",
)
@option(
    "--candidate",
    "candidates",
    multiple=True,
    metavar="MODEL",
    help="Model to add to the run. May be repeated.",
)
@option(
    "--review",
    metavar="POLICY",
    help="A larger review sample, such as sample:0.4, which includes the current sample.",
)
@_BUDGET
@option(
    "--yes", is_flag=True, help="Discard reviews that a new candidate invalidates, without asking."
)
@keys_over_http
@without_sandbox
@common
def extend(
    request: ExtendRequest,
    run_id: str,
    candidates: tuple[str, ...],
    yes: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Add trials or candidates to RUN, or enlarge its review sample.

    Stored responses are not requested again.
    """
    from assay.app.runs import extension
    from assay.app.suites import model_candidate

    with workspace(store) as opened:
        if (
            candidates
            and not yes
            and (replaced := extension.decisions_replaced(opened.store, run_id))
        ):
            _ask(run_id, extension.discarding(replaced))
        with progress_on(sys.stderr) as listener:
            joining = tuple(model_candidate(opened.settings, name) for name in candidates)
            result = extension.extend(
                opened,
                run_id,
                replace(request, candidates=joining),
                discard_reviews=True,
                listener=listener,
                announce=lambda estimate: tell(f"{run_id}: {asked(estimate)}"),
            )
    return _show(result, as_json=as_json)


def _ask(run_id: str, loss: str) -> None:
    """Ask for confirmation before reviews are discarded; raises `click.Abort` if the answer is
    no.
    """
    if not sys.stdin.isatty():
        raise InputError(run_id, loss, remedy="Nothing was changed. To accept this, add --yes.")
    click.confirm(f"{run_id} {loss} Continue?", abort=True, err=True)


def import_answers(opened: Workspace, paths: Sequence[Path], request: RunRequest) -> Sequence[str]:
    """Import files of answers and return the ids of their runs; raises UsageError for options that
    do not apply.
    """
    from assay.app.imports.raw_answers import import_raw

    for name, value in (
        ("--candidate", request.candidates),
        ("--benchmark", request.benchmark),
        ("--batch-id", request.batch_id),
        ("--limit", request.limit),
    ):
        if value:
            raise click.UsageError(
                f"{name} does not apply to {paths[0]}, which already holds the answers. Leave the option out."
            )
    runs, notes = import_raw(opened, paths)
    for note in notes:
        tell(f"note: {note}")
    return runs


def looked_ahead(
    opened: Workspace, path: Path, request: RunRequest, rubric: Rubric | None
) -> tuple[Suite, RunOptions, LookAhead]:
    """Return a suite, its run options, and the planned calls with their cost."""
    from assay.app.runs import preflight

    suite = preflight.load(opened.settings, path, judge=request.judge)
    if rubric is not None:
        suite = replace(suite, rubric=rubric, review=rubric.review or suite.review)
    chosen = preflight.options_for(opened.settings, suite, request)
    return suite, chosen, preflight.look_ahead(opened, suite, chosen)


def _run_one(
    opened: Workspace,
    suite: Suite,
    chosen: RunOptions,
    ahead: LookAhead,
    *,
    only_structure: bool,
    as_json: bool,
) -> RunResultDocument:
    from assay.app.runs import execution, preflight, run_documents

    for note in (*ahead.notes, preflight.note_on_rules(opened.store, ahead)):
        if note:
            tell(f"note: {note}")
    tell(_announcement(ahead))
    with progress_on(sys.stderr) as listener:
        result = execution.run(
            opened, suite, chosen, ahead=ahead, only_structure=only_structure, listener=listener
        )
    if not as_json:
        say_result(result)
    return run_documents.run_result(result)


def _announcement(ahead: LookAhead) -> str:
    size = f"{counted(ahead.tasks, 'task')}, {counted(ahead.trials, 'trial')}"
    most = "at most " if ahead.plan.policy is Policy.FLAGGED else ""
    reviews = f"; {most}{counted(ahead.reviews, 'review')} to do" if ahead.reviews else ""
    return f"{ahead.plan.suite}: {size}, {asked(ahead.estimate)}{reviews}"


def _dry_run(ahead: LookAhead, *, show_prompt: bool, as_json: bool) -> DryRunDocument:
    from assay.app.runs import run_documents

    if not as_json:
        for note in ahead.notes:
            tell(f"note: {note}")
        say(_announcement(ahead))
        for request in ahead.prompts if show_prompt else ():
            purpose = request.purpose
            name = purpose.candidate or purpose.judge or ""
            say(f"\n--- {purpose.role} {name} · {request.model.ref} · task {purpose.task}")
            for message in request.messages:
                say(f"[{message.role}]\n{message.content}")
    return run_documents.dry_run(ahead, prompts=ahead.prompts if show_prompt else ())


def _show(result: RunResult, *, as_json: bool) -> int:
    from assay.app.runs import run_documents

    document = run_documents.run_result(result)
    answer(document, lambda: say_result(result), as_json=as_json)
    return exit_of(document)
