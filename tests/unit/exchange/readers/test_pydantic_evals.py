"""Reports of pydantic-evals: repeats, graders, failures, labels, and the genuine report."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.evaluation_files import pydantic_case, pydantic_report, pydantic_result
from tests.support.read_files import read_files

from assay.domain.failure import Fault
from assay.domain.import_records import GradedBy

DATA = Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[5] / "shared")) / "data"


def test_case_becomes_task_response_and_grades(tmp_path: Path) -> None:
    records = read_files(pydantic_report(tmp_path))
    assert (records.counts, records.skipped, records.strangers) == ((1, 1, 1, 1), [], [])
    (run,), (task,), (response,) = records.runs, records.tasks, records.responses
    assert (run.suite, run.candidates[0].name) == ("reasons", "answer_why")
    assert run.identity == "pydantic-evals trace 0af7651916cd43dd8448eb211c80319c"
    assert (task.id, task.expected, task.metadata) == ("q1", ("Because.",), {"level": 1})
    assert (
        response.input_tokens,
        response.output_tokens,
        response.cost_usd,
        response.latency_s,
    ) == (11, 3, 0.002, 0.5)


def test_repeated_case_gives_trials(tmp_path: Path) -> None:
    cases = [pydantic_case(f"q1 [{number}/2]", source_case_name="q1") for number in (1, 2)]
    records = read_files(pydantic_report(tmp_path, *cases))
    assert [(response.task, response.trial) for response in records.responses] == [
        ("q1", 1),
        ("q1", 2),
    ]


def test_only_evaluators_known_as_rules_count_at_once(tmp_path: Path) -> None:
    judged = pydantic_result(
        "LLMJudge", False, "LLMJudge", {"rubric": "kind", "model": "openai:gpt-4o"}, "It is rude."
    )
    own = pydantic_result("tone", 0.75, "Tone")
    case = pydantic_case("q1", scores={"tone": own})
    case["assertions"]["LLMJudge"] = judged
    records = read_files(pydantic_report(tmp_path, case))
    assert {(row.judge, row.by, row.grades[0].score) for row in records.assessments} == {
        ("Tone", GradedBy.MODEL, 0.75),
        ("EqualsExpected", GradedBy.RULE, 1.0),
        ("LLMJudge (openai:gpt-4o)", GradedBy.MODEL, 0.0),
    }
    assert [row.reply for row in records.assessments if row.judge.startswith("LLM")] == [
        "It is rude."
    ]
    assert any("so they await review: Tone." in note.what for note in records.notes)


def test_range_of_g_eval_is_its_scale(tmp_path: Path) -> None:
    score = pydantic_result(
        "GEval", 4, "GEval", {"criteria": "kind", "score_range": [0, 8]}, "Mostly."
    )
    default = pydantic_result("other", 4, "GEval", {"criteria": "kind"}, "Mostly.")
    records = read_files(
        pydantic_report(tmp_path, pydantic_case("q1", scores={"GEval": score, "other": default}))
    )
    grades = [(grade.score, grade.max_score) for grade in records.assessments[0].grades]
    assert grades == [(0.5, 8.0), (0.75, 5.0)]


def test_one_score_outside_its_scale_leaves_all_of_it_raw(tmp_path: Path) -> None:
    cases = [
        pydantic_case(f"q{number}", scores={"stars": pydantic_result("stars", value, "Stars")})
        for number, value in enumerate((1, 5))
    ]
    records = read_files(pydantic_report(tmp_path, *cases))
    stars = [row.grades[0] for row in records.assessments if row.grades[0].criterion == "stars"]
    assert [(grade.score, grade.raw_score) for grade in stars] == [(None, 1.0), (None, 5.0)]


def test_score_without_a_scale_is_kept_raw_and_named(tmp_path: Path) -> None:
    case = pydantic_case("q1", scores={"words": pydantic_result("words", 41, "Words")})
    records = read_files(pydantic_report(tmp_path, case))
    assert (records.assessments[0].grades[0].score, records.assessments[0].grades[0].raw_score) == (
        None,
        41.0,
    )
    assert any("words (1)" in note.what and "raw scores" in note.what for note in records.notes)


def test_failures_of_task_and_evaluator_are_no_scores(tmp_path: Path) -> None:
    broken = pydantic_case("q2", error_message="ValueError: no key", error_stacktrace="…")
    del broken["output"]
    judge = {
        "name": "LLMJudge",
        "error_message": "overloaded",
        "source": {"name": "LLMJudge", "arguments": None},
    }
    case = pydantic_case("q1", assertions={}, evaluator_failures=[judge])
    records = read_files(pydantic_report(tmp_path, case, failures=(broken,)))
    failure = records.responses[1].failure
    assert failure is not None
    assert (failure.fault, failure.detail) == (Fault.HARNESS, "ValueError: no key")
    assert [row.grades[0].score for row in records.assessments] == [None]


def test_labels_are_named_as_left_out(tmp_path: Path) -> None:
    case = pydantic_case("q1", labels={"mood": pydantic_result("mood", "calm", "Mood")})
    assert any(
        "mood (1)" in note.what for note in read_files(pydantic_report(tmp_path, case)).notes
    )


def test_data_set_alone_is_no_result(tmp_path: Path) -> None:
    pydantic_report(tmp_path)
    (tmp_path / "report.json").unlink()
    records = read_files(tmp_path)
    assert "data set of pydantic-evals without results" in records.skipped[0].why


@pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the real data is not at {DATA}; set ASSAY_SHARED to its folder"
)
def test_genuine_report_has_its_own_averages() -> None:
    records = read_files(DATA / "peers/pydantic_evals")
    assert (records.counts, records.skipped, records.strangers) == ((1, 12, 24, 48), [], [])
    assert (
        sum(score or 0.0 for score in records.scores("EqualsExpected", "EqualsExpected").values())
        == 22
    )
    assert sum(
        score or 0.0 for score in records.scores("Len", "len_score").values()
    ) == pytest.approx(4.5)
