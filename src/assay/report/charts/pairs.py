"""Matrix chart: the differences of all pairs, with the decision in each cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.report import wording
from assay.report.charts.chart import SPOKEN, Chart, Row
from assay.report.charts.vega import WIDTH, linked
from assay.statistics.ranking import Ranking


def pairs(ranking: Ranking) -> Chart:
    """Chart all pairs as a matrix: the row's candidate minus the column's, with the decision."""
    order = [str(candidate.candidate) for candidate in ranking.candidates if candidate.rank is not None]
    rows: list[Row] = []
    for pair in ranking.pairs:
        if pair.difference is None:
            continue
        for a, b, sign in ((str(pair.a), str(pair.b), 1.0), (str(pair.b), str(pair.a), -1.0)):
            decision = pair.decision
            if sign < 0:
                decision = {"better": "worse", "worse": "better"}.get(decision, decision)
            low, high = (None, None) if pair.ci95 is None else sorted(sign * 100 * bound for bound in pair.ci95)
            rows.append(
                {
                    "row": a,
                    "column": b,
                    "points": sign * 100 * pair.difference,
                    "low": low,
                    "high": high,
                    "p_holm": pair.p_holm,
                    "decision": decision.replace("_", " "),
                    "label": wording.signed(sign * pair.difference),
                    SPOKEN: _spoken_pair(a, b, sign * pair.difference, low, high, decision, pair.p_holm),
                }
            )
    return Chart(
        kind="pairs",
        title="Differences between pairs",
        about=f"First candidate minus second, with the 95% range. {wording.comparisons_made(ranking)}".strip(),
        rows=tuple(rows),
        settings={"order": order},
    )


def draw_pairs(alt: Any, chart: Chart, colours: Mapping[str, str]) -> Any:
    """Draw two cells for each pair, one per direction; cells narrower than 60 pixels contain no words."""
    order = list(chart.settings["order"])
    side = max(34, min(92, WIDTH // max(len(order), 1)))
    base = alt.Chart(alt.Data(values=list(chart.rows)))
    x = alt.X(
        "column:N",
        sort=order,
        title=None,
        axis=alt.Axis(
            orient="top", labelAngle=0 if side >= 60 else -40, domain=False, labelLimit=side - 8 if side >= 60 else 120
        ),
    )
    y = alt.Y("row:N", sort=order, title=None, axis=alt.Axis(domain=False, ticks=False))
    words = ["better", "worse", "equivalent", "not decided"]
    keys = ("better", "worse", "equal", "open")
    decisions = [word for word in words if any(row["decision"] == word for row in chart.rows)]
    fill = alt.Color("decision:N", scale=alt.Scale(domain=words, range=[colours[f"{key}_fill"] for key in keys]), legend=None)
    ink_scale = alt.Scale(domain=words, range=[colours[key] for key in keys])
    ink = alt.Color("decision:N", scale=ink_scale, legend=None)
    # A decision is shown by a shape, a colour and a word at once, for readers who cannot distinguish the colours.
    legend = alt.Legend(title="row is", orient="bottom", symbolSize=90, values=decisions, columns=2)
    marked = {
        "color": alt.Color("decision:N", scale=ink_scale, legend=legend),
        "shape": alt.Shape(
            "decision:N",
            scale=alt.Scale(domain=words, range=["triangle-up", "triangle-down", "square", "circle"]),
            legend=legend,
        ),
    }
    tips = [
        alt.Tooltip("row:N", title="candidate"),
        alt.Tooltip("column:N", title="less"),
        alt.Tooltip("points:Q", format="+.1f"),
        alt.Tooltip("low:Q", format="+.1f"),
        alt.Tooltip("high:Q", format="+.1f"),
        alt.Tooltip("p_holm:Q", title="p (Holm)", format=".4f"),
        alt.Tooltip("decision:N"),
    ]
    high = max(side - 22, 34)
    cells = base.mark_rect(cornerRadius=4, stroke=colours["ground"], strokeWidth=3).encode(
        x=x, y=y, color=fill, tooltip=tips, **linked(alt)
    )
    signs = base.mark_point(
        filled=True,
        opacity=1,
        size=52 if side >= 60 else 22,
        xOffset=side / 2 - (14 if side >= 60 else 8),
        yOffset=(14 if side >= 60 else 8) - high / 2,
        aria=False,
    )
    numbers = base.mark_text(fontSize=13 if side >= 60 else 10, fontWeight=600, dy=-4 if side >= 60 else 2)
    layers = [cells, signs.encode(x=x, y=y, **marked), numbers.encode(x=x, y=y, text="label:N", color=ink)]
    if side >= 60:
        decision_words = base.mark_text(fontSize=10, dy=12).encode(x=x, y=y, text="decision:N", color=ink)
        layers.append(decision_words)
    drawn = alt.layer(*layers).resolve_scale(color="independent", shape="independent")
    return drawn.properties(width=side * len(order), height=high * len(order))


def _spoken_pair(
    a: str, b: str, difference: float, low: float | None, high: float | None, decision: str, p_holm: float | None
) -> str:
    text = f"{a} minus {b}: {wording.signed(difference)} points"
    if low is not None and high is not None:
        text += f", 95% range {wording.difference_range((low / 100, high / 100))}"
    return f"{text}, {decision.replace('_', ' ')}, p {wording.probability(p_holm)} (Holm)"
