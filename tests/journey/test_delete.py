"""`assay delete`: a run leaves every list, stays recorded, and comes back."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from assay.app.registry import removal
from assay.app.workspace import Workspace
from assay.web.server import create_app
from tests.journey.conftest import Command
from tests.support import harness_files as files

HOME = "http://127.0.0.1"


def two_runs(assay: Command, project: Path) -> tuple[str, str]:
    """One run that stays, and one to delete; both have results that count."""
    for name, model in (("kept", "mockllm/kept"), ("other", "mockllm/other")):
        log = files.inspect_log(files.inspect_sample(1, 1, "C"))
        log["eval"] |= {"model": model, "task_id": name}
        assert assay("import", files.put(project / f"{name}.json", log)).code == 0
    runs = {run["candidates"][0]: run["run_id"] for run in assay("runs", "--json").document["runs"]}
    return runs["mockllm/kept"], runs["mockllm/other"]


def named(assay: Command) -> set[str]:
    return {run["run_id"] for run in assay("runs", "--json").document["runs"]}


def test_delete_asks_and_changes_nothing_without_an_answer(assay: Command, project: Path) -> None:
    kept, other = two_runs(assay, project)
    refused = assay("delete", other)
    assert (refused.code, named(assay)) == (2, {kept, other})
    assert "Add --yes" in refused.err
    assert assay("delete", "nonesuch", "--yes").code == 2
    assert assay("delete").code == 2


class Typed(io.StringIO):
    """A terminal at which somebody typed this."""

    def isatty(self) -> bool:
        return True


def test_delete_in_a_terminal_does_what_is_answered(
    assay: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, other = two_runs(assay, project)
    monkeypatch.setattr("sys.stdin", Typed("n\n"))
    declined = assay("delete", other)
    assert (declined.code, named(assay)) == (130, {kept, other})
    assert f"{other}: " in declined.err
    assert assay("delete", "--list", "--json").document["events"] == []
    monkeypatch.setattr("sys.stdin", Typed("y\n"))
    assert (assay("delete", other).code, named(assay)) == (0, {kept})


def test_a_deleted_run_is_in_no_list_and_in_the_audit_log(assay: Command, project: Path) -> None:
    kept, other = two_runs(assay, project)
    (event,) = assay("delete", other, "--yes", "--reason", "wrong model", "--json").document[
        "events"
    ]
    assert (event["run_id"], event["verb"], event["reason"], event["stands"]) == (
        other,
        "delete",
        "wrong model",
        True,
    )
    assert named(assay) == {kept}
    assert [each["candidate"] for each in assay("stats", "--json").document["candidates"]] == [
        "mockllm/kept"
    ]
    assert assay("show", other).code == 2
    assert assay("delete", "--list", "--json").document["events"] == [event]
    with (
        Workspace.open(project) as workspace,
        TestClient(create_app(workspace), base_url=HOME) as client,
    ):
        assert client.get("/audit.json").json()["runs"] == [event]
        page = client.get("/audit").text
        assert "wrong model" in page
        assert other in page


def test_the_run_page_deletes_and_models_forget_the_run(assay: Command, project: Path) -> None:
    kept, other = two_runs(assay, project)
    with (
        Workspace.open(project) as workspace,
        TestClient(create_app(workspace), base_url=HOME) as client,
    ):
        assert model_names(client) == {"tiny-2026-01-01"}
        assert 'id="delete-run"' in client.get(f"/runs/{other}").text
        document = client.post(
            f"/api/runs/{other}/delete", json={"reason": "twice"}, headers={"origin": HOME}
        ).json()
        assert [event["run_id"] for event in document["events"]] == [other]
        assert client.get(f"/runs/{other}").status_code == 404
        client.post(f"/api/runs/{kept}/delete", json={}, headers={"origin": HOME})
        assert model_names(client) == set()
        removal.restore(workspace, other)
        assert model_names(client) == {"tiny-2026-01-01"}
    assert named(assay) == {other}


def model_names(client: TestClient) -> set[str]:
    return {str(model["ref"]) for model in client.get("/models.json").json()["models"]}


def test_files_of_a_deleted_run_move_aside_and_come_back(assay: Command, project: Path) -> None:
    _, other = two_runs(assay, project)
    before = written(project / "results")
    assay("delete", other, "--yes", "--reason", "wrong model")
    after = written(project / "results")
    aside = {path for path in after if path.startswith("_assay/deleted/")}
    assert not any(other in path for path in after - aside)
    assert {Path(path).name for path in before - after} <= {Path(path).name for path in aside}
    registry = json.loads((project / "results/metadata.json").read_text("utf-8"))
    assert [entry["model"] for entry in registry["runs"]] == ["mockllm/kept"]
    reason = json.loads(
        (project / f"results/_assay/deleted/{other}/reason.json").read_text("utf-8")
    )
    assert (reason["run_id"], reason["reason"]) == (other, "wrong model")
    assert assay("delete", other, "--undo").code == 0
    assert written(project / "results") == before


def written(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and ".lock" not in path.name
    }


def test_a_rebuild_does_not_bring_a_deleted_run_back(assay: Command, project: Path) -> None:
    kept, other = two_runs(assay, project)
    shutil.copytree(project / "results", project / "copy")
    assay("delete", other, "--yes")
    in_place = assay("import", "copy", "--rebuild", "--json").document
    assert (in_place["run_ids"], in_place["there"], in_place["aside"]) == ([], [kept], [other])
    assert named(assay) == {kept}
    shutil.rmtree(project / ".assay")
    fresh = assay("import", "results", "--rebuild", "--json").document
    assert (fresh["run_ids"], fresh["aside"]) == ([kept], [other])
    assert named(assay) == {kept}
