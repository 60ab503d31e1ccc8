"""Experiments of Braintrust: spans, trials, scorers, errors, and the SDK's results."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.evaluation_files import braintrust, braintrust_case, braintrust_span
from tests.support.harness_files import put, put_lines
from tests.support.read_files import read_files

from assay.domain.import_records import GradedBy


def test_only_the_root_span_of_a_case_is_a_response(tmp_path: Path) -> None:
    records = read_files(braintrust(tmp_path))
    assert (records.counts, records.skipped) == ((1, 1, 1, 2), [])
    run, response = records.runs[0], records.responses[0]
    assert (run.candidates[0].name, run.identity) == ("exp1", "braintrust experiment exp1")
    assert (response.content, response.latency_s, response.identity) == (
        "2",
        2.5,
        "braintrust row1",
    )
    # without the tokens of the scorer's call
    assert (response.input_tokens, response.output_tokens) == (11, 3)


def test_scorer_that_asked_a_model_waits_with_its_rationale(tmp_path: Path) -> None:
    records = read_files(braintrust(tmp_path))
    assert [(row.judge, row.by, row.grades[0].score, row.reply) for row in records.assessments] == [
        ("ExactMatch", GradedBy.RULE, 1.0, None),
        ("Tone", GradedBy.MODEL, 0.5, "Rather curt."),
    ]
    assert records.notes == []


def test_scorer_with_the_name_of_a_rule_waits_if_it_asked_a_model(tmp_path: Path) -> None:
    braintrust(tmp_path)
    call = braintrust_span(1, "judge2", "llm", "s1ExactMatch")
    with (tmp_path / "experiment.jsonl").open("a") as file:
        file.write(json.dumps(call) + "\n")
    assert [row.by for row in read_files(tmp_path).assessments] == [GradedBy.MODEL, GradedBy.MODEL]


def test_unknown_scorer_without_spans_waits_and_is_named(tmp_path: Path) -> None:
    records = read_files(
        put(tmp_path / "events.json", {"events": [braintrust_case(1)], "cursor": "c"})
    )
    assert [row.by for row in records.assessments] == [GradedBy.RULE, GradedBy.MODEL]
    assert any("await review: Tone." in note.what for note in records.notes)


def test_same_input_again_is_a_trial(tmp_path: Path) -> None:
    again = braintrust_case(1, id="row9", span_id="s9", root_span_id="s9")
    records = read_files(
        put_lines(tmp_path / "e.jsonl", [braintrust_case(1), again, braintrust_case(2)])
    )
    assert [response.trial for response in records.responses] == [1, 2, 1]
    assert len(records.tasks) == 2


def test_case_with_an_error_has_no_grade(tmp_path: Path) -> None:
    broken = braintrust_case(2, error="TimeoutError", output=None, scores={"ExactMatch": 0.0})
    records = read_files(put_lines(tmp_path / "e.jsonl", [braintrust_case(1), broken]))
    failure = records.responses[1].failure
    assert failure is not None
    assert failure.detail == "TimeoutError"
    assert {row.task for row in records.assessments} == {records.tasks[0].id}


def test_score_of_null_is_no_score(tmp_path: Path) -> None:
    case = braintrust_case(1, scores={"ExactMatch": None, "Tone": 0.5})
    records = read_files(put_lines(tmp_path / "e.jsonl", [case]))
    assert [row.grades[0].score for row in records.assessments] == [None, 0.5]


def test_two_experiments_in_a_file_are_two_candidates(tmp_path: Path) -> None:
    other = braintrust_case(1, id="row8", span_id="s8", root_span_id="s8", experiment_id="exp2")
    records = read_files(put_lines(tmp_path / "e.jsonl", [braintrust_case(1), other]))
    assert [(response.candidate, response.trial) for response in records.responses] == [
        ("exp1", 1),
        ("exp2", 1),
    ]
    assert records.runs[0].identity is None


def test_results_of_the_sdk_are_read_with_their_names(tmp_path: Path) -> None:
    result = {
        "input": "Why?",
        "output": "Because.",
        "expected": "Because.",
        "scores": {"Levenshtein": 1.0},
        "error": None,
    }
    summary = {"projectName": "reasons", "experimentName": "gpt-4o-7f", "scores": {}, "metrics": {}}
    records = read_files(
        put(tmp_path / "out.json", {"summary": summary, "results": [{**result, "metadata": {}}]})
    )
    assert (records.runs[0].suite, records.runs[0].candidates[0].name) == ("reasons", "gpt-4o-7f")
    assert records.scores("Levenshtein", "Levenshtein") == {
        (records.tasks[0].id, "gpt-4o-7f", 1): 1.0
    }
