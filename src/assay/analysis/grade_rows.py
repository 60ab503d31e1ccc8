"""Grades of the same response beside each other: judge and judge, attempt and attempt, judge and person.

A row is one candidate in one trial; a pane is one who graded it. What waits for a person is left out and counted, so that
nothing here tells a reviewer what is still to be decided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from assay.analysis.columns import STATES
from assay.analysis.review_tables import in_state
from assay.domain.lifecycle import AssessmentState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from assay.analysis.columns import ReviewColumns

MOST_PANES = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradeRows:
    """Rows of graded responses.

    Attributes:
        panes: who graded, by name, left to right.
        task, candidate: codes of the columns they were made from, shape (rows,), int64.
        trial: store keys, shape (rows,), int64.
        score: on 0 to 1, NaN where a pane has none, shape (rows, panes).
        assessment: store keys, -1 where a pane has none, shape (rows, panes), int64.
        waiting: rows left out because a person has still to decide them.
    """

    panes: tuple[str, ...]
    task: NDArray[np.int64]
    candidate: NDArray[np.int64]
    trial: NDArray[np.int64]
    score: NDArray[np.float64]
    assessment: NDArray[np.int64]
    waiting: int

    @property
    def gap(self) -> NDArray[np.float64]:
        """Highest minus lowest score of each row, NaN where fewer than two panes have one."""
        given = ~np.isnan(self.score)
        high = np.where(given, self.score, -np.inf).max(axis=1, initial=-np.inf)
        low = np.where(given, self.score, np.inf).min(axis=1, initial=np.inf)
        return np.where(given.sum(axis=1) > 1, high - low, np.nan)

    def only(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> GradeRows:
        """Some of the rows, in the order given."""
        cut = {name: getattr(self, name)[rows] for name in ("task", "candidate", "trial", "score", "assessment")}
        return replace(self, **cut)


def of_judges(
    columns: ReviewColumns,
    panes: Sequence[str],
    pane: NDArray[np.int64],
    *,
    unit: Mapping[int, int] | None = None,
) -> GradeRows:
    """Judges' own scores of their current attempts.

    Args:
        panes: at most `MOST_PANES` names.
        pane: whose row of the columns it is, as a place in `panes`; -1 for nobody's. Shape (rows of columns,).
        unit: by trial key, what stands for the same responses in several runs (a regrade's trial is its original's);
            each trial for itself where None.
    """
    use = ~in_state(columns, AssessmentState.SUPERSEDED) & (pane >= 0)
    return _laid(columns, use, pane, columns.judged, panes=tuple(panes), unit=unit)


def of_attempts(columns: ReviewColumns, judge: str) -> GradeRows:
    """What was judged anew: one judge's attempts, first to last; rows with one attempt are not here."""
    mine = columns.judge == columns.judges.index(judge)
    place = np.minimum(columns.attempt - 1, MOST_PANES - 1)
    most = int(place[mine].max(initial=0)) + 1
    panes = tuple(f"attempt {n + 1}" for n in range(most))
    rows = _laid(columns, mine, place, columns.judged, panes=panes)
    return rows.only((rows.assessment >= 0).sum(axis=1) > 1)


def of_people(columns: ReviewColumns, judge: str) -> GradeRows:
    """A judge's own scores beside those a person let stand or put in their place; a rejected one has no person's score."""
    decided = in_state(columns, AssessmentState.APPROVED, AssessmentState.CORRECTED, AssessmentState.REJECTED)
    mine = (columns.judge == columns.judges.index(judge)) & columns.by_model
    rejected = in_state(columns, AssessmentState.REJECTED)
    use = mine & (decided | in_state(columns, AssessmentState.PENDING))
    judged = _laid(columns, use, np.zeros(len(use), np.int64), columns.judged, panes=(judge,))
    final = np.where(rejected, np.nan, columns.final)
    person = _laid(columns, use, np.zeros(len(use), np.int64), final, panes=("person",))
    return replace(
        judged,
        panes=(judge, "person"),
        score=np.hstack([judged.score, person.score]),
        assessment=np.hstack([judged.assessment, person.assessment]),
    )


def state_of(columns: ReviewColumns, rows: GradeRows) -> dict[int, AssessmentState]:
    """The state of each assessment of some rows, by key."""
    wanted = np.isin(columns.assessment, rows.assessment)
    at = np.flatnonzero(wanted)
    return {int(key): STATES[code] for key, code in zip(columns.assessment[at], columns.state[at], strict=True)}


def _laid(
    columns: ReviewColumns,
    use: NDArray[np.bool_],
    pane: NDArray[np.int64],
    score: NDArray[np.float64],
    *,
    panes: tuple[str, ...],
    unit: Mapping[int, int] | None = None,
) -> GradeRows:
    """Scores in a table of rows and panes; a row in which anything waits for a person is left out."""
    at = np.flatnonzero(use)
    trial = columns.trial[at]
    units = trial if unit is None else np.array([unit.get(int(key), int(key)) for key in trial], np.int64)
    width = max(1, len(columns.candidates))
    slots, first, row = np.unique(units * width + columns.candidate[at], return_index=True, return_inverse=True)
    row = row.reshape(-1)
    laid = np.full((len(slots), len(panes)), np.nan)
    keys = np.full((len(slots), len(panes)), -1, np.int64)
    order = np.argsort(columns.assessment[at], kind="stable")  # the newest of a pane stands
    laid[row[order], pane[at][order]] = score[at][order]
    keys[row[order], pane[at][order]] = columns.assessment[at][order]
    waits = np.zeros(len(slots), np.bool_)
    waits[row[in_state(columns, AssessmentState.PENDING)[at]]] = True
    found = GradeRows(
        panes=panes,
        task=columns.task[at][first],
        candidate=columns.candidate[at][first],
        trial=trial[first],
        score=laid,
        assessment=keys,
        waiting=int(waits.sum()),
    )
    return found.only(~waits)
