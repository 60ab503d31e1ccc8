"""Files dropped in the browser: shown before anything is kept, then imported as at the command
line.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.support import harness_files as files

from assay.app.imports import uploads
from assay.app.imports.importer import import_paths
from assay.app.workspace import Workspace
from assay.domain.selection import Selection
from assay.web.server import create_app

THING = {
    "thingName": "One",
    "snippets": [{"name": "ann", "content": "a"}, {"name": "bob", "content": "b"}],
}
CSV = 'question,answer_ann,answer_bob\nWhy?,So.,"Because,\nindeed."\nWhen?,Now.,Later.\n'


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with Workspace.open(folder) as opened:
        yield opened


@pytest.fixture
def client(workspace: Workspace) -> Iterator[TestClient]:
    with TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as opened:
        yield opened


def send(
    client: TestClient, path: str, *named: tuple[str, bytes | str], status: int | None = None
) -> Any:
    body = [
        {
            "name": name,
            "content": base64.b64encode(
                text if isinstance(text, bytes) else text.encode()
            ).decode(),
        }
        for name, text in named
    ]
    answer = client.post(path, json={"files": body})
    assert answer.status_code == (status or (200 if path.endswith("look") else 201)), answer.text
    return answer.json()


def everything_in(folder: Path) -> list[tuple[str, bytes]]:
    paths = sorted(folder.rglob("*")) if folder.is_dir() else [folder]
    start = folder if folder.is_dir() else folder.parent
    return [(str(path.relative_to(start)), path.read_bytes()) for path in paths if path.is_file()]


@pytest.mark.parametrize(
    ("write", "form", "waiting"),
    [
        (files.inspect, "inspect", 0),
        (files.promptfoo, "promptfoo", 6),
        (files.swe_bench, "swe_bench", 0),
        (files.openai_api, "openai_evals", 2),
    ],
)
def test_results_are_shown_first_and_then_imported_as_by_the_command(
    client: TestClient, workspace: Workspace, tmp_path: Path, write: Any, form: str, waiting: int
) -> None:
    given = everything_in(write(tmp_path / "theirs"))
    preview = send(client, "/api/uploads/look", *given)
    assert preview["formats"] == [form]
    assert sum(run["waiting"] for run in preview["runs"]) == waiting
    assert preview["known"] == {}
    assert workspace.archive.runs.matching(Selection()) == (), "nothing is kept by looking"
    kept = send(client, "/api/uploads", *given)
    assert kept["waiting"] == waiting
    (run,) = preview["runs"]
    (summary,) = workspace.archive.runs.matching(Selection())
    assert [candidate["name"] for candidate in run["candidates"]] == list(summary.candidates)
    means = [candidate["mean"] for candidate in run["candidates"]]
    assert all(mean is None or 0 <= mean <= 1 for mean in means)
    assert any(mean is not None for mean in means)
    again = send(client, "/api/uploads/look", *given)
    assert {run for runs in again["known"].values() for run in runs} == set(kept["run_ids"])
    assert send(client, "/api/uploads", *given)["run_ids"] == []


def test_the_command_knows_what_the_browser_imported(
    client: TestClient, workspace: Workspace, tmp_path: Path
) -> None:
    target = files.inspect(tmp_path / "theirs")
    kept = send(client, "/api/uploads", *everything_in(target))
    assert import_paths(workspace, [target]).run_ids == []
    source: Any = workspace.journal.plan_of(kept["run_ids"][0]).environment["imported"]
    assert source["from"] == everything_in(target)[0][0]


def test_what_is_skipped_is_told_with_its_reason(client: TestClient) -> None:
    preview = send(client, "/api/uploads/look", ("notes.json", '{"a": 1}'), ("cut.jsonl", '{"a": '))
    assert preview["suites"] == preview["runs"] == []
    assert any(line.startswith("notes.json: has no format") for line in preview["skipped"])
    assert any(line.startswith("cut.jsonl: ") for line in preview["skipped"])
    assert not any("/tmp" in line for line in preview["skipped"])


def test_a_set_is_shown_saved_and_kept_beside_an_older_one(
    client: TestClient, workspace: Workspace
) -> None:
    older, newer = (json.dumps([{**THING, "context": context}]) for context in ("older", "newer"))
    (suite,) = send(client, "/api/uploads/look", ("people.json", older))["suites"]
    assert (suite["path"], suite["tasks"], suite["candidates"]) == (
        "suites/people.json",
        1,
        ["ann", "bob"],
    )
    assert not suite["exists"]
    assert send(client, "/api/uploads", ("people.json", older))["suites"] == ["suites/people.json"]
    (suite,) = send(client, "/api/uploads/look", ("people.json", newer))["suites"]
    assert suite["exists"]
    assert send(client, "/api/uploads", ("people.json", newer))["suites"] == [
        "suites/people-2.json"
    ]
    assert (workspace.folder / "suites" / "people.json").read_text("utf-8") == older
    assert (
        client.get("/api/suites/read", params={"path": "suites/people-2.json"}).json()["problems"]
        == []
    )


def test_a_table_of_answers_becomes_a_suite(client: TestClient, workspace: Workspace) -> None:
    (suite,) = send(client, "/api/uploads/look", ("answers.csv", CSV))["suites"]
    assert (suite["path"], suite["tasks"], suite["candidates"]) == (
        "suites/answers.yaml",
        2,
        ["ann", "bob"],
    )
    assert suite["problems"] == []
    assert send(client, "/api/uploads", ("answers.csv", CSV))["suites"] == ["suites/answers.yaml"]
    loaded = client.get("/api/suites/read", params={"path": "suites/answers.yaml"}).json()
    assert loaded["suite"]["tasks"] == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "colour,size\nred,1\n",
            "has no column that looks like prompts. Its columns: colour, size.",
        ),
        ('question,answer_a,answer_b\nWhy?,"So,no\nWhen?,x,y\n', "answers.csv:2"),
        ("", "answers.csv"),
    ],
)
def test_a_wrong_csv_is_told_by_line_and_remedy_not_echoed(
    client: TestClient, text: str, told: str
) -> None:
    (suite,) = send(client, "/api/uploads/look", ("answers.csv", text))["suites"]
    assert told in " ".join(suite["problems"])
    assert "When?" not in " ".join(suite["problems"])
    refused = send(client, "/api/uploads", ("answers.csv", text), status=422)
    assert refused["error"]["problem"]


def test_an_upload_has_limits_of_rows_and_of_time(
    client: TestClient, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = everything_in(files.inspect(tmp_path / "theirs"))
    for name, value in (("MAX_ROWS", -1), ("MAX_S", -1.0)):
        with monkeypatch.context() as changed:
            changed.setattr(uploads, name, value)
            refused = send(client, "/api/uploads", *given, status=422)
        assert "assay import" in refused["error"]["remedy"]
    assert workspace.archive.runs.matching(Selection()) == ()


def test_bombs_are_refused_as_by_the_command(client: TestClient) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows.jsonl", b'{"a": 1}\n' * 9_000_000)
    for name, content in (
        ("rows.zip", bomb.getvalue()),
        ("rows.jsonl.gz", gzip.compress(b" " * 90_000_000)),
    ):
        preview = send(client, "/api/uploads/look", (name, content))
        assert preview["runs"] == []
        assert preview["skipped"]


def test_names_cannot_leave_the_folder(client: TestClient, workspace: Workspace) -> None:
    text = json.dumps([THING])
    saved = send(client, "/api/uploads", ("../../outside.json", text))["suites"]
    assert saved == ["suites/outside.json"]
    assert not (workspace.folder.parent / "outside.json").exists()
    send(client, "/api/uploads/look", ("..", text), status=422)


def test_programs_of_an_uploaded_suite_are_refused(
    client: TestClient, workspace: Workspace
) -> None:
    text = json.dumps(
        {
            "tasks": [{"id": "t", "prompt": "p"}],
            "judge": {"model": "human", "mode": "each"},
            "candidates": [{"name": "c", "command": ["touch", "x"]}],
        }
    )
    (suite,) = send(client, "/api/uploads/look", ("evil.json", text))["suites"]
    assert "may only ask models" in " ".join(suite["problems"])
    send(client, "/api/uploads", ("evil.json", text), status=422)
    assert not (workspace.folder / "suites" / "evil.json").exists()


def test_one_upload_is_read_at_a_time(client: TestClient) -> None:
    with uploads._ONE_AT_A_TIME:
        refused = send(client, "/api/uploads/look", ("a.json", "{}"), status=409)
    assert "Try again" in refused["error"]["remedy"]
