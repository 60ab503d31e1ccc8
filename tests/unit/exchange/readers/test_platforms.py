"""Evaluation platforms: who graded, on which scale, in which direction, and what a file does not
hold.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import platform_files as files
from tests.support.harness_files import put, put_lines
from tests.support.read_files import Read, formats_of, read_files

from assay.domain.failure import Fault
from assay.domain.import_records import GradedBy
from assay.domain.suite import Message
from assay.exchange.importers import ReadOptions

PEERS = (
    Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[5] / "shared")) / "data" / "peers"
)
shared = pytest.mark.skipif(not PEERS.is_dir(), reason="the shared data is not here")


def graders(read: Read) -> dict[str, tuple[str, GradedBy]]:
    """Judge and kind of grader by criterion."""
    return {
        grade.criterion: (one.judge, one.by) for one in read.assessments for grade in one.grades
    }


def scores(read: Read, criterion: str) -> list[float | None]:
    return [
        grade.score
        for one in read.assessments
        for grade in one.grades
        if grade.criterion == criterion
    ]


def total(read: Read, criterion: str) -> tuple[int, float]:
    result = scores(read, criterion)
    return len(result), round(sum(score or 0.0 for score in result), 6)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (files.mlflow, "mlflow"),
        (files.deepeval, "deepeval"),
        (files.ragas, "ragas"),
        (files.phoenix, "phoenix"),
        (files.phoenix_csv, "phoenix"),
        (files.langsmith, "langsmith"),
    ],
)
def test_each_platform_is_recognised_by_its_content(
    tmp_path: Path, write: Callable[[Path], Path], name: str
) -> None:
    assert formats_of([write(tmp_path)]) == [name]


# --- MLflow ---------------------------------------------------------------------------------------


def test_mlflow_rows_hold_answers_tokens_cost_and_times(tmp_path: Path) -> None:
    read = read_files(files.mlflow(tmp_path))
    assert read.counts == (1, 2, 2, 5)
    assert (read.runs[0].candidates[0].name, read.runs[0].identity) == ("tiny", "mlflow run run1")
    assert read.runs[0].version == "2026-03-01T10:00:01.602Z"
    first = read.responses[0]
    assert (first.content, first.finish_reason, first.latency_s, first.cost_usd) == (
        "Paris",
        "stop",
        0.08,
        0.003,
    )
    assert (first.input_tokens, first.output_tokens, first.started) == (
        27,
        4,
        "2026-03-01T10:00:00.000Z",
    )
    assert first.identity == "tr-Capital?"
    assert read.tasks[0].prompt == (Message(role="user", content="Capital?"),)
    assert read.tasks[0].expected == ("Paris",)


def test_mlflow_sources_decide_who_graded(tmp_path: Path) -> None:
    read = read_files(files.mlflow(tmp_path))
    assert graders(read) == {
        "exact": ("mlflow", GradedBy.RULE),
        "safety": ("openai:/judge", GradedBy.MODEL),
        "style": ("mia@example.org", GradedBy.PERSON),
    }
    assert (scores(read, "exact"), scores(read, "safety"), scores(read, "style")) == (
        [1.0, 0.0],
        [1.0, 1.0],
        [0.5],
    )
    waiting = [one for one in read.assessments if one.by is GradedBy.MODEL]
    assert [one.reply for one in waiting] == ["Harmless.", "Harmless."]


def test_mlflow_means_the_same_in_every_form(tmp_path: Path) -> None:
    rows = files.mlflow_rows()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    paths = [
        files.put_table(tmp_path / "table.csv", rows),
        put_lines(tmp_path / "lines.jsonl", rows),
        put(
            tmp_path / "columns.json",
            {key: {str(n): row.get(key) for n, row in enumerate(rows)} for key in columns},
        ),
        put(
            tmp_path / "split.json",
            {"columns": columns, "data": [[row.get(key) for key in columns] for row in rows]},
        ),
    ]
    expected = read_files(files.mlflow(tmp_path / "records"))
    for path in paths:
        read = read_files(path)
        assert [(one.task, one.content) for one in read.responses] == [
            (one.task, one.content) for one in expected.responses
        ], path.name
        assert graders(read) == graders(expected)
        assert scores(read, "safety") == [1.0, 1.0]


def test_mlflow_traces_without_columns_of_feedback_are_read_too(tmp_path: Path) -> None:
    rows = [{key: row[key] for key in row if "/" not in key} for row in files.mlflow_rows()]
    path = files.put_table(tmp_path / "traces.csv", rows)
    assert formats_of([path]) == ["mlflow"]
    assert scores(read_files(path), "exact") == [1.0, 0.0]


def test_mlflow_leaves_out_other_runs_and_overridden_grades(tmp_path: Path) -> None:
    other = {"mlflow.assessment.sourceRunId": "run0"}
    rows = [
        files.mlflow_row(
            "Capital?",
            "Paris",
            files.mlflow_assessment("exact", False, "CODE", "exact", metadata=other),
            files.mlflow_assessment("safety", "no", "LLM_JUDGE", "openai:/judge", valid=False),
            files.mlflow_assessment("safety", "yes", "HUMAN", "mia"),
            files.mlflow_assessment("exact", True, "CODE", "exact"),
        ),
        *files.mlflow_rows(),
    ]
    read = read_files(put(tmp_path / "eval.json", rows))
    assert scores(read, "exact") == [1.0, 1.0, 0.0]
    assert (
        next(one.by for one in read.assessments if one.grades[0].criterion == "safety")
        is GradedBy.PERSON
    )


def test_mlflow_code_that_paid_a_judge_waits(tmp_path: Path) -> None:
    paid = {"mlflow.assessment.sourceRunId": "run1", "mlflow.assessment.judgeInputTokens": "162"}
    grade = files.mlflow_assessment("kind", True, "CODE", "kind", metadata=paid)
    read = read_files(put(tmp_path / "eval.json", [files.mlflow_row("Capital?", "Paris", grade)]))
    assert graders(read) == {"kind": ("kind", GradedBy.MODEL)}


def test_mlflow_columns_without_assessments_wait(tmp_path: Path) -> None:
    row = {
        key: value
        for key, value in files.mlflow_rows()[0].items()
        if key not in ("trace", "assessments")
    }
    read = read_files(put(tmp_path / "eval.json", [row]))
    assert graders(read)["exact"] == ("exact", GradedBy.MODEL)
    assert any("await review" in note.what for note in read.notes)


def test_an_mlflow_trace_that_broke_is_a_failure(tmp_path: Path) -> None:
    broken = files.mlflow_row(
        "Capital?", "Paris", files.mlflow_assessment("exact", False, "CODE", "exact"), state="ERROR"
    )
    read = read_files(put(tmp_path / "eval.json", [broken]))
    assert read.responses[0].failure is not None
    assert read.responses[0].failure.fault is Fault.HARNESS
    assert not read.assessments


def test_mlflow_scorer_that_broke_and_scale_unknown_have_no_score(tmp_path: Path) -> None:
    error = {"error": {"error_code": "SCORER_ERROR", "error_message": "boom"}}
    row = files.mlflow_row(
        "Capital?",
        "Paris",
        files.mlflow_assessment("broken", None, "CODE", "broken", feedback=error),
        files.mlflow_assessment("depth", 4, "LLM_JUDGE", "openai:/judge"),
    )
    read = read_files(put(tmp_path / "eval.json", [row]))
    assert (scores(read, "broken"), scores(read, "depth")) == ([None], [None])
    assert any("depth (1)" in note.what for note in read.notes)
    assert "boom" in read.assessments[0].grades[0].reason


def test_one_value_outside_the_scale_leaves_its_metric_without_scores(tmp_path: Path) -> None:
    rated = [
        files.langfuse_score(f"t{number}", name, "ANNOTATION", value)
        for number, (name, value) in enumerate(
            [("stars", 1), ("stars", 0.5), ("stars", 5), ("good", 1)]
        )
    ]
    read = read_files(put(tmp_path / "scores.json", rated))
    assert (scores(read, "stars"), scores(read, "good")) == ([None, None, None], [1.0])
    assert [grade.raw_score for one in read.assessments for grade in one.grades] == [
        1.0,
        0.5,
        5.0,
        1.0,
    ]
    assert any("stars (3)" in note.what for note in read.notes)


def test_the_older_mlflow_table_knows_scales_and_directions(tmp_path: Path) -> None:
    columns = [
        *(
            "inputs",
            "ground_truth",
            "outputs",
            "token_count",
            "toxicity/v1/score",
            "exact_match/v1",
        ),
        *(
            "answer_similarity/v1/score",
            "answer_similarity/v1/justification",
            "flesch_kincaid_grade_level/v1/score",
        ),
    ]
    data = [
        ["Capital?", "Paris", "Paris", 2, 0.1, 1, 4, "Nearly.", 7.5],
        ["Biggest?", "Paris", "Lyon", 2, 0.9, 0, 1, "No.", 3.5],
    ]
    path = put(tmp_path / "eval_results_table.json", {"columns": columns, "data": data})
    read = read_files(path, options=ReadOptions(candidate="tiny"))
    assert [one.content for one in read.responses] == ["Paris", "Lyon"]
    assert read.tasks[0].expected == ("Paris",)
    assert [round(score or 0, 6) for score in scores(read, "toxicity")] == [0.9, 0.1]
    assert scores(read, "answer_similarity") == [0.75, 0.0]
    assert scores(read, "flesch_kincaid_grade_level") == [None, None]
    assert graders(read)["toxicity"] == ("mlflow", GradedBy.RULE)
    assert graders(read)["answer_similarity"] == ("answer_similarity", GradedBy.MODEL)


@shared
@pytest.mark.parametrize("name", ["eval_m-a.csv", "eval_m-a.json"])
def test_a_genuine_mlflow_table_gives_its_own_figures(name: str) -> None:
    read = read_files(PEERS / "mlflow" / name)
    assert read.counts == (1, 8, 8, 16)
    assert (total(read, "exact"), total(read, "graded")) == ((8, 5.0), (8, 4.0))
    assert graders(read) == {
        "exact": ("mlflow", GradedBy.RULE),
        "graded": ("openai:/judge", GradedBy.MODEL),
    }


# --- DeepEval -------------------------------------------------------------------------------------


def test_deepeval_metrics_of_a_model_wait_with_their_reason(tmp_path: Path) -> None:
    read = read_files(files.deepeval(tmp_path))
    assert read.counts == (1, 2, 2, 4)
    assert read.runs[0].candidates[0].name == "tiny"
    assert graders(read) == {
        "Exact Match": ("deepeval", GradedBy.RULE),
        "Correctness [GEval]": ("judge", GradedBy.MODEL),
    }
    assert (scores(read, "Exact Match"), scores(read, "Correctness [GEval]")) == (
        [0.0, 1.0],
        [0.9, 0.9],
    )
    assert (read.responses[0].latency_s, read.responses[0].cost_usd) == (1.5, 0.01)
    assert read.tasks[0].expected == ("2",)
    assert {one.reply for one in read.assessments if one.by is GradedBy.MODEL} == {
        "Correctness [GEval] says so."
    }


def test_a_deepeval_metric_of_unknown_grader_waits(tmp_path: Path) -> None:
    case = files.deepeval_case(1, files.deepeval_metric("My Metric", 1.0))
    read = read_files(put(tmp_path / "run.json", files.deepeval_run(case)))
    assert graders(read) == {"My Metric": ("My Metric", GradedBy.MODEL)}
    assert any("My Metric" in note.what and "await review" in note.what for note in read.notes)


def test_deepeval_verdicts_show_that_less_is_better(tmp_path: Path) -> None:
    bias = [
        files.deepeval_metric("Bias", 0.2, model="judge", success=True),
        files.deepeval_metric("Bias", 1.0, model="judge", success=False),
    ]
    cases = [files.deepeval_case(number, metric) for number, metric in enumerate(bias)]
    read = read_files(put(tmp_path / "run.json", files.deepeval_run(*cases)))
    assert scores(read, "Bias") == [0.8, 0.0]
    grade = read.assessments[0].grades[0]
    assert (grade.raw_score, grade.min_score, grade.max_score) == (0.2, 1.0, 0.0)
    assert any("lower is better for Bias" in note.what for note in read.notes)


def test_deepeval_of_before_version_2_names_its_metrics_otherwise(tmp_path: Path) -> None:
    metric = {
        "metric": "Exact Match",
        "score": 1.0,
        "threshold": 0.5,
        "success": True,
        "reason": "Equal.",
    }
    case = {key: value for key, value in files.deepeval_case(1).items() if key != "metricsData"}
    run = {"testRunData": files.deepeval_run({**case, "metricsMetadata": [metric]})}
    assert scores(read_files(put(tmp_path / "run.json", run)), "Exact Match") == [1.0]


def test_deepeval_verdicts_that_contradict_each_other_score_nothing(tmp_path: Path) -> None:
    odd = [
        files.deepeval_metric("Odd", 0.2, success=True),
        files.deepeval_metric("Odd", 0.9, success=True),
    ]
    cases = [files.deepeval_case(number, metric) for number, metric in enumerate(odd)]
    read = read_files(put(tmp_path / "run.json", files.deepeval_run(*cases)))
    assert scores(read, "Odd") == [None, None]
    assert "contradict" in read.assessments[0].grades[0].reason


def test_a_deepeval_metric_that_broke_is_no_zero(tmp_path: Path) -> None:
    broken = files.deepeval_metric("Faithfulness", None, model="judge", error="Timeout")
    read = read_files(
        put(tmp_path / "run.json", files.deepeval_run(files.deepeval_case(1, broken)))
    )
    assert scores(read, "Faithfulness") == [None]
    assert "Timeout" in read.assessments[0].grades[0].reason


def test_deepeval_cases_of_one_name_and_two_questions_are_two_tasks(tmp_path: Path) -> None:
    cases = [files.deepeval_case(number, name="sum") for number in (1, 2)]
    repeat = files.deepeval_case(1, name="sum")
    read = read_files(put(tmp_path / "run.json", files.deepeval_run(*cases, repeat)))
    assert len(read.tasks) == 2
    assert [one.trial for one in read.responses] == [1, 1, 2]


def test_deepeval_conversations_end_with_the_answer(tmp_path: Path) -> None:
    turns = [
        {"role": "user", "content": "Hello?", "order": 0},
        {"role": "assistant", "content": "Hi.", "order": 1},
    ]
    case = {
        "name": "talk",
        "success": True,
        "metricsData": [],
        "turns": turns,
        "scenario": "A greeting.",
    }
    run = {**files.deepeval_run(), "conversationalTestCases": [case]}
    read = read_files(put(tmp_path / "run.json", run))
    assert [message.content for message in read.tasks[0].prompt] == ["A greeting.", "Hello?"]
    assert read.responses[0].content == "Hi."


@shared
def test_a_genuine_deepeval_run_gives_its_own_figures() -> None:
    read = read_files(PEERS / "deepeval")
    assert read.counts == (1, 12, 12, 24)
    assert (total(read, "Exact Match"), total(read, "Correctness [GEval]")) == (
        (12, 7.0),
        (12, 10.1),
    )
    assert graders(read)["Correctness [GEval]"] == ("gpt-4o-judge", GradedBy.MODEL)
    assert read.runs[0].candidates[0].name == "m-a"


# --- Ragas ----------------------------------------------------------------------------------------


def test_ragas_metrics_of_a_model_wait_and_rules_count(tmp_path: Path) -> None:
    read = read_files(files.ragas(tmp_path))
    assert read.counts == (1, 2, 2, 4)
    assert read.runs[0].candidates[0].name == "tiny"
    assert graders(read) == {
        "faithfulness": ("faithfulness", GradedBy.MODEL),
        "rouge_score(mode=fmeasure)": ("ragas", GradedBy.RULE),
    }
    assert scores(read, "faithfulness") == [0.75, None]
    assert read.tasks[0].metadata["retrieved_contexts"] == ["Paris is the capital."]
    assert any("--candidate" in note.what for note in read.notes)


def test_ragas_directions_and_scales_are_its_own(tmp_path: Path) -> None:
    row = files.ragas_row(
        "Capital?", **{"noise_sensitivity(mode=relevant)": 0.25, "domain_specific_rubrics": 4}
    )
    read = read_files(put_lines(tmp_path / "r.jsonl", [row]))
    assert scores(read, "noise_sensitivity(mode=relevant)") == [0.75]
    assert scores(read, "domain_specific_rubrics") == [0.75]


def test_ragas_conversations_and_old_columns_are_read(tmp_path: Path) -> None:
    turns = [{"content": "Hello?", "type": "human"}, {"content": "Hi.", "type": "ai"}]
    talk = {"user_input": turns, "reference": "Hi.", "agent_goal_accuracy": 1}
    old = {
        "question": "Capital?",
        "answer": "Paris",
        "contexts": ["x"],
        "ground_truth": "Paris",
        "faithfulness": 1.0,
    }
    first = read_files(put_lines(tmp_path / "talk.jsonl", [talk]))
    assert first.tasks[0].prompt == (
        Message(role="user", content="Hello?"),
        Message(role="assistant", content="Hi."),
    )
    second = read_files(put_lines(tmp_path / "old.jsonl", [old]))
    assert (second.responses[0].content, second.tasks[0].expected) == ("Paris", ("Paris",))


# --- Phoenix --------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [files.phoenix, files.phoenix_csv])
def test_phoenix_kinds_decide_who_graded(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    read = read_files(write(tmp_path))
    assert read.counts == (1, 2, 3, 5)
    assert graders(read) == {
        "exact": ("phoenix", GradedBy.RULE),
        "correct": ("correct", GradedBy.MODEL),
        "style": ("human", GradedBy.PERSON),
    }
    assert (scores(read, "exact"), scores(read, "correct"), scores(read, "style")) == (
        [1.0, 1.0],
        [0.0, 0.0],
        [0.5],
    )
    assert [one.trial for one in read.responses] == [1, 2, 1]
    first, broken = read.responses[0], read.responses[2]
    assert (first.content, first.latency_s, first.input_tokens, first.output_tokens) == (
        "four",
        1.5,
        11,
        3,
    )
    assert broken.failure is not None
    assert broken.failure.detail == "RuntimeError: no"
    assert read.tasks[0].prompt[0].content == "What of RGF0YTox?"
    assert read.tasks[0].expected == ("four",)
    judged = next(one for one in read.assessments if one.by is GradedBy.MODEL)
    assert judged.reply == "wrong: correct explains."


def test_a_phoenix_evaluator_that_broke_is_no_zero(tmp_path: Path) -> None:
    broken = files.phoenix_annotation("exact", "CODE", None, error="KeyError: 'x'")
    read = read_files(put(tmp_path / "e.json", [files.phoenix_row("e1", 1, broken)]))
    assert scores(read, "exact") == [None]
    assert "KeyError" in read.assessments[0].grades[0].reason


# --- LangSmith ------------------------------------------------------------------------------------


def test_langsmith_feedback_waits_and_words_have_no_score(tmp_path: Path) -> None:
    read = read_files(files.langsmith(tmp_path))
    assert read.counts == (1, 2, 2, 2)
    assert graders(read) == {
        "correct": ("correct", GradedBy.MODEL),
        "tone": ("tone", GradedBy.MODEL),
    }
    assert (scores(read, "correct"), scores(read, "tone")) == ([1.0], [None])
    assert read.assessments[1].grades[0].reason == "dry"
    assert (read.tasks[0].id, read.tasks[0].expected) == ("e-1", ("3",))
    assert (read.responses[0].content, read.responses[0].latency_s) == ("four", 0.75)
    assert read.responses[1].failure is not None
    assert read.responses[1].failure.detail == "ValueError('no')"


def test_langsmith_results_hold_comments_scales_tokens_and_cost(tmp_path: Path) -> None:
    scaled: dict[str, Any] = {
        "key": "depth",
        "score": 4,
        "comment": "Deep.",
        "feedback_config": {"min": 1, "max": 5},
    }
    rows = [files.langsmith_result(1, {"key": "correct", "score": None, "value": "yes"}, scaled)]
    read = read_files(put(tmp_path / "results.json", rows))
    response = read.responses[0]
    assert read.runs[0].candidates[0].name == "tiny"
    assert (
        response.input_tokens,
        response.output_tokens,
        response.cost_usd,
        response.latency_s,
    ) == (11, 3, 0.002, 2.0)
    assert (scores(read, "correct"), scores(read, "depth")) == ([None], [0.75])
    assert read.assessments[1].reply == "Deep."


# --- Langfuse -------------------------------------------------------------------------------------


def test_a_langfuse_dataset_run_joins_items_traces_and_scores(tmp_path: Path) -> None:
    read = read_files(files.langfuse(tmp_path))
    assert not read.strangers
    assert not read.skipped
    assert read.counts == (1, 2, 2, 3)
    assert (read.runs[0].suite, read.runs[0].candidates[0].name) == ("sums", "tiny")
    assert (read.runs[0].identity, read.runs[0].version) == (
        "langfuse run run-tiny",
        "2026-03-01T10:00:05.000Z",
    )
    assert [(task.id, task.expected) for task in read.tasks] == [
        ("item-1", ("4",)),
        ("item-2", ("5",)),
    ]
    first = read.responses[0]
    assert (first.content, first.latency_s, first.cost_usd, first.input_tokens) == (
        "four",
        1.5,
        0.002,
        11,
    )
    assert graders(read) == {
        "exact": ("exact", GradedBy.MODEL),
        "helpful": ("helpful", GradedBy.MODEL),
        "style": ("Mia", GradedBy.PERSON),
    }
    assert (scores(read, "exact"), scores(read, "helpful"), scores(read, "style")) == (
        [1.0],
        [0.5],
        [0.25],
    )
    assert [note.what for note in read.notes if "exact" in note.what]


def test_two_langfuse_runs_share_scores_and_lose_none(tmp_path: Path) -> None:
    files.langfuse(tmp_path)
    put(tmp_path / "second.json", files.langfuse_run("small", "t3"))
    read = read_files(tmp_path)
    assert sorted(run.candidates[0].name for run in read.runs) == ["small", "tiny"]
    assert len(read.assessments) == 3
    assert not read.skipped


def test_langfuse_exports_that_name_no_run_stay_apart_by_file(tmp_path: Path) -> None:
    for name in ("tiny", "small"):
        items = files.langfuse_run(name, f"t-{name}")["datasetRunItems"]
        rows = [
            {key: item[key] for key in ("id", "datasetItemId", "traceId", "observationId")}
            for item in items
        ]
        put(tmp_path / f"{name}.json", rows)
    read = read_files(tmp_path)
    assert sorted(run.candidates[0].name for run in read.runs) == ["small", "tiny"]
    assert sum("--candidate" in note.what for note in read.notes) == 2


def test_langfuse_scores_of_other_traces_are_named(tmp_path: Path) -> None:
    files.langfuse(tmp_path)
    put_lines(tmp_path / "more.jsonl", [files.langfuse_score("production", "exact", "EVAL", 1)])
    read = read_files(tmp_path)
    assert ["1 scores belong to traces" in skipped.why for skipped in read.skipped] == [True]


def test_langfuse_scores_alone_are_of_traces(tmp_path: Path) -> None:
    rows = [
        files.langfuse_score("t1", "good", "ANNOTATION", 1, dataType="BOOLEAN", stringValue="True"),
        files.langfuse_score(
            "t1", "mood", "EVAL", None, dataType="CATEGORICAL", stringValue="calm"
        ),
        files.langfuse_score(None, "whole", "API", 0.5, datasetRunId="r1"),
    ]
    read = read_files(files.put_table(tmp_path / "scores.csv", rows))
    assert read.counts == (1, 1, 0, 2)
    assert (scores(read, "good"), scores(read, "mood")) == ([1.0], [None])
    assert read.assessments[1].grades[0].reason == "calm: mood comments."
    assert [
        "1 scores belong to a session or a whole run" in skipped.why for skipped in read.skipped
    ] == [True]


def test_langfuse_experiment_items_hold_answers_and_new_scores_subjects(tmp_path: Path) -> None:
    item = {
        "id": "o1",
        "traceId": "t1",
        "startTime": "2026-03-01T10:00:00.000Z",
        "level": "DEFAULT",
        "environment": "default",
        "experimentId": "x1",
        "experimentName": "tiny",
        "experimentItemId": "item-1",
        "input": "2 + 2?",
        "output": "four",
        "expectedOutput": "4",
    }
    score = {
        "id": "s1",
        "projectId": "p",
        "name": "exact",
        "source": "EVAL",
        "dataType": "BOOLEAN",
        "value": True,
        "timestamp": "2026-03-01T10:00:05.000Z",
        "environment": "default",
        "createdAt": "2026-03-01T10:00:05.000Z",
        "updatedAt": "2026-03-01T10:00:05.000Z",
        "comment": None,
        "subject": {"kind": "observation", "id": "o1", "traceId": "t1"},
    }
    put(tmp_path / "items.json", {"data": [{**item, "scores": [score]}], "meta": {}})
    put(tmp_path / "scores.json", {"data": [score], "meta": {}})
    read = read_files(tmp_path)
    assert read.counts == read_files(tmp_path / "items.json").counts == (1, 1, 1, 1)
    assert (read.runs[0].candidates[0].name, read.responses[0].content) == ("tiny", "four")
    assert scores(read, "exact") == [1.0]


def test_langfuse_traces_alone_give_the_scores_in_their_columns(tmp_path: Path) -> None:
    rows = [
        files.langfuse_trace("t1", "2 + 2?", exact=[1], mood=["calm"]),
        files.langfuse_trace("t2", "2 + 3?", exact=None),
    ]
    for path in (
        put(tmp_path / "a" / "traces.json", rows),
        files.put_table(tmp_path / "b" / "traces.csv", rows),
    ):
        read = read_files(path)
        assert read.counts == (1, 2, 2, 2)
        assert (scores(read, "exact"), scores(read, "mood")) == ([1.0], [None])
        assert {one.by for one in read.assessments} == {GradedBy.MODEL}


def test_langfuse_scores_of_one_name_are_judgings_of_their_own(tmp_path: Path) -> None:
    rows = [
        files.langfuse_score(
            "t1", "exact", "EVAL", value, id=f"s{value}", observationId=f"o{value}"
        )
        for value in (0, 1)
    ]
    read = read_files(put(tmp_path / "scores.json", rows))
    assert scores(read, "exact") == [0.0, 1.0]
    assert [len(one.grades) for one in read.assessments] == [1, 1]


def test_langfuse_items_without_a_run_are_named_as_such(tmp_path: Path) -> None:
    items = {
        "data": [
            {"id": "i", "datasetId": "d", "datasetName": "s", "input": "x", "expectedOutput": "y"}
        ]
    }
    read = read_files(put(tmp_path / "items.json", items))
    assert "without a run" in read.skipped[0].why


def test_a_foreign_table_is_none_of_them(tmp_path: Path) -> None:
    foreign = [
        put(tmp_path / "a.json", [{"question": "x", "answer": "y"}]),
        put_lines(tmp_path / "b.jsonl", [{"example_id": "1", "input": "x"}]),
        put(tmp_path / "c.json", {"testCases": [{"name": "junit"}]}),
        files.put_table(tmp_path / "d.csv", [{"traceId": "1", "span": "2"}]),
        put(tmp_path / "e.json", json.loads('{"loss/value": 3, "trace_id": "x"}')),
    ]
    assert formats_of(foreign) == [None] * 5
