"""Real results of other harnesses, read and compared with the figures their sources and an
independent script give.

The data is not part of this repository: it lies in `shared/data` beside it, or where ASSAY_SHARED
says. The figures are those of its own DATA.md and `reference/reference.json`.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.read_files import Read, read_files

from assay.domain.import_records import GradedBy
from assay.statistics.kappa import cohen_kappa
from assay.statistics.preferences import bradley_terry

DATA = Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[3] / "shared")) / "data"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the real data is not at {DATA}; set ASSAY_SHARED to its folder"
)


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((DATA / "reference/reference.json").read_text())
    return document


@pytest.fixture(scope="module")
def pandalm() -> Read:
    return read_files(DATA / "pandalm")


@pytest.fixture(scope="module")
def llmbar() -> Read:
    return read_files(DATA / "llmbar_natural")


def verdicts(read: Read, judge: str) -> dict[str, float | None]:
    """Points of the first candidate of each pair, by task."""
    return {one.task: one.grades[0].score for one in read.assessments if one.judge == judge}


def majority(read: Read) -> dict[str, float | None]:
    """Return the majority preference of people for each pair."""
    people = [verdicts(read, f"annotator{n}") for n in (1, 2, 3)]
    return {task: Counter(one[task] for one in people).most_common(1)[0][0] for task in people[0]}


def test_pandalm_has_999_preferences_of_three_people_and_two_judges(pandalm: Read) -> None:
    assert pandalm.counts == (1, 999, 1998, 999 * 5)
    assert not pandalm.skipped
    assert len(pandalm.notes) == 6  # answers that the source holds as `true`, not as text
    by_judge = Counter((one.judge, one.by) for one in pandalm.assessments)
    assert by_judge == {
        **{(f"annotator{n}", GradedBy.PERSON): 999 for n in (1, 2, 3)},
        ("gpt-3.5-turbo", GradedBy.MODEL): 999,
        ("pandalm-7b", GradedBy.MODEL): 999,
    }
    assert sum(one.joint for one in pandalm.assessments) == len(pandalm.assessments)


def test_pandalms_people_agree_as_published(pandalm: Read) -> None:
    people = [verdicts(pandalm, f"annotator{n}") for n in (1, 2, 3)]
    tasks = list(people[0])
    kappas = [
        cohen_kappa([people[i][t] for t in tasks], [people[j][t] for t in tasks]).kappa
        for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    assert [round(one or 0.0, 4) for one in kappas] == [0.8520, 0.8789, 0.8617]
    assert Counter(majority(pandalm).values()) == {0.5: 105, 1.0: 422, 0.0: 472}


@pytest.mark.parametrize(("judge", "right"), [("gpt-3.5-turbo", 697), ("pandalm-7b", 667)])
def test_pandalms_judges_agree_with_the_majority_as_published(
    pandalm: Read, judge: str, right: int
) -> None:
    most, result = majority(pandalm), verdicts(pandalm, judge)
    assert sum(result[task] == most[task] for task in most) == right


def test_a_verdict_nobody_could_read_has_no_score_and_keeps_its_words(pandalm: Read) -> None:
    unread = [one for one in pandalm.assessments if one.grades[0].score is None]
    assert {(one.judge, one.reply) for one in unread} == {("gpt-3.5-turbo", "garbage")}
    assert len(unread) == 25


def test_strengths_of_pandalms_candidates_are_those_of_the_reference(pandalm: Read) -> None:
    most = majority(pandalm)
    pairs = {one.task: [grade.candidate for grade in one.grades] for one in pandalm.assessments}
    result = bradley_terry(
        [pairs[task][0] for task in most],
        [pairs[task][1] for task in most],
        np.array([most[task] for task in most], float),
    )
    strengths = {
        str(name): round(value or 0.0, 3)
        for name, value in zip(result.items, result.log_strength, strict=True)
    }
    assert strengths == {
        "llama-7b": 0.724,
        "pythia-6.9b": 0.074,
        "bloom-7b": -0.018,
        "opt-7b": -0.243,
        "cerebras-gpt-6.7B": -0.537,
    }


def test_llmbar_is_one_run_of_100_pairs_and_20_judges_in_both_orders(llmbar: Read) -> None:
    assert llmbar.counts == (1, 100, 200, 100 + 20 * 2 * 100)
    assert not llmbar.skipped
    assert llmbar.runs[0].suite == "llmbar_natural"
    assert llmbar.strangers == ["LICENSE"]
    assert Counter(one.by for one in llmbar.assessments) == {
        GradedBy.PERSON: 100,
        GradedBy.MODEL: 4000,
    }


def test_llmbars_judges_are_right_as_often_as_published(
    llmbar: Read, reference: dict[str, Any]
) -> None:
    label = verdicts(llmbar, "label")
    for judge, known in reference["llmbar_natural"].items():
        orders = [verdicts(llmbar, f"{judge}, swap = {swap}") for swap in (False, True)]
        right = [sum(order[task] == label[task] for task in label) for order in orders]
        both = sum(orders[0][task] == orders[1][task] == label[task] for task in label)
        assert (right, both) == ([known["correct_False"], known["correct_True"]], known["both"]), (
            judge
        )
        unread = sum(one is None for order in orders for one in order.values())
        assert unread == known["winner_values"].get("None", 0), judge


def test_mt_benchs_references_are_read_with_their_questions() -> None:
    read = read_files(DATA / "mt_bench")
    # 30 answers of two turns; 80 questions, of which 50 nobody answered here
    assert read.counts == (1, 60, 60, 0)
    assert read.strangers == ["LICENSE"]
    assert len(read.runs[0].provenance["judge_prompts"]) == 8  # type: ignore[arg-type]  # an object, as the test says
    second = next(one for one in read.tasks if one.id == "101-2")
    assert len(second.prompt) == 2


def test_every_real_inspect_log_is_read_whole() -> None:
    read = read_files(DATA / "inspect_logs")
    assert read.strangers == ["LICENSE"]
    assert read.counts == (4, 8, 8, 8)
    assert not read.skipped
    assert not read.notes
    assert [(one.suite, one.complete) for one in read.runs] == [
        ("popularity", False),
        ("security_guide", True),
        ("popularity", True),
        ("mmlu_0_shot", True),
    ]
    assert read.runs[0].started == "2025-05-13T00:28:13.000Z"


def test_a_cancelled_inspect_log_keeps_the_scores_it_has() -> None:
    read = read_files(next((DATA / "inspect_logs").glob("*popularity.json")))
    assert list(read.scores("match").values()) == [1.0, 1.0, 0.0]  # the log's own accuracy is 2/3
    assert [one.content for one in read.responses] == ["Yes", "No", "No"]


def test_a_model_graded_inspect_log_waits_with_the_graders_words() -> None:
    read = read_files(next((DATA / "inspect_logs").glob("*security-guide.json")))
    assert {(one.judge, one.by) for one in read.assessments} == {
        ("model_graded_fact", GradedBy.MODEL)
    }
    assert all("GRADE: C" in (one.reply or "") for one in read.assessments)
    # without the grader's
    assert (read.responses[0].input_tokens, read.responses[0].output_tokens) == (61, 17)


def test_an_inspect_archive_is_read_member_by_member() -> None:
    read = read_files(DATA / "inspect_logs/mmlu-no-summary-choices.eval")
    assert read.responses[0].where.endswith(".eval#samples/1_epoch_1.json")
    assert read.responses[0].content == "ANSWER: C"
    assert read.tasks[0].expected == ("A",)
    assert list(read.scores("choice").values()) == [0.0]


def test_an_error_rate_of_lm_eval_ranks_the_lower_one_first() -> None:
    for model in ("m-a", "m-c"):
        folder = DATA / "peers/lm_eval/out_low" / model
        own = json.loads(next(folder.glob("results_*.json")).read_text())["results"]["stub_low"][
            "error_rate,none"
        ]
        read = read_files(folder)
        scores = [
            score for score in read.scores("lm_eval", "error_rate").values() if score is not None
        ]
        assert len(scores) == 40
        assert sum(scores) / 40 == pytest.approx(1 - own)
        assert not read.skipped


def test_inspect_scorers_of_an_own_name_that_asked_a_model_wait() -> None:
    read = read_files(DATA / "peers/inspect/logs_custom")
    assert read.counts == (1, 6, 6, 18)
    assert {one.by for one in read.assessments} == {GradedBy.MODEL}
    means = {"quality": 4 / 6, "rolejudge": 5 / 6}  # as the log's own `results`
    for judge, mean in means.items():
        assert sum(score or 0.0 for score in read.scores(judge).values()) / 6 == pytest.approx(mean)
    assert all(one.input_tokens and one.output_tokens for one in read.assessments)


def test_promptfoo_sets_with_a_models_grade_in_them_wait() -> None:
    read = read_files(DATA / "peers/promptfoo")
    by_rule = [one for one in read.assessments if one.by is GradedBy.RULE]
    assert {one.judge for one in by_rule} == {"promptfoo"}
    mixed = [one for one in read.assessments if one.judge.startswith("assert-set")]
    assert [(one.by, one.grades[0].score) for one in mixed] == [(GradedBy.MODEL, 0.6)] * 2
