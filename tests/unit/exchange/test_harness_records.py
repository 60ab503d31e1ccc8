"""Records read from other harnesses: one small evaluation of each, written as its own code writes
it.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import yaml
from tests.support import harness_files as files
from tests.support.read_files import formats_of, read_files

from assay.domain.failure import Fault
from assay.domain.import_records import GradedBy
from assay.domain.suite import Message
from assay.exchange.importers import ReadOptions

# --- lm-evaluation-harness ------------------------------------------------------------------------


def test_lm_eval_filters_are_judges_and_metrics_criteria(tmp_path: Path) -> None:
    read = read_files(files.lm_eval(tmp_path))
    assert read.counts == (1, 2, 2, 4)
    assert not read.skipped
    assert (read.runs[0].suite, read.runs[0].candidates[0].name) == ("sums", "org/tiny")
    assert read.runs[0].started == "2026-03-01T09:00:00.500Z"
    assert list(read.scores("lm_eval strict-match", "exact_match").values()) == [1.0, 1.0]
    assert list(read.scores("lm_eval flexible-extract", "exact_match").values()) == [0.0, 1.0]
    assert read.responses[0].content == "It is 2."
    assert read.tasks[0].prompt == (Message(role="user", content="Q: 0 + 2?\nA:"),)
    assert {one.by for one in read.assessments} == {GradedBy.RULE}


def test_lm_eval_tasks_of_one_run_share_its_results(tmp_path: Path) -> None:
    folder = files.lm_eval(tmp_path)
    files.put_lines(
        folder / "org__tiny/samples_products_2026-03-01T10-00-00.123456.jsonl",
        [files.lm_eval_row(0)],
    )
    read = read_files(folder)
    assert {(one.suite, one.candidates[0].name) for one in read.runs} == {
        ("sums", "org/tiny"),
        ("products", "org/tiny"),
    }
    assert {one.started for one in read.runs} == {"2026-03-01T09:00:00.500Z"}


def test_lm_eval_results_without_samples_name_the_missing_option(tmp_path: Path) -> None:
    folder = files.lm_eval(tmp_path)
    next(folder.rglob("samples_*")).unlink()
    read = read_files(folder)
    assert read.counts == (0, 0, 0, 0)
    assert "--log_samples" in read.skipped[0].why


def test_lm_eval_rows_without_a_metric_are_counted_and_named(tmp_path: Path) -> None:
    folder = files.lm_eval(tmp_path)
    rows = [files.lm_eval_row(n, metrics=["exact_match", "f1"], f1=0.5) for n in range(4)]
    rows[1]["f1"] = None
    rows[2] = files.lm_eval_row(2, exact_match=None)
    files.put_lines(next(folder.glob("*/samples_*.jsonl")), rows)
    whys = [skipped.why for skipped in read_files(folder).skipped]
    assert any("f1 is missing or not a number in 1 of 3 graded rows" in why for why in whys)
    assert any(why.startswith("1 rows hold no metric") for why in whys)


def test_lm_eval_multiple_choice_answers_with_the_likeliest_continuation(tmp_path: Path) -> None:
    row = files.lm_eval_row(
        0,
        filter="none",
        arguments={
            f"gen_args_{n}": {"arg_0": "Sky?", "arg_1": f" {colour}"}
            for n, colour in enumerate(("red", "blue"))
        },
        resps=[[["-4.5", "False"]], [["-0.5", "True"]]],
        filtered_resps=[["-4.5", "False"], ["-0.5", "True"]],
        metrics=["acc", "acc_norm"],
        acc=1.0,
        acc_norm=0.0,
    )
    read = read_files(files.put_lines(tmp_path / "samples_sky.jsonl", [row]))
    assert read.responses[0].content == "blue"
    assert {grade.criterion: grade.score for grade in read.assessments[0].grades} == {
        "acc": 1.0,
        "acc_norm": 0.0,
    }
    assert read.assessments[0].judge == "lm_eval"


def test_lm_eval_of_the_old_layout_is_a_list_under_a_jsonl_name(tmp_path: Path) -> None:
    old = {
        "doc_id": 7,
        "doc": {"question": "2 + 2?"},
        "target": "4",
        "arguments": [["Q: 2 + 2?", {"until": ["\n"]}]],
        "resps": [["4"]],
        "filtered_resps": ["4"],
        "exact_match": 1.0,
    }
    path = files.put(tmp_path / "org__tiny/pretrained__org__tiny_sums.jsonl", [old])
    read = read_files(path)
    assert formats_of([path]) == ["lm_eval"]
    assert (read.tasks[0].id, read.responses[0].content, read.responses[0].candidate) == (
        "7",
        "4",
        "org/tiny",
    )
    assert read.scores("lm_eval", "exact_match") == {("7", "org/tiny", 1): 1.0}


def test_a_metric_without_a_scale_is_kept_raw_and_weighs_nothing(tmp_path: Path) -> None:
    rows = [
        files.lm_eval_row(n, metrics=["bleu", "exact_match"], bleu=37.5, exact_match=1.0)
        for n in (0, 1)
    ]
    read = read_files(files.put_lines(tmp_path / "samples_translate.jsonl", rows))
    weights = {one.name: one.weight for one in read.runs[0].rubric}
    assert weights == {"bleu": 0.0, "exact_match": 1.0}
    bleu = next(one for one in read.assessments[0].grades if one.criterion == "bleu")
    assert (bleu.score, bleu.raw_score) == (None, 37.5)
    assert "bleu" in read.notes[0].what


def test_a_metric_of_which_lower_is_better_is_turned_round(tmp_path: Path) -> None:
    folder = files.lm_eval(tmp_path) / "org__tiny"
    (results,) = folder.glob("results_*.json")
    document = json.loads(results.read_text()) | {
        "higher_is_better": {"sums": {"wrong": False, "exact_match": True}}
    }
    files.put(results, document)
    (samples,) = folder.glob("samples_*.jsonl")
    rows = [files.lm_eval_row(n, metrics=["wrong", "exact_match"], wrong=0.25) for n in (0, 1)]
    files.put_lines(samples, rows)
    read = read_files(tmp_path)
    grades = {grade.criterion: grade for grade in read.assessments[0].grades}
    wrong, right = grades["wrong"], grades["exact_match"]
    assert (wrong.score, wrong.raw_score, wrong.min_score, wrong.max_score) == (
        0.75,
        0.25,
        1.0,
        0.0,
    )
    assert (right.score, right.min_score, right.max_score) == (1.0, 0.0, 1.0)
    assert {c.name: (c.low, c.high) for c in read.runs[0].rubric} == {
        "wrong": (1.0, 0.0),
        "exact_match": (0.0, 1.0),
    }
    assert any("lower is better for wrong" in note.what for note in read.notes)


def test_a_task_configuration_tells_the_direction_of_its_metrics(tmp_path: Path) -> None:
    home = files.lm_eval(tmp_path) / "org__tiny"
    (results,) = home.glob("results_*.json")
    metric = {"metric": "exact_match", "higher_is_better": False}
    files.put(
        results, json.loads(results.read_text()) | {"configs": {"sums": {"metric_list": [metric]}}}
    )
    grade = read_files(tmp_path).assessments[0].grades[0]
    assert (grade.score, grade.raw_score, grade.min_score, grade.max_score) == (0.0, 1.0, 1.0, 0.0)


def test_samples_alone_have_the_directions_of_the_harness(tmp_path: Path) -> None:
    row = files.lm_eval_row(
        0, metrics=["brier_score", "exact_match", "own"], brier_score=0.25, own=0.25
    )
    read = read_files(files.put_lines(tmp_path / "samples_sums.jsonl", [row]))
    assert [grade.score for grade in read.assessments[0].grades] == [0.75, 1.0, 0.25]
    assert any("higher or lower is better for own;" in note.what for note in read.notes)


def test_a_metric_with_a_late_value_off_its_scale_counts_nowhere(tmp_path: Path) -> None:
    rows = [files.lm_eval_row(n, exact_match=1.0 if n < 1100 else 37.5) for n in range(1500)]
    read = read_files(files.put_lines(tmp_path / "samples_late.jsonl", rows))
    assert {grade.score for one in read.assessments for grade in one.grades} == {None}
    assert "400 of 1,500 rows" in read.skipped[0].why  # so that the import ends with exit code 1


def test_an_lm_eval_run_ends_when_its_file_was_named(tmp_path: Path) -> None:
    folder = files.lm_eval(tmp_path) / "org__tiny"
    (results,) = folder.glob("results_*.json")
    document = json.loads(results.read_text())
    files.put(results, document | {"date": 1772355590.5, "total_evaluation_time_seconds": "30.0"})
    assert read_files(tmp_path).runs[0].finished == "2026-03-01T09:00:00.123Z"
    files.put(results, document | {"date": 1772355590.5, "total_evaluation_time_seconds": "4000.0"})
    assert read_files(tmp_path).runs[0].finished is None


def test_lm_eval_samples_that_lack_documents_are_incomplete(tmp_path: Path) -> None:
    folder = files.lm_eval(tmp_path) / "org__tiny"
    (results,) = folder.glob("results_*.json")
    document = json.loads(results.read_text())
    files.put(results, document | {"n-samples": {"sums": {"original": 9, "effective": 2}}})
    assert not read_files(tmp_path).ends
    files.put(results, document | {"n-samples": {"sums": {"original": 9, "effective": 5}}})
    read = read_files(tmp_path)
    assert [end.complete for end in read.ends] == [False]
    assert "2 of the 5 documents" in read.notes[-1].what


def test_a_line_with_nan_in_it_is_read_and_the_nan_is_no_score(tmp_path: Path) -> None:
    lines = [files.lm_eval_row(0), files.lm_eval_row(1, exact_match=float("nan"))]
    read = read_files(files.put_lines(tmp_path / "samples_sums.jsonl", lines))
    assert len(read.responses) == 2
    assert [one.where for one in read.skipped] == [f"{tmp_path}/samples_sums.jsonl:2"]
    assert "no metric" in read.skipped[0].why


def test_a_metric_over_the_whole_set_leaves_its_answers_ungraded(tmp_path: Path) -> None:
    rows = [
        files.lm_eval_row(n, metrics=["f1"], f1=["LOC: Oslo", [""]], filtered_resps=[[""]])
        for n in (0, 1)
    ]
    read = read_files(files.put_lines(tmp_path / "samples_names.jsonl", rows))
    assert read.counts == (1, 2, 2, 0)
    assert "2 rows hold no metric" in read.notes[0].what
    assert not read.skipped


# --- promptfoo ------------------------------------------------------------------------------------


def test_promptfoo_providers_are_candidates_and_repeats_are_trials(tmp_path: Path) -> None:
    read = read_files(files.promptfoo(tmp_path))
    assert read.counts == (1, 2, 6, 12)
    assert [one.name for one in read.runs[0].candidates] == ["openai:small", "openai:large"]
    assert read.runs[0].suite == "cities"
    trials = Counter((one.candidate, one.trial) for one in read.responses)
    assert trials == {
        (name, trial): 3 - trial for name in ("openai:small", "openai:large") for trial in (1, 2)
    }
    assert (
        read.responses[0].latency_s,
        read.responses[0].cost_usd,
        read.responses[0].input_tokens,
    ) == (0.25, 0.001, 5)


def test_promptfoo_in_yaml_gives_the_records_of_its_json(tmp_path: Path) -> None:
    path = files.promptfoo(tmp_path)
    document = json.loads(path.read_bytes())
    expected = read_files(path)
    (tmp_path / "yaml").mkdir()
    copy = tmp_path / "yaml" / "results.yaml"
    copy.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    read = read_files(copy)
    assert read.counts == expected.counts
    assert [grade for one in read.assessments for grade in one.grades] == [
        grade for one in expected.assessments for grade in one.grades
    ]


def test_promptfoo_rubrics_wait_with_the_graders_words_and_rules_count(tmp_path: Path) -> None:
    read = read_files(files.promptfoo(tmp_path))
    assert {(one.judge, one.by) for one in read.assessments} == {
        ("promptfoo", GradedBy.RULE),
        ("llm-rubric (openai:gpt-4.1)", GradedBy.MODEL),
    }
    waiting = next(one for one in read.assessments if one.by is GradedBy.MODEL)
    assert (waiting.reply, waiting.grades[0].score) == ("It says please.", 0.9)


def test_a_promptfoo_set_with_a_models_grade_in_it_waits(tmp_path: Path) -> None:
    row = files.promptfoo_result("small", "Oslo")
    rule, rubric = row["gradingResult"]["componentResults"]
    used = {"total": 140, "prompt": 100, "completion": 40}
    mixed = {
        "pass": True,
        "score": 0.6,
        "reason": "Aggregate score 0.60",
        "componentResults": [rubric, rule],
    }
    by_rule = {"pass": True, "score": 1, "reason": "all", "componentResults": [rule, rule]}
    row["gradingResult"]["componentResults"] = [mixed | {"tokensUsed": used}, by_rule, rule]
    read = read_files(files.put(tmp_path / "out.json", files.promptfoo_document(row)))
    graded = {one.judge: one for one in read.assessments}
    assert {judge: one.by for judge, one in graded.items()} == {
        "assert-set (llm-rubric (openai:gpt-4.1))": GradedBy.MODEL,
        "promptfoo": GradedBy.RULE,
    }
    waiting = graded["assert-set (llm-rubric (openai:gpt-4.1))"]
    assert (waiting.grades[0].score, waiting.input_tokens, waiting.output_tokens) == (0.6, 100, 40)
    assert "It says please." in (waiting.reply or "")


def test_a_promptfoo_assertion_of_an_unknown_kind_waits(tmp_path: Path) -> None:
    row = files.promptfoo_result("small", "Oslo")
    rule, _ = row["gradingResult"]["componentResults"]
    unknown = rule | {"assertion": {"type": "not-of-a-later-version", "value": "x"}}
    row["gradingResult"]["componentResults"] = [rule, unknown]
    read = read_files(files.put(tmp_path / "out.json", files.promptfoo_document(row)))
    assert {one.judge: one.by for one in read.assessments} == {
        "promptfoo": GradedBy.RULE,
        "of-a-later-version": GradedBy.MODEL,
    }


def test_a_promptfoo_assertion_that_used_tokens_or_its_neighbours_waits(tmp_path: Path) -> None:
    row = files.promptfoo_result("small", "Oslo")
    parts = row["gradingResult"]["componentResults"]
    code = {
        "pass": True,
        "score": 1,
        "reason": "r",
        "assertion": {"type": "python"},
        "tokensUsed": {"total": 9},
    }
    nearness = {
        "pass": True,
        "score": 1,
        "reason": "r",
        "assertion": {"type": "similar"},
        "tokensUsed": {"total": 9},
    }
    best = {"pass": True, "score": 1, "reason": "r", "assertion": {"type": "max-score"}}
    row["gradingResult"]["componentResults"] = [*parts, code, nearness, best]
    read = read_files(files.put(tmp_path / "out.json", files.promptfoo_document(row)))
    waiting = {one.judge for one in read.assessments if one.by is GradedBy.MODEL}
    assert {judge.split(" ")[0] for judge in waiting} == {"llm-rubric", "python", "max-score"}


def test_one_promptfoo_score_off_the_scale_takes_its_assertions_others(tmp_path: Path) -> None:
    rows = []
    for city, score in (("Oslo", 1), ("Rome", 7)):
        row = files.promptfoo_result("small", city)
        part = {
            "pass": True,
            "score": score,
            "reason": "r",
            "assertion": {"type": "javascript", "value": "len"},
        }
        row["gradingResult"]["componentResults"] = [part]
        rows.append(row)
    read = read_files(files.put(tmp_path / "out.json", files.promptfoo_document(*rows)))
    assert set(read.scores("promptfoo").values()) == {None}
    assert [one.grades[0].raw_score for one in read.assessments] == [1, 7]
    assert any(
        note.what.startswith("2 scores belong to metrics with values outside 0 to 1")
        for note in read.notes
    )


def test_a_promptfoo_run_ends_after_its_duration(tmp_path: Path) -> None:
    document = files.promptfoo_document(files.promptfoo_result("small", "Oslo"))
    document["results"]["stats"]["durationMs"] = 1500
    (run,) = read_files(files.put(tmp_path / "out.json", document)).runs
    assert (run.started, run.finished) == ("2026-03-01T10:00:00.000Z", "2026-03-01T10:00:01.500Z")


def test_one_harbor_reward_off_the_scale_takes_the_others(tmp_path: Path) -> None:
    for number, reward in enumerate((0.5, 3.0)):
        trial = files.harbor_trial(f"t{number}", f"t{number}__a", reward)
        files.put(tmp_path / f"job/t{number}__a/result.json", trial)
    read = read_files(tmp_path)
    assert set(read.scores("verifier").values()) == {None}


def test_promptfoo_tells_a_failed_assertion_from_a_broken_test(tmp_path: Path) -> None:
    failed = files.promptfoo_result(
        "p", "Oslo", success=False, failureReason=1, error="Expected output to contain Oslo"
    )
    failed["gradingResult"]["componentResults"][0] |= {"pass": False, "score": 0}
    broke = files.promptfoo_result(
        "p", "Lima", success=False, failureReason=2, error="429 too many requests", response={}
    )
    read = read_files(files.put(tmp_path / "r.json", files.promptfoo_document(failed, broke)))
    assert read.scores("promptfoo") == {(read.tasks[0].id, "p", 1): 0.0}
    assert read.responses[0].content == "Well: Oslo."
    failure = read.responses[1].failure
    assert failure is not None
    assert (failure.fault, failure.detail) == (Fault.PROVIDER, "429 too many requests")


def test_promptfoo_prompts_of_one_provider_are_candidates_of_their_own(tmp_path: Path) -> None:
    rows = [
        files.promptfoo_result(
            "p",
            "Oslo",
            promptIdx=n,
            promptId=f"p{n}",
            prompt={"raw": f"{label} Oslo", "label": label},
        )
        for n, label in enumerate(("short", "long"))
    ]
    read = read_files(files.put(tmp_path / "r.json", files.promptfoo_document(*rows)))
    assert [one.name for one in read.runs[0].candidates] == ["p, short", "p, long"]
    assert len(read.tasks) == 1


def test_one_provider_set_up_twice_is_two_candidates_and_not_two_trials(tmp_path: Path) -> None:
    rows = [
        files.promptfoo_result("p", city, promptIdx=n) for n in (0, 1) for city in ("Oslo", "Lima")
    ]
    read = read_files(files.put(tmp_path / "r.json", files.promptfoo_document(*rows)))
    assert [one.name for one in read.runs[0].candidates] == [
        "p, Name {{city}}",
        "p, Name {{city}} (2)",
    ]
    assert {one.trial for one in read.responses} == {1}
    assert read.tasks[0].prompt == (Message(role="user", content="Name Oslo"),)


def test_promptfoo_of_a_table_alone_is_read_too(tmp_path: Path) -> None:
    cell = {
        "pass": False,
        "score": 0.25,
        "text": "no",
        "latencyMs": 10,
        "gradingResult": {"pass": False, "score": 0.25, "reason": "wrong"},
    }
    table = {
        "head": {
            "prompts": [{"provider": "openai:small", "raw": "Say {{x}}", "label": "Say {{x}}"}],
            "vars": ["x"],
        },
        "body": [
            {
                "vars": ["yes"],
                "outputs": [cell],
                "test": {"vars": {"x": "yes"}, "assert": [{"type": "equals", "value": "yes"}]},
            }
        ],
    }
    document = {
        "results": {
            "version": 2,
            "timestamp": "2024-05-01T10:00:00Z",
            "results": [],
            "stats": {},
            "table": table,
        }
    }
    read = read_files(files.put(tmp_path / "old.json", document))
    assert read.counts == (1, 1, 1, 1)
    assert (read.responses[0].candidate, read.responses[0].content) == ("openai:small", "no")
    assert read.assessments[0].grades[0].score == 0.25
    assert read.tasks[0].expected == ("yes",)


def test_promptfoo_of_a_newer_format_is_read_and_said_to_be_newer(tmp_path: Path) -> None:
    read = read_files(
        files.put(
            tmp_path / "r.json",
            files.promptfoo_document(files.promptfoo_result("p", "Oslo"), version=9),
        )
    )
    assert len(read.responses) == 1
    assert "version 9" in read.notes[0].what


def test_a_promptfoo_test_without_assertions_is_answered_but_not_graded(tmp_path: Path) -> None:
    row = files.promptfoo_result("p", "Oslo")
    row["testCase"].pop("assert")
    row["gradingResult"] = {
        "pass": True,
        "score": 1,
        "reason": "No assertions",
        "componentResults": [],
    }
    read = read_files(files.put(tmp_path / "r.json", files.promptfoo_document(row)))
    assert read.counts == (1, 1, 1, 0)


# --- OpenAI Evals ---------------------------------------------------------------------------------


def test_openai_logs_meet_by_sample_though_threads_wrote_them_mixed(tmp_path: Path) -> None:
    read = read_files(files.openai_log(tmp_path))
    assert read.counts == (1, 2, 3, 2)
    assert (read.runs[0].suite, read.runs[0].candidates[0].name) == ("sums.dev.v0", "gpt-4o-mini")
    assert read.runs[0].started is None  # the spec's time has no zone
    assert [(one.id, one.expected) for one in read.tasks] == [
        ("sums.dev.0", ("4",)),
        ("sums.dev.1", ("5",)),
    ]
    assert read.scores("match") == {
        ("sums.dev.0", "gpt-4o-mini", 1): 1.0,
        ("sums.dev.1", "gpt-4o-mini", 1): 0.0,
    }
    assert read.ends[0].complete is True
    failure = read.responses[-1].failure
    assert failure is not None
    assert "RateLimitError" in failure.detail


def test_openai_log_may_have_events_after_its_final_report(tmp_path: Path) -> None:
    rows = files.openai_log_rows()
    read = read_files(files.put_lines(tmp_path / "log.jsonl", [rows[0], rows[-1], *rows[1:-1]]))
    assert read.counts == (1, 2, 3, 2)
    assert read.ends[0].complete is True


def test_openai_log_without_a_final_report_is_unfinished(tmp_path: Path) -> None:
    read = read_files(files.put_lines(tmp_path / "log.jsonl", files.openai_log_rows()[:-1]))
    assert read.runs[0].complete is False
    assert not read.ends


def test_a_choice_of_a_grading_model_waits_with_its_words(tmp_path: Path) -> None:
    rows = files.openai_log_rows()[:2]
    rows[0]["spec"]["completion_fns"] = ["gpt-4o-mini", "gpt-4"]
    rows[0]["spec"]["run_config"]["eval_spec"]["args"] = {"modelgraded_spec": "closedqa"}
    more = {"sample_id": "sums.dev.0", "created_at": "2026-03-01 10:00:02+00:00"}
    rows.append(
        {**more, "type": "sampling", "data": {"prompt": "Is it right?", "sampled": ["It is.\nY"]}}
    )
    rows.append({**more, "type": "metrics", "data": {"choice": "Y", "score": 1.0}})
    read = read_files(files.put_lines(tmp_path / "log.jsonl", rows))
    assert [one.content for one in read.responses] == ["4"]
    graded = read.assessments[0]
    assert (graded.judge, graded.by, graded.reply) == (
        "closedqa (gpt-4)",
        GradedBy.MODEL,
        "It is.\nY",
    )
    assert graded.grades[0].score == 1.0


def test_choice_without_a_logged_score_has_no_score(tmp_path: Path) -> None:
    rows = files.openai_log_rows()[:2]
    rows.append({"sample_id": "sums.dev.0", "type": "metrics", "data": {"choice": "B"}})
    read = read_files(files.put_lines(tmp_path / "log.jsonl", rows))
    assert read.assessments[0].grades[0].score is None
    assert "1 choices have no score" in read.notes[0].what


def test_openai_items_with_their_eval_say_names_references_and_scales(tmp_path: Path) -> None:
    read = read_files(files.openai_api(tmp_path))
    assert read.counts == (1, 2, 2, 4)
    assert not read.skipped
    assert (read.runs[0].suite, read.runs[0].candidates[0].name) == ("headlines", "gpt-4o-mini")
    assert read.tasks[0].expected == ("Markets",)
    assert [one.content for one in read.responses] == ["Markets", "Sports"]
    assert list(read.scores("String check").values()) == [1.0, 0.0]
    tone = [one for one in read.assessments if one.judge == "tone (gpt-4.1)"]
    assert {one.by for one in tone} == {GradedBy.MODEL}
    assert (tone[0].grades[0].score, tone[0].grades[0].raw_score, tone[0].grades[0].max_score) == (
        0.75,
        4.0,
        5.0,
    )
    assert '"result": 4.0' in (tone[0].reply or "")


def test_an_openai_eval_in_a_folder_above_serves_every_run_below(tmp_path: Path) -> None:
    files.put(tmp_path / "eval_1.json", files.openai_eval())
    for run in ("evalrun_1", "evalrun_2"):
        files.put(tmp_path / run / "run.json", {**files.openai_run(), "id": run, "model": run})
        files.put_lines(tmp_path / run / "items.jsonl", [files.openai_item(1, True, run_id=run)])
    read = read_files(tmp_path)
    assert [(one.suite, one.candidates[0].name) for one in read.runs] == [
        ("headlines", "evalrun_1"),
        ("headlines", "evalrun_2"),
    ]
    assert not read.skipped


def test_openai_items_are_read_and_scores_beyond_1_have_no_scale(tmp_path: Path) -> None:
    read = read_files(
        files.put(
            tmp_path / "page.json",
            {"object": "list", "data": [files.openai_item(1, True)], "has_more": True},
        )
    )
    assert (read.runs[0].suite, read.runs[0].candidates[0].name) == (
        "eval_1",
        "gpt-4o-mini-2024-07-18",
    )
    assert read.runs[0].complete is False
    assert "has_more" in read.notes[0].what
    tone = next(one for one in read.assessments if one.by is GradedBy.MODEL)
    assert (tone.grades[0].score, tone.grades[0].raw_score) == (None, 4.0)


def test_openai_scores_of_a_grader_without_a_range_are_all_or_none(tmp_path: Path) -> None:
    items = [files.openai_item(number, True) for number in (1, 2)]
    items[0]["results"][1] |= {"score": 1.0}
    items[0]["results"][1]["sample"]["usage"] = {"prompt_tokens": 30, "completion_tokens": 7}
    read = read_files(files.put_lines(tmp_path / "items.jsonl", list(items)))
    tone = [one for one in read.assessments if one.by is GradedBy.MODEL]
    assert [(one.grades[0].score, one.grades[0].raw_score) for one in tone] == [
        (None, 1.0),
        (None, 4.0),
    ]
    assert (tone[0].input_tokens, tone[0].output_tokens) == (30, 7)


def test_an_openai_grader_nobody_knows_waits_for_a_person(tmp_path: Path) -> None:
    item = files.openai_item(1, True, results=[{"name": "mystery", "passed": True, "score": 1.0}])
    read = read_files(files.put_lines(tmp_path / "items.jsonl", [item]))
    assert [(one.judge, one.by) for one in read.assessments] == [("mystery", GradedBy.MODEL)]


def test_an_openai_item_that_broke_is_a_failure(tmp_path: Path) -> None:
    item = files.openai_item(1, False)
    item["sample"] |= {"error": {"code": "server_error", "message": "try later"}, "output": []}
    read = read_files(files.put_lines(tmp_path / "items.jsonl", [item]))
    assert read.responses[0].failure is not None
    assert read.responses[0].failure.kind == "server_error"
    assert not read.assessments


# --- AlpacaEval, MT-bench -------------------------------------------------------------------------


def test_alpaca_annotations_are_preferences_that_wait(tmp_path: Path) -> None:
    read = read_files(files.alpaca(tmp_path))
    assert read.counts == (1, 3, 6, 3)
    assert [[grade.score for grade in one.grades] for one in read.assessments] == [
        [1.0, 0.0],
        [0.0, 1.0],
        [0.5, 0.5],
    ]
    assert {(one.joint, one.by, one.judge) for one in read.assessments} == {
        (True, GradedBy.MODEL, "alpaca_eval_gpt4_turbo_fn")
    }
    assert {grade.criterion for one in read.assessments for grade in one.grades} == {"preference"}


def test_alpaca_probabilities_are_kept_and_invalid_ones_skipped(tmp_path: Path) -> None:
    rows = [
        files.alpaca_annotation(1, 1.75),
        files.alpaca_annotation(2, None),
        files.alpaca_annotation(3, 0),
    ]
    read = read_files(files.put(tmp_path / "annotations.json", rows))
    assert [one.grades[0].score for one in read.assessments] == [0.25, None, 0.5]
    assert "1 preferences are probabilities" in read.notes[0].what


def test_an_alpaca_judges_words_are_found_among_its_token_likelihoods(tmp_path: Path) -> None:
    raw = {
        "finish_reason": "length",
        "logprobs": {"content": []},
        "message": {"content": "m"},
        "text": "m",
    }
    read = read_files(
        files.put(
            tmp_path / "annotations.json", [files.alpaca_annotation(1, 1.99, raw_completion=raw)]
        )
    )
    assert read.assessments[0].reply == "m\n\npreference: 1.99"


def test_alpaca_outputs_meet_annotations_by_their_instruction(tmp_path: Path) -> None:
    rows = [
        {
            "dataset": "helpful_base",
            "instruction": "Say 1.",
            "output": "It is 1.",
            "generator": "new",
        }
    ]
    outputs = read_files(files.put(tmp_path / "a/model_outputs.json", rows))
    annotations = read_files(files.alpaca(tmp_path / "b"))
    assert outputs.counts == (1, 1, 1, 0)
    assert outputs.tasks[0] == annotations.tasks[0]


def test_mt_bench_folders_are_one_run_with_turns_as_tasks(tmp_path: Path) -> None:
    read = read_files(files.mt_bench(tmp_path))
    assert read.counts == (1, 2, 4, 8)
    assert not read.skipped
    assert [one.name for one in read.runs[0].candidates] == ["alpha", "beta"]
    second = next(one for one in read.tasks if one.id == "101-2")
    assert [one.content for one in second.prompt] == ["2+2?", "And 2+3?"]
    assert (second.expected, second.tags) == (("5",), ("math",))
    singles = read.scores("gpt-4/single-math-v1")
    assert singles[("101-1", "alpha", 1)] == 1.0
    assert singles[("101-1", "beta", 1)] == 0.0
    assert singles[("101-2", "beta", 1)] is None  # -1: no rating could be read
    assert (
        read.scores("gpt-4/pair-math-v1, model_1 first", "preference")[("101-2", "alpha", 1)] == 1.0
    )
    assert (
        read.scores("gpt-4/pair-math-v1, model_2 first", "preference")[("101-2", "alpha", 1)] == 0.5
    )


def test_mt_bench_answers_alone_are_responses_of_every_model(tmp_path: Path) -> None:
    home = files.mt_bench(tmp_path)
    for path in (home / "model_judgment").iterdir():
        path.unlink()
    read = read_files(home)
    assert read.counts == (1, 2, 4, 0)
    assert {one.candidate for one in read.responses} == {"alpha", "beta"}


# --- SWE-bench, Harbor ----------------------------------------------------------------------------


def test_swe_bench_empty_patch_is_unresolved_and_broken_one_unscored(tmp_path: Path) -> None:
    read = read_files(files.swe_bench(tmp_path))
    assert read.counts == (1, 4, 4, 3)
    assert read.runs[0].candidates[0].name == "org/agent"
    assert {task: score for (task, _, _), score in read.scores("SWE-bench harness").items()} == {
        "django__django-1": 1.0,
        "django__django-2": 0.0,
        "django__django-3": 0.0,
    }
    missed = next(one for one in read.assessments if one.task == "django__django-2")
    assert "FAIL_TO_PASS: 0 passed, 1 failed (t1)" in missed.grades[0].reason
    assert any("1 patches ended with an error" in one.what for one in read.notes)
    assert any("never attempted" in one.what for one in read.notes)


def test_swe_bench_predictions_alone_are_ungraded_patches(tmp_path: Path) -> None:
    files.swe_bench(tmp_path)
    read = read_files(tmp_path / "predictions.jsonl")
    assert read.counts == (1, 4, 4, 0)
    assert read.tasks[0].tags == ("django/django",)


def test_swe_bench_reports_of_instances_gather_into_one_run(tmp_path: Path) -> None:
    files.swe_bench(tmp_path)
    (tmp_path / "org__agent.run7.json").unlink()
    read = read_files(tmp_path)
    assert read.counts == (1, 4, 4, 2)


def test_two_swe_bench_runs_keep_their_own_reports(tmp_path: Path) -> None:
    files.swe_bench(tmp_path)
    report = json.loads((tmp_path / "org__agent.run7.json").read_text())
    files.put(
        tmp_path / "org__agent.run8.json",
        {**report, "resolved_ids": report["submitted_ids"][:2], "unresolved_ids": []},
    )
    read = read_files(tmp_path)
    assert read.counts == (2, 8, 8, 6)
    assert Counter(one.grades[0].score for one in read.assessments) == {1.0: 3, 0.0: 3}


def test_swe_bench_submission_is_read_with_its_predictions(tmp_path: Path) -> None:
    files.swe_bench(tmp_path / "other")
    home = tmp_path / "20260301_agent"
    (tmp_path / "other/predictions.jsonl").rename(files.put(home / "all_preds.jsonl", []))
    ids = [f"django__django-{number}" for number in (1, 2, 3, 4)]
    report = files.put(
        home / "results/results.json",
        {"no_generation": ids[2:3], "no_logs": ids[3:], "resolved": ids[:1]},
    )
    read = read_files(home)
    assert {task: score for (task, _, _), score in read.scores("SWE-bench harness").items()} == {
        ids[0]: 1.0,
        ids[1]: 0.0,
        ids[2]: 0.0,
    }
    alone = read_files(report)
    assert not alone.assessments
    assert "not the attempted ones" in alone.skipped[0].why


def test_a_swe_bench_report_alone_names_its_model_by_its_file(tmp_path: Path) -> None:
    files.swe_bench(tmp_path)
    read = read_files(tmp_path / "org__agent.run7.json")
    assert read.runs[0].candidates[0].name == "org/agent"
    assert len(read.assessments) == 3
    assert [one.failure.kind for one in read.responses if one.failure] == ["evaluation_error"]


def test_harbor_jobs_are_one_run_with_trials_counted_by_task(tmp_path: Path) -> None:
    read = read_files(files.harbor(tmp_path))
    assert read.counts == (1, 2, 3, 2)
    assert not read.skipped
    assert not read.strangers
    assert read.runs[0].suite == "terminal-bench"
    assert read.runs[0].finished == "2026-03-01T10:20:00.000Z"
    name = "terminus-2 (anthropic/claude-x)"
    assert read.scores("verifier") == {("hello-world", name, 1): 1.0, ("hello-world", name, 2): 0.0}
    assert read.tasks[-1].prompt[0].content.startswith("Solve ")
    solved = next(one for one in read.responses if one.task == "hello-world")
    assert (solved.content, solved.latency_s, solved.cost_usd, solved.output_tokens) == (
        "Done.",
        120.0,
        0.25,
        20,
    )
    broke = next(one.failure for one in read.responses if one.failure)
    assert (broke.kind, broke.fault) == ("EnvironmentStartTimeoutError", Fault.HARNESS)


def test_a_harbor_trial_that_was_rewarded_although_time_ran_out_counts(tmp_path: Path) -> None:
    broke = {
        "exception_type": "AgentTimeoutError",
        "exception_message": "900 s",
        "exception_traceback": "",
        "occurred_at": "",
    }
    path = files.put(
        tmp_path / "t/result.json", files.harbor_trial("a", "a__1", 0.0, exception_info=broke)
    )
    read = read_files(path)
    assert list(read.scores("verifier").values()) == [0.0]
    assert read.responses[0].finish_reason == "AgentTimeoutError"


def test_several_harbor_rewards_are_criteria_and_reward_is_the_whole(tmp_path: Path) -> None:
    trial = files.harbor_trial(
        "a", "a__1", 1.0, verifier_result={"rewards": {"reward": 0.5, "f2p": 1, "p2p": 0}}
    )
    read = read_files(files.put(tmp_path / "t/result.json", trial))
    assert read.scores("verifier") == {("a", "terminus-2 (anthropic/claude-x)", 1): 0.5}
    assert list(read.scores("verifier", "f2p").values()) == [1.0]


def test_a_name_given_takes_the_place_of_the_one_found(tmp_path: Path) -> None:
    for number, write in enumerate(
        (files.lm_eval, files.openai_log, files.openai_api, files.inspect, files.harbor)
    ):
        read = read_files(
            write(tmp_path / str(number)), options=ReadOptions(candidate="mine", dataset="ours")
        )
        assert {one.candidate for one in read.responses} == {"mine"}, write.__name__
        assert [one.name for one in read.runs[0].candidates] == ["mine"], write.__name__
        assert {one.suite for one in read.runs} == {"ours"}, write.__name__
