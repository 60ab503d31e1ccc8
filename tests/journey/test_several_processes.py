"""Commands beside a run that another process carries out, and beside each other: steering,
stopping, judging again.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.journey.conftest import Command, start
from tests.support.model_server import ModelServer
from tests.support.sets import write_set

pytestmark = pytest.mark.slow

JUDGE = "openai/gpt-4o-mini"
ASKED = """\
name: asked
judge: {model: openai/judge, mode: each}
tasks:
  - {id: one, prompt: Say one.}
candidates: [openai/small]
"""


def until(holds: Callable[[], bool], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.05)


def asks_nothing(server: ModelServer) -> bool:
    """True if the server is not asked for a second."""
    served = server.served
    time.sleep(1.0)
    return server.served == served


def a_run(assay: Command) -> Any:
    (run,) = assay("runs", "--json").document["runs"]
    return run


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=180)
    assert b"Traceback" not in err
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("command", ["run", "resume", "extend"])
def test_interrupted_command_prints_one_document_with_the_next_step(
    assay: Command, server: ModelServer, project: Path, command: str
) -> None:
    suite = write_set(project, things=1, trials=1 if command == "extend" else 40)
    arguments: tuple[object, ...]
    if command == "run":
        arguments = ("run", suite, "--judge", JUDGE, "--concurrency", "1")
    elif command == "extend":
        run = assay("run", suite, "--judge", JUDGE, "--concurrency", "1", "--json").document[
            "run_id"
        ]
        arguments = ("extend", run, "--trials", "40")
    else:
        server.delay_s = 0.1
        first = start("run", suite, "--judge", JUDGE, "--concurrency", "1")
        until(lambda: server.served >= 2)
        first.kill()
        first.communicate()
        arguments = ("resume", a_run(assay)["run_id"])
    server.delay_s = 0.1
    before = server.served
    process = start(*arguments, "--json")
    until(lambda: server.served >= before + 3)
    process.send_signal(signal.SIGINT)
    code, out, err = ended(process)
    assert code == 130
    document = json.loads(out)  # exactly one, or this raises
    assert "assay resume" in json.dumps(document)
    assert "assay resume" in err
    assert a_run(assay)["state"] == "interrupted"


def test_pausing_and_resuming_beside_a_run_in_another_process(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.delay_s = 0.1
    process = start(
        "run", write_set(project, things=1, trials=40), "--judge", JUDGE, "--concurrency", "2"
    )
    until(lambda: server.served >= 4)
    run = a_run(assay)["run_id"]
    paused = assay("pause", run, "--json")
    assert (paused.code, paused.document["state"]) == (0, "paused")
    until(lambda: a_run(assay)["trials"]["running"] == 0)
    until(lambda: asks_nothing(server))
    served = server.served
    assert process.poll() is None, "it waits to go on"
    resumed = start("resume", run)  # carried out by both from now on
    until(lambda: server.served > served)
    assert ended(process)[0] == 0
    assert ended(resumed)[0] == 0
    row = a_run(assay)
    assert (row["state"], row["trials"]["done"]) == ("finished", 40)
    assert len(server.calls) == 40, "nothing was asked twice"


def test_cancelling_beside_a_run_in_another_process(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.delay_s = 0.1
    process = start(
        "run",
        write_set(project, things=1, trials=60),
        "--judge",
        JUDGE,
        "--concurrency",
        "2",
        "--json",
    )
    until(lambda: server.served >= 4)
    run = a_run(assay)["run_id"]
    assert assay("cancel", run).code == 0
    code, out, _ = ended(process)
    document = json.loads(out)
    assert (code, document["state"]) == (0, "cancelled")
    row = a_run(assay)
    assert row["state"] == "cancelled"
    assert row["trials"]["running"] == 0
    assert 4 <= row["trials"]["done"] < 60
    assert row["trials"]["done"] == server.served
    again = assay("pause", run)
    assert (again.code, "cancelled" in again.err) == (2, True)


@pytest.mark.parametrize("wish", ["pause", "cancel"])
def test_claimed_trials_that_have_not_begun_are_released(
    assay: Command, server: ModelServer, project: Path, wish: str
) -> None:
    suite = ASKED.replace("[openai/small]", "[openai/small, openai/large]")
    (project / "asked.yaml").write_text(suite, "utf-8")
    server.delay_s = 0.2
    process = start("run", "asked.yaml", "--trials", "40", "--concurrency", "4")
    until(lambda: server.served >= 12)
    until(lambda: a_run(assay)["trials"]["done"] >= 4)
    run = a_run(assay)["run_id"]
    assert assay(wish, run).code == 0
    at_the_wish = a_run(assay)["trials"]
    until(lambda: a_run(assay)["trials"]["running"] == 0)
    after = a_run(assay)["trials"]
    assert after["done"] - at_the_wish["done"] <= 2 * 4, (
        "those under way, and those begun before the wish was read"
    )
    assert after["pending"] == 40 - after["done"]
    served = server.served
    assert served == 4 * after["done"], "nothing was paid for a trial that was given back"
    if wish == "pause":
        assert assay("resume", run).code == 0
        assert ended(process)[0] == 0
        assert (a_run(assay)["state"], a_run(assay)["trials"]["done"]) == ("finished", 40)
        assert server.served == 4 * 40
    else:
        ended(process)
        assert a_run(assay)["state"] == "cancelled"
        assert assay("resume", run).code == 0
        assert server.served == 4 * 40


def test_a_run_that_was_cancelled_when_all_was_done_is_finished(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.held = True
    process = start("run", write_set(project, things=1, trials=1), "--judge", JUDGE)
    until(
        lambda: (
            bool(assay("runs", "--json").document["runs"])
            and a_run(assay)["trials"]["running"] == 1
        )
    )
    until(lambda: len(server.calls) == 1)  # a run sends its first trial alone
    run = a_run(assay)["run_id"]
    assert assay("cancel", run).code == 0
    server.held = False
    assert ended(process)[0] == 0
    assert a_run(assay)["state"] == "finished"
    again = assay("resume", run)
    assert "Traceback" not in again.err


def test_candidates_that_are_asked_anew_are_sent_another_seed(
    assay: Command, server: ModelServer, project: Path
) -> None:
    (project / "asked.yaml").write_text(ASKED, "utf-8")
    run = assay("run", "asked.yaml", "--json").document
    assert run["trials"]["done"] == 1
    (first,) = assay("review", "list", "--json").document["assessments"]
    for _ in range(2):
        (now,) = [
            one
            for one in assay("review", "list", "--json").document["assessments"]
            if one["state"] == "pending"
        ]
        again = assay(
            "review", "rerun", now["id"], "--responses", "--reason", "the harness broke", "--json"
        )
        assert again.code == 0, again.err
    asked = [call.body["seed"] for call in server.calls if call.body["model"] == "small"]
    judged = [call.body["seed"] for call in server.calls if call.body["model"] == "judge"]
    assert len(set(asked)) == len(asked) == 3
    assert len(set(judged)) == len(judged) == 3
    rows = assay("review", "list", "--json").document["assessments"]
    assert [(one["attempt"], one["state"]) for one in rows] == [
        (1, "superseded"),
        (2, "superseded"),
        (3, "pending"),
    ]
    assert rows[0]["id"] == first["id"]


def test_one_trial_that_two_processes_judge_again_at_once(
    assay: Command, server: ModelServer, project: Path
) -> None:
    assay("run", write_set(project, things=1, trials=1), "--judge", JUDGE)
    (row,) = assay("review", "list", "--json").document["assessments"]
    server.delay_s = 0.8  # long enough that the second comes while the first is at it
    both = [
        start("review", "rerun", row["id"], "--reason", f"reason {n}", "--json") for n in range(2)
    ]
    items = [ended(process) for process in both]
    for code, out, err in items:
        assert code in (0, 2), err
        json.loads(out)
    codes = sorted(code for code, _, _ in items)
    rows = assay("review", "list", "--json").document["assessments"]
    current = [one for one in rows if one["state"] == "pending"]
    assert len(current) == 1, "one attempt is the trial's, whoever came second"
    assert len({one["attempt"] for one in rows}) == len(rows) == 1 + codes.count(0)
    refused = [err for code, _, err in items if code == 2]
    assert all("t1" in err or row["id"] in err for err in refused)
