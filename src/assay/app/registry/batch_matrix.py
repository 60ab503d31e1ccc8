"""One page of a batch's matrix: a row per task, and columns for trials or candidates.

For a run with pending items, neither scores nor candidate names are returned. However large the
batch is, a page has at most `TASKS` tasks, `RUNS` runs and `TRIALS` trials per run.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from statistics import mean
from typing import TYPE_CHECKING, Final

from assay.app.statistics.pooling import task_by_task_differences
from assay.domain.errors import UnknownName
from assay.domain.run_choice import in_words
from assay.domain.selection import RunSummary, Selection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.domain.graded_trials import MatrixTrial
    from assay.domain.identifiers import RunId
    from assay.store.opening import Store

TASKS: Final = 50
RUNS: Final = 6
TRIALS: Final = 20


class Across(StrEnum):
    """Column types of a batch matrix."""

    TRIALS = "trials"
    CANDIDATES = "candidates"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """One trial.

    `score` is the mean of its counted scores, or the chosen candidate's score; None if no score
    counts.
    """

    trial: MatrixTrial
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One task.

    Attributes:
        cells: trials by run, in order; runs without the task are missing.
        means: (mean, number of trials) of each candidate, without runs that have pending items. If
            the runs differ in what they measure, only the newest run with counted trials of the
            task.
    """

    task: str
    thing: str
    cells: Mapping[RunId, tuple[MatrixCell, ...]]
    means: Mapping[str, tuple[float, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A page of a batch's matrix.

    Attributes:
        suite, suites: suite of this page, and all suites of the batch.
        runs: runs of this page, newest first, each with its number of trials in the matrix.
        earlier_runs: True if the batch has older runs.
        differences: differences between the runs on the tasks of this page, in words; the means
            then pool no runs.
        candidates: candidates of these runs.
        after: position after which the next page of tasks begins; None on the last page.
    """

    suite: str
    suites: tuple[str, ...]
    runs: tuple[tuple[RunSummary, int], ...]
    candidates: tuple[str, ...]
    lines: tuple[Line, ...]
    after: tuple[int, int] | None
    more_trials: bool
    earlier_runs: bool
    differences: str = ""


def matrix(
    store: Store,
    summaries: Sequence[RunSummary],
    *,
    suite: str = "",
    candidate: str = "",
    first_run: int = 0,
    after: tuple[int, int] | None = None,
) -> Matrix:
    """Return a page of the matrix. `summaries` lists the runs, newest first.

    Args:
        suite: suite whose tasks are shown; if empty, the suite of the newest run.
        candidate: candidate whose scores are shown; if empty, the mean over all candidates.
        first_run: number of newest runs to skip.
        after: position after which the page begins.

    Raises UnknownName if the runs do not include the suite or the candidate, or if there are fewer
    than `first_run` runs.
    """
    suites = tuple(dict.fromkeys(summary.suite for summary in summaries))
    suite = suite or suites[0]
    if suite not in suites:
        raise UnknownName("suite", suite, suites, remedy=f"This batch has {', '.join(suites)}.")
    of_suite = [summary for summary in summaries if summary.suite == suite]
    if first_run and first_run >= len(of_suite):
        raise UnknownName(
            "run", f"{first_run + 1} of {len(of_suite)}", remedy="Remove runs= from the address."
        )
    shown = of_suite[first_run : first_run + RUNS]
    candidates = tuple(dict.fromkeys(name for run in shown for name in run.candidates))
    if candidate and candidate not in candidates:
        raise UnknownName("candidate", candidate, candidates)
    rows = store.archive.trials.matrix(
        [run.id for run in shown], after=after, limit=TASKS + 1, trials=TRIALS
    )
    keys = [
        trial.key
        for row in rows[:TASKS]
        for run_trials in row.trials.values()
        for trial in run_trials
    ]
    selection = Selection(runs=tuple(run.id for run in shown))
    counted = store.archive.scores.of_trials(selection, keys) if keys else ()
    scores = {trial.trial: trial.scores for trial in counted}
    newest_first = [run.id for run in shown]
    runs_by_task = {
        (suite, row.task): tuple(run for run in newest_first if run in row.trials)
        for row in rows[:TASKS]
    }
    differing = task_by_task_differences(store, runs_by_task)
    lines = []
    for row in rows[:TASKS]:
        cells, given = {}, dict[str, list[float]]()
        own = runs_by_task[suite, row.task]
        counted_in = [
            run for run in own if any(scores.get(int(trial.key)) for trial in row.trials[run])
        ]
        pooled = counted_in[:1] if differing else counted_in
        for run, run_trials in row.trials.items():
            line = []
            for trial in run_trials:
                by_name = scores.get(int(trial.key), {})
                for name, score in by_name.items() if run in pooled else ():
                    given.setdefault(name, []).append(score)
                meant = [score for name, score in by_name.items() if candidate in ("", name)]
                line.append(MatrixCell(trial=trial, score=mean(meant) if meant else None))
            cells[run] = tuple(line)
        means = {name: (mean(values), len(values)) for name, values in given.items()}
        lines.append(Line(task=row.task, thing=row.thing, cells=cells, means=means))
    width = {
        run.id: max((len(line.cells.get(run.id, ())) for line in lines), default=0) for run in shown
    }
    return Matrix(
        suite=suite,
        suites=suites,
        runs=tuple((run, width[run.id]) for run in shown),
        candidates=candidates,
        lines=tuple(lines),
        after=rows[TASKS - 1].place if len(rows) > TASKS else None,
        more_trials=any(n > TRIALS for row in rows[:TASKS] for n in row.planned.values()),
        earlier_runs=first_run + RUNS < len(of_suite),
        differences=in_words(differing),
    )
