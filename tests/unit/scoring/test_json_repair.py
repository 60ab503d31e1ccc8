"""Single repairs of the tolerant reader, and what it refuses to invent."""

from __future__ import annotations

import pytest

from assay.scoring.json_repair import CutText, read_loosely


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}\n```', {"a": 1}),
        ('Sure!\n~~~ json5\n{"a": 1,}\n~~~\nBye.', {"a": 1}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ('{"a": 1\n"b": [1 2 3]}', {"a": 1, "b": ["1 2 3"]}),
        ('{"a": [{"b": 1} {"b": 2}]}', {"a": [{"b": 1}, {"b": 2}]}),
        ('{"a": "x", "b": ["y",],}', {"a": "x", "b": ["y"]}),
        ('{"a": 7, // not 8\n "b": 1 /* y */, # z\n "c": 2}', {"a": 7, "b": 1, "c": 2}),
        ("{'a': 'it isn\\'t', 'b': \"x\"}", {"a": "it isn't", "b": "x"}),
        ("{'a': 'it isn't', 'b': 'x'}", {"a": "it isn't", "b": "x"}),
        ("{a: 1, b_c: 'x', d-e: 2}", {"a": 1, "b_c": "x", "d-e": 2}),
        (
            '{"a": True, "b": False, "c": None, "d": NaN, "e": -Infinity}',
            {"a": True, "b": False, "c": None, "d": None, "e": None},
        ),
        ('{"a": NaN}', {"a": None}),
        ('{"a": 1e999}', {"a": None}),
        ("{“a”: “fine, isn’t it”}", {"a": "fine, isn’t it"}),
        ('{"a": "one\n\ttwo"}', {"a": "one\n\ttwo"}),
        ('{"a": "it says "hello" there", "b": 1}', {"a": 'it says "hello" there', "b": 1}),
        ('{"a": "it says "hi", then goes", "b": 1}', {"a": 'it says "hi", then goes', "b": 1}),
        ('{"a": ["d = {"k": 1}", "e"]}', {"a": ['d = {"k": 1}', "e"]}),
        (r'{"a": "\frac{1}{2} and \(x\) and \times"}', {"a": r"\frac{1}{2} and \(x\) and \times"}),
        (r'{"a": "C:\dir\new", "b": 1}', {"a": "C:\\dir\new", "b": 1}),
        (r'{"a": "tab\there\n"}', {"a": "tab\there\n"}),
        ('{"a": "x" + "y"}', {"a": "xy"}),
        ('{"a": """say "x" now"""}', {"a": 'say "x" now'}),
        ('{{"a": 1}}', {"a": 1}),
        ('{\\"a\\": \\"x\\"}', {"a": "x"}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": .5, "b": +3, "c": 8., "d": −2}', {"a": 0.5, "b": 3, "c": 8.0, "d": -2}),
        ('{"a": 7/10, "b": 85%, "c": 7-8}', {"a": "7/10", "b": "85%", "c": "7-8"}),
        ('{"a": 1, ... }', {"a": 1}),
        ('{"a" = 1; "b" => 2}', {"a": 1, "b": 2}),
        ('{"a": , "b": 1}', {"b": 1}),
        (
            '{"report": "```py\nx = {\'k\': 1}\n```", "b": 1,}',
            {"report": "```py\nx = {'k': 1}\n```", "b": 1},
        ),
        ("{\n  a: 8\n  why: fine enough\n}", {"a": 8, "why": "fine enough"}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
        ('{"a": "\\ud83d \\u0000"}', {"a": "\ufffd \ufffd"}),
    ],
)
def test_a_messy_document_is_read(text: str, value: object) -> None:
    documents = read_loosely(text).documents
    assert [entry.value for entry in documents] == [value]
    assert not documents[0].truncated


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": {"score": 8, "reason": "it is go', {"a": {"score": 8, "reason": "it is go"}}),
        ('{"a": {"score": 8}, "b": {"score": 1', {"a": {"score": 8}, "b": {}}),
        ('{"a": {"score": 8}, "b": {"score": 1.', {"a": {"score": 8}, "b": {}}),
        ('{"a": {"score": 8}, "b": {"sco', {"a": {"score": 8}, "b": {}}),
        ('{"a": {"score": 8}, "b": {"score"', {"a": {"score": 8}, "b": {}}),
        ('{"a": {"score": 8}, "b": {"score":', {"a": {"score": 8}, "b": {}}),
        ('{"a": {"score": 8}, "b": tru', {"a": {"score": 8}}),
        ('{"a": ["x", "y', {"a": ["x", "y"]}),
        ('{"a": "x\\', {"a": "x"}),
        ('{"a": "x\\u00', {"a": "x"}),
        ('```json\n{"a": {"b": 1}\n```\nThat is all.', {"a": {"b": 1}}),
        ('{"a": 1, ', {"a": 1}),
    ],
)
def test_json_repair_keeps_the_complete_part_of_a_cut_document(text: str, value: object) -> None:
    (document,) = read_loosely(text).documents
    assert document.value == value
    assert document.truncated


def test_a_string_that_breaks_off_says_so() -> None:
    (document,) = read_loosely('{"a": "8').documents
    assert isinstance(document.value, dict)
    assert isinstance(document.value["a"], CutText)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "no JSON at all",
        "I like {really} this",
        "if (x) { return y; }",
        "[1] and [link](url)",
        "{",
        "[",
        '"just text"',
        "{}{",
    ],
)
def test_prose_holds_no_values(text: str) -> None:
    assert all(entry.value in ({}, []) for entry in read_loosely(text).documents)


def test_several_documents_come_in_the_order_of_the_text() -> None:
    loose = read_loosely('First {"a": 1}, then ```json\n{"a": 2,}\n``` and {"a": 3}.')
    assert [entry.value for entry in loose.documents] == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert [text for text in ("First", "then", "and") if text in loose.prose] == [
        "First",
        "then",
        "and",
    ]


@pytest.mark.parametrize(
    "text",
    [
        '<think>maybe {"a": 1}</think>{"a": 2}',
        'maybe {"a": 1}</think>\n{"a": 2}',
        '<Thinking>x {</Thinking>{"a": 2}',
    ],
)
def test_thoughts_are_passed_over(text: str) -> None:
    assert [entry.value for entry in read_loosely(text).documents] == [{"a": 2}]


def test_a_reply_that_never_stops_thinking_holds_nothing() -> None:
    loose = read_loosely('<think>I would say {"a": 1}')
    assert loose.documents == ()
    assert loose.thoughts_only


def test_a_tag_inside_a_string_is_no_thought() -> None:
    (document,) = read_loosely('{"a": "prints </think> at the end", "b": 2}').documents
    assert document.value == {"a": "prints </think> at the end", "b": 2}


def test_json_repair_names_its_repairs() -> None:
    (document,) = read_loosely("{a: 'x', /* c */ }").documents
    assert document.repairs == ("bare key", "comment", "quotes", "trailing comma")
