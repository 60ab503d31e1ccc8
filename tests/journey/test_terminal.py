"""Runs and reports in the terminal: output, and the ids and names a person may type."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from assay.domain.errors import StoreError
from assay.domain.run import Entry
from assay.store.execution.journal import StoreJournal
from tests.journey.conftest import Command
from tests.support.model_server import Mishap, ModelServer
from tests.support.sets import NAMES, write_set

JUDGE = "openai/judge-1"
ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m"


def test_a_run_is_shown_with_its_trials_and_why_one_failed(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.script([Mishap.HTTP_400, Mishap.HTTP_400])
    output = assay(
        "run",
        write_set(project, things=1, trials=2),
        "--judge",
        JUDGE,
        "--concurrency",
        "1",
        "--json",
    )
    shown = assay("show", output.document["run_id"])
    assert shown.code == 0, shown.err
    assert "1 of 2" in shown.out
    assert "t1 " in shown.out
    assert "(harness)" in shown.out


def test_escape_sequences_of_code_and_judge_never_reach_the_terminal(
    assay: Command, server: ModelServer, project: Path
) -> None:
    things = [
        {
            "thingName": "Service",
            "context": "",
            "language": "python",
            "trialsNeeded": 1,
            "snippets": [{"name": name, "content": f"# {name}{ESCAPE}\n"} for name in NAMES],
        }
    ]
    (project / "set.json").write_text(json.dumps(things), "utf-8")
    answer = server.answer
    server.answer = lambda call: str(answer(call)).replace("The ", f"The {ESCAPE}")
    for command in (
        ("run", "set.json", "--judge", JUDGE),
        ("review", "list"),
        ("review", "show", "a1"),
        ("show", "t1"),
    ):
        output = assay(*command)
        assert output.code == 0, output.err
        assert "\x1b" not in output.out + output.err
        assert "\x9b" not in output.out + output.err
    assert "\\x1b]0;owned" in output.out


@pytest.mark.parametrize("text", ["t²", "a²", "t" + "9" * 30, "a" + "9" * 30, "t", "a-1", "t1e3"])
def test_invalid_id_gives_a_sentence(assay: Command, project: Path, text: str) -> None:
    for command in (("show", text), ("review", "show", text), ("review", "rerun", text)):
        output = assay(*command, "--json")
        assert output.code == 2
        assert "there is no" in output.document["error"]


def test_names_with_signs_are_corrected_by_the_longest_name_that_fits(
    assay: Command, project: Path
) -> None:
    (project / "set.json").write_text(
        json.dumps(
            [
                {
                    "thingName": "S",
                    "trialsNeeded": 1,
                    "snippets": [
                        {"name": name, "content": f"x = {place}\n"}
                        for place, name in enumerate(("ann", "ann/integrity", "x=1"))
                    ],
                }
            ]
        ),
        "utf-8",
    )
    with ModelServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "sk-x")
        assert assay("run", "set.json", "--judge", JUDGE).code == 0
    done = assay(
        "review",
        "correct",
        "a1",
        "--score",
        "ANN/integrity=0.25",
        "--score",
        "x=1=0.5",
        "--reason",
        "seen",
        "--json",
    )
    assert done.code == 0, done.err
    (event,) = done.document["events"]
    assert event["corrections"] == {"ann/integrity": 0.25, "x=1": 0.5}
    scores = assay("review", "show", "a1", "--json").document["scores"]
    assert scores["ann/integrity"] == 0.25
    assert scores["x=1"] == 0.5


def test_a_fourth_attempt_needs_a_reason_even_by_force(
    assay: Command, server: ModelServer, project: Path
) -> None:
    assay("run", write_set(project, things=1, trials=1), "--judge", JUDGE)
    assert assay("review", "rerun", "a1").code == assay("review", "rerun", "a2").code == 0
    refused = assay("review", "rerun", "a3", "--force")
    assert refused.code == 2
    assert "reason" in refused.err
    assert (
        assay("review", "rerun", "a3", "--force", "--reason", "the endpoint was broken").code == 0
    )


def test_a_store_that_gives_up_in_the_middle_says_how_to_go_on(
    assay: Command, server: ModelServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = write_set(project, things=1, trials=40)
    record = StoreJournal.record
    left = iter(range(3))

    async def full(journal: StoreJournal, entry: Entry) -> None:
        if next(left, None) is None:
            raise StoreError(
                "store x.db", "the disk is full.", remedy="Free some space; committed data is kept."
            )
        await record(journal, entry)

    with monkeypatch.context() as patch:
        patch.setattr(StoreJournal, "record", full)
        stopped = assay("run", suite, "--judge", JUDGE, "--json")
    assert stopped.code == 130
    assert "the disk is full" in stopped.document["error"]
    (run,) = assay("runs", "--json").document["runs"]
    assert f"assay resume {run['run_id']}" in stopped.document["error"]
    assert run["trials"]["done"] == 3
    assert assay("resume", run["run_id"], "--json").document["trials"]["done"] == 40


def test_a_judge_s_own_prompt_that_never_shows_the_candidates_is_refused(
    assay: Command, project: Path
) -> None:
    (project / "judge.md").write_text("Grade {{candidate}} by {{rubric}}.", "utf-8")
    (project / "suite.yaml").write_text(
        "name: own\njudge: {model: openai/j, prompt: judge.md}\ntasks:\n  - {id: a, snippets: {ann: x = 1, bob: x = 2}}\n",
        "utf-8",
    )
    for command in ("validate", "run"):
        refused = assay(command, "suite.yaml")
        assert refused.code == 2
        assert "suite.yaml:2 judge.prompt" in refused.err
        assert "did you mean {{candidates}}?" in refused.err
        assert "never shows the work to grade" in refused.err


def test_doctor_notices_a_decision_that_was_changed_afterwards(
    assay: Command, server: ModelServer, project: Path
) -> None:
    assay("run", write_set(project, things=1, trials=1), "--judge", JUDGE)
    assay("review", "reject", "a1", "--reason", "messy")
    assert assay("doctor").code == 0
    with sqlite3.connect(project / ".assay" / "assay.db") as store:
        store.execute("update review_event set reason = 'fine'")
    output = assay("doctor", "--json")
    assert output.code == 1
    (check,) = (check for check in output.document["checks"] if check["what"] == "store")
    assert check["state"] == "broken"
    assert "event 1 was changed" in check["detail"]
