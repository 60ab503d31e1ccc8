"""Benchmark mode, and a record that holds all one needs to repeat a run."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.journey.conftest import Command
from tests.support.model_server import ModelServer

OWN = {
    "temperature": 0.9,
    "top_p": 0.8,
    "frequency_penalty": 0.5,
    "presence_penalty": -0.5,
    "max_tokens": 300,
}


def suite(folder: Path, **changed: Any) -> Path:
    """Two models, one with parameters of its own, and a judge that grades each."""
    document = {
        "name": "talk",
        "trials": 3,
        "parameters": {**OWN, "seed": 11},
        "system_prompt": "Be brief.",
        "candidates": [
            {"name": "plain", "model": "openai/plain"},
            {"name": "hot", "model": "openai/hot", "parameters": {"temperature": 1.5}},
        ],
        "judge": {"model": "openai/judge-1", "mode": "each", "temperature": 0.2},
        "tasks": [{"id": "t", "prompt": "Talk."}],
        **changed,
    }
    path = folder / "talk.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


def sent(server: ModelServer, model: str) -> list[dict[str, Any]]:
    return [call.body for call in server.calls if call.body["model"] == model]


def test_benchmark_mode_sends_zeros_and_seeds_but_keeps_user_values(
    assay: Command, server: ModelServer, project: Path
) -> None:
    path = suite(project)
    text = path.read_text("utf-8")
    assert assay("run", path, "--benchmark").code == 0
    seeds: dict[str, set[int]] = {}
    for model in ("plain", "hot"):
        for body in sent(server, model):
            assert (
                body["temperature"],
                body.get("frequency_penalty", 0),
                body.get("presence_penalty", 0),
            ) == (0, 0, 0)
            assert body["top_p"] == 0.8
            seeds.setdefault(model, set()).add(body["seed"])
    assert all(len(of_model) == 3 for of_model in seeds.values())
    assert {body["temperature"] for body in sent(server, "judge-1")} == {0.2}
    server.forget()
    assert path.read_text("utf-8") == text
    assert assay("run", path).code == 0
    for model, temperature in (("plain", 0.9), ("hot", 1.5)):
        for body in sent(server, model):
            assert body["temperature"] == temperature
            assert (body["frequency_penalty"], body["presence_penalty"]) == (0.5, -0.5)
            # the run seed is fixed by the suite, so the trials' seeds are as well
            assert body["seed"] in seeds[model]


def test_run_record_names_prompts_models_and_graders(
    assay: Command, server: ModelServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "one", "--allow-empty")):
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        subprocess.run(["git", *who, *command], cwd=project, check=True)
    run = assay("run", suite(project), "--benchmark", "--json").document["run_id"]
    shown = assay("show", run, "--json").document
    bodies = {model: sent(server, model)[0] for model in ("plain", "hot", "judge-1")}
    for name in ("plain", "hot"):
        row = shown["asked_with"][name]
        assert row["model"] == f"openai/{name}"
        assert all(
            bodies[name].get(key, 0) == value
            for key, value in row["parameters"].items()
            if key != "max_tokens"
        )
        assert row["parameters"]["temperature"] == 0
        assert "seed" not in row["parameters"]
    judge = shown["judged_with"]["openai/judge-1"]
    assert judge["parameters"]["temperature"] == bodies["judge-1"]["temperature"] == 0.2
    assert len(judge["prompt_digest"]) == len(shown["rubric_digest"]) == 32
    assert shown["seed"] == 11
    assert shown["suite_digest"] == shown["suite_copy"]["digest"]
    assert shown["suite_copy"]["text"] == suite(project).read_text("utf-8")
    environment = shown["environment"]
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=project, check=True, capture_output=True, text=True
    ).stdout
    assert environment["git"] == {"commit": commit.strip(), "changed": False}
    endpoints = environment["endpoints"]
    assert (set(endpoints["candidates"]), set(endpoints["judges"])) == (
        {"plain", "hot"},
        {"openai/judge-1"},
    )
    assert all(
        address.startswith(server.url) for entry in endpoints.values() for address in entry.values()
    )
    assert environment["libraries"]["numpy"]
    assert "sk-never-to-be-seen" not in str(shown)


def test_secrets_in_an_address_are_not_recorded(
    assay: Command, server: ModelServer, project: Path
) -> None:
    secret = f"{server.url}?api-key=hush"
    candidates = [{"name": n, "model": f"openai/{n}", "base_url": secret} for n in ("plain", "hot")]
    run = assay("run", suite(project, candidates=candidates), "--json").document["run_id"]
    shown = assay("show", run, "--json").document
    assert "hush" not in str(shown["environment"])
    assert "hush" not in str(shown["asked_with"])
