"""Score chart: scores of single trials, one strip for each candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import mean
from typing import Final

from assay.report import wording
from assay.report.charts.chart import OFFSET, SPOKEN, Chart, Row
from assay.statistics.arrays import Ints
from assay.statistics.table import ScoreTable

MAX_POINTS: Final = 1500
"""Maximum number of single trials drawn; if there are more, every n-th of each candidate's trials
in order of score is drawn.
"""


def scores(table: ScoreTable, *, trials: Callable[[int], str] | None = None) -> Chart:
    """Chart the score of every counted trial, with one strip for each candidate, and mark the
    middle half of the scores.

    `trials` returns a trial's name for its code in the table; without `trials`, the chart shows
    codes.
    """
    rows: list[Row] = []
    counts: dict[str, int] = {}
    thinned = False
    most = max(MAX_POINTS // max(len(table.candidates), 1), 100)
    for code, candidate in enumerate(table.candidates):
        ordered = _by_score(table, code)
        if not ordered.size:
            continue
        counts[str(candidate)] = len(ordered)
        step = max(1, -(-len(ordered) // most))
        thinned |= step > 1
        rows += [
            _dot_row(table, str(candidate), int(row), place, trials)
            for place, row in enumerate(ordered[::step])
        ]
    whose = (
        "The score of every counted trial"
        if len(rows) == len(table.score)
        else _shown_of(len(rows), len(table.score))
    )
    names = dict.fromkeys(str(row["candidate"]) for row in rows)
    order = sorted(names, key=lambda name: -_mean_of(rows, name))
    return Chart(
        kind="scores",
        title="Scores of single trials",
        about=f"{whose}, by candidate. The box holds the middle half of the scores; the line in it is the median.",
        rows=tuple(rows),
        settings={"order": order, "n": counts},
        every=partial(_every_score, table, trials) if thinned else None,
    )


def _by_score(table: ScoreTable, code: int) -> Ints:
    mine = table.rows_of(code)
    return mine[table.score[mine].argsort(kind="stable")]


def _every_score(table: ScoreTable, trials: Callable[[int], str] | None) -> Iterator[Row]:
    for code, candidate in enumerate(table.candidates):
        for row in _by_score(table, code).tolist():
            yield _score_row(table, str(candidate), row, trials)


def _shown_of(shown: int, n: int) -> str:
    return f"The scores of {shown:,} out of {n:,} counted trials, spread evenly over the range of scores"


def _dot_row(
    table: ScoreTable, candidate: str, row: int, place: int, trials: Callable[[int], str] | None
) -> Row:
    task, score = table.tasks[table.task_codes[row]], float(table.score[row])
    return {
        **_score_row(table, candidate, row, trials),
        # Multiples of the golden ratio fill 0 to 1 evenly, so the same chart is drawn every time
        # without a seed.
        OFFSET: (place * 0.6180339887498949) % 1.0,
        SPOKEN: f"{candidate}, {task}: {wording.number(score)}",
    }


def _score_row(
    table: ScoreTable, candidate: str, row: int, trials: Callable[[int], str] | None
) -> Row:
    trial = int(table.trial_codes[row])
    return {
        "candidate": candidate,
        "task": str(table.tasks[table.task_codes[row]]),
        "trial": trial if trials is None else trials(trial),
        "score": 100 * float(table.score[row]),
    }


def _mean_of(rows: Sequence[Row], name: str) -> float:
    own = [float(row["score"] or 0.0) for row in rows if row["candidate"] == name]
    return mean(own)
