"""Responses as trees to read: nothing of them runs, blocks know their source lines, formulas and
code keep their text.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st
from tests.unit.test_markdown import tags_in, words_in
from tests.web.security.test_hostile_text import CORPUS

from assay.report.markdown import TAGS, reading_tree
from assay.report.syntax import is_code_language, marks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.report.markdown import Element, Node

ATTRIBUTES = {"href", "rel", "start", "data-at", "data-tex", "data-marks"}
CLOBBERING = (
    '<a id="boot" name="getElementById">x</a>',
    '<form name="body"><input name="children"></form>',
    '<img name="currentScript" src="http://evil.example/x.png">',
    '[x](# "id=item"){#item .panes onclick=alert(1)}',
    "<p style='position:fixed;inset:0'>cover</p>",
    "[x][y]\n\n[y]: javascript:alert(1)",
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
)


def elements(nodes: list[Node]) -> Iterator[Element]:
    for node in nodes:
        if isinstance(node, list):
            yield node
            yield from elements([child for child in node[2:] if not isinstance(child, dict)])


def attributes_of(element: Element) -> dict[str, str]:
    attributes = element[1]
    assert isinstance(attributes, dict)
    return attributes


@pytest.mark.parametrize("text", [*CORPUS, *CLOBBERING, "\n\n".join((*CORPUS, *CLOBBERING))])
def test_hostile_text_becomes_known_elements_and_attributes(text: str) -> None:
    tree = reading_tree(text)
    assert tags_in(tree) <= TAGS
    for element in elements(tree):
        attributes = attributes_of(element)
        assert set(attributes) <= ATTRIBUTES
        assert attributes.get("href", "https://").startswith(("http://", "https://"))
    if (
        "evil.example/pixel" not in text
        and "](" not in text
        and "[y]" not in text
        and "<!--" not in text
    ):
        assert words_in(tree).strip() == text.strip(), "shown, not swallowed"


@given(st.text(alphabet="<>&\"'`/=!-[]()*_#|:x$\\ \n"))
def test_any_text_becomes_known_elements(text: str) -> None:
    for element in elements(reading_tree(text)):
        assert element[0] in TAGS
        assert set(attributes_of(element)) <= ATTRIBUTES


def test_blocks_know_the_lines_of_their_source() -> None:
    tree = reading_tree(
        "# Title\n\nOne\ntwo\n\n- a\n- b\n\n| x |\n| - |\n| 1 |\n\n```py\nz = 1\n```\n"
    )
    places = {str(element[0]): attributes_of(element).get("data-at") for element in elements(tree)}
    assert (places["h1"], places["p"], places["tr"], places["code"]) == (
        "1-1",
        "3-4",
        "11-11",
        "13-15",
    )
    assert attributes_of(next(elements(reading_tree("x", first_line=7))))["data-at"] == "7-7"


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("so $x_1^2$ and \\(a_b\\)", ["x_1^2", "a_b"]),
        ("$$\n\\frac{a}{b}\n$$", ["\\frac{a}{b}"]),
        ("\\[ a * b * c \\]", ["a * b * c"]),
        ("It costs $5 today and $6 tomorrow, or $5/$6.", []),
        ("`$x$` in code", []),
    ],
)
def test_formulas_are_kept_as_they_were_written(text: str, formulas: list[str]) -> None:
    tree = reading_tree(text)
    assert [
        words_in([element]) for element in elements(tree) if "data-tex" in attributes_of(element)
    ] == formulas
    assert formulas or words_in(tree).replace("`", "").strip() == text.replace("`", "")


def test_line_breaks_stay_unless_an_editor_wrapped_the_text() -> None:
    letter = "Dear Ms Moor,\nthank you.\nAda"
    wrapped = (
        "This paragraph was wrapped by an editor at about sixty signs,\n"
        "so that its second line goes on where the first one ended up\nand its third one too."
    )
    assert "br" in tags_in(reading_tree(letter))
    assert "br" not in tags_in(reading_tree(wrapped))


@pytest.mark.parametrize(
    "text",
    ["[" * 12_000, "*a " * 4_000, "$a" * 6_000, "![[]()" * 2_000, ">" * 12_000, "`" * 12_000],
)
def test_hostile_repetition_takes_time_in_proportion(text: str) -> None:
    started = time.process_time()
    reading_tree(text[: len(text) // 4])
    quarter = time.process_time() - started
    started = time.process_time()
    reading_tree(text)
    assert time.process_time() - started < 40 * quarter + 1


def test_marks_cover_code_in_units_of_the_browser() -> None:
    assert marks_of("def f(): # x\n", "python") == "3w1_1f4_3c1_"
    assert marks_of("s = '🙂'\r\n", "Python") == "4_4s1_", "an emoji counts two, a line break one"
    assert marks_of("x", "no such language") == ""
    assert marks_of("x" * 100_001, "python") == ""


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", True),
        ("C++", True),
        ("sql", True),
        ("", False),
        ("markdown", False),
        ("text", False),
        ("german", False),
    ],
)
def test_languages_of_people_are_none_of_code(language: str, code: bool) -> None:
    assert is_code_language(language) is code
