"""Conversations from the suite file to the review: what is sent, stored, graded, resumed and
paid.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from assay.app.workspace import Workspace
from assay.domain.selection import Selection
from assay.web.server import create_app
from tests.journey.conftest import Command
from tests.support.model_server import Call, Mishap, ModelServer

PRICE = "price: {input: 1000, output: 1000}, "
TASK = "{id: sum, turns: [One and one?, And one more?], expected: 3}"
BY_TURN = "{id: sum, turns: [{content: One and one?, expected: 2}, {content: And one more?, expected: 3}], grade_by: turn}"


def write(project: Path, *, head: str = "score: exact", task: str = TASK, price: str = "") -> Path:
    path = project / "talk.yaml"
    path.write_text(
        f"name: talk\n{head}\ncandidates:\n  - {{name: bot, {price}model: openai/small}}\ntasks: [{task}]\n",
        "utf-8",
    )
    return path


def messages(call: Call) -> list[str]:
    return [message["content"] for message in call.body["messages"]]


def counting(call: Call) -> str:
    """Answer the first question wrong and every further one with 3."""
    return "1" if len(messages(call)) == 1 else "3"


def a_pane(project: Path, assay: Command) -> dict[str, Any]:
    (row,) = assay("review", "list", "--json").document["assessments"]
    with Workspace.open(project, environment={}) as workspace:
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        item = client.get(f"/api/assessments/{row['id']}").json()
    return {
        **item["panes"][0],
        "criteria": [(row["name"], row["guidance"]) for row in item["criteria"]],
    }


def test_turns_are_asked_in_order_and_the_last_reply_is_scored(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = counting
    run = assay("run", write(project), "--json")
    assert run.code == 0, run.err
    assert [messages(call) for call in server.calls] == [
        ["One and one?"],
        ["One and one?", "1", "And one more?"],
    ]
    assert assay("stats", "--json").document["candidates"][0]["mean"] == 1.0
    text = (
        "## Turn 1 · user\n\nOne and one?\n\n## Turn 1 · assistant\n\n1\n\n"
        "## Turn 2 · user\n\nAnd one more?\n\n## Turn 2 · assistant\n\n3"
    )
    assert a_pane(project, assay)["text"] == text
    exported = assay("export", "json").out
    assert r"\n\nOne and one?\n\n## Turn 1" in exported


def test_replies_can_be_scored_turn_by_turn(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = counting
    assert assay("run", write(project, task=BY_TURN)).code == 0
    assert assay("stats", "--json").document["candidates"][0]["mean"] == 0.5
    assert [name for name, _ in a_pane(project, assay)["criteria"]] == [
        "turn 1: exact",
        "turn 2: exact",
    ]


def test_the_judge_sees_the_transcript_and_grades_each_turn(
    assay: Command, server: ModelServer, project: Path
) -> None:
    head = "judge: {model: openai/judge, mode: each}\nrubric: [{name: tone, guidance: Is it kind?}]"
    assert assay("run", write(project, head=head, task=BY_TURN)).code == 0
    (judged,) = (call for call in server.calls if call.body["model"] == "judge")
    assert "## Turn 2 · assistant" in messages(judged)[-1]
    assert "Grade what the assistant said" in messages(judged)[-1]
    (row,) = assay("review", "list", "--json").document["assessments"]
    assert [grade["criterion"] for grade in row["grades"]] == ["turn 1: tone", "turn 2: tone"]
    assert a_pane(project, assay)["criteria"][1] == (
        "turn 2: tone",
        "Only the assistant's reply in turn 2. Is it kind? Reference for this reply: 3",
    )
    corrected = assay(
        "review", "correct", row["id"], "--score", "bot/turn 2: tone=9/10", "--reason", "kind"
    )
    assert corrected.code == 0, corrected.err


def test_a_broken_conversation_resumes_after_its_last_reply(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = counting
    server.script([Mishap.OK, Mishap.HTTP_400])
    run = assay("run", write(project), "--json")
    assert run.code == 1
    assert len(server.calls) == 2
    document = assay("resume", run.document["run_id"], "--json").document
    assert document["trials"]["failed"] == 0
    again = [messages(call) for call in list(server.calls)[2:]]
    assert again == [["One and one?", "1", "And one more?"]]
    totals = assay("show", run.document["run_id"], "--json").document
    assert (totals["calls"], totals["answered"][0]["failed_calls"]) == (3, 1)


def test_a_broken_conversation_resumes_from_the_results_folder(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = counting
    server.script([Mishap.OK, Mishap.HTTP_400])
    run = assay("run", write(project), "--json").document["run_id"]
    (project / ".assay" / "assay.db").rename(project / "old.db")
    assert assay("import", "results", "--rebuild").code == 0
    assert assay("resume", run).code == 0
    assert [messages(call) for call in server.calls[2:]] == [["One and one?", "1", "And one more?"]]
    assert "## Turn 2 · assistant\n\n3" in a_pane(project, assay)["text"]


def test_every_turn_counts_against_the_budget(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = counting
    path = write(project, price=PRICE)
    ahead = assay("run", path, "--dry-run", "--json").document
    assert ahead["calls"] == 2
    first = assay("run", path, "--json").document
    assert first["cost_usd"] > 0
    stopped = assay("run", path, "--budget", str(first["cost_usd"]), "--json").document
    assert stopped["paused"]["fault"] == "budget"
    assert stopped["cost_usd"] <= first["cost_usd"]


def test_a_simulated_user_talks_until_it_is_done(
    assay: Command, server: ModelServer, project: Path
) -> None:
    def answer(call: Call) -> str:
        if call.body["model"] != "user":
            return f"reply {len([m for m in call.body['messages'] if m['role'] == 'user'])}"
        return "DONE." if "reply 3" in messages(call)[-1] else "Really?"

    server.answer = answer
    head = f"score: exact\nuser: {{model: openai/user, {PRICE}persona: 'A customer from {{{{town}}}}.', turns: 9}}"
    path = write(
        project,
        head=head,
        task="{id: a, prompt: Hello, expected: reply 3, columns: {town: Bern}}",
        price=PRICE,
    )
    run = assay("run", path, "--json")
    assert run.code == 0, run.err
    asked = [call for call in server.calls if call.body["model"] == "user"]
    assert len(asked) == 3
    assert "A customer from Bern." in messages(asked[0])[0]
    assert "## Turn 1 · assistant\n\nreply 1" in messages(asked[0])[1]
    assert messages(server.calls[-2]) == ["Hello", "reply 1", "Really?", "reply 2", "Really?"]
    assert assay("stats", "--json").document["candidates"][0]["mean"] == 1.0
    totals = assay("show", run.document["run_id"], "--json").document["answered"]
    assert {(row["role"], row["calls"]) for row in totals} == {("candidate", 3), ("user", 3)}
    assert run.document["cost_usd"] > sum(
        row["cost_usd"] for row in totals if row["role"] == "candidate"
    )


def test_a_rerun_and_a_regrade_see_the_whole_conversation(
    assay: Command, server: ModelServer, project: Path
) -> None:
    head = "judge: {model: openai/judge, mode: each}"
    run = assay("run", write(project, head=head), "--json").document["run_id"]
    (row,) = assay("review", "list", "--json").document["assessments"]
    assert assay("review", "rerun", row["id"], "--reason", "unclear").code == 0
    assert assay("regrade", run, "--suite", write(project)).code == 0
    judged = [call for call in server.calls if call.body["model"] == "judge"]
    assert len(judged) == 2
    assert all("## Turn 2 · assistant" in messages(call)[-1] for call in judged)
    assert len([call for call in server.calls if call.body["model"] == "small"]) == 2
    changed = assay(
        "regrade", run, "--suite", write(project, task=TASK.replace("one more", "two more"))
    )
    assert changed.code == 2
    assert "its conversation differs" in changed.err


def test_the_trial_page_sums_the_turns_of_a_conversation(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = counting
    server.script([Mishap.OK, Mishap.HTTP_400])
    run = assay("run", write(project, price=PRICE), "--json").document
    run = assay("resume", run["run_id"], "--json").document
    with Workspace.open(project, environment={}) as workspace:
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        (trial,) = workspace.archive.trials.matching(Selection(runs=(run["run_id"],)))
        here = f"/runs/{run['run_id']}/trials/t{trial.key}/answers"
        (answer,) = client.get(f"{here}.json").json()["answers"]
        page = client.get(here).text
    calls = assay("show", run["run_id"], "--json").document
    assert len(server.calls) == 3
    assert (answer["input_tokens"], answer["output_tokens"]) == (
        calls["tokens"]["input"],
        calls["tokens"]["output"],
    )
    assert answer["cost_usd"] == pytest.approx(run["cost_usd"])
    assert f"{answer['output_tokens']} tokens" in page
