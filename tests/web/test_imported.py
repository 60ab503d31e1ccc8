"""Answers of another harness on the pages: what they lack, and the ways on."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.conftest import Served
from tests.web.imported_store import imported_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported_store(tmp_path_factory.mktemp("imported") / "store")


@pytest.fixture
def served(imported: Path, tmp_path: Path) -> Iterator[Served]:
    """A server over a fresh copy of three imported runs of one model each; the last in the list lacks two answers."""
    folder = tmp_path / "store"
    shutil.copytree(imported, folder)
    server = Served(folder)
    server.start()
    yield server
    server.kill()


def run_of(served: Served, model: str) -> str:
    """The run of a model, by its name in the registry."""
    (found,) = [one["run_id"] for one in served.get("/registry.json")["runs"] if one["candidates"] == [model]]
    return str(found)


def post(served: Served, path: str, body: Any) -> tuple[int, Any]:
    """The status and the document that a program gets."""
    asked = urllib.request.Request(
        served.url + path, json.dumps(body).encode(), {"content-type": "application/json", "origin": served.url}
    )
    try:
        with urllib.request.urlopen(asked, timeout=20) as said:
            return said.status, json.load(said)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_an_imported_run_offers_no_resume_and_a_refused_one_changes_nothing(served: Served) -> None:
    run = run_of(served, "google/gemma-2-9b-it")
    before = served.get(f"/runs/{run}.json")
    assert before["run"]["moves"] == []
    assert before["run"]["failed"] == 2
    code, said = post(served, f"/api/runs/{run}/steer", {"wish": "resume"})
    assert code == 409
    assert "was imported" in json.dumps(said)
    assert f"assay regrade {run} --judge" in json.dumps(said)
    for wish in ("pause", "cancel"):
        assert post(served, f"/api/runs/{run}/steer", {"wish": wish})[0] == 409
    assert post(served, f"/api/runs/{run}/extend", {"trials": 2})[0] == 409
    after = served.get(f"/runs/{run}.json")
    assert {one["kind"] for one in after["failures"]} == {"missing"}
    assert after["run"]["finished"] == before["run"]["finished"]
    assert after == before
