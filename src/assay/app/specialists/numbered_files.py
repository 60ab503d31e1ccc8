"""Write files with consecutive numbers, such as `snapshot-003.json5`, also from several processes
at once.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from assay.domain.errors import InputError, Refused
from assay.exchange.results_folder.atomic_files import AtomicFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def numbered_files(folder: Path, stem: str) -> dict[int, Path]:
    """Return the files `<stem>-NNN.json5` of a folder by their numbers; raises `InputError` if the
    folder cannot be read.
    """
    name = re.compile(rf"{re.escape(stem)}-([0-9]{{1,9}})\.json5")
    try:
        return {
            int(match[1]): path for path in folder.iterdir() if (match := name.fullmatch(path.name))
        }
    except OSError as error:
        raise InputError(str(folder), f"cannot be read: {error.strerror}.") from error


def write_numbered(folder: Path, stem: str, text_of: Callable[[int, Path | None], str]) -> Path:
    """Write `<folder>/<stem>-NNN.json5` and return its path; NNN is one more than the highest
    number there.

    A complete file gets its name by a hard link, which fails if another process took the number;
    then the next number is tried.

    Args:
        text_of: returns the text of the file for its number and the file with the number before;
            None if there is no such file.

    Raises InputError if the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            str(folder), f"cannot be created: {error.strerror}.", remedy="Choose another folder."
        ) from error
    while True:
        existing = numbered_files(folder, stem)
        newest = max(existing, default=0)
        path = folder / f"{stem}-{newest + 1:03}.json5"
        text = text_of(newest + 1, existing.get(newest))
        with suppress(Refused):
            with AtomicFile(path) as file:
                file.write(text)
            return path
