"""Tasks with an ideal: structure, judge by a rubric with verdicts, verify the final answer, flag; in one command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.journey.conftest import Command
from tests.journey.test_references import rlhf
from tests.support.model_server import Call, ModelServer

RUBRIC: dict[str, Any] = {
    "criteria": ["problem_understanding", {"name": "results_formulae", "weight": 3}],
    "structure": "openai/structurer",
    "verify": "math",
}
FINAL = {"m1": "60", "m2": "61"}


def answer(call: Call) -> str:
    """A structurer that finds the final answer, and a judge that gives Yes and Partial."""
    text = json.dumps(call.body["messages"])
    if call.body["model"] == "structurer":
        final = next((final for model, final in FINAL.items() if f"{model} answers" in text), "60")
        return json.dumps({"steps": ["Divide."], "final_answer": final, "assumptions": "", "extra": 1})
    assert call.schema is not None
    (label,) = call.schema["properties"]["candidates"]["properties"]
    assert '"steps": [' in call.prompt
    right = '"final_answer": "61"' not in call.prompt
    grades = {
        "problem_understanding": {"evidence": [], "reason": "It restates the problem.", "score": "Yes"},
        "results_formulae": {
            "evidence": [],
            "reason": "The result follows from the steps." if right else "Off by 1",
            "score": "Yes" if right else "Partial",
        },
    }
    return json.dumps({"candidates": {label: grades}, "report": "Done."})


def raw(final: str = "\\(60\\)") -> dict[str, Any]:
    document = rlhf("101", "102")
    for task in document["rlhf"]:
        task["messages"][1]["signal"]["raw_preference_evaluation_form"] = [
            {"question": "Final Answer", "human_input_value": final}
        ]
    return document


@pytest.fixture
def files(project: Path, server: ModelServer) -> Path:
    (project / "raw.json").write_text(json.dumps(raw()), "utf-8")
    (project / "rubric.yaml").write_text(yaml.safe_dump(RUBRIC), "utf-8")
    server.answer = answer
    return project


def asked(server: ModelServer, model: str) -> int:
    return sum(call.body["model"] == model for call in server.calls)


def test_raw_answers_are_structured_judged_verified_and_flagged(
    assay: Command, server: ModelServer, files: Path
) -> None:
    document = assay("run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json").document
    assert document["failures"] == []
    # Four responses, and each ideal once although two candidates answer its task.
    assert (asked(server, "structurer"), asked(server, "judge")) == (6, 4)
    rows = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    by_name = {(row["task"], row["candidates"][0]): row for row in rows}
    right, partial = by_name["101", "m1"], by_name["101", "m2"]
    assert right["verdicts"] == {"m1": "Pass"}
    assert right["scores"] == {"m1": 1.0}
    assert right["flags"] == []
    assert [row["verified"] for row in right["verifications"]] == [True]
    assert right["verifications"][0]["message"] == "Final answer matches."
    assert partial["verdicts"] == {"m2": "Partial"}
    assert partial["scores"] == {"m2": 0.625}
    assert [row["kind"] for row in partial["flags"]] == [
        "partial_score",
        "trivial_justification",
        "failed_verification",
    ]
    assert [row["verified"] for row in partial["verifications"]] == [False]
    (judge,) = document["agreement"]
    assert (judge["n"], judge["agreement"]) == (4, 0.25)
    assert judge["confusion"]["Fail"] == {"Pass": 1, "Partial": 1, "Fail": 0}
    shown = assay("show", partial["id"]).out
    assert "m2: Partial" in shown
    assert "m2: Final answer does not match. (math)" in shown
    answered = assay("show", document["run_id"], "--json").document["answered"]
    assert {(row["role"], row["name"], row["calls"]) for row in answered} == {
        ("structurer", "openai/structurer", 6),
        ("judge", "openai/judge", 4),
    }


def test_a_stage_stops_before_judging_and_nothing_is_asked_twice(
    assay: Command, server: ModelServer, files: Path
) -> None:
    staged = assay(
        "run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--stage", "structure", "--json"
    )
    assert staged.code == 0, staged.err
    assert (asked(server, "structurer"), asked(server, "judge")) == (6, 0)
    assert staged.document["state"] == "interrupted"
    assert staged.document["trials"]["done"] == 0
    resumed = assay("resume", staged.document["run_id"], "--json").document
    assert resumed["trials"]["done"] == 2
    assert (asked(server, "structurer"), asked(server, "judge")) == (6, 4)
    again = assay("run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json").document
    assert again["regrade_of"] == staged.document["regrade_of"]
    assert (asked(server, "structurer"), asked(server, "judge")) == (6, 8)


def test_structures_are_in_the_results_folder_and_restored(assay: Command, server: ModelServer, files: Path) -> None:
    grading = ("--rubric", "rubric.yaml", "--judge", "openai/judge", "--json")
    run = assay("run", "raw.json", *grading).document["run_id"]
    kept = [path for path in (files / "results").rglob("*") if path.is_file() and b"Divide." in path.read_bytes()]
    assert any(run in str(path) or run in path.read_text("utf-8", "replace") for path in kept)
    assert assay("import", "results", "--rebuild", "--store", "restored.db").code == 0
    assert assay("regrade", run, *grading, "--store", "restored.db").document["trials"]["done"] == 2
    assert (asked(server, "structurer"), asked(server, "judge")) == (6, 8)


def test_an_anonymous_export_hides_verdicts_and_verifications(assay: Command, files: Path) -> None:
    run = assay("run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json").document["run_id"]
    out = files / "rows.jsonl"
    waiting = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    assert assay("review", "approve", *(row["id"] for row in waiting), "--reviewer", "rita").code == 0
    exported = assay("export", "jsonl", "--run", run, "--anonymise", "--output", out)
    assert exported.code == 0, exported.err
    (row, *_) = (json.loads(line) for line in out.read_text("utf-8").splitlines())
    (name,) = row["verdicts"]
    assert name not in {"m1", "m2"}
    assert {row["verifications"][0]["candidate"]} == set(row["scores"]) == {name}


def test_an_unreadable_structure_reaches_a_person(assay: Command, server: ModelServer, files: Path) -> None:
    server.answer = lambda call: "I take nothing apart."
    document = assay("run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json").document
    assert {(row["kind"], row["fault"]) for row in document["failures"]} == {("unparsable", "judge")}
    rows = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    assert {row["flags"][0]["kind"] for row in rows} == {"parse_error"}
    assert asked(server, "judge") == 0


def test_a_suite_judges_and_verifies_in_one_run(assay: Command, server: ModelServer, project: Path) -> None:
    server.answer = lambda call: json.dumps(
        {
            "candidates": {
                label: {"quality": {"evidence": [], "reason": "A reason that says something.", "score": 8}}
                for label in (call.schema or {})["properties"]["candidates"]["properties"]
            },
            "report": "",
        }
    )
    suite = {
        "name": "sums",
        "judge": {"model": "openai/judge", "mode": "each"},
        "review": "none",
        "rubric": ["quality"],
        "tasks": [
            {
                "id": "half",
                "prompt": "What is half of 120?",
                "final_answer": "\\(60\\)",
                "score": ["judge", "math"],
                "snippets": {"ann": "60", "bob": "It is 61."},
            }
        ],
    }
    (project / "sums.yaml").write_text(yaml.safe_dump(suite), "utf-8")
    run = assay("run", "sums.yaml", "--json").document
    rows = assay("review", "list", "--run", run["run_id"], "--json").document["assessments"]
    assert {row["candidates"][0]: row["verifications"][0]["verified"] for row in rows} == {"ann": True, "bob": False}
    means = {row["candidate"]: row["mean"] for row in assay("stats", "--json").document["candidates"]}
    assert means == {"ann": 0.8, "bob": 0.8}


def test_flat_tasks_read_as_the_nested_ones(assay: Command, server: ModelServer, files: Path) -> None:
    flat = [
        {
            "task_id": 5500,
            "prompt": "Find the next number.",
            "ideal_response": "To solve this.",
            "final_answer": "\\(60\\)",
            "model_responses": [{"model_id": "m1", "response_text": "m1 answers 54"}],
            "human_evaluations": [{"model_id": "m1", "model_failure": True, "failure_comments": "Wrong."}],
            "metadata": {"subject": "Algebra", "system_prompt": "Answer exactly."},
        }
    ]
    (files / "flat.json").write_text(json.dumps(flat), "utf-8")
    both = assay("run", "flat.json", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json")
    assert both.code == 0, both.err
    assert [document["trials"]["done"] for document in both.document] == [1, 2]
    rows = assay("review", "list", "--state", "not_required", "--json").document["assessments"]
    (failed,) = (row for row in rows if row["task"] == "5500")
    assert failed["grades"][0]["criterion"] == "Model Failure"
    assert (failed["scores"], failed["grades"][0]["reason"]) == ({"m1": 0.0}, "Wrong.")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verify": "judge"}, "verify"),
        ({"structure": {"model": "openai/structurer", "prompt": "Take it apart."}}, "{{answer}}"),
        ({"flags": {"trivial": True}}, "trivial_chars"),
        ({"scores": {"Yes": 1}}, "at least two"),
    ],
)
def test_a_wrong_rubric_file_names_its_line(assay: Command, files: Path, change: dict[str, Any], message: str) -> None:
    (files / "rubric.yaml").write_text(yaml.safe_dump({**RUBRIC, **change}), "utf-8")
    refused = assay("run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge")
    assert refused.code == 2
    assert "rubric.yaml:" in refused.err
    assert message in refused.err
