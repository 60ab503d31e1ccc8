"""A weighted score is correctly rounded, and a verdict ignores how an earlier version rounded
it.
"""

from fractions import Fraction

import pytest

from assay.domain.assessment import Assessment, Grade, weighted_score
from assay.domain.verdicts import Verdict, VerdictRules


@pytest.mark.parametrize(
    "scores", [(0.9, 0.9, 0.9), (0.1, 0.1, 0.1), (0.9, 0.8, 0.7), (0.2, 0.3, 0.4)]
)
@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (0.3, 0.3, 0.3), (1.0, 2.0, 4.0)])
def test_a_weighted_score_is_correctly_rounded(
    scores: tuple[float, ...], weights: tuple[float, ...]
) -> None:
    exact = sum(Fraction(w) * Fraction(s) for w, s in zip(weights, scores, strict=True)) / sum(
        map(Fraction, weights)
    )
    names = ("a", "b", "c")
    assert weighted_score(
        dict(zip(names, scores, strict=True)), dict(zip(names, weights, strict=True))
    ) == float(exact)


def test_a_score_that_was_rounded_otherwise_was_not_set_by_a_person() -> None:
    grades = tuple(
        Grade(
            candidate="x",
            criterion=name,
            score=0.9,
            raw_score=9.0,
            min_score=0.0,
            max_score=10.0,
            reason="",
        )
        for name in ("a", "b", "c")
    )
    rules = VerdictRules(fail_if_any_no=True, partial_if_any_partial=True, pass_if_all_yes=True)
    for score in (0.9, 0.8999999999999999):
        of_grades = Assessment(
            grades=grades, scores={"x": score}, weights=dict.fromkeys("abc", 1.0), rules=rules
        )
        assert of_grades.verdicts == {"x": Verdict.PARTIAL}
