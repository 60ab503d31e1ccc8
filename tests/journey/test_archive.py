"""`assay archive`: a run leaves every list and statistic, stays readable by its id, and comes
back.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from assay.app.workspace import Workspace
from assay.web.server import create_app
from tests.journey.conftest import Command
from tests.journey.test_delete import HOME, named, two_runs, written
from tests.support.model_server import ModelServer
from tests.support.sets import write_set


def test_archive_asks_and_changes_nothing_without_an_answer(assay: Command, project: Path) -> None:
    kept, other = two_runs(assay, project)
    refused = assay("archive", other)
    assert (refused.code, "Add --yes" in refused.err, named(assay)) == (2, True, {kept, other})
    assert assay("archive", "nonesuch", "--yes").code == 2
    assert assay("archive").code == 2


def test_an_archived_run_is_in_no_list_and_readable_by_id(assay: Command, project: Path) -> None:
    kept, other = two_runs(assay, project)
    whole = assay("stats", "--run", other, "--json").document["candidates"]
    before = written(project / "results")
    (event,) = assay("archive", other, "--yes", "--reason", "old", "--json").document["events"]
    assert (event["run_id"], event["verb"], event["reason"], event["stands"]) == (
        other,
        "archive",
        "old",
        True,
    )
    assert named(assay) == {kept}
    assert [row["candidate"] for row in assay("stats", "--json").document["candidates"]] == [
        "mockllm/kept"
    ]
    assert assay("stats", "--run", other, "--json").document["candidates"] == whole
    assert assay("show", other, "--json").document["state"] == "archived"
    assert assay("show", other).code == 0
    assert assay("export", "csv", "--run", other).out.count("mockllm/other")
    assert "mockllm/other" not in assay("export", "csv").out
    with (
        Workspace.open(project) as workspace,
        TestClient(create_app(workspace), base_url=HOME) as client,
    ):
        assert client.get("/audit.json").json()["runs"] == [event]
        assert "archived" in client.get("/audit").text
        assert "archived" in client.get(f"/runs/{other}").text
        assert other not in client.get("/").text
    assert assay("archive", "--list", "--json").document["events"] == [event]
    assert not any(
        other in path
        for path in written(project / "results")
        if not path.startswith("_assay/deleted/")
    )
    assert assay("archive", other, "--undo").code == 0
    assert named(assay) == {kept, other}
    assert written(project / "results") == before
    assert [row["verb"] for row in assay("archive", "--list", "--json").document["events"]] == [
        "archive",
        "restore",
    ]


def test_delete_and_archive_do_not_undo_each_other(assay: Command, project: Path) -> None:
    kept, other = two_runs(assay, project)
    assert assay("archive", other, "--yes").code == 0
    for command in (
        ("delete", other, "--yes"),
        ("archive", other, "--yes"),
        ("delete", other, "--undo"),
    ):
        refused = assay(*command)
        assert refused.code == 2, command
    assert assay("delete", kept, "--yes").code == 0
    assert assay("archive", kept, "--undo").code == 2
    assert named(assay) == set()


@pytest.fixture
def archived(assay: Command, server: ModelServer, project: Path) -> str:
    """A run of a judged set, archived before its review."""
    suite = write_set(project, things=1, trials=2)
    run: str = assay("run", suite, "--judge", "openai/judge", "--json").document["run_id"]
    assert assay("archive", run, "--yes").code == 0
    return run


def test_nothing_changes_an_archived_run(assay: Command, archived: str) -> None:
    assert assay("review", "list", "--json").document["assessments"] == []
    for command in (
        ("review", "approve", "a1"),
        ("review", "rerun", "a1", "--reason", "again"),
        ("review", "rerun", "t1", "--reason", "again"),
        ("resume", archived),
        ("cancel", archived),
        ("extend", archived, "--trials", "1"),
        ("regrade", archived, "--judge", "openai/other"),
    ):
        refused = assay(*command)
        assert (refused.code, "archived" in refused.err) == (2, True), (command, refused.err)
    assert assay("show", archived, "--json").document["state"] == "archived"
    assert assay("doctor", "--check-store").code == 0


def test_a_rebuild_leaves_an_archived_run_out(assay: Command, project: Path) -> None:
    kept, other = two_runs(assay, project)
    assay("archive", other, "--yes")
    again = assay("import", "results", "--rebuild", "--json").document
    assert (again["run_ids"], again["there"], again["aside"]) == ([], [kept], [other])
