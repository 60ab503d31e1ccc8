"""Details of LightEval: layouts, models, likelihoods, judges, and details without results."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.evaluation_files import lighteval, lighteval_row
from tests.support.read_files import read_files

from assay.domain.import_records import GradedBy

pytest.importorskip("pyarrow")

MODEL = "meta-llama/Llama-3.1-8B-Instruct"


def test_document_becomes_task_response_and_grade(tmp_path: Path) -> None:
    records = read_files(lighteval(tmp_path))
    assert (records.counts, records.skipped, records.strangers, records.notes) == (
        (1, 2, 2, 2),
        [],
        [],
        [],
    )
    run, task, response = records.runs[0], records.tasks[0], records.responses[0]
    assert (run.suite, run.candidates[0].name) == ("lighteval|gsm8k|0", MODEL)
    assert run.provenance["parameters"] == {"temperature": 0.5, "seed": 42}
    assert run.started is None  # the clock of the file starts with the process
    assert (task.prompt[0].content, task.expected) == (
        "Answer shortly.\nHow many eggs are 0 dozen?",
        ("12",),
    )
    assert (response.content, response.input_tokens, response.output_tokens) == ("12", 3, 2)
    assert records.scores("LightEval", "extractive_match") == {
        ("0", MODEL, 1): 1.0,
        ("1", MODEL, 1): 0.0,
    }


def test_likeliest_choice_is_the_answer_without_text(tmp_path: Path) -> None:
    records = read_files(lighteval(tmp_path, lighteval_row(0, text=None, acc=0.0)))
    assert records.responses[0].content == "24"


def test_score_of_a_judge_waits_with_its_words(tmp_path: Path) -> None:
    row = lighteval_row(
        0,
        em=1.0,
        simpleqa_judge=0.5,
        judgement_gpt4o="B, because…",
        user_prompt_gpt4o="Judge this.",
    )
    records = read_files(lighteval(tmp_path, row))
    assert [(row.judge, row.by, row.reply) for row in records.assessments] == [
        ("LightEval", GradedBy.RULE, None),
        ("LightEval simpleqa_judge", GradedBy.MODEL, "B, because…"),
    ]


def test_metric_of_a_task_of_one_s_own_waits(tmp_path: Path) -> None:
    records = read_files(lighteval(tmp_path, lighteval_row(0, kindness=0.5)))
    assert records.assessments[0].by is GradedBy.MODEL
    assert any("await review: LightEval kindness." in note.what for note in records.notes)


def test_details_alone_name_the_model_after_their_folder(tmp_path: Path) -> None:
    records = read_files(lighteval(tmp_path, with_results=False))
    assert records.runs[0].candidates[0].name == "meta-llama/Llama-3.1-8B"
    assert any("is named after the folder" in note.what for note in records.notes)


def test_results_alone_are_means_and_no_run(tmp_path: Path) -> None:
    lighteval(tmp_path)
    next(tmp_path.rglob("*.parquet")).unlink()
    records = read_files(tmp_path)
    assert records.runs == []
    assert "contains only mean scores" in records.skipped[0].why


def test_flat_columns_of_older_versions_are_read(tmp_path: Path) -> None:
    row = {
        "full_prompt": "2 + 2?",
        "example": "2 + 2?",
        "instruction": "",
        "predictions": ["4"],
        "gold": ["4"],
        "gold_index": [0],
        "choices": ["4"],
        "metrics": {"em": 1.0},
        "input_tokens": [],
        "truncated": 0,
        "padded": 0,
    }
    records = read_files(lighteval(tmp_path, row))
    assert (records.counts, records.tasks[0].expected) == ((1, 1, 1, 1), ("4",))
    assert records.runs[0].suite == "lighteval|gsm8k|0"


def test_metric_out_of_100_has_no_scores(tmp_path: Path) -> None:
    records = read_files(
        lighteval(tmp_path, lighteval_row(0, bleu=0.75), lighteval_row(1, bleu=41.0))
    )
    assert set(records.scores("LightEval", "bleu").values()) == {None}
    assert any("bleu (2)" in note.what for note in records.notes)
