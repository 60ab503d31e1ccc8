"""Requests drawn from the OpenAPI document by Schemathesis: none is answered with a 500."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from schemathesis.core import NotSet
from schemathesis.core.result import Ok
from tests.attack.figures import publish
from tests.support.examples import examples

from assay.app.runs import execution, preflight
from assay.app.workspace import Workspace
from assay.domain.run import RunOptions
from assay.domain.selection import Selection
from assay.web.server import create_app

pytestmark = pytest.mark.slow

SUITE = """\
name: drawn
judge: replay/judge.jsonl
rubric: [right]
tasks: [{id: one, prompt: Say one., snippets: {ann: one, bob: two}}]
"""
PARTS, IN_A_PART = 8, 1_000
ENDLESS = frozenset({"/api/live"})
"""Streams of events, which end with their client."""

ODD: st.SearchStrategy[Any] = st.sampled_from(
    ("", "\0", "\ud800", "../..", "%00", 2**63, -1, 1.5, None, True, [], {}, "x" * 5000)
)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    place = tmp_path
    (place / "one.yaml").write_text(SUITE, "utf-8")
    reply = json.dumps(
        {"candidates": {label: {"right": {"score": 5, "reason": "."}} for label in "AB"}}
    )
    (place / "judge.jsonl").write_text(
        json.dumps({"match": {"role": "judge"}, "reply": {"text": reply}}), "utf-8"
    )
    with Workspace.open(place, environment={}) as opened:
        execution.run(opened, preflight.load(opened.settings, place / "one.yaml"), RunOptions())
        yield opened


@pytest.fixture
def client(workspace: Workspace) -> Iterator[TestClient]:
    with TestClient(
        create_app(workspace), base_url="http://127.0.0.1:8000", raise_server_exceptions=False
    ) as opened:
        yield opened


def with_known(fields: Any, known: dict[str, Any], odd: tuple[int, Any] | None) -> Any:
    """Return the fields of a request with names of things that exist, and one odd value."""
    if not isinstance(fields, dict):
        return fields
    changed = {name: known.get(name, value) for name, value in fields.items()}
    if odd is not None and changed:
        place, value = odd
        changed[sorted(changed)[place % len(changed)]] = value
    return changed


@pytest.mark.parametrize("part", range(PARTS))
def test_no_drawn_request_is_answered_with_a_500(
    workspace: Workspace, client: TestClient, part: int
) -> None:
    (run,) = workspace.archive.runs.matching(Selection())
    known = {
        "run_id": run.id,
        "run": run.id,
        "assessment_id": 1,
        "assessment": 1,
        "task": "one",
        "suite": "one.yaml",
    }
    schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    operations = [parsed.ok() for parsed in schema.get_all_operations() if isinstance(parsed, Ok)]
    assert len(operations) > 40
    statuses: list[int] = []

    chosen = [each for each in operations if each.path not in ENDLESS][part::PARTS]
    for operation in chosen:

        @settings(
            max_examples=ceil(examples(IN_A_PART) / len(chosen)),
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(
            operation.as_strategy(), st.booleans(), st.none() | st.tuples(st.integers(0, 20), ODD)
        )
        def ask(case: schemathesis.Case[Any], knows: bool, odd: tuple[int, Any] | None) -> None:
            names = known if knows else {}
            path = case.path
            for name, value in with_known(case.path_parameters, names, None).items():
                path = path.replace(
                    f"{{{name}}}", quote(str(value).encode("utf-8", "replace"), safe="") or "0"
                )
            body = b""
            if case.media_type is not None and not isinstance(case.body, NotSet):
                body = json.dumps(
                    with_known(case.body, names, odd), default=str
                ).encode()  # as a client would, escaped
            query = urlencode(
                with_known(case.query, names, odd if not body else None),
                doseq=True,
                errors="replace",
            )
            answer = client.request(
                case.method,
                f"{path}?{query}",
                content=body,
                headers={"content-type": "application/json"},
            )
            statuses.append(answer.status_code)
            assert answer.status_code < 500, (case.method, path, query, body, answer.text)

        ask()
    assert len(statuses) >= examples(IN_A_PART)
    publish("request drawn from the OpenAPI document", tried=PARTS * IN_A_PART, through=0)
    # Some requests are accepted, or only refusals would be tested.
    assert any(status < 300 for status in statuses)
