"""A suite's trend: the score of each candidate in each run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.analysis.tables import score_table
from assay.app.wire import document, source
from assay.domain.errors import UnknownName
from assay.domain.identifiers import folded
from assay.domain.selection import Selection
from assay.report.charts.chart import Chart
from assay.statistics.estimates import Estimate, estimates

if TYPE_CHECKING:
    from assay.app.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A candidate's score in a run; `same_tasks` is True if the tasks and their contents equal those of the previous run."""

    run: str
    started: str
    candidate: str
    estimate: Estimate
    same_tasks: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Scores of candidates over a suite's runs, oldest first. Only candidates with counted scores are included."""

    suite: str
    points: tuple[Point, ...]
    runs: int


def trend(workspace: Workspace, suite: str, *, candidates: tuple[str, ...] = (), newest: int | None = None) -> Trend:
    """Return the trend over a suite's runs, or over the `newest` number of runs.

    Runs are never pooled, and a regrade is a separate run. Each score equals the one in `assay stats --run`. Raises
    `UnknownName` for an unknown suite, or a candidate that is in none of its runs.
    """
    summaries = workspace.archive.runs.matching(Selection(suites=(suite,)), limit=newest)[::-1]
    known = {folded(name): name for each in summaries for name in each.candidates}
    for name in candidates:
        if folded(name) not in known:
            raise UnknownName("candidate", name, known.values())
    wanted = {folded(name) for name in candidates} or set(known)
    points: list[Point] = []
    before: frozenset[tuple[str, str]] | None = None
    for summary in summaries:
        columns = workspace.archive.scores.columns(Selection(runs=(summary.id,)))
        tasks = frozenset((label.task, label.digest) for label in columns.tasks)
        estimated = [estimate for estimate in estimates(score_table(columns)) if estimate.mean is not None]
        points += [
            Point(
                run=summary.id,
                started=summary.started,
                candidate=known[folded(str(each.candidate))],
                estimate=each,
                same_tasks=before is None or tasks == before,
            )
            for each in estimated
            if folded(str(each.candidate)) in wanted
        ]
        before = tasks if estimated else before
    return Trend(suite=summaries[-1].suite if summaries else suite, points=tuple(points), runs=len(summaries))


def trend_chart(history: Trend) -> Chart:
    """Return a line chart of the scores over time, with an interval band for each candidate."""
    rows = tuple(
        {
            "started": point.started,
            "candidate": point.candidate,
            "mean": None if point.estimate.mean is None else 100 * point.estimate.mean,
            "low": None if point.estimate.ci95 is None else 100 * point.estimate.ci95[0],
            "high": None if point.estimate.ci95 is None else 100 * point.estimate.ci95[1],
            "run": point.run,
        }
        for point in history.points
    )
    return Chart(
        kind="trend",
        title=f"{history.suite} over time",
        about="Each candidate's score in each run with its 95% range; runs are not pooled.",
        rows=rows,
    )


@document
class TrendPointDocument:
    """JSON of one candidate's score in one run; `same_tasks` is True if the run has the same tasks as the previous run."""

    run_id: str = source("run")
    started: str
    candidate: str
    mean: float | None = source("estimate.mean")
    ci95: tuple[float, float] | None = source("estimate.ci95")
    n_tasks: int = source("estimate.n_tasks")
    n_trials: int = source("estimate.n_trials")
    scope: str = source("estimate.scope")
    reason: str | None = source("estimate.reason")
    same_tasks: bool


@document
class TrendDocument:
    """JSON of `assay trend`."""

    suite: str
    runs: int
    points: tuple[TrendPointDocument, ...]
