"""The scorer that is advised for the references of a table."""

from __future__ import annotations

import pytest

from assay.scoring.reference_kinds import advised_scorer

CAPITALS = ["Lima", "Paris", "N'Djamena", "Washington, D.C."]
LONG = "The customer may return the lamp within 30 days, because it was delivered only 12 days ago."


@pytest.mark.parametrize(
    ("references", "method"),
    [
        (CAPITALS, "contains"),
        (["Paris"], "contains"),
        (["51", "$1,234.50", "−3", "12 km", "40%"], "numeric"),
        (["She earns 9 * 2 = 18.\n#### 18", "#### 5"], "numeric"),
        (["51", "Paris"], "contains"),
        (["Lima|City of Lima", "Paris"], "contains"),
        (['["Lima", "City of Lima"]', '["Paris"]'], "json"),
        (["1969-07-20", "1961-04-12"], "contains"),
        (["4012888888881881123", "4012888888881881124"], "contains"),
        (["A", "C", "B", "D"], "choice"),
        (["(A)", "B."], "choice"),
        (["yes", "No", "Yes."], "choice"),
        (["true", "true"], "choice"),
        (["positive", "negative"] * 6, "choice"),
        (['{"a": 1}', "[1, 2]"], "json"),
        ([r"\frac{1}{2}", "3"], "math"),
        ([LONG, LONG + " Yes."], "judge"),
        ([*CAPITALS, LONG], "judge"),
        ([*(f"City {letter}" for letter in "abcdefghijkl"), LONG], "contains"),
    ],
)
def test_a_scorer_fits_the_references(references: list[str], method: str) -> None:
    advice = advised_scorer(references)
    assert advice.method == method
    assert method in advice.reason


def test_labels_are_listed_as_they_are_written() -> None:
    assert advised_scorer(["Very good", "bad", "very good", "bad", "Bad", "Very good"]).options == {
        "options": ["Very good", "bad"]
    }


def test_no_references_give_no_advice() -> None:
    with pytest.raises(ValueError, match="no references"):
        advised_scorer(["", " "])


def test_references_that_list_alternatives_need_only_one_of_them() -> None:
    assert advised_scorer(["Lima|City of Lima", "Paris"]).options == {"any_of": "|"}
    lists = ['["Lima", "City of Lima"]', '["Paris"]']
    assert advised_scorer(lists, lists_are_alternatives=True).options == {"any_of": "json"}
    assert advised_scorer(["x|y", *CAPITALS, *CAPITALS, *CAPITALS]).options == {}


def test_dates_come_with_a_warning() -> None:
    for dates in (["1969-07-20", "1961-04-12"], ["20 July 1969", "12 Apr 1961"]):
        assert "A date in another form" in advised_scorer(dates).reason
    assert "date" not in advised_scorer(CAPITALS).reason
