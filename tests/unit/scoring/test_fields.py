"""Fields that users describe are read from answers, or reported missing."""

from __future__ import annotations

import pytest

from assay.domain.extraction import Field
from assay.scoring.fields import read_field, read_fields, reading_as_json, reading_of

WORDS = ("Strong Yes", "Yes", "Maybe", "No", "Strong No")
BY_PATH = Field(name="recommendation", path="$.recommendation", labels=WORDS)


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ('{"recommendation": "Strong Yes", "reasoning": "No doubt."}', "Strong Yes"),
        ('Here you are:\n```json\n{"recommendation": "strong no"}\n```', "Strong No"),
        ('{"recommendation": "Perhaps"}', None),
        ('{"reasoning": "Yes"}', None),
        ("Yes", None),
    ],
)
def test_a_label_at_a_path(answer: str, read: str | None) -> None:
    assert read_field(answer, BY_PATH) == read


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("**Strong Yes**", "Strong Yes"),
        ("I say strong yes to him.", "Strong Yes"),
        ("I know him; maybe.", "Maybe"),
        ("Yes and no.", None),
        ("Nobody can say.", None),
    ],
)
def test_a_label_spoken_of_counts_when_it_is_the_only_one(answer: str, read: str | None) -> None:
    assert read_field(answer, Field(name="recommendation", labels=WORDS)) == read


def test_a_pattern_gives_its_group_and_hangs_on_nothing() -> None:
    title = Field(name="title", pattern=r"\*\*Candidate:\*\* (.+)")
    assert read_field("**Candidate:** Min Thet K\n**Location:** NY", title) == "Min Thet K"
    assert read_field("nobody", title) is None
    assert read_field("a" * 100_000 + "!", Field(name="x", pattern=r"(a|a)*(b|b)")) is None


def test_all_fields_are_there_whatever_could_be_read() -> None:
    result = read_fields(
        '{"recommendation": "No", "rating": 3}', (BY_PATH, Field(name="rating", path="$.rating"))
    )
    assert result == {"recommendation": "No", "rating": "3"}


def test_yes_and_no_of_yaml_are_words() -> None:
    reading = reading_of({"fields": {"ok": {"labels": [True, False]}}})
    assert reading.fields[0].labels == ("Yes", "No")
    assert reading_of(reading_as_json(reading)) == reading
    assert read_field('{"ok": true}', Field(name="ok", path="$.ok", labels=("Yes", "No"))) == "Yes"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "mapping"),
        ({"field": {}}, "Did you mean 'fields'"),
        ({"fields": {"a": {"pth": "$.a"}}}, "Did you mean 'path'"),
        ({"fields": {"a": {}}}, "is empty"),
        ({"fields": {"a": {"path": "$..a"}}}, "`path`"),
        ({"fields": {"a": {"regex": "("}}}, "regular expression"),
        ({"fields": {"a": {"regex": "(?=a)"}}}, "regular expression"),
        ({"fields": {"a": {"labels": ["Yes", "yes"]}}}, "twice"),
    ],
)
def test_a_wrong_description_is_said(value: object, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        reading_of(value)  # type: ignore[arg-type]  # whatever YAML holds
    assert said in str(caught.value)
