"""Read table rows with their locations from CSV, TSV, JSON Lines, JSON and Parquet, row by row if
the format allows it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from assay.exchange.parsing.input_files import FileSample, InputFile, UnreadableFile
from assay.exchange.parsing.json_values import NotJson, parse_json
from assay.formats.dotted_paths import value_at
from assay.formats.json_lines import lines_of, row_of
from assay.formats.parquet import PARQUET_MAGIC, parquet_rows
from assay.formats.separated import DELIMITERS, separated_rows, sniff_delimiter

TableRow: TypeAlias = "dict[str, object]"
"""Cells by column: text in CSV, JSON values in JSON, and dates or decimals as well in Parquet."""

_NAMED: Final = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", " ": "whitespace"}


def read_header(sample: FileSample) -> list[str]:
    """Return the column names of a separated table in lower case; empty for JSON, Parquet and text
    that is not a table.
    """
    head = sample.text
    # A NUL shows a binary file, or text in UTF-16.
    if (
        sample.head.startswith(PARQUET_MAGIC)
        or "\0" in head[:2000]
        or head.lstrip()[:1] in ("{", "[")
    ):
        return []
    # A lone CR ends a line too, as it does when the rows are read.
    first = head.split("\n", 1)[0].split("\r", 1)[0]
    delimiter = max(DELIMITERS, key=first.count)
    if delimiter not in first:
        return []
    try:
        return [cell.strip().lower() for cell in next(csv.reader([first], delimiter=delimiter), [])]
    except csv.Error:  # a cell longer than any column's name
        return []


def read_table(
    source: InputFile,
    *,
    delimiter: str | None = None,
    columns: Sequence[str] | None = None,
    quoted: bool = True,
    at: str = "",
    skip: int = 0,
) -> Iterator[tuple[TableRow | str, str]]:
    """Yield every row with its location; an error message replaces an unreadable row.

    `delimiter`: a character, or a name such as `tab` or `whitespace`; None to detect it on the
    first line. `columns`: column names of a table without a header. `quoted`: True if `"` quotes a
    cell. `skip`: rows before the table. `at`: dotted path to the rows of a JSON document; rows of
    an object get their key as `@key`.
    """
    sample = source.sample
    if sample.head.startswith(PARQUET_MAGIC):
        yield from _parquet(source)
    elif sample.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        if sample.rows and not at:
            yield from _json_lines(source)
        else:
            yield from _document(source, at)
    else:
        separator = _NAMED.get(delimiter or "", delimiter) or sniff_delimiter(sample.text)
        with source.open() as stream:
            for line, row in separated_rows(
                stream, delimiter=separator, columns=columns or (), quoted=quoted, skip=skip
            ):
                yield _table_row(row), f"{source.name}:{line}"


def _json_lines(source: InputFile) -> Iterator[tuple[TableRow | str, str]]:
    with source.open() as stream:
        for number, line in enumerate(lines_of(stream), 1):
            if line.strip():
                yield row_of(line), f"{source.name}:{number}"


def _document(source: InputFile, at: str) -> Iterator[tuple[TableRow | str, str]]:
    try:
        root = parse_json(source.read())
    except (NotJson, UnreadableFile) as error:
        yield getattr(error, "problem", str(error)), source.name
        return
    inside = at != "" and at != "$"
    rows = value_at({"@root": root}, at if at.startswith("$.") else f"$.{at}") if inside else root
    if isinstance(rows, dict) and inside:
        for key, value in rows.items():
            yield _with_root(value, key, root), f"{source.name}#{key}"
    elif isinstance(rows, list):
        for number, value in enumerate(rows, 1):
            yield _with_root(value, str(number - 1), root), f"{source.name}#{number}"
    elif isinstance(rows, dict):
        yield _with_root(rows, "", root), source.name
    else:
        yield f"holds no rows at {at or '$'!r}.", source.name


def _with_root(value: object, key: str, root: object) -> TableRow:
    row = value if isinstance(value, dict) else {"@value": value}
    return {**row, "@key": key, "@root": root}


def _parquet(source: InputFile) -> Iterator[tuple[TableRow | str, str]]:
    # Parquet is read from its end, and a compressed stream cannot seek
    if source.packing != "plain":
        yield "is a packed Parquet file; unpack it and import the file.", source.name
        return
    with source.open() as stream:
        for number, row in parquet_rows(stream):
            yield _table_row(row), f"{source.name}#{number}" if number else source.name


def _table_row(row: Mapping[str, object] | str) -> TableRow | str:
    return row if isinstance(row, str) else dict(row)
