"""Trend chart: scores of one suite over time; the rows come from `app.registry.trend`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.report.charts.chart import Chart
from assay.report.charts.vega import WIDTH


def draw_trend(alt: Any, chart: Chart, colours: Mapping[str, str]) -> Any:
    """Draw a line with ranges for each candidate, ordered by the start of its runs."""
    base = alt.Chart(alt.Data(values=list(chart.rows)))
    x = alt.X("started:T", title=None, axis=alt.Axis(labelOverlap=True, grid=False, tickCount=6))
    colour = alt.Color("candidate:N", title=None, legend=alt.Legend(orient="bottom", symbolOpacity=1))
    dash = alt.StrokeDash("candidate:N", legend=None)
    y = alt.Y("mean:Q", title="score, points out of 100", scale=alt.Scale(zero=False, nice=True))
    tips = [
        alt.Tooltip("candidate:N"),
        alt.Tooltip("run:N"),
        alt.Tooltip("mean:Q", format=".1f"),
        alt.Tooltip("low:Q", format=".1f"),
        alt.Tooltip("high:Q", format=".1f"),
    ]
    ranges = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=5, opacity=0.28)
    layers = (
        ranges.encode(x=x, y=alt.Y("low:Q", title="score, points out of 100"), y2="high:Q", color=colour),
        base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=dash),
        base.mark_point(filled=True, size=70, opacity=1).encode(x=x, y=y, color=colour, tooltip=tips),
    )
    return alt.layer(*layers).properties(width=WIDTH, height=260)
