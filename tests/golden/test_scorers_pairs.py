"""Input-output pairs of the deterministic scorers, worked out by hand from their rules and checked
against the method's published table (where the table disagrees with its own formula, the formula
and its stated resolution hold).
"""

from __future__ import annotations

import pytest

from assay.scoring.scorer_result import Score, Unscored
from assay.scoring.scorers import SCORERS


def value(method: str, response: str, reference: str, **options: str | float) -> float:
    outcome = SCORERS[method](response, reference, options)
    assert isinstance(outcome, Score), outcome
    return outcome.value


@pytest.mark.parametrize(
    ("response", "reference", "expected"),
    [
        ("Paris", "Paris", 1.0),
        (" Paris\n", "Paris", 1.0),
        ("Paris", "  Paris ", 1.0),
        ("paris", "Paris", 0.95),
        ("The answer is Paris.", "Paris", 0.6875),
        ("the answer is paris.", "Paris", 0.6375),
        ("x" * 95 + "Paris", "Paris", 0.6175),
        ("x" * 100_000 + "Paris", "Paris", 0.60),
        ("x" * 100_000 + "paris", "Paris", 0.55),
        ("Pariss", "Paris", 0.8917),
        ("Pari", "Paris", 0.56),
        ("Parix", "Paris", 0.56),
        ("Madrid", "Paris", 0.20),
        ("Prague", "Paris", 0.1333),
        ("London", "Paris", 0.0),
        ("", "Paris", 0.0),
        ("kitten", "sitting", 0.40),
    ],
)
def test_similarity_gives_graded_credit(response: str, reference: str, expected: float) -> None:
    assert value("similarity", response, reference) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("response", "reference", "expected"),
    [
        ("Paris", "Paris", 1.0),
        (" paris\n", "Paris", 1.0),
        ("PARIS", "  Paris ", 1.0),
        ("Caf\u00e9", "CAFE\u0301", 1.0),
        ("Stra\u00dfe", "STRASSE", 1.0),
        ("paris, I think", "Paris", 0.0),
        ("The answer is Paris.", "Paris", 0.0),
        ("Pariss", "Paris", 0.0),
        ("Pari", "Paris", 0.0),
        ("Cafe", "Caf\u00e9", 0.0),
        ("New  York", "New York", 0.0),
        ("", "Paris", 0.0),
    ],
)
def test_exact_is_one_or_zero(response: str, reference: str, expected: float) -> None:
    assert value("exact", response, reference) == expected


@pytest.mark.parametrize(
    ("response", "reference", "confidence"),
    [
        ("The answer is Paris.", "Paris", 0.9),
        ("the answer is paris.", "Paris", 0.85),
        ("Pari", "Paris", 0.64),
        ("kitten", "sitting", 0.8 * 4 / 7),
        ("Prague", "Paris", 0.3),
    ],
)
def test_similarity_says_how_telling_its_score_is(
    response: str, reference: str, confidence: float
) -> None:
    outcome = SCORERS["similarity"](response, reference, {})
    assert isinstance(outcome, Score)
    assert outcome.confidence == pytest.approx(confidence)


@pytest.mark.parametrize(
    ("response", "reference", "expected"),
    [
        ("42.004", "42", 1.0),
        ("101", "100", 1.0),
        ("99", "100", 1.0),
        ("42.42", "42", 1.0),
        ("101.01", "100", 0.799),
        ("102", "100", 0.7172),
        ("106.25", "100", 0.5),
        ("110", "100", 0.3675),
        ("124.9", "100", 0.002),
        ("125", "100", 0.0),
        ("0.014", "0.005", 0.0),
        ("0.2", "0", 0.1056),
        ("0.3", "0", 0.0),
        ("0.01", "0", 1.0),
        ("1,234", "1234", 1.0),
        ("1234", "1,234", 1.0),
        ("$1,234,567.50 in all", "1234567.5", 1.0),
        ("1,2,3", "3", 1.0),
        ("10-5", "5", 1.0),
        ("10-5", "-5", 0.0),
        ("(-5)", "-5", 1.0),
        ("x=-5", "-5", 1.0),
        ("−5", "-5", 1.0),
        ("-$5", "-5", 1.0),
        (".5", "0.5", 1.0),
        ("-.5", "-0.5", 1.0),
        ("is 42.", "42", 1.0),
        ("2024-05-03", "5", 1.0),
        ("2024-05-03", "-5", 0.0),
        ("year 2024, answer 6.02e23", "6.02e23", 1.0),
        ("6.02 × 10^23", "6.02e23", 1.0),
        (r"$6.02 \times 10^{-3}$", "0.00602", 1.0),
        ("there are 12", "12 items", 1.0),
        ("no idea", "42", 0.0),
        ("", "42", 0.0),
        ("NaN or Infinity or 1e99999", "42", 0.0),
    ],
)
def test_closeness_gives_credit_by_relative_error(
    response: str, reference: str, expected: float
) -> None:
    assert value("closeness", response, reference) == pytest.approx(expected, abs=5e-4)


def test_closeness_options() -> None:
    assert value("closeness", "first 5, last 7", "7", pick="first") == 0.0
    assert value("closeness", "first 5, last 7", "7", pick="last") == 1.0
    assert value("closeness", "0.014", "0.005", abs_tolerance=0.01) == 1.0
    assert value("closeness", "105", "100", tolerance=0.05) == 1.0
    assert value("closeness", "101.01", "100", curve="continuous") == pytest.approx(0.980, abs=5e-3)
    assert value("closeness", "0.01", "0", abs_tolerance=0.001) < 1.0


@pytest.mark.parametrize(
    ("response", "pattern", "expected"),
    [
        ("the answer is 42", r"\d+", 1.0),
        ("Paris", "/paris/i", 1.0),
        ("Paris", "paris", 0.0),
        ("Paris", "/paris/giu", 1.0),
        ("a\nb", "/^b$/m", 1.0),
        ("a\nb", "/a.b/s", 1.0),
        ("a\nb", "/a.b/", 0.0),
        ("see a/b/c", "/a/b/", 1.0),
        ("42\n", "^42$", 1.0),
        ("42\n", r"^(?!0)42$", 1.0),
        ("no comment", "^(?!.*comment)", 0.0),
        ("abab", r"^(ab)\1$", 1.0),
        ("x_foo", r"x_{i}(?=.)", 0.0),
        ("x_{i}!", r"x_{i}(?=.)", 1.0),
        ("", "a*", 1.0),
        ("", "a", 0.0),
    ],
)
def test_regex_searches(response: str, pattern: str, expected: float) -> None:
    assert value("regex", response, pattern) == expected


@pytest.mark.parametrize(
    ("response", "reference", "expected"),
    [("It is RED.", " red ", 1.0), ("not red", "red", 1.0), ("blue", "red", 0.0), ("", "red", 0.0)],
)
def test_boolean_looks_for_the_reference(response: str, reference: str, expected: float) -> None:
    assert value("boolean", response, reference) == expected


# For tool calls, an empty reference means that no tool may be called.
@pytest.mark.parametrize("method", sorted(SCORERS.keys() - {"tool_calls"}))
def test_without_a_reference_nothing_is_scored(method: str) -> None:
    assert isinstance(SCORERS[method]("anything", "  ", {}), Unscored)
