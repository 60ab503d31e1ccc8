"""Read the rows of Parquet files in batches."""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator, Sequence
from typing import IO, Any, Final

PARQUET_MAGIC: Final = b"PAR1"
"""The first bytes of every Parquet file."""

_BATCH_ROWS: Final = 4096

# Size of a batch of rows according to its file; in memory, Python and the store take several times
# as much.
_BATCH_BYTES: Final = 24 << 20

# Limits on the unpacked size of a part of a column, and of all rows together: the first number in
# bytes or, if that is more, the second number times the packed size. A page of zeros is packed to a
# thousandth of its size, and a run of one value to next to nothing.
_FREE_PART: Final = 64 << 20
_PART_RATIO: Final = 100
_FREE_ROWS: Final = 512 << 20
_ROWS_RATIO: Final = 1000
_FREE_NUMBER: Final = 1_000_000
_NUMBER_RATIO: Final = 10  # maximum number of rows per byte of the file


def parquet_rows(stream: IO[bytes]) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield (row number from 1, row), or a sentence with the reason why the rows cannot be read."""
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        yield (
            0,
            "is a Parquet file, but pyarrow is not installed. Install it (`pip install pyarrow`), or save the file as CSV.",
        )
        return
    number = size = 0
    try:
        length = stream.seek(0, io.SEEK_END)
        most = max(_FREE_ROWS, _ROWS_RATIO * length)
        stream.seek(0)
        file = parquet.ParquetFile(stream)
        if file.metadata.num_rows > max(_FREE_NUMBER, _NUMBER_RATIO * length):
            yield 0, f"declares {file.metadata.num_rows:,} rows, far more than its size allows."
            return
        groups = [file.metadata.row_group(place) for place in range(file.metadata.num_row_groups)]
        repeated = [
            file.schema.column(place).max_repetition_level > 0
            for place in range(file.metadata.num_columns)
        ]
        if problem := next(
            (problem for group in groups if (problem := _problem_of(group, repeated))), None
        ):
            yield 0, problem
            return
        for place, group in enumerate(groups):
            for batch in file.iter_batches(batch_size=_rows_at_once(group), row_groups=[place]):
                # A dictionary is counted only once in `nbytes`, but each row that refers to it
                # becomes a separate value.
                cells = (
                    c.dictionary_decode() if hasattr(c, "dictionary_decode") else c
                    for c in batch.columns
                )
                size += sum(column.nbytes for column in cells)
                if size > most:
                    yield 0, f"unpacks to more than {most >> 20} MB, far more than its size allows."
                    return
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except importlib.import_module("pyarrow").ArrowException as error:
        yield 0, f"is not valid Parquet: {error}."


def _problem_of(group: Any, repeated: Sequence[bool]) -> str | None:
    """Return the reason why unpacking a row group would be unsafe, or None."""
    for place, in_lists in enumerate(repeated):
        part = group.column(place)
        unpacked = max(part.total_uncompressed_size, part.num_values * (8 if in_lists else 1))
        most = max(_FREE_PART, _PART_RATIO * part.total_compressed_size)
        if unpacked > most:
            return f"unpacks to more than {most >> 20} MB in column {part.path_in_schema!r}, far more than its size allows."
    return None


def _rows_at_once(group: Any) -> int:
    """Return the number of rows that fit into `_BATCH_BYTES` if every row had the longest values of
    the dictionaries.
    """
    largest = 1
    for part in (group.column(place) for place in range(group.num_columns)):
        size = part.total_uncompressed_size
        largest += size if part.has_dictionary_page else size // max(1, group.num_rows)
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // largest))


def parquet_columns(stream: IO[bytes]) -> frozenset[str]:
    """Return a file's column names; empty if the file cannot be read or pyarrow is not
    installed.
    """
    try:
        parquet = importlib.import_module("pyarrow.parquet")
        return frozenset(parquet.read_schema(stream).names)
    except (ImportError, OSError):
        return frozenset()
    except importlib.import_module("pyarrow").ArrowException:
        return frozenset()
