"""Read a file's rows with their locations, from JSON Lines or a JSON list, even if a `.jsonl` file
contains a list.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from assay.domain.digest import JsonValue
from assay.exchange.parsing.input_files import FileSample, InputFile, UnreadableFile
from assay.exchange.parsing.json_values import (
    JsonObject,
    NotJson,
    as_list,
    as_object,
    objects_in,
    parse_json,
)
from assay.formats.json_lines import lines_of, row_of

_LISTS: Final = ("data", "items", "rows", "results")


def first_rows(sample: FileSample, most: int = 200) -> list[JsonObject]:
    rows: list[JsonObject] = list(sample.rows[:most])
    return rows or objects_in(as_list(sample.document)[:most])


def folder_path(source: InputFile) -> str:
    """Return a file's folder, normalised for comparisons: empty for the working folder, without a
    trailing slash.

    An archive counts as a folder named like the archive.
    """
    folder = source.folder.replace("#", "/") if source.member else source.folder
    return folder.removesuffix("/.").rstrip("/") if folder != "." else ""


def parent_folder(folder: str) -> str:
    return folder.rpartition("/")[0]


def folder_name(folder: str) -> str:
    return folder.rpartition("/")[2]


def lies_beneath(folder: str, other: str) -> bool:
    return not other or folder == other or folder.startswith(f"{other}/")


def read_rows(source: InputFile) -> Iterator[tuple[JsonObject | str, str]]:
    """Yield every row with its location (`file:line` or `file#number`); an entry that is not a row
    is replaced by a message.
    """
    if source.sample.rows:
        with source.open() as stream:
            for number, line in enumerate(lines_of(stream), 1):
                if line.strip():
                    yield _row(line), f"{source.name}:{number}"
        return
    try:
        document = parse_json(source.read())
    except NotJson as error:
        yield str(error), source.name
        return
    rows = as_list(document)
    if isinstance(document, dict):
        rows = next(
            (as_list(document[key]) for key in _LISTS if isinstance(document.get(key), list)),
            [document],
        )
    for number, row in enumerate(rows, 1):
        yield (row if isinstance(row, dict) else "is not a JSON object."), f"{source.name}#{number}"


def objects_of(source: InputFile) -> Iterator[tuple[JsonObject, str]]:
    """Yield the rows that are objects, with their locations; skip other entries without a
    message.
    """
    for row, where in read_rows(source):
        if not isinstance(row, str):
            yield row, where


def read_object(source: InputFile) -> JsonObject:
    """Return the JSON object in a small supplementary file; empty if the file contains no
    object.
    """
    document = source.sample.document
    if document is None:
        try:
            document = parse_json(source.read())
        except NotJson:
            return {}
    return as_object(document)


def read_document(source: InputFile) -> JsonValue:
    """Parse a whole file as one JSON document; raises `UnreadableFile`."""
    try:
        return parse_json(source.read())
    except NotJson as error:
        raise UnreadableFile(source.name, str(error)) from error


def _row(line: bytes) -> JsonObject | str:
    """Parse one line; if that fails, parse it again with NaN allowed, which Python's json writes
    although it is not JSON.
    """
    row = row_of(line)
    if isinstance(row, str) and (b"NaN" in line or b"Infinity" in line):
        try:
            value = parse_json(line)
        except NotJson:
            return row
        return value if isinstance(value, dict) else row
    return row
