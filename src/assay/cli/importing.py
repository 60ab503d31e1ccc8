"""`assay import`: import results made elsewhere, or rebuild the store from a results folder."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.app.imports.options import ImportOptions
from assay.cli.format_list import ListsImporters
from assay.cli.options import common, file_option, workspace
from assay.cli.output import answer, counted, print_json, say, tell, visible
from assay.cli.parameters import argument, option
from assay.cli.requests import takes

if TYPE_CHECKING:
    from collections.abc import Sized

    from assay.app.imports.options import ImportResult, ReplacedRun

_SHOWN = 50
_EVERY_S = 2.0


@click.command("import", cls=ListsImporters)
@takes(ImportOptions)
@argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path(path_type=Path))
@option(
    "--format",
    metavar="NAME",
    default="auto",
    show_default=True,
    help="Read every file as this format; `auto` detects it.",
)
@file_option("--map", "mapping", about="Mapping of columns to task, candidate, answer and score.")
@option("--run-name", metavar="NAME", help="Name of the run.")
@option(
    "--candidate", metavar="NAME", help="Name of the candidate, if the file has no suitable name."
)
@option("--dataset", metavar="NAME", help="Suite that the rows belong to.")
@file_option(
    "--input",
    "inputs",
    multiple=True,
    about="File with the requests that the results answer. May be repeated.",
)
@file_option("--log", "logs", multiple=True, about="Log of the run. May be repeated.")
@file_option("--criteria", about="Text file with the criteria by which answers are judged.")
@file_option("--model-info", about="YAML or JSON with details of the model: size, vram_gb, hf_id.")
@file_option(
    "--fields",
    about="File with the fields to extract from each answer, and the title to extract from the prompt.",
)
@option(
    "--no-copy",
    "copy",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Do not copy the files to the folder of the store.",
)
@option("--move", is_flag=True, help="Delete the files after their copies are verified.")
@option(
    "--rebuild",
    is_flag=True,
    help="Restore the runs of the results folder PATH, with reviews and statistics.",
)
@common
def import_command(
    options: ImportOptions, paths: tuple[Path, ...], rebuild: bool, store: str | None, as_json: bool
) -> int:
    """Import results made elsewhere: batch output, score tables, sets, other harnesses' logs.

    Folders are searched, and the format of a file is detected by its content. AI grades await
    review, except rows of a score table whose `state` records a decision made elsewhere; their
    number is shown. Importing the same content again, or an export of this store, changes nothing.
    Exit 1 if lines were skipped; every skipped line is listed.
    """
    from assay.app.imports.importer import import_paths
    from assay.app.imports.options import import_document

    if rebuild:
        if len(paths) != 1 or options != ImportOptions():
            raise click.UsageError(
                "--rebuild takes one results folder and cannot be combined with other options."
            )
        return _rebuild(paths[0], store, as_json=as_json)
    if options.move and not options.copy:
        raise click.UsageError("--move needs a copy, so it cannot be used with --no-copy.")
    with workspace(store) as opened:
        result = import_paths(opened, paths, options, progress=_Progress().show)
    answer(import_document(result), lambda: _say(result), as_json=as_json)
    return int(bool(result.skipped))


def _rebuild(folder: Path, store: str | None, *, as_json: bool) -> int:
    from assay.app.imports import restore

    with workspace(store) as opened:
        rebuilt = restore.rebuild(opened.store, opened.results, folder)
    if as_json:
        print_json(restore.rebuilt_document(rebuilt))
        return int(bool(rebuilt.skipped))
    say(
        f"{counted(len(rebuilt.runs), 'run')} with {counted(rebuilt.assessments, 'assessment')} and "
        f"{counted(rebuilt.events, 'decision')} {_are(rebuilt.runs)} back; "
        f"{len(rebuilt.there)} {_were(rebuilt.there)} already there"
    )
    for run in rebuilt.aside:
        tell(
            f"run {run} was deleted or replaced; `assay delete {run} --undo` restores it if the store contains the run"
        )
    if rebuilt.renumbered:
        tell("the store already had runs, so the restored trials and assessments got new numbers")
    for noun, done, altered in (
        ("decision", "made", rebuilt.altered),
        ("vote", "cast", rebuilt.altered_votes),
    ):
        if altered:
            numbers = ", ".join(map(str, altered[:10]))
            since = f"{_were(altered)} changed in the folder after being {done}"
            tell(f"! {counted(len(altered), noun)} {since}: {numbers}")
    for skipped in rebuilt.skipped:
        tell(f"skipped {skipped.where}: {skipped.why}")
    return int(bool(rebuilt.skipped))


def _replacement(replaced: ReplacedRun) -> str:
    counts = (
        (replaced.changed, "changed"),
        (replaced.added, "new"),
        (replaced.lacking, "no longer there"),
    )
    differing = ", ".join(f"{n:,} {what}" for n, what in counts if n)
    text = f"{replaced.where} is a later version of run {replaced.run}, which {replaced.by} replaces: {differing}"
    if replaced.kept or replaced.left:
        text += f"; {counted(replaced.kept, 'review')} kept"
    if replaced.left:
        text += f", {replaced.left:,} dropped because the result changed: they stay with run {replaced.run} in the audit log"
    return text


def _are(things: Sized) -> str:
    return "is" if len(things) == 1 else "are"


def _were(things: Sized) -> str:
    return "was" if len(things) == 1 else "were"


def _say(result: ImportResult) -> None:
    say(
        f"{counted(result.runs, 'run')}, {counted(result.tasks, 'task')}, {counted(result.responses, 'response')} and "
        f"{counted(result.assessments, 'assessment')} imported"
    )
    for run in result.run_ids:
        say(f"  {run}")
    for name, ids in result.unchanged.items():
        suffix = f" as {', '.join(ids)}" if ids else ""
        say(f"{name} was already imported{suffix}; the store was not changed")
    for replaced in result.replaced:
        say(_replacement(replaced))
    for held in result.held:
        say(
            f"{held.where}: {held.rows:,} rows were already imported as part of run {held.run} and were not added again"
        )
    for note in result.notes:
        tell(f"note: {note.where}: {note.what}")
    for skipped in result.skipped[:_SHOWN]:
        tell(f"skipped {skipped.where}: {skipped.why}")
    if len(result.skipped) > _SHOWN:
        tell(f"… and {len(result.skipped) - _SHOWN:,} more; --json lists them all")


class _Progress:
    """Shows the progress of an import on stderr, at most one line every two seconds."""

    def __init__(self) -> None:
        self._printed_at = self._began = time.monotonic()
        self._name = ""

    def show(self, name: str, rows: int) -> None:
        now = time.monotonic()
        if name != self._name:
            self._name, self._began = name, now
        if not rows or now - self._printed_at < _EVERY_S:
            return
        self._printed_at = now
        sys.stderr.write(
            f"{visible(name)}: {rows:,} rows, {rows / max(now - self._began, 1e-3):,.0f}/s\n"
        )
        sys.stderr.flush()
