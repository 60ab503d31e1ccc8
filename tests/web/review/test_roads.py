"""A decision over HTTP counts as read on screen only if a browser sent it and the server had sent
the item to this reviewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.contract.stores import a_plan, a_task, judged, planned, wait

from assay.app import people
from assay.app.workspace import Workspace
from assay.domain.observations import ObservationKind
from assay.domain.review import Approvals
from assay.domain.selection import Selection
from assay.web.server import create_app

BROWSER = {"sec-fetch-site": "same-origin"}
OLDER_BROWSER = {"origin": "http://127.0.0.1:8000"}
PROGRAM: Mapping[str, str] = {}
TOKEN = {"authorization": "Bearer anything", **BROWSER}


@pytest.fixture(autouse=True)
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server's process belong to the user `ann`."""
    monkeypatch.setattr(Workspace, "login", "ann")


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(
        tmp_path, environment={}, options={"results": "off", "reviewer": "ann"}
    ) as opened:
        plan = a_plan()
        opened.journal.open_run(plan, planned(a_task(), trials=1))
        for trial in opened.journal.claim(plan.id, limit=1):
            wait(opened.journal.record(judged(trial)))
        yield opened


def client_of(workspace: Workspace) -> TestClient:
    return TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")


def approve(client: TestClient, headers: Mapping[str, str], *, reviewer: str = "ann") -> None:
    decision = {"key": "decision-1", "id": "a1", "verb": "approve", "reviewer": reviewer}
    answer = client.post(
        "/api/decisions", json={"decisions": [decision]}, headers=dict(headers)
    ).json()
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
    assert client.get(
        "/api/review/next?desk=desk-1", headers={"cookie": "assay_reviewer=ann"}
    ).json()["items"]
    approve(client, headers)
    assert approvals(workspace) == expected


@pytest.mark.parametrize("served_to", ["nobody", "ben"])
def test_a_browser_that_never_got_the_item_decides_by_script(
    workspace: Workspace, served_to: str
) -> None:
    client = client_of(workspace)
    if served_to != "nobody":
        assert (
            client.get(
                "/api/assessments/a1", headers={"cookie": f"assay_reviewer={served_to}"}
            ).status_code
            == 200
        )
    approve(client, BROWSER)
    assert approvals(workspace) == Approvals(scripted=1)


def test_an_item_sent_before_a_restart_still_counts_as_shown(workspace: Workspace) -> None:
    assert (
        client_of(workspace)
        .get("/api/assessments/a1", headers={"cookie": "assay_reviewer=ann"})
        .status_code
        == 200
    )
    approve(client_of(workspace), BROWSER)
    assert approvals(workspace) == Approvals(shown=1)


def test_a_name_that_a_program_gives_is_stated_by_the_owner(workspace: Workspace) -> None:
    approve(client_of(workspace), PROGRAM, reviewer="Somebody Else")
    (event,) = workspace.archive.assessments.detail(
        next(iter(workspace.archive.assessments.matching(Selection()))).key
    ).events
    assert (event.decision.reviewer, event.decision.stated_by) == ("Somebody Else", "ann")
    client = client_of(workspace)
    (reviewer,) = client.get("/reviewers.json").json()["reviewers"]
    assert (reviewer["reviewer"], reviewer["stated_by"]) == ("Somebody Else", {"ann": 1})
    assert client.get("/reviewers/Somebody%20Else.json").json()["stated_by"] == {"ann": 1}
    assert "1 decision stated by ann" in client.get("/reviewers").text
    assert (
        "1 decision under this name was stated by ann."
        in client.get("/reviewers/Somebody%20Else").text
    )
    (decision,) = client.get("/reviewers/Somebody%20Else/decisions.json").json()["decisions"]
    assert decision["stated_by"] == "ann"
    assert "stated by ann" in client.get("/reviewers/Somebody%20Else/decisions").text


def opinion(
    client: TestClient, reviewer: str, *, shown: bool, headers: Mapping[str, str] = BROWSER
) -> dict[str, Any]:
    """Return the reply to a browser's approval of a1, after the item was sent to this browser if
    `shown`.
    """
    cookie = {"cookie": f"assay_reviewer={reviewer}"}
    if shown:
        assert client.get("/api/assessments/a1", headers=cookie).status_code == 200
    decision = {
        "key": f"opinion-of-{reviewer}",
        "id": "a1",
        "verb": "approve",
        "reviewer": reviewer,
    }
    answer = client.post("/api/decisions", json={"decisions": [decision]}, headers=dict(headers))
    assert answer.status_code == 200, answer.text
    (result,) = answer.json()["results"]
    return dict(result)


def by_two(workspace: Workspace) -> tuple[int, int]:
    """Return the number of decisions by two people, and of items that wait for a second one."""
    (achieved,) = workspace.decisions.achieved([a_plan().id]).values()
    return achieved.by_two, achieved.waiting_for_second


@pytest.fixture
def of_two(tmp_path: Path) -> Iterator[Workspace]:
    """A store whose only item needs the opinions of two people."""
    with Workspace.open(
        tmp_path, environment={}, options={"results": "off", "reviewer": "ann"}
    ) as opened:
        plan = replace(a_plan(), protocol={"version": 1, "second": 1.0})
        opened.journal.open_run(plan, planned(a_task(), trials=1))
        for trial in opened.journal.claim(plan.id, limit=1):
            wait(opened.journal.record(judged(trial)))
        yield opened


@pytest.mark.parametrize("headers", [BROWSER, OLDER_BROWSER])
def test_names_that_one_login_states_for_an_unseen_item_are_one_person(
    of_two: Workspace, headers: Mapping[str, str]
) -> None:
    client = client_of(of_two)
    assert opinion(client, "bea", shown=False, headers=headers)["state"] == "pending"
    for name in ("cleo", "ann"):
        refused = opinion(client, name, shown=False, headers=headers)
        assert not refused["ok"]
        assert "already has a verdict of the same person, under the name bea" in str(refused)
    assert by_two(of_two) == (0, 1)
    # The item is shown to Dora, so she is a person of her own.
    assert opinion(client, "dora", shown=True, headers=headers)["state"] == "approved"
    assert by_two(of_two) == (1, 0)
    first, second = of_two.observations.read(kinds=(ObservationKind.OPINION,))
    assert [getattr(each.body, "stated_by", None) for each in (first, second)] == ["ann", ""]


def test_two_names_to_which_the_item_was_shown_are_two_people(of_two: Workspace) -> None:
    client = client_of(of_two)
    assert opinion(client, "bea", shown=True)["state"] == "pending"
    assert opinion(client, "cleo", shown=True)["state"] == "approved"
    assert by_two(of_two) == (1, 0)


def test_two_invited_people_are_two_people(of_two: Workspace) -> None:
    links = {
        name: people.invite(of_two.store, name, role="reviewer", base="http://127.0.0.1:8000").link
        for name in ("bea", "cleo")
    }
    for name, link in links.items():
        with client_of(of_two) as client:
            assert client.get(link).status_code == 200
            (item,) = client.get("/api/review/next?desk=desk-1").json()["items"]
            decision = {"key": f"opinion-of-{name}", "id": item["id"], "verb": "approve"}
            answer = client.post(
                "/api/decisions", json={"decisions": [decision]}, headers=BROWSER
            ).json()
            assert answer["results"][0]["ok"], answer
    assert by_two(of_two) == (1, 0)


@pytest.mark.parametrize("visitor", ["owner", "reviewer", "viewer"])
def test_only_the_owner_reads_signs_of_careless_reviewing_by_name(
    workspace: Workspace, visitor: str
) -> None:
    with client_of(workspace) as client:
        assert (
            client.get("/api/assessments/a1", headers={"cookie": "assay_reviewer=ann"}).status_code
            == 200
        )
        decision = {
            "key": "decision-1",
            "id": "a1",
            "verb": "approve",
            "reviewer": "ann",
            "active_ms": 300,
        }
        client.post("/api/decisions", json={"decisions": [decision]}, headers=BROWSER)
    invited = (
        None
        if visitor == "owner"
        else people.invite(workspace.store, "ben", role=visitor, base="http://127.0.0.1:8000")
    )
    with client_of(workspace) as client:
        if invited is not None:
            assert client.get(invited.link).status_code == 200
        page, twin = client.get("/reviewers"), client.get("/reviewers.json")
        words = "1 of 1 decision took under 1 s"
        # The share stands beside the result for everybody who may read it, without a name.
        assert (f"Attention: {words}" in client.get("/results").text) == (visitor != "reviewer")
        if visitor == "owner":
            assert words in page.text
            (signs,) = twin.json()["attention"]
            assert (signs["reviewer"], signs["timed"], signs["too_quick"]) == ("ann", 1, 1)
        else:
            assert (page.status_code, twin.status_code) == (403, 403)
            assert words not in page.text + client.get("/reviewers/ben").text
