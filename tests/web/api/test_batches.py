"""Runs that wait for a batch, on their pages and over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.support.batch_server import BatchServer

from assay.app.runs import batch, preflight
from assay.app.runs.start import tasks_of
from assay.app.workspace import Workspace
from assay.domain.run import RunOptions
from assay.web.server import create_app

SUITE = """\
name: asked
trials: 2
candidates: [openai/small]
score: exact
tasks: [{id: one, prompt: Say one., expected: "1"}]
"""


@pytest.fixture
def server() -> Iterator[BatchServer]:
    running = BatchServer()
    with running:
        yield running


@pytest.fixture
def workspace(tmp_path: Path, server: BatchServer) -> Iterator[Workspace]:
    environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
    with Workspace.open(tmp_path, environment=environment) as opened:
        yield opened


@pytest.fixture
def filed(workspace: Workspace) -> str:
    """A suite file in the server's folder."""
    (workspace.folder / "suite.yaml").write_text(SUITE, "utf-8")
    return "suite.yaml"


@pytest.fixture
def client(workspace: Workspace) -> Iterator[TestClient]:
    with TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as opened:
        yield opened


def submitted(workspace: Workspace) -> str:
    path = workspace.folder / "suite.yaml"
    path.write_text(SUITE, "utf-8")
    suite = preflight.load(workspace.settings, path)
    options = RunOptions()
    plan = preflight.look_ahead(workspace, suite, options).plan
    return batch.submit(workspace, plan, tasks_of(suite, options, plan)).result.summary.id


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.02)


def test_pages_name_the_batch_for_which_trials_wait(
    workspace: Workspace, client: TestClient
) -> None:
    run = submitted(workspace)
    (job,) = client.get(f"/api/runs/{run}/jobs").json()["jobs"]
    assert (job["state"], job["remote_id"], job["requests"]) == ("sent", "batch_001", 2)
    words = f"2 trials have been waiting at {job['place']} since {job['sent'][:10]}"
    for page in (f"/runs/{run}", "/runs"):
        text = client.get(page).text
        assert words in text
        assert "job batch_001" in text
        assert '<span data-field="state">at a provider</span>' in text
    row = client.get("/queue.json").json()["runs"][0]
    assert row["at_provider"]["n"] == 2
    assert row["moves"] == ["collect", "pause", "cancel"]
    assert ">Collect answers<" in client.get(f"/runs/{run}").text


def test_a_run_is_collected_by_the_server(
    workspace: Workspace, client: TestClient, server: BatchServer
) -> None:
    run = submitted(workspace)
    begun = client.post(f"/api/runs/{run}/steer", json={"wish": "collect"})
    assert begun.status_code == 200, begun.text
    until(lambda: client.get(f"/api/runs/{run}").json()["run"]["state"] == "finished")
    until(lambda: not client.app.state.services.runner._runs)  # type: ignore[attr-defined]
    again = client.post(f"/api/runs/{run}/steer", json={"wish": "collect"})
    assert again.status_code == 409
    assert "cannot be collected" in again.json()["error"]["problem"]
    assert "wait at 127" not in client.get(f"/runs/{run}").text
    assert server.repeats == {}


def test_a_run_cancelled_in_the_browser_is_cancelled_at_the_provider(
    workspace: Workspace, client: TestClient, server: BatchServer
) -> None:
    server.held = True
    run = submitted(workspace)
    steered = client.post(f"/api/runs/{run}/steer", json={"wish": "cancel"})
    assert steered.json()["run"]["state"] == "cancelled"
    until(lambda: not client.app.state.services.runner._runs)  # type: ignore[attr-defined]
    assert [sent.status for sent in server.batches.values()] == ["cancelled"]
    assert list(batch.waiting_runs(workspace.store)) == []
    assert client.get(f"/api/runs/{run}").json()["run"]["trials"]["pending"] == 2


def test_the_start_form_submits_a_batch_for_collecting_later(
    client: TestClient, server: BatchServer, filed: str
) -> None:
    wish = {"suite": filed, "provider_batch": True, "key": "only-once"}
    began = client.post("/api/start", json=wish)
    assert began.status_code == 201, began.text
    run = began.json()["run_id"]
    assert began.json()["run"]["state"] == "submitted"
    assert client.post("/api/start", json=wish).json()["run_id"] == run
    until(
        lambda: (
            [job["state"] for job in client.get(f"/api/runs/{run}/jobs").json()["jobs"]] == ["sent"]
        )
    )
    until(lambda: not client.app.state.services.runner._runs)  # type: ignore[attr-defined]
    page = client.get(f"/runs/{run}").text
    assert "job batch_001" in page
    assert ">Collect answers<" in page
    client.post(f"/api/runs/{run}/steer", json={"wish": "collect"})
    until(lambda: client.get(f"/api/runs/{run}").json()["run"]["state"] == "finished")
    assert len(server.batches) == 1
    assert (server.repeats, server.paths["POST /chat/completions"]) == ({}, 0)


def test_the_start_form_names_models_without_a_batch_api(
    workspace: Workspace, client: TestClient, filed: str
) -> None:
    both = client.post(
        "/api/start/look", json={"suite": filed, "candidates": ["openai/small", "echo"]}
    )
    assert both.json()["models"] == {"batched": ["openai/small"], "called": ["echo"]}
    refused = client.post(
        "/api/start", json={"suite": filed, "candidates": ["echo"], "provider_batch": True}
    )
    assert refused.status_code == 422
    assert "no model has a batch API (echo)" in refused.json()["error"]["problem"]
    assert not list(workspace.archive.runs.newest(limit=1))


def test_a_batch_that_cannot_be_sent_is_sent_at_the_next_collection(
    client: TestClient, server: BatchServer, filed: str
) -> None:
    server.broken = [("POST /files", 400, 1)]
    run = client.post("/api/start", json={"suite": filed, "provider_batch": True}).json()["run_id"]
    until(lambda: not client.app.state.services.runner._runs)  # type: ignore[attr-defined]
    assert "the server had an error" in client.get(f"/runs/{run}").text
    for _ in range(2):
        client.post(f"/api/runs/{run}/steer", json={"wish": "collect"})
        until(lambda: not client.app.state.services.runner._runs)  # type: ignore[attr-defined]
    assert client.get(f"/api/runs/{run}").json()["run"]["state"] == "finished"
    assert server.repeats == {}
