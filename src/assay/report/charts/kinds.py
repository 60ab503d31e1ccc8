"""Kinds of charts that `assay chart` and the statistics page offer, each with the function that
makes it from results.

To add a chart, add a file like `ranks.py` to this folder, its drawing function to `svg`, and a line
to `DRAWN` in `svg/drawing.py`. If `assay chart` should offer it, also add a line to `OF_RANKING`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from assay.report.charts.chart import Chart
from assay.report.charts.forest import forest_of_ranking
from assay.report.charts.pairs import pairs
from assay.report.charts.ranks import ranks
from assay.report.charts.scores import scores
from assay.statistics.ranking import Ranking
from assay.statistics.table import ScoreTable

OF_RANKING: Final[Mapping[str, Callable[[Ranking], Chart]]] = {
    "forest": forest_of_ranking,
    "ranks": ranks,
    "pairs": pairs,
}
"""Charts that need only a ranking, so the page redraws them after every decision."""

KINDS: Final = (*OF_RANKING, "scores")
"""Charts that `assay chart` can make; the chart of single trials needs every row."""


def of_results(kind: str, ranking: Ranking, table: ScoreTable) -> Chart:
    """Make a chart of a kind in `KINDS`; raises KeyError for any other kind."""
    return scores(table) if kind == "scores" else OF_RANKING[kind](ranking)


def standard(ranking: Ranking, table: ScoreTable) -> tuple[Chart, ...]:
    """Make the standard charts in reading order; ranks and pairs only if at least two candidates
    can be compared.
    """
    comparable = sum(candidate.rank is not None for candidate in ranking.candidates) > 1
    kinds = ("forest", "pairs", "ranks", "scores") if comparable else ("forest", "scores")
    return tuple(of_results(kind, ranking, table) for kind in kinds)
