"""A run pauses itself when its calls cannot succeed, and goes on where it stopped."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import assay as library
from assay.engine.asking import MAX_FIRST_CALLS
from tests.journey.conftest import Command
from tests.support.model_server import Mishap, ModelServer


def suite_of(project: Path, tasks: int) -> Path:
    lines = [
        "name: s",
        "parameters: {max_tokens: 100}",
        "candidates: [{model: openai/m}]",
        "tasks:",
    ]
    lines += [
        f"  - {{id: t{n}, prompt: 'Say {n}.', expected: 'yes', score: exact}}" for n in range(tasks)
    ]
    path = project / "s.yaml"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.mark.parametrize("concurrency", [1, 5, 50])
@pytest.mark.parametrize(
    "mishap", [Mishap.HTTP_401, Mishap.HTTP_403, Mishap.HTTP_404, Mishap.NO_QUOTA]
)
def test_a_fatal_error_costs_no_more_requests_than_may_run_at_once(
    assay: Command, server: ModelServer, project: Path, concurrency: int, mishap: Mishap
) -> None:
    server.faults(1.0, [mishap])
    ran = assay("run", suite_of(project, 2_000), "--concurrency", concurrency, "--json")
    assert 1 <= len(server.calls) <= concurrency
    document = ran.document
    assert (ran.code, document["state"], document["failures"], document["causes"]) == (
        1,
        "paused",
        [],
        [],
    )
    assert document["trials"]["pending"] == document["trials"]["total"] == 2_000
    assert document["paused"]["model"] == "openai/m"
    assert (
        document["paused"]["remedy"]
        == f"After fixing it, continue with: assay resume {document['run_id']}"
    )


def test_a_paused_run_says_why_and_goes_on_after_the_fix(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.faults(1.0, [Mishap.HTTP_401])
    ran = assay("run", suite_of(project, 30))
    (line,) = re.findall(r"^  paused, because further calls .*$", ran.out, re.M)
    assert "401" in line
    (run,) = re.findall(r"continue with: assay resume (\S+)$", ran.out, re.M)
    shown = assay("show", run, "--json").document
    assert shown["state"] == "paused"
    assert shown["paused"]["kind"] == "http_401"
    assert "assay resume" in assay("show", run).out
    server.faults(0.0, [])
    server.forget()
    again = assay("resume", run, "--json")
    assert (again.code, again.document["trials"]["done"], again.document["paused"]) == (0, 30, None)
    assert len(server.calls) == 30


def test_a_task_that_alone_meets_a_fatal_error_does_not_pause_the_run(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.script([Mishap.OK, Mishap.HTTP_404])
    ran = assay("run", suite_of(project, 20), "--json")
    assert (ran.code, ran.document["state"], len(server.calls)) == (1, "finished", 20)
    (cause,) = ran.document["causes"]
    assert (cause["kind"], cause["trials"], len(ran.document["failures"])) == ("http_404", 1, 1)


def test_a_key_that_is_withdrawn_pauses_the_run_soon(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.script([*[Mishap.OK] * 20, *[Mishap.HTTP_401] * 200])
    ran = assay("run", suite_of(project, 100), "--concurrency", 4, "--json")
    assert (ran.code, ran.document["state"]) == (1, "paused")
    assert len(server.calls) <= 20 + 5 + 3
    assert ran.document["trials"]["done"] == 20


def test_a_refused_connection_pauses_the_run(
    assay: Command, server: ModelServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setattr("assay.engine.asking.LONGEST_WAIT_S", 0.0)
    ran = assay("run", suite_of(project, 50), "--json")
    assert (ran.code, ran.document["state"], ran.document["paused"]["kind"]) == (
        1,
        "paused",
        "connection",
    )
    shown = assay("show", ran.document["run_id"], "--json").document
    assert shown["calls"] == MAX_FIRST_CALLS
    assert ran.document["trials"]["failed"] == 0


def test_a_command_that_does_not_exist_pauses_the_run(assay: Command, project: Path) -> None:
    path = project / "c.yaml"
    tasks = [{"id": f"t{n}", "prompt": "x", "expected": "y", "score": "exact"} for n in range(50)]
    candidate = {"name": "bot", "command": ["sh", "-c", "no-such-program-xyz"]}
    path.write_text(json.dumps({"name": "c", "candidates": [candidate], "tasks": tasks}), "utf-8")
    ran = assay("run", path, "--json")
    assert ran.code == 1, ran.out + ran.err
    assert (ran.document["state"], ran.document["paused"]["kind"]) == ("paused", "exit_127")
    assert ran.document["paused"]["fault"] == "harness"
    assert "if you change the suite, run it again" in ran.document["paused"]["remedy"]
    assert ran.document["trials"]["pending"] == 50


def test_a_paused_run_says_why_in_python(server: ModelServer, project: Path) -> None:
    server.faults(1.0, [Mishap.HTTP_401])
    result = library.run(suite_of(project, 20))
    assert result.failures == ()
    assert (
        "0 of 20 trials done; paused, because further calls would probably fail as 1 call did: "
        in repr(result)
    )


def test_failures_are_listed_once_per_cause(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.faults(1.0, [Mishap.REFUSAL])
    ran = assay("run", suite_of(project, 30))
    assert len(re.findall(r"^  failed: ", ran.out, re.M)) == 1
    assert re.search(
        r"^  failed: refused \(refusal\): .* \(30 trials, such as t\d+, t0 trial 1\)$",
        ran.out,
        re.M,
    )


def test_a_spent_budget_pauses_the_run(assay: Command, server: ModelServer, project: Path) -> None:
    (project / "assay.yaml").write_text(
        "prices:\n  openai/m: {input: 1000, output: 1000}\n", "utf-8"
    )
    path = suite_of(project, 200)
    ran = assay("run", path, "--budget", "1", "--json")
    document = ran.document
    assert (ran.code, document["state"], document["failures"]) == (1, "paused", [])
    assert document["paused"]["kind"] == "budget"
    assert document["trials"]["done"] + document["trials"]["pending"] == 200
    assert document["cost_usd"] <= 1
    enough = document["budget"]["enough_usd"]
    remaining = document["remaining"]
    assert remaining["answered_calls"] == document["trials"]["done"] >= 50
    assert remaining["total_usd"] == pytest.approx(
        200 * document["cost_usd"] / document["trials"]["done"]
    )
    assert assay("show", document["run_id"], "--json").document["remaining"] == remaining
    assert "the rest costs about $" in assay("show", document["run_id"]).out
    assert document["paused"]["remedy"].endswith(
        f"assay resume {document['run_id']} --budget {enough:g}"
    )
    again = assay("resume", document["run_id"], "--budget", enough, "--json")
    assert (again.code, again.document["state"], again.document["trials"]["done"]) == (
        0,
        "finished",
        200,
    )
    whole = again.document["cost_usd"]
    assert whole <= enough <= 2 * whole, "the advice is built on what calls really cost"
