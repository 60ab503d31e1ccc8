"""What the start form and pasted texts propose before a run: criteria, calls, cost and reviews."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.support import forked

from assay.app.workspace import Workspace
from assay.domain.selection import Selection
from assay.web.server import create_app

REFUND = (
    "Your lamp was delivered 12 days ago, which is within our 30 days, so we refund the full price. Please send it back. "
    * 2
)
CODE = "def slug(title):\n    return title.lower().replace(' ', '-')\n"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.chdir(tmp_path)
    with Workspace.open(tmp_path, environment={"OPENAI_API_KEY": "k"}) as opened:
        yield opened


@pytest.fixture
def client(workspace: Workspace) -> Iterator[TestClient]:
    with TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as opened:
        yield opened


def post(client: TestClient, path: str, status: int = 200, **body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def written_set(folder: Path, text: str, **more: str) -> str:
    snippets = [{"name": name, "content": text} for name in ("ann", "bob")]
    (folder / "two.json").write_text(
        json.dumps([{"thingName": "One", "snippets": snippets, **more}]), "utf-8"
    )
    return "two.json"


def test_pasted_texts_are_graded_by_the_criteria_that_the_person_kept(
    client: TestClient, workspace: Workspace, tmp_path: Path
) -> None:
    assert post(client, "/api/start/rubric", texts=[REFUND, REFUND]) == {"rubric": "helpfulness"}
    rubric = [{"name": "kind", "weight": 2, "scale": [0, 5], "guidance": "Is it friendly?"}]
    snippets = [["ann", REFUND], ["bob", REFUND.upper()]]
    run = post(client, "/api/pasted", 201, thing="A refund", snippets=snippets, rubric=rubric)[
        "run_id"
    ]
    (criterion,) = workspace.journal.plan_of(run).rubric.criteria
    assert (criterion.name, criterion.weight, criterion.high) == ("kind", 2, 5)
    saved = json.loads((tmp_path / "suites" / "a-refund.json").read_text("utf-8"))
    assert saved["rubric"] == rubric


def test_a_wrong_criterion_of_pasted_texts_is_told_at_its_field(
    client: TestClient, tmp_path: Path
) -> None:
    rubric = [{"name": "kind", "weight": -1, "scale": [0, 5]}]
    snippets = [["ann", "a"], ["bob", "b"]]
    refused = post(client, "/api/pasted", 422, thing="A refund", snippets=snippets, rubric=rubric)
    assert refused["problems"][0]["field"] == "rubric[0].weight"
    assert not (tmp_path / "suites").exists()


@pytest.mark.parametrize(
    ("text", "more", "default", "fitting"),
    [
        (REFUND, {}, "quality", "helpfulness"),
        (CODE, {}, "quality", "code"),
        (CODE, {"language": "python"}, "code", "code"),
    ],
)
def test_a_set_without_a_rubric_gets_a_fitting_one(
    client: TestClient, tmp_path: Path, text: str, more: dict[str, str], default: str, fitting: str
) -> None:
    path = written_set(tmp_path, text, **more)
    suite = client.get("/api/suites/read", params={"path": path}).json()["suite"]
    assert (suite["default_rubric"], suite["fitting"]) == (default, fitting)
    page = client.get("/start", params={"suite": path}).text
    assert "so Assay proposes criteria that fit its texts" in page


def test_the_start_form_tells_how_many_reviews_follow(client: TestClient, tmp_path: Path) -> None:
    path = written_set(tmp_path, REFUND)
    every = post(client, "/api/start/look", suite=path, judges=["human"], trials=4)
    assert every["reviews"] == {"n": 4, "at_most": False}
    flagged = post(
        client,
        "/api/start/look",
        suite=path,
        judges=["openai/gpt-4o-mini"],
        trials=4,
        review="flagged",
    )
    assert flagged["reviews"] == {"n": 4, "at_most": True}
    none = post(client, "/api/start/look", suite=path, judges=["openai/gpt-4o-mini"], review="none")
    assert none["reviews"]["n"] == 0


def test_the_models_of_the_price_list_complete_model_names(
    client: TestClient, tmp_path: Path
) -> None:
    task = {"id": "t", "prompt": "Why?"}
    (tmp_path / "asks.json").write_text(
        json.dumps(
            {"tasks": [task], "judge": {"model": "human", "mode": "each"}, "candidates": ["echo"]}
        ),
        "utf-8",
    )
    page = client.get("/start", params={"suite": "asks.json"}).text
    assert '<datalist id="models">' in page
    assert page.count('list="models"') == 2
    names = client.get("/api/models/names").json()["names"]
    assert "echo" in names
    assert "openai/gpt-4o-mini" in names
    assert len(set(names)) == len(names)


def test_a_program_is_offered_as_no_model(client: TestClient, tmp_path: Path) -> None:
    suite = {
        "name": "programs",
        "score": "contains",
        "candidates": ["echo", {"name": "shell", "command": ["echo", "four"]}],
        "tasks": [{"id": "t", "prompt": "2+2?", "expected": "four"}],
    }
    (tmp_path / "programs.json").write_text(json.dumps(suite), "utf-8")
    forked.run("run", "programs.json", folder=tmp_path)
    names = client.get("/api/models/names").json()["names"]
    assert "echo" in names
    assert not [name for name in names if name.startswith("command/")]
    page = client.get("/calibration").text
    assert "command/" not in page


def test_a_candidate_of_a_set_is_no_model(client: TestClient, tmp_path: Path) -> None:
    page = client.get("/start", params={"suite": written_set(tmp_path, REFUND)}).text
    assert "add-candidate" not in page
    assert 'value="echo"' not in page


def test_an_edited_set_is_a_new_version_beside_the_old_one(
    client: TestClient, tmp_path: Path
) -> None:
    (tmp_path / "suites").mkdir()
    written_set(tmp_path / "suites", REFUND)
    page = client.get("/start", params={"edit": "suites/two.json"})
    assert "New version of suites/two.json" in page.text
    old = client.get("/api/suites/read", params={"path": "suites/two.json"}).json()["suite"]
    changed = (tmp_path / "suites" / "two.json").read_text("utf-8").replace("lamp", "chair")
    saved = post(client, "/api/suites", 201, name="two.json", text=changed, as_version=True)[
        "suite"
    ]
    assert saved == "suites/two-2.json"
    again = post(
        client,
        "/api/suites",
        201,
        name="two-2.json",
        text=changed.replace("chair", "bed"),
        as_version=True,
    )
    assert again["suite"] == "suites/two-3.json"
    new = client.get("/api/suites/read", params={"path": saved}).json()["suite"]
    assert old["editable"]
    assert len({old["digest"], new["digest"]}) == 2
    assert "lamp" in (tmp_path / "suites" / "two.json").read_text("utf-8")
    assert client.get("/start", params={"edit": "../two.json"}).status_code == 404
    (tmp_path / "suite.yaml").write_text(
        "tasks: [{id: a, prompt: b, expected: c, score: exact}]\n", "utf-8"
    )
    assert client.get("/start", params={"edit": "suite.yaml"}).status_code == 422


def test_nothing_is_stored_by_looking(
    client: TestClient, workspace: Workspace, tmp_path: Path
) -> None:
    path = written_set(tmp_path, REFUND)
    post(client, "/api/start/look", suite=path, judges=["human"])
    assert workspace.archive.runs.matching(Selection()) == ()
