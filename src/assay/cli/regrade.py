"""`assay regrade`: grade the stored responses of a run again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.app.runs.run_request import RegradeRequest
from assay.cli.options import STAGE, common, file_option, keys_over_http, without_sandbox, workspace
from assay.cli.output import asked, counted, exit_of, print_json, say, say_result, say_table, tell
from assay.cli.parameters import argument, option
from assay.cli.progress import progress_on
from assay.cli.requests import takes

if TYPE_CHECKING:
    from assay.app.runs.regrade import Regraded, RegradePlan
    from assay.app.runs.run_documents import RegradeDocument, RegradePlanDocument
    from assay.app.workspace import Workspace
    from assay.domain.suite import Rubric

_SHOWN = 30


@click.command()
@takes(RegradeRequest, without=("review", "gradings"))
@argument("run_id", metavar="RUN")
@option("--judge", metavar="MODEL", help="Grade with this model instead of the run's judges.")
@file_option("--suite", about="Use the scoring, rubric and judges of this suite.")
@option(
    "--score",
    metavar="METHOD",
    help="Score with this method, such as contains, every task that a rule scores.",
)
@file_option("--rubric", about="Grade with the rubric in this file.")
@STAGE
@option("--budget", type=float, metavar="USD", help="Maximum cost of the judging.")
@option(
    "--dry-run", is_flag=True, help="Show the planned calls and their cost without making them."
)
@keys_over_http
@without_sandbox
@common
def regrade(
    request: RegradeRequest,
    run_id: str,
    rubric: Path | None,
    only_structure: bool,
    budget: float | None,
    dry_run: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Grade the stored responses of RUN again; no candidate is called again.

    The result is a new run; the old one stays. Unchanged grades keep their review; the others await
    review. If statistics include both runs, the newer grading of a response counts.
    """
    from assay.app.suites import rubric_of_file

    with workspace(store, budget=budget) as opened:
        document = grade_again(
            opened,
            run_id,
            request,
            rubric=None if rubric is None else rubric_of_file(opened.settings, rubric),
            dry_run=dry_run,
            only_structure=only_structure,
            as_json=as_json,
        )
    if as_json:
        print_json(document)
    return exit_of(document)


def grade_again(
    opened: Workspace,
    run_id: str,
    request: RegradeRequest,
    *,
    rubric: Rubric | None,
    dry_run: bool,
    only_structure: bool,
    as_json: bool,
) -> RegradeDocument | RegradePlanDocument:
    """Grade a run's responses again and print the result; with `dry_run`, only estimate it."""
    from assay.app.runs import regrade as regrading, run_documents

    ahead = regrading.planned(opened, run_id, request, rubric=rubric)
    if dry_run:
        return _estimated(ahead, as_json=as_json)
    with progress_on(sys.stderr) as listener:
        regraded = regrading.regrade(
            opened, ahead, only_structure=only_structure, listener=listener
        )
    for note in regraded.notes:
        tell(f"note: {note}")
    if not as_json:
        _say(regraded)
    return run_documents.regrade_result(regraded)


def _estimated(ahead: RegradePlan, *, as_json: bool) -> RegradePlanDocument:
    from assay.app.runs import run_documents

    trials = sum(len(task.trials) for task in ahead.tasks)
    if not as_json:
        for note in ahead.notes:
            tell(f"note: {note}")
        size = f"{counted(len(ahead.tasks), 'task')}, {counted(trials, 'trial')}"
        say(f"{ahead.plan.regrade_of}: {size}, {asked(ahead.estimate)}")
    return run_documents.planned_regrade(ahead, trials=trials)


def _say(regraded: Regraded) -> None:
    from assay.app.statistics.results import wording

    say_result(regraded.result)
    total = len(regraded.changed) + regraded.unchanged
    say(
        f"{len(regraded.changed)} of {total} scores changed compared with run {regraded.origin}; "
        f"{regraded.kept_reviews} assessments keep their review"
    )
    if regraded.changed:
        rows = [
            (
                change.thing,
                str(change.k),
                change.candidate,
                _points(change.before),
                _points(change.after),
                change.grader_after,
            )
            for change in regraded.changed[:_SHOWN]
        ]
        say_table(
            ("thing", "trial", "candidate", "before", "after", "by"),
            rows,
            numbers=frozenset({1, 3, 4}),
        )
        if len(regraded.changed) > _SHOWN:
            say(f"… and {len(regraded.changed) - _SHOWN} more; --json lists them all")
    for judge in regraded.agreement:
        say(wording.judge_agreement(judge))
    changed = [conclusion for conclusion in regraded.conclusions if conclusion.changed]
    say(
        f"{len(changed)} of {len(regraded.conclusions)} conclusions differ, based on what counts in each run:"
    )
    for change in changed:
        before, after = change.verdicts
        say(f"  before: {before}")
        say(f"  after:  {after}")


def _points(score: float | None) -> str:
    return "–" if score is None else f"{100 * score:.1f}"
