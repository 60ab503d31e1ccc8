"""A misspelt candidate, mended on the command line, everywhere it is read."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from assay.app.imports import restore
from assay.app.workspace import Workspace
from tests.journey.conftest import Command

SUITE = """
name: capitals
trials: 2
tasks:
  - {{id: france, prompt: The capital?, expected: Paris, score: exact, snippets: {{{one}: Paris, {two}: Lyon}}}}
"""


@pytest.fixture
def misspelt(assay: Command, project: Path) -> Path:
    for number, (one, two) in enumerate((("alcie", "bob"), ("alice", "carol"))):
        (project / f"s{number}.yaml").write_text(SUITE.format(one=one, two=two), "utf-8")
        assert assay("run", f"s{number}.yaml").code == 0
    return project


def means(assay: Command) -> dict[str, float]:
    return {
        one["candidate"]: one["n_trials"]
        for one in assay("stats", "--all-runs", "--json").document["candidates"]
    }


def test_a_merge_reaches_statistics_exports_and_the_folder_and_is_undone(
    assay: Command, misspelt: Path
) -> None:
    assert means(assay) == {"alcie": 2, "bob": 2, "alice": 2, "carol": 2}
    event = assay(
        "candidates",
        "merge",
        "alcie",
        "alice",
        "--reason",
        "a typo",
        "--reviewer",
        "rita",
        "--json",
    ).document
    assert (event["event"], event["did"], event["reviewer"], event["reason"]) == (
        "n1",
        "merge",
        "rita",
        "a typo",
    )
    assert means(assay) == {"alice": 4, "bob": 2, "carol": 2}
    assert assay("compare", "alice", "bob", "--json").document["a"] == "alice"
    names = {
        row["candidate"]
        for row in csv.DictReader(io.StringIO(assay("export", "csv", "--all-runs").out))
    }
    assert names == {"alice", "bob", "carol"}
    assert "alcie" not in assay("export", "latex", "--all-runs").out
    hidden = assay("export", "json", "--anonymise", "--all-runs").out
    assert [name for name in ("alcie", "alice", "bob", "carol") if f'"{name}"' in hidden] == []
    assert json.loads(hidden)["n_assessments"] == 8
    shutil.rmtree(misspelt / ".assay")
    with Workspace.open() as workspace:
        restore.rebuild(workspace.store, workspace.results, Path("results"))
    assert means(assay) == {"alice": 4, "bob": 2, "carol": 2}


def test_undo_and_list(assay: Command, misspelt: Path) -> None:
    before = assay("stats", "--all-runs", "--json").document["candidates"]
    assert assay("candidates", "merge", "alcie", "alice").code == 0
    assert assay("candidates", "rename", "bob", "Robert").code == 0
    listed = assay("candidates", "list", "--json").document
    assert {one["candidate"]: one["written"] for one in listed["candidates"]} == {
        "alice": ["alcie"],
        "carol": [],
        "Robert": ["bob"],
    }
    assert "alcie merged into alice" in assay("candidates", "list").out
    assert assay("candidates", "undo", "n1").code == 0
    assert assay("candidates", "undo", "2").code == 0
    assert assay("stats", "--all-runs", "--json").document["candidates"] == before
    assert [
        one["undone_by"] for one in assay("candidates", "list", "--json").document["events"]
    ] == ["n3", "n4", None, None]


def test_a_run_of_a_mended_candidate_goes_on_as_it(assay: Command, misspelt: Path) -> None:
    assay("candidates", "merge", "alcie", "alice")
    old = assay("runs", "--json").document["runs"][-1]["run_id"]
    assert assay("extend", old, "--trials", "1").code == 0
    assert assay("regrade", old, "--suite", "s0.yaml").code == 0
    assert means(assay) == {"alice": 5, "bob": 3, "carol": 2}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rename", "nobody", "x"), "nobody"),
        (("rename", "alcie", "alice"), "candidates merge"),
        (("rename", "alcie", "  "), "needs a name"),
        (("merge", "alcie", "bob"), "took part in run"),
        (("undo", "n9"), "no event"),
        (("undo", "x"), "not an event"),
    ],
)
def test_impossible_rename_is_refused_and_changes_nothing(
    assay: Command, misspelt: Path, arguments: tuple[str, ...], said: str
) -> None:
    before = means(assay)
    answer = assay("candidates", *arguments)
    assert answer.code == 2
    assert said in answer.err
    assert means(assay) == before


def test_the_files_of_a_mended_candidate_stay_complete(assay: Command, project: Path) -> None:
    for number, name in enumerate(("alcie", "alice")):
        text = (
            f"name: e\ntrials: 2\ncandidates: [{{name: {name}, model: echo}}]\ntasks:\n"
            "  - {id: q, prompt: hi, expected: hi, score: exact}\n"
        )
        (project / f"e{number}.yaml").write_text(text, "utf-8")
        assert assay("run", f"e{number}.yaml").code == 0
    (path,) = (project / "results" / "alcie").glob("*.meta.json")
    before, lines = (
        json.loads(path.read_bytes()),
        Path(str(path).replace(".meta.json", ".jsonl")).read_bytes(),
    )
    assert assay("candidates", "merge", "alcie", "alice").code == 0
    after = json.loads(path.read_bytes())
    assert after["model"].pop("called") == "alice"
    assert after == before
    assert Path(str(path).replace(".meta.json", ".jsonl")).read_bytes() == lines
    registry = json.loads((project / "results" / "metadata.json").read_bytes())
    assert len(registry["runs"]) == 2
