"""The score table as Parquet, in row groups; needs pyarrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any, Final

from assay.domain.errors import InputError

_ROWS_PER_GROUP: Final = 20_000

_TYPES: Final = {"text": "string", "whole": "int64", "number": "float64", "yes": "bool_"}


class ParquetRows:
    """Writes rows to an open binary file, which is valid Parquet only after `close`.

    `columns`: column type (`text`, `whole`, `number`, `yes`) by name. Raises InputError if pyarrow
    is not installed.
    """

    def __init__(self, file: IO[bytes], columns: Mapping[str, str]) -> None:
        arrow = need_pyarrow()
        self._arrow = arrow
        self._schema = arrow.schema(
            [(name, getattr(arrow, _TYPES[kind])()) for name, kind in columns.items()]
        )
        self._writer = arrow.parquet.ParquetWriter(file, self._schema, compression="zstd")
        self._waiting: list[Sequence[object]] = []

    def row(self, cells: Sequence[object]) -> None:
        self._waiting.append(cells)
        if len(self._waiting) == _ROWS_PER_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if not self._waiting:
            return
        columns = zip(*self._waiting, strict=True)
        arrays = [
            self._arrow.array([_clean(cell) for cell in column], type=field.type)
            for column, field in zip(columns, self._schema, strict=True)
        ]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
        self._waiting.clear()


def need_pyarrow() -> Any:
    """Return the module pyarrow with `parquet` loaded; raises `InputError` if it is not
    installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            "parquet",
            "needs the package pyarrow, which is not installed.",
            remedy="`pip install 'assay-bench[parquet]'`, or export csv.",
        ) from error
    return pyarrow


def _clean(cell: object) -> object:
    """Escape lone surrogates, which UTF-8 cannot hold."""
    return cell.encode("utf-8", "backslashreplace").decode() if isinstance(cell, str) else cell
