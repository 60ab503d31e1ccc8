"""Resume, cancel, pause, extend, rerun and delete with trials that wait at a provider; budgets;
batch files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from assay.app.workspace import Workspace
from assay.domain.run import ClaimedTrial
from assay.engine.batch import BatchAsker
from tests.journey.conftest import Command
from tests.journey.test_batch import SUITE, collected, live, results, server, submitted  # noqa: F401 - a fixture
from tests.support.batch_server import BatchServer, Fate

ONE = SUITE.replace(", openai/large", "")
SCORED = """\
name: asked
trials: 2
parameters: {seed: 11, max_tokens: 50}
candidates: [openai/gpt-4o-mini]
score: exact
tasks:
  - {id: one, prompt: Say one., expected: "1"}
  - {id: two, prompt: Say two., expected: "2"}
  - {id: three, prompt: Say three., expected: "3"}
"""
FILES = SCORED.replace("openai/gpt-4o-mini", "vllm/small")


def trials(assay: Command, run: str) -> dict[str, int]:
    rows = assay("runs", "--json").document["runs"]
    (row,) = [row for row in rows if row["run_id"] == run]
    return {state: n for state, n in row["trials"].items() if n and state not in ("total", "done")}


def state(assay: Command, run: str) -> str:
    rows = assay("runs", "--json").document["runs"]
    return next(str(row["state"]) for row in rows if row["run_id"] == run)


def calls(server: BatchServer) -> int:  # noqa: F811
    return server.paths["POST /chat/completions"]


def test_resume_leaves_waiting_trials_alone(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    run = submitted(assay, project, ONE)
    resumed = assay("resume", run, "--json")
    assert (resumed.code, resumed.document["state"]) == (0, "submitted")
    assert "6 trials of" in resumed.err
    assert f"assay batch collect {run}" in resumed.err
    assert calls(server) == 0
    assert collected(assay, run)["run"]["failures"] == []
    assert server.repeats == {}


def test_cancel_stops_the_batch_keeps_answers_and_frees_the_rest(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    server.fates.append(Fate(unanswered=4))
    server.held = True
    run = submitted(assay, project, ONE)
    assert trials(assay, run) == {"submitted": 6}
    cancelled = assay("cancel", run, "--json")
    assert (cancelled.code, cancelled.document["state"]) == (0, "cancelled")
    assert trials(assay, run) == {"pending": 6}
    assert [batch.status for batch in server.batches.values()] == ["cancelled"]
    assert len(server.batches) == 1
    server.held = False
    resumed = assay("resume", run, "--json").document
    assert (resumed["state"], resumed["trials"]["done"]) == ("finished", 6)
    assert server.repeats == {}
    assert calls(server) == 4 + 4, "the two answers of the batch were not asked for again"


def test_a_paused_run_stores_answers_and_sends_nothing(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    before = live(assay, server, ONE)
    run = submitted(assay, project, ONE)
    assert assay("pause", run).code == 0
    (done,) = assay("batch", "collect", run, "--json").document["runs"]
    assert done["run"]["state"] == "paused"
    assert trials(assay, run) == {"pending": 4, "approved": 2}, "two tasks wait for a judge"
    assert len(server.batches) == 1
    again = assay("batch", "submit", "--run", run, "--json").document
    assert again["run"]["state"] == "submitted"
    collected(assay, run)
    assert results(assay, run) == before
    assert server.repeats == {}


def test_extending_a_waiting_run_calls_only_for_the_new_trials(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    before = live(assay, server, ONE.replace("trials: 2", "trials: 3"))
    run = submitted(assay, project, ONE)
    extended = assay("extend", run, "--trials", "1", "--json").document
    assert extended["state"] == "submitted"
    assert trials(assay, run)["submitted"] == 6
    assert calls(server) == 15 + 3 + 2, "the live run before; now three answers and two judgements"
    collected(assay, run)
    assert results(assay, run) == before
    assert server.repeats == {}


def test_a_candidate_that_joins_a_waiting_run_answers_every_trial(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    run = submitted(assay, project, ONE)
    assert assay("extend", run, "--candidate", "openai/late", "--json").code == 0
    done = collected(assay, run)
    assert done["run"]["failures"] == []
    _, answered = results(assay, run)
    assert ("candidate", "openai/late", 6) in answered
    assert server.repeats == {}


def test_a_waiting_trial_is_neither_judged_again_nor_deleted(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    run = submitted(assay, project, ONE)
    rerun = assay("review", "rerun", "t1", "--note", "again")
    assert rerun.code == 2
    deleted = (
        assay("delete", run, "--yes")
        if "--yes" in assay("delete", "--help").out
        else assay("delete", run)
    )
    assert deleted.code == 2
    assert "waits for batch jobs at a provider" in deleted.err
    collected(assay, run)
    assert assay("review", "list", "--run", run, "--json").code == 0


def test_the_budget_reserved_for_a_batch_outlives_its_process(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    # An answer costs $0.0000325 at most, and half in a batch: the six of the batch leave too little
    # for a call.
    run = submitted(assay, project, SCORED, "--budget", "0.00011")
    extended = assay("extend", run, "--trials", "2", "--json").document
    assert (extended["failures"], extended["state"], extended["paused"]["kind"]) == (
        [],
        "paused",
        "budget",
    )
    for _ in range(12):
        (done,) = assay("batch", "collect", run, "--json").document["runs"]
        if not done["run"]["trials"]["submitted"]:
            break
    assert (
        done["run"]["state"],
        done["run"]["trials"]["done"],
        done["run"]["trials"]["pending"],
    ) == ("paused", 6, 6)
    assert done["run"]["cost_usd"] > 0
    booked = done["run"]["budget"]["booked_usd"]
    assert booked == pytest.approx(done["run"]["cost_usd"])


def test_trials_that_the_budget_does_not_cover_wait_for_answers(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    (project / "suite.yaml").write_text(SCORED, "utf-8")
    run = assay("batch", "submit", "suite.yaml", "--budget", "0.00006", "--json").document["run"]
    assert (run["failures"], run["state"], run["paused"]) == ([], "submitted", None)
    sent = sum(len(batch.lines) for batch in server.batches.values())
    assert 0 < sent == 6 - run["trials"]["pending"] < 6


def test_a_budget_sends_a_random_sample_of_the_rows(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    tasks = [
        {"id": f"t{number}", "prompt": f"Say {number}.", "expected": str(number)}
        for number in range(60)
    ]
    suite = {
        "name": "asked",
        "parameters": {"max_tokens": 50},
        "candidates": ["openai/gpt-4o-mini"],
        "score": "exact",
    }
    (project / "suite.json").write_text(json.dumps({**suite, "tasks": tasks}), "utf-8")
    run = assay("batch", "submit", "suite.json", "--budget", "0.0002", "--json").document["run"]
    lines = [json.dumps(line) for batch in server.batches.values() for line in batch.lines]
    sent = {number for number in range(60) if any(f"Say {number}." in line for line in lines)}
    assert 5 < len(sent) == len(lines) == 60 - run["trials"]["pending"]
    with Workspace.open(project, environment={}) as workspace:
        places = {
            planned.task.id: planned.position
            for planned, _ in workspace.journal.tasks_of(run["run_id"])
        }
    # The order is drawn, so that the rows that are paid for are a sample. Chance sends the first
    # rows once in 10 billion runs.
    assert {places[f"t{number}"] for number in sent} == set(range(len(sent)))
    assert sent != set(range(len(sent)))


def test_answers_free_the_budget_for_the_next_batch(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    (project / "suite.yaml").write_text(SCORED, "utf-8")
    run = assay("batch", "submit", "suite.yaml", "--budget", "0.00006", "--json").document["run"][
        "run_id"
    ]
    for _ in range(10):
        (document,) = assay("batch", "collect", run, "--json").document["runs"]
        done = document["run"]
        assert not done["failures"]
        if done["state"] != "submitted":
            break
    assert (done["state"], done["trials"]["done"]) == ("finished", 6)
    assert done["cost_usd"] <= 0.00006


def test_a_batch_run_pauses_when_nothing_under_way_can_free_its_budget(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    (project / "suite.yaml").write_text(SCORED, "utf-8")
    submitted_ = assay("batch", "submit", "suite.yaml", "--budget", "0.00001", "--json")
    run = submitted_.document["run"]
    assert (submitted_.code, run["failures"], run["state"]) == (1, [], "paused")
    assert (run["paused"]["kind"], run["trials"]["pending"], server.batches) == ("budget", 6, {})
    enough = run["budget"]["enough_usd"]
    assert run["paused"]["remedy"].endswith(f"assay resume {run['run_id']} --budget {enough:g}")
    again = assay("resume", run["run_id"], "--budget", enough, "--json")
    assert (again.code, again.document["trials"]["done"]) == (0, 6)


PROGRAM = """\
import json, sys
source, target = sys.argv[sys.argv.index("-i") + 1], sys.argv[sys.argv.index("-o") + 1]
print("vLLM API server version 0.6.3")
with open(source) as lines, open(target, "w") as out:
    for line in reversed(list(lines)):
        row = json.loads(line)
        text = "Answer to " + row["body"]["messages"][-1]["content"]
        body = {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 4}, "model": row["body"]["model"]}
        out.write(json.dumps({"id": "vllm-1", "custom_id": row["custom_id"], "error": None,
                              "response": {"status_code": 200, "request_id": "r", "body": body}}) + "\\n")
"""


def test_requests_of_vllm_are_carried_by_files(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    (project / "suite.yaml").write_text(FILES, "utf-8")
    refused = assay("batch", "submit", "suite.yaml")
    assert refused.code == 2
    assert "--to-file" in refused.err
    run = assay("batch", "submit", "suite.yaml", "--to-file", "requests.jsonl", "--json").document[
        "run"
    ]["run_id"]
    lines = [
        json.loads(line) for line in (project / "requests.jsonl").read_text("utf-8").splitlines()
    ]
    assert len(lines) == 6
    assert (lines[0]["method"], lines[0]["url"], lines[0]["body"]["model"]) == (
        "POST",
        "/v1/chat/completions",
        "small",
    )
    sys.argv = ["run", "-i", "requests.jsonl", "-o", "answers.jsonl"]
    exec(PROGRAM, {})
    answers = (project / "answers.jsonl").read_text("utf-8").splitlines()
    (project / "half.jsonl").write_text("\n".join(answers[:2]), "utf-8")
    (half,) = assay("batch", "collect", run, "--from-file", "half.jsonl", "--json").document["runs"]
    assert (half["run"]["trials"]["done"], half["run"]["trials"]["submitted"]) == (2, 4)
    (done,) = assay("batch", "collect", run, "--from-file", "answers.jsonl", "--json").document[
        "runs"
    ]
    assert (done["run"]["state"], done["run"]["trials"]["done"]) == ("finished", 6)
    assert (project / "requests.jsonl").exists(), "a file that the user named stays"


def test_a_command_answers_a_run_and_is_recorded(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    (project / "suite.yaml").write_text(FILES, "utf-8")
    (project / "program.py").write_text(PROGRAM, "utf-8")
    done = assay(
        "batch", "exec", "suite.yaml", "--json", "--", sys.executable, "program.py", "run-batch"
    )
    assert done.code == 0, done.err
    assert (done.document["run"]["state"], done.document["run"]["trials"]["done"]) == (
        "finished",
        6,
    )
    run = done.document["run"]["run_id"]
    (meta,) = (project / "results").rglob("*.meta.json")
    (carried,) = json.loads(meta.read_text("utf-8"))["execution"]["batch"]
    assert carried["version"] == "0.6.3"
    assert carried["exit_code"] == 0
    assert "run-batch" in carried["command"]
    assert state(assay, run) == "finished"


def test_a_command_that_fails_is_named_and_can_be_repeated(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    (project / "suite.yaml").write_text(FILES, "utf-8")
    (project / "program.py").write_text(PROGRAM, "utf-8")
    failed = assay(
        "batch",
        "exec",
        "suite.yaml",
        "--json",
        "--",
        sys.executable,
        "-c",
        "raise SystemExit('no GPU')",
    )
    assert failed.code == 1
    assert "ended with exit code 1: no GPU" in failed.document["troubles"][0]
    run = failed.document["run"]["run_id"]
    again = assay("batch", "exec", "--run", run, "--json", "--", sys.executable, "program.py")
    assert (again.code, again.document["run"]["trials"]["done"]) == (0, 6)


@pytest.mark.slow
def test_a_large_batch_is_carried_in_portions_with_few_commits(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        json.dumps({"id": f"q{n}", "prompt": f"Say {n}.", "answer": f"{n}"}) for n in range(1300)
    ]
    (project / "tasks.jsonl").write_text("\n".join(rows), "utf-8")
    tasks = "tasks: {file: tasks.jsonl, map: {id: id, prompt: prompt, expected: answer}, score: exact}\n"
    claimed: list[int] = []
    begin = BatchAsker.begin

    def noted(self: BatchAsker, trials: Sequence[ClaimedTrial]) -> None:
        claimed.append(len(trials))
        begin(self, trials)

    monkeypatch.setattr(BatchAsker, "begin", noted)
    run = submitted(
        assay, project, SCORED.partition("tasks:")[0].replace("trials: 2", "trials: 1") + tasks
    )
    assert claimed == [], "the first requests are stored with the run"
    done = collected(assay, run)
    assert done["run"]["trials"]["done"] == 1300
    assert claimed == [1000, 300]
    assert [len(batch.lines) for batch in server.batches.values()] == [1300]
    assert server.repeats == {}


def test_a_paused_batch_run_goes_on_in_batches_with_a_new_budget(
    assay: Command,
    server: BatchServer,  # noqa: F811
    project: Path,
) -> None:
    (project / "suite.yaml").write_text(SCORED, "utf-8")
    run = assay("batch", "submit", "suite.yaml", "--budget", "0.00001", "--json").document["run"]
    assert run["state"] == "paused"
    refused = assay("batch", "submit", "--run", run["run_id"], "--budget", "0", "--json")
    assert refused.code == 2
    enough = run["budget"]["enough_usd"]
    again = assay("batch", "submit", "--run", run["run_id"], "--budget", enough, "--json").document[
        "run"
    ]
    assert (again["state"], again["budget"]["usd"], again["trials"]["submitted"]) == (
        "submitted",
        enough,
        6,
    )
    collected(assay, run["run_id"])
    assert assay("show", run["run_id"], "--json").document["trials"]["done"] == 6
