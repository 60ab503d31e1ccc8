"""The score table as CSV, with cells that no spreadsheet interprets as a formula.

Text that begins with `=`, `+`, `-`, `@`, a tab or a line break (or their full-width forms) gets a
leading `'`, so that spreadsheets show it as text. Text that already begins with such a `'` gets
another one, so that `unguarded` returns exactly the original.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

Cell = str | int | float | bool | None


_FORMULA: Final = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_PLAIN: Final = re.compile(r"[\w.][\w.:/-]*")
_SPECIAL: Final = re.compile('[,"\r\n]|^ | $')


class CsvLines:
    """Writes rows as CSV lines: comma, quotes if needed, `\\n` at the end.

    The header comes first.
    """

    def __init__(self, write: Callable[[str], object], header: Sequence[str]) -> None:
        self._write = write
        self.row(header)

    def row(self, cells: Sequence[Cell]) -> None:
        """Write one line: None as an empty cell, a boolean as `true` or `false`, a number in its
        shortest exact form.
        """
        self._write(",".join(map(_cell, cells)) + "\n")


def guarded(text: str) -> str:
    """Escape a text so that no spreadsheet interprets the cell as a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(cell: str) -> str:
    """Return the original text from the output of `guarded`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _cell(cell: Cell) -> str:
    # Numbers need no quotes, and most texts neither quotes nor a guard: the table of 100,000 trials
    # has two million cells.
    match cell:
        case str():
            return cell if _PLAIN.fullmatch(cell) else _quoted(guarded(cell))
        case None:
            return ""
        case bool():
            return "true" if cell else "false"
        case _:
            return repr(cell)


def _quoted(cell: str) -> str:
    # The standard library's writer leaves a lone carriage return unquoted, and its reader then
    # takes it for the end of the line.
    return '"' + cell.replace('"', '""') + '"' if _SPECIAL.search(cell) else cell
