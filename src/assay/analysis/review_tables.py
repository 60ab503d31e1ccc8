"""Score tables under other assumptions: with rejected trials, with first attempts, or without
people's corrections.

None of these tables is a result. They show how much a result depends on review decisions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from assay.analysis.columns import ReviewColumns, state_codes
from assay.analysis.tables import family_rows, names_of_tasks, planned_families
from assay.domain.lifecycle import COUNTS, AssessmentState
from assay.statistics.table import ScoreTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_PER_ROW = (
    "task",
    "candidate",
    "judge",
    "trial",
    "assessment",
    "attempt",
    "state",
    "judged",
    "final",
    "joint",
    "by_model",
)


def in_state(columns: ReviewColumns, *states: AssessmentState) -> NDArray[np.bool_]:
    return np.isin(columns.state, state_codes(*states))


def only(columns: ReviewColumns, candidates: Sequence[str]) -> ReviewColumns:
    """Return only the rows of these candidates; their codes stay the same."""
    codes = [code for code, name in enumerate(columns.candidates) if name in candidates]
    rows = np.flatnonzero(np.isin(columns.candidate, codes))
    cut = {name: getattr(columns, name)[rows] for name in _PER_ROW}
    number, place, run = (
        None if column is None else column[rows]
        for column in (columns.number, columns.place, columns.run)
    )
    return replace(columns, number=number, place=place, run=run, **cut)


def counts(columns: ReviewColumns) -> NDArray[np.bool_]:
    return in_state(columns, *COUNTS) & ~np.isnan(columns.final)


def put_back(columns: ReviewColumns) -> NDArray[np.bool_]:
    """Return a mask of rejected rows that have a judge's score."""
    return in_state(columns, AssessmentState.REJECTED) & ~np.isnan(columns.judged)


def with_rejected(columns: ReviewColumns) -> ScoreTable:
    """Return a table of counted trials, and of rejected trials with the grader's score."""
    gone = put_back(columns)
    return table_of(columns, counts(columns) | gone, np.where(gone, columns.judged, columns.final))


def rejected_as(columns: ReviewColumns, score: float) -> ScoreTable:
    """Return a table of counted trials, and of rejected trials with the given score, which is
    between 0 and 1.
    """
    gone = in_state(columns, AssessmentState.REJECTED)
    return table_of(columns, counts(columns) | gone, np.where(gone, score, columns.final))


def as_judged(columns: ReviewColumns) -> ScoreTable:
    """Return a table of counted and pending trials with the grader's score, as if a person had
    approved each unchanged.
    """
    stands = in_state(
        columns, *COUNTS, AssessmentState.PENDING, AssessmentState.LEFT_OUT
    ) & ~np.isnan(columns.judged)
    return table_of(columns, stands, columns.judged)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attempts:
    """Two score tables of the same trials, from first and from final attempts.

    `n_rerun` trials had several attempts.
    """

    first: ScoreTable
    final: ScoreTable
    n_rerun: int


def attempts(columns: ReviewColumns) -> Attempts:
    """Return first and final attempts at counted trials.

    A trial whose first attempt has no score is in neither table.
    """
    slot = _slots(columns)
    n_slots = int(slot.max(initial=-1)) + 1
    earliest = np.full(n_slots, np.iinfo(np.int64).max)
    np.minimum.at(earliest, slot, columns.attempt)
    first = (columns.attempt == earliest[slot]) & ~np.isnan(columns.judged)
    counted = counts(columns)
    both = np.zeros(n_slots, np.bool_)
    both[slot[first]] = True
    held = np.zeros(n_slots, np.bool_)
    held[slot[counted]] = True
    both &= held
    rerun = counted & both[slot] & (columns.attempt > earliest[slot])
    return Attempts(
        first=table_of(columns, first & both[slot], columns.judged),
        final=table_of(columns, counted & both[slot], columns.final),
        n_rerun=len(np.unique(columns.assessment[rerun])),
    )


def table_of(
    columns: ReviewColumns, rows: NDArray[np.bool_], score: NDArray[np.float64]
) -> ScoreTable:
    """Build a score table from these rows and scores, with the same task names and weights as in
    the result.
    """
    names = np.array(names_of_tasks(columns.tasks), dtype=object)
    weights = np.array([label.weight for label in columns.tasks], dtype=np.float64)
    candidates = np.array(columns.candidates, dtype=object)
    at = np.flatnonzero(rows)
    task = columns.task[at]
    return ScoreTable.from_columns(
        task=names[task] if len(names) else [],
        candidate=candidates[columns.candidate[at]] if len(candidates) else [],
        trial=columns.trial[at],
        score=score[at],
        weight=weights[task] if len(weights) else None,
        joint=columns.joint[at],
        planned_tasks=sum(label.weight > 0 for label in columns.tasks),
        family=family_rows(columns.tasks, task),
        planned_families=planned_families(columns.tasks),
    ).including(columns.candidates)


def _slots(columns: ReviewColumns) -> NDArray[np.int64]:
    """Return each row's slot number, which identifies (trial, judge, candidate) across attempts."""
    if not len(columns.trial):
        return np.zeros(0, np.int64)
    width = len(columns.judges) * len(columns.candidates)
    key = columns.trial * width + columns.judge * len(columns.candidates) + columns.candidate
    # The numbers are dense, because callers keep an array with one entry for each slot.
    return np.asarray(np.unique(key, return_inverse=True)[1].reshape(-1), np.int64)
