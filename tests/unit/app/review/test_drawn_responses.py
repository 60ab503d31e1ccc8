"""Responses are read as what they are: code, text, JSON or a conversation; each is rendered
once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from assay.app.review import drawn_responses
from assay.app.review.drawn_responses import drawn, form_of
from assay.app.review.item import Item, Pane
from assay.domain.conversation import transcript
from assay.web.responses import json_bytes

if TYPE_CHECKING:
    from assay.app.review.item import ResponseForm

LETTER = "Dear Ms Moor,\n\nwe have **refunded** the shipping.\n\nBest wishes"
CODE = "import os\n\ndef main():\n    path = os.getcwd()\n    return path\n"
SPOKEN = transcript(
    [
        ("user", "Hello?"),
        ("assistant", "## Turn 9 · user\n\nHello!\nHow are you?"),
        ("user", "Fine."),
    ]
)


@pytest.mark.parametrize(
    ("text", "language", "form"),
    [
        (LETTER, "", "prose"),
        (LETTER, "german", "prose"),
        (LETTER, "markdown", "prose"),
        (LETTER, "python", "code"),
        (CODE, "", "code"),
        ("Use this:\n\nIt prints the path, then it ends.\n\n```\nprint(1);\n```\n", "", "prose"),
        ('{"a": [1, 2]}', "", "json"),
        ('{"a": [1, 2]}', "JSON", "json"),
        ('{"a": [1, 2]', "", "prose"),
        ('{"a": [1, 2]}', "python", "code"),
        ("[" * 20_000, "", "prose"),
        (SPOKEN, "", "turns"),
        ("", "", "prose"),
    ],
)
def test_responses_are_read_as_what_they_are(text: str, language: str, form: ResponseForm) -> None:
    assert form_of(text, language, turns=form == "turns") == form


def test_a_reply_cannot_pretend_to_be_a_conversation() -> None:
    assert form_of(SPOKEN, "", turns=False) == "prose"


def shown(text: str, form: ResponseForm, language: str = "") -> Any:
    pane = Pane(
        label="Candidate A",
        name=None,
        text=text,
        cut=False,
        chars=len(text),
        lines=1,
        truncated=False,
        score=None,
        judged=None,
        form=form,
    )
    item = Item.__new__(Item)
    object.__setattr__(item, "panes", (pane,))
    object.__setattr__(item, "language", language)
    return json.loads(json_bytes(drawn(item)))[0]


def test_code_gets_colours_and_text_a_tree() -> None:
    assert shown("x = 1\n", "code", "python") == {"tree": [], "marks": "4_1n1_"}
    assert shown("*x*", "prose") == {
        "tree": [["p", {"data-at": "1-1"}, ["em", {}, "x"]]],
        "marks": "",
    }


def test_turns_are_rendered_each_by_itself_at_its_lines() -> None:
    first, second, third = shown(SPOKEN, "turns")["tree"]
    assert [turn[1]["role"] for turn in (first, second, third)] == ["user", "assistant", "user"]
    lines = SPOKEN.split("\n")
    assert lines[int(third[2][1]["data-at"].split("-")[0]) - 1] == "Fine."
    assert "Turn 9 · user" in json.dumps(second, ensure_ascii=False), (
        "a heading that a model wrote is part of its turn"
    )


def test_calls_and_results_of_tools_are_shown_as_written() -> None:
    talk = [
        ("user", "Hi"),
        ("tool call", 'look {"at": "_a_"}'),
        ("tool result", "*b*\n*c*"),
        ("tool error", "no"),
    ]
    text = transcript(talk)
    _, call, result, error = shown(text, "turns")["tree"]
    assert [turn[1]["role"] for turn in (call, result, error)] == [
        "tool_call",
        "tool_result",
        "tool_error",
    ]
    assert call[2] == ["pre", {"data-at": "7-7"}, ["code", {}, 'look {"at": "_a_"}']]
    assert result[2] == ["pre", {"data-at": "11-12"}, ["code", {}, "*b*\n*c*"]]
    assert text.split("\n")[int(error[2][1]["data-at"].split("-")[0]) - 1] == "no"


@pytest.mark.slow
def test_text_that_would_grow_too_much_stays_source() -> None:
    table = "|a" * 500 + "\n" + "|-" * 500 + "\n" + "x\n" * 5_000
    assert shown(table, "prose")["tree"] == []
    assert shown("x" * 100_001, "prose")["tree"] == []


def test_a_response_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[str] = []

    def render(text: str) -> list[str]:
        rendered.append(text)
        return [text]

    monkeypatch.setattr(drawn_responses, "reading_tree", render)
    for _ in range(3):
        shown("rendered once only", "prose")
    assert rendered == ["rendered once only"]
