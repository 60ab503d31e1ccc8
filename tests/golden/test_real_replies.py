"""Real replies of real models, read and compared with what their sources read out of them.

The data is not part of this repository: it lies in `shared/data` beside it, or where ASSAY_SHARED
says. What it is and where it came from stands in its own DATA.md. The floors below are the rates
measured when these tests were written.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from assay.domain.suite import Criterion, Rubric
from assay.scoring.evaluator import UnreadableReply
from assay.scoring.json_repair import read_loosely
from assay.scoring.reply_parser import read_grading

DATA = Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[3] / "shared")) / "data"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the real data is not at {DATA}; set ASSAY_SHARED to its folder"
)

LONE = {"it": "A"}


def read(text: str, rubric: Rubric) -> dict[str, float | None] | None:
    """Raw score by criterion, None when unreadable."""
    try:
        grades = read_grading(text, labels=LONE, rubric=rubric).grades
    except UnreadableReply:
        return None
    return {
        criterion: grade.score.raw if grade.score else None
        for (_, criterion), grade in grades.items()
    }


def test_every_vlm_answer_is_found_in_its_raw_text() -> None:
    """2,793 rows of six models: bare, fenced and after prose; 850 are reasoning traces, five of
    which hold an answer.
    """
    answers: Counter[str] = Counter()
    responses = unread = 0
    for line in (DATA / "vlm_raw_outputs/judgments.jsonl").read_text().splitlines():
        row = json.loads(line)
        items = [
            document.value["answer"]
            for document in read_loosely(row["trace_text"]).documents
            if isinstance(document.value, dict)
            and document.value.get("answer") in ("left", "right")
        ]
        if items:
            answers[f"{row['model']}={items[-1]}"] += 1
        if row["trace_source_field"] == "raw_response":
            responses += 1
            unread += not items
    known = json.loads((DATA / "reference/reference.json").read_text())["vlm_raw_outputs"][
        "parsed_answer_by_model"
    ]
    assert (responses, unread) == (1943, 0)
    assert dict(answers) == known


@pytest.mark.slow
def test_eqbench_scores_are_read_as_their_source_read_them() -> None:
    """8,471 replies of 50 models with four scores each, most of them given twice; the last ones
    count.
    """
    outcomes: Counter[str] = Counter()
    for path in sorted((DATA / "eqbench/results").glob("*.json")):
        for iteration in json.loads(path.read_text())["raw_results"].values():
            if not isinstance(iteration, dict):
                continue
            for question, text in (iteration.get("raw_inference") or {}).items():
                truth = iteration["respondent_answers"][question]
                wanted: dict[str, Any] = truth["first_pass"] | {
                    name: score
                    for name, score in (truth.get("revised") or {}).items()
                    if name in truth["first_pass"]
                }
                if not wanted:
                    continue
                got = read(text, Rubric(criteria=tuple(Criterion(name=name) for name in wanted)))
                outcomes[
                    _agreement(got, {name: float(score) for name, score in wanted.items()})
                ] += 1
    total = sum(outcomes.values())
    assert total == 8471
    assert outcomes["unreadable"] == 0
    assert outcomes["equal"] >= 8424
    assert outcomes["equal"] + outcomes["the source dropped decimals"] >= 8450
    assert outcomes["other"] / total < 0.003


def _agreement(got: dict[str, float | None] | None, wanted: dict[str, float]) -> str:
    if got is None:
        return "unreadable"
    if got == wanted:
        return "equal"
    if all(
        (score := got.get(name)) is not None and int(score) == value
        for name, value in wanted.items()
    ):
        return "the source dropped decimals"
    return "other"


PREFERENCE = Rubric(
    criteria=(
        Criterion(
            name="preference", low=0, high=1, labels=(("Output (a)", 1.0), ("Output (b)", 0.0))
        ),
    )
)
RATING = Rubric(criteria=(Criterion(name="quality"),))


def test_llmbar_completions_are_read_as_their_winners() -> None:
    """3,600 verdicts in prose and 400 bare ratings of six judges; thirteen verdicts are empty or
    name no winner.

    Of the 24 that differ, 22 are of one judge (PaLM2/CoT), whose text names one output as better
    where the source's own reading has the other; the remaining two contradict themselves.
    """
    verdicts: Counter[str] = Counter()
    ratings: Counter[str] = Counter()
    for path in sorted((DATA / "llmbar_natural/evaluators").glob("*/*/result.json")):
        for row in json.loads(path.read_text()):
            for result in row["results"]:
                for key, told in result.items():
                    if key.startswith("score"):
                        got = read(told[0], RATING)
                        ratings[
                            "read" if got and got["quality"] == float(told[0]) else "unread"
                        ] += 1
                    elif "completion" in told:
                        verdicts[_verdict(told, swapped=key == "swap = True")] += 1
    assert ratings == {"read": 400}
    assert sum(verdicts.values()) == 3600
    assert verdicts["equal"] >= 3563
    assert verdicts["unreadable, and the source found no winner either"] == 13
    assert verdicts["unreadable"] == 0


def _verdict(told: dict[str, Any], *, swapped: bool) -> str:
    got = read(told["completion"][0], PREFERENCE)
    if got is None:
        return (
            "unreadable, and the source found no winner either"
            if told["winner"] in (None, "None")
            else "unreadable"
        )
    winner = "1" if (got["preference"] == 1.0) is not swapped else "2"
    return "equal" if winner == told["winner"] else "differs"


def test_inspect_graders_are_read_as_their_values() -> None:
    grade = Rubric(
        criteria=(Criterion(name="grade", low=0, high=1, labels=(("C", 1.0), ("I", 0.0))),)
    )
    read_ones = 0
    for path in sorted((DATA / "inspect_logs").glob("*.json")):
        for sample in json.loads(path.read_text()).get("samples") or []:
            told = (sample.get("scores") or {}).get("model_graded_fact")
            if told:
                assert read(told["explanation"], grade) == {
                    "grade": 1.0 if told["value"] == "C" else 0.0
                }
                read_ones += 1
    assert read_ones == 3


def test_the_reader_agrees_with_json_on_every_document_that_is_json() -> None:
    """JSONTestSuite's `y_` files must read as json reads them; nothing of the rest may raise."""
    agreed = 0
    for path in sorted((DATA / "malformed/json_test_suite").glob("*.json")):
        text = path.read_bytes().decode("utf-8", "replace")
        documents = read_loosely(text).documents
        if path.name.startswith("y_") and isinstance(value := json.loads(text), dict | list):
            if any(
                odd in text
                for odd in ("\\u0000", "\\ud8", "\\uD8", "\\uDFAA", "\\b", "\\uDB", "\\uD83F")
            ):
                continue
            assert [entry.value for entry in documents] == [value], path.name
            agreed += 1
    assert agreed >= 77
