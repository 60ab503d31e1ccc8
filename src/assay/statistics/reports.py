"""Complete reports (estimates and ranking), computed from a score table or from its cells."""

from dataclasses import dataclass

from assay.statistics.cells import Cells
from assay.statistics.estimates import Estimate
from assay.statistics.ranking import Ranking, rank
from assay.statistics.table import ScoreTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Estimates in label order, and the ranking of the same candidates."""

    estimates: tuple[Estimate, ...]
    ranking: Ranking


def report(
    scores: ScoreTable | Cells, scope: str | None = None, margin: float | None = None
) -> Report:
    """Compute all candidates' estimates and their ranking. Raises ValueError as `rank` does.

    From cells, the time does not depend on the number of rows, so the page of a suite with a
    million rows can refresh after each decision.
    """
    ranking = rank(scores, scope, margin)
    cells = scores.cells if isinstance(scores, ScoreTable) else scores
    place = {label: i for i, label in enumerate(cells.candidates)}
    ordered = sorted(
        (candidate.estimate for candidate in ranking.candidates),
        key=lambda estimate: place[estimate.candidate],
    )
    return Report(estimates=tuple(ordered), ranking=ranking)
