"""Batches of agents' trials: started, shown, killed and resumed."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.journey.conftest import Command, start
from tests.journey.test_task_tests import _no_sandbox_works


@pytest.mark.slow
def test_iterations_are_trials_of_one_batch(assay: Command) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    assay("init", "--scenario", "agents/mine")
    result = assay(
        "bench", "agents", "mine", "--tier", "L0", "--agent", "solution", "--iterations", "3"
    )
    assert "3 trials, all successful, average 1.000" in result.out
    (run,) = json.loads(assay("runs", "--json").out)["runs"]
    batch = run["batch_id"]
    assert batch.startswith("batch_")
    assert batch in result.out
    assay("bench", "agents", "mine", "--tier", "L1", "--agent", "echo", "--batch-id", batch)
    shown = assay("show", batch).out
    assert "4 trials, 3 successful, average 0.800" in shown
    document = json.loads(assay("show", batch, "--json").out)
    assert sorted(
        (trial["agent"], trial["trial"], trial["success"]) for trial in document["agent_trials"]
    ) == [("echo", 1, False), ("solution", 1, True), ("solution", 2, True), ("solution", 3, True)]
    assert len(document["runs"]) == 2


def test_batch_of_received_runs_has_their_scores_and_success(assay: Command, project: Path) -> None:
    received = {
        "batchId": "theirs",
        "suite": "s",
        "scenario": "deps",
        "tier": "L1",
        "agent": "a",
        "status": "completed",
    }
    rows = [
        {
            **received,
            "runId": f"run_{n}",
            "evaluations": [{"evaluatorName": "build", "score": score, "weight": 1}],
        }
        for n, score in enumerate((0.85, 0.87, 0.84))
    ]
    path = project / "runs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assert assay("import", path).code == 0
    assert "3 trials, all successful, average 0.853" in assay("show", "theirs").out
    (first, *_) = json.loads(assay("show", "theirs", "--json").out)["agent_trials"]
    assert (
        first["scenario"],
        first["tier"],
        first["score"],
        first["seconds"],
        first["tool_calls"],
    ) == ("deps", "L1", 0.85, None, None)
    path.write_text(
        json.dumps({**rows[0], "runId": "failed", "batchId": "other", "isSuccessful": False}),
        "utf-8",
    )
    assert assay("import", path).code == 0
    assert "1 trial, 0 successful, average 0.850" in assay("show", "other").out


@pytest.mark.slow
def test_killed_batch_is_finished_by_resume(assay: Command, project: Path) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    assay("init", "--scenario", "agents/mine")
    solved = 'return "Hello, " + (name.strip() or "world") + "!"'
    agent = f"slow=cmd: sleep 0.5; sed -i 's/raise NotImplementedError/{solved}/' greeting.py"
    process = start(
        "bench",
        "agents",
        "mine",
        "--tier",
        "L0",
        "--agent",
        agent,
        "--iterations",
        "6",
        "--batch-id",
        "b",
    )
    until = time.monotonic() + 60
    while True:
        runs = json.loads(assay("runs", "--json").out)["runs"]
        if runs and 1 <= runs[0]["trials"]["done"] < 6:
            break
        assert time.monotonic() < until, "no trial was done in time"
        assert process.poll() is None, "the run was done before it could be killed"
        time.sleep(0.05)
    process.kill()
    process.wait()
    killed = assay("show", "b").out
    assert "without a score" in killed
    assert assay("resume", runs[0]["run_id"]).code == 0
    assert "6 trials, all successful, average 1.000" in assay("show", "b").out
    document = json.loads(assay("show", "b", "--json").out)
    assert sorted(trial["trial"] for trial in document["agent_trials"]) == [1, 2, 3, 4, 5, 6]
    assert document["runs"][0]["trials"]["failed"] == 0
