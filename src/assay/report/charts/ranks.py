"""Rank chart: the ranks that the data support for each candidate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.report import wording
from assay.report.charts.chart import SPOKEN, Chart, points
from assay.report.charts.vega import WIDTH, height_of, linked, rows_base, with_labels
from assay.statistics.ranking import Ranking


def ranks(ranking: Ranking) -> Chart:
    rows = tuple(
        {
            "candidate": str(candidate.candidate),
            "rank": candidate.rank,
            "low": candidate.rank_low,
            "high": candidate.rank_high,
            "label": wording.rank_range(candidate),
            "mean": points(candidate.mean),
            SPOKEN: f"{candidate.candidate}: {wording.rank_line(candidate)}",
        }
        for candidate in ranking.candidates
        if candidate.rank is not None
    )
    return Chart(
        kind="ranks",
        title="Ranks the data support",
        about="Each candidate's rank by mean score, and every rank that cannot be ruled out (Holm correction over all pairs).",
        rows=rows,
        settings={"most": len(rows)},
    )


def draw_ranks(alt: Any, chart: Chart, colours: Mapping[str, str]) -> Any:
    """Draw the possible ranks as lines, with the rank by mean as a dot on top."""
    most = int(chart.settings["most"])
    base = rows_base(alt, chart)
    every = list(range(1, most + 1))
    shown = every if most <= 12 else [1, *range(5, most + 1, 5)]
    axis = alt.Axis(values=shown, format="d", grid=True)
    x = alt.X("low:Q", title="rank, 1 is best", scale=alt.Scale(domain=[0.6, most + 0.4], nice=False), axis=axis)
    tips = [alt.Tooltip("candidate:N"), alt.Tooltip("label:N", title="ranks"), alt.Tooltip("mean:Q", format=".1f")]
    base = base.encode(**linked(alt))
    lines = base.mark_rule(strokeWidth=9, strokeCap="round", color=colours["band"]).encode(x=x, x2="high:Q", tooltip=tips)
    dots = base.mark_point(filled=True, size=140, color=colours["accent"], opacity=1).encode(x="rank:Q", tooltip=tips)
    return with_labels(alt, alt.layer(lines, dots).properties(width=WIDTH, height=height_of(chart)), chart, colours)
