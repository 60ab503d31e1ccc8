"""A chart's data and kind, independent of how the chart is drawn.

Points are drawn on top of intervals with visible ends, so that readers see the range first. A
decision is always written out, never shown by colour alone. Numbers are points out of 100, as in
every sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

Row: TypeAlias = Mapping[str, "str | float | int | None"]

HREF, SPOKEN, OFFSET = "href", "said", "offset"
DRAWING_ONLY: Final = frozenset({HREF, SPOKEN, OFFSET})
"""Columns that are used only for drawing: a mark's link, its text for screen readers, and its
order.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Rows to draw and the kind of chart; `about` describes the chart in a sentence for people who
    cannot see it.

    If only some rows are drawn, `every` returns all rows. A table of the chart always contains all
    of them.
    """

    kind: str
    title: str
    about: str
    rows: tuple[Row, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    every: Callable[[], Iterable[Row]] | None = field(default=None, repr=False, compare=False)


def with_links(chart: Chart, address: Callable[[Row], str]) -> Chart:
    """Add links to the marks; tables omit them.

    `address` returns the path of a row on this server, with a leading slash.
    """
    return replace(chart, rows=tuple({**row, HREF: address(row)} for row in chart.rows))


def points(value: float | None) -> float | None:
    """Convert a fraction to points out of 100."""
    return None if value is None else 100 * value
