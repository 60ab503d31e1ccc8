"""A store of all shared files, imported twice and in two orders, has the statistics of one import.

The data is not part of this repository: it lies in `shared/data` beside it, or where ASSAY_SHARED
says.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from assay.app.imports.importer import import_paths
from assay.app.imports.options import ImportOptions
from assay.app.workspace import Workspace
from assay.domain.selection import Selection

DATA = Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[3] / "shared")) / "data"

pytestmark = [
    pytest.mark.skipif(
        not DATA.is_dir(), reason=f"the real data is not at {DATA}; set ASSAY_SHARED to its folder"
    ),
    pytest.mark.slow,
]


def everything(
    folder: Path, *rounds: list[Path]
) -> tuple[Counter[tuple[str, str, str, float]], int, int]:
    """Return every score that counts with its number, and the numbers of runs and trials, after
    some imports.
    """
    folder.mkdir()
    options = {"store": f"sqlite:///{folder}/assay.db", "results": "off"}
    with Workspace.open(folder, environment={}, options=options) as workspace:
        for paths in rounds:
            import_paths(workspace, paths, ImportOptions(copy=False))
        columns = workspace.archive.scores.columns(Selection())
        rows = zip(columns.task, columns.candidate, columns.judge, columns.score, strict=True)
        counted = Counter(
            (
                columns.tasks[task].task,
                columns.candidates[candidate],
                columns.judges[judge],
                float(score),
            )
            for task, candidate, judge, score in rows
        )
        totals = workspace.archive.runs.totals(Selection())
        return counted, totals.runs, totals.trials


def test_all_shared_files_twice_in_two_orders_count_once(tmp_path: Path) -> None:
    files = sorted(path for path in DATA.rglob("*") if path.is_file())
    once = everything(tmp_path / "once", files)
    assert len(once[0]) > 1000
    assert everything(tmp_path / "twice", files, files) == once
    assert everything(tmp_path / "backwards", files[::-1], files) == once
