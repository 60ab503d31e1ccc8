"""Fresh copies for the validation: what the diff shows is applied, and nothing else that an agent
left.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from assay.agents.files import (
    Snapshot,
    changed_paths,
    copy_fixture,
    difference,
    parts_of_difference,
    within,
)
from assay.agents.fresh_copies import agent_changes, fresh_copy, restore_checks
from assay.domain.scenarios import CheckCommand, Scenario

FIXTURE = {
    "work.py": b"def work():\n    return 1\n",
    "logo.png": b"\x89PNG\0old",
    "latin.txt": "é".encode("latin-1"),
    "run.sh": b"#!/bin/sh\n",
    "tests/test_work.py": b"original",
    "package.json": b'{"scripts": {"test": "jest", "docs": "typedoc"}}',
}


class Trial:
    """A fixture, and a workspace with a copy of it in which a test plays the agent."""

    def __init__(self, folder: Path, *commands: str, allowed: tuple[str, ...] = ()) -> None:
        self.fixture, self.workspace, self.target = (
            folder / "fixture",
            folder / "workspace",
            folder / "validated",
        )
        for name, content in FIXTURE.items():
            (self.fixture / name).parent.mkdir(parents=True, exist_ok=True)
            (self.fixture / name).write_bytes(content)
        self.scenario = Scenario(
            folder="f",
            fixture="repo",
            files=dict.fromkeys(FIXTURE, ""),
            commands=tuple(CheckCommand(kind="test", command=text) for text in commands),
            protected=("test*", "*/test*"),
            allowed=allowed,
        )
        self.workspace.mkdir()
        _, self.base = copy_fixture(self.fixture, self.workspace)

    def write(self, name: str, content: bytes | str = b"") -> None:
        place = self.workspace / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())

    def validated(self, *, prepared: bool = False) -> tuple[list[str], tuple[str, ...]]:
        """Make the fresh copy; return its files and the violations."""
        now = Snapshot(self.workspace)
        self.changes = agent_changes(
            self.scenario, self.base, now, self.workspace, changed_paths(self.base, now)
        )
        fresh_copy(self.fixture, self.target, self.changes, prepared=prepared)
        names = {
            path.relative_to(self.target).as_posix()
            for path in self.target.rglob("*")
            if path.is_symlink() or not path.is_dir()
        }
        return sorted(names - FIXTURE.keys()), self.changes.sentences


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path, "python -m pytest -q", "npm test")


@pytest.mark.parametrize("prepared", [False, True], ids=["fixture", "baseline"])
def test_honest_changes_are_applied(trial: Trial, prepared: bool) -> None:
    trial.write("work.py", "def work():\n    return 2\n")
    trial.write("pkg/types.py", "inside a package, this shadows nothing")
    trial.write("pkg/__init__.py")
    trial.write("logo.png", b"\x89PNG\0new")
    trial.write("latin.txt", "è".encode("latin-1"))
    (trial.workspace / "run.sh").chmod(0o755)
    (trial.workspace / "tests" / "test_work.py").unlink()
    (trial.workspace / "link").symlink_to("work.py")
    added, violations = trial.validated(prepared=prepared)
    assert (added, violations) == (["link", "pkg/__init__.py", "pkg/types.py"], ())
    assert (trial.target / "work.py").read_text() == "def work():\n    return 2\n"
    assert (trial.target / "logo.png").read_bytes() == b"\x89PNG\0new"
    assert (trial.target / "latin.txt").read_bytes() == b"\xe8"
    assert os.access(trial.target / "run.sh", os.X_OK)
    assert os.readlink(trial.target / "link") == "work.py"
    assert (trial.target / "tests" / "test_work.py").read_bytes() == b"original"


def test_file_and_folder_that_change_places_are_applied(trial: Trial) -> None:
    (trial.workspace / "run.sh").unlink()
    trial.write("run.sh/inner.txt", "x")
    added, _ = trial.validated()
    assert added == ["run.sh/inner.txt"]
    assert not (trial.target / "run.sh").is_file()


@pytest.mark.parametrize(
    "path",
    [
        *(
            "__pycache__/work.cpython-311.pyc",
            "work.pyc",
            ".git/config",
            "pkg/.git",
            "dist/work.py",
            ".venv/bin/python",
        ),
        "node_modules/.bin/jest",
    ],
)
def test_what_the_diff_does_not_show_is_not_validated(trial: Trial, path: str) -> None:
    trial.write(path, "print('Ran 1 test')")
    added, violations = trial.validated()
    assert (added, violations) == ([], ())
    assert difference(trial.base, Snapshot(trial.workspace)) == ""


def test_content_that_the_diff_cannot_tell_apart_is_shown(trial: Trial) -> None:
    trial.write("logo.png", b"\x89PNG\0new")
    trial.write("latin.txt", "è".encode("latin-1"))
    (trial.workspace / "run.sh").chmod(0o755)
    (trial.workspace / "work.py").unlink()
    (trial.workspace / "work.py").symlink_to("run.sh")
    diff = difference(trial.base, Snapshot(trial.workspace))
    assert "Binary or large files a/logo.png and b/logo.png differ" in diff
    assert "Binary or large files a/latin.txt and b/latin.txt differ" in diff
    assert "a/run.sh was a file and b/run.sh is a program" in diff
    assert "a/work.py was a file and b/work.py is a link" in diff


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("tests/test_more.py", "matches the protected pattern 'test*'"),
        ("tests/__init__.py", "matches the protected pattern 'test*'"),
        ("pkg/test_more.py", "matches the protected pattern '*/test*'"),
        ("unittest/__main__.py", "the module 'unittest'"),
        ("unittest/case.py", "the module 'unittest'"),
        ("datetime.py", "the module 'datetime'"),
        ("checks/subprocess.py", "the module 'subprocess'"),
        ("pytest.py", "the module 'pytest'"),
        ("_pytest/runner.py", "the module '_pytest'"),
        ("sitecustomize.py", "Python would run it unasked"),
        ("pkg/usercustomize.py", "Python would run it unasked"),
        ("evil.pth", "Python would run it unasked"),
        ("evil.dist-info/entry_points.txt", "Python would run it unasked"),
        ("work.cpython-311-x86_64-linux-gnu.so", "in place of a source file"),
        ("conftest.py", "steers pytest"),
        ("pkg/conftest.py", "steers pytest"),
        ("pytest.ini", "steers pytest"),
        (".npmrc", "steers npm"),
    ],
)
def test_additions_that_decide_the_checks_are_violations(
    trial: Trial, path: str, reason: str
) -> None:
    trial.write(path, "import os; os._exit(0)")
    added, violations = trial.validated()
    assert added == [], "the validation runs without it"
    (violation,) = violations
    assert violation.startswith(f"{path} was added")
    assert reason in violation


def test_links_and_folders_do_not_take_the_place_of_protected_files(trial: Trial) -> None:
    trial.scenario = replace(trial.scenario, protected=("tests/*", "run.sh"))
    (trial.workspace / "tests" / "test_work.py").unlink()
    (trial.workspace / "tests").rmdir()
    (trial.workspace / "tests").symlink_to("pkg")
    (trial.workspace / "run.sh").unlink()
    trial.write("run.sh/inner.txt", "x")
    trial.write("pkg/test_work.py", "forged")
    added, violations = trial.validated()
    assert added == ["pkg/test_work.py"]
    assert [each.partition(" ")[0] for each in violations] == ["run.sh/inner.txt", "tests"]
    assert (trial.target / "tests" / "test_work.py").read_bytes() == b"original"


def test_allowed_additions_are_validated(tmp_path: Path) -> None:
    trial = Trial(tmp_path, "pytest", allowed=("tests/test_more.py", "conftest.py"))
    trial.write("tests/test_more.py")
    trial.write("conftest.py")
    assert trial.validated() == (["conftest.py", "tests/test_more.py"], ())


def test_files_of_tools_that_no_command_runs_are_validated(tmp_path: Path) -> None:
    trial = Trial(tmp_path, "python -m unittest -q")
    trial.write("conftest.py")
    trial.write("Makefile")
    assert trial.validated() == (["Makefile", "conftest.py"], ())


def test_scripts_that_a_command_runs_stay_those_of_the_fixture(trial: Trial) -> None:
    changed = {
        "scripts": {"test": "true", "pretest": "true", "docs": "none"},
        "dependencies": {"left-pad": "1"},
    }
    trial.write("package.json", json.dumps(changed))
    _, violations = trial.validated()
    assert json.loads((trial.target / "package.json").read_text()) == {
        "scripts": {"test": "jest", "docs": "none"},
        "dependencies": {"left-pad": "1"},
    }
    assert violations == (
        "The script 'pretest' of package.json was changed, and a validation command runs it.",
        "The script 'test' of package.json was changed, and a validation command runs it.",
    )


def test_links_and_special_files_lead_nowhere(trial: Trial, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("private")
    (trial.workspace / "folder").symlink_to(tmp_path / "secret")
    os.mkfifo(trial.workspace / "pipe")
    added, _ = trial.validated()
    assert added == ["folder"]
    assert (trial.target / "folder").is_symlink()


def test_a_command_cannot_change_the_checks_of_the_next(trial: Trial) -> None:
    trial.write("work.py", "changed")
    trial.validated()
    (trial.target / "tests" / "test_work.py").write_text("forged")
    for name in (
        "tests/__pycache__/x.pyc",
        "tests/test_zzz.py",
        "conftest.py",
        "unittest/__main__.py",
        "built/out.txt",
        "a.pyc",
    ):
        (trial.target / name).parent.mkdir(exist_ok=True)
        (trial.target / name).write_text("forged")
    restore_checks(trial.scenario, trial.fixture, trial.target, trial.changes.applied)
    present = {
        path.relative_to(trial.target).as_posix()
        for path in trial.target.rglob("*")
        if path.is_file()
    }
    assert present == FIXTURE.keys() | {"built/out.txt"}
    assert (trial.target / "tests" / "test_work.py").read_bytes() == b"original"
    assert (trial.target / "work.py").read_text() == "changed"


def test_every_changed_file_is_named_in_a_diff_that_is_cut(trial: Trial) -> None:
    for number in range(20):
        trial.write(f"big{number}.txt", "line\n" * 20_000)
    trial.write("small.txt", "the last one")
    now = Snapshot(trial.workspace)
    text = within(parts_of_difference(trial.base, now, changed_paths(trial.base, now)))
    assert len(text) <= 400_000
    assert all(f"+++ b/big{number}.txt" in text for number in range(20))
    assert "+the last one" in text
    assert text.count("characters left out") == 20
