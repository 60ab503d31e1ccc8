"""Draws the differences of pairs around a zero line, with the decision as a colour, a shape and a
word.
"""

from __future__ import annotations

from typing import Final

from assay.report.charts.chart import SPOKEN, Chart
from assay.report.charts.svg.canvas import BOLD, SMALL, AxisScale, Canvas, horizontal_axis, width_of
from assay.report.charts.svg.intervals import NARROW

MAX_PAIRS: Final = 40
_LOOKS: Final = {
    "better": ("better", "circle"),
    "worse": ("worse", "diamond"),
    "equivalent": ("equal", "square"),
    "not decided": ("open", "circle"),
}


def draw_pairs(canvas: Canvas, chart: Chart) -> None:
    """Draw each pair once, with those of the best candidate first; if there are very many, only the
    first `MAX_PAIRS`.
    """
    place_of = {name: place for place, name in enumerate(chart.settings["order"])}
    once = sorted(
        (row for row in chart.rows if place_of[str(row["row"])] < place_of[str(row["column"])]),
        key=lambda row: (place_of[str(row["row"])], place_of[str(row["column"])]),
    )
    rows, narrow = once[:MAX_PAIRS], canvas.width < NARROW
    labels = [f"{row['label']}, {row['decision']}" for row in rows]
    names = [str(row.get("name") or f"{row['row']} − {row['column']}") for row in rows]
    label_width = max(map(width_of, labels)) + 8
    name_width = min(BOLD * max(map(width_of, names)) + 8, 0.38 * canvas.width)
    start, end = (
        (14.0, canvas.width - 14) if narrow else (name_width + 14, canvas.width - label_width - 16)
    )
    values = [
        float(value)
        for row in rows
        for key in ("low", "points", "high")
        if (value := row[key]) is not None
    ]
    scale = AxisScale([*values, 0.0], start, end, most=5 if narrow else 7, within=(-100, 100))
    height = 46 if narrow else 30
    bottom = 4.0 + height * len(rows)
    canvas.height = horizontal_axis(canvas, scale, 4, bottom, "difference in points", signed=True)
    canvas.line(scale(0), 4, scale(0), bottom, colour="soft", width=1.5)
    for place, (row, name, label) in enumerate(zip(rows, names, labels, strict=True)):
        middle = 4 + height * place + (33 if narrow else 15)
        baseline = middle - 15 if narrow else middle + 4
        canvas.text(
            2,
            baseline,
            name,
            most=canvas.width - label_width - 10 if narrow else name_width,
            bold=True,
            clear=narrow,
        )
        canvas.text(canvas.width - 2, baseline, label, colour="soft", anchor="end", clear=narrow)
        spoken = str(row[SPOKEN])
        if row["low"] is not None and row["high"] is not None:
            canvas.bar(scale(float(row["low"])), scale(float(row["high"])), middle, spoken)
        colour, shape = _LOOKS[str(row["decision"])]
        canvas.mark(
            shape,
            scale(float(row["points"] or 0.0)),
            middle,
            5,
            spoken,
            fill=canvas.colours[colour],
        )
    if len(once) > MAX_PAIRS:
        words = f"{MAX_PAIRS} of {len(once):,} pairs, those of the best candidates first. The CSV has all of them."
        canvas.text(2, canvas.height + 12, words, colour="soft", size=SMALL, most=canvas.width - 4)
        canvas.height += 20
