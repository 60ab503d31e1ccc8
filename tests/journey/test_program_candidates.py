"""Functions, commands and web services as candidates: run, stored, shown, resumed, and refused
where they may not start.
"""

from __future__ import annotations

import json
import stat
import sys
from typing import TYPE_CHECKING

import pytest

from assay.app.comparison.trial_answers import trial_answers
from assay.app.workspace import Workspace
from assay.domain.identifiers import shown_trial
from assay.domain.selection import Selection
from assay.plugin_registry import source_of
from assay.store.restore import _with_marked_programs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.journey.conftest import Command

APP = """
import os, time
def upper(prompt):
    print("thinking")
    return prompt.upper()
def fails(prompt):
    print("about to fail")
    return {}[prompt]
"""
SUITE = """
name: programs
candidates: [{candidate}]
tasks:
  - {{id: a, prompt: hello, expected: HELLO, score: {score}}}
  - {{id: b, prompt: there, expected: THERE, score: {score}}}
"""


@pytest.fixture
def folder(project: Path) -> Path:
    (project / "app.py").write_text(APP, "utf-8")
    agent = project / "agent.sh"
    agent.write_text('#!/bin/sh\necho "note" >&2\necho "$1" | tr a-z A-Z\n', "utf-8")
    agent.chmod(agent.stat().st_mode | stat.S_IXUSR)
    return project


def suite(folder: Path, candidate: str, score: str = "regex") -> str:
    (folder / "s.yaml").write_text(SUITE.format(candidate=candidate, score=score), "utf-8")
    return "s.yaml"


@pytest.mark.parametrize(
    "candidate",
    [
        '{name: c, python: "app.py:upper"}',
        '{name: c, command: ["./agent.sh", "{{prompt}}"]}',
        "{name: c, command: [tr, a-z, A-Z]}",
    ],
)
def test_a_program_is_asked_scored_and_free(assay: Command, folder: Path, candidate: str) -> None:
    document = assay("run", suite(folder, candidate), "--budget", "0.01", "--json").document
    assert document["trials"] == {**document["trials"], "total": 2, "done": 2, "failed": 0}
    assert document["cost_usd"] == 0
    (scored,) = assay("stats", "--json").document["candidates"]
    assert (scored["candidate"], scored["mean"]) == ("c", 1.0)


def test_a_prompt_of_its_own_reaches_a_program(assay: Command, folder: Path) -> None:
    candidate = '{name: c, command: [cat], prompt: "SAY {{prompt}}"}'
    run = assay("run", suite(folder, candidate), "--json").document["run_id"]
    with Workspace.open(folder) as workspace:
        texts = answers(workspace, run)
    assert texts == {"a": "SAY hello", "b": "SAY there"}


def test_a_program_holds_a_conversation(assay: Command, folder: Path) -> None:
    turns = "[hello, again]"
    (folder / "talk.yaml").write_text(
        "name: talk\ncandidates: [{name: c, python: 'app.py:upper'}]\n"
        f"tasks: [{{id: a, turns: {turns}, expected: HELLO, score: regex}}]\n",
        "utf-8",
    )
    run = assay("run", "talk.yaml", "--json").document["run_id"]
    with Workspace.open(folder) as workspace:
        (text,) = answers(workspace, run).values()
        assert "USER: HELLO\n\nASSISTANT: HELLO\n\nUSER: AGAIN" in str(text)
        (row,) = workspace.archive.trials.matching(Selection(runs=(run,)))
        assert workspace.archive.calls.program_logs(row.key) == {"c": "thinking\n"}


def answers(workspace: Workspace, run: str) -> dict[str, str | None]:
    """Return the one candidate's answers by task."""
    trials = workspace.archive.trials.matching(Selection(runs=(run,)))
    return {
        row.task: trial_answers(workspace.store, run, shown_trial(row.key)).answers[0][1].text
        for row in trials
    }


def test_a_failure_shows_its_traceback_and_its_output(assay: Command, folder: Path) -> None:
    output = assay("run", suite(folder, '{name: c, python: "app.py:fails"}'), "--json")
    assert output.code == 1
    first = output.document["failures"][0]
    assert (first["kind"], first["fault"]) == ("exception", "candidate")
    assert first["detail"].startswith("KeyError: 'hello' (app.py:")
    shown = assay("show", first["id"]).out
    assert "Printed by c:\nabout to fail\nTraceback (most recent call last):" in shown
    document = assay("show", first["id"], "--json").document
    assert document["failure"]["kind"] == "exception"
    assert document["logs"]["c"].startswith("about to fail\nTraceback")


def test_a_resume_refuses_a_changed_program(assay: Command, folder: Path) -> None:
    run = assay("run", suite(folder, '{name: c, python: "app.py:fails"}'), "--json").document[
        "run_id"
    ]
    (folder / "app.py").write_text(APP.replace("{}[prompt]", "prompt.upper()"), "utf-8")
    refused = assay("resume", run)
    assert refused.code == 2
    assert "has changed: app.py is not the file with which this run started" in refused.err
    (folder / "app.py").write_text(APP, "utf-8")
    assert assay("resume", run).code == 1


@pytest.mark.slow
def test_a_module_is_known_by_its_version_and_its_file(
    assay: Command,
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = tmp_path_factory.mktemp("site")
    (site / "acme").mkdir()
    (site / "acme" / "__init__.py").write_text("raise SystemExit('imported too early')", "utf-8")
    (site / "acme" / "bots.py").write_text(APP, "utf-8")
    known = site / "acme_bots-1.2.dist-info"
    known.mkdir()
    (known / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme-bots\nVersion: 1.2\n", "utf-8"
    )
    (known / "top_level.txt").write_text("acme\n", "utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    assert source_of("acme.bots", str(folder)).startswith("acme-bots 1.2, ")
    assert source_of("acme.nothing", str(folder)) == ""
    (site / "acme" / "__init__.py").write_text("", "utf-8")
    run = assay("run", suite(folder, '{name: c, python: "acme.bots:fails"}'), "--json").document[
        "run_id"
    ]
    (known / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: acme-bots\nVersion: 1.3\n", "utf-8"
    )
    refused = assay("resume", run)
    assert refused.code == 2
    assert "the run started with acme-bots 1.2, " in refused.err
    (site / "acme" / "bots.py").write_text(f"{APP}# changed\n", "utf-8")
    assay("run", "s.yaml")
    assert "same_name" in [
        warning["code"] for warning in assay("stats", "--all-runs", "--json").document["warnings"]
    ]


def test_candidates_of_one_name_and_two_programs_are_told_apart(
    assay: Command, folder: Path
) -> None:
    assay("run", suite(folder, '{name: c, python: "app.py:upper"}'))
    (folder / "app.py").write_text(f"{APP}# changed\n", "utf-8")
    assay("run", "s.yaml")
    codes = [
        warning["code"] for warning in assay("stats", "--all-runs", "--json").document["warnings"]
    ]
    assert "same_name" in codes


@pytest.mark.parametrize("key", ["program", r"pr\\u006fgram"])
def test_an_imported_run_starts_no_program(
    assay: Command, folder: Path, tmp_path_factory: pytest.TempPathFactory, key: str
) -> None:
    run = assay("run", suite(folder, '{name: c, python: "app.py:fails"}'), "--json").document[
        "run_id"
    ]
    record = folder / "results" / "_assay" / f"{run}.jsonl"
    record.write_text(record.read_text("utf-8").replace(r"\"program\":", rf"\"{key}\":"), "utf-8")
    other = tmp_path_factory.mktemp("other")
    store = f"sqlite:///{other}/assay.db"
    assert assay("import", folder / "results", "--rebuild", "--store", store).code == 0
    refused = assay("resume", run, "--store", store)
    assert refused.code == 2
    assert "comes from an imported file" in refused.err


def test_local_only_needs_the_word_of_the_author(assay: Command, folder: Path) -> None:
    (folder / "assay.yaml").write_text("local_only: true\n", "utf-8")
    refused = assay("run", suite(folder, '{name: c, python: "app.py:upper"}'))
    assert refused.code == 2
    assert "`offline: true`" in refused.err
    assert assay("run", suite(folder, '{name: c, python: "app.py:upper", offline: true}')).code == 0


def test_a_missing_program_is_refused_before_the_run(assay: Command, folder: Path) -> None:
    for words, message in (
        ('["./nothing.sh"]', "names ./nothing.sh, which is not a file"),
        ('["./app.py"]', "which may not be executed"),
        ("[no-such-program-here]", "which is not on the PATH"),
    ):
        refused = assay("run", suite(folder, f"{{name: c, command: {words}}}"))
        assert refused.code == 2
        assert message in refused.err
    assert assay("runs", "--json").document["runs"] == []


@pytest.mark.slow
def test_hundreds_of_prompts_run_fifty_at_once(assay: Command, folder: Path) -> None:
    rows = [{"id": f"t{n}", "prompt": f"say {n}", "expected": f"SAY {n}"} for n in range(300)]
    (folder / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    for candidate in ('{name: c, python: "app.py:upper"}', "{name: c, command: [tr, a-z, A-Z]}"):
        text = (
            f"name: many\ncandidates: [{candidate}]\nscore: regex\ntasks: {{file: tasks.jsonl}}\n"
        )
        (folder / "many.yaml").write_text(text, "utf-8")
        document = assay("run", "many.yaml", "--concurrency", "50", "--json").document
        assert document["trials"]["done"] == 300
        (scored,) = assay("stats", "--run", document["run_id"], "--json").document["candidates"]
        assert (scored["mean"], scored["n_trials"]) == (1.0, 300)


def test_a_program_of_an_imported_user_is_marked_too() -> None:
    plan = {"candidates": [], "judges": [], "user": {"model": {"program": {"kind": "command"}}}}
    assert (
        json.loads(_with_marked_programs(json.dumps(plan).encode()))["user"]["model"]["program"][
            "restored"
        ]
        is True
    )
