"""Names of recordings that lead to devices, pipes, hidden files and files outside the project."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.attack import figures
from tests.support.measured import MAX_MEMORY, measured

from assay.domain.errors import SettingsError
from assay.domain.model import ModelSpec
from assay.providers import recordings
from assay.providers.directory import Directory

LINE = '{"reply": "x"}\n'
RECORDINGS = ("/dev/zero", "huge.jsonl", "many.jsonl", "wide.jsonl")


def problem_of(folder: Path, name: str, *read_from: Path) -> SettingsError | None:
    known = Directory({}, base_folder=folder, read_from=read_from)
    problems = known.problems([ModelSpec(provider="replay", name=name)])
    return problems[0] if problems else None


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project folder beside a folder with recordings of others."""
    project = tmp_path / "project"
    for folder in (project, tmp_path / "others"):
        folder.mkdir()
        (folder / "a.jsonl").write_text(LINE)
    return project


@pytest.mark.parametrize(
    "name", ["/dev/zero", "../others/a.jsonl", "../others/gone.jsonl", "link.jsonl", ".env", "a\0b"]
)
def test_an_outside_name_tells_nothing_about_the_file(project: Path, name: str) -> None:
    (project / "link.jsonl").symlink_to("/dev/zero")
    (project / ".env").write_text("KEY=secret")
    problem = problem_of(project, name)
    assert problem is not None
    assert problem.problem == "is hidden, or lies outside the project's folder."


def test_folders_of_read_from_may_hold_recordings(project: Path) -> None:
    assert problem_of(project, "a.jsonl") is None
    assert problem_of(project, "../others/a.jsonl", project.parent / "others") is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_no_recording_and_does_not_hang(project: Path) -> None:
    os.mkfifo(project / "pipe.jsonl")
    problem = problem_of(project, "pipe.jsonl")
    assert problem is not None
    assert "there is no file" in problem.problem


def test_a_recording_has_a_largest_size(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "long.jsonl").write_text(LINE * 5)
    monkeypatch.setattr(recordings, "MAX_ANSWERS", 5)
    assert problem_of(project, "long.jsonl") is None
    monkeypatch.setattr(recordings, "MAX_ANSWERS", 4)
    assert "more than" in str(problem_of(project, "long.jsonl"))
    monkeypatch.setattr(recordings, "MAX_ANSWERS", 5)
    monkeypatch.setattr(recordings, "MAX_CHARACTERS", 5 * len(LINE) - 1)
    assert "more than" in str(problem_of(project, "long.jsonl"))


@pytest.mark.slow
@pytest.mark.parametrize("judge", RECORDINGS)
def test_no_recording_takes_more_than_600_mb(tmp_path: Path, judge: str) -> None:
    with (tmp_path / "huge.jsonl").open("wb") as huge:
        huge.truncate(20 * 2**30)
    (tmp_path / "many.jsonl").write_text('{"reply":""}\n' * 2_000_000)
    (tmp_path / "wide.jsonl").write_text(f'{{"reply":"\N{PARTY POPPER}{"x" * 14_000_000}"}}\n' * 8)
    suite = {
        "tasks": [{"id": "t", "prompt": "p", "snippets": {"ann": "x", "bob": "y"}}],
        "judge": f"replay/{judge}",
    }
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    done = measured("run", "suite.json", folder=tmp_path)
    assert done.status not in (0, -9), done.err
    assert "Traceback" not in done.err
    assert f"replay/{judge}" in done.err
    through = int(done.peak > MAX_MEMORY)
    figures.publish(
        "recording that is a device, huge, long or wide", tried=len(RECORDINGS), through=through
    )
