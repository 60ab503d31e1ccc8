"""The verb `chart`: findings drawn, or as the table behind the drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from assay.app import findings
from assay.report import charts
from assay.report.charts import FORMATS as FORMATS  # surfaces reach them through here
from assay.report.charts import KINDS as KINDS

if TYPE_CHECKING:
    from pathlib import Path

    from assay.app.findings import Ranks
    from assay.app.wiring import Workspace
    from assay.domain.selection import Selection
    from assay.report.charts import Chart, Drawing

HOW_TO_DRAW: Final = charts.HOW_TO_DRAW


def chart(workspace: Workspace, selection: Selection, kind: str, *, scope: str | None = None) -> Chart:
    """The chart of that kind over what counts: forest, ranks, pairs or scores."""
    ranks = findings.rank(workspace, selection, scope=scope)
    match kind:
        case "ranks":
            return charts.ranks(ranks.ranking)
        case "pairs":
            return charts.pairs(ranks.ranking)
        case "scores":
            return charts.scores(ranks.basis.table)
        case _:
            return charts.standard(ranks.ranking, ranks.basis.table)[0]


def standard_drawings(ranks: Ranks, *, dark: bool = False, png: bool = True) -> tuple[Drawing, ...]:
    """The standard set of charts for findings, drawn as SVG and PNG: what a report embeds, HTML and Markdown alike.

    Forest first, then pairs and ranks where there are several candidates, then the scores of single trials. Empty
    where the extra `charts` is not installed: a report then keeps its tables and says `HOW_TO_DRAW`.
    """
    if not charts.can_draw():
        return ()
    found = charts.standard(ranks.ranking, ranks.basis.table)
    return tuple(charts.drawing(one, dark=dark, png=png) for one in found)


def write_chart(found: Chart, path: Path, *, dark: bool = False) -> None:
    """The chart as the file's name says: SVG, PNG, CSV (its rows) or JSON (Vega-Lite)."""
    match path.suffix.lower().removeprefix("."):
        case "png":
            path.write_bytes(charts.as_png(found, dark=dark))
        case "csv":
            path.write_text(charts.as_csv(found), "utf-8")
        case "json":
            path.write_text(charts.as_json(found, dark=dark) + "\n", "utf-8")
        case _:
            path.write_text(charts.as_svg(found, dark=dark), "utf-8")
