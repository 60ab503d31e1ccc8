"""A reviewer's own decisions: newest first, with the ids of the review page, and planted checks
like any other item.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient
from tests.support.control_items import put_check
from tests.web.conftest import CRITERIA, judged_store

from assay.app import people
from assay.app.review import own_decisions
from assay.app.review.concealment import Concealment
from assay.app.workspace import Workspace
from assay.web.server import create_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOME = "http://127.0.0.1:8000"
OWN = "/reviewers/ann/decisions"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_store(tmp_path_factory.mktemp("own") / "store")


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(shutil.copytree(template, tmp_path / "store"), environment={}) as opened:
        yield opened


@pytest.fixture
def owner(workspace: Workspace) -> Iterator[TestClient]:
    with TestClient(create_app(workspace), base_url=HOME) as client:
        yield client


@pytest.fixture
def ann(workspace: Workspace) -> Iterator[TestClient]:
    with TestClient(create_app(workspace), base_url=HOME) as client:
        assert (
            client.get(
                people.invite(workspace.store, "ann", role="reviewer", base=HOME).link
            ).status_code
            == 200
        )
        yield client


def waiting(client: TestClient, n: int = 3) -> list[str]:
    return [
        item["id"] for item in client.get(f"/api/review/next?desk=desk-1&limit={n}").json()["items"]
    ]


def decide(client: TestClient, item: str, verb: str, **more: Any) -> None:
    body = {
        "key": f"{verb}-{item}-{len(more)}",
        "id": item,
        "verb": verb,
        "reason": "Why not.",
        **more,
    }
    (result,) = client.post("/api/decisions", json={"decisions": [body]}).json()["results"]
    assert result["ok"], result


def listed(client: TestClient, address: str = f"{OWN}.json") -> Any:
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    return answer.json()["decisions"]


def test_own_decisions_are_listed_newest_first(ann: TestClient) -> None:
    first, second, third = waiting(ann)
    halves = [{"pane": 0, "criterion": name, "score": 0.5} for name in CRITERIA]
    decide(ann, first, "approve")
    decide(ann, second, "correct", corrections=halves, note="Both halves.")
    decide(ann, third, "reject")
    decide(ann, third, "undo")
    rows = listed(ann)
    assert [(row["verb"], row["id"]) for row in rows] == [
        ("undo", third),
        ("reject", third),
        ("correct", second),
        ("approve", first),
    ]
    assert [row["state"] for row in rows] == ["pending", "pending", "corrected", "approved"]
    assert rows[1]["scores"] == rows[0]["scores"] == {}
    assert rows[2]["scores"]["Candidate A"] == 0.5
    assert rows[2]["reason"] == "Why not.: Both halves."
    assert set(rows[3]["scores"]) == {"Candidate A", "Candidate B", "Candidate C"}
    page = ann.get(OWN).text
    assert page.index("undone") < page.index("rejected") < page.index("corrected")
    assert "<time" in page
    for row in rows:
        assert ann.get(f"/assessments/{row['id']}").status_code == 200
        assert f'href="/assessments/{row["id"]}"' in page


def test_a_later_change_by_another_person_is_told(
    ann: TestClient, owner: TestClient, workspace: Workspace
) -> None:
    first, second, _ = waiting(ann)
    decide(ann, first, "approve")
    decide(ann, second, "approve")
    key = Concealment(workspace.store).key_of(first, sealed=True)
    undo = {"key": "u" * 9, "id": f"a{key}", "verb": "undo", "reviewer": "ann"}
    assert owner.post("/api/decisions", json={"decisions": [undo]}).json()["results"][0]["ok"]
    decide(owner, f"a{key}", "reject", reviewer="bob")
    assert [row["changed"] for row in listed(ann) if row["verb"] == "approve"] == [False, True]
    assert "changed by another person" in ann.get(OWN).text
    assert "bob" not in ann.get(OWN).text


def test_a_planted_check_is_listed_like_an_item(
    ann: TestClient, owner: TestClient, workspace: Workspace
) -> None:
    real, *_ = waiting(ann)
    decide(ann, real, "approve")
    names = Concealment(workspace.store)
    check = put_check(workspace, names.key_of(real, sealed=True))
    decide(ann, names.sealed(check.key), "approve")
    rows = listed(ann)
    assert [row["id"] for row in rows] == [names.sealed(check.key), real]
    fields = [{name: row[name] for name in row if name not in {"id", "at"}} for row in rows]
    assert fields[0] == fields[1]
    assert {type(row["id"]) for row in listed(owner)} == {str}
    assert [row["id"] for row in listed(owner)] == [f"a{check.key}", f"a{names.key_of(real)}"]


def test_pages_count_decisions_and_no_number_of_the_store(
    ann: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_decisions, "PORTION", 2)
    items = waiting(ann)
    for item in items:
        decide(ann, item, "approve")
    first = ann.get(f"{OWN}.json").json()
    assert ([row["id"] for row in first["decisions"]], first["next"]) == (
        items[:0:-1],
        f"{OWN}.json?before=1",
    )
    last = ann.get(first["next"]).json()
    assert ([row["id"] for row in last["decisions"]], last["next"]) == (items[:1], None)
    assert f'href="{OWN}?before=1"' in ann.get(OWN).text


def test_a_reviewer_without_decisions_gets_an_empty_page(
    ann: TestClient, owner: TestClient
) -> None:
    assert "No decisions yet." in ann.get(OWN).text
    assert listed(ann) == []
    assert owner.get("/reviewers/nobody/decisions.json").status_code == 404
