"""Import tasks with answers and human grades, so that judges can grade the answers with a
rubric.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.app.imports.importer import import_paths
from assay.app.imports.options import ImportOptions
from assay.domain.errors import InputError
from assay.exchange.parsing.input_files import UnreadableFile, input_file
from assay.exchange.readers import rlhf

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from assay.app.workspace import Workspace


def is_raw(path: Path) -> bool:
    """True if a file contains tasks with answers to judge, and is not a suite."""
    try:
        return (
            path.is_file()
            and path.suffix in (".json", ".jsonl")
            and rlhf.recognise(input_file(path).sample) is not None
        )
    except (OSError, UnreadableFile):
        return False


def import_raw(
    workspace: Workspace, paths: Sequence[Path]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Import the files whose answers are not stored yet; return the runs, and a note for each row
    that was left out.
    """
    result = import_paths(workspace, paths, ImportOptions(format=rlhf.NAME))
    runs = dict.fromkeys(
        [*result.run_ids, *(run for known in result.unchanged.values() for run in known)]
    )
    notes = tuple(f"{skipped.where} {skipped.why}" for skipped in result.skipped)
    if not runs:
        raise InputError(
            ", ".join(map(str, paths)), f"contains no answer to judge. {' '.join(notes)}"
        )
    return tuple(map(str, runs)), notes
