"""A decision over HTTP counts as read on screen only if a browser sent it and the server had sent the item to this reviewer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.contract.stores import a_plan, a_task, judged, planned, wait

from assay.app import people
from assay.app.workspace import Workspace
from assay.domain.review import Approvals
from assay.domain.selection import Selection
from assay.web.server import create_app

BROWSER = {"sec-fetch-site": "same-origin"}
OLDER_BROWSER = {"origin": "http://127.0.0.1:8000"}
PROGRAM: Mapping[str, str] = {}
TOKEN = {"authorization": "Bearer anything", **BROWSER}


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path, environment={}, options={"results": "off", "reviewer": "ann"}) as opened:
        plan = a_plan()
        opened.journal.open_run(plan, planned(a_task(), trials=1))
        for trial in opened.journal.claim(plan.id, limit=1):
            wait(opened.journal.record(judged(trial)))
        yield opened


def client_of(workspace: Workspace) -> TestClient:
    return TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")


def approve(client: TestClient, headers: Mapping[str, str], *, reviewer: str = "ann") -> None:
    decision = {"key": "decision-1", "id": "a1", "verb": "approve", "reviewer": reviewer}
    answer = client.post("/api/decisions", json={"decisions": [decision]}, headers=dict(headers)).json()
    assert answer["results"][0]["ok"], answer


def approvals(workspace: Workspace) -> Approvals:
    return workspace.archive.scores.approvals(Selection())


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (BROWSER, Approvals(shown=1)),
        (OLDER_BROWSER, Approvals(shown=1)),
        (PROGRAM, Approvals(scripted=1)),
        (TOKEN, Approvals(scripted=1)),
    ],
)
def test_only_a_browser_that_got_the_item_decides_on_screen(
    workspace: Workspace, headers: Mapping[str, str], expected: Approvals
) -> None:
    client = client_of(workspace)
    assert client.get("/api/review/next?desk=desk-1", headers={"cookie": "assay_reviewer=ann"}).json()["items"]
    approve(client, headers)
    assert approvals(workspace) == expected


@pytest.mark.parametrize("served_to", ["nobody", "ben"])
def test_a_browser_that_never_got_the_item_decides_by_script(workspace: Workspace, served_to: str) -> None:
    client = client_of(workspace)
    if served_to != "nobody":
        assert client.get("/api/assessments/a1", headers={"cookie": f"assay_reviewer={served_to}"}).status_code == 200
    approve(client, BROWSER)
    assert approvals(workspace) == Approvals(scripted=1)


def test_an_item_sent_before_a_restart_still_counts_as_shown(workspace: Workspace) -> None:
    assert client_of(workspace).get("/api/assessments/a1", headers={"cookie": "assay_reviewer=ann"}).status_code == 200
    approve(client_of(workspace), BROWSER)
    assert approvals(workspace) == Approvals(shown=1)


def test_a_name_that_a_program_gives_is_stated_by_the_owner(workspace: Workspace) -> None:
    approve(client_of(workspace), PROGRAM, reviewer="Somebody Else")
    (event,) = workspace.archive.assessments.detail(next(iter(workspace.archive.assessments.matching(Selection()))).key).events
    assert (event.decision.reviewer, event.decision.stated_by) == ("Somebody Else", "ann")
    client = client_of(workspace)
    (reviewer,) = client.get("/reviewers.json").json()["reviewers"]
    assert (reviewer["reviewer"], reviewer["stated_by"]) == ("Somebody Else", {"ann": 1})
    assert client.get("/reviewers/Somebody%20Else.json").json()["stated_by"] == {"ann": 1}
    assert "1 decision stated by ann" in client.get("/reviewers").text
    assert "1 decision under this name was stated by ann." in client.get("/reviewers/Somebody%20Else").text
    (decision,) = client.get("/reviewers/Somebody%20Else/decisions.json").json()["decisions"]
    assert decision["stated_by"] == "ann"
    assert "stated by ann" in client.get("/reviewers/Somebody%20Else/decisions").text


@pytest.mark.parametrize("visitor", ["owner", "reviewer", "viewer"])
def test_only_the_owner_reads_signs_of_careless_reviewing_by_name(workspace: Workspace, visitor: str) -> None:
    with client_of(workspace) as client:
        assert client.get("/api/assessments/a1", headers={"cookie": "assay_reviewer=ann"}).status_code == 200
        decision = {"key": "decision-1", "id": "a1", "verb": "approve", "reviewer": "ann", "active_ms": 300}
        client.post("/api/decisions", json={"decisions": [decision]}, headers=BROWSER)
    invited = None if visitor == "owner" else people.invite(workspace, "ben", role=visitor, base="http://127.0.0.1:8000")
    with client_of(workspace) as client:
        if invited is not None:
            assert client.get(invited.link).status_code == 200
        page, twin = client.get("/reviewers"), client.get("/reviewers.json")
        words = "1 of 1 decision took under 1 s"
        if visitor == "owner":
            assert words in page.text
            (signs,) = twin.json()["attention"]
            assert (signs["reviewer"], signs["timed"], signs["too_quick"]) == ("ann", 1, 1)
        else:
            assert (page.status_code, twin.status_code) == (403, 403)
            assert words not in page.text + client.get("/reviewers/ben").text
