"""Runs of HELM: states, statistics, perturbations, graders, and folders that lack a file."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.evaluation_files import helm, helm_stat
from tests.support.read_files import read_files

from assay.domain.import_records import GradedBy


def test_run_gives_tasks_answers_and_grades(tmp_path: Path) -> None:
    records = read_files(helm(tmp_path))
    assert (records.counts, records.skipped) == ((1, 3, 3, 2), [])
    run, task, response = records.runs[0], records.tasks[0], records.responses[0]
    assert (run.suite, run.candidates[0].name) == (
        "mmlu:subject=anatomy,method=multiple_choice_joint",
        "openai/gpt-4",
    )
    assert (task.id, task.expected) == ("id1", ("leg",))
    assert task.prompt[0].content == "Question: Where is bone 1?\nAnswer:"
    assert (
        response.content,
        response.input_tokens,
        response.output_tokens,
        response.latency_s,
    ) == (" B", 40, 2, 0.5)
    assert records.scores("HELM", "exact_match") == {
        ("id1", "openai/gpt-4", 1): 1.0,
        ("id1 dialect", "openai/gpt-4", 1): 0.0,
    }


def test_failed_request_is_a_failure_without_a_grade(tmp_path: Path) -> None:
    failure = read_files(helm(tmp_path)).responses[2].failure
    assert failure is not None
    assert failure.detail == "rate limit"


def test_counts_of_tokens_are_no_grades(tmp_path: Path) -> None:
    records = read_files(helm(tmp_path))
    assert {grade.criterion for row in records.assessments for grade in row.grades} == {
        "exact_match"
    }


def test_metric_that_is_no_comparison_with_references_waits(tmp_path: Path) -> None:
    records = read_files(helm(tmp_path, helm_stat("wildbench_score_rescaled", 0.75)))
    assert [(row.judge, row.by) for row in records.assessments[:2]] == [
        ("HELM", GradedBy.RULE),
        ("HELM wildbench_score_rescaled", GradedBy.MODEL),
    ]
    assert any(
        "await review: HELM wildbench_score_rescaled." in note.what for note in records.notes
    )


def test_error_rate_has_its_best_value_at_0(tmp_path: Path) -> None:
    records = read_files(helm(tmp_path, helm_stat("wer_score", 0.25)))
    assert records.scores("HELM", "wer_score")["id1", "openai/gpt-4", 1] == 0.75


def test_statistics_alone_give_grades_and_name_what_is_absent(tmp_path: Path) -> None:
    helm(tmp_path)
    next(tmp_path.rglob("scenario_state.json")).unlink()
    records = read_files(tmp_path)
    assert (len(records.responses), len(records.assessments)) == (0, 2)
    assert any(
        "`scenario_state.json` is not among the files" in note.what for note in records.notes
    )


def test_states_alone_give_answers_and_name_what_is_absent(tmp_path: Path) -> None:
    helm(tmp_path)
    next(tmp_path.rglob("per_instance_stats.json")).unlink()
    records = read_files(tmp_path)
    assert (len(records.responses), len(records.assessments)) == (3, 0)
    assert any(
        "`per_instance_stats.json` is not among the files" in note.what for note in records.notes
    )


def test_metric_that_leaves_its_scale_anywhere_has_no_scores(tmp_path: Path) -> None:
    helm(tmp_path)
    path = next(tmp_path.rglob("per_instance_stats.json"))
    rows = json.loads(path.read_text("utf-8"))
    rows[2]["stats"] = [helm_stat("exact_match", 3.0)]
    path.write_text(json.dumps(rows), "utf-8")
    records = read_files(tmp_path)
    assert set(records.scores("HELM", "exact_match").values()) == {None}
