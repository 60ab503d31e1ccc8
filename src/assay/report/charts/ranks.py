"""Rank chart: the ranks that the data support for each candidate."""

from __future__ import annotations

from assay.report import wording
from assay.report.charts.chart import SPOKEN, Chart, points
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
