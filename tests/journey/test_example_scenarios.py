"""The example scenarios: each can be solved, and is not solved at the start."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from assay.suites.scenarios import load_scenario
from tests.journey.conftest import Command
from tests.journey.test_task_tests import _no_sandbox_works

EXAMPLES = ("minimal", "bug-fix", "dependency-update", "migration", "refactoring")


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_example_has_four_tiers_an_oracle_and_a_solution(
    assay: Command, project: Path, example: str
) -> None:
    result = json.loads(
        assay("init", "--scenario", f"agents/{example}", "--example", example, "--json").out
    )
    folder = project / result["folder"]
    assert assay("validate", result["folder"]).out.endswith(": valid\n")
    loaded = load_scenario(folder, base=project)
    assert [task.id for task in loaded.tasks] == [f"{example}/L{level}" for level in range(4)]
    assert len({task.prompt for task in loaded.tasks}) == 4
    scenario = loaded.tasks[0].scenario
    assert scenario is not None
    assert scenario.answers
    assert scenario.baseline
    assert "tests/__init__.py" in scenario.protected_files
    changed = {
        path.relative_to(folder / "solution").as_posix()
        for path in (folder / "solution").rglob("*")
        if path.is_file()
    }
    assert changed.isdisjoint(scenario.protected_files), "a solution works without changes to tests"
    assert not any("solution" in path for path in scenario.files), "agents do not see it"


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_example_is_solved_by_its_solution_only(assay: Command, example: str) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    assay("init", "--scenario", f"agents/{example}", "--example", example)
    trials = ("--tier", "L0", "--agent", "echo", "--agent", "solution")
    document = json.loads(assay("bench", "agents", example, *trials, "--json").out)
    outcomes = {each["agent"]: each for each in document["agent_trials"]}
    assert (outcomes["solution"]["score"], outcomes["solution"]["success"]) == (1.0, True)
    assert outcomes["echo"]["score"] < 0.7
    assert outcomes["echo"]["success"] is False


def test_mistakes_with_a_new_scenario_are_named(assay: Command, project: Path) -> None:
    assert assay("init", "--scenario", "agents/mine").code == 0
    (project / "suites/agents/scenarios/mine/scenario.yaml").write_text("changed", "utf-8")
    again = assay("init", "--scenario", "agents/mine")
    assert (again.code, "exists already" in again.err) == (2, True)
    assert (project / "suites/agents/scenarios/mine/scenario.yaml").read_text("utf-8") == "changed"
    for words, problem in (
        (("--scenario", "mine"), "expected SUITE/NAME"),
        (("--scenario", "../x/y"), "expected SUITE/NAME"),
        (("--scenario", "agents/Mine"), "expected SUITE/NAME"),
        (("--scenario", "agents/other", "--example", "bugfix"), "Examples: bug-fix"),
        (("--scenario", "agents/other", "--rubric", "code"), "one scenario"),
        (("--example", "bug-fix"), "needs --scenario"),
    ):
        result = assay("init", *words)
        assert (result.code, problem in result.err) == (2, True), result.err
    assert not (project / "suites/agents/scenarios/other").exists()


def test_solution_that_is_missing_fails_the_trial_as_environment(
    assay: Command, project: Path
) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    assay("init", "--scenario", "agents/mine")
    (project / "suites/agents/scenarios/mine/solution/greeting.py").unlink()
    document = json.loads(
        assay("bench", "agents", "mine", "--tier", "L0", "--agent", "solution", "--json").out
    )
    (failure,) = document["failures"]
    assert (failure["kind"], failure["fault"]) == ("environment", "harness")
    assert "no recorded solution" in failure["detail"]


def test_solution_with_files_that_are_not_text_is_applied_byte_by_byte(
    assay: Command, project: Path
) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    assay("init", "--scenario", "agents/mine")
    folder = project / "suites/agents/scenarios/mine"
    contents = {
        "logo.png": b"\x89PNG\r\n\x1a\n\0\xff" * 20_000,
        "latin.txt": b"caf\xe9\n",
        "run.sh": b"#!/bin/sh\n",
    }
    for name, content in contents.items():
        (folder / "solution" / name).write_bytes(content)
    (folder / "solution" / "run.sh").chmod(0o755)
    digests = " ".join(f"{hashlib.sha256(content).hexdigest()}" for content in contents.values())
    command = f"test \"$(sha256sum {' '.join(contents)} | cut -d' ' -f1 | xargs)\" = '{digests}' && ./run.sh"
    text = (folder / "scenario.yaml").read_text("utf-8")
    (folder / "scenario.yaml").write_text(text.replace("python -m unittest -q", command), "utf-8")
    document = json.loads(
        assay("bench", "agents", "mine", "--tier", "L0", "--agent", "solution", "--json").out
    )
    assert document["agent_trials"][0]["evaluators"]["test"] == 1


def test_solution_that_cannot_be_applied_fails_the_trial(assay: Command, project: Path) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    assay("init", "--scenario", "agents/mine")
    (project / "suites/agents/scenarios/mine/solution/huge.bin").write_bytes(b"\0" * (4 << 20))
    document = json.loads(
        assay("bench", "agents", "mine", "--tier", "L0", "--agent", "solution", "--json").out
    )
    (failure,) = document["failures"]
    assert (failure["kind"], failure["fault"]) == ("environment", "harness")
    assert "huge.bin could not be applied" in failure["detail"]
