"""Tables of promptfoo, and its results as YAML."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest
import yaml
from tests.support import harness_files as files
from tests.support.evaluation_files import promptfoo_csv
from tests.support.read_files import formats_of, read_files

from assay.domain.import_records import GradedBy

DATA = Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[5] / "shared")) / "data"


def test_every_provider_is_a_candidate_with_its_scores(tmp_path: Path) -> None:
    records = read_files(promptfoo_csv(tmp_path))
    assert (records.counts, records.skipped) == ((1, 2, 4, 3), [])
    assert [(row.candidate, row.content) for row in records.responses[:3]] == [
        ("openai:gpt-4o", "Four,\nthat is 4"),
        ("openai:gpt-4o-mini", "5"),
        ("openai:gpt-4o", "=because"),
    ]
    assert [row.grades[0].score for row in records.assessments] == [0.75, 0.0, 0.75]
    assert records.assessments[1].grades[0].reason == "Expected output to contain 4"
    assert (records.tasks[0].thing, records.tasks[0].metadata["vars"]) == (
        "sum",
        {"question": "2 + 2?"},
    )


def test_grades_of_a_table_wait_because_a_model_may_have_given_them(tmp_path: Path) -> None:
    records = read_files(promptfoo_csv(tmp_path))
    assert {row.by for row in records.assessments} == {GradedBy.MODEL}
    assert any("so they await review" in note.what for note in records.notes)
    assert any("no tokens, cost, times or assertions" in note.what for note in records.notes)


def test_test_that_broke_is_a_failure(tmp_path: Path) -> None:
    failure = read_files(promptfoo_csv(tmp_path)).responses[3].failure
    assert failure is not None
    assert failure.detail == "API error: 503"


def test_older_table_has_the_verdict_in_its_cells(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    cells = [
        "[PASS] (0.50, tone: 0.25)\n\nFour\n\nin words\n\nPass Reason: Fine",
        "[FAIL] (0.00)\n\n5",
    ]
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(
            [["n", "[openai:gpt-4o] Add {{n}}", "[echo] Add {{n}}"], ["2", *cells]]
        )
    records = read_files(path)
    assert [response.content for response in records.responses] == ["Four\n\nin words", "5"]
    grades = [row.grades[0] for row in records.assessments]
    assert [(grade.score, grade.reason) for grade in grades] == [(0.5, "Fine"), (0.0, "")]


def test_same_row_twice_is_another_trial(tmp_path: Path) -> None:
    path = promptfoo_csv(tmp_path)
    rows = list(csv.reader(path.open(encoding="utf-8", newline="")))
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([*rows, rows[1]])
    records = read_files(path)
    assert [response.trial for response in records.responses] == [1, 1, 1, 1, 2, 2]


def test_score_above_1_leaves_all_scores_of_the_table_raw(tmp_path: Path) -> None:
    path = promptfoo_csv(tmp_path)
    path.write_text(path.read_text("utf-8").replace("FAIL,0.00", "PASS,4.00"), "utf-8")
    grades = [row.grades[0] for row in read_files(path).assessments]
    assert [(grade.score, grade.raw_score) for grade in grades] == [
        (None, 0.75),
        (None, 4.0),
        (None, 0.75),
    ]


def test_yaml_gives_the_records_of_the_json(tmp_path: Path) -> None:
    path = files.promptfoo(tmp_path)
    document = json.loads(path.read_text("utf-8"))
    as_yaml = tmp_path / "results.yaml"
    as_yaml.write_text(yaml.safe_dump({"evalId": "eval-1", **document}, sort_keys=False), "utf-8")
    assert formats_of([as_yaml]) == ["promptfoo"]
    first, second = read_files(path), read_files(as_yaml)
    assert first.counts == second.counts
    assert [task.id for task in first.tasks] == [task.id for task in second.tasks]


def test_broken_yaml_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "results.yaml"
    path.write_text(
        "evalId: eval-1\nresults:\n  version: 3\n  results:\n  - gradingResult: [1\n", "utf-8"
    )
    records = read_files(path)
    assert "is not valid YAML" in records.skipped[0].why


@pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the real data is not at {DATA}; set ASSAY_SHARED to its folder"
)
def test_genuine_results_read_alike_as_json_and_yaml(tmp_path: Path) -> None:
    source = DATA / "peers/promptfoo/out2.json"
    path = tmp_path / "out2.yaml"
    path.write_text(yaml.safe_dump(json.loads(source.read_text("utf-8")), sort_keys=False), "utf-8")
    first, second = read_files(source), read_files(path)
    assert first.counts == second.counts == (1, 6, 12, len(first.assessments))
    assert [(row.judge, row.by, row.grades[0].score) for row in first.assessments] == [
        (row.judge, row.by, row.grades[0].score) for row in second.assessments
    ]
