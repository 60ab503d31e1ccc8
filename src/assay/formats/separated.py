"""Read the rows of delimited text files such as CSV and TSV."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Final

DELIMITERS: Final = ("\t", ",", ";", "|")
MAX_ROW_CHARACTERS: Final = 8 << 20
"""Maximum characters of a row over all of its lines; a row with the shortest possible cells then
takes 200 MB of memory.
"""

_LOOKED_AT: Final = 2_000
"""Bytes at the beginning of a file that show its encoding."""

_NOT_UTF8: Final = "is not UTF-8 text; save the file as UTF-8."


def sniff_delimiter(text: str) -> str:
    """Return the delimiter that occurs most often on the first line."""
    return max(DELIMITERS, key=text.split("\n", 1)[0].count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The way in which a separated table is written: its delimiter, its encoding, and the lines
    before its header.
    """

    delimiter: str
    encoding: str = "utf-8-sig"
    skip: int = 0


def layout_of(head: bytes, *, usual: str) -> Layout:
    """Return a table's layout, given the beginning of its file; `usual` is the delimiter if the
    header shows no other.

    A line such as `sep=;`, which spreadsheets write, names the delimiter. Text in UTF-16 is
    recognised by its byte order mark, or by the zero bytes of its Latin letters.
    """
    encoding = encoding_of(head)
    text = head.decode(encoding, "replace").removeprefix("\ufeff")
    first = re.split(r"[\r\n]", text, maxsplit=1)[0]
    if named := re.fullmatch(r"sep=(.)", first.strip(' "'), re.IGNORECASE):
        return Layout(delimiter=named[1], encoding=encoding, skip=1)
    header = re.sub(r'"(?:[^"]|"")*"', "", first)
    # Of delimiters that occur equally often, the usual one wins; so does it in a table with one
    # column.
    delimiter = max((usual, *DELIMITERS), key=header.count)
    return Layout(delimiter=delimiter, encoding=encoding)


def encoding_of(head: bytes) -> str:
    """Return the codec of a text file from its first bytes: UTF-16 in either order, else UTF-8."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = head[: _LOOKED_AT - _LOOKED_AT % 2]
    half = len(sample) // 2
    # the high bytes of little-endian and of big-endian text
    zeros = (sample[1::2].count(0), sample[::2].count(0))
    if half and max(zeros) > 0.4 * half and min(zeros) == 0:
        return "utf-16-le" if zeros[0] > zeros[1] else "utf-16-be"
    return "utf-8-sig"


def separated_rows(
    stream: IO[bytes],
    *,
    delimiter: str,
    columns: Sequence[str] = (),
    quoted: bool = True,
    strict: bool = False,
    skip: int = 0,
    encoding: str = "utf-8-sig",
) -> Iterator[tuple[int, dict[str, str] | str]]:
    """Yield (number of a row's first line, from 1; its cells by column), or a sentence instead of
    an unreadable row.

    The arguments have the same meaning as in `separated_blocks`.
    """
    table = separated_blocks(
        stream,
        delimiter=delimiter,
        columns=columns,
        quoted=quoted,
        strict=strict,
        skip=skip,
        encoding=encoding,
    )
    for first, names, rows in table:
        if isinstance(rows, str):
            yield first, rows
            continue
        for line, cells in enumerate(rows, first):
            if cells and cells != [""]:
                yield line, cells_by_name(names, cells)


def separated_blocks(
    stream: IO[bytes],
    *,
    delimiter: str,
    columns: Sequence[str] = (),
    quoted: bool = True,
    strict: bool = False,
    skip: int = 0,
    encoding: str = "utf-8-sig",
) -> Iterator[tuple[int, list[str], list[list[str]] | str]]:
    """Yield (line of the first row, column names, rows on successive lines), or a sentence instead
    of a broken row.

    Empty lines are also yielded as rows, so that the caller can count lines.

    Args:
        stream: the text, with or without a byte order mark; it stays open.
        delimiter: one character, or `whitespace` for any number of blanks.
        columns: column names; if empty, the first row contains them.
        quoted: True if `"` quotes a cell.
        strict: True to reject wrong quotes and duplicate column names.
        skip: number of rows to skip before the table.
        encoding: codec of the text, from `encoding_of`.
    """
    # the csv module's own limit of 128 kB is less than one file of code
    csv.field_size_limit(MAX_ROW_CHARACTERS)
    # Bytes that are not UTF-8 become surrogates, so that only the rows that contain them are
    # refused.
    text = io.TextIOWrapper(stream, encoding, errors="surrogateescape", newline="")
    names, before = list(columns), skip
    try:
        for first, rows in _blocks(text, delimiter, quoted=quoted, strict=strict):
            if isinstance(rows, str):
                before = max(0, before - 1)
                yield first, names, rows
                continue
            start = 0
            while start < len(rows) and (before or not names):
                cells = rows[start]
                start += 1
                if before:
                    before -= 1
                elif cells and cells != [""]:
                    names = [cell.strip() for cell in cells]
                    problem = _header_problem(names) if strict else None
                    if problem is not None:
                        yield first + start - 1, names, problem
                        return
            yield first + start, names, rows[start:] if start else rows
    finally:
        text.detach()


class _TooLong(Exception):
    """Raised for a row of more than `MAX_ROW_CHARACTERS`."""


class _BoundedLines:
    """Lines of a text, limited to `MAX_ROW_CHARACTERS` per row; `ahead` contains lines that were
    already read.
    """

    def __init__(self, text: io.TextIOWrapper, ahead: str) -> None:
        self._ahead = io.StringIO(ahead, newline="")
        self._text = text
        self._left = MAX_ROW_CHARACTERS

    def begin_row(self) -> None:
        self._left = MAX_ROW_CHARACTERS

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._read(self._left + 1)
        if not line:
            raise StopIteration
        self._left -= len(line)
        if self._left < 0:
            while line and not line.endswith(("\n", "\r")):
                line = self._read(MAX_ROW_CHARACTERS)
            raise _TooLong
        return line

    def _read(self, size: int) -> str:
        line = self._ahead.readline(size)
        # the rest of the line was not read yet
        if len(line) < size and not line.endswith(("\n", "\r")):
            line += self._text.readline(size - len(line))
        return line


def _blocks(
    text: io.TextIOWrapper, delimiter: str, *, quoted: bool, strict: bool
) -> Iterator[tuple[int, list[list[str]] | str]]:
    """Yield (line of the first row, rows): many rows at once as long as each row is a single plain
    line.
    """
    line, block = 1, ""
    size = MAX_ROW_CHARACTERS >> 6  # about 10,000 short rows
    while delimiter != "whitespace":
        block = text.read(size)
        rest = text.readline(MAX_ROW_CHARACTERS - size)
        block += rest
        if not block:
            return
        if (quoted and '"' in block) or len(rest) == MAX_ROW_CHARACTERS - size:
            break
        try:
            rows = list(
                csv.reader(
                    io.StringIO(block, newline=""), delimiter=delimiter[:1], quoting=csv.QUOTE_NONE
                )
            )
        except csv.Error:
            break
        yield line, rows
        line += len(rows)
    yield from _rows(_BoundedLines(text, block), line, delimiter, quoted=quoted, strict=strict)


def _rows(
    lines: _BoundedLines, first: int, delimiter: str, *, quoted: bool, strict: bool
) -> Iterator[tuple[int, list[list[str]] | str]]:
    """Yield (line, row) one by one, for rows that span several lines, are too long or are
    broken.
    """
    reader = csv.reader(
        lines,
        delimiter=delimiter[:1],
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        strict=strict,
    )
    blanks = (re.split(r"\s+", row.strip()) for row in lines) if delimiter == "whitespace" else None
    number = 0
    while True:
        line = first + (number if blanks is not None else reader.line_num)
        number += 1
        lines.begin_row()
        try:
            cells = next(reader if blanks is None else blanks, None)
        except _TooLong:
            limit = MAX_ROW_CHARACTERS >> 20
            yield (
                line,
                f"has a row of more than {limit} million characters, or a quotation mark that is never closed.",
            )
            return
        except csv.Error as error:
            problem = "a NUL byte" if "NUL" in str(error) else str(error)
            yield line, f"is not valid CSV: {problem}."
            continue
        if cells is None:
            return
        yield line, [cells]


def _header_problem(names: list[str]) -> str | None:
    if not is_utf8(names):
        return _NOT_UTF8
    twice = sorted({name for name in names if name and names.count(name) > 1})
    return f"has two columns named {twice[0]!r}." if twice else None


def cells_by_name(names: Sequence[str], cells: Sequence[str]) -> dict[str, str] | str:
    """Return a row's cells by column, or a description of the row's problem."""
    if not is_utf8(cells):
        return _NOT_UTF8
    if len(cells) > len(names):
        return (
            f"has {len(cells)} cells, but the header has {len(names)} columns. "
            "Put text that contains the delimiter in double quotes."
        )
    return dict(zip(names, cells, strict=False))


def is_utf8(cells: Sequence[str]) -> bool:
    """True if no cell contains a surrogate.

    `isascii` runs first, because it is quick and decides nearly all cells.
    """
    for cell in cells:
        if not cell.isascii():
            try:
                cell.encode()
            except UnicodeEncodeError:
                return False
    return True
