"""The pytest plugin as a project uses it: tests that run suites, in a process of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import assay
from assay.app.python_api.demands import Demands, verdict_on
from tests.journey.conftest import Command

TESTS = """
import assay

def tasks(*answers):
    return [
        assay.Task(id=f"t{i}", prompt=f"{i}?", expected="^Lima$", snippets={"bot": answer})
        for i, answer in enumerate(answers)
    ]

def test_good(assay_run):
    run = assay_run(assay.Suite(name="good", tasks=tasks("Lima"), score="regex", trials=2), at_least=0.9)
    assert run.stats().estimates[0].mean == 1.0

def test_bad(assay_run):
    assay_run(assay.Suite(name="bad", tasks=tasks("Lima", "Cusco"), score="regex"), at_least={"BOT": 0.75})

def test_from_file(assay_run):
    assay_run("suite.yaml", at_least=0.5)

def test_wrong(assay_run):
    assay_run({"name": "wrong", "trails": 3, "tasks": tasks("Lima"), "score": "regex"})

def test_without():
    pass
"""
SUITE = 'name: filed\nscore: regex\ntasks:\n  - {id: t, prompt: "?", expected: "^1$", snippets: {bot: "1"}}\n'
UNUSED = """
import sys

def test_nothing():
    heavy = {"numpy", "sqlalchemy", "pydantic", "aiohttp", "scipy", "cloudpickle", "assay.app", "assay.domain"}
    assert not heavy & sys.modules.keys()
"""


def documented_test() -> str:
    """The example of the documentation."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "use-pytest-and-ci.md").read_text(
        "utf-8"
    )
    return page.partition("```python\n")[2].partition("```")[0]


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with this plugin and no other, installed or not."""
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "assay.pytest_plugin",
            "-p",
            "no:cacheprovider",
            *options,
        ],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_tests_run_suites_and_report_verdicts(assay: Command, project: Path) -> None:
    (project / "tests").mkdir()
    (project / "pytest.ini").write_text("[pytest]\n", "utf-8")
    (project / "tests" / "test_bot.py").write_text(TESTS, "utf-8")
    (project / "tests" / "suite.yaml").write_text(SUITE, "utf-8")
    ended = run_pytest(project, "--assay-batch", "main", "--junit-xml", "report.xml")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "3 passed" in ended.stdout
    assert "2 failed" in ended.stdout
    assert "suite 'wrong' trails: is an unknown key. Did you mean 'trials'?" in ended.stdout
    assert "bot scores 50.0, below 75.0." in ended.stdout
    assert "Traceback" not in ended.stdout
    runs = {run["suite"]: run for run in assay("runs", "--json").document["runs"]}
    assert set(runs) == {"good", "bad", "filed"}
    assert {run["batch_id"] for run in runs.values()} == {"main"}
    summary = ended.stdout.partition(" assay =")[2]
    assert f"passed tests/test_bot.py::test_good · run {runs['good']['run_id']}" in summary
    assert f"failed tests/test_bot.py::test_bad · run {runs['bad']['run_id']}" in summary
    assert "test_without" not in summary.partition("short test summary")[0]
    cases = ElementTree.parse(project / "report.xml").getroot().iter("testcase")
    recorded = {
        case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")}
        for case in cases
    }
    assert recorded["test_good"]["assay_run"] == runs["good"]["run_id"]
    assert re.match(r"bot: 100", recorded["test_good"]["assay_verdict"] or "")
    assert recorded["test_good"]["assay_approvals"] == "none approved by a person"
    assert "  none approved by a person\n" in summary
    assert recorded["test_without"] == {}


@pytest.mark.slow
def test_documented_test_passes_and_fails_by_its_threshold(project: Path) -> None:
    (project / "test_bot.py").write_text(documented_test(), "utf-8")
    ended = run_pytest(project)
    assert "1 passed, 1 failed" in ended.stdout or "1 failed, 1 passed" in ended.stdout, (
        ended.stdout
    )
    assert "hasty scores 50.0, below 90.0." in ended.stdout


def test_plugin_loads_nothing_until_it_is_used(project: Path) -> None:
    (project / "test_unused.py").write_text(UNUSED, "utf-8")
    ended = run_pytest(project)
    assert ended.returncode == 0, ended.stdout
    assert "assay" not in ended.stdout


def ran(*answers: str, **more: object) -> assay.CompletedRun:
    tasks = [
        {
            "id": f"t{i}",
            "prompt": f"{i}?",
            "expected": "^Lima$",
            "snippets": {"bot": answer, "old": "Lima"},
        }
        for i, answer in enumerate(answers)
    ]
    return assay.run({"name": "bots", "trials": 2, "score": "regex", "tasks": tasks, **more})


def test_demands_name_low_tasks_and_the_next_step(project: Path) -> None:
    completed = ran("Lima", "Cusco")
    verdict = verdict_on(completed, Demands(at_least=0.75))
    assert not verdict.passed
    lines = verdict.text.splitlines()
    assert lines[0] == "bot scores 50.0, below 75.0."
    assert lines[1].strip().startswith("t1")
    assert lines[-1] == f"See: assay show {completed.id}"
    assert verdict_on(completed, Demands(at_least={"bot": 0.5, "old": 1.0})).passed
    assert verdict_on(completed, Demands()).passed
    with pytest.raises(assay.InputError, match=r"there is no candidate 'bto'\. Did you mean 'bot'"):
        verdict_on(completed, Demands(at_least={"bto": 0.5}))
    with pytest.raises(assay.InputError, match="at_least: is 80, expected a score from 0 to 1"):
        verdict_on(completed, Demands(at_least=80))


def test_demands_gate_against_a_candidate_or_earlier_runs(project: Path) -> None:
    first = ran(*["Lima"] * 7)
    gate = verdict_on(first, Demands(against="old", margin=0.35))
    assert gate.passed
    assert gate.text.startswith("Gate passed: bot is not worse than old by more than 35 points.")
    few = Demands(against="old", margin=0.03, on_undecided="fail")
    assert not verdict_on(first, few).passed
    worse = ran(*["Cusco"] * 7)
    verdict = verdict_on(worse, Demands(candidate="bot", baseline=first.id, margin=0.03))
    assert not verdict.passed
    assert verdict.text.startswith(
        f"Gate failed: bot is shown to be worse than bot in {first.id}, and may be more than 3 points worse."
    )
    assert verdict_on(worse, Demands(candidate="old", baseline=first.id, margin=0.03)).passed
    with pytest.raises(assay.InputError, match="Choose the candidate to test: bot, old"):
        verdict_on(worse, Demands(baseline=first.id, margin=0.03))


def test_grades_that_wait_for_review_do_not_pass(project: Path) -> None:
    tasks = [{"id": "t", "context": "c", "snippets": {"bot": "a", "old": "b"}}]
    completed = assay.run({"name": "people", "judge": "human", "rubric": ["good"], "tasks": tasks})
    verdict = verdict_on(completed, Demands(at_least=0.1))
    assert not verdict.passed
    assert verdict.text.startswith("bot has no score, but 10.0 is required: ")
    assert verdict.text.endswith(f"See: assay review --run {completed.id}")


def test_vetted_demands_refuse_grades_that_no_person_approved_on_screen(project: Path) -> None:
    tasks = [{"id": "t", "context": "c", "snippets": {"bot": "a", "old": "b"}}]
    suite = {"name": "people", "judge": "human", "rubric": ["good"], "tasks": tasks}
    completed = assay.run(suite)
    for row in completed.pending():
        assay.review.correct(f"a{row.key}", dict.fromkeys(row.candidates, 0.5), reason="read")
    verdict = verdict_on(completed, Demands(at_least=0.1))
    assert verdict.passed
    assert re.fullmatch(r"(\d) approved: \1 by script", verdict.approvals)
    with pytest.raises(assay.InputError, match="by script") as refused:
        verdict_on(completed, Demands(at_least=0.1, require="vetted"))
    assert "count_scripted: true" in str(refused.value)
    ruled = ran("Lima")
    assert verdict_on(ruled, Demands(require="vetted")).approvals == "none approved by a person"


def test_failed_trials_fail_a_test_unless_it_allows_them(project: Path) -> None:
    def broken(response: str) -> float:
        raise ValueError("no idea")

    completed = ran("Lima", score=broken)
    verdict = verdict_on(completed, Demands())
    assert not verdict.passed
    assert verdict.text.startswith("2 trials failed; allowed: 0.")
    assert "no idea" in verdict.text
    assert verdict_on(completed, Demands(most_failed=2)).passed
