"""Kept workspaces: nothing in them runs unasked, and together they have a limit."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from assay.agents.kept import MAX_KEPT, KeptWorkspaces, disarm


@pytest.mark.parametrize(
    "path",
    [
        *(
            ".git/config",
            ".GIT/config",
            "pkg/.git",
            "repo.git/HEAD",
            ".husky/pre-commit",
            ".githooks/post-checkout",
            ".envrc",
        ),
        *(
            ".vscode/tasks.json",
            "node_modules/x.js",
            "pkg/__pycache__/x.pyc",
            "dist/x",
            ".venv/bin/python",
            "x.pyc",
        ),
    ],
)
def test_nothing_armed_is_left(tmp_path: Path, path: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text("armed")
    (tmp_path / "work.py").write_text("plain")
    disarm(tmp_path)
    assert [each.name for each in tmp_path.rglob("*") if each.is_file()] == ["work.py"]


def test_links_out_special_files_and_permissions_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "place"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "up").symlink_to("../../secret")
    (folder / "absolute").symlink_to("/etc/passwd")
    (folder / "within").symlink_to("in")
    os.mkfifo(folder / "pipe")
    (folder / "tool").write_text("x")
    (folder / "tool").chmod(0o4755)
    disarm(folder)
    assert sorted(each.name for each in folder.rglob("*")) == ["in", "tool", "within"]
    assert (folder / "tool").stat().st_mode & 0o7777 == 0o755


def keep(kept: KeptWorkspaces, name: str, size: int) -> Path:
    async def trial() -> Path:
        async with kept.place(name) as place:
            (place / "workspace").mkdir()
            (place / "workspace" / "data.bin").write_bytes(b"x" * size)
            return place

    return asyncio.run(trial())


def names(folder: Path) -> list[str]:
    return sorted(each.name.rpartition("-")[0] for each in folder.iterdir())


def test_oldest_workspaces_go_first_when_the_limit_is_reached(tmp_path: Path) -> None:
    kept = KeptWorkspaces(tmp_path, most_bytes=200_000)
    for number in range(4):
        os.utime(keep(kept, f"t{number}", 80_000) / "size", (number, number))
    assert names(tmp_path) == ["t2", "t3"]
    assert kept.total_bytes() == (2, 2 * 81_920)
    keep(kept, "huge", 300_000)
    assert names(tmp_path) == [], "the newest does not count more than the limit"


def test_no_more_than_the_newest_are_kept(tmp_path: Path) -> None:
    kept = KeptWorkspaces(tmp_path, most_bytes=10**9)
    for number in range(MAX_KEPT + 2):
        os.utime(keep(kept, f"t{number:02}", 1) / "size", (number, number))
    assert names(tmp_path) == [f"t{number:02}" for number in range(2, MAX_KEPT + 2)]


def test_workspace_of_a_killed_process_is_disarmed_and_one_in_use_is_not(tmp_path: Path) -> None:
    kept = KeptWorkspaces(tmp_path, most_bytes=10**9)
    killed = tmp_path / "killed-1"
    (killed / "workspace" / ".git").mkdir(parents=True)
    (killed / "in-use").touch()

    async def two_trials() -> bool:
        async with kept.place("one") as place:
            (place / ".git").mkdir()
            async with kept.place("two"):
                pass
            return (place / ".git").exists()

    assert asyncio.run(two_trials()), "another trial still works in it"
    assert not (killed / "workspace" / ".git").exists()
