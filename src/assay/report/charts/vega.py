"""Code shared by several Vega-Lite drawings: sizes, the axis of candidates and its labels.

Altair objects are typed `Any` because Altair is an extra: it is imported when the first chart is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from assay.report.charts.chart import SPOKEN, Chart

WIDTH: Final = 560
ROW_HEIGHT: Final = 34

_FONT: Final = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif"


def linked(alt: Any) -> dict[str, Any]:
    return {"description": alt.Description(f"{SPOKEN}:N")}


def rows_base(alt: Any, chart: Chart) -> Any:
    """Return a chart with one row for each candidate, in the order of the data's rows."""
    order = [row["candidate"] for row in chart.rows]
    return alt.Chart(alt.Data(values=list(chart.rows))).encode(
        y=alt.Y("candidate:N", sort=order, title=None, axis=alt.Axis(domain=False, ticks=False))
    )


def with_labels(alt: Any, drawn: Any, chart: Chart, colours: Mapping[str, str]) -> Any:
    order = [row["candidate"] for row in chart.rows]
    y = alt.Y("candidate:N", sort=order, axis=None)
    words = alt.Chart(alt.Data(values=list(chart.rows))).mark_text(align="left", fontSize=12, color=colours["soft"], aria=False)
    labels = words.encode(y=y, x=alt.value(0), text="label:N").properties(width=150, height=height_of(chart))
    return alt.hconcat(drawn, labels, spacing=14).resolve_scale(y="independent")


def configured(drawn: Any, colours: Mapping[str, str]) -> Any:
    return (
        drawn.configure(background=colours["ground"], font=_FONT, padding=18)
        .configure_view(strokeWidth=0)
        .configure_axis(
            gridColor=colours["grid"],
            domainColor=colours["grid"],
            tickColor=colours["grid"],
            labelColor=colours["ink"],
            titleColor=colours["soft"],
            titleFontWeight="normal",
            labelFontSize=12,
            titleFontSize=12,
            labelLimit=220,
            labelFlush=False,
            titlePadding=10,
            labelPadding=8,
        )
        .configure_axisY(grid=False, labelFontSize=13)
        .configure_axisTop(ticks=False)
        .configure_legend(labelColor=colours["ink"], titleColor=colours["soft"], titleFontWeight="normal", labelFontSize=12)
        .configure_title(
            color=colours["ink"],
            subtitleColor=colours["soft"],
            anchor="start",
            fontSize=16,
            fontWeight=600,
            subtitleFontSize=12,
            subtitlePadding=6,
            offset=16,
        )
    )


def height_of(chart: Chart) -> int:
    """Return the height for a number of rows in pixels, at least the height of two rows."""
    return ROW_HEIGHT * max(len(chart.rows), 2)
