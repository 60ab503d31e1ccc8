"""Rows that compare grades for the same response: by judges, by attempts, or by judge and person.

A row is one candidate in one trial; a pane is a column with one grader's scores. Rows that await
review are counted but not shown, so that reviewers do not learn a grade before they decide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from assay.analysis.columns import STATES, ReviewColumns
from assay.analysis.review_tables import in_state
from assay.domain.lifecycle import AssessmentState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

MAX_PANES = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradeRows:
    """Graded responses in rows, with one column (pane) per grader.

    Attributes:
        panes: names of the graders, from left to right.
        task, candidate: codes from the original columns, shape (rows,), int64.
        trial: store keys, shape (rows,), int64.
        score: between 0 and 1, NaN if missing, shape (rows, panes).
        assessment: store keys, -1 if missing, shape (rows, panes), int64.
        waiting: number of rows left out because they await review.
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
        """Highest minus lowest score in each row; NaN if fewer than two panes have a score."""
        given = ~np.isnan(self.score)
        # nanmax is not used, because it warns about rows without any score.
        high = np.where(given, self.score, -np.inf).max(axis=1, initial=-np.inf)
        low = np.where(given, self.score, np.inf).min(axis=1, initial=np.inf)
        return np.where(given.sum(axis=1) > 1, high - low, np.nan)

    def only(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> GradeRows:
        """Return the rows that a mask or an array of indices selects."""
        cut = {
            name: getattr(self, name)[rows]
            for name in ("task", "candidate", "trial", "score", "assessment")
        }
        return replace(self, **cut)


def of_judges(columns: ReviewColumns, panes: Sequence[str]) -> GradeRows:
    """Build rows from the current assessments of the judges named in `panes` (at most
    `MAX_PANES`).
    """
    place = np.array(
        [panes.index(name) if name in panes else -1 for name in columns.judges], np.int64
    )
    pane = place[columns.judge] if len(place) else columns.judge
    use = ~in_state(columns, AssessmentState.SUPERSEDED) & (pane >= 0)
    return _laid(columns, use, pane, columns.judged, panes=tuple(panes))


def of_attempts(columns: ReviewColumns, judge: str, *, most: int) -> GradeRows:
    """Build rows from one judge's attempts, first to last, in up to `most` panes.

    Rows with a single attempt are left out.
    """
    mine = _by(columns, judge)
    # If there are more attempts than panes, the last pane shows the newest attempt.
    place = np.minimum(columns.attempt - 1, most - 1)
    panes = tuple(f"attempt {n + 1}" for n in range(most))
    rows = _laid(columns, mine, place, columns.judged, panes=panes)
    return rows.only((rows.assessment >= 0).sum(axis=1) > 1)


def of_people(columns: ReviewColumns, judge: str) -> GradeRows:
    """Build rows of a judge's scores and the scores after review.

    Rejected assessments have no score after review.
    """
    decided = in_state(
        columns, AssessmentState.APPROVED, AssessmentState.CORRECTED, AssessmentState.REJECTED
    )
    mine = _by(columns, judge) & columns.by_model
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


def together(
    own: ReviewColumns, other: ReviewColumns, *, trials: Mapping[int, int], ends: tuple[str, str]
) -> ReviewColumns:
    """Merge the columns of two runs that graded the same responses.

    Args:
        trials: maps each trial of `other` to the trial of `own` that it repeats; rows of unmapped
            trials are left out.
        ends: suffixes that distinguish the judges' names in `own` and in `other`.
    """
    keep = np.isin(other.trial, np.array(list(trials), np.int64))
    names = tuple(dict.fromkeys((*own.candidates, *other.candidates)))
    tasks = (*own.tasks, *other.tasks)
    code = np.array([names.index(name) for name in other.candidates], np.int64)
    trial = np.array([trials[int(key)] for key in other.trial[keep]], np.int64)
    return ReviewColumns(
        tasks=tasks,
        candidates=names,
        judges=(
            *(name + ends[0] for name in own.judges),
            *(name + ends[1] for name in other.judges),
        ),
        task=np.concatenate([own.task, other.task[keep] + len(own.tasks)]),
        candidate=np.concatenate([own.candidate, code[other.candidate[keep]]]),
        judge=np.concatenate([own.judge, other.judge[keep] + len(own.judges)]),
        trial=np.concatenate([own.trial, trial]),
        planned=np.zeros((len(names), len(tasks)), np.int64),
        assessment=np.concatenate([own.assessment, other.assessment[keep]]),
        attempt=np.concatenate([own.attempt, other.attempt[keep]]),
        state=np.concatenate([own.state, other.state[keep]]),
        judged=np.concatenate([own.judged, other.judged[keep]]),
        final=np.concatenate([own.final, other.final[keep]]),
        joint=np.concatenate([own.joint, other.joint[keep]]),
        by_model=np.concatenate([own.by_model, other.by_model[keep]]),
    )


def _by(columns: ReviewColumns, judge: str) -> NDArray[np.bool_]:
    if judge not in columns.judges:
        return np.zeros(len(columns.judge), np.bool_)
    return np.asarray(columns.judge == columns.judges.index(judge))


def state_of(columns: ReviewColumns, rows: GradeRows) -> dict[int, AssessmentState]:
    wanted = np.isin(columns.assessment, rows.assessment)
    at = np.flatnonzero(wanted)
    return {
        int(key): STATES[code]
        for key, code in zip(columns.assessment[at], columns.state[at], strict=True)
    }


def _laid(
    columns: ReviewColumns,
    use: NDArray[np.bool_],
    pane: NDArray[np.int64],
    score: NDArray[np.float64],
    *,
    panes: tuple[str, ...],
) -> GradeRows:
    """Arrange scores by row and pane; a row in which anything awaits review is left out."""
    at = np.flatnonzero(use)
    trial = columns.trial[at]
    width = max(1, len(columns.candidates))
    slots, first, row = np.unique(
        trial * width + columns.candidate[at], return_index=True, return_inverse=True
    )
    row = row.reshape(-1)
    laid = np.full((len(slots), len(panes)), np.nan)
    keys = np.full((len(slots), len(panes)), -1, np.int64)
    # if a pane has several assessments, the newest is used
    order = np.argsort(columns.assessment[at], kind="stable")
    laid[row[order], pane[at][order]] = score[at][order]
    keys[row[order], pane[at][order]] = columns.assessment[at][order]
    waits = np.zeros(len(slots), np.bool_)
    waits[row[in_state(columns, AssessmentState.PENDING)[at]]] = True
    every_row = GradeRows(
        panes=panes,
        task=columns.task[at][first],
        candidate=columns.candidate[at][first],
        trial=trial[first],
        score=laid,
        assessment=keys,
        waiting=int(waits.sum()),
    )
    return every_row.only(~waits)
