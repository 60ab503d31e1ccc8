"""Create the files of a new project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.errors import Refused
from assay.suites.starter import starter_files

if TYPE_CHECKING:
    from pathlib import Path


def start_project(folder: Path, *, rubric: str | None = None) -> tuple[Path, ...]:
    """Write the files of a new project and return their paths. A named ready-made rubric gets a suite.

    Raises:
        Refused: one of the files exists; no file was written.
    """
    files = {folder / name: text for name, text in starter_files(rubric).items()}
    # An existing .gitignore is kept as it is; it usually belongs to a repository around the project.
    present = [path for path in files if path.exists() and path.name != ".gitignore"]
    if present:
        raise Refused(str(present[0]), "exists already.", remedy="Name an empty folder, as in `assay init my-bench`.")
    made = []
    try:
        for path, text in files.items():
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, "utf-8")
                made.append(path)
    except OSError as error:
        raise Refused(str(folder), f"cannot be written: {error.strerror}.") from error
    return tuple(made)
