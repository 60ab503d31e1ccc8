"""Exports through the command line: only what counts, whole files, tables other programs and we
ourselves read back.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import assay as product
from assay.app.exports import export
from assay.app.exports.exporters import ExportRequest
from assay.app.workspace import Workspace
from assay.domain.errors import InputError
from assay.domain.lifecycle import COUNTS
from assay.domain.selection import Selection
from assay.formats.csv_lines import unguarded
from assay.statistics import ScoreTable, compare as compared
from tests.journey.conftest import Command
from tests.support.model_server import ModelServer
from tests.support.sets import NAMES, write_set

JUDGE = "openai/judge-1"
COUNTING = {str(state) for state in COUNTS}


@pytest.fixture
def reviewed(assay: Command, server: ModelServer, project: Path) -> dict[str, str]:
    """A judged set of 15 trials: 9 approved, 1 corrected, 1 rejected, 4 waiting; decision by id."""
    assay("run", write_set(project), "--judge", JUDGE)
    ids = [row["id"] for row in assay("review", "list", "--json").document["assessments"]]
    assert assay("review", "approve", *ids[:9], "--reviewer", "rita").code == 0
    name = NAMES[0]
    assert (
        assay(
            "review",
            "correct",
            ids[9],
            "--score",
            f"{name}=0.125",
            "--reason",
            "too kind",
            "--reviewer",
            "sam",
        ).code
        == 0
    )
    assert (
        assay("review", "reject", ids[10], "--reason", "nonsense", "--reviewer", "rita").code == 0
    )
    states = {
        row["id"]: row["state"] for row in assay("review", "list", "--json").document["assessments"]
    }
    assert Counter(states.values()) == {"approved": 9, "corrected": 1, "rejected": 1, "pending": 4}
    return states


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_only_grades_that_count_leave_and_the_others_only_apart(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    output = assay("export", "csv", "--output", "scores.csv", "--all", "--json")
    assert output.code == 0
    counted, apart = rows_of(project / "scores.csv"), rows_of(project / "scores.not-counted.csv")
    document = output.document
    read = document.pop("read")
    assert (read["choice"], read["n_trials"], len(read["runs"])) == (
        "newest",
        len(counted) // len(NAMES),
        1,
    )
    assert document == {
        "format": "csv",
        "output": "scores.csv",
        "text": None,
        "rows": len(counted),
        "unseen": 0,
        "not_counted": {"output": "scores.not-counted.csv", "rows": len(apart)},
        "approvals": {"shown": 0, "scripted": 10, "imported": 0},
    }
    assert {row["state"] for row in counted} == {"approved", "corrected"}
    assert {row["assessment"] for row in counted} == {
        key for key, state in reviewed.items() if state in COUNTING
    }
    assert Counter(row["state"] for row in apart) == {
        "pending": 4 * len(NAMES),
        "rejected": len(NAMES),
    }
    assert {row["not_counted"] for row in apart} == {"waits for a person", "rejected"}
    corrected = [
        row["score"]
        for row in counted
        if row["state"] == "corrected" and row["candidate"] == NAMES[0]
    ]
    assert corrected == ["0.125"]


def test_the_table_gives_back_the_comparison(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    assay("export", "csv", "--output", "scores.csv")
    rows = rows_of(project / "scores.csv")
    assert list(rows[0])[:9] == [
        "task",
        "candidate",
        "trial",
        "score",
        "weight",
        "criterion",
        "judge",
        "state",
        "joint",
    ]
    table = ScoreTable.from_columns(
        task=[unguarded(row["task"]) for row in rows],
        candidate=[unguarded(row["candidate"]) for row in rows],
        trial=[int(row["trial"]) for row in rows],
        score=[float(row["score"]) for row in rows],
        weight=[float(row["weight"]) for row in rows],
        joint=[row["joint"] == "true" for row in rows],
    )
    ours = assay("compare", NAMES[0], NAMES[1], "--json").document
    theirs = compared(table, NAMES[0], NAMES[1])
    assert theirs.difference == ours["difference"]
    assert theirs.p_value == ours["p_value"]
    assert theirs.ci95 is not None
    assert list(theirs.ci95) == ours["ci95"]


def test_stdout_is_the_export_itself(assay: Command, reviewed: dict[str, str]) -> None:
    table = assay("export", "csv")
    assert table.out.splitlines()[0].startswith(
        "task,candidate,trial,score,weight,criterion,judge,state,joint"
    )
    assert len(table.out.splitlines()) == 1 + 10 * len(NAMES)
    lines = [json.loads(line) for line in assay("export", "jsonl").out.splitlines()]
    document = assay("export", "json", "--json").document
    assert lines == document["assessments"]
    assert document["n_assessments"] == 10
    assert len(document["runs"]) == 1


@pytest.mark.parametrize("form", ["csv", "jsonl", "markdown"])
def test_json_holds_an_export_that_goes_to_no_file(
    assay: Command, reviewed: dict[str, str], form: str
) -> None:
    document = assay("export", form, "--json").document
    assert (document["format"], document["output"]) == (form, None)
    if form == "markdown":  # a report bears the time at which it was written
        assert document["text"].startswith("# ")
    else:
        assert document["text"] == assay("export", form).out


def test_records_carry_grades_reasons_reviews_and_responses(
    assay: Command, reviewed: dict[str, str]
) -> None:
    document = assay("export", "json").document
    corrected = next(one for one in document["assessments"] if one["state"] == "corrected")
    assert corrected["scores"][NAMES[0]] == 0.125
    assert corrected["judge_scores"][NAMES[0]] != 0.125
    assert corrected["events"][0]["reviewer"] == "sam"
    assert corrected["events"][0]["reason"] == "too kind"
    assert {one["candidate"] for one in corrected["responses"]} == set(NAMES)
    assert all(grade["reason"] for grade in corrected["grades"])
    run = document["runs"][0]
    assert run["environment"]["python"]
    assert run["judged_with"]
    assert run["suite_digest"]


def test_nothing_is_replaced_unasked(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    (project / "scores.not-counted.csv").write_text("mine", "utf-8")
    output = assay("export", "csv", "--output", "scores.csv", "--all")
    assert output.code == 2
    assert "--force" in output.err
    assert sorted(path.name for path in project.glob("*scores*")) == ["scores.not-counted.csv"]
    assert (project / "scores.not-counted.csv").read_text("utf-8") == "mine"
    assert assay("export", "csv", "--output", "scores.csv", "--all", "--force").code == 0
    assert (project / "scores.not-counted.csv").read_text("utf-8") != "mine"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "cvs"), "'csv'"),
        (("export", "csv", "--all"), "--output"),
        (("export", "parquet"), "--output"),
        (("export", "csv", "--run", "nope"), "nope"),
        (("export", "csv", "--output", "no/where.csv"), "no folder"),
    ],
)
def test_impossible_export_gives_a_clear_error(
    assay: Command, arguments: tuple[str, ...], said: str
) -> None:
    answer = assay(*arguments)
    assert answer.code == 2
    assert said in answer.err + answer.out


def test_anonymised_files_name_neither_candidate_nor_reviewer(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    assert assay("export", "json", "--output", "a.json", "--all", "--anonymise").code == 0
    assert assay("export", "csv", "--output", "a.csv", "--all", "--anonymise").code == 0
    for path in project.glob("a.*"):
        text = path.read_text("utf-8").lower()
        assert [
            name for name in (*NAMES, "rita", "sam") if f'"{name}"' in text or f",{name}," in text
        ] == []
    document = json.loads((project / "a.json").read_text("utf-8"))
    names = set(document["runs"][0]["candidates"])
    assert names == {f"candidate {number}" for number in range(1, len(NAMES) + 1)}
    for one in document["assessments"]:
        assert set(one["scores"]) == names == {grade["candidate"] for grade in one["grades"]}
    (corrected,) = [one for one in document["assessments"] if one["state"] == "corrected"]
    (hidden,) = corrected["events"][0]["corrections"]
    assert corrected["scores"][hidden] == 0.125


def test_the_verb_for_programs(assay: Command, reviewed: dict[str, str], project: Path) -> None:
    result = product.export("jsonl", output=project / "all.jsonl", everything=True)
    assert (result.rows, result.rows_apart) == (10, 5)
    assert len((project / "all.jsonl").read_text("utf-8").splitlines()) == 10
    states = [
        json.loads(line)["state"]
        for line in (project / "all.not-counted.jsonl").read_text("utf-8").splitlines()
    ]
    assert Counter(states) == {"pending": 4, "rejected": 1}


def test_parquet_holds_the_table(assay: Command, reviewed: dict[str, str], project: Path) -> None:
    parquet = pytest.importorskip(
        "pyarrow.parquet", reason="parquet NOT TESTED: pyarrow is not installed"
    )
    assert assay("export", "parquet", "--output", "scores.parquet", "--all").code == 0
    assay("export", "csv", "--output", "scores.csv")
    table: list[dict[str, Any]] = parquet.read_table(project / "scores.parquet").to_pylist()
    rows = rows_of(project / "scores.csv")
    assert [
        (row["task"], row["candidate"], row["trial"], row["score"], row["joint"]) for row in table
    ] == [
        (
            row["task"],
            row["candidate"],
            int(row["trial"]),
            float(row["score"]),
            row["joint"] == "true",
        )
        for row in rows
    ]
    apart = parquet.read_table(project / "scores.not-counted.parquet").to_pylist()
    assert {row["not_counted"] for row in apart} == {"waits for a person", "rejected"}


def test_without_pyarrow_parquet_says_how_to_mend_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with Workspace.open() as workspace:
        output = project / "a.parquet"
        request = ExportRequest(
            workspace=workspace, format="parquet", selection=Selection(), output=output
        )
        with pytest.raises(InputError, match=r"assay-bench\[parquet\]"):
            export.export(request)
    assert not list(project.glob("*a.parquet*"))
