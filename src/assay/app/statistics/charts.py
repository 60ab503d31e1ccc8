"""The command `chart`, which draws results or returns the drawn values as a table."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from assay.app.statistics import results
from assay.report.charts import kinds, output
from assay.report.charts.chart import Chart as Chart, with_links as with_links  # re-exported for surfaces
from assay.report.charts.kinds import KINDS as KINDS
from assay.report.charts.output import FORMATS as FORMATS, can_draw as can_draw
from assay.report.charts.svg.cells import IntervalCell as IntervalCell, interval_cells as interval_cells

if TYPE_CHECKING:
    from pathlib import Path

    from assay.app.statistics.results import RankingResult
    from assay.app.workspace import Workspace
    from assay.domain.selection import Selection
    from assay.report.charts.output import Drawing
    from assay.statistics.reports import Report


def chart(workspace: Workspace, selection: Selection, kind: str, *, scope: str | None = None) -> Chart:
    """Draw a chart of a kind in `KINDS` from the trials that count."""
    result = results.rank(workspace, selection, scope=scope)
    return kinds.of_results(kind, result.ranking, result.basis.table)


def chart_of_report(report: Report, kind: str) -> Chart:
    """Draw a chart of a kind in `KINDS`, except for scores, from a report of cached cells."""
    return kinds.OF_RANKING[kind](report.ranking)


def standard_drawings(result: RankingResult) -> tuple[Drawing, ...]:
    """Draw the standard charts of results for a report in HTML; they need no extra.

    The order is: forest, then pairs and ranks if there are several candidates, then the scores of single trials.
    """
    return tuple(output.drawing(chart) for chart in kinds.standard(result.ranking, result.basis.table))


def drawn(chart: Chart) -> str:
    """Return the chart as HTML for a page; an unchanged chart is not drawn again."""
    text = json.dumps([chart.kind, chart.title, chart.about, chart.rows], default=str, sort_keys=True)
    return _drawn(_ByKey(blake2b(text.encode(), digest_size=12).hexdigest(), chart))


@dataclass(frozen=True, slots=True)
class _ByKey:
    """A chart that compares by the digest of its content."""

    key: str
    chart: Chart = field(compare=False)


@lru_cache(maxsize=64)
def _drawn(keyed: _ByKey) -> str:
    return output.drawing(keyed.chart).svg


def endings() -> tuple[str, ...]:
    """Return the file name endings of the chart formats that this installation can draw."""
    return ("csv", "svg", "png") if can_draw() else ("csv", "svg")


def write_chart(chart: Chart, path: Path, *, dark: bool = False) -> None:
    """Write the chart as SVG, PNG, CSV (its rows) or JSON (Vega-Lite), depending on the file's ending."""
    path.write_bytes(chart_bytes(chart, path.suffix.lower().removeprefix("."), dark=dark))


def chart_bytes(chart: Chart, ending: str, *, dark: bool = False) -> bytes:
    """Return the chart as `png`, `csv` (its rows), `json` (Vega-Lite) or `svg`."""
    match ending:
        case "png":
            return output.as_png(chart, dark=dark)
        case "csv":
            return output.as_csv(chart).encode()
        case "json":
            return f"{output.as_json(chart, dark=dark)}\n".encode()
        case _:
            return output.as_svg(chart, dark=dark).encode()
