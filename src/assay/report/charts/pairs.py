"""Matrix chart: the differences of all pairs, with the decision in each cell."""

from __future__ import annotations

from assay.report import wording
from assay.report.charts.chart import SPOKEN, Chart, Row
from assay.statistics.ranking import Ranking


def pairs(ranking: Ranking) -> Chart:
    """Chart all pairs as a matrix: the row's candidate minus the column's, with the decision."""
    order = [
        str(candidate.candidate) for candidate in ranking.candidates if candidate.rank is not None
    ]
    rows: list[Row] = []
    for pair in ranking.pairs:
        if pair.difference is None:
            continue
        for a, b, sign in ((str(pair.a), str(pair.b), 1.0), (str(pair.b), str(pair.a), -1.0)):
            decision = pair.decision
            if sign < 0:
                decision = {"better": "worse", "worse": "better"}.get(decision, decision)
            low, high = (
                (None, None)
                if pair.ci95 is None
                else sorted(sign * 100 * bound for bound in pair.ci95)
            )
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
                    SPOKEN: _spoken_pair(
                        a, b, sign * pair.difference, low, high, decision, pair.p_holm
                    ),
                }
            )
    return Chart(
        kind="pairs",
        title="Differences between pairs",
        about=f"First candidate minus second, with the 95% range. {wording.comparisons_made(ranking)}".strip(),
        rows=tuple(rows),
        settings={"order": order},
    )


def _spoken_pair(
    a: str,
    b: str,
    difference: float,
    low: float | None,
    high: float | None,
    decision: str,
    p_holm: float | None,
) -> str:
    text = f"{a} minus {b}: {wording.signed(difference)} points"
    if low is not None and high is not None:
        text += f", 95% range {wording.difference_range((low / 100, high / 100))}"
    return f"{text}, {decision.replace('_', ' ')}, p {wording.probability(p_holm)} (Holm)"
