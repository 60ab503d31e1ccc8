"""`assay delete` and `assay archive`: take runs out of use, or restore them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate

import click

from assay.cli.options import common, event_options, workspace
from assay.cli.output import counted, print_json, say
from assay.cli.parameters import argument, option
from assay.cli.requests import Others, takes
from assay.domain.lifecycle import DECIDED

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.domain.run_removal import RunEvent
    from assay.domain.selection import RunSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class _TakeOut:
    """Runs to take out of use, or with `undo` to restore; `listed` lists these events."""

    runs: tuple[str, ...]
    listed: bool
    undo: bool
    yes: bool
    reason: str
    reviewer: str | None


def _taking_out(command: Callable[Concatenate[_TakeOut, Others], int]) -> Callable[Others, int]:
    """Add the options shared by `assay delete` and `assay archive`."""
    for name, target, about in (
        ("--list", "listed", "List the runs that were removed and restored."),
        ("--undo", "undo", "Bring runs back as they were."),
        ("--yes", "yes", "Do not ask for confirmation."),
    ):
        command = option(name, target, is_flag=True, help=about)(command)
    runs = argument("runs", metavar="RUN…", nargs=-1)
    return takes(_TakeOut)(runs(event_options(command)))


@click.command()
@_taking_out
@common
def delete(request: _TakeOut, store: str | None, as_json: bool) -> int:
    """Take runs out of every list, statistic and export.

    Their results and reviews stay in the store, and their files in the results folder move to
    `_assay/deleted`. `--undo` brings a run back, even one that a later import replaced. The audit
    log records who deleted it, when and why.
    """
    return _take_out("delete", request, store, as_json=as_json)


@click.command()
@_taking_out
@common
def archive(request: _TakeOut, store: str | None, as_json: bool) -> int:
    """Take runs out of lists and statistics, but keep them readable by id.

    Commands still read an archived run if you give its id, such as `assay show RUN` and `assay
    stats --run RUN`; nothing can change it. `--undo` brings a run back. The audit log records who
    archived it, when and why.
    """
    return _take_out("archive", request, store, as_json=as_json)


def _take_out(verb: str, request: _TakeOut, store: str | None, *, as_json: bool) -> int:
    from assay.app.registry import removal

    archived = verb == "archive"
    if bool(request.runs) == request.listed:
        raise click.UsageError(
            f"give the ids of the runs to {verb}, or list the {verb}d runs with --list."
        )
    with workspace(store) as opened:
        if request.listed:
            events = tuple(
                each
                for each in removal.events(opened.store)
                if not archived or each.verb in ("archive", "restore")
            )
        elif request.undo:
            events = tuple(
                removal.restore(
                    opened, run, reason=request.reason, reviewer=request.reviewer, archived=archived
                )
                for run in request.runs
            )
        else:
            leaving = removal.runs_to_take_out(opened.store, request.runs)
            if not request.yes:
                _ask(verb, leaving)
            events = removal.take_out(
                opened,
                [run.id for run in leaving],
                reason=request.reason,
                reviewer=request.reviewer,
                archived=archived,
            )
    if as_json:
        print_json(removal.events_document(events))
    for each in () if as_json else events:
        say(_sentence(each))
    return 0


def _ask(verb: str, leaving: tuple[RunSummary, ...]) -> None:
    """Ask for confirmation; raises `click.Abort` if the answer is no."""
    if not sys.stdin.isatty():
        raise click.UsageError(f"{verb} asks for confirmation, which needs a terminal. Add --yes.")
    for run in leaving:
        decided = sum(run.assessments.get(state, 0) for state in DECIDED.values())
        trials = counted(sum(run.trials.values()), "trial")
        click.echo(
            f"{run.id}: {run.suite}, {trials}, {counted(decided, 'reviewed assessment')}", err=True
        )
    click.confirm(f"{verb.capitalize()} {counted(len(leaving), 'run')}?", abort=True, err=True)


def _sentence(event: RunEvent) -> str:
    when = event.at[:16].replace("T", " ")
    reason = f": {event.reason}" if event.reason else ""
    by = f" by {event.reviewer}" if event.reviewer else ""
    match event.verb:
        case "delete" | "archive":
            back = (
                f" `assay {event.verb} {event.run_id} --undo` brings it back."
                if event.stands
                else ""
            )
            return f"{when}  {event.run_id} was {event.verb}d{by}{reason}.{back}"
        case "replace":
            return f"{when}  {event.run_id} was replaced by {event.replaced_by}{reason}."
        case _:
            return f"{when}  {event.run_id} was restored{by}{reason}."
