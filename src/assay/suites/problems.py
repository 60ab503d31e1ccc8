"""Problems with suite files, collected so that an author sees all of them at once.

A problem stores the path of a value inside its file. The line is looked up only when a problem is
reported, because most files are correct and looking up lines takes longer than reading them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from assay.domain.errors import SuiteError, SuiteErrors as SuiteErrors  # re-exported

Path: TypeAlias = tuple[str | int, ...]
"""Keys and 0-based positions that lead from the root of a file to a value in it."""


class Location(NamedTuple):
    """Location of a value for messages: file, 1-based line (0: unknown) and field."""

    file: str
    line: int
    field: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place} {self.field}" if self.field else place


Locate: TypeAlias = Callable[[Path, bool], Location]
"""Function that returns the location of a path; if its second argument is True, of the key instead
of its value.
"""

GATHERED: Final = 200
"""Number of problems after which reading stops."""

LONGEST_KEY: Final = 60
"""Maximum characters of a key quoted in a message."""


class TooManyProblems(Exception):
    """Raised to stop reading if a file has too many problems to list."""


class Problems:
    """Problems found so far. Views from `at` share the list but have their own locations."""

    __slots__ = ("_gathered", "locate")

    def __init__(self, locate: Locate) -> None:
        self.locate = locate
        self._gathered: list[tuple[Locate, Path, bool, str, str]] = []

    def __len__(self) -> int:
        return len(self._gathered)

    def report(self, path: Path, problem: str, remedy: str = "", *, at_key: bool = False) -> None:
        """Add a problem; raises `TooManyProblems` if there are too many."""
        self._gathered.append((self.locate, path, at_key, problem, remedy))
        if len(self._gathered) >= GATHERED:
            raise TooManyProblems

    def errors(self) -> tuple[SuiteError, ...]:
        """Return all problems with their locations, each once, sorted by file and line."""
        located = [
            (locate(path, at_key), problem, remedy)
            for locate, path, at_key, problem, remedy in self._gathered
        ]
        files = {
            location.file: rank for rank, (location, _, _) in reversed(list(enumerate(located)))
        }
        located.sort(key=lambda entry: (files[entry[0].file], entry[0].line))
        errors = [
            SuiteError(str(location), problem, remedy=remedy)
            for location, problem, remedy in located
        ]
        return tuple({str(error): error for error in errors}.values())


def dotted(path: Path) -> str:
    """Return a path in the form that people write: `tasks[7].expected`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
            continue
        word = step if step.isprintable() else ascii(step)
        if len(word) > LONGEST_KEY:
            word = word[: LONGEST_KEY - 3] + "..."
        text += f".{word}" if text else word
    return text
