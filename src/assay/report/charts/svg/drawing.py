"""Draws a chart as one `<svg>` element, for a page, a report or a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from assay.report.charts.chart import Chart
from assay.report.charts.svg.agreement import draw_calibration
from assay.report.charts.svg.canvas import Canvas, safe, shortened, width_of
from assay.report.charts.svg.differences import draw_pairs
from assay.report.charts.svg.distributions import draw_scores
from assay.report.charts.svg.history import draw_trend
from assay.report.charts.svg.intervals import draw_forest, draw_ranks

WIDE: Final = 680
NARROW: Final = 340
MAX_LINKS: Final = 60
"""Maximum links in a drawing; each is a stop for the Tab key, and a table next to the drawing has
all of them.
"""
_EDGE: Final = 20
_FONT: Final = "Inter, system-ui, -apple-system, Segoe UI, Noto Sans, Liberation Sans, sans-serif"

Draw: TypeAlias = "Callable[[Canvas, Chart], None]"
DRAWN: Final[Mapping[str, Draw]] = {
    "forest": draw_forest,
    "strengths": draw_forest,
    "ranks": draw_ranks,
    "pairs": draw_pairs,
    "scores": draw_scores,
    "trend": draw_trend,
    "calibration": draw_calibration,
}


def draw_for_page(chart: Chart, colours: Mapping[str, str]) -> str:
    """Draw a wide and a narrow version without title or description; the CSS of `.drawn` shows the
    one that fits.
    """
    both = (
        _element(chart, colours, width, name)
        for width, name in ((WIDE, "at-large"), (NARROW, "at-small"))
    )
    return f'<div class="drawn">{"".join(both)}</div>'


def draw_file(chart: Chart, colours: Mapping[str, str]) -> str:
    canvas = Canvas(WIDE, colours)
    _draw(canvas, chart)
    inside, lines = canvas.written(), _lines(chart.about, WIDE)
    header = 34 + 18 * len(lines) + 8
    heading = Canvas(WIDE, colours)
    heading.text(2, 18, chart.title, most=WIDE, size=16, bold=True)
    for place, line in enumerate(lines):
        heading.text(2, 40 + 18 * place, line, colour="soft")
    width, height = WIDE + 2 * _EDGE, canvas.height + header + 2 * _EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" width="{width}" '
        f'height="{height:.0f}" role="img" font-family="{_FONT}">{_named(chart)}'
        f'<rect width="{width}" height="{height:.0f}" fill="{colours["ground"]}"/>'
        f'<g transform="translate({_EDGE} {_EDGE})">{heading.written()}</g>'
        f'<g transform="translate({_EDGE} {_EDGE + header})">{inside}</g></svg>'
    )


def _element(chart: Chart, colours: Mapping[str, str], width: int, name: str) -> str:
    canvas = Canvas(width, colours, links=len(chart.rows) <= MAX_LINKS)
    _draw(canvas, chart)
    inside = canvas.written()
    # Screen readers do not see the children of an image, so a drawing with links has the role of a
    # group.
    role = "group" if "<a " in inside else "img"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{name}" viewBox="0 0 {width} {canvas.height:.0f}" '
        f'width="{width}" height="{canvas.height:.0f}" role="{role}" font-family="inherit">'
        f"{_named(chart)}{inside}</svg>"
    )


def _draw(canvas: Canvas, chart: Chart) -> None:
    if chart.rows:
        DRAWN[chart.kind](canvas, chart)
        return
    canvas.text(2, 20, "No trials count yet.", colour="soft")
    canvas.height = 34


def _named(chart: Chart) -> str:
    return f"<title>{safe(chart.title)}</title><desc>{safe(chart.about)}</desc>"


def _lines(text: str, width: float) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and width_of(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [shortened(line, width) for line in lines]
