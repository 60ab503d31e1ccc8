"""Scorers for whole sentences: a chatty right answer counts, and a wrong one that mentions the
reference does not.
"""

from __future__ import annotations

import pytest

from assay.scoring.numeric import result_in
from assay.scoring.scorer_result import Score
from assay.scoring.scorers import SCORERS, option_problems


def value(method: str, response: str, reference: str, **options: object) -> float:
    outcome = SCORERS[method](response, reference, options)  # type: ignore[arg-type] # JSON values
    assert isinstance(outcome, Score), outcome
    return outcome.value


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("The capital of France is Paris.", "Paris"),
        ("It is **N’Djamena**", "N'Djamena"),
        ("So, without a doubt: SÃO PAULO!", "São Paulo"),
        ("Not sure, but I would say Paris", "Paris"),
        ("not London, Paris", "Paris"),
        ("It is 5.", "5"),
        ("C++ is the language", "C++"),
        ("in New\n  York", "New York"),
        ("Paris", "Paris."),
    ],
)
def test_contains_accepts_a_sentence_with_the_reference(response: str, reference: str) -> None:
    assert value("contains", response, reference) == 1.0


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("It is Lyon.", "Paris"),
        ("It's not Paris, it's Lyon", "Paris"),
        ("It isn’t Paris.", "Paris"),
        ("Paris is wrong; it is Lyon", "Paris"),
        ("Lyon instead of Paris", "Paris"),
        ("Parisian", "Paris"),
        ("I counted 15", "5"),
        ("5.2", "5"),
        ("1,500", "500"),
        ("", "Paris"),
    ],
)
def test_contains_rejects_denials_and_parts_of_words(response: str, reference: str) -> None:
    assert value("contains", response, reference) == 0.0


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("The answer is 51 (17 × 3).", "51"),
        ("17 × 3 = 51", "51"),
        ("51. I am 95% sure", "51"),
        ("51, because 17 × 3 is 51 and 2 × 25 is 50", "51"),
        ("**51** since 17*3", "51"),
        (r"\boxed{17 \cdot 3 = 51}", "51"),
        ("There are 3 apples and 4 pears, so 7 in total.", "7"),
        ("1. Multiply 17 by 3.\n2. That gives 51.", "51"),
        ("Fifty-one.", "51"),
        ("$1,234", "1234"),
        ("3.14159", "3.14"),
        ("9 eggs.\n#### 18", "She sells 16 - 7 = 9 eggs for 2 each.\n#### 18"),
    ],
)
def test_numeric_reads_the_result_of_an_answer(response: str, reference: str) -> None:
    assert value("numeric", response, reference) == 1.0


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("17 times 3 is 52", "17"),
        ("17 times 3 is 52", "3"),
        ("1970", "1969"),
        ("101", "100"),
        ("3.1", "3.14"),
        ("3.2", "3"),
        ("I do not know", "42"),
    ],
)
def test_numeric_gives_nothing_for_another_result(response: str, reference: str) -> None:
    assert value("numeric", response, reference) == 0.0


def test_numeric_accepts_results_within_its_tolerance_only() -> None:
    assert value("numeric", "101", "100", tolerance=0.01) == 1.0
    assert value("numeric", "102", "100", tolerance=0.01) == 0.0
    assert value("numeric", "0.014", "0.005", abs_tolerance=0.01) == 1.0
    assert value("numeric", "first 5, last 7, so 8", "5", pick="any") == 1.0
    assert value("numeric", "first 5, last 7", "5", pick="first") == 1.0
    assert value("numeric", "first 5, last 7", "5", pick="last") == 0.0


def test_no_number_is_none() -> None:
    assert result_in("none at all") is None


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("B", "B"),
        ("b", "B"),
        ("(B)", "B"),
        ("B) Paris", "B"),
        ("The answer is (B).", "B) Paris"),
        ("**Answer: A**", "A"),
        ("I think it's A", "A"),
        ("A good reason speaks for it, so C is right", "C"),
        ("A is wrong because of x. B is wrong too. Therefore C.", "C"),
        ("A) x is incorrect. B) is right", "B"),
        ("The correct option is (D) because A and B fail.", "D"),
        ("Option B is tempting, however the right one is D", "D"),
        ("It is not B but C", "C"),
        ("Answer: B. Not A.", "B"),
        ("Let me think. Option A: 5. Option B: 7.\nSo B.", "B"),
        ("<answer>D</answer>", "D"),
        ("Yes, definitely.", "yes"),
        ("No, it is not. A yes would be wrong.", "no"),
        ("The statement is true, not false", "true"),
    ],
)
def test_choice_finds_the_option_that_an_answer_chooses(response: str, reference: str) -> None:
    assert value("choice", response, reference) == 1.0


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("A, not B", "B"),
        ("B and C", "C"),
        ("A good answer", "A"),
        ("I know nothing about it", "I"),
        ("The capital is Paris", "B"),
        ("Yes and no", "yes"),
        ("I know nothing", "no"),
        ("It is false.", "true"),
        ("", "A"),
    ],
)
def test_choice_gives_nothing_for_another_or_no_option(response: str, reference: str) -> None:
    assert value("choice", response, reference) == 0.0


def test_choice_between_listed_labels() -> None:
    labels = ["positive", "negative", "neutral"]
    assert (
        value("choice", "The sentiment is not positive, it's negative", "negative", options=labels)
        == 1.0
    )
    assert value("choice", "Neutral, leaning positive", "neutral", options=labels) == 1.0
    assert value("choice", "Neutral, leaning positive", "positive", options=labels) == 0.0
    assert not isinstance(SCORERS["choice"]("x", "happy", {}), Score)


def test_json_is_compared_by_value_and_the_first_difference_is_named() -> None:
    reference = '{"name": "Ada", "items": [{"price": 2}]}'
    assert (
        value(
            "json",
            'Here:\n```json\n{"items": [{"price": 2.0}], "name": "Ada"}\n```\nDone.',
            reference,
        )
        == 1.0
    )
    wrong = SCORERS["json"]('{"name": "Ada", "items": [{"price": true}]}', reference, {})
    assert wrong == Score(0.0, "$.items[0].price differs", 1.0)
    assert SCORERS["json"]('{"name": "Ada"}', reference, {}) == Score(0.0, "$ lacks 'items'", 1.0)
    assert value("json", "no idea", reference) == 0.0


@pytest.mark.parametrize(
    ("response", "reference", "any_of", "score"),
    [
        ("It is Lima.", "City of Lima|Lima", "|", 1.0),
        ("It is Cusco.", "City of Lima|Lima", "|", 0.0),
        ("It is not Lima.", "City of Lima|Lima", "|", 0.0),
        ("It is Lima.", '["City of Lima", "Lima"]', "json", 1.0),
        ("It is Lima.", "Lima", "json", 1.0),
        ("It is Lima.", "City of Lima; Lima;", ";", 1.0),
    ],
)
def test_one_of_several_references_suffices(
    response: str, reference: str, any_of: str, score: float
) -> None:
    assert value("contains", response, reference, any_of=any_of) == score


def test_alternatives_need_a_text_between_them() -> None:
    assert option_problems("contains", {"any_of": "|"}) == ()
    for wrong in ("", 5, None):
        assert option_problems("contains", {"any_of": wrong})[0].startswith(
            "`any_of` must be the text between alternatives"
        )
