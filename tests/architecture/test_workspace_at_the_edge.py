"""Only the edge takes a whole `Workspace`; other functions take the store or another part."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).parents[2] / "src" / "assay"

EDGE: Final = ("cli/", "web/", "testing/", "app/python_api/", "app/workspace.py", "app/opening.py")
"""Surfaces, the functions of `import assay`, and the modules that open a workspace."""

ALLOWED: Final = {
    "app/calibration/measure.py": 2,
    "app/calibration/paid_calls.py": 1,
    "app/calibration/records.py": 1,
    "app/doctor.py": 4,
    "app/environment.py": 1,
    "app/exports/exporters.py": 2,
    "app/exports/shared_exports.py": 1,
    "app/imports/importer.py": 2,
    "app/imports/raw_answers.py": 1,
    "app/imports/run_writer.py": 1,
    "app/imports/uploads.py": 2,
    "app/integrations/evaluations.py": 2,
    "app/integrations/received_runs.py": 1,
    "app/registry/candidates.py": 3,
    "app/registry/models.py": 2,
    "app/registry/removal.py": 2,
    "app/results_check.py": 1,
    "app/review/decisions.py": 6,
    "app/review/double_review.py": 1,
    "app/review/protocol.py": 1,
    "app/review/rerun.py": 5,
    "app/review/service.py": 1,
    "app/runs/batch.py": 6,
    "app/runs/control.py": 1,
    "app/runs/demo.py": 4,
    "app/runs/execution.py": 5,
    "app/runs/extension.py": 2,
    "app/runs/pasted_texts.py": 1,
    "app/runs/preflight.py": 1,
    "app/runs/regrade.py": 2,
    "app/runs/start.py": 1,
    "app/specialists/enrich.py": 1,
    "app/specialists/mint.py": 1,
    "app/specialists/waiting.py": 3,
    "app/statistics/baseline.py": 1,
    "app/statistics/results.py": 1,
    "app/statistics/vetting.py": 1,
    "app/store_copies.py": 2,
}
"""Other files, and how many of their parameters and fields are a `Workspace`.

A number may only shrink. Most of these functions start, execute or grade runs and use four to
twelve parts, so that taking the parts would only move arguments about.
"""

OPENING: Final = {
    "app/imports/uploads.py",  # a preview in a temporary store
    "app/opening.py",
    "app/specialists/remote.py",  # a copy of a server's batch in a temporary store
    "app/workspace.py",
    "cli/options.py",  # a damaged store, which is only read
    "testing/exporters.py",
}
"""Files that open a `Workspace` themselves, whose decisions mint nothing."""


def takes_workspace(text: str) -> int:
    """Return the number of parameters and fields that are annotated with `Workspace`."""
    annotations = [
        node.annotation
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None
    ]
    return sum(
        any(
            (isinstance(part, ast.Name) and part.id == "Workspace")
            or (isinstance(part, ast.Attribute) and part.attr == "Workspace")
            or (isinstance(part, ast.Constant) and "Workspace" in str(part.value).split())
            for part in ast.walk(annotation)
        )
        for annotation in annotations
    )


def sources() -> dict[str, str]:
    texts = {
        file.relative_to(SOURCE).as_posix(): file.read_text("utf-8")
        for file in sorted(SOURCE.rglob("*.py"))
    }
    assert len(texts) > 500
    return texts


def test_only_the_edge_and_named_files_take_a_workspace() -> None:
    numbers = {name: takes_workspace(text) for name, text in sources().items()}
    beyond = {name: n for name, n in numbers.items() if n and not name.startswith(EDGE)}
    assert beyond == ALLOWED


def test_only_named_files_open_a_workspace_that_mints_nothing() -> None:
    opens = {
        name
        for name, text in sources().items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Workspace", "Workspace.open"}
    }
    assert opens == OPENING


@pytest.mark.parametrize(
    "line",
    [
        "def stats(workspace: Workspace) -> None: ...",
        "def stats(*, workspace: Workspace | None = None) -> None: ...",
        "def stats(workspace: 'Workspace') -> None: ...",
        "def stats(workspace: workspace.Workspace) -> None: ...",
        "class Writer:\n    workspace: Workspace",
        "class Writer:\n    def __init__(self, workspace: Workspace) -> None: ...",
    ],
)
def test_each_way_to_take_a_workspace_is_counted(line: str) -> None:
    assert takes_workspace(line) == 1
