"""`assay chart`: draw results to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from assay.cli.options import chart_file, common, filters, workspace
from assay.cli.output import answer
from assay.cli.parameters import argument, option
from assay.domain.errors import InputError

if TYPE_CHECKING:
    from assay.domain.selection import Selection


@click.command()
@argument("kind", type=click.Choice(["forest", "ranks", "pairs", "scores"]))
@option(
    "--output",
    required=True,
    metavar="FILE",
    help="FILE.svg, .png, .csv (the table) or .json (title and rows).",
)
@option("--dark", is_flag=True, help="Use colours for dark pages.")
@filters
@common
def chart(
    selection: Selection, kind: str, output: str, dark: bool, store: str | None, as_json: bool
) -> int:
    """Draw approved results: scores with intervals, ranks, all pairs, or single trials."""
    from assay.app.statistics import charts, results

    path = chart_file(output)
    with workspace(store) as opened:
        ranking = results.rank(opened.store, opened.settings, selection)
    drawing = charts.chart_of(ranking, kind)
    if not drawing.rows:
        read = results.wording.runs_line(ranking.basis.read)
        raise InputError(
            "chart",
            f"{read}, and no score counts, so there is nothing to draw.",
            remedy="`assay stats` says what awaits review.",
        )
    try:
        charts.write_chart(drawing, path, dark=dark)
    except OSError as error:
        raise InputError("--output", f"{output!r} cannot be written: {error.strerror}.") from error
    runs = ranking.basis.runs
    document = {
        "chart": kind,
        "output": str(path),
        "rows": len(drawing.rows),
        "about": drawing.about,
        "runs": runs,
    }
    text = f"{results.wording.runs_line(ranking.basis.read)}\n{path}: {drawing.about}"
    return answer(document, text, as_json=as_json)
