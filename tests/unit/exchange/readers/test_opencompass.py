"""Predictions and results of OpenCompass: details as objects and lists, repeats, judges, and
results without details.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.evaluation_files import opencompass
from tests.support.harness_files import put
from tests.support.read_files import read_files

from assay.domain.import_records import GradedBy


def test_predictions_and_results_become_one_run(tmp_path: Path) -> None:
    records = read_files(opencompass(tmp_path))
    assert (records.counts, records.skipped, records.strangers) == (
        (1, 2, 2, 2),
        [],
        ["summary.txt"],
    )
    run, task = records.runs[0], records.tasks[0]
    assert (run.suite, run.candidates[0].name) == ("sums", "qwen2.5-7b-instruct")
    assert run.provenance["results"] == {"accuracy": 50.0}
    assert (task.prompt[0].content, task.expected) == ("What is 0 + 1?", ("1",))
    assert list(records.scores("OpenCompass").values()) == [1.0, 0.0]
    assert {row.by for row in records.assessments} == {GradedBy.RULE}


def test_repeats_of_a_data_set_are_trials(tmp_path: Path) -> None:
    details = [
        {
            "example_abbr": f"sums_{task}",
            "pred": ["1", "2"],
            "answer": ["1", "1"],
            "correct": [True, task == 1],
        }
        for task in range(2)
    ]
    records = read_files(opencompass(tmp_path, details, rows=4))
    assert [(row.task, row.trial) for row in records.responses] == [
        ("0", 1),
        ("1", 1),
        ("0", 2),
        ("1", 2),
    ]
    name = "qwen2.5-7b-instruct"
    assert records.scores("OpenCompass") == {
        ("0", name, 1): 1.0,
        ("0", name, 2): 0.0,
        ("1", name, 1): 1.0,
        ("1", name, 2): 1.0,
    }


def judged(**more: Any) -> dict[str, Any]:
    return {"pred": "1", "answer": "1", "correct": True, **more}


def test_verdicts_of_a_judging_model_wait_with_its_words(tmp_path: Path) -> None:
    cascade = {
        "rule_evaluation": {"correct": False},
        "llm_evaluation": {"prediction": "A"},
        "cascade_correct": True,
    }
    records = read_files(
        opencompass(tmp_path, {"0": judged(origin_grade_response="A"), "1": cascade})
    )
    assert [(row.judge, row.by, row.grades[0].score) for row in records.assessments] == [
        ("OpenCompass's judge", GradedBy.MODEL, 1.0),
        ("OpenCompass's judge", GradedBy.MODEL, 1.0),
    ]
    assert records.assessments[0].reply == "A"


def test_results_alone_give_their_details(tmp_path: Path) -> None:
    opencompass(tmp_path)
    next(tmp_path.rglob("predictions/*/sums.json")).unlink()
    records = read_files(tmp_path)
    assert (len(records.responses), len(records.assessments)) == (2, 2)
    assert records.responses[0].content == "1"


def test_results_without_details_leave_answers_without_grades(tmp_path: Path) -> None:
    opencompass(tmp_path)
    put(next(tmp_path.rglob("results/*/sums.json")), {"accuracy": 50.0})
    records = read_files(tmp_path)
    assert (len(records.responses), len(records.assessments)) == (2, 0)
    assert any("`--dump-eval-details`" in note.what for note in records.notes)


def test_letter_of_a_judge_counts_only_if_its_prompt_explains_it(tmp_path: Path) -> None:
    prompt = [{"role": "HUMAN", "prompt": "Answer with\nA: CORRECT\nB: INCORRECT"}]
    replies = {
        "0": {"origin_prompt": prompt, "prediction": "B"},
        "1": {"origin_prompt": "Good?", "prediction": "A"},
    }
    records = read_files(opencompass(tmp_path, replies))
    assert [(row.by, row.grades[0].score, row.reply) for row in records.assessments] == [
        (GradedBy.MODEL, 0.0, "B"),
        (GradedBy.MODEL, None, "A"),
    ]
    assert [response.content for response in records.responses] == ["It is 1.", "It is 2."]


def test_details_without_a_verdict_are_named(tmp_path: Path) -> None:
    records = read_files(
        opencompass(tmp_path, {str(index): {"pred": "1", "answer": "1"} for index in range(2)})
    )
    assert records.assessments == []
    assert any("2 details hold no verdict" in note.what for note in records.notes)


def test_verdict_in_a_list_of_one_is_read(tmp_path: Path) -> None:
    details = {
        str(index): {
            "prompt": "",
            "origin_prediction": "It is 1.",
            "predictions": "1",
            "references": "1",
            "correct": [True],
        }
        for index in range(2)
    }
    assert list(read_files(opencompass(tmp_path, details)).scores("OpenCompass").values()) == [
        1.0,
        1.0,
    ]
