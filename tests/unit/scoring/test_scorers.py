"""Scorers as evaluators: what suites are told, what cannot be decided, and what hostile answers
cost.
"""

from __future__ import annotations

import time

import pytest

from assay.domain.assessment import Response
from assay.domain.run import Slot
from assay.domain.suite import Scoring, Task
from assay.scoring.evaluator import GradingAttempt, Unscorable
from assay.scoring.scorer_result import Score, Unscored
from assay.scoring.scorers import SCORERS, ScorerEvaluator, option_problems, reference_problems


def grading(text: str, expected: str | None = "Paris", method: str = "exact") -> GradingAttempt:
    task = Task(id="t", thing="t", expected=expected, scoring=Scoring(method=method))
    return GradingAttempt(task=task, responses=(Response(candidate="ada", text=text),))


def test_a_scorer_asks_nobody_and_grades_on_its_own_criterion() -> None:
    evaluator = ScorerEvaluator(Scoring(method="exact"))
    assert evaluator.ask(grading("Paris")) == ()
    assert evaluator.slots(("ada", "bruno")) == tuple(
        Slot(grader="exact", candidate=c, by_model=False) for c in ("ada", "bruno")
    )
    assessment = evaluator.read(grading("paris"), ())
    assert assessment.scores == {"ada": 1.0}
    (grade,) = assessment.grades
    assert (grade.criterion, grade.raw_score, grade.min_score, grade.max_score) == (
        "exact",
        1.0,
        0.0,
        1.0,
    )
    assert grade.reason == "equal"


def test_exact_of_an_earlier_store_keeps_its_partial_credit() -> None:
    evaluator = ScorerEvaluator(Scoring(method="exact", partial_credit=True))
    (grade,) = evaluator.read(grading("paris, I think"), ()).grades
    assert grade.criterion == "exact"
    assert grade.score == pytest.approx(0.675)


@pytest.mark.parametrize(
    ("method", "text"), [("exact", ""), ("numeric", "none"), ("regex", "no"), ("boolean", "no")]
)
def test_a_wrong_answer_is_a_zero_and_not_unscored(method: str, text: str) -> None:
    expected = {"exact": "Paris", "numeric": "42", "regex": r"\d", "boolean": "yes"}[method]
    assert ScorerEvaluator(Scoring(method=method)).read(
        grading(text, expected, method), ()
    ).scores == {"ada": 0.0}


def test_undecided_scorer_gives_no_score() -> None:
    with pytest.raises(Unscorable, match="no_reference"):
        ScorerEvaluator(Scoring(method="exact")).read(grading("Paris", None), ())


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("exat", {}, "Did you mean 'exact'"),
        ("maths", {}, "Did you mean 'math'"),
        ("exact", {"tolerance": 1}, "It has `extract`"),
        ("numeric", {"tolerence": 1}, "Did you mean 'tolerance'"),
        ("numeric", {"tolerance": "x"}, "from 0 to 1"),
        ("numeric", {"tolerance": True}, "from 0 to 1"),
        ("numeric", {"tolerance": -1}, "from 0 to 1"),
        ("numeric", {"abs_tolerance": -1}, "at least 0"),
        ("numeric", {"pick": "middle"}, "`any`"),
        ("numeric", {"curve": "square"}, "`step`"),
        ("choice", {"options": ["yes"]}, "at least two different options"),
        ("contains", {"options": ["yes", "no"]}, "It has `any_of`, `extract`"),
    ],
)
def test_wrong_options_are_said(method: str, options: dict[str, str | float], said: str) -> None:
    (problem,) = option_problems(method, options)
    assert said in problem


@pytest.mark.parametrize(
    ("method", "expected", "said"),
    [
        ("exact", None, "missing"),
        ("boolean", " \n", "empty"),
        ("numeric", "forty-two", "no number"),
        ("closeness", "forty-two", "no number"),
        ("json", "{a", "not JSON"),
        ("regex", "[", "not a regular expression"),
        ("regex", "(?<=a", "not a regular expression"),
        ("regex", "/a/x", "no flag 'x'"),
        ("regex", "(?=(((a{1000}){1000}){1000}))", "counted repetitions that are too long"),
        ("regex", "a" * 20_000, "longer than"),
    ],
)
def test_wrong_references_are_said(method: str, expected: str | None, said: str) -> None:
    (problem,) = reference_problems(method, expected)
    assert said in problem


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("exact", "x"),
        ("numeric", "$1,234"),
        ("regex", "/a{2,3}/gi"),
        ("regex", r"(?!a)\d{1,3}(?:x{2}){3}"),
        ("judge", None),
        ("boolean", "x"),
    ],
)
def test_right_references_have_no_problem(method: str, expected: str | None) -> None:
    assert reference_problems(method, expected) == ()
    assert option_problems(method, {}) == ()


MEGABYTE = "x" * 1_000_000


@pytest.mark.parametrize(
    ("method", "response", "reference"),
    [
        ("regex", "a" * 50_000 + "!", "^(a+)+$"),
        ("regex", MEGABYTE, "(x+x+)+y"),
        ("regex", MEGABYTE, "(.*)*(.*)*(.*)*z"),
        ("regex", "a" * 5000, r"^(?=(a|a)*b)"),
        ("regex", "ab" * 50_000, r"(.*)\1\1b"),
        ("regex", MEGABYTE, r"(?=x*y)x*y"),
        ("numeric", "9" * 1_000_000, "42"),
        ("numeric", "1," * 500_000, "42"),
        ("numeric", "1 " * 500_000, "42"),
        ("numeric", "9**9**9", "42"),
        ("numeric", "1e" * 500_000, "42"),
        ("numeric", "-." * 500_000, "42"),
        ("numeric", "1,111" * 200_000, "42"),
        ("exact", MEGABYTE, "X" * 1_000_000),
        ("similarity", MEGABYTE, "Paris"),
        ("similarity", MEGABYTE, "y" * 100_000),
        ("similarity", "xy" * 500_000, "yxx" * 300_000),
        ("boolean", MEGABYTE, "xy"),
        ("similarity", "{" * 10_000 + "}" * 10_000, "{}"),
    ],
)
def test_no_answer_holds_a_run_up(method: str, response: str, reference: str) -> None:
    started = time.process_time()
    outcome = SCORERS[method](response, reference, {})
    assert time.process_time() - started < 2.0
    assert isinstance(outcome, Score | Unscored)


def test_a_pattern_that_runs_out_of_time_is_unscored() -> None:
    outcome = SCORERS["regex"]("a" * 5000 + "!", r"^(?=(a|a)*b)", {})
    assert isinstance(outcome, Unscored)
    assert outcome.kind == "pattern_timeout"
