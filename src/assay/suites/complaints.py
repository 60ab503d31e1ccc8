"""Complaints about suite files, gathered so that an author sees all of them at once.

A complaint is remembered as the path of a value inside its file; the line is looked up only when there is something to
say, because most files are right and looking up lines costs more than reading them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from assay.domain.errors import InputError, SuiteError

if TYPE_CHECKING:
    from collections.abc import Sequence

Path: TypeAlias = tuple[str | int, ...]
"""Keys and 0-based positions from the root of a file to a value in it."""


class Spot(NamedTuple):
    """Where a value stands: file, 1-based line (0: unknown) and field, each as people read it."""

    file: str
    line: int
    field: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place} {self.field}" if self.field else place


Place: TypeAlias = Callable[[Path, bool], Spot]
"""Says where a path stands; True asks for the line of the key instead of that of its value."""

SHOWN: Final = 20
"""Complaints that one message lists; a file of the wrong kind would otherwise scroll the reason away."""

GATHERED: Final = 200
"""Complaints after which reading stops looking for more."""

LONGEST_KEY: Final = 60
"""Characters of a key that a message repeats."""


class SuiteErrors(InputError):
    """Everything that is wrong with a suite, one `SuiteError` each, in the order of the file."""

    def __init__(self, errors: Sequence[SuiteError]) -> None:
        self.errors = tuple(errors)
        lines = [str(error) for error in self.errors[:SHOWN]]
        if len(self.errors) > SHOWN:
            lines.append(f"... and {len(self.errors) - SHOWN} more.")
        super().__init__("", "\n".join(lines))


class TooManyComplaints(Exception):
    """Reading stopped: there is more wrong than anyone will read."""


class Complaints:
    """What was found wrong so far. Views made by `at` add to the same list but stand in another file or line."""

    __slots__ = ("_found", "place")

    def __init__(self, place: Place) -> None:
        self.place = place
        self._found: list[tuple[Place, Path, bool, str, str]] = []

    def __len__(self) -> int:
        return len(self._found)

    def at(self, place: Place) -> Complaints:
        """The same list, for paths that stand elsewhere."""
        view = Complaints(place)
        view._found = self._found
        return view

    def add(self, path: Path, problem: str, remedy: str = "", *, at_key: bool = False) -> None:
        """Remember one complaint; raises `TooManyComplaints` when there are enough of them."""
        self._found.append((self.place, path, at_key, problem, remedy))
        if len(self._found) >= GATHERED:
            raise TooManyComplaints

    def errors(self) -> tuple[SuiteError, ...]:
        """All complaints with their places, each once, file by file and line by line."""
        placed = [(place(path, at_key), problem, remedy) for place, path, at_key, problem, remedy in self._found]
        files = {spot.file: rank for rank, spot in reversed(list(enumerate(spot for spot, _, _ in placed)))}
        placed.sort(key=lambda complaint: (files[complaint[0].file], complaint[0].line))
        errors = [SuiteError(str(spot), problem, remedy=remedy) for spot, problem, remedy in placed]
        return tuple({str(error): error for error in errors}.values())


def dotted(path: Path) -> str:
    """A path as people write it: `tasks[7].expected`."""
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
