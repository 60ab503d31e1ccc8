"""A run's record states what happened: the command as it was typed, and only parameters, criteria and times that are known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

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


def test_a_run_records_its_command_as_it_was_typed_without_secrets(assay: Command, project: Path) -> None:
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


def test_a_run_that_only_scorers_graded_lists_no_criteria(assay: Command, project: Path) -> None:
    (project / "small.yaml").write_text(SUITE, "utf-8")
    run = assay("run", "small.yaml", "--json").document["run_id"]
    assert assay("show", run, "--json").document["rubric"] == []
    assert "rubric digest" not in assay("show", run).out
    assert assay("export", "json").document["runs"][0]["rubric"] == []
    (meta,) = (project / "results").rglob("*.meta.json")
    assert json.loads(meta.read_text("utf-8"))["dataset"]["criteria"] == {}


def test_a_judged_run_that_ended_without_a_grade_lists_no_criteria(assay: Command, server: ModelServer, project: Path) -> None:
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
    (project / "three.yaml").write_text(SUITE.replace("[{name: echoing, model: echo}]", candidates), "utf-8")
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
