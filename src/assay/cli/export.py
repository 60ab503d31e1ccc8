"""`assay export`: write results to a file or to stdout."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.cli.format_list import ListsExporters
from assay.cli.options import common, filters, margin_option, require_vetted_option, workspace
from assay.cli.output import counted, print_json, tell, visible
from assay.cli.parameters import argument, option

if TYPE_CHECKING:
    from assay.app.exports.exporters import Exported
    from assay.domain.selection import Selection


@click.command(cls=ListsExporters)
@argument("format", metavar="FORMAT")
@option("--output", metavar="PATH", help="File to write; without it, text goes to stdout.")
@option(
    "--all",
    "everything",
    is_flag=True,
    help="Also write the trials that do not count, with their states, to a second file.",
)
@option(
    "--anonymise", is_flag=True, help="Replace names of candidates and reviewers with pseudonyms."
)
@margin_option(
    "--threshold", about="junit: a task passes if its mean is at least this value: 0.7, or 70pts."
)
@option(
    "--against",
    metavar="NAME",
    help="junit: a task passes if its result is not worse than this candidate's.",
)
@margin_option("--margin", about="junit: how much worse the result may be: 0.03, or 3pts.")
@option("--force", is_flag=True, help="Replace an existing file.")
@require_vetted_option
@filters
@common
def export(
    selection: Selection,
    format: str,  # noqa: A002 # the contract's word for it
    output: str | None,
    everything: bool,
    anonymise: bool,
    threshold: float | None,
    against: str | None,
    margin: float | None,
    force: bool,
    vetted: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Write approved results in one of the formats that are listed below."""
    from assay.app.exports import export as exporting
    from assay.app.exports.exporters import ExportRequest

    # A JSON export is itself the only document on stdout; text in another format becomes a field of
    # the document.
    in_field = as_json and output is None and format not in {"json", "results"}
    texts: list[str] = []
    with workspace(store) as opened:
        request = ExportRequest(
            workspace=opened,
            format=format,
            selection=selection,
            output=None if output is None else Path(output),
            everything=everything,
            anonymise=anonymise,
            threshold=threshold,
            against=against,
            margin=margin,
            force=force,
            vetted=vetted,
            write=texts.append if in_field else _to_stdout,
        )
        exported = exporting.export(request)
    if as_json and (output is not None or format == "results"):
        print_json(exporting.exported_document(exported))
    elif in_field:
        print_json(exporting.exported_document(exported, text="".join(texts)))
    else:
        _tell(exported)
    return 0


def _tell(exported: Exported) -> None:
    """Print the runs and the names of the written files to stderr, because stdout may contain the
    export.
    """
    from assay.app.statistics.results import wording

    if exported.read is not None:
        tell(wording.runs_line(exported.read))
    if exported.approvals is not None and exported.approvals.total:
        tell(wording.approvals(exported.approvals))
    if exported.rows is None:
        if exported.output is not None:
            tell(f"{exported.output}: written")
        return
    if exported.format == "results":
        tell(f"{exported.output}: {counted(exported.rows, 'run')}")
        return
    where = "" if exported.output is None else f"{exported.output}: "
    tell(f"{where}{counted(exported.rows, 'counted row')}{' so far' if not exported.rows else ''}")
    if exported.unseen:
        tell(f"no person saw {exported.unseen} of them, as the review policy allows")
    if exported.apart is not None:
        tell(
            f"{exported.apart}: {counted(exported.rows_apart, 'row')} that {'does' if exported.rows_apart == 1 else 'do'} not count"
        )


def _to_stdout(text: str) -> None:
    """Print text to stdout; a terminal gets it without control characters."""
    # A pipe receives the exact bytes, otherwise a checksum of the export would differ from the
    # checksum of the file.
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
