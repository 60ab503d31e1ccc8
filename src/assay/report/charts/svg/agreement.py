"""Draws a judge's scores against the reference scores, around the line on which both are equal."""

from __future__ import annotations

from typing import Final

from assay.report.charts.chart import SPOKEN, Chart
from assay.report.charts.svg.canvas import SMALL, AxisScale, Canvas, width_of

_LOOKS: Final = {
    "within tolerance": ("better", "circle"),
    "outside tolerance": ("worse", "diamond"),
}


def draw_calibration(canvas: Canvas, chart: Chart) -> None:
    """Draw a mark for each pair of scores; it is larger if more references have this pair."""
    side = min(canvas.width - 64, 380.0)
    left, top = 46.0, 28.0
    x = AxisScale([0, 100], left, left + side, most=6, within=(0, 100))
    y = AxisScale([0, 100], top + side, top, most=6, within=(0, 100))
    canvas.text(2, 14, "judge's score, points out of 100", colour="soft", size=SMALL)
    for tick in x.ticks:
        canvas.line(x(tick), top, x(tick), top + side)
        canvas.line(left, y(tick), left + side, y(tick))
        canvas.text(
            x(tick), top + side + 16, x.words(tick), colour="soft", size=SMALL, anchor="middle"
        )
        canvas.text(left - 8, y(tick) + 4, y.words(tick), colour="soft", size=SMALL, anchor="end")
    words = "reference score, points out of 100"
    canvas.text(left + side / 2, top + side + 34, words, colour="soft", size=SMALL, anchor="middle")
    canvas.line(x(0), y(0), x(100), y(100), colour="soft", width=1.5, dash="4 4")
    for row in chart.rows:
        colour, shape = _LOOKS[str(row["within"])]
        radius = min(4.5 + 2.2 * (float(row["n"] or 1) - 1) ** 0.5, 13)
        place = (x(float(row["deserved"] or 0.0)), y(float(row["given"] or 0.0)))
        ink = canvas.colours[colour]
        canvas.mark(
            shape,
            *place,
            radius,
            str(row[SPOKEN]),
            fill=ink,
            fill_opacity="0.8",
            stroke=canvas.colours["ground"],
        )
    at, height = left, top + side + 58
    for words, (colour, shape) in _LOOKS.items():
        canvas.mark(shape, at + 6, height - 4, 5, "", fill=canvas.colours[colour])
        canvas.text(at + 18, height, words)
        at += width_of(words) + 40
    canvas.height = height + 12
