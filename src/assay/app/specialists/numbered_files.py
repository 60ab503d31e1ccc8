"""Write files with consecutive numbers, such as `snapshot-003.json5`, also from several processes at once."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from assay.domain.errors import InputError, Refused
from assay.exchange.results_folder.atomic_files import AtomicFile

if TYPE_CHECKING:
    from pathlib import Path


def write_numbered(folder: Path, stem: str, text: str) -> Path:
    """Write `<folder>/<stem>-NNN.json5` and return its path; NNN is one more than the highest number there.

    A complete file gets its name by a hard link, which fails if another process took the number; then the next number is tried.
    Raises InputError if the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(str(folder), f"cannot be created: {error.strerror}.", remedy="Choose another folder.") from error
    while True:
        numbers = [
            int(match[1]) for path in folder.iterdir() if (match := re.fullmatch(rf"{stem}-([0-9]{{1,9}})\.json5", path.name))
        ]
        path = folder / f"{stem}-{max(numbers, default=0) + 1:03}.json5"
        with suppress(Refused):
            with AtomicFile(path) as file:
                file.write(text)
            return path
