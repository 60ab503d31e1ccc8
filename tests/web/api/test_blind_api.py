"""Items that await review, for programs: no API address returns a score of one, and the review API
names nobody.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.contract.conftest import (
    postgres as postgres,  # the one server of a test session
    reused as reused,
    url as url,
)
from tests.support.model_server import Mishap, ModelServer
from tests.web.api.test_evaluations import RESPONSE, THING, ended, pending_keys, result, submitted
from tests.web.api.test_submitted_runs import RUN

from assay.app import people
from assay.app.review import decisions
from assay.app.review.name_masking import HIDDEN_NAME
from assay.app.workspace import Workspace
from assay.domain.identifiers import shown_assessment
from assay.domain.selection import Selection
from assay.web.server import create_app

HOME = "http://127.0.0.1:8000"
NAMES = ("zenobia", "ptolemy")
JUDGE = "openai/judge-of-secrets"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, server: ModelServer
) -> Iterator[Workspace]:
    monkeypatch.chdir(tmp_path)
    environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k", "ASSAY_STORE": url}
    with Workspace.open(tmp_path, environment=environment) as opened:
        yield opened


@pytest.fixture
def client(workspace: Workspace) -> Iterator[TestClient]:
    with TestClient(create_app(workspace), base_url=HOME) as opened:
        yield opened


def rerun_ended(client: TestClient, wish: dict[str, Any]) -> Any:
    deadline = time.monotonic() + 30
    while (document := client.post("/api/rerun", json=wish).json())["status"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return document


def waiting(client: TestClient) -> str:
    """An evaluation whose two trials wait, in a batch."""
    snippets = {name: f"def {place}(): ..." for place, name in zip("ab", NAMES, strict=True)}
    body = {
        **THING,
        "snippets": snippets,
        "judge": JUDGE,
        "trialsNeeded": 2,
        "batch_id": "nightly",
        "metadata": {"models": NAMES},
    }
    evaluation = submitted(client, body)
    assert ended(client, evaluation)["waiting"] == 2
    return evaluation


def addresses(client: TestClient, evaluation: str) -> Iterator[str]:
    """Every address of the interface that only reads, about this evaluation; and the data behind
    the pages.
    """
    values = {"run_id": evaluation, "evaluation_id": evaluation, "batch_id": "nightly"}
    described: dict[str, Any] = client.get("/openapi.json").json()["paths"]
    for path, methods in described.items():
        if "get" in methods and path not in {"/api/live", "/api/review/next"}:
            if path == "/api/suites/read":
                continue  # a file of the server's folder, and there is none
            if path.startswith("/api/assessments/"):
                continue  # what waits, before whoever reviews it
            yield path.format(**values)
    yield from ("/runs.json", f"/runs/{evaluation}.json", "/statistics.json", "/runs.json")
    yield f"/runs/{evaluation}/record.json"


def figures(document: Any) -> Iterator[tuple[str, Any]]:
    """Everything in a document under a name that scores go by."""
    if isinstance(document, list):
        for one in document:
            yield from figures(one)
    if isinstance(document, dict):
        for key, value in document.items():
            small = not isinstance(value, float) or value <= 1  # more than that counts something
            if small and key in {
                "score",
                "scores",
                "grades",
                "raw_score",
                "aggregated_score",
                "avgScore",
                "mean",
                "report",
            }:
                yield key, value
            yield from figures(value)


def test_no_address_for_programs_has_a_score_that_awaits_review(
    client: TestClient, workspace: Workspace
) -> None:
    evaluation = waiting(client)
    rows = list(decisions.assessments(workspace.store, Selection()))
    reasons = {grade.reason for row in rows for grade in row.assessment.grades if grade.reason}
    assert reasons
    asked = 0
    for address in addresses(client, evaluation):
        answer = client.get(address, headers={"accept": "application/json"})
        assert answer.status_code == 200, (address, answer.text)
        asked += 1
        for reason in reasons:
            assert reason not in answer.text, address
        if address in {"/statistics.json", "/api/suites"} or address.endswith("/protocol"):
            continue  # says what the statistics miss, and counts the keys of a review
        assert [entry for entry in figures(answer.json()) if entry[1]] == [], address
    assert asked >= 8


def test_response_length_matches_the_shown_part(client: TestClient, workspace: Workspace) -> None:
    snippets = {
        name: f"# by {name}\ndef {place}(): ..." for place, name in zip("ab", NAMES, strict=True)
    }
    evaluation = submitted(
        client, {**THING, "snippets": snippets, "judge": JUDGE, "trialsNeeded": 1}
    )
    assert ended(client, evaluation)["waiting"] == 1
    (key,) = pending_keys(workspace)
    panes = client.get(f"/api/assessments/{shown_assessment(key)}").json()["panes"]
    assert [HIDDEN_NAME in pane["text"] for pane in panes] == [True, True]
    assert [pane["chars"] for pane in panes] == [len(pane["text"]) for pane in panes]


def test_failure_has_its_detail_while_items_wait(
    client: TestClient, workspace: Workspace, server: ModelServer
) -> None:
    server.script([Mishap.HTTP_400])
    evaluation = submitted(client, {**RESPONSE, "trials": 3, "judge_llm_model": JUDGE})
    report = ended(client, evaluation)
    (failure,) = report["failures"]
    assert (report["waiting"], failure["kind"], failure["fault"]) == (2, "http_400", "harness")
    assert failure["detail"]


def test_the_same_on_both_databases_once_people_have_decided(
    client: TestClient, workspace: Workspace
) -> None:
    evaluation = waiting(client)
    decisions.approve(workspace, pending_keys(workspace))
    outcome = result(client, evaluation)
    assert (outcome["state"], outcome["submitted"]) == (
        "approved",
        {"metadata": {"models": list(NAMES)}},
    )
    assert {one["candidate"]: one["n_trials"] for one in outcome["results"]} == dict.fromkeys(
        NAMES, 2
    )
    batch = client.get("/api/batches/nightly").json()
    assert (batch["totalRuns"], batch["waiting"], len(batch["candidates"])) == (1, 0, 2)
    body = {**THING, "judge": "human"}
    first = submitted(client, body, **{"Idempotency-Key": "one"})
    assert submitted(client, body, **{"Idempotency-Key": "one"}) == first
    assert ended(client, first)["waiting"] == 3
    assert client.post("/api/runs", json=RUN).status_code == 201
    assert client.post("/api/runs", json=RUN).status_code == 200


def test_refusals_speak_of_candidates_as_the_page_does(
    client: TestClient, workspace: Workspace
) -> None:
    waiting(client)
    (key, _) = pending_keys(workspace)
    item = shown_assessment(key)
    criterion = client.get(f"/api/assessments/{item}").json()["criteria"][0]["name"]

    def refused(corrections: list[dict[str, Any]]) -> str:
        by_name = {
            "key": "k" * 10,
            "id": item,
            "verb": "correct",
            "reviewer": "ann",
            "reason": "why",
            "corrections": corrections,
        }
        result = client.post("/api/decisions", json={"decisions": [by_name]}).json()["results"][0]
        assert result["ok"] is False
        assert not any(name in json.dumps(result) for name in NAMES)
        return str(result["error"]["problem"])

    whole = {"pane": 0, "criterion": None, "score": 0.5}
    both = refused([whole, {**whole, "criterion": criterion}])
    assert both == f"Candidate A is corrected both as a whole and on {criterion}."


def test_a_failing_judge_is_explained_to_the_owner_without_its_name(
    client: TestClient, workspace: Workspace, server: ModelServer
) -> None:
    waiting(client)
    (key, _) = pending_keys(workspace)
    server.script([Mishap.HTTP_400])
    wish = {
        "key": "k" * 10,
        "id": shown_assessment(key),
        "attempt": 1,
        "reason": "why",
        "reviewer": "ann",
    }
    document = rerun_ended(client, wish)
    assert document["status"] == "failed"
    assert document["error"]["problem"].startswith("the judge failed; the earlier grades remain.")
    assert "refused the request (400 Bad Request)" in document["error"]["problem"]
    assert JUDGE not in json.dumps(document)


def test_an_invited_reviewer_learns_only_that_the_judge_failed(
    client: TestClient, workspace: Workspace, server: ModelServer
) -> None:
    waiting(client)
    server.script([Mishap.HTTP_400])
    with TestClient(create_app(workspace), base_url=HOME) as reader:
        assert reader.get(
            people.invite(workspace.store, "ann", role="reviewer", base=HOME).link
        ).is_success
        (item, _) = reader.get("/api/review/next?limit=2&desk=desk-1").json()["items"]
        assert item["rerun_problem"] == ""
        document = rerun_ended(
            reader, {"key": "k" * 10, "id": item["id"], "attempt": 1, "reason": "why"}
        )
    assert document["error"] == {
        "where": "rerun",
        "problem": "the judge failed; the earlier grades remain.",
        "remedy": "Ask the owner, or try again later.",
    }
