"""Candidates called `Candidate A` and `Candidate B`: names and labels are never taken for each
other.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient

from assay.app.review.name_masking import HIDDEN_NAME
from assay.app.workspace import Workspace
from assay.web.server import create_app
from tests.journey.conftest import Command
from tests.support.model_server import Call, ModelServer

HOME = "http://127.0.0.1:8000"
WORK = {"Candidate A": "def guarded(): ...", "Candidate B": "def unguarded(): ..."}


def suite(folder: Path, **changed: Any) -> Path:
    document = {
        "name": "seed",
        "trials": 4,
        "judge": "openai/judge-1",
        "rubric": [{"name": "integrity"}],
        "tasks": [{"id": "t", "language": "python", "snippets": WORK}],
        **changed,
    }
    path = folder / "seed.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


def answer(call: Call) -> str:
    """Give 9 to the guarded function and 2 to the other; write of both as judges do, by noun and
    label.
    """
    label_of = {
        work: label
        for label, work in re.findall(r'label="(\w+)">\s*`{3,}python\n(.*)', call.prompt)
    }
    scores = {WORK["Candidate A"]: 9, WORK["Candidate B"]: 2}
    grades = {
        f"Candidate {label}": {
            "integrity": {
                "score": scores[work],
                "reason": f"Sees `{work[4:-7]}`.",
                "evidence": [work],
            }
        }
        for work, label in label_of.items()
    }
    report = " ".join(
        f"Candidate {label} calls `{work[4:-7]}`." for work, label in label_of.items()
    )
    return json.dumps({"candidates": grades, "report": report})


@pytest.mark.parametrize("mode", ["joint", "each"])
def test_scores_reach_the_candidate_that_the_label_hides(
    assay: Command, server: ModelServer, project: Path, mode: str
) -> None:
    server.answer = answer
    assert (
        assay("run", suite(project, judge={"model": "openai/judge-1", "mode": mode}), "--json").code
        == 0
    )
    assert {
        label for call in server.calls for label in re.findall(r'label="(\w+)"', call.prompt)
    } <= {"C", "D"}
    for row in assay("review", "list", "--json").document["assessments"]:
        assert row["scores"] == {
            name: {"Candidate A": 0.9, "Candidate B": 0.2}[name] for name in row["candidates"]
        }
        assert row["flags"] == []


def test_a_blind_page_shows_the_labels_and_hides_the_names(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = lambda call: answer(call).replace("Sees", "Signed by candidate B. Sees", 1)
    assert assay("run", suite(project, trials=1), "--json").code == 0
    with (
        Workspace.open(project) as workspace,
        TestClient(create_app(workspace), base_url=HOME) as client,
    ):
        item = client.get("/api/assessments/a1").json()
        assert [pane["label"] for pane in item["panes"]] == ["Candidate C", "Candidate D"]
        assert "Candidate C" in json.dumps(item["report"])
        assert "▒▒▒ calls" not in json.dumps(item["report"])
        assert f"Signed by {HIDDEN_NAME}" in json.dumps(item["criteria"], ensure_ascii=False)
        assert not re.search("candidate [AB]", json.dumps(item), re.IGNORECASE)


def test_no_label_is_the_name_of_another_candidate(assay: Command, project: Path) -> None:
    rows = [f"t,{name},1,0.5,strict" for name in ("Candidate A", "Candidate B", "Candidate C")]
    (project / "scores.csv").write_text(
        "\n".join(["task,candidate,trial,score,judge", *rows]), "utf-8"
    )
    assert assay("import", "scores.csv", "--json").code == 0
    with (
        Workspace.open(project) as workspace,
        TestClient(create_app(workspace), base_url=HOME) as client,
    ):
        items = client.get("/api/review/next?desk=desk-1&limit=5").json()["items"]
    assert [[pane["label"] for pane in item["panes"]] for item in items] == [["Candidate D"]] * 3
