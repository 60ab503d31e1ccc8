"""Calibration chart: a judge's scores plotted against the reference scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.report import wording
from assay.report.charts.chart import SPOKEN, Chart
from assay.report.charts.vega import WIDTH, linked


def calibration(samples: Sequence[Mapping[str, Any]]) -> Chart:
    """Chart the judge's scores against reference scores: one circle for each pair of scores, larger if more references share it.

    `samples`: records with `id`, `expected` and `judged` (both between 0 and 1), and `passed`.
    """
    names_at: dict[tuple[float, float, bool], list[str]] = {}
    for sample in samples:
        place = (round(float(sample["expected"]), 3), round(float(sample["judged"]), 3), bool(sample["passed"]))
        names_at.setdefault(place, []).append(str(sample["id"]))
    rows = tuple(
        {
            "deserved": 100 * deserved,
            "given": 100 * given,
            "n": len(names),
            "within": "within tolerance" if passed else "outside tolerance",
            "references": ", ".join(names[:12]) + (", …" if len(names) > 12 else ""),
            SPOKEN: f"deserved {wording.number(deserved)}, given {wording.number(given)}: "
            f"{wording.count(len(names), 'reference')}, {'within tolerance' if passed else 'outside tolerance'}",
        }
        for (deserved, given, passed), names in sorted(names_at.items())
    )
    return Chart(
        kind="calibration",
        title="Judge's scores against reference scores",
        about="Each mark is one pair of scores, larger if more references share it. On the dashed line, both scores are "
        "equal; above it, the judge's is higher.",
        rows=rows,
    )


def draw_calibration(alt: Any, chart: Chart, colours: Mapping[str, str]) -> Any:
    """Draw a circle for each pair of scores, and the line on which both scores are equal."""
    base = alt.Chart(alt.Data(values=list(chart.rows)))
    scale = alt.Scale(domain=[0, 100], nice=False)
    x = alt.X("deserved:Q", title="deserved, points out of 100", scale=scale)
    y = alt.Y("given:Q", title="given", scale=scale)
    words = ["within tolerance", "outside tolerance"]
    legend = alt.Legend(title=None, orient="bottom", symbolSize=90, symbolOpacity=1, columnPadding=36)
    ends = alt.Data(values=[{"deserved": 0, "given": 0}, {"deserved": 100, "given": 100}])
    line = alt.Chart(ends).mark_line(strokeWidth=1.5, strokeDash=[4, 4], color=colours["soft"], aria=False)
    tips = [
        alt.Tooltip("deserved:Q", format=".1f"),
        alt.Tooltip("given:Q", format=".1f"),
        alt.Tooltip("n:Q", title="references"),
        alt.Tooltip("references:N"),
    ]
    dots = base.mark_point(filled=True, opacity=0.85, strokeWidth=1).encode(
        x=x,
        y=y,
        size=alt.Size("n:Q", scale=alt.Scale(domain=[1, 12], range=[90, 700], clamp=True), legend=None),
        color=alt.Color("within:N", scale=alt.Scale(domain=words, range=[colours["better"], colours["worse"]]), legend=legend),
        shape=alt.Shape("within:N", scale=alt.Scale(domain=words, range=["circle", "diamond"]), legend=legend),
        tooltip=tips,
        **linked(alt),
    )
    side = min(WIDTH, 380)
    return alt.layer(line.encode(x=x, y=y), dots).properties(width=side, height=side)
