"""From a set file to a verdict, through the command line, against a scripted judge."""

from __future__ import annotations

import math
import signal
import time
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from tests.journey.conftest import Command, start
from tests.support.model_server import Mishap, ModelServer
from tests.support.sets import NAMES, write_set

JUDGE = "openai/judge-1"


def waiting(assay: Command) -> list[dict[str, Any]]:
    row: list[dict[str, Any]] = assay("review", "list", "--state", "pending", "--json").document[
        "assessments"
    ]
    return row


def test_set_file_makes_one_numbered_assessment_per_trial(
    assay: Command, server: ModelServer, project: Path
) -> None:
    result = assay("run", write_set(project), "--judge", JUDGE, "--json")
    assert result.code == 0
    document = result.document
    assert document["trials"]["total"] == document["trials"]["done"] == 15
    assert document["assessments"]["pending"] == 15
    rows = waiting(assay)
    assert Counter((row["thing"], row["trial"], row["trials"]) for row in rows) == {
        (f"Service {letter}", k, 5): 1 for letter in "ABC" for k in range(1, 6)
    }
    assert all(sorted(row["candidates"]) == sorted(NAMES) for row in rows)
    assert len(server.calls) == 15


def test_the_judge_never_reads_a_candidate_s_name(
    assay: Command, server: ModelServer, project: Path
) -> None:
    assay("run", write_set(project), "--judge", JUDGE)
    for call in server.calls:
        assert not any(name in call.prompt.lower() for name in NAMES)


def test_the_order_of_candidates_differs_between_trials_and_is_recorded(
    assay: Command, server: ModelServer, project: Path
) -> None:
    assay("run", write_set(project), "--judge", JUDGE)
    rows = [assay("review", "show", row["id"], "--json").document for row in waiting(assay)]
    orders = {tuple(sorted(row["labels"], key=row["labels"].get)) for row in rows}
    assert len(orders) > 3


def test_nothing_counts_before_a_person_approves(
    assay: Command, server: ModelServer, project: Path
) -> None:
    assay("run", write_set(project), "--judge", JUDGE)
    stats = assay("stats", "--json").document
    assert all(
        one["mean"] is None and one["reason"] == "no_approved_trials" for one in stats["candidates"]
    )
    assert stats["excluded"] == {
        "pending": 15,
        "rejected": 0,
        "failed": 0,
        "superseded": 0,
        "not_graded": 0,
        "partly": 0,
        "left_out": 0,
        "not_started": 0,
        "under_way": 0,
    }
    compared = assay("compare", "nora", "omar", "--json").document
    assert compared["difference"] is None
    assert compared["reason"] == "no_approved_trials"
    assert "0." not in compared["verdict"]


def test_statistics_match_an_independent_calculation(
    assay: Command, server: ModelServer, project: Path
) -> None:
    assay("run", write_set(project), "--judge", JUDGE)
    rows = waiting(assay)
    rejected = [rows[0]["id"], rows[7]["id"]]
    left_waiting = rows[12]["id"]
    assert assay("review", "reject", *rejected, "--reason", "messy").code == 0
    rerun = assay(
        "review", "rerun", rows[3]["id"], "--note", "read line 2 again", "--json"
    ).document
    assert rerun["attempt"] == 2
    approved = [r["id"] for r in waiting(assay) if r["id"] != left_waiting]
    assert assay("review", "approve", *approved).code == 0

    counted = [
        r
        for r in assay("review", "list", "--json").document["assessments"]
        if r["state"] == "approved"
    ]
    assert len(counted) == 12
    assert rerun["id"] in {r["id"] for r in counted}
    stats = assay("stats", "--json").document
    assert stats["excluded"] == {
        "pending": 1,
        "rejected": 2,
        "failed": 0,
        "superseded": 1,
        "not_graded": 0,
        "partly": 0,
        "left_out": 0,
        "not_started": 0,
        "under_way": 0,
    }
    for one in stats["candidates"]:
        by_task = [
            mean(r["scores"][one["candidate"]] for r in counted if r["task"] == task)
            for task in _tasks(counted)
        ]
        assert one["mean"] == pytest.approx(mean(by_task))
        assert one["n_trials"] == 12
        assert one["n_tasks"] == 3
    compared = assay("compare", "nora", "omar", "--json").document
    difference, std_err = _paired_stratified(counted, "nora", "omar")
    assert compared["difference"] == pytest.approx(difference)
    assert compared["std_err"] == pytest.approx(std_err)
    assert compared["method"] == "paired_stratified_t"
    assert compared["scope"] == "these_tasks"


def test_the_old_attempt_stays_readable_and_nothing_else_changes(
    assay: Command, server: ModelServer, project: Path
) -> None:
    assay("run", write_set(project), "--judge", JUDGE)
    before = assay("review", "list", "--json").document["assessments"]
    assay("review", "rerun", before[4]["id"], "--note", "mind the invariant")
    after = {row["id"]: row for row in assay("review", "list", "--json").document["assessments"]}
    assert after[before[4]["id"]] == {**before[4], "state": "superseded"}
    assert all(after[row["id"]] == row for row in before if row["id"] != before[4]["id"])
    assert "mind the invariant" in server.calls[-1].prompt


def test_the_main_job_survives_every_fault_of_a_provider(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.faults(
        0.25,
        [Mishap.HTTP_500, Mishap.EMPTY_BODY, Mishap.EMPTY_CONTENT, Mishap.HALF_BODY, Mishap.RESET],
        seed=3,
    )
    result = assay("run", write_set(project, trials=3), "--judge", JUDGE, "--json")
    document = result.document
    assert document["trials"]["done"] + document["trials"]["failed"] == 9
    assert result.code == int(bool(document["failures"]))
    assert all(
        row["kind"] and row["fault"] in {"judge", "provider"} for row in document["failures"]
    )
    server.faults(0.0, [Mishap.HTTP_500])
    again = assay("resume", document["run_id"], "--json").document
    assert again["trials"]["done"] == 9
    assert again["failures"] == []


def test_unreadable_reply_is_a_judge_failure_and_never_a_zero(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = lambda call: "I would rather not grade these."
    document = assay(
        "run", write_set(project, things=1, trials=1), "--judge", JUDGE, "--json"
    ).document
    assert document["failures"][0]["kind"] == "unparsable"
    assert document["failures"][0]["fault"] == "judge"
    assert len(server.calls) == 3
    (form,) = waiting(assay)
    assert [flag["kind"] for flag in form["flags"]] == ["parse_error"]
    assert set(form["scores"].values()) == {None}


def test_an_unreadable_reply_is_shown_and_graded_by_hand(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = lambda call: "I would rather not grade these."
    ran = assay("run", write_set(project, things=1, trials=1), "--judge", JUDGE, "--json").document
    assert (ran["trials"]["failed"], ran["assessments"]["pending"]) == (1, 1)
    (form,) = waiting(assay)
    shown = assay("show", "t1").out
    assert "I would rather not grade these." in shown
    assert "parse_error" in shown
    refused = assay("review", "approve", form["id"], "--reviewer", "rita")
    assert refused.code == 2
    scores = [part for name in form["candidates"] for part in ("--score", f"{name}=0.5")]
    assert (
        assay(
            "review",
            "correct",
            form["id"],
            *scores,
            "--reason",
            "read it myself",
            "--reviewer",
            "rita",
        ).code
        == 0
    )
    (run,) = assay("runs", "--json").document["runs"]
    assert (run["trials"]["failed"], run["trials"]["approved"]) == (0, 1)
    assert {row["mean"] for row in assay("stats", "--json").document["candidates"]} == {0.5}
    server.forget()
    assert assay("resume", ran["run_id"]).code == 0
    assert not server.calls


@pytest.mark.parametrize("again", ["rerun", "resume"])
def test_an_unreadable_reply_can_be_judged_again(
    assay: Command, server: ModelServer, project: Path, again: str
) -> None:
    readable, server.answer = server.answer, lambda call: "I would rather not grade these."
    run = assay("run", write_set(project, things=1, trials=1), "--judge", JUDGE, "--json").document[
        "run_id"
    ]
    (form,) = waiting(assay)
    server.answer = readable
    if again == "rerun":
        assert assay("review", "rerun", form["id"], "--note", "answer in JSON").code == 0
    else:
        assert assay("resume", run).code == 0
    (judged,) = waiting(assay)
    assert judged["attempt"] == 2
    assert None not in judged["scores"].values()
    (state,) = (row["trials"] for row in assay("runs", "--json").document["runs"])
    assert (state["failed"], state["needs_review"]) == (0, 1)


@pytest.mark.slow
def test_a_killed_run_resumes_without_asking_anything_twice(
    assay: Command, server: ModelServer, project: Path
) -> None:
    suite = write_set(project, trials=8)
    server.delay_s = 0.15
    process = start("run", suite, "--judge", JUDGE, "--concurrency", "3")
    for done_before in (3, 8, 13):
        _wait_until(lambda wanted=done_before: server.served >= wanted)
        process.kill()
        process.wait()
        (run,) = assay("runs", "--json").document["runs"]
        process = start("resume", run["run_id"])
    assert process.wait(60) == 0, process.stderr.read() if process.stderr else ""
    (run,) = assay("runs", "--json").document["runs"]
    assert run["trials"]["done"] == run["trials"]["total"] == 24
    assert len(waiting(assay)) == 24
    assert len(server.calls) <= 24 + 3 * 3
    assert server.peak <= 3


@pytest.mark.slow
def test_two_processes_that_resume_one_run_share_it(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.script([Mishap.HTTP_400] * 24)
    failed = assay("run", write_set(project, trials=8), "--judge", JUDGE, "--json").document
    assert failed["trials"]["failed"] == 24
    server.forget()
    server.held = True
    both = [start("resume", failed["run_id"]) for _ in range(2)]
    # Each process carries out its first trial, which is one call, before it starts others.
    _wait_until(lambda: server.in_flight == 2)
    server.held = False
    assert [process.wait(60) for process in both] == [0, 0]
    assert len(waiting(assay)) == 24
    assert len(server.calls) == 24


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_cleanly_and_says_how_to_go_on(
    assay: Command, server: ModelServer, project: Path, sent: signal.Signals
) -> None:
    server.delay_s = 0.2
    process = start("run", write_set(project), "--judge", JUDGE, "--concurrency", "2")
    _wait_until(lambda: server.served >= 3)
    process.send_signal(sent)
    _, err = process.communicate(timeout=180)
    assert process.returncode == 130
    assert b"assay resume" in err
    assert b"Traceback" not in err
    (run,) = assay("runs", "--json").document["runs"]
    assert run["state"] == "interrupted"
    assert assay("resume", run["run_id"], "--json").document["trials"]["done"] == 15


def test_budget_is_never_exceeded_and_the_rest_can_be_resumed(
    assay: Command, server: ModelServer, project: Path
) -> None:
    (project / "assay.yaml").write_text(
        f"judge: {JUDGE}\nprices:\n  {JUDGE}: {{input: 10, output: 10}}\n", "utf-8"
    )
    suite = write_set(project, trials=4)
    limited = assay("run", suite, "--budget", "0.2", "--json").document
    assert limited["cost_usd"] <= 0.2
    assert limited["trials"]["pending"] > 0
    assert (limited["state"], limited["paused"]["fault"], limited["failures"]) == (
        "paused",
        "budget",
        [],
    )


def test_budget_is_refused_when_a_price_is_unknown(
    assay: Command, server: ModelServer, project: Path
) -> None:
    refused = assay(
        "run", write_set(project), "--judge", "openai/no-such-model-xyz", "--budget", "1"
    )
    assert refused.code == 2
    assert "price" in refused.err
    assert len(server.calls) == 0
    assert assay("runs", "--json").document == {"runs": []}


def test_extending_a_run_asks_only_for_new_trials(
    assay: Command, server: ModelServer, project: Path
) -> None:
    run = assay("run", write_set(project, trials=2), "--judge", JUDGE, "--json").document
    extended = assay("extend", run["run_id"], "--trials", "3", "--json").document
    assert extended["trials"]["total"] == extended["trials"]["done"] == 15
    assert len(server.calls) == 15
    assert {row["trials"] for row in waiting(assay)} == {5}


def test_a_key_is_in_no_output_and_in_no_file(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.faults(0.3, [Mishap.HTTP_401, Mishap.HTTP_500], seed=1)
    run = assay("run", write_set(project, trials=2), "--judge", JUDGE, "--json")
    result = (
        run.out
        + run.err
        + assay("show", run.document["run_id"], "--json").out
        + assay("config").out
    )
    assert "never-to-be-seen" not in result
    for file in project.rglob("*"):
        if file.is_file():
            assert b"never-to-be-seen" not in file.read_bytes(), file


def _tasks(rows: list[dict[str, Any]]) -> list[str]:
    return sorted({row["task"] for row in rows})


def _paired_stratified(rows: list[dict[str, Any]], a: str, b: str) -> tuple[float, float]:
    """Mean of task means of the trials' differences, and its standard error from the trials within
    tasks.
    """
    differences = {
        task: [row["scores"][a] - row["scores"][b] for row in rows if row["task"] == task]
        for task in _tasks(rows)
    }
    variance = 0.0
    for values in differences.values():
        middle = mean(values)
        spread = sum((value - middle) ** 2 for value in values) / (len(values) - 1)
        variance += spread / len(values) / len(differences) ** 2
    return mean(mean(values) for values in differences.values()), math.sqrt(variance)


def _wait_until(condition: Any, *, most_s: float = 60.0) -> None:
    deadline = time.monotonic() + most_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def test_a_failed_trial_alone_can_be_tried_again(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.script([Mishap.HTTP_400, Mishap.HTTP_400])
    failed = assay(
        "run",
        write_set(project, things=1, trials=3),
        "--judge",
        JUDGE,
        "--concurrency",
        "1",
        "--json",
    ).document
    first, second = (row["id"] for row in failed["failures"])
    again = assay(
        "review", "rerun", first, "--note", "the endpoint was misconfigured", "--json"
    ).document
    assert again["failure"] is None
    assert [row["state"] for row in again["assessments"]] == ["pending"]
    (still,) = assay("resume", failed["run_id"], "--json").document["failures"] or [{"id": second}]
    assert still["id"] == second
    assert len(waiting(assay)) == 3


def test_trials_are_added_until_enough_are_approved_or_wait(
    assay: Command, server: ModelServer, project: Path
) -> None:
    run = assay("run", write_set(project, trials=3), "--judge", JUDGE, "--json").document["run_id"]
    rows = waiting(assay)
    assay("review", "reject", rows[0]["id"], rows[1]["id"], "--reason", "messy")
    extended = assay("extend", run, "--until-approved", "3", "--json").document
    assert extended["trials"]["total"] == 11
    assert len(server.calls) == 11


def test_the_demo_ends_with_a_page_that_shows_something(assay: Command) -> None:
    output = assay("demo", "--no-serve", "--port", "8123")
    assert output.code == 0, output.err
    last = output.out.rstrip().splitlines()[-1]
    assert last.startswith("statistics: http://127.0.0.1:8123/results?run=")
    assert "/review" not in last, "nothing waits once the recorded review is taken"
