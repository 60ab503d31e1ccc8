"""The clock of the machine goes back between a run and its regrade: the later grading counts all
the same.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from tests.journey.conftest import Command
from tests.support.model_server import ModelServer

from assay.app.workspace import SystemClock


def suite(path: Path, score: str) -> Path:
    tasks = [{"id": f"q{n}", "prompt": f"Question {n}?", "expected": "42"} for n in range(3)]
    candidates = [{"name": "small", "model": "openai/small"}]
    document = {"name": "numbers", "candidates": candidates, "score": score, "tasks": tasks}
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


def mean(assay: Command) -> float:
    (candidate,) = assay("stats", "--json").document["candidates"]
    return float(candidate["mean"])


def test_a_regrade_counts_after_the_clock_went_back_also_rebuilt(
    assay: Command, server: ModelServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = lambda _: "42.0"
    first = assay("run", suite(project / "old.yaml", "exact"), "--json").document
    assert mean(assay) < 1.0
    with monkeypatch.context() as earlier:
        earlier.setattr(SystemClock, "now", lambda _: "2001-01-01T00:00:00.000Z")
        again = assay(
            "regrade", first["run_id"], "--suite", suite(project / "new.yaml", "numeric"), "--json"
        )
    assert again.code == 0, again.err
    assert again.document["run_id"] < first["run_id"]
    assert mean(assay) == 1.0
    shutil.rmtree(project / ".assay")
    rebuilt = assay("import", "results", "--rebuild", "--json")
    assert rebuilt.code == 0, rebuilt.err
    assert mean(assay) == 1.0
