"""`assay chart`: draw results, or return the drawn values as a table."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from assay.app.statistics import results
from assay.exchange.results_folder.atomic_files import AtomicFile
from assay.report import wording
from assay.report.charts import kinds, output

# re-exported for surfaces
from assay.report.charts.chart import Chart as Chart, with_links as with_links
from assay.report.charts.kinds import KINDS as KINDS
from assay.report.charts.output import FORMATS as FORMATS, can_draw as can_draw
from assay.report.charts.svg.cells import (
    IntervalCell as IntervalCell,
    interval_cells as interval_cells,
)

if TYPE_CHECKING:
    from pathlib import Path

    from assay.app.settings import Settings
    from assay.app.statistics.results import RankingResult
    from assay.domain.run_choice import ChosenRuns, RunsRead
    from assay.domain.selection import Selection
    from assay.report.charts.output import Drawing
    from assay.statistics.reports import Report
    from assay.store.opening import Store


def chart(
    store: Store,
    settings: Settings,
    selection: Selection | ChosenRuns,
    kind: str,
    *,
    scope: str | None = None,
) -> Chart:
    """Draw a chart of a type in `KINDS` from counted trials."""
    return chart_of(results.rank(store, settings, selection, scope=scope), kind)


def chart_of(result: RankingResult, kind: str) -> Chart:
    """Draw a chart of a type in `KINDS` from a ranking."""
    return labelled(kinds.of_results(kind, result.ranking, result.basis.table), result.basis.read)


def chart_of_report(report: Report, kind: str, read: RunsRead) -> Chart:
    """Draw a chart from a report of cached cells about these runs: any type in `KINDS` except
    `scores`.
    """
    return labelled(kinds.OF_RANKING[kind](report.ranking), read)


def labelled(chart: Chart, read: RunsRead) -> Chart:
    """Label the chart's description if the runs differ in what they measure."""
    return replace(chart, about=wording.labelled(chart.about, read))


def standard_drawings(result: RankingResult) -> tuple[Drawing, ...]:
    """Draw the charts of an HTML report: forest, pairs, ranks and single trials; needs no optional
    package.
    """
    standard = kinds.standard(result.ranking, result.basis.table)
    return tuple(output.drawing(labelled(chart, result.basis.read)) for chart in standard)


def drawn(chart: Chart) -> str:
    """Return a chart as HTML; unchanged charts come from a cache."""
    text = json.dumps(
        [chart.kind, chart.title, chart.about, chart.rows], default=str, sort_keys=True
    )
    return _drawn(_ByKey(blake2b(text.encode(), digest_size=12).hexdigest(), chart))


@dataclass(frozen=True, slots=True)
class _ByKey:
    """Cache key for a chart; keys are equal if the charts have the same digest."""

    key: str
    chart: Chart = field(compare=False)


@lru_cache(maxsize=64)
def _drawn(keyed: _ByKey) -> str:
    return output.drawing(keyed.chart).svg


def endings() -> tuple[str, ...]:
    return ("csv", "svg", "png") if can_draw() else ("csv", "svg")


def write_chart(chart: Chart, path: Path, *, dark: bool = False) -> None:
    """Write a chart to a file.

    The suffix selects SVG, PNG, CSV (the rows) or JSON (title, description and rows).
    """
    content = chart_bytes(chart, path.suffix.lower().removeprefix("."), dark=dark)
    with AtomicFile(path, force=True) as file:
        file.file.write(content)


def chart_bytes(chart: Chart, ending: str, *, dark: bool = False) -> bytes:
    """Return a chart as `png`, `csv` (its rows), `json` (title, description and rows) or `svg`."""
    match ending:
        case "png":
            return output.as_png(chart, dark=dark)
        case "csv":
            return output.as_csv(chart).encode()
        case "json":
            return f"{output.as_json(chart)}\n".encode()
        case _:
            return output.as_svg(chart, dark=dark).encode()
