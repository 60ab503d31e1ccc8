"""Read the rows of tables that pandas wrote (CSV, JSON, JSON Lines, Parquet), and decode their
cells.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

import orjson

from assay.exchange.parsing.input_files import FileSample, InputFile
from assay.exchange.parsing.json_values import NotJson, parse_json
from assay.exchange.parsing.tables import TableRow, read_table

_LONGEST_LITERAL: Final = 1_000_000
_WORDS: Final = {
    "": None,
    "nan": None,
    "NaN": None,
    "None": None,
    "null": None,
    "True": True,
    "False": False,
}
_OWN: Final = ("@key", "@root")


def frame_rows(source: InputFile) -> Iterator[tuple[TableRow | str, str]]:
    """Yield every row with its location; an unreadable row is replaced by an error message."""
    if source.sample.rows or source.sample.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"{":
        for row, where in read_table(source):
            yield (
                row if isinstance(row, str) else {key: row[key] for key in row if key not in _OWN},
                where,
            )
        return
    try:
        rows = _rows_of(parse_json(source.read()))
    except NotJson as error:
        yield str(error), source.name
        return
    for number, row in enumerate(rows, 1):
        yield row, f"{source.name}#{number}"


def first_frame_rows(sample: FileSample, most: int = 20) -> list[TableRow]:
    """Return the first rows, from which readers recognise the format; empty for a document that is
    not a table.
    """
    if sample.rows:
        return [dict(row) for row in sample.rows[:most]]
    if sample.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return list(_rows_of(sample.document))[:most]
    return [row for row, _ in islice(read_table(sample.source), most) if not isinstance(row, str)]


def decoded(cell: object) -> object:
    """Decode a cell: JSON, a Python literal, true, false or text; None for an empty cell or NaN.

    pandas writes objects in CSV files as Python literals.
    """
    if isinstance(cell, float) and math.isnan(cell):
        return None
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "{[(" or len(text) > _LONGEST_LITERAL:
        return cell
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        # Converted through JSON, which has no sets, bytes or numeric keys; a set of sets raises
        # `TypeError`.
        return orjson.loads(
            orjson.dumps(ast.literal_eval(text), default=str, option=orjson.OPT_NON_STR_KEYS)
        )
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return cell


def _rows_of(document: object) -> Iterator[TableRow]:
    """Yield the rows of a JSON document in any pandas orientation, or of an API page (`data`)."""
    if isinstance(document, list):
        yield from (row for row in document if isinstance(row, dict))
    if not isinstance(document, dict):
        return
    columns, data = document.get("columns"), document.get("data")
    if isinstance(columns, list) and isinstance(data, list):
        for cells in data:
            if isinstance(cells, list):
                yield dict(zip(map(str, columns), cells, strict=False))
    elif isinstance(data, list):
        yield from (row for row in data if isinstance(row, dict))
    elif document and all(isinstance(column, Mapping) for column in document.values()):
        first = next(iter(document.values()))
        if all(column.keys() == first.keys() for column in document.values()):
            for index in first:
                yield {name: column[index] for name, column in document.items()}
