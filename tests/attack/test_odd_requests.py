"""Requests with characters and models that nothing can use: the answer is never a 500."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.attack.figures import publish_cases
from tests.contract.conftest import postgres as postgres
from tests.contract.stores import StandingClock
from tests.support.postgres import new_database

from assay.app.runs import execution, preflight
from assay.app.workspace import Workspace
from assay.domain.errors import InputError
from assay.domain.run import RunOptions
from assay.domain.selection import Selection
from assay.store.opening import open_store
from assay.web.server import create_app

SUITE = """\
name: one
judge: replay/judge.jsonl
rubric: [right]
tasks:
  - id: one
    prompt: Say one.
    snippets: {ann: one, bob: two}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("odd")
    (place / "one.yaml").write_text(SUITE, "utf-8")
    reply = json.dumps(
        {"candidates": {label: {"right": {"score": 5, "reason": "."}} for label in "AB"}}
    )
    (place / "judge.jsonl").write_text(
        json.dumps({"match": {"role": "judge"}, "reply": {"text": reply}}), "utf-8"
    )
    return place


@pytest.fixture(scope="module")
def workspace(folder: Path) -> Iterator[Workspace]:
    with Workspace.open(folder, environment={}) as opened:
        suite = preflight.load(opened.settings, folder / "one.yaml")
        execution.run(opened, suite, RunOptions())
        yield opened


@pytest.fixture(scope="module")
def client(workspace: Workspace) -> Iterator[TestClient]:
    app = create_app(workspace)
    with TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as opened:
        yield opened


def status(client: TestClient, path: str, body: object) -> int:
    # Not `json=`, which refuses to send half characters.
    headers = {"content-type": "application/json"}
    return client.post(path, content=json.dumps(body), headers=headers).status_code


@pytest.mark.parametrize("text", ["\ud800", "\udfff\ud800", "openai/\ud800", "a\ud800\0"])
@pytest.mark.parametrize("field", ["models", "samples", "pasted", "suite"])
def test_half_a_character_in_a_calibration_is_no_500(
    client: TestClient, field: str, text: str
) -> None:
    body: dict[str, object] = {"models": ["openai/m"], "samples": "none.jsonl"}
    body[field] = [text] if field == "models" else text
    assert status(client, "/api/calibrations", body) in (404, 422)


@pytest.mark.parametrize(
    "judge", ["echo", "echo/x", "replay/none.jsonl", "nobody/x", "", "\ud800", "openai/x\0"]
)
@pytest.mark.parametrize("only_look", [True, False])
def test_a_judge_that_cannot_grade_is_no_500(
    client: TestClient, workspace: Workspace, judge: str, only_look: bool
) -> None:
    (run,) = workspace.archive.runs.matching(Selection())
    assert status(
        client, f"/api/runs/{run.id}/regrade", {"judge": judge, "only_look": only_look}
    ) in (400, 404, 422)


def test_a_nul_in_a_filter_is_refused_on_postgresql(postgres: str) -> None:
    store = open_store(new_database(postgres, "nul"), clock=StandingClock())
    try:
        for selection in (
            Selection(suites=("a\0b",)),
            Selection(tasks=("a\0b",)),
            Selection(batch_ids=("\0",)),
        ):
            with pytest.raises(InputError, match=r"NUL|there is no"):
                store.archive.scores.columns(selection)
    finally:
        store.close()


def test_the_documentation_states_the_odd_requests_that_were_tried() -> None:
    publish_cases(
        "request with half a character, or a judge that cannot grade",
        test_half_a_character_in_a_calibration_is_no_500,
        test_a_judge_that_cannot_grade_is_no_500,
    )
