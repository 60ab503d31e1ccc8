"""Terminal output: everything is visible, and no control character gets through."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from assay.cli.output import print_json, say_table, visible

ESCAPE = "\x1b]0;owned\x07\x1b[2J"


def test_an_escape_sequence_is_shown_and_not_sent() -> None:
    assert visible(f"fine{ESCAPE}") == "fine\\x1b]0;owned\\x07\\x1b[2J"


def test_line_breaks_tabs_and_letters_of_every_script_stay() -> None:
    text = "line\n\tindented · ü 漢 👩‍💻 −0.5"
    assert visible(text) == text


def test_a_direction_mark_and_a_carriage_return_are_shown() -> None:
    assert visible("a\u202eb\rc") == "a\\u202eb\\x0dc"


def test_windows_line_ends_are_line_ends() -> None:
    assert visible("a\r\nb") == "a\nb"


@given(st.text(alphabet=st.characters()))
def test_visible_text_is_unchanged_and_encodable(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")  # raises UnicodeEncodeError for what cannot be written
    assert visible(shown) == shown
    assert not any(ord(char) < 32 and char not in "\n\t" for char in shown)


@given(st.dictionaries(st.text(alphabet=st.characters()), st.text(alphabet=st.characters())))
def test_printed_document_is_unchanged_and_encodable(document: dict[str, str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        written: list[str] = []
        patch.setattr("sys.stdout.write", written.append)
        print_json(document)
    (text,) = written
    text.encode("utf-8")  # raises UnicodeEncodeError for what cannot be written
    assert "\x9b" not in text
    assert json.loads(text) == document


def test_a_row_of_a_table_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(("what", "why"), [("a\nb", f"c{ESCAPE}")])
    assert capsys.readouterr().out.splitlines() == [
        "what  why",
        "a b   c\\x1b]0;owned\\x07\\x1b[2J",
    ]
