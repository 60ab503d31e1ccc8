"""`assay review`: list, show, decide, rerun and undo.

Without a subcommand, it starts a review in the terminal.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, assert_never

import click

from assay.cli.options import common, workspace
from assay.cli.output import answer, print_json, say, say_table, tell
from assay.cli.parameters import argument, option
from assay.cli.review_terminal import go_through
from assay.domain.errors import InputError, StoreError, did_you_mean
from assay.domain.identifiers import shown_assessment, shown_trial
from assay.domain.lifecycle import AssessmentState
from assay.domain.review import Outcome
from assay.domain.selection import AssessmentRow, Selection
from assay.domain.suite import PERSON

if TYPE_CHECKING:
    from assay.app.workspace import Workspace
    from assay.domain.review import ReviewEvent


def _reviewer(command: Any) -> Any:
    return option(
        "--reviewer",
        metavar="NAME",
        help="Name of the reviewer; default: setting `reviewer`, else your login name.",
    )(command)


@click.group(invoke_without_command=True)
@option("--run", "run_id", metavar="RUN", help="Only this run.")
@_reviewer
@common
@click.pass_context
def review(
    context: click.Context,
    run_id: str | None,
    reviewer: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Review pending grades in the terminal; scripts use a subcommand."""
    if context.invoked_subcommand is not None:
        if run_id or reviewer or store or as_json:
            raise click.UsageError(f"put options after {context.invoked_subcommand!r}.", context)
        return 0
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(
            "the review shows items one by one and needs a terminal; in scripts, use "
            "`assay review list`, `approve`, `reject`, `correct`, `rerun`.",
            context,
        )
    with workspace(store) as opened:
        go_through(opened, Selection(runs=(run_id,) if run_id else ()), reviewer=reviewer)
    return 0


@review.command("list")
@option("--run", "run_id", metavar="RUN", help="Only this run.")
@option("--state", metavar="S", help="Only this state: pending, approved, corrected, rejected, …")
@option("--limit", type=click.IntRange(min=1), metavar="N", help="Show at most N assessments.")
@_reviewer
@common
def list_(
    run_id: str | None,
    state: str | None,
    limit: int | None,
    reviewer: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """List assessments in every state, or in the state given by --state."""
    from assay.app.calibration_status import CalibrationStatus
    from assay.app.review import decisions, review_documents

    with workspace(store) as opened:
        rows = decisions.assessments(
            opened.store,
            Selection(runs=(run_id,) if run_id else ()),
            states=_states(state),
            limit=limit,
        )
        calibration_status = CalibrationStatus(opened.store)
        if as_json:
            listed = [
                review_documents.assessment_row(row, calibration_status.of(row.run_id, row.grader))
                for row in rows
            ]
            print_json({"assessments": listed})
            return 0
        lines = [_line(row, calibration_status.words_of(row.run_id, row.grader)) for row in rows]
    if lines:
        say_table(("id", "state", "trial", "judge", "scores", "flags"), lines)
    else:
        none = "no assessments are stored yet; `assay run SUITE` creates them"
        say("no assessments match" if state or run_id else none)
    return 0


@review.command()
@argument("assessment_id", metavar="ID")
@_reviewer
@common
def show(assessment_id: str, reviewer: str | None, store: str | None, as_json: bool) -> int:
    """Show an assessment with its report, code, decisions, and the opinions that you may see."""
    from assay.app.calibration_status import CalibrationStatus, words
    from assay.app.review import decisions, review_documents
    from assay.app.review.double_review import opinions_shown
    from assay.cli.review_item import shown

    with workspace(store) as opened:
        detail = decisions.assessment(opened.store, decisions.assessment_key(assessment_id))
        record = CalibrationStatus(opened.store).of(detail.row.run_id, detail.row.grader)
        opinions = opinions_shown(opened, detail, reviewer=reviewer)
    text = shown(detail, opinions)
    if detail.row.by_model and detail.row.grader != PERSON:
        text += f"\njudge {detail.row.grader}: {words(record)}"
    return answer(
        review_documents.assessment_detail(detail, record, opinions=opinions), text, as_json=as_json
    )


@review.command()
@argument("ids", nargs=-1, required=True, metavar="ID…")
@_reviewer
@common
def approve(ids: tuple[str, ...], reviewer: str | None, store: str | None, as_json: bool) -> int:
    """Approve the grades of every ID; if one of them cannot be approved, approve none."""
    from assay.app.review import decisions

    with workspace(store) as opened:
        keys = [decisions.assessment_key(text) for text in ids]
        return _decided(decisions.approve(opened, keys, reviewer=reviewer), as_json=as_json)


@review.command()
@argument("ids", nargs=-1, required=True, metavar="ID…")
@option("--reason", required=True, metavar="TEXT", help="Reason, stored with the decision.")
@_reviewer
@common
def reject(
    ids: tuple[str, ...], reason: str, reviewer: str | None, store: str | None, as_json: bool
) -> int:
    """Reject the grades of each ID, so that they count in no statistic."""
    from assay.app.review import decisions

    with workspace(store) as opened:
        keys = [decisions.assessment_key(text) for text in ids]
        return _decided(
            decisions.reject(opened, keys, reason=reason, reviewer=reviewer), as_json=as_json
        )


@review.command()
@argument("assessment_id", metavar="ID")
@option(
    "--score",
    "scores",
    multiple=True,
    metavar="NAME[/CRITERION]=VALUE",
    help="A word of the scale, 0 to 1, or 7/10. May be repeated.",
)
@option("--reason", required=True, metavar="TEXT", help="Reason, stored with the decision.")
@_reviewer
@common
def correct(
    assessment_id: str,
    scores: tuple[str, ...],
    reason: str,
    reviewer: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Approve ID with your own scores instead of the judge's."""
    from assay.app.review import decisions

    with workspace(store) as opened:
        row = decisions.assessment(opened.store, decisions.assessment_key(assessment_id)).row
        corrections = decisions.parsed_corrections(
            scores, row, decisions.scale_words(opened.store, row)
        )
        event = decisions.correct(opened, row.key, corrections, reason=reason, reviewer=reviewer)
    return _decided((event,), as_json=as_json)


@review.command()
@argument("assessment_id", metavar="ID")
@option("--note", default="", metavar="TEXT", help="Note to the judge for this attempt.")
@option(
    "--reason",
    default="",
    metavar="TEXT",
    help="Reason that the judge does not see; default: the note.",
)
@option("--force", is_flag=True, help="Allow more than three attempts.")
@option(
    "--responses", is_flag=True, help="Also ask the candidates again, if Assay caused the failure."
)
@_reviewer
@common
def rerun(
    assessment_id: str,
    note: str,
    reason: str,
    force: bool,
    responses: bool,
    reviewer: str | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Judge a trial again from its stored responses, and wait for the result.

    ID is an assessment (a17) or a failed trial (t5), whose missing steps are then done.
    """
    from assay.app.calibration_status import CalibrationStatus
    from assay.app.review import decisions, rerun as rerun_, review_documents

    with workspace(store) as opened:
        trial = decisions.trial_key(assessment_id)
        if force and not (reason or note).strip():
            raise InputError(
                "--force", "needs a reason.", remedy="Add --reason TEXT or --note TEXT."
            )
        if trial is not None or responses:
            return _rerun_trial(
                opened,
                assessment_id,
                note=note,
                reason=reason,
                responses=responses,
                reviewer=reviewer,
                as_json=as_json,
            )
        key = decisions.assessment_key(assessment_id)
        new, failure = rerun_.rerun_now(
            opened,
            key,
            reason=reason or note or "rerun requested",
            note=note,
            force=force,
            reviewer=reviewer,
        )
        try:
            new_row = decisions.assessment(opened.store, new if new is not None else key).row
            record = CalibrationStatus(opened.store).of(new_row.run_id, new_row.grader)
        except StoreError as error:
            if new is None:
                raise
            problem = f"{shown_assessment(new)}, the new attempt, is stored, but cannot be shown. {error.problem}"
            remedy = f"See it with: assay review show {shown_assessment(new)}"
            raise StoreError(error.where, problem, remedy=remedy) from error
        row = review_documents.assessment_row(new_row, record, failure=failure)
    if as_json:
        print_json(row)
    elif failure is not None:
        why = f"{failure.kind} ({failure.fault}): {failure.detail}"
        tell(f"the judge failed: {why} {shown_assessment(key)} is unchanged.")
    else:
        say(
            f"attempt {row.attempt} is {row.id}, {row.state}; {shown_assessment(key)} is superseded"
        )
    return int(failure is not None)


def _rerun_trial(
    opened: Workspace,
    text: str,
    *,
    note: str,
    reason: str,
    responses: bool,
    reviewer: str | None,
    as_json: bool,
) -> int:
    from assay.app.review import decisions, rerun as rerun_, review_documents

    trial = decisions.trial_key(text)
    if trial is None:
        trial = decisions.assessment(opened.store, decisions.assessment_key(text)).row.trial
    rerun_trial = rerun_.rerun_trial(
        opened, trial, note=note, reason=reason, responses=responses, reviewer=reviewer
    )
    failure = asyncio.run(rerun_trial)
    rows = [
        review_documents.assessment_row(row)
        for row in decisions.assessments(opened.store, Selection(), trial=trial)
        if row.current
    ]
    failed = (
        None
        if failure is None
        else {"kind": failure.kind, "fault": failure.fault, "detail": failure.detail}
    )
    if as_json:
        print_json({"id": shown_trial(trial), "assessments": rows, "failure": failed})
    elif failure is not None:
        tell(
            f"{shown_trial(trial)} failed again: {failure.kind} ({failure.fault}): {failure.detail}"
        )
    else:
        say(f"{shown_trial(trial)} is done: {', '.join(f'{row.id} {row.state}' for row in rows)}")
    return int(failure is not None)


@review.command()
@argument("assessment_id", metavar="ID")
@_reviewer
@common
def undo(assessment_id: str, reviewer: str | None, store: str | None, as_json: bool) -> int:
    """Undo the last decision on ID."""
    from assay.app.review import decisions

    with workspace(store) as opened:
        event = decisions.undo(opened, decisions.assessment_key(assessment_id), reviewer=reviewer)
    return _decided((event,), as_json=as_json)


def _decided(events: tuple[ReviewEvent, ...], *, as_json: bool) -> int:
    from assay.app.review import review_documents

    lines = [f"{shown_assessment(event.decision.assessment)}: {_effect(event)}" for event in events]
    document = {"events": [review_documents.review_event(event) for event in events]}
    return answer(document, "\n".join(lines), as_json=as_json)


def _effect(event: ReviewEvent) -> str:
    match event.outcome:
        case Outcome.DECIDED:
            return f"{event.before} → {event.after}"
        case Outcome.FIRST_OPINION:
            return "first of two opinions; another reviewer must give the second, so it is still pending"
        case Outcome.DISPUTED:
            return "disputed: the second opinion differs from the first; settle it at /adjudication (`assay serve`)"
        case Outcome.WITHDRAWN:
            return "your opinion is withdrawn; it is still pending"
        case _:
            assert_never(event.outcome)


def _states(state: str | None) -> frozenset[AssessmentState] | None:
    if state is None:
        return None
    try:
        return frozenset({AssessmentState(state)})
    except ValueError:
        known = [str(s) for s in AssessmentState]
        problem = f"{state!r} is not a state.{did_you_mean(state, known)}"
        raise InputError("--state", problem, remedy=f"Known: {', '.join(known)}.") from None


def _line(row: AssessmentRow, stamp: str | None) -> tuple[str, ...]:
    scores = " ".join(
        f"{name} {'?' if s is None else f'{100 * s:.0f}'}"
        for name, s in row.assessment.scores.items()
    )
    flags = ", ".join(dict.fromkeys(str(item.kind) for item in row.assessment.flags))
    again = f" (attempt {row.attempt})" if row.attempt > 1 else ""
    trial = f"{row.thing} · trial {row.k} of {row.of}{again}"
    grader = f"{row.grader} ({stamp})" if stamp else row.grader
    return shown_assessment(row.key), str(row.state), trial, grader, scores, flags


@review.command()
@argument("run_id", metavar="RUN")
@option(
    "--set",
    "shares",
    multiple=True,
    metavar="SHARE=NUMBER",
    help="New value of blind, plants, rereview, second, gap_items or gap_hours. May be repeated.",
)
@_reviewer
@common
def protocol(
    run_id: str, shares: tuple[str, ...], reviewer: str | None, store: str | None, as_json: bool
) -> int:
    """Show the review protocol of a run, or change it for the remaining reviews."""
    from assay.app.registry import runs
    from assay.app.review import protocol as protocols
    from assay.app.statistics.results import wording

    with workspace(store) as opened:
        (summary,) = runs.runs(opened.store, Selection(runs=(run_id,)))
        if shares:
            protocols.switch(opened, summary.id, dict(map(_share, shares)), reviewer=reviewer)
        (current,) = protocols.in_use(opened.store, [opened.journal.plan_of(summary.id)])
    document = {"run_id": summary.id, "protocol": current}
    return answer(document, f"{summary.id}: {wording.protocol(current)}", as_json=as_json)


def _share(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise InputError(
            "--set", f"{text!r} is not SHARE=NUMBER.", remedy="Write for example blind=0.2."
        ) from None
