"""Exports for other evaluation programs: logs of Inspect, and JSON Lines for Hugging Face
datasets.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from assay.exchange.writers.typed_lines import TypedLines
from tests.journey.conftest import Command
from tests.journey.test_export import COUNTING, JUDGE, reviewed as reviewed, rows_of
from tests.support.read_files import read_files
from tests.support.sets import NAMES

# Keys that inspect_ai's `_read_header_streaming` and its models of a log require (0.3.285).
HEADER = ["version", "status", "eval", "plan", "results", "stats", "samples"]
SPEC = {"created", "task", "dataset", "model", "config"}
SAMPLE = {"id", "epoch", "input", "target", "output", "scores"}


def logs_in(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the logs of a folder by candidate."""
    documents = [json.loads(path.read_text("utf-8")) for path in sorted(folder.iterdir())]
    return {document["eval"]["model"]: document for document in documents}


def test_logs_hold_what_counts_and_its_means(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    assay("export", "csv", "--output", "scores.csv")
    assert assay("export", "inspect", "--output", "logs").code == 0
    logs, counted = logs_in(project / "logs"), rows_of(project / "scores.csv")
    assert set(logs) == set(NAMES)
    for name, log in logs.items():
        assert list(log) == HEADER
        assert set(log["eval"]) >= SPEC
        assert (log["version"], log["status"]) == (2, "success")
        by_task: dict[str, list[float]] = {}
        for row in counted:
            if row["candidate"] == name:
                by_task.setdefault(row["task"], []).append(float(row["score"]))
        assert log["eval"]["scorers"] == [{"name": JUDGE, "metrics": [{"name": "inspect_ai/mean"}]}]
        (result,) = log["results"]["scores"]
        assert result["metrics"]["mean"]["value"] == pytest.approx(
            mean(map(mean, by_task.values()))
        )
        assert log["results"]["total_samples"] == len(log["samples"]) == 10
        assert (
            log["eval"]["config"]["epochs"] == max(sample["epoch"] for sample in log["samples"]) > 1
        )
        assert {
            score["metadata"]["state"]
            for sample in log["samples"]
            for score in sample["scores"].values()
        } <= COUNTING


def test_sample_of_a_log_has_prompt_answer_and_the_grader_s_words(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    assay("export", "inspect", "--output", "logs")
    samples = logs_in(project / "logs")[NAMES[0]]["samples"]
    assert all(set(sample) >= SAMPLE for sample in samples)
    assert (
        len({sample["uuid"] for sample in samples})
        == len({(sample["id"], sample["epoch"]) for sample in samples})
        == 10
    )
    sample = samples[0]
    assert sample["input"][0]["content"]
    assert sample["output"]["choices"][0]["message"]["content"] == sample["output"]["completion"]
    assert sample["scores"][JUDGE]["metadata"]["grading"][0]["content"]


def test_corrected_score_leaves_with_the_judge_s_own(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    assay("export", "inspect", "--output", "logs")
    scores = [sample["scores"][JUDGE] for sample in logs_in(project / "logs")[NAMES[0]]["samples"]]
    (corrected,) = [score for score in scores if score["metadata"]["state"] == "corrected"]
    assert corrected["value"] == 0.125
    assert corrected["metadata"]["judge_score"] != 0.125


def test_logs_come_back_as_grades_of_a_model(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    assay("export", "inspect", "--output", "logs")
    records = read_files(project / "logs")
    assert records.counts == (len(NAMES), len(records.tasks), 10 * len(NAMES), 10 * len(NAMES))
    assert {assessment.by for assessment in records.assessments} == {"model"}


def test_one_file_cannot_hold_several_candidates(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    refused = assay("export", "inspect", "--output", "log.json")
    assert refused.code == 2
    assert f"contains one candidate of one suite, but the selection has {len(NAMES)}" in refused.err
    assert not (project / "log.json").exists()


def test_log_without_a_counted_grade_is_refused(assay: Command, project: Path) -> None:
    (project / "scores.csv").write_text("task,candidate,score,judge\nq1,ada,1,gpt\n", "utf-8")
    assay("import", "scores.csv")
    refused = assay("export", "inspect", "--output", "log.json")
    assert (refused.code, "no result counts yet" in refused.err) == (2, True)


def test_rows_for_datasets_have_one_type_a_column(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    assay("export", "csv", "--output", "scores.csv")
    exported = assay("export", "hf_jsonl", "--output", "rows.jsonl", "--json")
    rows = [json.loads(line) for line in (project / "rows.jsonl").read_text("utf-8").splitlines()]
    assert exported.document["rows"] == len(rows)
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    for column in rows[0]:
        assert len({type(row[column]) for row in rows} - {type(None)}) <= 1, column
    overall = [row for row in rows if row["criterion"] is None]
    counted = rows_of(project / "scores.csv")
    assert sorted((row["assessment"], row["candidate"], row["score"]) for row in overall) == sorted(
        (row["assessment"], row["candidate"], float(row["score"])) for row in counted
    )
    assert all(row["response"] and row["by_model"] for row in rows)
    assert len(rows) > len(overall)


def test_anonymised_exports_name_nobody(
    assay: Command, reviewed: dict[str, str], project: Path
) -> None:
    assert assay("export", "inspect", "--output", "logs", "--anonymise").code == 0
    assert assay("export", "hf_jsonl", "--output", "rows.jsonl", "--anonymise").code == 0
    texts = [path.read_text("utf-8") for path in (project / "logs").iterdir()]
    assert set(logs_in(project / "logs")) == {
        f"candidate {number}" for number in range(1, len(NAMES) + 1)
    }
    for text in (*texts, (project / "rows.jsonl").read_text("utf-8")):
        assert not any(f'"{name}"' in text for name in NAMES)
    assert not any(
        name.lower() in path.name for path in (project / "logs").iterdir() for name in NAMES
    )


def test_long_file_begins_with_a_row_for_every_late_type() -> None:
    written: list[str] = []
    lines = TypedLines(["task", "expected", "cost"], first_bytes=100)
    for number in range(20):
        lines.row(
            {
                "task": f"q{number}",
                "expected": "yes" if number == 9 else None,
                "cost": 0.5 if number > 15 else None,
            }
        )
    lines.write(written.append)
    lines.close()
    rows = [json.loads(line) for line in written]
    assert [row["task"] for row in rows[:4]] == ["q9", "q16", "q0", "q1"]
    assert len(rows) == 20
