"""Draws the scores of single trials, as dots if there are few, otherwise as a histogram, over a box
for the middle half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from assay.report.charts.chart import HREF, OFFSET, SPOKEN, Chart, Row
from assay.report.charts.svg.canvas import BOLD, AxisScale, Canvas, horizontal_axis, width_of
from assay.report.charts.svg.intervals import NARROW

MAX_DOTS, MAX_OF_ALL = 60, 300
"""Maximum dots for one candidate, and for all; with more trials, histograms are easier to read and
take fewer bytes.
"""
_BINS: Final = 40


def draw_scores(canvas: Canvas, chart: Chart) -> None:
    """Draw a strip for each candidate, best first."""
    order = [str(name) for name in chart.settings["order"]]
    counts = chart.settings["n"]
    rows_of: dict[str, list[Row]] = {name: [] for name in order}
    for row in chart.rows:
        rows_of[str(row["candidate"])].append(row)
    narrow = canvas.width < NARROW
    labels = {name: _label(rows, counts[name]) for name, rows in rows_of.items()}
    label_width = max(map(width_of, labels.values())) + 8
    name_width = min(BOLD * max(map(width_of, order)) + 8, 0.3 * canvas.width)
    start, end = (
        (14.0, canvas.width - 14) if narrow else (name_width + 14, canvas.width - label_width - 16)
    )
    scale = AxisScale(
        [float(row["score"] or 0.0) for row in chart.rows],
        start,
        end,
        most=5 if narrow else 7,
        within=(0, 100),
    )
    height = 58 if narrow else 40
    bottom = 4.0 + height * len(order)
    canvas.height = horizontal_axis(canvas, scale, 4, bottom, "score of a trial, points out of 100")
    dots = len(chart.rows) <= MAX_OF_ALL and max(map(len, rows_of.values())) <= MAX_DOTS
    for place, (name, rows) in enumerate(rows_of.items()):
        low = 4.0 + height * (place + 1) - 6
        baseline = low - 38 if narrow else low - 10
        canvas.text(
            2,
            baseline,
            name,
            most=canvas.width - label_width - 10 if narrow else name_width,
            bold=True,
            clear=narrow,
        )
        canvas.text(
            canvas.width - 2, baseline, labels[name], colour="soft", anchor="end", clear=narrow
        )
        _strip(canvas, scale, rows, low, f"{name}: {labels[name]}", dots=dots)


def _label(rows: Sequence[Row], n: int) -> str:
    middle = np.median([float(row["score"] or 0.0) for row in rows])
    return f"median {middle:.0f}, {n:,} {'trial' if n == 1 else 'trials'}"


def _strip(
    canvas: Canvas, scale: AxisScale, rows: Sequence[Row], low: float, spoken: str, *, dots: bool
) -> None:
    scores = np.array([float(row["score"] or 0.0) for row in rows])
    first, middle, third = (scale(float(value)) for value in np.quantile(scores, (0.25, 0.5, 0.75)))
    high = low - 28
    canvas.add(
        "rect",
        spoken,
        x=first,
        y=high,
        width=max(third - first, 2),
        height=28,
        rx=4,
        fill=canvas.colours["band"],
        fill_opacity=0.45,
    )
    if dots:
        # Below the dots, so that it does not catch clicks on them.
        canvas.line(middle, high, middle, low, colour="ink", width=2)
        for row in rows:
            y = high + 4 + 20 * float(row[OFFSET] or 0.0)
            href = str(row[HREF]) if HREF in row else None
            canvas.add(
                "circle",
                str(row[SPOKEN]),
                href,
                cx=scale(float(row["score"] or 0.0)),
                cy=y,
                r=3,
                fill=canvas.colours["accent"],
                fill_opacity=0.75,
            )
    else:
        ends = (scale.ticks[0], scale.ticks[-1])
        counts, edges = np.histogram(scores, bins=_BINS, range=ends)
        step = (scale.end - scale.start) / _BINS
        tops = 26 * counts / counts.max()
        path = "".join(
            f"M{scale(float(edge)) + 0.5:.1f} {low:.1f}v{-top:.1f}h{step - 1:.1f}v{top:.1f}z"
            for edge, top in zip(edges, tops, strict=False)
            if top
        )
        canvas.add("path", spoken, d=path, fill=canvas.colours["accent"])
        canvas.line(middle, high, middle, low, colour="ink", width=2)
