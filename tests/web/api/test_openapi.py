"""The interface as it describes itself: whole, documented, and true of what is answered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter
from tests.web.api.test_evaluations import RESPONSE, THING
from tests.web.api.test_submitted_runs import RUN

from assay.app.integrations.evaluation_result import EvaluationDocument
from assay.app.workspace import Workspace
from assay.web.api.received_runs import BatchDocument, ReceivedRunDocument
from assay.web.api.schemas import RefusalDocument, SubmittedDocument
from assay.web.run_rows import RunListDocument, RunWithEvaluationsDocument
from assay.web.server import create_app

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "http.md"
HOME = "http://127.0.0.1:8000"
CONTRACT = {
    ("post", "/submit_evaluation"): "202",
    ("get", "/get_evaluation_result/{evaluation_id}"): "200",
    ("get", "/api/runs"): "200",
    ("post", "/api/runs"): "201",
    ("get", "/api/runs/{run_id}"): "200",
    ("get", "/api/batches/{batch_id}"): "200",
}


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.chdir(tmp_path)
    with (
        Workspace.open(tmp_path, environment={}) as opened,
        TestClient(create_app(opened), base_url=HOME) as client,
    ):
        yield client


@pytest.fixture
def described(client: TestClient) -> dict[str, Any]:
    document: dict[str, Any] = client.get("/openapi.json").json()
    return document


def test_every_address_is_documented_and_none_that_is_not_there(described: dict[str, Any]) -> None:
    text = DOCS.read_text("utf-8")
    there = {
        f"{method.upper()} {path}"
        for path, methods in described["paths"].items()
        for method in methods
    }
    written = set(re.findall(r"`((?:GET|POST|PUT|DELETE|PATCH) /[^`\s]*)`", text))
    assert sorted(there - written) == []
    assert sorted(written - there) == []


def test_every_operation_has_a_description(described: dict[str, Any]) -> None:
    for path, methods in described["paths"].items():
        for method, one in methods.items():
            assert one.get("description"), (method, path)


@pytest.mark.parametrize(("method", "path"), CONTRACT)
def test_contract_operations_have_schemas_failures_and_examples(
    described: dict[str, Any], method: str, path: str
) -> None:
    one = described["paths"][path][method]
    good = one["responses"][CONTRACT[method, path]]["content"]["application/json"]["schema"]
    assert "$ref" in good
    assert "401" in one["responses"]
    if method == "post":
        assert "$ref" in one["responses"]["422"]["content"]["application/json"]["schema"]
        assert one["requestBody"]["content"]["application/json"]["examples"]
    else:
        assert {"404"} <= set(one["responses"])


def test_the_examples_are_accepted_as_they_stand(
    client: TestClient, described: dict[str, Any]
) -> None:
    for path in ("/submit_evaluation", "/api/runs"):
        examples = described["paths"][path]["post"]["requestBody"]["content"]["application/json"][
            "examples"
        ]
        for example in examples.values():
            answer = client.post(path, json=example["value"])
            assert answer.status_code in {201, 202}, answer.text


def test_the_examples_in_the_documentation_are_json(client: TestClient) -> None:
    blocks = [
        json.loads(block)
        for block in re.findall(r"^```json\n(.*?)^```", DOCS.read_text("utf-8"), re.M | re.S)
    ]
    thing = next(block for block in blocks if "thingName" in block)
    run = next(block for block in blocks if "scenario" in block)
    assert client.post("/submit_evaluation", json={**thing, "judge": "human"}).status_code == 202
    assert client.post("/api/runs", json=run).status_code == 201


def test_answers_have_the_shape_that_is_described(client: TestClient) -> None:
    ids = []
    for body in ({**THING, "judge": "human"}, {**RESPONSE, "judge_llm_model": "human"}):
        answer = client.post("/submit_evaluation", json=body)
        TypeAdapter(SubmittedDocument).validate_python(answer.json())
        ids.append(answer.json()["evaluation_id"])
    for one in ids:
        TypeAdapter(EvaluationDocument).validate_python(
            client.get(f"/get_evaluation_result/{one}").json()
        )
    TypeAdapter(ReceivedRunDocument).validate_python(client.post("/api/runs", json=RUN).json())
    TypeAdapter(RunListDocument).validate_python(client.get("/api/runs").json())
    for one in (*ids, RUN["runId"]):
        TypeAdapter(RunWithEvaluationsDocument).validate_python(
            client.get(f"/api/runs/{one}").json()
        )
    TypeAdapter(BatchDocument).validate_python(client.get(f"/api/batches/{RUN['batchId']}").json())
    TypeAdapter(RefusalDocument).validate_python(client.get("/api/batches/nothing").json())
    TypeAdapter(RefusalDocument).validate_python(
        client.post("/submit_evaluation", json={**THING, "review": "x"}).json()
    )


def test_the_docs_page_lists_every_endpoint_of_the_description(client: TestClient) -> None:
    page = client.get("/docs", headers={"accept": "text/html"})
    assert page.status_code == 200
    assert "script-src 'self'" in page.headers["content-security-policy"]
    shown = set(re.findall(r"<code>([A-Z]+) (/[^<]*)</code>", page.text))
    paths = client.get("/openapi.json").json()["paths"]
    assert shown == {
        (method.upper(), path) for path, methods in paths.items() for method in methods
    }
    assert "<code>runId</code>" in page.text
    assert "<code>batch_id</code> (query)" in page.text
