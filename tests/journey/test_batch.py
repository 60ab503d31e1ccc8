"""Runs through batch APIs: the same records as a live run, whatever happens to the batches and to
the collecting process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.journey.conftest import Command
from tests.journey.test_rubric_pipeline import RUBRIC, answer, raw
from tests.support.batch_server import BatchServer, Fate
from tests.support.model_server import generic_answer

SUITE = """\
name: asked
trials: 2
parameters: {seed: 11, max_tokens: 50}
candidates: [openai/small, openai/large]
judge: {model: openai/judge, mode: each}
tasks:
  - {id: one, prompt: Say one.}
  - {id: two, prompt: Say two.}
  - {id: three, prompt: Say three., expected: "3", score: exact}
"""


@pytest.fixture
def server(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    running = BatchServer()
    with running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-never-to-be-seen")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.address)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-never-to-be-seen")
        yield running


def results(assay: Command, run: str, *options: object) -> Any:
    """Everything that a run came to, without ids, times and costs."""
    rows = assay("review", "list", "--run", run, *options, "--json").document["assessments"]
    kept = ("task", "trial", "attempt", "state", "judge", "candidates", "scores", "flags", "grades")
    answers = assay("show", run, *options, "--json").document["answered"]
    calls = {(row["role"], row["name"], row["calls"]) for row in answers}
    return sorted(([row[name] for name in kept] for row in rows), key=str), calls


def collected(assay: Command, run: str, *, most: int = 12) -> Any:
    """Collect until the run is done; return the last document."""
    for _ in range(most):
        (document,) = assay("batch", "collect", run, "--json").document["runs"]
        if document["run"]["state"] == "finished":
            return document
    raise AssertionError(document)


def test_a_batch_run_ends_in_the_records_of_a_live_run(
    assay: Command, server: BatchServer, project: Path
) -> None:
    (project / "suite.yaml").write_text(SUITE, "utf-8")
    before = live(assay, server)
    submitted = assay("batch", "submit", "suite.yaml", "--json")
    assert submitted.code == 0, submitted.err
    run = submitted.document["run"]["run_id"]
    assert submitted.document["run"]["state"] == "submitted"
    assert submitted.document["run"]["trials"]["submitted"] == 6
    assert [
        (job["stage"], job["model"], job["requests"]) for job in submitted.document["jobs"]
    ] == [("answers", "openai/small", 6), ("answers", "openai/large", 6)]
    done = collected(assay, run)
    assert done["run"]["trials"]["done"] == 6
    assert done["run"]["failures"] == []
    assert results(assay, run) == before
    assert server.repeats == {}
    assert server.paths["POST /chat/completions"] == 20  # of the live run


def submitted(assay: Command, project: Path, text: str = SUITE, *options: object) -> str:
    (project / "suite.yaml").write_text(text, "utf-8")
    done = assay("batch", "submit", "suite.yaml", *options, "--json")
    assert done.code == 0, done.err
    return str(done.document["run"]["run_id"])


def live(assay: Command, server: BatchServer, text: str = SUITE) -> Any:
    """Return the results of calls, in another store, and forget what the server saw."""
    Path("live.yaml").write_text(text, "utf-8")
    run = str(assay("run", "live.yaml", "--store", "live.db", "--json").document["run_id"])
    server.seen.clear()
    return results(assay, run, "--store", "live.db")


@pytest.mark.parametrize(
    "fate",
    [
        Fate(repeated=2, unknown=1),
        Fate(failed=2),
        pytest.param(Fate(failed=6), marks=pytest.mark.slow),
        Fate(unanswered=2, status="expired"),
        pytest.param(Fate(unanswered=6, status="expired"), marks=pytest.mark.slow),
        Fate(silent=True),
        pytest.param(
            Fate(
                status="failed", errors=(("token_limit_exceeded", "Enqueued token limit reached."),)
            ),
            marks=pytest.mark.slow,
        ),
        pytest.param(Fate(looks=2), marks=pytest.mark.slow),
    ],
    ids=[
        "repeated",
        "failed lines",
        "no output file",
        "partial",
        "expired",
        "lost answer",
        "too much waits",
        "slow",
    ],
)
def test_what_happens_to_a_batch_does_not_change_results(
    assay: Command, server: BatchServer, project: Path, fate: Fate
) -> None:
    before = live(assay, server)
    server.fates.append(fate)
    run = submitted(assay, project)
    done = collected(assay, run)
    assert done["run"]["failures"] == []
    assert results(assay, run)[0] == before[0]
    assert server.repeats == {}


@pytest.mark.parametrize(
    "path", ["POST /files", "POST /batches", "/content", "GET /batches/batch_001"]
)
@pytest.mark.slow
def test_a_server_error_is_tried_again_and_then_later(
    assay: Command, server: BatchServer, project: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.app.workspace.SystemClock.sleep", _no_sleep)
    before = live(assay, server)
    server.broken.append((path, 500, 4))
    (project / "suite.yaml").write_text(SUITE, "utf-8")
    first = assay("batch", "submit", "suite.yaml", "--json")
    run = first.document["run"]["run_id"]
    troubles = (
        first.document["troubles"]
        or assay("batch", "collect", run, "--json").document["runs"][0]["troubles"]
    )
    assert "500" in troubles[0]
    done = collected(assay, run)
    assert done["run"]["failures"] == []
    assert results(assay, run) == before
    assert server.repeats == {}


async def _no_sleep(_self: object, _seconds: float) -> None:
    """Return at once."""


def test_a_refused_batch_fails_its_trials_until_they_are_submitted_again(
    assay: Command, server: BatchServer, project: Path
) -> None:
    server.fates.extend(
        [Fate(status="failed", errors=(("model_not_found", "There is no such model."),))] * 2
    )
    run = submitted(assay, project)
    done = collected(assay, run)
    assert {(row["kind"], row["fault"]) for row in done["run"]["failures"]} == {
        ("batch_failed", "harness")
    }
    assert "There is no such model." in done["run"]["failures"][0]["detail"]
    assert server.seen == {}
    again = assay("batch", "submit", "--run", run, "--json").document
    assert again["run"]["trials"]["submitted"] == 6
    assert collected(assay, run)["run"]["failures"] == []
    assert server.repeats == {}


@pytest.mark.parametrize("lost", [1, 6])
def test_an_answer_that_a_finished_batch_lost_is_not_asked_for_again(
    assay: Command, server: BatchServer, project: Path, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    monkeypatch.setattr("assay.app.workspace.SystemClock.sleep", _no_sleep)
    server.fates.append(Fate(lost=lost))
    run = submitted(assay, project)
    done = collected(assay, run)
    failures = done["run"]["failures"]
    assert [failure["kind"] for failure in failures] == ["no_line"] * lost
    assert "may have been charged" in failures[0]["detail"]
    assert done["run"]["trials"]["done"] == 6 - lost
    assert server.repeats == {}


def test_parts_that_an_endpoint_refuses_are_left_out_next_time(
    assay: Command, server: BatchServer, project: Path
) -> None:
    def refuse(call: Any) -> str | None:
        if "max_tokens" in call.body:
            return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
        return (
            "Unsupported value: 'temperature' does not support 0.7."
            if "temperature" in call.body
            else None
        )

    server.refused = refuse
    run = submitted(assay, project, SUITE.replace("[openai/small, openai/large]", "[openai/small]"))
    done = collected(assay, run, most=20)
    assert done["run"]["failures"] == []
    assert server.repeats == {}
    good = [batch.lines[0]["body"] for batch in server.batches.values() if batch.completed]
    assert len(good) == 2
    assert all("max_completion_tokens" in body and "temperature" not in body for body in good)


RUBRIC_SUITE = """\
name: asked
trials: 2
parameters: {seed: 11}
candidates: [openai/small, openai/large]
judge: {model: openai/judge, mode: each}
rubric:
  criteria: [understanding, result]
  structure: openai/structurer
  verify: math
tasks:
  - {id: one, prompt: How much is 30 and 30?, ideal: "30 + 30 = 60", final_answer: "60"}
  - {id: two, prompt: How much is 1 and 1?, ideal: "1 + 1 = 2", final_answer: "2"}
"""


def test_structuring_and_judging_in_batches_equal_a_live_run(
    assay: Command, server: BatchServer, project: Path
) -> None:
    before = live(assay, server, RUBRIC_SUITE)
    run = submitted(assay, project, RUBRIC_SUITE)
    done = collected(assay, run)
    assert done["run"]["failures"] == []
    assert results(assay, run) == before
    assert server.repeats == {}
    by_stage = {(job["stage"], job["requests"]) for job in done["jobs"]}
    # Eight answers, and each model solution once.
    assert by_stage == {("answers", 4), ("structuring", 10), ("judging", 8)}


def test_answers_are_judged_by_the_rubric_of_the_settings(
    assay: Command, server: BatchServer, project: Path
) -> None:
    server.answer = answer
    (project / "raw.json").write_text(json.dumps(raw()), "utf-8")
    (project / "rubric.yaml").write_text(yaml.safe_dump(RUBRIC), "utf-8")
    (project / "assay.yaml").write_text("rubric: rubric.yaml\njudge: openai/judge\n", "utf-8")
    for verb in (("run",), ("batch", "submit")):
        refused = assay(*verb, "raw.json", "--limit", "1")
        assert refused.code == 2
        assert "--limit does not apply to raw.json, which already holds the answers." in refused.err
    run = assay("batch", "submit", "raw.json", "--json").document
    assert [(job["stage"], job["requests"]) for job in run["jobs"]] == [("structuring", 6)]
    assert collected(assay, run["run"]["run_id"])["run"]["failures"] == []


def test_a_pairwise_judge_and_conversations_take_as_many_jobs_as_rounds(
    assay: Command, server: BatchServer, project: Path
) -> None:
    text = SUITE.replace("mode: each", "mode: pairwise").replace(
        "{id: two, prompt: Say two.}", "{id: two, turns: [Say two., Say it again.]}"
    )
    before = live(assay, server, text)
    server.fates.append(Fate(unanswered=1, status="expired"))
    run = submitted(assay, project, text)
    done = collected(assay, run, most=20)
    assert done["run"]["failures"] == []
    assert results(assay, run) == before
    assert server.repeats == {}


def test_answers_that_came_with_their_tasks_are_judged_in_a_batch(
    assay: Command, server: BatchServer, project: Path
) -> None:
    (project / "raw.json").write_text(json.dumps(raw()), "utf-8")
    (project / "rubric.yaml").write_text(yaml.safe_dump(RUBRIC), "utf-8")
    server.answer = answer
    options = ("raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json")
    before = results(assay, assay("run", *options).document["run_id"])
    run = assay("batch", "submit", *options).document["run"]["run_id"]
    done = collected(assay, run)
    assert done["run"]["trials"]["done"] == 2
    assert results(assay, run)[0] == before[0]


def test_anthropic_batches_equal_calls(assay: Command, server: BatchServer, project: Path) -> None:
    # One trial: this protocol has no seed, so that further ones would be equal requests.
    text = RUBRIC_SUITE.replace("openai/", "anthropic/").replace("trials: 2", "trials: 1")
    before = live(assay, server, text)
    server.fates.append(Fate(failed=1, repeated=1, unknown=1))
    server.fates.append(Fate(unanswered=2, status="expired"))
    run = submitted(assay, project, text)
    done = collected(assay, run)
    assert done["run"]["failures"] == []
    assert results(assay, run)[0] == before[0]
    assert server.repeats == {}
    assert {job["place"] for job in done["jobs"]} == {server.address.removeprefix("http://")}


@pytest.mark.slow
def test_a_judge_whose_reply_cannot_be_read_is_asked_three_times(
    assay: Command, server: BatchServer, project: Path
) -> None:
    server.answer = lambda call: "No." if call.body["model"] == "judge" else "Fine."
    before = live(assay, server)
    run = submitted(assay, project)
    done = collected(assay, run)
    assert {row["kind"] for row in done["run"]["failures"]} == {"unparsable"}
    assert {row["tries"] for row in done["run"]["failures"]} == {3}
    assert results(assay, run) == before
    again = assay("batch", "submit", "--run", run, "--json").document
    assert again["run"]["trials"]["submitted"] == 4


def test_a_model_without_a_batch_api_is_called_beside_the_batch(
    assay: Command, server: BatchServer, project: Path
) -> None:
    text = SUITE.replace("openai/large", "echo").replace(
        "score: exact", "score: {numeric: {tolerance: 1}}"
    )
    before = live(assay, server, text)
    run = submitted(assay, project, text)
    assert [len(batch.lines) for batch in server.batches.values()] == [6]
    collected(assay, run)
    assert results(assay, run) == before
    assert server.repeats == {}


@pytest.mark.parametrize("good", [0, 1], ids=["never", "once"])
@pytest.mark.slow
def test_model_solutions_that_cannot_be_structured_fail_every_trial(
    assay: Command, server: BatchServer, project: Path, good: int
) -> None:
    def reply(call: Any) -> str:
        nonlocal good
        if call.body["model"] != "structurer" or "30 + 30 = 60" not in call.prompt:
            return generic_answer(call)
        good -= 1
        return generic_answer(call) if good >= 0 else "No."

    server.answer = reply
    run = submitted(
        assay, project, RUBRIC_SUITE.replace("openai/small, openai/large", "openai/small")
    )
    server.fates.append(Fate(unanswered=1, status="expired"))
    done = collected(assay, run, most=20)
    failures = {(row["task"], row["kind"], row["tries"]) for row in done["run"]["failures"]}
    assert failures == (set() if good == 0 else {("one", "unparsable", 3)})
    assert done["run"]["trials"]["submitted"] == 0


@pytest.mark.slow
def test_watching_goes_on_until_every_run_is_done(
    assay: Command, server: BatchServer, project: Path
) -> None:
    server.fates.extend([Fate(looks=2), Fate(looks=1)])
    runs = {submitted(assay, project), submitted(assay, project, RUBRIC_SUITE)}
    waiting = assay("batch", "status", "--json").document["runs"]
    assert {document["run"]["run_id"] for document in waiting} == runs
    done = assay("batch", "collect", "--watch", "--every", "0.01", "--json").document["runs"]
    assert {(document["run"]["run_id"], document["run"]["state"]) for document in done} == {
        (run, "finished") for run in runs
    }
    assert assay("batch", "collect", "--json").document == {"runs": []}
    assert server.repeats == {}


def test_keys_are_sent_only_to_their_origin(
    assay: Command, server: BatchServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = BatchServer()
    with other:
        text = SUITE.replace(
            "openai/large", f"{{name: far, model: openai/far, base_url: '{other.url}'}}"
        )
        run = submitted(assay, project, text)
        collected(assay, run)
        assert len(other.batches) == 1
    assert other.keys == set()
    assert server.keys == {"Bearer sk-never-to-be-seen"}
    (project / "assay.yaml").write_text("local_only: true\n", "utf-8")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.openai.com/v1")
    refused = assay("batch", "submit", "suite.yaml")
    assert refused.code == 2
    assert "local_only" in refused.err
