"""A run's record states what happened: the command as it was typed, and only parameters, criteria
and times that are known.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from fastapi.testclient import TestClient

from assay.app.workspace import Workspace
from assay.web.server import create_app
from tests.support.model_server import ModelServer, Said

if TYPE_CHECKING:
    from pathlib import Path

    from tests.journey.conftest import Command

SECRET = "hf_Zq81vLw0Xy72TtPa"
SUITE = """
name: small
candidates: [{name: echoing, model: echo}]
score: exact
tasks:
  - {id: one, prompt: "yes", expected: "yes"}
"""


def test_a_run_records_its_command_as_it_was_typed_without_secrets(
    assay: Command, project: Path
) -> None:
    (project / "small.yaml").write_text(SUITE, "utf-8")
    done = assay("run", "small.yaml", "--trials", 2, "--batch-id", SECRET, "--json")
    assert done.code == 0, done.err
    typed = "assay run small.yaml --trials 2 --batch-id *** --json"
    shown = assay("show", done.document["run_id"], "--json").document
    assert shown["environment"]["command"] == typed
    (meta,) = (project / "results").rglob("*.meta.json")
    assert json.loads(meta.read_text("utf-8"))["execution"]["command"] == typed
    assert typed in assay("show", done.document["run_id"]).out
    assert assay("export", "json").document["runs"][0]["environment"]["command"] == typed


@pytest.mark.parametrize("rubric", ["", "rubric: [{name: integrity, guidance: Keep the rules.}]\n"])
def test_a_run_that_only_scorers_graded_lists_no_criteria(
    assay: Command, project: Path, rubric: str
) -> None:
    (project / "small.yaml").write_text(SUITE.replace("tasks:", f"{rubric}tasks:"), "utf-8")
    run = assay("run", "small.yaml", "--json").document["run_id"]
    assert assay("show", run, "--json").document["rubric"] == []
    assert "rubric digest" not in assay("show", run).out
    assert assay("export", "json").document["runs"][0]["rubric"] == []
    (meta,) = (project / "results").rglob("*.meta.json")
    assert json.loads(meta.read_text("utf-8"))["dataset"]["criteria"] == {}


def test_a_judged_run_that_ended_without_a_grade_lists_no_criteria(
    assay: Command, server: ModelServer, project: Path
) -> None:
    candidates = "candidates: [openai/asked]\njudge: {model: openai/judge-1, mode: each}"
    judged = SUITE.replace("candidates: [{name: echoing, model: echo}]\nscore: exact", candidates)
    (project / "small.yaml").write_text(judged, "utf-8")
    server.answer = lambda call: Said(finish="content_filter")
    run = assay("run", "small.yaml", "--json").document["run_id"]
    shown = assay("show", run, "--json").document
    assert not any(shown["assessments"].values())
    assert shown["rubric"] == []


def test_a_run_lists_only_parameters_that_its_requests_contained(
    assay: Command, server: ModelServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-never-to-be-seen")
    candidates = "[{name: echoing, model: echo}, {name: asked, model: openai/asked}, {name: other, model: anthropic/other}]"
    (project / "three.yaml").write_text(
        SUITE.replace("[{name: echoing, model: echo}]", candidates), "utf-8"
    )
    run = assay("run", "three.yaml", "--json").document["run_id"]
    shown = assay("show", run, "--json").document
    sent = {call.body["model"]: call.body for call in server.calls}
    assert shown["asked_with"]["echoing"]["parameters"] == {}
    for name in ("asked", "other"):
        listed = shown["asked_with"][name]["parameters"]
        assert listed
        assert all(sent[name][key] == value for key, value in listed.items()), name
        assert not (shown["parameters"].keys() - listed.keys()) & sent[name].keys()
    assert "frequency_penalty" not in shown["asked_with"]["other"]["parameters"]

    (project / "small.yaml").write_text(SUITE, "utf-8")
    echoed = assay("run", "small.yaml", "--json").document["run_id"]
    assert assay("show", echoed, "--json").document["parameters"] == {}
    assert "parameters" not in assay("show", echoed).out


def test_an_imported_start_says_that_it_is_the_date_of_the_file(
    assay: Command, project: Path
) -> None:
    (project / "scores.csv").write_text("task,candidate,score\na,x,1\nb,x,0\n", "utf-8")
    os.utime(project / "scores.csv", (1_700_000_000, 1_700_000_000))
    assert assay("import", "scores.csv").code == 0
    (row,) = assay("runs", "--json").document["runs"]
    assert (row["started"][:10], row["started_from"]) == ("2023-11-14", "file_mtime")
    shown = assay("show", row["run_id"], "--json").document
    assert shown["started_from"] == "file_mtime"
    words = "taken from the file's date"
    for command in (("runs",), ("show", row["run_id"])):
        assert words in assay(*command).out
    (meta,) = (project / "results").rglob("*.meta.json")
    assert json.loads(meta.read_text("utf-8"))["execution"]["started_from"] == "file_mtime"
    with (
        Workspace.open(project) as workspace,
        TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as client,
    ):
        for address in (f"/runs/{row['run_id']}", f"/runs/{row['run_id']}/record"):
            assert words in client.get(address).text.replace("&#39;", "'")

    (project / "small.yaml").write_text(SUITE, "utf-8")
    run = assay("run", "small.yaml", "--json").document["run_id"]
    shown = assay("show", run, "--json").document
    assert shown["started_from"] is None
    assert words not in assay("show", run).out
