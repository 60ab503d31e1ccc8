"""Files that Assay wrote, such as score tables and the results folder, are recognised on import."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.journey.conftest import Command
from tests.journey.test_export import reviewed as reviewed, rows_of
from tests.journey.test_import import answer, write
from tests.support.harness_files import inspect_archive
from tests.support.sets import NAMES

NOTHING = {"runs": 0, "tasks": 0, "responses": 0, "assessments": 0}


def runs(assay: Command, *more: object) -> list[dict[str, Any]]:
    row: list[dict[str, Any]] = assay("runs", "--json", *more).document["runs"]
    return row


def compared(assay: Command, *more: object) -> Any:
    return assay("compare", *NAMES[:2], "--json", *more).document


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_an_export_adds_nothing_to_the_store_it_came_from(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    before, there = compared(assay), runs(assay)
    folder = project / "exported"
    folder.mkdir()
    assert assay("export", "csv", "--output", folder / "scores.csv", "--all").code == 0
    rows = rows_of(folder / "scores.csv")
    assert (
        assay("export", "csv", "--output", folder / "some.csv", "--task", rows[0]["task_id"]).code
        == 0
    )
    write(folder / "lines.jsonl", rows)
    for name in ("scores.csv", "some.csv", "lines.jsonl", "scores.not-counted.csv"):
        output = assay("import", folder / name, "--json")
        assert (output.code, output.document["imported"]) == (0, NOTHING)
        expected = len(rows) if name == "lines.jsonl" else len(rows_of(folder / name))
        (held,) = output.document["held"]
        assert (held["run_id"], held["rows"]) == (there[0]["run_id"], expected)
    assert assay("import", folder).out.count("were already imported") == 4
    assert runs(assay) == there
    assert compared(assay) == before


def test_an_exported_log_that_inspect_packed_adds_nothing(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    there = runs(assay)
    assert assay("export", "inspect", "--output", "logs").code == 0
    for path in sorted((project / "logs").iterdir()):
        inspect_archive(path.with_suffix(".eval"), json.loads(path.read_text("utf-8")))
        path.unlink()
    again = assay("import", "logs", "--json")
    assert (again.code, again.document["imported"]) == (0, NOTHING)
    assert [held["run_id"] for held in again.document["held"]] == [there[0]["run_id"]] * len(NAMES)
    assert runs(assay) == there


def test_later_export_brings_another_store_up_to_date(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    assay("export", "csv", "--output", "first.csv")
    (waiting, *_) = [key for key, state in reviewed.items() if state == "pending"]
    assay("review", "approve", waiting)
    assay("export", "csv", "--output", "second.csv")
    before = compared(assay)
    other = ("--store", "other.db")
    first = assay("import", "first.csv", "--json", *other)
    second = assay("import", "second.csv", "--json", *other)
    assert (
        first.document["imported"]["assessments"],
        second.document["imported"]["assessments"],
    ) == (10, 1)
    assert [one["rows"] for one in second.document["held"]] == [10 * len(NAMES)]
    after = compared(assay, *other, "--all-runs")
    assert (after["n_trials_a"], after["mean_a"]) == (
        before["n_trials_a"],
        pytest.approx(before["mean_a"]),
    )
    again = assay("import", "first.csv", "--json", "--candidate", NAMES[0], *other)
    assert again.document["imported"] == NOTHING


def test_rows_of_a_run_that_is_here_without_them_are_left_out_and_said(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    assay("export", "csv", "--output", "scores.csv")
    text = (project / "scores.csv").read_text("utf-8")
    (project / "scores.csv").write_text(text.replace(",a1\n", ",a9001\n"), "utf-8")
    output = assay("import", "scores.csv", "--json")
    assert (output.code, output.document["imported"]) == (1, NOTHING)
    (skipped,) = output.document["skipped"]
    run = runs(assay)[0]["run_id"]
    assert skipped["why"].startswith(
        f"{len(NAMES)} rows have assessments that run {run} in this store does not have"
    )


def test_columns_of_these_names_in_somebody_else_s_table_are_no_runs(
    assay: Command, project: Path
) -> None:
    head = "task,candidate,score,run,attempt,assessment"
    (project / "theirs.csv").write_text(f"{head}\nq1,a,0.5,7,1,good\nq1,b,0.7,,1,a1\n", "utf-8")
    for name in ("theirs.csv", "again.csv"):
        (project / "again.csv").write_text(f"{head}\nq1,a,0.5,7,1,good\n", "utf-8")
        assert assay("import", name, "--json").document["imported"]["runs"] == 1


def test_a_state_that_was_decided_elsewhere_is_said(assay: Command, project: Path) -> None:
    (project / "hand.csv").write_text(
        "task,candidate,score,judge,state\n"
        "q1,a,0.5,openai/gpt-4o,approved\nq1,b,0.7,openai/gpt-4o,approved\n"
        "q2,a,0.5,openai/gpt-4o,\nq2,b,0.7,openai/gpt-4o,rejected\nq3,a,1,,\n",
        "utf-8",
    )
    output = assay("import", "hand.csv", "--json")
    assert output.code == 0
    (note,) = output.document["notes"]
    assert note["what"].startswith(
        "3 rows with a judge have a `state` that was decided elsewhere (2 approved, 1 rejected)"
    )
    (run,) = output.document["run_ids"]
    assert "judges         openai/gpt-4o" in assay("show", run).out


def test_exported_records_are_recognised(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    for form in ("json", "jsonl"):
        assay("export", form, "--output", f"scores.{form}")
        output = assay("import", f"scores.{form}", "--json")
        assert (output.code, output.document["imported"]) == (1, NOTHING)
        assert "is an export for other programs" in output.document["skipped"][0]["why"]


@pytest.fixture
def answered(assay: Command, project: Path) -> Path:
    """A store with a run of answers, and its results folder."""
    write("there/batch.jsonl", [answer(f"q{number}", "yes") for number in range(3)])
    assert assay("import", "there").code == 0
    return project / "results"


def test_a_results_folder_is_left_as_it_is(assay: Command, answered: Path, project: Path) -> None:
    before, there = files(answered), runs(assay)
    for paths in (["results"], ["."], [str(answered)], ["results", "there"]):
        output = assay("import", *paths, "--json")
        assert (output.code, output.document["imported"], output.document["skipped"]) == (
            0,
            NOTHING,
            [],
        )
        (note,) = output.document["notes"]
        assert "is a results folder that Assay wrote" in note["what"]
        assert f"`assay import {note['where']} --rebuild`" in note["what"]
    assert (files(answered), runs(assay)) == (before, there)
    output = assay("import", note["where"], "--rebuild", "--store", "new.db", "--json")
    assert output.document["run_ids"] == [there[0]["run_id"]]


def test_other_results_in_a_results_folder_are_imported(assay: Command, answered: Path) -> None:
    write("results/batch_other.jsonl", [answer("q9", "no", model="other")])
    write("results/other/batch_more.jsonl", [answer("q8", "no", model="more")])
    output = assay("import", "results", "--json")
    assert output.document["imported"]["runs"] == 2
    assert len(output.document["notes"]) == 1
    assert {tuple(run["candidates"]) for run in runs(assay)} > {("other",), ("more",)}
    again = assay("import", "results", "--json").document
    assert again["imported"] == NOTHING
    assert len(again["unchanged"]) == 2


def test_a_file_of_a_results_folder_named_by_itself_is_refused(
    assay: Command, answered: Path
) -> None:
    there = runs(assay)
    for path in sorted(answered.rglob("*.*")):
        if path.is_file() and not path.name.startswith("."):
            output = assay("import", path.relative_to(answered.parent))
            assert output.code == 2, path
            assert "`assay import results --rebuild`" in output.err
    assert runs(assay) == there
    (answers,) = (path for path in answered.glob("*/*.jsonl") if path.parent.name != "_assay")
    assert (
        assay("import", answers, "--format", "openai_batch", "--json").document["imported"]["runs"]
        == 1
    )


def test_results_folder_without_records_gives_another_remedy(
    assay: Command, answered: Path, project: Path
) -> None:
    shutil.make_archive("packed", "zip", project, "results")
    shutil.rmtree(answered / "_assay")
    (note,) = assay("import", "results", "--json").document["notes"]
    assert "`assay export results`" in note["what"]
    notes = assay("import", "packed.zip", "--json").document["notes"]
    assert [(one["where"], "Unpack it" in one["what"]) for one in notes] == [
        ("packed.zip/results", True)
    ]


def test_empty_files_of_a_silent_candidate_belong_to_the_folder(
    assay: Command, project: Path
) -> None:
    (project / "hand.csv").write_text("task,candidate,score\nq1,a,0.5\nq1,b,0.7\n", "utf-8")
    assay("import", "hand.csv")
    assert any(path.stat().st_size == 0 for path in (project / "results").glob("*/*.jsonl"))
    output = assay("import", "results", "--json")
    assert (output.code, output.document["skipped"]) == (0, [])
