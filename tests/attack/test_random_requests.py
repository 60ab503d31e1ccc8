"""Random requests to every address of the web app, on both sides of what its schema allows: the
answer is never a 500.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from fastapi.testclient import TestClient
from tests.attack.figures import publish
from tests.attack.test_odd_requests import SUITE

from assay.app.runs import execution, preflight
from assay.app.workspace import Workspace
from assay.domain.run import RunOptions
from assay.domain.selection import Selection
from assay.web.server import create_app

REQUESTS = 8_000

PAGES = (
    *(
        "/",
        "/adjudication",
        "/arena",
        "/audit",
        "/calibration",
        "/candidates",
        "/compare",
        "/compare/agreement",
    ),
    *(
        "/compare/grades",
        "/criteria",
        "/models",
        "/specialists",
        "/registry",
        "/registry/diff",
        "/results/task",
        "/results/trend",
    ),
    *(
        "/review",
        "/reviewers",
        "/start",
        "/results",
        "/statistics/behind",
        "/statistics/trials",
        "/signin",
    ),
    *(
        "/arena/{run}",
        "/arena/{run}/ranking",
        "/arena/{run}/pairs.csv",
        "/arena/{run}/votes.csv",
        "/runs/{run}",
    ),
    *(
        "/runs/{run}/record",
        "/runs/{run}/suite",
        "/runs/{run}/trials/{trial}",
        "/runs/{run}/trials/{trial}/answers",
    ),
    *(
        "/runs/{run}/trials/{trial}/answers/{name}.txt",
        "/assessments/{item}",
        "/audit/check.json",
        "/runs.json",
    ),
    *(
        "/audit/events.{name}",
        "/batches/{name}",
        "/calibration/{name}",
        "/candidates/{name}",
        "/criteria/{name}",
    ),
    *(
        "/criteria/{name}/grades.csv",
        "/models/{name}",
        "/preview/{name}",
        "/reviewers/{name}",
        "/index.json",
    ),
    *("/reviewers/{name}/checks", "/statistics/charts/{name}", "/statistics/tables/{name}.csv"),
    *("/statistics/trials/{trial}", "/results/trend/chart.{name}", "/nowhere/{name}"),
)
LEFT_OUT = {"/api/live", "/api/demo", "/api/runs/{run_id}/delete"}
"""A stream without an end, a run of minutes, and the end of what the other requests ask for."""

FIELDS = (
    *(
        "run",
        "suite",
        "task",
        "tag",
        "language",
        "criterion",
        "judge",
        "candidate",
        "batch",
        "batch_id",
        "reviewer",
    ),
    *(
        "a",
        "b",
        "before",
        "after",
        "page",
        "limit",
        "state",
        "day",
        "confidence",
        "margin",
        "scope",
        "sort",
        "look",
    ),
    *(
        "family_by",
        "trial",
        "desk",
        "key",
        "as",
        "width",
        "from",
        "to",
        "q",
        "verb",
        "model",
        "kind",
        "metric",
    ),
)
TEXTS = (
    *(
        "",
        " ",
        "\0",
        "%00",
        "../../etc/passwd",
        "a" * 3000,
        "１",
        "-1",
        "0",
        "1e400",
        "nan",
        "9" * 40,
        "9223372036854775808",
    ),
    *(
        "ann",
        "bob",
        "one",
        "right",
        "svg",
        "json",
        "approve",
        "true",
        "\u202e",
        "é" * 200,
        "'; DROP TABLE run",
        "{{7*7}}",
    ),
)
VALUES: tuple[object, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2**31,
        2**63,
        -(2**63),
        2**70,
        0.5,
        -0.0,
        1e308,
        float("nan"),
        float("inf"),
    ),
    *([], {}, [[]], [None], {"": {}}, {"a": [1, "b"]}, "\ud800", ["\ud800"], [{}] * 50),
)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "one.yaml").write_text(SUITE, "utf-8")
    reply = json.dumps(
        {"candidates": {label: {"right": {"score": 5, "reason": "."}} for label in "AB"}}
    )
    (tmp_path / "judge.jsonl").write_text(
        json.dumps({"match": {"role": "judge"}, "reply": {"text": reply}}), "utf-8"
    )
    with Workspace.open(tmp_path, environment={}) as opened:
        execution.run(opened, preflight.load(opened.settings, tmp_path / "one.yaml"), RunOptions())
        yield opened


class Requests:
    """Draws requests: addresses of things that exist and of others, known fields and unknown, fit
    values and unfit.
    """

    def __init__(self, seed: int, described: dict[str, Any], run: str) -> None:
        self._chance = random.Random(seed)
        self._schemas = described["components"]["schemas"]
        self._operations = [
            (method, path, operation)
            for path, methods in described["paths"].items()
            for method, operation in methods.items()
            if path not in LEFT_OUT
        ]
        self._known = {"run": (run, run[:12]), "trial": ("t1", "1"), "item": ("a1", "1")}

    def draw(self) -> tuple[str, str, bytes | None]:
        """Return method, address and body of the next request."""
        if self._chance.random() < 0.4:
            page = self._chance.choice(PAGES)
            ending = self._chance.choice(("", "", ".json"))
            return (
                "get",
                self._filled(page) + ("" if "." in page or page == "/" else ending) + self._query(),
                None,
            )
        method, path, operation = self._chance.choice(self._operations)
        body = None
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]
            schema = content.get("application/json", {}).get("schema", {})
            text = json.dumps(self._value(schema, depth=0))
            body = self._chance.choice([text, text, text, text[: len(text) // 2]]).encode()
        return method, self._filled(path) + self._query(), body

    def _filled(self, path: str) -> str:
        return re.sub(r"\{(\w+)(?::path)?\}", lambda match: self._place(match[1]), path)

    def _place(self, name: str) -> str:
        kind = {"run_id": "run", "trial_id": "trial", "assessment_id": "item"}.get(name, name)
        if kind in self._known and self._chance.random() < 0.6:
            return self._chance.choice(self._known[kind])
        return quote(self._chance.choice(TEXTS) or "x", safe=self._chance.choice(["", "/"]))

    def _query(self) -> str:
        n = self._chance.choice([0, 0, 1, 1, 2, 4])
        pairs = [(self._chance.choice(FIELDS), self._text()) for _ in range(n)]
        return "?" + urlencode(pairs) if pairs else ""

    def _text(self) -> str:
        known = [text for texts in self._known.values() for text in texts]
        return self._chance.choice(known if self._chance.random() < 0.4 else TEXTS)

    def _value(self, schema: dict[str, Any], *, depth: int) -> Any:
        """Return a value that fits a schema, most of the time."""
        if depth > 5 or self._chance.random() < 0.15:
            return self._chance.choice(VALUES)
        if "$ref" in schema:
            return self._value(self._schemas[schema["$ref"].rsplit("/", 1)[1]], depth=depth)
        if "anyOf" in schema:
            return self._value(self._chance.choice(schema["anyOf"]), depth=depth)
        if "enum" in schema:
            return self._chance.choice(schema["enum"])
        match schema.get("type"):
            case "object":
                properties = schema.get("properties", {})
                required = schema.get("required", ())
                kept = [
                    name for name in properties if name in required or self._chance.random() < 0.5
                ]
                return {name: self._value(properties[name], depth=depth + 1) for name in kept}
            case "array":
                n = self._chance.choice([0, 1, 1, 2])
                return [self._value(schema.get("items", {}), depth=depth + 1) for _ in range(n)]
            case "integer":
                return self._chance.choice([0, 1, 1, 2, 5, -1, 2**63])
            case "number":
                return self._chance.choice([0, 0.5, 1, 1, -1, 1e308])
            case "boolean":
                return self._chance.random() < 0.5
            case _:
                return self._text()


@pytest.mark.parametrize(
    "requests", [50, pytest.param(REQUESTS, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_random_requests_are_never_answered_with_500(workspace: Workspace, requests: int) -> None:
    (run,) = workspace.archive.runs.matching(Selection())
    app = create_app(workspace)
    through = []
    with TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as client:
        drawn = Requests(requests, client.get("/openapi.json").json(), run.id)
        for _ in range(requests):
            method, address, body = drawn.draw()
            headers = {"content-type": "application/json", "origin": "http://127.0.0.1:8000"}
            answered = client.request(
                method, address, content=body, headers=headers, follow_redirects=False
            )
            if answered.status_code == 500:
                through.append((method, address[:300], (body or b"")[:300]))
    assert through == []
    if requests == REQUESTS:
        publish("random request to the web app", tried=requests, through=len(through))
