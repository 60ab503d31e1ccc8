"""Write JSON Lines whose columns each have a single type, as `datasets.load_dataset("json")`
requires.

All lines have the same keys in the same order, and missing values are null. `load_dataset` infers
the column types from the first 10 MB. A column with only nulls in this part has no type, and a
later text in it raises an error. In longer files, rows with values in such columns therefore come
first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from tempfile import SpooledTemporaryFile
from typing import IO, Final

from assay.domain.digest import JsonValue
from assay.domain.unescaped_json import unescaped_json

FIRST_BYTES: Final = 8 << 20
"""Bytes: fewer than the 10 MB that `load_dataset` reads at once, which leaves room for the rows
that come first.
"""


class TypedLines:
    """Collects rows of the given columns and writes them."""

    def __init__(self, columns: Sequence[str], *, first_bytes: int = FIRST_BYTES) -> None:
        self._columns = tuple(columns)
        self._untyped = set(columns)
        self._first_bytes = first_bytes
        self._size = 0
        self._early: list[str] = []
        self._lines: IO[str] = SpooledTemporaryFile(first_bytes, "w+", encoding="utf-8")  # noqa: SIM115 # closed by close

    def row(self, values: Mapping[str, JsonValue]) -> None:
        """Add one row; columns without a value are null."""
        cells = {column: values.get(column) for column in self._columns}
        line = unescaped_json(cells, allow_nan=False) + "\n"
        typed = {column for column in self._untyped if cells[column] is not None}
        self._untyped -= typed
        if typed and self._size > self._first_bytes:
            self._early.append(line)
            return
        self._size += len(line.encode())
        self._lines.write(line)

    def write(self, write: Callable[[str], object]) -> None:
        for line in self._early:
            write(line)
        self._lines.seek(0)
        for line in self._lines:
            write(line)

    def close(self) -> None:
        self._lines.close()
