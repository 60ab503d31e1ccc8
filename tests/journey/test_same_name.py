"""Runs whose candidates share a name but not the model or prompt: their trials never become one
number.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient

from assay.app.workspace import Workspace
from assay.web.server import create_app
from tests.journey.conftest import Command
from tests.support.model_server import ModelServer

JUDGED = ("openai/ok", "openai/ok2")


def run_with(assay: Command, folder: Path, model: str, prompt: str = "Be brief.") -> str:
    """Run the suite with a model under the name `bot`; return the run's id."""
    suite: dict[str, Any] = {
        "name": "numbers",
        "system_prompt": prompt,
        "candidates": [{"name": "bot", "model": model}, {"name": "base", "model": "openai/base"}],
        "tasks": [
            {"id": f"t{n}", "prompt": f"Say {n}.", "expected": str(n), "score": "exact"}
            for n in range(6)
        ],
        "trials": 2,
    }
    path = folder / "numbers.yaml"
    path.write_text(yaml.safe_dump(suite), "utf-8")
    answer = assay("run", path, "--json")
    assert answer.code == 0, answer.err
    return str(answer.document["run_id"])


@pytest.fixture
def runs(assay: Command, server: ModelServer, project: Path) -> list[str]:
    """Two runs in which `bot` is another model; the second answers right, the first wrong."""
    server.answer = lambda call: "3" if call.body["model"] == "ok2" else "no"
    return [run_with(assay, project, model) for model in JUDGED]


def test_another_model_under_the_same_name_is_kept_apart(
    assay: Command, runs: list[str], project: Path
) -> None:
    newest = assay("stats", "--json").document
    assert {row["candidate"]: row["n_trials"] for row in newest["candidates"]} == {
        "bot": 12,
        "base": 12,
    }
    document = assay("stats", "--all-runs", "--json").document
    n_trials = {row["candidate"]: row["n_trials"] for row in document["candidates"]}
    assert n_trials == {"bot (openai/ok)": 12, "bot (openai/ok2)": 12, "base": 24}
    (warned,) = (
        warning["text"] for warning in document["warnings"] if warning["code"] == "same_name"
    )
    assert "bot (openai/ok), bot (openai/ok2)" in warned
    assert "not pooled" in assay("rank", "--all-runs").out
    (alone,) = (
        row
        for row in assay("stats", "--run", runs[1], "--json").document["candidates"]
        if row["candidate"] == "bot"
    )
    assert alone["n_trials"] == 12
    versus = assay("compare", "bot (openai/ok2)", "bot (openai/ok)", "--json").document
    assert (versus["n_trials_a"], versus["n_trials_b"], versus["runs"]) == (12, 12, runs)
    against = assay("compare", "bot (openai/ok2)", "base", "--json").document
    assert (against["a"], against["n_trials_a"], against["runs"]) == ("bot", 12, runs[1:])
    pooled = assay("compare", "bot (openai/ok2)", "base", "--all-runs", "--json").document
    assert (pooled["a"], pooled["n_trials_a"], pooled["n_trials_b"]) == ("bot (openai/ok2)", 12, 24)
    refused = assay("gate", "bot", "--against", "base", "--margin", "3pts", "--all-runs")
    assert refused.code == 2
    assert "'bot' refers to different models or system prompts" in refused.err
    assert assay("gate", "bot", "--against", "base", "--margin", "3pts").code in (0, 3)
    rows = assay("export", "csv", "--all-runs").out
    assert (rows.count("bot (openai/ok)"), rows.count("bot (openai/ok2)")) == (12, 12)
    hidden = assay("export", "markdown", "--anonymise", "--all-runs").out
    assert "openai/ok" not in hidden
    assert "bot" not in hidden.replace("about", "")
    with Workspace.open(project, environment={}) as workspace:
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        page = client.get("/results?all_runs=1", headers={"accept": "text/html"}).text
        assert "bot (openai/ok2)" in page
        assert "They are kept apart" in page
        asked = {"candidate": "bot (openai/ok)", "all_runs": "1"}
        of_one = client.get("/statistics/trials", params=asked, headers={"accept": "text/html"})
        assert of_one.status_code == 200
        assert runs[0] in of_one.text
        assert runs[1] not in of_one.text


def test_another_system_prompt_is_another_candidate(
    assay: Command, server: ModelServer, project: Path
) -> None:
    for prompt in ("Be brief.", "Be long."):
        run_with(assay, project, "openai/ok", prompt)
    names = [
        row["candidate"] for row in assay("stats", "--all-runs", "--json").document["candidates"]
    ]
    assert len(names) == 4
    assert all("system prompt" in name for name in names)


def test_kept_apart_names_survive_a_new_store(
    assay: Command, runs: list[str], project: Path
) -> None:
    before = assay("stats", "--all-runs", "--json").document["candidates"]
    (project / ".assay" / "assay.db").rename(project / "old.db")
    restored = assay("import", "results", "--rebuild")
    assert restored.code == 0, restored.err
    assert assay("stats", "--all-runs", "--json").document["candidates"] == before
