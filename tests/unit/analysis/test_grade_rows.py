"""Grades of the same response beside each other: which stand where, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from assay.analysis.columns import STATES, ReviewColumns, TaskLabel
from assay.analysis.grade_rows import (
    GradeRows,
    of_attempts,
    of_judges,
    of_people,
    state_of,
    together,
)
from assay.domain.lifecycle import AssessmentState as State

NAN = float("nan")


def columns(*rows: tuple[int, int, int, int, State, float, float]) -> ReviewColumns:
    """Rows of (trial, candidate, judge, attempt, state, judged, final), each an assessment of its
    own.
    """
    task, candidate, judge, attempt, state, judged, final = zip(
        *((r[0] // 10, *r[1:]) for r in rows), strict=True
    )
    return ReviewColumns(
        tasks=tuple(
            TaskLabel(suite="s", task=f"t{n}", digest="", thing=f"T{n}", weight=1.0)
            for n in range(4)
        ),
        candidates=("ada", "bob"),
        judges=("strict", "mild"),
        task=np.array(task, np.int64),
        candidate=np.array(candidate, np.int64),
        judge=np.array(judge, np.int64),
        trial=np.array([row[0] for row in rows], np.int64),
        assessment=np.arange(1, len(rows) + 1),
        attempt=np.array(attempt, np.int64),
        state=np.array([STATES.index(one) for one in state], np.int64),
        judged=np.array(judged, np.float64),
        final=np.array(final, np.float64),
        joint=np.ones(len(rows), np.bool_),
        by_model=np.ones(len(rows), np.bool_),
        planned=np.zeros((2, 4), np.int64),
    )


def judges(found: ReviewColumns) -> GradeRows:
    return of_judges(found, found.judges)


def test_two_judges_of_a_trial_share_a_row_with_their_gap() -> None:
    result = judges(
        columns(
            (11, 0, 0, 1, State.APPROVED, 0.4, 0.4),
            (11, 0, 1, 1, State.APPROVED, 0.9, 0.9),
            (11, 1, 0, 1, State.APPROVED, 0.5, 0.5),
            (12, 0, 1, 1, State.CORRECTED, 0.7, 0.2),
        )
    )
    assert result.score.tolist()[0] == [0.4, 0.9]
    assert result.gap[0] == pytest.approx(0.5)
    assert np.isnan(result.gap[1:]).all(), "one judge alone is no gap"
    assert result.assessment.tolist() == [[1, 2], [3, -1], [-1, 4]]
    assert result.score[2, 1] == 0.7, "a judge's own score, not the person's"


def test_pending_trials_are_left_out_and_counted() -> None:
    result = judges(
        columns(
            (11, 0, 0, 1, State.APPROVED, 0.4, 0.4),
            (11, 0, 1, 1, State.PENDING, 0.9, 0.9),
            (12, 0, 0, 1, State.APPROVED, 0.4, 0.4),
        )
    )
    assert (result.trial.tolist(), result.waiting) == ([12], 1)


def test_a_superseded_attempt_is_no_judge_s_word_any_more() -> None:
    result = judges(
        columns((11, 0, 0, 1, State.SUPERSEDED, 0.1, 0.1), (11, 0, 0, 2, State.APPROVED, 0.6, 0.6))
    )
    assert result.score[0, 0] == 0.6


def test_attempts_are_those_of_trials_that_were_judged_anew() -> None:
    result = of_attempts(
        columns(
            (11, 0, 0, 1, State.SUPERSEDED, 0.1, 0.1),
            (11, 0, 0, 2, State.APPROVED, 0.6, 0.6),
            (12, 0, 0, 1, State.APPROVED, 0.5, 0.5),
            (13, 0, 0, 1, State.SUPERSEDED, 0.5, 0.5),
            (13, 0, 0, 2, State.PENDING, 0.5, 0.5),
        ),
        "strict",
        most=2,
    )
    assert result.panes == ("attempt 1", "attempt 2")
    assert result.score.tolist() == [[0.1, 0.6]]
    assert result.waiting == 1


def test_person_s_score_is_the_approved_or_corrected_one() -> None:
    data = columns(
        (11, 0, 0, 1, State.APPROVED, 0.4, 0.4),
        (12, 0, 0, 1, State.CORRECTED, 0.4, 0.9),
        (13, 0, 0, 1, State.REJECTED, 0.4, 0.4),
        (14, 0, 0, 1, State.PENDING, 0.4, 0.4),
        (15, 0, 0, 1, State.EXEMPT, 0.4, 0.4),
    )
    result = of_people(data, "strict")
    assert result.panes == ("strict", "person")
    assert np.array_equal(result.score, [[0.4, 0.4], [0.4, 0.9], [0.4, NAN]], equal_nan=True)
    assert result.waiting == 1
    assert state_of(data, result) == {1: State.APPROVED, 2: State.CORRECTED, 3: State.REJECTED}


def test_trials_of_two_runs_match_by_task_and_candidate() -> None:
    one = columns((11, 0, 0, 1, State.APPROVED, 0.4, 0.4), (12, 1, 0, 1, State.APPROVED, 0.3, 0.3))
    other = columns(
        (31, 0, 0, 1, State.APPROVED, 0.7, 0.7), (32, 0, 0, 1, State.APPROVED, 0.1, 0.1)
    )
    other = replace(other, candidates=("bob", "cleo"), assessment=np.array([8, 9]))
    joined = together(one, other, trials={31: 12}, ends=(" · a", " · b"))
    result = of_judges(joined, ("strict · a", "strict · b"))
    assert joined.candidates == ("ada", "bob", "cleo")
    assert np.array_equal(result.score, [[0.4, NAN], [0.3, 0.7]], equal_nan=True)
    assert result.assessment.tolist() == [[1, -1], [2, 8]]
    assert [joined.tasks[code].task for code in joined.task] == ["t1", "t1", "t3"]
