"""The verb `chart`: findings drawn, or as the table behind the drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.app import findings
from assay.report import charts
from assay.report.charts import FORMATS as FORMATS  # surfaces reach them through here
from assay.report.charts import KINDS as KINDS

if TYPE_CHECKING:
    from pathlib import Path

    from assay.app.wiring import Workspace
    from assay.domain.selection import Selection
    from assay.report.charts import Chart


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
            estimates = [one.estimate for one in ranks.ranking.candidates]
            about = {"tasks_like_these": "on tasks of this kind", "these_tasks": "on exactly these tasks"}
            scopes = {one.scope for one in estimates}
            said = about.get(scopes.pop(), "on this task") if len(scopes) == 1 else "each in its own scope"
            return charts.forest(estimates, about_scope=said)


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
