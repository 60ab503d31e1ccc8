"""Output of charts as SVG, PNG, JSON and CSV.

SVG is drawn here without any package. PNG is the same drawing, converted by vl-convert (extra
`charts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from assay.domain.errors import InputError
from assay.domain.unescaped_json import unescaped_json
from assay.formats.csv_lines import CsvLines
from assay.report.charts.chart import DRAWING_ONLY, Chart
from assay.report.charts.colours import DARK, LIGHT, PAGE
from assay.report.charts.svg.drawing import draw_file, draw_for_page

FORMATS: Final = ("svg", "png", "csv", "json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A chart for a page or a report.

    `svg`: HTML with a wide and a narrow version, without styles, scripts or outside URLs.
    """

    kind: str
    title: str
    about: str
    svg: str


def drawing(chart: Chart) -> Drawing:
    """Draw a chart for a page; the page's style defines `--chart-ink` and so on, and hides one of
    the `.drawn` versions.
    """
    return Drawing(
        kind=chart.kind, title=chart.title, about=chart.about, svg=draw_for_page(chart, PAGE)
    )


def can_draw() -> bool:
    """True if vl-convert is installed, which PNG needs; does not import it."""
    return find_spec("vl_convert") is not None


def as_csv(chart: Chart) -> str:
    """Write all rows as a table, even if only some of them are drawn."""
    names = [name for name in chart.rows[0] if name not in DRAWING_ONLY] if chart.rows else []
    lines: list[str] = []
    table = CsvLines(lines.append, names)
    for row in chart.rows if chart.every is None else chart.every():
        table.row([row[name] for name in names])
    return "".join(lines)


def as_json(chart: Chart) -> str:
    """Write the chart's title, its description and all rows as JSON."""
    rows = [dict(row) for row in (chart.rows if chart.every is None else chart.every())]
    shown = [
        {name: value for name, value in row.items() if name not in DRAWING_ONLY} for row in rows
    ]
    document = {"kind": chart.kind, "title": chart.title, "about": chart.about, "rows": shown}
    return unescaped_json(document, allow_nan=False, indent=1)


def as_svg(chart: Chart, *, dark: bool = False) -> str:
    """Draw the chart as an SVG file with its title; needs no extra."""
    return draw_file(chart, DARK if dark else LIGHT)


def as_png(chart: Chart, *, dark: bool = False, scale: float = 2.0) -> bytes:
    """Draw the SVG file as PNG, without network access.

    Raises `InputError` if vl-convert is not installed.
    """
    try:
        import vl_convert
    except ImportError as error:
        raise InputError(
            "chart",
            "PNG needs vl-convert-python, which is not installed.",
            remedy='Install the extra: pip install "assay-bench[charts]". Other formats need no extra: --output FILE.svg.',
        ) from error
    return bytes(vl_convert.svg_to_png(as_svg(chart, dark=dark), scale=scale))
