"""Draws forest, strength and rank charts: a bar for each range and a dot for each estimate, one row
per candidate.
"""

from __future__ import annotations

from typing import Final

from assay.report.charts.chart import SPOKEN, Chart, Row
from assay.report.charts.svg.canvas import BOLD, AxisScale, Canvas, horizontal_axis, width_of

NARROW: Final = 480
_ROW, _TALL_ROW = 30, 46
_POINTS: Final = (0.0, 100.0)


def draw_forest(canvas: Canvas, chart: Chart) -> None:
    """Draw scores or strengths with their ranges."""
    values = [
        float(value)
        for row in chart.rows
        for name in ("low", "mean", "high")
        if (value := row[name]) is not None
    ]
    title = str(chart.settings.get("axis", "score, points out of 100"))
    _draw_rows(canvas, chart.rows, values, "mean", title, within=_POINTS)


def draw_ranks(canvas: Canvas, chart: Chart) -> None:
    """Draw the possible ranks, with the rank by mean as the dot."""
    most = int(chart.settings["most"])
    _draw_rows(
        canvas, chart.rows, [1.0, float(most)], "rank", "rank, 1 is best", within=(1.0, float(most))
    )


def _draw_rows(
    canvas: Canvas,
    rows: tuple[Row, ...],
    values: list[float],
    dot: str,
    title: str,
    *,
    within: tuple[float, float],
) -> None:
    narrow = canvas.width < NARROW
    names = min(BOLD * max(width_of(str(row["candidate"])) for row in rows) + 8, 0.3 * canvas.width)
    labels = max(width_of(str(row["label"])) for row in rows) + 8
    start, end = (
        (14.0, canvas.width - 14) if narrow else (max(names, 20) + 14, canvas.width - labels - 16)
    )
    ranks = dot == "rank"
    scale: AxisScale = (
        RankScale(int(values[-1]), start, end)
        if ranks
        else AxisScale(values, start, end, most=5 if narrow else 7, within=within)
    )
    height = _TALL_ROW if narrow else _ROW
    bottom = 4.0 + height * len(rows)
    canvas.height = horizontal_axis(canvas, scale, 4, bottom, title)
    for place, row in enumerate(rows):
        middle = 4 + height * place + (33 if narrow else height / 2)
        name, label, spoken = str(row["candidate"]), str(row["label"]), str(row[SPOKEN])
        baseline = middle - 15 if narrow else middle + 4
        canvas.text(
            2,
            baseline,
            name,
            most=canvas.width - labels - 10 if narrow else names,
            bold=True,
            clear=narrow,
        )
        canvas.text(canvas.width - 2, baseline, label, colour="soft", anchor="end", clear=narrow)
        if row["low"] is not None and row["high"] is not None:
            canvas.bar(scale(float(row["low"])), scale(float(row["high"])), middle, spoken)
        canvas.dot(scale(float(row[dot] or 0.0)), middle, spoken)


class RankScale(AxisScale):
    """Scale for whole ranks, with half a rank of space at both ends."""

    def __init__(self, most: int, start: float, end: float) -> None:
        step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 1000) if most / step <= 12)
        self.ticks = [
            1.0,
            *(float(rank) for rank in range(step if step > 1 else 2, most + 1, step)),
        ]
        self._low, self._high = 0.5, most + 0.5
        self.start, self.end = start, end

    def words(self, tick: float, *, signed: bool = False) -> str:
        return f"{tick:.0f}"
