"""Tasks with a model solution and a final answer apart: in suites, imports, HTTP, prompts of
judges, and review.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.domain.suite import Scoring, Task
from tests.journey.conftest import Command
from tests.support.read_files import read_files

SUITE = """
name: sums
judge: openai/judge
rubric: helpfulness
tasks:
  - id: half
    prompt: What is half of 120?
    ideal: Divide 120 by two, which is 60.
    final_answer: 60
    score: SCORE
    snippets: {ann: "It is \\\\(60\\\\).", bob: "It is 61."}
"""
RLHF: dict[str, Any] = {
    "taskId": 101,
    "messages": [
        {"role": "user", "text": "What is half of 120?"},
        {
            "role": "assistant",
            "response_options": [{"model_id": "m1", "text": "60"}],
            "signal": {
                "ideal_response": "Divide 120 by two, which is 60.",
                "raw_preference_evaluation_form": [
                    {"question": "Final Answer", "human_input_value": "60"}
                ],
            },
        },
    ],
}


def test_right_answers_enter_the_digest_only_where_given() -> None:
    plain = Task(id="a", thing="a", scoring=Scoring(method="math"))
    digests = {
        plain.digest,
        Task(id="a", thing="a", scoring=Scoring(method="math"), ideal="60").digest,
        Task(id="a", thing="a", scoring=Scoring(method="math"), final_answer="60").digest,
        Task(id="a", thing="a", scoring=Scoring(method="math"), expected="60").digest,
    }
    assert plain.digest == "4753b4a422f0226e50def1dc223a3dcb"
    assert len(digests) == 4


def test_scorers_compare_with_the_final_answer(assay: Command, project: Path) -> None:
    (project / "sums.yaml").write_text(
        SUITE.replace("SCORE", "math").replace("judge: openai/judge\n", ""), "utf-8"
    )
    assert assay("run", "sums.yaml").code == 0
    shown = json.loads(assay("stats", "--json").out)
    assert {entry["candidate"]: entry["mean"] for entry in shown["candidates"]} == {
        "ann": 1.0,
        "bob": 0.0,
    }


@pytest.mark.usefixtures("server")
def test_judges_read_both_under_their_own_headings(assay: Command, project: Path) -> None:
    (project / "sums.yaml").write_text(SUITE.replace("SCORE", "judge"), "utf-8")
    prompt = assay("run", "sums.yaml", "--dry-run", "--show-prompt").out
    assert "## A model solution\n\nDivide 120 by two, which is 60." in prompt
    assert "## The right final answer\n\n60" in prompt


@pytest.mark.parametrize("column", ["expected", "ideal", "final_answer"])
def test_no_candidate_may_be_sent_a_right_answer(
    assay: Command, project: Path, column: str
) -> None:
    text = SUITE.replace("SCORE", "math").replace("judge: openai/judge\n", "")
    candidate = f'candidates: [{{name: cheat, model: echo, prompt: "It is {{{{{column}}}}} of {{{{prompt}}}}"}}]\n'
    (project / "sums.yaml").write_text(candidate + text, "utf-8")
    refused = assay("run", "sums.yaml")
    assert refused.code == 2
    assert (
        f"names {{{{{column}}}}}, the right answer, which a candidate must not see." in refused.err
    )


def test_rlhf_data_keep_the_solution_and_the_final_answer(tmp_path: Path) -> None:
    file = tmp_path / "raw.json"
    file.write_text(json.dumps({"rlhf": [RLHF]}), "utf-8")
    (task,) = read_files(file).tasks
    assert (task.ideal, task.final_answer, task.expected) == (
        "Divide 120 by two, which is 60.",
        "60",
        (),
    )


def test_mapped_columns_reach_the_export(assay: Command, project: Path) -> None:
    (project / "map.csv").write_text(
        "nr,q,sol,fin,cand,ans,pts\n1,Half?,Divide.,60,m1,60,1\n", "utf-8"
    )
    (project / "map.yaml").write_text(
        "task: nr\nprompt: q\nideal: sol\nfinal_answer: fin\ncandidate: cand\nanswer: ans\nscores: {right: pts}\n",
        "utf-8",
    )
    assert assay("import", "map.csv", "--map", "map.yaml").code == 0
    assert assay("export", "hf_jsonl", "--output", "rows.jsonl").code == 0
    lines = [json.loads(line) for line in (project / "rows.jsonl").read_text("utf-8").splitlines()]
    assert {(line["ideal"], line["final_answer"]) for line in lines} == {("Divide.", "60")}
