"""Interval bars for the cells of a table column, on a common axis whose labels are in the column's
header.

Positions are percentages, so that a bar adapts to the width of its column while dots and text keep
their size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.report.charts.svg.canvas import AxisScale, safe

_HEIGHT: Final = 28
_MIDDLE: Final = _HEIGHT // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalCell:
    """An estimate with its range, in points; values are None if unknown.

    `spoken` is the text of its tooltip.
    """

    low: float | None
    mean: float | None
    high: float | None
    spoken: str


def interval_cells(
    cells: Sequence[IntervalCell], *, within: tuple[float, float], zero: bool = False
) -> tuple[str, tuple[str, ...]]:
    """Return the axis and a drawing for each cell, as SVG; if `zero` is True, a line marks 0."""
    values = [
        value for cell in cells for value in (cell.low, cell.mean, cell.high) if value is not None
    ]
    if not values:
        return "", ("",) * len(cells)
    scale = AxisScale([*values, 0.0] if zero else values, 5, 95, most=6, within=within)
    grid = "".join(
        f'<line x1="{scale(tick):.1f}%" x2="{scale(tick):.1f}%" y2="{_HEIGHT}" class="{_line(tick, zero=zero)}"/>'
        for tick in scale.ticks
    )
    labels = "".join(
        f'<text x="{scale(tick):.1f}%" y="12" text-anchor="middle">{scale.words(tick, signed=zero)}</text>'
        for tick in scale.ticks
    )
    axis = f'<svg class="axis" height="16" aria-hidden="true">{labels}</svg>'
    return axis, tuple(_drawn(cell, scale, grid) for cell in cells)


def _line(tick: float, *, zero: bool) -> str:
    return "zero" if zero and abs(tick) < 1e-9 else "grid"


def _drawn(cell: IntervalCell, scale: AxisScale, grid: str) -> str:
    marks = ""
    if cell.low is not None and cell.high is not None:
        start, end = scale(cell.low), scale(cell.high)
        marks += f'<rect x="{start:.1f}%" y="{_MIDDLE - 4}" width="{max(end - start, 0.5):.1f}%" height="8" rx="4" class="range"/>'
    if cell.mean is not None:
        marks += f'<circle cx="{scale(cell.mean):.1f}%" cy="{_MIDDLE}" r="5" class="dot"/>'
    return f'<svg class="interval" height="{_HEIGHT}" role="img"><title>{safe(cell.spoken)}</title>{grid}{marks}</svg>'
