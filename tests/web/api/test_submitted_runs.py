"""Finished runs that come over HTTP, and batches of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from assay.app.imports.importer import import_paths
from assay.app.review import decisions
from assay.app.workspace import Workspace
from assay.domain.selection import Selection
from assay.web.server import create_app

HOME = "http://127.0.0.1:8000"
RUN: dict[str, Any] = {
    "runId": "run_1234567890_abc",
    "batchId": "batch_1234567890",
    "suite": "update-deps",
    "scenario": "nx-pnpm-monorepo",
    "tier": "L1",
    "agent": "anthropic",
    "model": "claude-3-5-sonnet-20241022",
    "status": "completed",
    "startedAt": "2026-01-18T12:00:00Z",
    "completedAt": "2026-01-18T12:00:45Z",
    "totalScore": 0.85,
    "weightedScore": 0.85,
    "isSuccessful": True,
    "specialistEnabled": False,
    "evaluations": [
        {"evaluatorName": "build", "score": 1.0, "maxScore": 1.0},
        {"evaluatorName": "typecheck", "score": 0.8, "maxScore": 1.0},
        {"evaluatorName": "lint", "score": 7.5, "maxScore": 10},
    ],
    "telemetry": {
        "durationMs": 45000,
        "toolCalls": 12,
        "tokensIn": 15000,
        "tokensOut": 2500,
        "costUsd": 0.0825,
    },
    "ciJob": {"number": 17},
}
JUDGED = {
    "evaluatorName": "llm-judge",
    "score": 0.4,
    "maxScore": 1.0,
    "details": {"why": "Untidy."},
}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.chdir(tmp_path)
    with Workspace.open(tmp_path, environment={}) as opened:
        yield opened


@pytest.fixture
def client(workspace: Workspace) -> Iterator[TestClient]:
    with TestClient(create_app(workspace), base_url=HOME) as opened:
        yield opened


def sent(client: TestClient, code: int = 201, **changes: Any) -> Any:
    answer = client.post("/api/runs", json={**RUN, **changes})
    assert answer.status_code == code, answer.text
    return answer.json()


def test_a_finished_run_keeps_its_id_and_reads_as_agent_harnesses_expect(
    client: TestClient, workspace: Workspace
) -> None:
    assert sent(client)["run_id"] == "run_1234567890_abc"
    document = client.get("/api/runs/run_1234567890_abc").json()
    run = document["run"]
    assert (run["runId"], run["batchId"], run["status"]) == (
        "run_1234567890_abc",
        "batch_1234567890",
        "finished",
    )
    assert (run["startedAt"], run["scenario"], run["tier"], run["agent"]) == (
        "2026-01-18T12:00:00.000Z",
        "nx-pnpm-monorepo",
        "L1",
        "anthropic",
    )
    assert {one["evaluatorName"]: one["score"] for one in document["evaluations"]} == {
        "build": 1.0,
        "typecheck": 0.8,
        "lint": 0.75,
    }
    assert {one["state"] for one in document["evaluations"]} == {"not_required"}
    row = document["telemetry"]
    assert (row["tokensIn"], row["tokensOut"], row["costUsd"]) == (15000, 2500, 0.0825)
    assert (row["durationMs"], row["toolCalls"]) == (45000, 12)


def test_nothing_is_lost(client: TestClient, workspace: Workspace, tmp_path: Path) -> None:
    content = json.dumps(RUN, indent=3).encode()
    headers = {"content-type": "application/json"}
    run = client.post("/api/runs", content=content, headers=headers).json()["run_id"]
    (original,) = (tmp_path / ".assay" / "imports").iterdir()
    assert original.read_bytes() == content
    kept = workspace.journal.plan_of(run).environment
    assert kept["agent_run"]["ciJob"] == {"number": 17}  # type: ignore[index,call-overload]
    assert kept["imported"]["from"] == "a run sent over HTTP"  # type: ignore[index,call-overload]


def test_the_same_again_is_the_same_run_and_says_so(
    client: TestClient, workspace: Workspace
) -> None:
    first = sent(client)
    again = sent(client, 200)
    assert again["run_id"] == first["run_id"]
    assert "already imported" in again["message"]
    turned = client.post("/api/runs", json=dict(reversed(RUN.items())))
    assert (turned.status_code, turned.json()["run_id"]) == (200, first["run_id"])
    nameless = {key: value for key, value in RUN.items() if key != "runId"}
    new = client.post("/api/runs", json=nameless)
    assert new.status_code == 201
    assert client.post("/api/runs", json=nameless).json()["run_id"] == new.json()["run_id"]
    assert len(workspace.archive.runs.matching()) == 2


def test_an_id_is_never_given_to_other_content(client: TestClient, workspace: Workspace) -> None:
    sent(client)
    error = sent(client, 409, model="another")["error"]
    assert "different content" in error["problem"]
    assert len(workspace.archive.runs.matching()) == 1


def test_one_run_sent_by_many_at_once_is_one_run(client: TestClient, workspace: Workspace) -> None:
    items: list[tuple[int, str]] = []

    def send() -> None:
        answer = client.post("/api/runs", json=RUN)
        items.append((answer.status_code, answer.json()["run_id"]))

    threads = [threading.Thread(target=send) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert {run for _, run in items} == {"run_1234567890_abc"}
    assert sorted(status for status, _ in items) == [200] * 5 + [201]
    assert len(workspace.archive.runs.matching()) == 1


def test_imported_model_grades_wait_without_a_score(
    client: TestClient, workspace: Workspace
) -> None:
    run = sent(client, evaluations=[*RUN["evaluations"], JUDGED])["run_id"]
    told = client.get(f"/api/runs/{run}").json()
    assert told["run"]["waiting"] == 1
    waits = told["evaluations"][-1]
    assert (waits["state"], waits["judge"], waits["score"], waits["scores"]) == (
        "pending",
        "evaluators",
        None,
        None,
    )
    assert [told["run"][name] for name in ("totalScore", "weightedScore", "isSuccessful")] == [
        None
    ] * 3
    assert "0.4" not in json.dumps(told)
    batch = client.get("/api/batches/batch_1234567890").json()
    assert (batch["waiting"], batch["candidates"][0]["mean"]) == (1, None)
    (key,) = [
        row.key
        for row in decisions.assessments(workspace.store, Selection())
        if row.state == "pending"
    ]
    decisions.approve(workspace, [key])
    batch = client.get("/api/batches/batch_1234567890").json()
    assert (batch["waiting"], batch["avgScore"]) == (0, pytest.approx((1 + 0.8 + 0.75 + 0.4) / 4))


def test_batches_are_listed_newest_first(client: TestClient) -> None:
    for number, batch in enumerate(("b1", "b2", "b1")):
        sent(client, runId=f"r{number}", batchId=batch, evaluations=[*RUN["evaluations"], JUDGED])
    sent(client, runId="alone", batchId=None)
    newest, oldest = client.get("/api/batches").json()["batches"]
    assert {key: newest[key] for key in ("batchId", "totalRuns", "finishedRuns", "waiting")} == {
        "batchId": "b1",
        "totalRuns": 2,
        "finishedRuns": 2,
        "waiting": 2,
    }
    assert (oldest["batch_id"], oldest["totalRuns"]) == ("b2", 1)
    assert len(client.get("/api/batches?limit=1").json()["batches"]) == 1


def test_weights_make_the_score_and_totals_are_given_back(client: TestClient) -> None:
    weights = {"build": 0.4, "typecheck": 0.3, "lint": 0.3}
    evaluations = [
        {**each, "weight": weights[each["evaluatorName"]]} for each in RUN["evaluations"]
    ]
    run = sent(client, evaluations=evaluations)["run_id"]
    document = client.get(f"/api/runs/{run}").json()
    assert {each["evaluatorName"]: each["weight"] for each in document["evaluations"]} == weights
    # 0.85 would be the mean without weights
    assert document["run"]["weightedScore"] == pytest.approx(0.865)
    assert (document["run"]["totalScore"], document["run"]["isSuccessful"]) == (
        pytest.approx(0.865),
        True,
    )
    batch = client.get("/api/batches/batch_1234567890").json()
    assert batch["avgScore"] == pytest.approx(0.865)
    plain = sent(client, runId="plain", batchId="b2", weightedScore=None, isSuccessful=None)[
        "run_id"
    ]
    totals = client.get(f"/api/runs/{plain}").json()["run"]
    assert (totals["weightedScore"], totals["totalScore"]) == (
        pytest.approx(0.85),
        pytest.approx(2.55),
    )
    assert totals["isSuccessful"] is True, "0.85 is above the usual threshold of 0.7"


def test_total_of_unknown_origin_waits_unless_a_rule_is_declared(client: TestClient) -> None:
    run = sent(client, runId="a", evaluations=None)["run_id"]
    assert client.get(f"/api/runs/{run}").json()["run"]["waiting"] == 1
    run = sent(client, runId="b", evaluations=None, gradedBy="rule")["run_id"]
    assert client.get(f"/api/runs/{run}").json()["run"]["waiting"] == 0


def test_the_other_spelling_is_read_alike(client: TestClient) -> None:
    body = {
        "run_id": "run_2",
        "batch_id": "b2",
        "run_date": "2026-01-18T12:00:00Z",
        "suite": "s",
        "scenario": "x",
        "tier": "L0",
        "agent": "echo",
        "overall_score": 0.65,
        "specialist_enabled": True,
        "specialist_name": "@org/nx",
        "evaluations": {"build": {"score": 0.5, "passed": False, "details": "no"}, "tests": 1},
        "telemetry": {
            "duration_ms": 9,
            "tool_calls": 3,
            "token_usage": {"prompt_tokens": 5, "completion_tokens": 7},
        },
    }
    answer = client.post("/api/runs", json=body)
    assert (answer.status_code, answer.json()["run_id"]) == (201, "run_2"), answer.text
    document = client.get("/api/runs/run_2").json()
    assert document["run"]["specialistEnabled"] is True
    assert document["run"]["candidates"] == ["echo with @org/nx"]
    assert (
        document["telemetry"]["tokensIn"],
        document["telemetry"]["durationMs"],
        document["telemetry"]["toolCalls"],
    ) == (5, 9, 3)
    assert document["telemetry"]["costUsd"] in {None, 0.0}
    assert client.get("/api/batches/b2").json()["avgScore"] == 0.75


def test_a_run_that_broke_is_a_failure_and_not_a_zero(
    client: TestClient, workspace: Workspace
) -> None:
    run = sent(
        client,
        evaluations=[],
        totalScore=None,
        weightedScore=None,
        status="timeout",
        error="Too slow.",
    )["run_id"]
    row = client.get(f"/api/runs/{run}").json()["run"]
    assert (row["failed"], row["judged"]) == (1, 0)
    (trial,) = workspace.archive.trials.matching(Selection(), failed_only=True)
    assert trial.failure is not None
    assert (trial.failure.kind, str(trial.failure.fault), trial.failure.detail) == (
        "timeout",
        "harness",
        "Too slow.",
    )
    (candidate,) = client.get("/api/batches/batch_1234567890").json()["candidates"]
    assert (candidate["mean"], candidate["n_trials"]) == (None, 0)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"suite": None}, "body.suite"),
        ({"agent": ""}, "agent"),
        ({"evaluations": [{"score": 1}]}, "evaluatorName"),
        ({"evaluations": [{"evaluatorName": "a", "score": 2}]}, "evaluations[0].score"),
        ({"evaluations": [{"evaluatorName": "a", "score": -0.1}]}, "evaluations[0].score"),
        (
            {"evaluations": [{"evaluatorName": "a", "score": 1, "maxScore": 0}]},
            "evaluations[0].maxScore",
        ),
        ({"evaluations": [{"evaluatorName": "a"}, {"evaluatorName": "a"}]}, "evaluations[1]"),
        (
            {"evaluations": [{"evaluatorName": "a", "score": 1, "weight": -1}]},
            "evaluations[0].weight",
        ),
        ({"evaluations": [{"evaluatorName": "a", "score": 1, "weight": 0}]}, "evaluations"),
        (
            {"evaluations": [{"evaluatorName": "a", "score": 1, "gradedBy": "me"}]},
            "evaluations[0].gradedBy",
        ),
        ({"evaluations": {"a": {"score": "high"}}}, "evaluations.a.score"),
        ({"telemetry": {"costUsd": -1}}, "telemetry.costUsd"),
        ({"telemetry": [1]}, "telemetry"),
        ({"iteration": 0}, "iteration"),
    ],
)
def test_a_bad_field_is_named_and_nothing_is_stored(
    client: TestClient, workspace: Workspace, changes: dict[str, Any], where: str
) -> None:
    error = sent(client, 422, **changes)["error"]
    assert where in error["where"]
    assert error["problem"]
    assert workspace.archive.runs.matching() == ()


def test_agent_runs_from_a_file_are_imported_like_requests(
    client: TestClient, workspace: Workspace, tmp_path: Path
) -> None:
    rows = [{**RUN, "runId": f"run_{n}", "iteration": 1} for n in range(3)] + [
        {**RUN, "runId": "x", "agent": None}
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    result = import_paths(workspace, [path])
    assert (dict(result.formats), result.run_ids) == ({"agent_run": 1}, ["run_0", "run_1", "run_2"])
    assert [(one.where.rpartition("/")[2], one.why[:10]) for one in result.skipped] == [
        ("runs.jsonl:4 agent", "is missing")
    ]
    assert sent(client, 200, runId="run_1", iteration=1)["run_id"] == "run_1"
    batch = client.get("/api/batches/batch_1234567890").json()
    assert (batch["totalRuns"], batch["trials"]["approved"], batch["telemetry"]["tokensIn"]) == (
        3,
        3,
        45000,
    )
    assert batch["candidates"][0]["n_trials"] == 3
    assert batch["candidates"][0]["mean"] == batch["avgScore"] == pytest.approx(0.85)


def test_hostile_ids_lead_nowhere(client: TestClient, workspace: Workspace, tmp_path: Path) -> None:
    for number, bad in enumerate(
        ("../../x", "a/b", "x" * 150, "<img onerror=1>", ".hidden", "a b")
    ):
        run = sent(client, runId=bad, batchId=f"b{number}")["run_id"]
        assert run != bad
        assert client.get(f"/api/runs/{run}").status_code == 200
    assert not list(tmp_path.parent.glob("x*"))


def test_runs_are_listed_by_suite_batch_and_state(client: TestClient) -> None:
    sent(client, runId="one")
    sent(client, runId="two", batchId="other")

    def listed(**asked: str) -> list[str]:
        return [one["run_id"] for one in client.get("/api/runs", params=asked).json()["runs"]]

    assert sorted(listed()) == ["one", "two"]
    assert listed(batch_id="other") == ["two"]
    assert sorted(listed(status="finished", suite="update-deps")) == ["one", "two"]
    assert listed(status="running") == []
    assert client.get("/api/runs", params={"status": "nonsense"}).status_code == 422
    assert client.get("/api/runs", params={"suite": "nonsense"}).status_code == 404


def test_unknown_batches_and_runs_are_not_found(client: TestClient) -> None:
    sent(client)
    for path in ("/api/batches/nothing", "/api/batches/%2e%2e", "/api/runs/nothing"):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.json()["error"]["problem"]
    assert (
        "batch_1234567890" in client.get("/api/batches/batch_123456789").json()["error"]["problem"]
    )


def test_scripts_show_the_token_and_other_sites_are_refused(workspace: Workspace) -> None:
    with TestClient(create_app(workspace, token="a-s3cret-of-any-length"), base_url=HOME) as client:
        bearer = {"authorization": "Bearer a-s3cret-of-any-length"}
        assert client.post("/api/runs", json=RUN).status_code == 401
        assert client.post("/api/runs", json=RUN, headers=bearer).status_code == 201
        assert client.get("/api/batches/batch_1234567890").status_code == 401
        assert client.get("/api/batches/batch_1234567890", headers=bearer).status_code == 200
        cross = {**bearer, "sec-fetch-site": "cross-site"}
        assert client.post("/api/runs", json=RUN, headers=cross).status_code == 403
        assert client.get("/api/batches/batch_1234567890", headers=cross).status_code == 403


@pytest.mark.parametrize("field", ["suite", "scenario", "agent", "batchId", "evaluatorName"])
def test_a_run_with_a_hostile_name_is_refused_whole(client: TestClient, field: str) -> None:
    run = json.loads(json.dumps(RUN))
    if field == "evaluatorName":
        run["evaluations"] = [{"evaluatorName": "checks\u202e", "score": 1.0}]
    else:
        run[field] = "checks\u202e"
    answer = client.post("/api/runs", json=run)
    assert answer.status_code == 422
    assert "without control characters" in answer.json()["error"]["problem"]
    assert client.get("/api/runs").json()["runs"] == []
