"""How a criterion fares: numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from assay.analysis.criteria import analyse_criterion, steps
from assay.domain.criteria import BlindGrade, CorrectedGrade, CriterionFacts, GradeCount
from assay.domain.suite import Criterion

CRITERION = Criterion(name="tone", low=0, high=4)


def facts(**more: object) -> CriterionFacts:
    given: dict[str, object] = {
        "counted": (),
        "decided": (),
        "corrected": (),
        "blind": (),
        "blind_assessments": frozenset(),
        "graded": {"tone": 1},
    }
    return CriterionFacts(**{**given, **more})  # type: ignore[arg-type]


def counted(thousandths: int, n: int, assessment: int = 1) -> GradeCount:
    return GradeCount(criterion="tone", thousandths=thousandths, n=n, assessment=assessment)


def test_counted_grades_stand_at_their_places_of_the_scale() -> None:
    one = analyse_criterion(
        CRITERION,
        facts(counted=(counted(250, 3, 7), counted(1000, 1, 9))),
        rng=np.random.default_rng(1),
    )
    assert [(step.low, step.n) for step in one.steps] == [(0, 0), (1, 3), (2, 0), (3, 0), (4, 1)]
    assert one.n == 4
    assert one.mean == pytest.approx((3 * 0.25 + 1) / 4)
    assert one.spread == pytest.approx(0.375)
    assert one.lowest == (7, 0.25)
    assert one.highest == (9, 1.0)


@pytest.mark.parametrize(
    ("low", "high", "given", "shown"),
    [
        (0, 4, 125, 9),  # halves
        (0, 4, 130, 10),  # neither: tenths
        (1, 7, 167, 7),  # one of six, rounded to thousandths
        (0, 100, 500, 10),  # too many places to show each
        (0, 0.5, 500, 10),
    ],
)
def test_a_scale_is_shown_place_by_place_where_that_is_exact(
    low: float, high: float, given: int, shown: int
) -> None:
    laid = steps(Criterion(name="tone", low=low, high=high), [counted(given, 5)])
    assert len(laid) == shown
    assert sum(step.n for step in laid) == 5


def test_the_highest_grade_lies_in_the_last_part() -> None:
    laid = steps(
        Criterion(name="tone", low=0, high=100), [counted(1000, 2), counted(999, 1), counted(0, 1)]
    )
    assert [step.n for step in laid] == [1, *[0] * 8, 3]


def test_acceptance_skips_blind_verdicts_and_agreement_uses_only_them() -> None:
    blind = tuple(
        BlindGrade(criterion="tone", assessment=key, candidate=1, person=grade, judge=grade)
        for key, grade in enumerate([0.0, 0.25, 0.5, 1.0], start=1)
    )
    decided = tuple((key, key == 6) for key in range(1, 9))
    one = analyse_criterion(
        CRITERION,
        facts(
            blind=blind,
            blind_assessments=frozenset({1, 2, 3, 4}),
            decided=decided,
            corrected=tuple(
                CorrectedGrade(criterion="tone", assessment=key, change=change)
                for key, change in ((5, -0.5), (1, 0.25))
            ),
        ),
        rng=np.random.default_rng(1),
    )
    assert one.alpha.value == pytest.approx(1.0)
    assert one.alpha.ci95 is None, "twenty grades at least for a range"
    assert one.alike.value == 1.0
    assert one.apart.value == 0.0
    assert (one.acceptance.value, one.acceptance.n) == (0.5, 4), (
        "of 5 to 8, one was changed and one rejected"
    )
    assert one.corrected.value == pytest.approx(2 / 7)
    assert one.corrected.n == 7
    assert (one.up, one.down) == (1, 1)
    assert one.change.value == pytest.approx(-0.125)


def test_drift_is_the_second_half_less_the_first() -> None:
    decided = tuple((key, False) for key in range(20))
    corrected = tuple(
        CorrectedGrade(criterion="tone", assessment=key, change=0.1) for key in (1, 12, 13, 14, 15)
    )
    one = analyse_criterion(
        CRITERION, facts(decided=decided, corrected=corrected), rng=np.random.default_rng(1)
    )
    assert one.first_half.value == pytest.approx(0.1)
    assert one.second_half.value == pytest.approx(0.4)
    assert one.drift.value == pytest.approx(0.3)
    assert one.drift.ci95 is not None
    assert one.drift.ci95[0] < 0.3 < one.drift.ci95[1]
    few = analyse_criterion(CRITERION, facts(decided=decided[:9]), rng=np.random.default_rng(1))
    assert few.drift.value is None
    assert few.drift.reason == "too_few_decisions"


def test_changes_of_one_assessment_are_one_case() -> None:
    corrected = [
        CorrectedGrade(criterion="tone", assessment=1, change=change) for change in (0.1, 0.2, 0.3)
    ]
    corrected.append(CorrectedGrade(criterion="tone", assessment=2, change=0.4))
    one = analyse_criterion(
        CRITERION,
        facts(decided=((1, False), (2, False)), corrected=tuple(corrected)),
        rng=np.random.default_rng(1),
    )
    assert one.change.value == pytest.approx(0.3)
    assert one.change.n == 2
    assert one.up == 4


def test_without_anything_there_is_no_number_anywhere() -> None:
    one = analyse_criterion(CRITERION, facts(graded={}), rng=np.random.default_rng(1))
    assert (one.n, one.mean, one.spread, one.lowest, one.highest) == (0, None, None, None, None)
    for figure in (
        one.alpha,
        one.alike,
        one.apart,
        one.acceptance,
        one.corrected,
        one.change,
        one.drift,
    ):
        assert figure.value is None
        assert figure.reason
    other = analyse_criterion(
        CRITERION, facts(graded={}, decided=((1, False),)), rng=np.random.default_rng(1)
    )
    assert other.acceptance.n == 0, "the judge gave no grade on it"
