"""Scoring of tool calls: which calls fit, and which difference is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.domain.conversation import TOOL_CALL, USER, call_text, calls_of, replies_of, transcript
from assay.domain.digest import JsonValue
from assay.domain.tools import CannedAnswer, CannedTool, Tool, ToolCall, canned_result, same_json
from assay.scoring.scorer_result import Score, Unscored
from assay.scoring.scorers import option_problems, reference_problems
from assay.scoring.tool_calls import tool_calls

OSLO, BERN = ("weather", {"city": "Oslo"}), ("weather", {"city": "Bern", "days": 2})
MAIL: tuple[str, object] = ("mail", {"to": "ann"})
BROKEN = ("weather", '{"city')


def call(name: str, arguments: object) -> ToolCall:
    return ToolCall.written(
        "", name, arguments if isinstance(arguments, str) else json.dumps(arguments)
    )


def talk(*calls: tuple[str, object]) -> str:
    return transcript(
        [
            (USER, "Go."),
            *((TOOL_CALL, call_text(call(*each))) for each in calls),
            ("assistant", "Done."),
        ]
    )


def scored(response: str, reference: str, options: dict[str, JsonValue]) -> Score:
    score = tool_calls(response, reference, options)
    assert isinstance(score, Score)
    return score


def expected(*calls: tuple[str, object] | str) -> str:
    return json.dumps(
        [
            each if isinstance(each, str) else {"name": each[0], "arguments": each[1]}
            for each in calls
        ]
    )


@pytest.mark.parametrize(
    ("made", "wanted", "options"),
    [
        ((OSLO, BERN), expected(BERN, OSLO), {}),
        ((OSLO, MAIL), "mail, weather", {}),
        ((), "", {}),
        ((OSLO, MAIL), expected(OSLO), {"extra": True}),
        ((OSLO, MAIL, BERN), expected(OSLO, BERN), {"extra": True, "ordered": True}),
        (
            (OSLO, BERN),
            expected(OSLO, ("weather", {"city": "Bern"})),
            {"arguments": "subset", "ordered": True},
        ),
        # The first expected call fits both calls, and the second only the first of them.
        ((OSLO, BERN), expected("weather", OSLO), {}),
        ((("weather", {"days": 2.0}),), expected(("weather", {"days": 2})), {}),
        ((OSLO,), expected(OSLO), {"forbidden": ["mail"]}),
    ],
)
def test_calls_that_fit_score_1(made: Any, wanted: str, options: Any) -> None:
    assert scored(talk(*made), wanted, options).value == 1.0


@pytest.mark.parametrize(
    ("made", "wanted", "options", "note"),
    [
        (
            (OSLO,),
            expected(BERN),
            {},
            'Call 1, weather {"city": "Oslo"}, is not the expected weather {"city": "Bern", "days": 2}.',
        ),
        ((OSLO,), "mail", {}, "mail was not called."),
        ((OSLO, MAIL), "weather", {}, 'Call 2, mail {"to": "ann"}, was not expected.'),
        ((OSLO, OSLO), expected(OSLO), {}, 'Call 2, weather {"city": "Oslo"}, was not expected.'),
        (
            (OSLO, MAIL),
            "mail, weather",
            {"ordered": True},
            'Call 1, weather {"city": "Oslo"}, is not the expected mail.',
        ),
        ((OSLO,), "weather, mail", {"ordered": True}, "mail was not called."),
        (
            (MAIL, OSLO),
            "weather, mail",
            {"ordered": True, "extra": True},
            "mail was not called in the expected order.",
        ),
        ((BERN,), expected(("weather", {"city": "Bern"})), {}, "is not the expected"),
        (
            (BROKEN,),
            "weather",
            {},
            'Call 1, weather {"city (malformed arguments), is not the expected weather.',
        ),
        (
            (OSLO, MAIL),
            "weather",
            {"extra": True, "forbidden": ["mail"]},
            'Call 2, mail {"to": "ann"}, is forbidden.',
        ),
        (
            (("weather", {"now": True}),),
            expected(("weather", {"now": 1})),
            {},
            "is not the expected",
        ),
        ((MAIL,), "", {}, "was not expected."),
    ],
)
def test_the_first_difference_is_named(made: Any, wanted: str, options: Any, note: str) -> None:
    score = scored(talk(*made), wanted, options)
    assert score.value == 0.0
    assert note in score.note


def test_a_response_without_a_transcript_made_no_calls() -> None:
    assert scored('weather {"city": "Oslo"}', "weather", {}).note == "weather was not called."


def test_a_reference_that_is_no_list_of_calls_scores_nothing() -> None:
    assert isinstance(tool_calls(talk(OSLO), '[{"tool": "weather"}]', {}), Unscored)


def test_wrong_options_and_references_are_named() -> None:
    options: dict[str, JsonValue] = {
        "arguments": "some",
        "ordered": "yes",
        "forbidden": "mail",
        "order": True,
    }
    problems = " ".join(option_problems("tool_calls", options))
    for name in ("'some'", "'yes'", "'mail'", "'order'"):
        assert name in problems
    assert "is missing" in reference_problems("tool_calls", None)[0]
    assert reference_problems("tool_calls", "") == ()
    assert "call 2" in reference_problems("tool_calls", '["a", {"name": "b", "args": {}}]')[0]
    assert "is not a JSON list" in reference_problems("tool_calls", '["a"')[0]


@given(
    st.lists(
        st.tuples(st.text(), st.dictionaries(st.text(), st.integers() | st.text())), max_size=4
    ),
    st.text(),
)
def test_calls_survive_the_transcript(made: list[tuple[str, dict[str, Any]]], reply: str) -> None:
    items = [(TOOL_CALL, call_text(call(*each))) for each in made]
    text = transcript([(USER, "Go."), ("assistant", "Let me see."), *items, ("assistant", reply)])
    assert [dict(each.arguments or {}) for each in calls_of(text)] == [
        arguments for _, arguments in made
    ]
    assert replies_of(text) == (reply,)


def test_a_turn_that_ends_with_calls_has_an_empty_reply() -> None:
    turns = [
        (USER, "1"),
        ("assistant", "Hm."),
        (TOOL_CALL, "a {}"),
        (USER, "2"),
        ("assistant", "two"),
    ]
    assert replies_of(transcript(turns)) == ("", "two")


def test_the_first_answer_that_fits_a_call_is_its_result() -> None:
    answers = (
        CannedAnswer(text="12", arguments={"city": "Oslo"}),
        CannedAnswer(text="no such city", arguments={"city": "Atlantis"}, is_error=True),
    )
    tools = (CannedTool(tool=Tool(name="weather", description="", parameters={}), answers=answers),)
    results = [
        canned_result(call(name, arguments), tools)
        for name, arguments in [
            ("weather", {"city": "Oslo", "days": 1}),
            ("weather", {"city": "Atlantis"}),
            *[BERN],
        ]
    ]
    assert [(result.text, result.is_error) for result in results] == [
        ("12", False),
        ("no such city", True),
        ("There is no result for these arguments.", True),
    ]
    assert (
        canned_result(call("wether", {}), tools).text
        == "There is no tool 'wether'. The tools are: weather."
    )
    assert canned_result(call(*BROKEN), tools).text == "The arguments are not a JSON object."


def test_json_values_are_compared_as_json() -> None:
    assert same_json({"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]})
    for a, b in [
        (1, True),
        (0, False),
        ("1", 1),
        ([1], [1, 2]),
        ({"a": 1}, {"a": 1, "b": 2}),
        (None, False),
    ]:
        assert not same_json(a, b)
