"""Samples and verdicts of HumanEval, EvalPlus, BigCodeBench and Reflexion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support import evaluation_files as evaluations
from tests.support.harness_files import put, put_lines
from tests.support.read_files import read_files

from assay.domain.import_records import GradedBy


def test_evalplus_has_both_suites_and_counts_as_its_own_pass_rate(tmp_path: Path) -> None:
    records = read_files(evaluations.evalplus(tmp_path))
    name = "meta-llama--Llama-3_vllm_temp_0.8"
    assert (records.counts, records.skipped, records.strangers) == ((1, 2, 4, 4), [], [])
    base, plus = records.scores("tests", "base"), records.scores("tests", "plus")
    assert [base["HumanEval/0", name, 1], base["HumanEval/0", name, 2]] == [1.0, 1.0]
    # A sample that fails the base tests does not pass the extra ones, whatever their own status.
    assert sum(score or 0.0 for score in plus.values()) / 4 == 0.25
    assert {assessment.by for assessment in records.assessments} == {GradedBy.RULE}
    assert records.assessments[2].grades[0].reason == "fail: failed tests: [[1, 2]]"


def test_name_of_the_file_gives_model_and_temperature(tmp_path: Path) -> None:
    run = read_files(evaluations.evalplus(tmp_path)).runs[0]
    assert (run.suite, run.candidates[0].model) == ("HumanEval", "meta-llama/Llama-3")
    assert run.provenance["parameters"] == {"temperature": 0.8}


def test_problems_beside_the_samples_give_prompts(tmp_path: Path) -> None:
    task = read_files(evaluations.evalplus(tmp_path)).tasks[0]
    assert (task.prompt[0].content, task.expected) == ("def f0():\n", ("    return 1\n",))


def test_base_tests_alone_give_one_criterion(tmp_path: Path) -> None:
    sample = {"task_id": "Mbpp/2", "solution": "x", "base_status": "pass", "plus_status": None}
    records = read_files(
        put(tmp_path / "m_eval_results.json", {"date": "", "eval": {"Mbpp/2": [sample]}})
    )
    assert [grade.criterion for grade in records.assessments[0].grades] == ["base"]


def test_first_layout_of_evalplus_has_verdicts_without_code(tmp_path: Path) -> None:
    old = {
        "nfiles": 2,
        "base": [["success", [True]], ["failed", [False]]],
        "plus": [["success", []], ["failed", []]],
    }
    records = read_files(
        put(tmp_path / "eval_results.json", {"date": "", "hash": "", "eval": {"HumanEval/0": old}})
    )
    assert (records.counts, records.skipped) == ((1, 1, 0, 2), [])
    assert list(records.scores("tests", "plus").values()) == [1.0, 0.0]


def test_bigcodebench_has_one_status(tmp_path: Path) -> None:
    rows = [
        {
            "task_id": "BigCodeBench/0",
            "solution": "x",
            "status": "fail",
            "details": {"test_case_1": "AssertionError"},
        },
        {"task_id": "BigCodeBench/0", "solution": "y", "status": "pass", "details": {}},
    ]
    records = read_files(put(tmp_path / "m.json", {"date": "", "eval": {"BigCodeBench/0": rows}}))
    assert [assessment.grades[0].score for assessment in records.assessments] == [0.0, 1.0]
    assert "AssertionError" in records.assessments[0].grades[0].reason


def human_eval(**more: Any) -> list[dict[str, Any]]:
    return [
        {"task_id": "HumanEval/0", "completion": f"    return {number}", **more}
        for number in range(2)
    ]


def test_humaneval_verdicts_replace_the_samples_beside_them(tmp_path: Path) -> None:
    put_lines(tmp_path / "samples.jsonl", human_eval())
    put_lines(
        tmp_path / "samples.jsonl_results.jsonl", human_eval(result="timed out", passed=False)
    )
    records = read_files(tmp_path)
    assert records.counts == (1, 1, 2, 2)
    assert [response.trial for response in records.responses] == [1, 2]
    grade = records.assessments[0].grades[0]
    assert (grade.candidate, grade.score, grade.reason) == ("samples", 0.0, "timed out")


def test_samples_alone_are_answers_without_grades(tmp_path: Path) -> None:
    records = read_files(put_lines(tmp_path / "samples.jsonl", human_eval()))
    assert records.counts == (1, 1, 2, 0)


def test_problems_alone_are_no_results(tmp_path: Path) -> None:
    problem = {
        "task_id": "HumanEval/0",
        "prompt": "",
        "entry_point": "f",
        "canonical_solution": "",
        "test": "",
    }
    records = read_files(put_lines(tmp_path / "HumanEval.jsonl", [problem]))
    assert (records.runs, len(records.skipped)) == ([], 1)
    assert "problems without samples" in records.skipped[0].why
