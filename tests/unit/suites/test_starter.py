"""The project that `assay init` writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from assay.scoring.rubrics import READY_MADE
from assay.suites.loading import load_suite
from assay.suites.notes import notes_on
from assay.suites.starter import starter_files


def written(folder: Path) -> Path:
    for name, text in starter_files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def test_the_suite_runs_at_once_without_a_key(tmp_path: Path) -> None:
    suite = load_suite(written(tmp_path) / "suites" / "first.yaml")
    assert suite.trials is None
    assert [candidate.model for candidate in suite.candidates] == [None, None]
    assert [task.scoring.method for task in suite.tasks] == [
        *["contains"] * 3,
        *["numeric"] * 2,
        *["choice"] * 2,
        "json",
    ]
    assert suite.judges == ()
    assert notes_on(suite) == ()


@pytest.mark.parametrize("rubric", ["correctness", "helpfulness", "faithfulness", "style", "code"])
def test_a_ready_made_rubric_comes_with_a_suite(tmp_path: Path, rubric: str) -> None:
    path = tmp_path / "judged.yaml"
    text = starter_files(rubric)[f"suites/{rubric}.yaml"]
    path.write_text(text)
    suite = load_suite(path)
    assert suite.rubric == READY_MADE[rubric]
    assert [judge.model.provider for judge in suite.judges] == ["human"]
    path.write_text(text.replace("  # persona:", "  persona:"))
    assert (load_suite(path).judges[0].persona or "").startswith("You answer for")


def test_the_set_file_compares_two_people(tmp_path: Path) -> None:
    suite = load_suite(written(tmp_path) / "suites" / "people.json", judge="openai/gpt-4o-mini")
    assert [candidate.name for candidate in suite.candidates] == ["alice", "bob"]
    assert [(task.thing, task.trials) for task in suite.tasks] == [("Slug", 3), ("Median", 3)]
    for task in suite.tasks:
        for snippet in task.snippets:
            compile(snippet.text, snippet.candidate, "exec")


def test_commented_lines_of_the_starter_suite_are_valid(tmp_path: Path) -> None:
    text = re.sub(r"    score: \w+\n", "", starter_files()["suites/first.yaml"])
    head, tasks = text.split("\ntasks:")
    lines = [
        line.removeprefix("# ") if line.startswith("# ") else line for line in head.split("\n")
    ]
    keys = (
        "candidates:",
        "  - ",
        "judge:",
        "  model:",
        "  mode:",
        "rubric:",
        "name:",
        "description:",
    )
    path = tmp_path / "first.yaml"
    path.write_text("\n".join(line for line in lines if line.startswith(keys)) + "\ntasks:" + tasks)
    suite = load_suite(path)
    assert [judge.name for judge in suite.judges] == ["openai/gpt-4o-mini"]
    assert suite.rubric is not None
    assert len(suite.candidates) == 4


def test_the_settings_are_valid_with_and_without_their_comments() -> None:
    text = starter_files()["assay.yaml"]
    assert yaml.safe_load(text) is None
    settings = [
        line[2:]
        for line in text.split("\n")
        if line.startswith("# ") and ": " in line and line[2].islower()
    ]
    assert set(yaml.safe_load("\n".join(settings))) == {
        "judge",
        "reviewer",
        "local_only",
        "concurrency",
        "budget",
    }


def test_the_store_and_the_keys_stay_out_of_version_control() -> None:
    assert starter_files()[".gitignore"].split() == [".assay/", ".env"]
