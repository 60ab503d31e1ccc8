"""A suite's trend: the score of each candidate in each run, and what was measured differently since
its run before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.analysis.tables import score_table
from assay.app.statistics.pooling import changed_between
from assay.app.wire import document
from assay.domain.errors import UnknownName
from assay.domain.identifiers import folded
from assay.domain.run_choice import in_words, listed, task_differences
from assay.domain.selection import Selection
from assay.report.charts.chart import Chart
from assay.statistics.estimates import Estimate, estimates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.domain.identifiers import RunId
    from assay.domain.run_choice import RunDifference
    from assay.store.opening import Store

_RUNS_LISTED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A candidate's score in a run.

    Attributes:
        same_tasks: True if the tasks and their contents equal those of the previous run.
        differences: differences in scorer, rubric, judge, prompt and tasks from the candidate's
            previous run, which keep the two runs from being pooled; empty for its first run.
    """

    run: str
    started: str
    candidate: str
    estimate: Estimate
    same_tasks: bool
    differences: tuple[RunDifference, ...] = ()

    @property
    def changed(self) -> tuple[str, ...]:
        """Name the changed parts of the measurement, each once, such as `scorer` and `tasks`."""
        return tuple(dict.fromkeys(difference.what.value for difference in self.differences))

    @property
    def difference_words(self) -> str:
        return in_words(self.differences)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Scores of candidates over a suite's runs, oldest first.

    Only candidates with counted scores are included.
    """

    suite: str
    points: tuple[Point, ...]
    runs: int


def trend(
    store: Store, suite: str, *, candidates: tuple[str, ...] = (), newest: int | None = None
) -> Trend:
    """Return the trend over a suite's runs, or over the `newest` number of runs.

    Runs are never pooled, and a regrade is a separate run. Each score equals the one in `assay
    stats --run`. Raises `UnknownName` for an unknown suite, or a candidate that is in none of its
    runs.
    """
    summaries = store.archive.runs.matching(Selection(suites=(suite,)), limit=newest)[::-1]
    known = {folded(name): name for each in summaries for name in each.candidates}
    for name in candidates:
        if folded(name) not in known:
            raise UnknownName("candidate", name, known.values())
    wanted = {folded(name) for name in candidates} or set(known)
    points: list[Point] = []
    before: Mapping[str, str] | None = None
    tasks_of: dict[RunId, Mapping[str, str]] = {}
    run_before: dict[str, RunId] = {}
    differences: dict[tuple[RunId, RunId], tuple[RunDifference, ...]] = {}
    for summary in summaries:
        columns = store.archive.scores.columns(Selection(runs=(summary.id,)))
        tasks = tasks_of[summary.id] = {label.task: label.digest for label in columns.tasks}
        estimated = [
            estimate for estimate in estimates(score_table(columns)) if estimate.mean is not None
        ]
        for each in estimated:
            name = folded(str(each.candidate))
            if name not in wanted:
                continue
            pair = (run_before.get(name, summary.id), summary.id)
            if pair not in differences:
                differences[pair] = _differences(store, *pair, tasks_of)
            run_before[name] = summary.id
            points.append(
                Point(
                    run=summary.id,
                    started=summary.started,
                    candidate=known[name],
                    estimate=each,
                    same_tasks=before is None or tasks == before,
                    differences=differences[pair],
                )
            )
        before = tasks if estimated else before
    return Trend(
        suite=summaries[-1].suite if summaries else suite, points=tuple(points), runs=len(summaries)
    )


def _differences(
    store: Store, before: RunId, after: RunId, tasks_of: Mapping[RunId, Mapping[str, str]]
) -> tuple[RunDifference, ...]:
    if before == after:
        return ()
    old, new = tasks_of[before], tasks_of[after]
    edited = [task for task in new if task in old and old[task] != new[task]]
    missing = [task for task in dict.fromkeys((*old, *new)) if (task in old) != (task in new)]
    return changed_between(store, before, after, task_differences(edited, missing))


def changes_in_words(history: Trend) -> tuple[str, ...]:
    """State for each run what was measured differently from a candidate's run before, and for which
    candidates unless it is the same for all of the run; empty if nothing was.
    """
    by_run: dict[str, dict[str, list[str]]] = {}
    for point in history.points:
        by_run.setdefault(point.run, {}).setdefault(point.difference_words, []).append(
            point.candidate
        )
    return tuple(
        f"{run} differs from the run before{f' of {listed(names)}' if len(groups) > 1 else ''} in {words}, "
        "so a change of scores does not show a change of a candidate."
        for run, groups in sorted(by_run.items())
        for words, names in groups.items()
        if words
    )


def _changes_in_short(history: Trend) -> str:
    changed = {point.run: point.changed for point in history.points if point.changed}
    first = [f"{run} ({', '.join(parts)})" for run, parts in list(changed.items())[:_RUNS_LISTED]]
    rest = len(changed) - len(first)
    more = f" and {rest:,} more" if rest else ""
    return (
        f" Measured differently from the run before: {', '.join(first)}{more}." if changed else ""
    )


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
            "changed": ", ".join(point.changed),
        }
        for point in history.points
    )
    return Chart(
        kind="trend",
        title=f"{history.suite} over time",
        about=f"Each candidate's score in each run with its 95% range; runs are not pooled.{_changes_in_short(history)}",
        rows=rows,
    )


@document
class TrendPointDocument:
    """JSON of one candidate's score in one run.

    `same_tasks` is True if the run has the same tasks as the previous run. `changed` names what was
    measured differently from the candidate's previous run (scorer, rubric, judge, prompt, tasks),
    and `differences` states it in words.
    """

    run_id: str
    started: str
    candidate: str
    mean: float | None
    ci95: tuple[float, float] | None
    n_tasks: int
    n_trials: int
    scope: str
    reason: str | None
    same_tasks: bool
    changed: tuple[str, ...]
    differences: str


@document
class TrendDocument:
    """JSON of `assay trend`."""

    suite: str
    runs: int
    points: tuple[TrendPointDocument, ...]


def trend_document(history: Trend) -> TrendDocument:
    return TrendDocument(
        suite=history.suite,
        runs=history.runs,
        points=tuple(
            TrendPointDocument(
                run_id=point.run,
                started=point.started,
                candidate=point.candidate,
                mean=point.estimate.mean,
                ci95=point.estimate.ci95,
                n_tasks=point.estimate.n_tasks,
                n_trials=point.estimate.n_trials,
                scope=point.estimate.scope,
                reason=point.estimate.reason,
                same_tasks=point.same_tasks,
                changed=point.changed,
                differences=point.difference_words,
            )
            for point in history.points
        ),
    )
