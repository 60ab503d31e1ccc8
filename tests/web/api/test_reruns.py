"""While somebody has an item judged again, nobody decides on the attempt that is about to be
replaced.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.web.api.test_blind_api import client, server, waiting, workspace
from tests.web.api.test_evaluations import pending_keys

from assay.app.review import decisions
from assay.domain.identifiers import shown_assessment

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi.testclient import TestClient
    from tests.support.model_server import ModelServer

    from assay.app.workspace import Workspace

__all__ = ["client", "server", "workspace"]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/assay.db"


def decided(client: TestClient, item: str, *, reviewer: str, key: str) -> dict[str, Any]:
    body = {"decisions": [{"key": key, "id": item, "verb": "approve", "reviewer": reviewer}]}
    row: dict[str, Any] = client.post("/api/decisions", json=body).json()["results"][0]
    return row


def rerun(client: TestClient, item: str, *, reviewer: str) -> dict[str, Any]:
    wish = {
        "key": f"{reviewer}-rerun-1",
        "id": item,
        "attempt": 1,
        "reason": "look again",
        "reviewer": reviewer,
    }
    document: dict[str, Any] = client.post("/api/rerun", json=wish).json()
    return document


def test_decision_is_refused_while_another_reviewer_s_rerun_runs(
    client: TestClient, workspace: Workspace, server: ModelServer
) -> None:
    waiting(client)
    key, other = pending_keys(workspace)
    item = shown_assessment(key)
    assert decided(client, shown_assessment(other), reviewer="Bo", key="bo-approves-1")["ok"]
    server.held = True
    assert rerun(client, item, reviewer="Ines")["status"] == "running"
    refused = decided(client, item, reviewer="Bo", key="bo-approves-2")
    assert not refused["ok"]
    assert "Ines requested it" in refused["error"]["problem"]
    assert decided(client, shown_assessment(other), reviewer="Bo", key="bo-approves-1")["ok"], (
        "said once more"
    )
    server.held = False
    deadline = time.monotonic() + 30
    while (result := rerun(client, item, reviewer="Ines"))["status"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert result["status"] == "done", result
    assert [event.decision.verb for event in decisions.assessment(workspace.store, key).events] == [
        "rerun"
    ]
    assert decided(client, result["new_id"], reviewer="Bo", key="bo-approves-3")["ok"], (
        "the new attempt is anybody's"
    )


def test_decision_is_refused_while_one_s_own_rerun_runs(
    client: TestClient, workspace: Workspace, server: ModelServer
) -> None:
    waiting(client)
    key, _ = pending_keys(workspace)
    item = shown_assessment(key)
    assert decided(client, item, reviewer="Ines", key="ines-approves-1")["ok"]
    server.held = True
    assert rerun(client, item, reviewer="Ines")["status"] == "running"
    body = {"key": "ines-undoes-1", "id": item, "verb": "undo", "reviewer": "Ines"}
    refused = client.post("/api/decisions", json={"decisions": [body]}).json()["results"][0]
    assert refused["error"]["problem"] == "is being judged again, because you requested it."
    assert decided(client, item, reviewer="Ines", key="ines-approves-1")["ok"], "said once more"
    server.held = False
    deadline = time.monotonic() + 30
    while rerun(client, item, reviewer="Ines")["status"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [event.decision.verb for event in decisions.assessment(workspace.store, key).events] == [
        "approve",
        "rerun",
    ]


def test_a_second_wish_for_one_item_is_refused_and_leaves_the_first(
    client: TestClient, workspace: Workspace, server: ModelServer
) -> None:
    waiting(client)
    key, _ = pending_keys(workspace)
    item = shown_assessment(key)
    server.held = True
    assert rerun(client, item, reviewer="Ines")["status"] == "running"
    refused = rerun(client, item, reviewer="Uma")
    assert (refused["error"]["where"], refused["error"]["problem"]) == (
        item,
        "is being judged again, because Ines requested it.",
    )
    assert not decided(client, item, reviewer="Uma", key="uma-approves-1")["ok"]
    server.held = False
    deadline = time.monotonic() + 30
    while rerun(client, item, reviewer="Ines")["status"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [event.decision.verb for event in decisions.assessment(workspace.store, key).events] == [
        "rerun"
    ]
