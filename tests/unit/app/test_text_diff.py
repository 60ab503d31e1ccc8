"""Differences of two texts and of two JSON answers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from assay.app.text_diff import (
    MAX_FIELDS,
    MAX_LINES,
    MAX_WORDS,
    Part,
    document_of,
    field_rows,
    marked,
    too_long,
)


def test_diff_marks_words_and_lines_missing_in_the_other_text() -> None:
    assert marked("the quick brown fox", "the slow brown dog") == (
        Part("the "),
        Part("quick", True),
        Part(" brown "),
        Part("fox", True),
    )
    assert marked("a b\nc d\n", "a b\nc e\n", by_line=True) == (Part("a b\n"), Part("c d\n", True))
    assert marked("same", "same") == (Part("same"),)
    assert marked("one two", "nothing") == (Part("one two", True),)


@given(st.text(max_size=300), st.text(max_size=300), st.booleans())
@example("0:", ":0", False)
def test_diff_pieces_join_to_the_text_and_unmarked_parts_are_shared(
    a: str, b: str, by_line: bool
) -> None:
    ours, theirs = marked(a, b, by_line=by_line), marked(b, a, by_line=by_line)
    assert "".join(part.text for part in ours) == a
    kept = [
        "".join(part.text for part in side if not part.changed).split() for side in (ours, theirs)
    ]
    assert "".join(kept[0]) == "".join(kept[1])


def test_long_texts_are_compared_by_line_and_huge_ones_not_at_all() -> None:
    words = " ".join(f"w{n}" for n in range(MAX_WORDS))
    assert marked(f"{words}\nend", f"{words}\nEnd")[-1] == Part("end", True)
    lines = "\n".join(f"line {n}" for n in range(MAX_LINES + 5))
    assert marked(lines, "x") == (Part(lines),)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('I think:\n```json\n{"a": 1}\n```\n', {"a": 1}),
        ('It follows that\n{"a": [1, 2]}', {"a": [1, 2]}),
        ("def f():\n    return {'a': 1}\n", None),
        ("[1, 2]", None),
        ("no", None),
        ("{" * 200_000, None),
        ("{" * 50_000, None),
    ],
)
def test_a_document_is_read_where_there_is_one_and_code_is_none(text: str, found: Any) -> None:
    assert document_of(text) == found


def test_json_fields_keep_their_order_and_show_differences() -> None:
    rows = field_rows(
        [{"a": 1, "b": {"c": [True, "x"]}}, {"b": {"c": [True]}, "a": 1, "d": None}, None]
    )
    assert [(row.path, row.values, row.differs) for row in rows] == [
        ("a", ("1", "1", None), True),
        ("b.c[0]", ("true", "true", None), True),
        ("b.c[1]", ("x", None, None), True),
        ("d", (None, "null", None), True),
    ]
    same = field_rows([{"a": 1}, {"a": 1}])
    assert [row.differs for row in same] == [False]
    assert len(field_rows([{str(n): n for n in range(1000)}])) == MAX_FIELDS


def test_a_failed_answer_has_no_field_and_differs_from_nobody() -> None:
    documents: list[Any] = [{"why": "solid"}, {"why": "solid"}, None]
    assert [row.differs for row in field_rows(documents, [0, 1])] == [False]
    assert [row.differs for row in field_rows(documents)] == [True], (
        "who answered without the field does differ"
    )


def test_diff_of_a_huge_text_says_it_was_not_compared() -> None:
    many = "".join(f"line {n}\n" for n in range(MAX_LINES + 1))
    assert too_long(many, many + "more")
    assert marked(many, many + "more") == (Part(many),)
    assert not too_long("a b c\n" * MAX_WORDS, "a")
    assert not too_long("a", "b")


def test_a_long_answer_is_read_as_json_whole() -> None:
    assert document_of('{"why": "' + "x" * 300_000 + '", "verdict": "yes"}') is not None
