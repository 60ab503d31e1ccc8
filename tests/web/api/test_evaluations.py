"""Evaluations that other programs submit: stored before the answer, judged in the background, told
without leaks.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.support.model_server import Mishap, ModelServer
from tests.web.conftest import Served, eventually

from assay.app.exports.exporters import ExportRequest
from assay.app.exports.rubric_evaluations import export_evaluations
from assay.app.integrations import evaluations
from assay.app.review import decisions
from assay.app.workspace import Workspace
from assay.domain.selection import Selection
from assay.web.security.body_limit import LARGEST
from assay.web.server import create_app

HOME = "http://127.0.0.1:8000"
THING = {
    "thingName": "Rate limiter",
    "context": "At most 5 calls a second.",
    "language": "python",
    "trialsNeeded": 3,
    "judge": "openai/judge",
    "snippets": [
        {"name": "ann", "content": "def allow(): ..."},
        {"name": "bob", "content": "class Limiter: ..."},
    ],
}
RESPONSE = {
    "prompt_id": "math_seq_001",
    "prompt_content": "Which number follows 9, 5, 6, 10.5, 23?",
    "prompt_metadata": {"subject": "Algebra"},
    "model_response_id": "resp-1",
    "model_name": "o1",
    "model_response_text": "The next one is 54.",
    "ideal_response_id": "ideal-1",
    "ideal_response_text": "Halve and add.",
    "correct_answer": "\\(60\\)",
    "judge_llm_model": "openai/judge",
}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(delay_s=0.02) as running:
        yield running


@pytest.fixture
def workspace(
    tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workspace]:
    monkeypatch.chdir(tmp_path)
    environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
    with Workspace.open(tmp_path, environment=environment) as opened:
        yield opened


@pytest.fixture
def client(workspace: Workspace) -> Iterator[TestClient]:
    with TestClient(create_app(workspace), base_url=HOME) as opened:
        yield opened


def submitted(client: TestClient, body: dict[str, Any], **headers: str) -> str:
    answer = client.post("/submit_evaluation", json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    document = answer.json()
    assert set(document) == {"status", "message", "evaluation_id"}
    assert document["status"] == "submitted"
    return str(document["evaluation_id"])


def result(client: TestClient, evaluation: str) -> Any:
    answer = client.get(f"/get_evaluation_result/{evaluation}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def ended(client: TestClient, evaluation: str) -> Any:
    until(lambda: result(client, evaluation)["state"] not in {"pending", "running"})
    return result(client, evaluation)


def until(holds: Callable[[], bool], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.02)


def pending_keys(workspace: Workspace) -> list[Any]:
    return [
        row.key
        for row in decisions.assessments(workspace.store, Selection())
        if row.state == "pending"
    ]


def refused(client: TestClient, body: Any, status: int = 422) -> dict[str, str]:
    answer = client.post("/submit_evaluation", json=body)
    assert answer.status_code == status, answer.text
    row: dict[str, str] = answer.json()["error"]
    assert set(row) == {"where", "problem", "remedy"}
    return row


def test_a_rubric_with_rules_gives_a_verdict_with_its_number(
    client: TestClient, server: ModelServer
) -> None:
    grade = {"evidence": [], "reason": "The result is off by six.", "score": "Partial"}
    server.answer = lambda call: json.dumps(
        {
            "candidates": {
                label: {"rigor": grade}
                for label in (call.schema or {})["properties"]["candidates"]["properties"]
            },
            "report": "",
        }
    )
    rubric = {"criteria": ["rigor"], "verify": "math"}
    done = ended(client, submitted(client, {**RESPONSE, "rubric": rubric, "review": "none"}))
    assert (done["aggregated_score"], done["aggregated_number"]) == ("Partial", 0.5)
    assert done["final_answer_verified"] is False
    assert done["verification_message"] == "Final answer does not match."


def test_bare_judge_names_and_the_rubric_come_from_settings(
    tmp_path: Path, server: ModelServer
) -> None:
    settings = {
        "judge_names": {"o1": "openai/judge"},
        "rubric": {"criteria": ["rigor"], "scores": {"Right": 1, "Wrong": 0}},
    }
    (tmp_path / "assay.yaml").write_text(json.dumps(settings), "utf-8")
    environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
    server.answer = lambda call: json.dumps(
        {
            "candidates": {
                "A": {"rigor": {"evidence": [], "reason": "It follows.", "score": "Right"}}
            },
            "report": "",
        }
    )
    with (
        Workspace.open(tmp_path, environment=environment) as opened,
        TestClient(create_app(opened), base_url=HOME) as client,
    ):
        done = ended(
            client, submitted(client, {**RESPONSE, "judge_llm_model": "o1", "review": "none"})
        )
    assert (done["aggregated_score"], done["judge_llm_model"]) == ("Pass", "openai/judge")
    assert [*done["parsed_rubric_scores"]] == ["rigor"]


def test_evaluation_runs_in_the_background_and_counts_when_approved(
    client: TestClient, workspace: Workspace
) -> None:
    evaluation = submitted(client, THING)
    waits = ended(client, evaluation)
    assert (waits["state"], waits["waiting"], waits["needs_human_review"]) == (
        "needs_review",
        3,
        True,
    )
    assert waits["trials"]["total"] == waits["trials"]["needs_review"] == 3
    assert [(one["candidate"], one["mean"]) for one in waits["results"]] == [
        ("ann", None),
        ("bob", None),
    ]
    assert (waits["excluded"]["pending"], waits["submitted"]) == (3, {"metadata": {}})
    unreviewed = [
        (row["state"], row["judge"], row["scores"], row["grades"]) for row in waits["evaluations"]
    ]
    assert unreviewed == [("pending", "openai/judge", None, None)] * 3
    first, second, third = pending_keys(workspace)
    decisions.approve(workspace, [first])
    decisions.reject(workspace, [second], reason="wrong")
    partly = result(client, evaluation)
    assert (partly["state"], partly["waiting"]) == ("needs_review", 1)
    assert {one["candidate"]: one["n_trials"] for one in partly["results"]} == {"ann": 1, "bob": 1}
    assert [row["scores"] is None for row in partly["evaluations"]] == [False, True, True]
    decisions.approve(workspace, [third])
    done = result(client, evaluation)
    assert (done["state"], done["waiting"], done["human_review_status"]) == (
        "approved",
        0,
        "Completed",
    )
    rows = list(decisions.assessments(workspace.store, Selection()))
    means = {one["candidate"]: one["mean"] for one in done["results"]}
    counted = [rows[0].assessment.scores, rows[2].assessment.scores]
    assert means == pytest.approx(
        {name: sum(s[name] or 0 for s in counted) / 2 for name in ("ann", "bob")}
    )
    assert done["submitted"] == {"metadata": {}}


def test_a_thing_may_bring_the_id_of_its_task(client: TestClient, workspace: Workspace) -> None:
    ended(client, submitted(client, {**THING, "id": "limits/1"}))
    (run,) = workspace.archive.runs.matching(Selection())
    assert [planned.task.id for planned, _ in workspace.journal.tasks_of(run.id)] == ["limits/1"]


def test_one_response_is_exempt_where_the_caller_says_so(client: TestClient) -> None:
    done = ended(client, submitted(client, {**RESPONSE, "review": "none"}))
    assert done["human_review_status"] == "Not Required"


def test_all_missing_fields_of_a_response_are_named_at_once(client: TestClient) -> None:
    answer = client.post("/submit_evaluation", json={"prompt_id": "p1"})
    assert answer.status_code == 422
    places = {problem["where"] for problem in answer.json()["problems"]}
    assert places == {"body.prompt_content", "body.model_name", "body.model_response_text"}


def test_one_response_under_the_names_of_clients_that_send_one(
    client: TestClient, workspace: Workspace, server: ModelServer
) -> None:
    evaluation = submitted(client, RESPONSE)
    waits = ended(client, evaluation)
    assert (waits["human_review_status"], waits["parsed_rubric_scores"], waits["response_id"]) == (
        "Needs Review",
        None,
        "resp-1",
    )
    prompt = server.calls[0].prompt
    for part in ("9, 5, 6", "The next one is 54.", "\\(60\\)", "Halve and add."):
        assert part in prompt
    decisions.approve(workspace, pending_keys(workspace))
    done = result(client, evaluation)
    assert (done["state"], done["response_id"], done["ideal_response_id"]) == (
        "approved",
        "resp-1",
        "ideal-1",
    )
    assert done["judge_llm_model"] == "openai/judge"
    assert done["submitted"]["metadata"] == {"subject": "Algebra"}
    assert done["aggregated_score"] == pytest.approx(done["results"][0]["mean"])
    assert all(one["justification"] for one in done["parsed_rubric_scores"].values())
    assert set(done["parsed_rubric_scores"]) == {"quality"}


def exported(workspace: Workspace, evaluation: str) -> list[dict[str, Any]]:
    """The lines of `assay export evaluations` for one evaluation."""
    texts: list[str] = []
    selection = Selection(runs=(evaluation,))
    export_evaluations(
        ExportRequest(
            workspace=workspace, format="evaluations", selection=selection, write=texts.append
        )
    )
    return [json.loads(line) for line in "".join(texts).splitlines()]


def same_in_both(client: TestClient, workspace: Workspace, evaluation: str) -> dict[str, Any]:
    """Compare the only line of the export with the result, key by key, and return the line."""
    (line,) = exported(workspace, evaluation)
    document = result(client, evaluation)
    assert line["evaluation_id"] == evaluation
    assert {key: document.get(key, "absent") for key in line} == line
    assert document["answers"] == [line]
    return line


def test_an_approved_evaluation_is_the_same_in_result_and_export(
    client: TestClient, workspace: Workspace
) -> None:
    evaluation = submitted(client, RESPONSE)
    ended(client, evaluation)
    decisions.approve(workspace, pending_keys(workspace), reviewer="rita")
    line = same_in_both(client, workspace, evaluation)
    assert (line["model_id"], line["response_id"], line["human_reviewer_id"]) == (
        "o1",
        "resp-1",
        "rita",
    )
    assert (line["human_review_status"], line["human_corrected_scores"]) == ("Completed", None)
    assert line["judging_api_calls"] == 1


def test_a_corrected_evaluation_is_the_same_in_result_and_export(
    client: TestClient, workspace: Workspace, server: ModelServer
) -> None:
    grade = {"evidence": [], "reason": "The result is off by six.", "score": "Partial"}
    server.answer = lambda call: json.dumps({"candidates": {"A": {"rigor": grade}}, "report": ""})
    evaluation = submitted(
        client, {**RESPONSE, "rubric": {"criteria": ["rigor"], "verify": "math"}}
    )
    ended(client, evaluation)
    (key,) = pending_keys(workspace)
    decisions.correct(
        workspace, key, {("o1", "rigor"): 0.0}, reason="It is wrong.", reviewer="rita"
    )
    line = same_in_both(client, workspace, evaluation)
    assert line["parsed_rubric_scores"]["rigor"] == {
        "score": "Partial",
        "justification": "The result is off by six.",
    }
    assert line["human_corrected_scores"]["rigor"]["score"] == "No"
    assert (line["aggregated_score"], line["aggregated_number"]) == ("Fail", 0.0)
    assert (line["final_answer_verified"], line["needs_human_review"]) == (False, True)


def test_a_waiting_evaluation_has_its_id_but_no_grade(
    client: TestClient, workspace: Workspace
) -> None:
    evaluation = submitted(client, RESPONSE)
    waits = ended(client, evaluation)
    assert (exported(workspace, evaluation), waits["answers"]) == ([], [])
    decisions.approve(workspace, pending_keys(workspace))
    line = same_in_both(client, workspace, evaluation)
    ids = (
        "evaluation_id",
        "task_id",
        "model_id",
        "trial",
        "response_id",
        "ideal_response_id",
        "created_at",
    )
    assert {key: waits[key] for key in ids} == {key: line[key] for key in ids}
    given = {key for key in line if waits[key] is not None} - {
        *ids,
        "needs_human_review",
        "review_reasons",
    }
    assert given == {"human_review_status"}


def test_a_scored_evaluation_is_the_same_in_result_and_export(
    client: TestClient, workspace: Workspace
) -> None:
    body = {
        "thingName": "Sum",
        "snippets": {"ann": "60"},
        "prompt": "30 + 30?",
        "expected": "60",
        "score": "exact",
    }
    evaluation = submitted(client, body)
    ended(client, evaluation)
    line = same_in_both(client, workspace, evaluation)
    assert (line["aggregated_score"], line["judge_llm_model"], line["needs_human_review"]) == (
        1.0,
        "exact",
        False,
    )


def test_answers_of_several_candidates_are_those_of_the_export(
    client: TestClient, workspace: Workspace
) -> None:
    evaluation = submitted(client, {**THING, "trialsNeeded": 2})
    ended(client, evaluation)
    decisions.approve(workspace, pending_keys(workspace)[:1])
    document = result(client, evaluation)
    lines = exported(workspace, evaluation)
    assert document["answers"] == lines
    assert [(line["model_id"], line["trial"]) for line in lines] == [("ann", 1), ("bob", 1)]
    assert evaluation not in {line["evaluation_id"] for line in lines}
    assert (document["model_id"], document["aggregated_score"], document["needs_human_review"]) == (
        None,
        None,
        True,
    )


def test_of_several_trials_the_first_has_the_id_of_the_evaluation(
    client: TestClient, workspace: Workspace
) -> None:
    evaluation = submitted(client, {**RESPONSE, "trials": 3})
    ended(client, evaluation)
    decisions.approve(workspace, pending_keys(workspace))
    document = result(client, evaluation)
    lines = exported(workspace, evaluation)
    assert document["answers"] == lines
    (first,) = [line for line in lines if line["evaluation_id"] == evaluation]
    assert first["trial"] == 1
    assert {key: document[key] for key in first} == first
    assert len({line["evaluation_id"] for line in lines}) == 3


def test_it_is_stored_before_it_is_answered_and_known_to_every_process(
    client: TestClient, workspace: Workspace, tmp_path: Path
) -> None:
    evaluation = submitted(client, {**THING, "judge": "human"})
    with Workspace.open(tmp_path, environment={}) as other:
        (summary,) = other.archive.runs.matching()
        assert (summary.id, summary.suite) == (evaluation, "submitted")
    until(lambda: result(client, evaluation)["state"] == "needs_review")


def test_idempotency_key_gives_one_evaluation_and_one_content(
    client: TestClient, workspace: Workspace
) -> None:
    items: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: items.append(submitted(client, THING, **{"Idempotency-Key": "k-1"}))
        )
        for _ in range(6)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(items) == 6
    assert len(set(items)) == 1
    ended(client, items[0])
    assert len(workspace.archive.runs.matching()) == 1
    again = client.post("/submit_evaluation", json=THING, headers={"Idempotency-Key": "k-1"})
    assert again.json()["evaluation_id"] == items[0]
    assert "before" in again.json()["message"]
    other = client.post(
        "/submit_evaluation", json={**THING, "trialsNeeded": 4}, headers={"Idempotency-Key": "k-1"}
    )
    assert other.status_code == 422
    assert other.json()["error"]["where"] == "Idempotency-Key"
    assert submitted(client, THING, **{"Idempotency-Key": "k-2"}) != items[0]
    assert len(workspace.archive.runs.matching()) == 2


@pytest.mark.parametrize(
    ("changes", "where", "said"),
    [
        ({"rubrik": []}, "body.rubrik", "is not a field"),
        ({"snippets": []}, "snippets", ""),
        (
            {"snippets": [{"name": "ann", "content": "x"}, {"name": "Ann", "content": "y"}]},
            "snippets",
            "twice",
        ),
        ({"snippets": {"ann": "x"}, "mode": "joint"}, "", "at least two"),
        ({"thingName": "???"}, "thingName", "letter or digit"),
        ({"trialsNeeded": 0}, "body.trialsNeeded", "1 or more"),
        ({"judge": "nonsense"}, "judge", "provider/name"),
        ({"judge": "nowhere/model"}, "", "nowhere"),
        ({"rubric": [{"name": "x", "scale": [9, 1]}]}, "rubric[0].scale", "9"),
        ({"parameters": {"temperature": 9}}, "parameters.temperature", "2"),
        ({"review": "sometimes"}, "review", "every"),
        ({"budget": -1}, "budget", "more than 0"),
        ({"score": "exact"}, "", "expected"),
        ({"score": "guess"}, "score", "exact"),
    ],
)
def test_invalid_evaluation_names_its_field_and_stores_nothing(
    client: TestClient, workspace: Workspace, changes: dict[str, Any], where: str, said: str
) -> None:
    error = refused(client, {**THING, **changes})
    assert where in error["where"]
    assert "tasks[0]" not in error["where"]
    assert "submitted.json" not in json.dumps(error)
    assert said in error["problem"] + error["remedy"]
    assert workspace.archive.runs.matching() == ()


def test_a_body_that_is_no_json_or_too_large_is_refused(client: TestClient) -> None:
    broken = client.post(
        "/submit_evaluation", content="{", headers={"content-type": "application/json"}
    )
    assert (broken.status_code, broken.json()["error"]["where"]) == (400, "body")
    assert client.post("/submit_evaluation", json=[]).status_code == 422
    large = b'{"x": "' + b"a" * LARGEST + b'"}'
    headers = {"content-type": "application/json"}
    assert client.post("/submit_evaluation", content=large, headers=headers).status_code == 413
    in_parts = (large[place : place + 2**20] for place in range(0, len(large), 2**20))
    assert client.post("/submit_evaluation", content=in_parts, headers=headers).status_code == 413


def test_files_of_the_server_are_not_read_for_a_client(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("SECRET", "utf-8")
    assert refused(client, {**THING, "snippets": {"ann": {"file": "secret.py"}, "bob": "x"}})
    error = refused(client, {**RESPONSE, "judge_prompt_version": "../secret.txt"})
    assert "prompt" in error["where"]


def test_unknown_evaluations_are_not_found(client: TestClient, workspace: Workspace) -> None:
    for unknown in ("eval_796c7caa-f92a-4ea0-9ef4-e2482362d162", "eval_", "nonsense", "eval_%00"):
        answer = client.get(f"/get_evaluation_result/{unknown}")
        assert answer.status_code == 404
        assert "no evaluation" in answer.json()["error"]["problem"]
    evaluation = submitted(client, {**THING, "judge": "human"})
    assert client.get(f"/get_evaluation_result/{evaluation[:20]}").status_code == 404


def test_failures_have_kind_and_fault(client: TestClient, server: ModelServer) -> None:
    server.faults(1.0, [Mishap.REFUSAL])
    outcome = ended(client, submitted(client, {**THING, "trialsNeeded": 1}))
    assert outcome["state"] == "failed"
    (failure,) = outcome["failures"]
    assert (failure["kind"], failure["fault"]) != (None, None)
    assert outcome["parsing_error"] == failure["detail"]


def test_a_wrong_key_pauses_an_evaluation_and_is_named(
    client: TestClient, server: ModelServer
) -> None:
    server.faults(1.0, [Mishap.HTTP_401])
    outcome = ended(client, submitted(client, {**THING, "trialsNeeded": 1}))
    assert (outcome["state"], outcome["failures"]) == ("paused", [])
    assert outcome["message"].startswith("It is paused, because further calls would probably fail")
    assert f"assay resume {outcome['run_id']}" in outcome["message"]
    assert "401" in outcome["parsing_error"]


def test_local_only_refuses_before_anything_is_asked(tmp_path: Path) -> None:
    environment = {"OPENAI_API_KEY": "k"}
    with Workspace.open(tmp_path, environment=environment, options={"local_only": True}) as opened:
        with TestClient(create_app(opened), base_url=HOME) as client:
            assert "local_only" in json.dumps(refused(client, THING))
        assert opened.archive.runs.matching() == ()


def test_the_budget_is_obeyed_and_named_as_the_reason(tmp_path: Path, server: ModelServer) -> None:
    prices = "{openai/judge: {input: 1000, output: 1000}}"
    environment = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": server.url, "ASSAY_PRICES": prices}
    with (
        Workspace.open(tmp_path, environment=environment) as opened,
        TestClient(create_app(opened), base_url=HOME) as client,
    ):
        outcome = ended(client, submitted(client, {**THING, "budget": 0.000001}))
    assert (outcome["state"], outcome["failures"]) == ("paused", [])
    assert outcome["message"].startswith("It is paused, because the budget is reached")
    assert server.calls == ()


@pytest.mark.slow
def test_more_than_the_server_carries_out_at_once_wait_their_turn(
    client: TestClient, server: ModelServer
) -> None:
    items = [
        submitted(client, {**THING, "thingName": f"Thing {n}", "trialsNeeded": 1})
        for n in range(12)
    ]
    assert all(ended(client, one)["state"] == "needs_review" for one in items)


@pytest.mark.parametrize(("read_only", "calls"), [(True, 0), (False, 1)])
def test_a_new_server_goes_on_unless_it_only_reads(
    tmp_path: Path, server: ModelServer, read_only: bool, calls: int
) -> None:
    environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
    submission = evaluations.Submission(
        thing="t", snippets=(("ann", "code"),), judges=("openai/judge",), mode="each", trials=1
    )
    with Workspace.open(tmp_path, environment=environment) as opened:
        accepted = evaluations.submit(opened, submission)
    with (
        Workspace.open(tmp_path, environment=environment, read_only=read_only) as opened,
        TestClient(create_app(opened), base_url=HOME) as client,
    ):
        state = (
            ended(client, accepted.evaluation_id)["state"]
            if calls
            else result(client, accepted.evaluation_id)["state"]
        )
    assert (state == "pending") is read_only
    assert (len(server.calls) > 0) is bool(calls)


@pytest.mark.slow
def test_after_a_kill_the_evaluation_goes_on_by_itself(tmp_path: Path) -> None:
    with ModelServer(delay_s=0.4) as models:
        (tmp_path / ".env").write_text(f"OPENAI_BASE_URL={models.url}\nOPENAI_API_KEY=k\n", "utf-8")
        (tmp_path / "assay.yaml").write_text("concurrency: 1\n", "utf-8")
        served = Served(tmp_path)
        served.start()
        try:
            body = {**THING, "trialsNeeded": 6}
            evaluation = posted(served, body, key="restart")
            eventually(
                lambda: 0 < served.get(f"/get_evaluation_result/{evaluation}")["trials"]["done"] < 6
            )
            served.kill()
            served.start()
            assert posted(served, body, key="restart") == evaluation
            eventually(
                lambda: (
                    served.get(f"/get_evaluation_result/{evaluation}")["state"] == "needs_review"
                ),
                within_s=30,
            )
            done = served.get(f"/get_evaluation_result/{evaluation}")
            assert (done["waiting"], done["trials"]["total"]) == (6, 6)
        finally:
            served.kill()


def posted(served: Served, body: dict[str, Any], *, key: str) -> str:
    request = urllib.request.Request(
        f"{served.url}/submit_evaluation",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "Idempotency-Key": key},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 202
        return str(json.load(answer)["evaluation_id"])


def test_beyond_loopback_scripts_show_the_token(workspace: Workspace) -> None:
    with TestClient(create_app(workspace, token="a-s3cret-of-any-length"), base_url=HOME) as client:
        bearer = {"authorization": "Bearer a-s3cret-of-any-length"}
        assert client.post("/submit_evaluation", json=THING).status_code == 401
        assert (
            client.post(
                "/submit_evaluation", json=THING, headers={"authorization": "Bearer x"}
            ).status_code
            == 401
        )
        evaluation = submitted(client, {**THING, "judge": "human"}, **bearer)
        assert client.get(f"/get_evaluation_result/{evaluation}").status_code == 401
        assert client.get(f"/get_evaluation_result/{evaluation}", headers=bearer).status_code == 200


@pytest.mark.parametrize(
    "headers", [{"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}]
)
def test_other_sites_neither_submit_nor_read(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/submit_evaluation", json=THING, headers=headers).status_code == 403
    if "origin" not in headers:
        assert client.get("/get_evaluation_result/eval_x", headers=headers).status_code == 403
