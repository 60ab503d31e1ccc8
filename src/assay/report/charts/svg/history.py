"""Draws a trend: a line for each candidate over the runs of a suite, oldest first.

Runs are evenly spaced: on a time axis, several runs within an hour would overlap if another
followed a week later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from assay.report import wording
from assay.report.charts.chart import HREF, Chart, Row
from assay.report.charts.svg.canvas import SMALL, AxisScale, Canvas, shortened, width_of

MAX_LINES: Final = 8
_LOOKS: Final = tuple(
    (colour, shape, dash)
    for shape, dash in (("circle", None), ("diamond", "6 3"))
    for colour in ("accent", "better", "fix", "worse")
)
_MONTHS: Final = [
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
]


def draw_trend(canvas: Canvas, chart: Chart) -> None:
    """Draw the lines of the best candidates in the newest runs, with a legend below."""
    starts = sorted({(str(row["started"]), str(row["run"])) for row in chart.rows})
    place_of = {run: place for place, (_, run) in enumerate(starts)}
    by_candidate: dict[str, list[Row]] = {}
    for row in sorted(chart.rows, key=lambda row: place_of[str(row["run"])]):
        if row["mean"] is not None:
            by_candidate.setdefault(str(row["candidate"]), []).append(row)
    newest = sorted(
        by_candidate,
        key=lambda name: (
            -place_of[str(by_candidate[name][-1]["run"])],
            -_mean(by_candidate[name][-1]),
        ),
    )
    shown = newest[:MAX_LINES]
    values = [
        float(value)
        for name in shown
        for row in by_candidate[name]
        for key in ("low", "mean", "high")
        if (value := row[key]) is not None
    ]
    left, right, top, bottom = 40.0, canvas.width - 20, 30.0, 220.0
    scale = AxisScale(values, bottom, top, most=6, within=(0, 100))
    canvas.text(2, 14, "score, points out of 100", colour="soft", size=SMALL)
    for tick in scale.ticks:
        canvas.line(left - 6, scale(tick), right, scale(tick))
        canvas.text(
            left - 12, scale(tick) + 4, scale.words(tick), colour="soft", size=SMALL, anchor="end"
        )
    room = right - left - 40
    across = {
        run: left + 20 + (room / 2 if len(starts) == 1 else room * place / (len(starts) - 1))
        for run, place in place_of.items()
    }
    _run_labels(canvas, starts, across, bottom)
    # Ranges of candidates in the same run are drawn side by side, because bars at the same x would
    # hide each other.
    apart = min(9.0, 0.5 * room / max(len(starts), 1) / max(len(shown), 1))
    for number, name in enumerate(shown):
        colour, shape, dash = _LOOKS[number]
        shift = apart * (number - (len(shown) - 1) / 2)
        places = [
            (across[str(row["run"])] + shift, scale(_mean(row))) for row in by_candidate[name]
        ]
        for row, (x, _) in zip(by_candidate[name], places, strict=True):
            if row["low"] is not None and row["high"] is not None:
                canvas.add(
                    "line",
                    x1=x,
                    x2=x,
                    y1=scale(float(row["low"])),
                    y2=scale(float(row["high"])),
                    stroke=canvas.colours[colour],
                    stroke_width=4,
                    stroke_linecap="round",
                    stroke_opacity=0.3,
                )
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        canvas.add(
            "polyline",
            points=points,
            fill="none",
            stroke=canvas.colours[colour],
            stroke_width=2,
            stroke_dasharray=dash,
        )
        for row, (x, y) in zip(by_candidate[name], places, strict=True):
            href = str(row[HREF]) if HREF in row else None
            canvas.mark(shape, x, y, 4.5, _spoken(row), href, fill=canvas.colours[colour])
    canvas.height = _legend(canvas, shown, bottom + 70)
    if len(newest) > MAX_LINES:
        words = f"{MAX_LINES} of {len(newest)} candidates: the best ones in the newest run. The table has all of them."
        canvas.text(2, canvas.height + 12, words, colour="soft", size=SMALL, most=canvas.width - 4)
        canvas.height += 20


def _mean(row: Row) -> float:
    return float(row["mean"] or 0.0)


def _spoken(row: Row) -> str:
    text = f"{row['candidate']}, {day_and_time(str(row['started']))}: {wording.number(_mean(row) / 100)}"
    if row["low"] is not None and row["high"] is not None:
        text += f", 95% range {wording.range_words((float(row['low']) / 100, float(row['high']) / 100))}"
    return text


def _run_labels(
    canvas: Canvas, starts: list[tuple[str, str]], across: Mapping[str, float], bottom: float
) -> None:
    """Write as many dates as fit, with the time below the date if several runs started on the same
    day.
    """
    days = {started[:10] for started, _ in starts}
    several = len(days) < len(starts)
    every = max(1, -(-len(starts) * 62 // int(canvas.width - 60)))
    for place, (started, run) in enumerate(starts):
        x = across[run]
        canvas.line(x, bottom, x, bottom + 4)
        if (len(starts) - 1 - place) % every:
            continue
        canvas.text(x, bottom + 18, _day(started), colour="soft", size=SMALL, anchor="middle")
        if several:
            canvas.text(x, bottom + 32, started[11:16], colour="soft", size=SMALL, anchor="middle")
    words = "start of the run, UTC"
    canvas.text(
        canvas.width / 2,
        bottom + (48 if several else 34),
        words,
        colour="soft",
        size=SMALL,
        anchor="middle",
    )


def _day(started: str) -> str:
    return f"{int(started[8:10])} {_MONTHS[int(started[5:7]) - 1]}"


def day_and_time(started: str) -> str:
    """Return a start as `3 Nov 2026 14:05 UTC`."""
    return f"{_day(started)} {started[:4]} {started[11:16]} UTC"


def _legend(canvas: Canvas, names: list[str], y: float) -> float:
    """Draw a sample of each line with its candidate's name; return the y position below the
    legend.
    """
    x = 8.0
    for (colour, shape, dash), name in zip(_LOOKS, names, strict=False):
        words = shortened(name, 200)
        width = width_of(words) + 44
        if x > 8 and x + width > canvas.width:
            x, y = 8.0, y + 22
        canvas.line(x, y, x + 22, y, colour=colour, width=2, dash=dash)
        canvas.mark(shape, x + 11, y, 4.5, "", fill=canvas.colours[colour])
        canvas.text(x + 28, y + 4, name, most=200)
        x += width
    return y + 16
