"""Rows of separated tables, and the sentences that replace rows which cannot be read."""

from __future__ import annotations

import io

import pytest

from assay.formats.separated import separated_rows, sniff_delimiter


def test_rows_carry_the_line_they_start_on() -> None:
    table = io.BytesIO(b'\xef\xbb\xbfid, text\na,"1\n\n2"\n\nb,caf\xc3\xa9\n')
    assert list(separated_rows(table, delimiter=",")) == [
        (2, {"id": "a", "text": "1\n\n2"}),
        (6, {"id": "b", "text": "café"}),
    ]
    assert not table.closed


@pytest.mark.parametrize(
    ("content", "strict", "line", "problem"),
    [
        (b"id,text\na,x,y\n", False, 2, "has 3 cells, but the header has 2 columns."),
        (b"id,text\na,caf\xe9\nb,x\n", False, 2, "is not UTF-8 text; save the file as UTF-8."),
        (b'id,text\na,"x"y\n', True, 2, "is not valid CSV"),
        (b"id,id\na,b\n", True, 1, "has two columns named 'id'."),
        (b"id,caf\xe9\na,b\n", True, 1, "is not UTF-8 text"),
    ],
)
def test_unreadable_rows_become_sentences(
    content: bytes, strict: bool, line: int, problem: str
) -> None:
    first, *_ = separated_rows(io.BytesIO(content), delimiter=",", strict=strict)
    assert first[0] == line
    assert problem in str(first[1])


def test_reading_goes_on_after_a_bad_row() -> None:
    rows = separated_rows(io.BytesIO(b"id,text\na,caf\xe9\nb,x\n"), delimiter=",")
    assert list(rows)[1] == (3, {"id": "b", "text": "x"})


def test_columns_may_be_named_and_lines_skipped() -> None:
    table = io.BytesIO(b"exported today\na  b\n")
    rows = separated_rows(table, delimiter="whitespace", columns=["x", "y"], skip=1)
    assert list(rows) == [(2, {"x": "a", "y": "b"})]


def test_quotes_are_text_when_cells_are_not_quoted() -> None:
    rows = separated_rows(io.BytesIO(b'id\ttext\na\t"x\n'), delimiter="\t", quoted=False)
    assert list(rows) == [(2, {"id": "a", "text": '"x'})]


def test_the_most_frequent_delimiter_of_the_first_line_wins() -> None:
    assert sniff_delimiter("a;b;c,d\n,,,,,") == ";"


def test_rows_after_plain_blocks_keep_their_line_and_text() -> None:
    plain = [f"t{n},{n}" for n in range(60_000)]
    lines = ["id,text", *plain, "", 'q,"a', 'b"', "r,caf\u00e9"]
    for end in ("\n", "\r\n", "\r"):
        rows = list(separated_rows(io.BytesIO(end.join(lines).encode()), delimiter=","))
        assert rows[-3] == (60_001, {"id": "t59999", "text": "59999"})
        assert rows[-2] == (60_003, {"id": "q", "text": f"a{end}b"})
        assert rows[-1] == (60_005, {"id": "r", "text": "café"})
        assert len(rows) == len(plain) + 2
