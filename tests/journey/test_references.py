"""People's grades that came with the data: no judge takes their place, and each judge is compared
with them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.journey.conftest import Command
from tests.support.model_server import Call, ModelServer

FAILED = {("101", "m2"), ("102", "m1"), ("103", "m2")}
"""Responses that people marked as failures; the judge agrees with all but the first."""


def rlhf(*tasks: str) -> dict[str, Any]:
    """Tasks with the responses of two models and people's forms."""
    return {
        "rlhf": [
            {
                "taskId": int(task),
                "messages": [
                    {"role": "user", "text": f"Question {task}?"},
                    {
                        "role": "assistant",
                        "response_options": [
                            {"model_id": model, "text": f"{model} answers {task}"}
                            for model in ("m1", "m2")
                        ],
                        "signal": {
                            "ideal_response": f"The solution of {task}.",
                            "human_evals": [
                                {
                                    "model_id": model,
                                    "evaluation_form": [
                                        {
                                            "question": "Model Failure",
                                            "human_input_value": "Yes"
                                            if (task, model) in FAILED
                                            else "No",
                                        }
                                    ],
                                }
                                for model in ("m1", "m2")
                            ],
                        },
                    },
                ],
            }
            for task in tasks
        ]
    }


def graded(call: Call) -> str:
    """Grades 10 what people passed and 0 what they failed, but 10 for m2's answer to 101."""
    text = json.dumps(call.body["messages"])
    failed = any(f"{model} answers {task}" in text for task, model in FAILED - {("101", "m2")})
    assert call.schema is not None
    grade: dict[str, Any] = {
        "evidence": [],
        "reason": "A plain reason for it.",
        "score": 0 if failed else 10,
    }
    labels = call.schema["properties"]["candidates"]["properties"]
    return json.dumps(
        {"candidates": {label: {"quality": grade} for label in labels}, "report": "Done."}
    )


@pytest.fixture
def imported(assay: Command, server: ModelServer, project: Path) -> str:
    (project / "raw.json").write_text(json.dumps(rlhf("101", "102", "103")), "utf-8")
    server.answer = graded
    (run,) = assay("import", "raw.json", "--json").document["run_ids"]
    return str(run)


def means(assay: Command, *filters: str) -> dict[str, Any]:
    document = assay("stats", *filters, "--json").document
    return {row["candidate"]: (row["mean"], row["n_trials"]) for row in document["candidates"]}


def test_a_regrade_leaves_peoples_numbers_where_they_are(assay: Command, imported: str) -> None:
    before = means(assay)
    assert before == {"m1": (pytest.approx(2 / 3), 3), "m2": (pytest.approx(1 / 3), 3)}
    document = assay("regrade", imported, "--judge", "openai/judge", "--json").document
    waiting = [
        row["id"]
        for row in assay("review", "list", "--state", "pending", "--json").document["assessments"]
    ]
    assert len(waiting) == 6
    assert means(assay) == before
    assay("review", "approve", *waiting, "--reviewer", "rita")
    assert means(assay) == before
    assert means(assay, "--run", document["run_id"])["m2"] == (pytest.approx(2 / 3), 3)
    assert means(assay, "--judge", "openai/judge")["m2"] == (pytest.approx(2 / 3), 3)
    pooled = assay("stats", "--json").document
    assert (pooled["read"]["choice"], pooled["pooled"]) == ("with_references", 1)
    assert pooled["excluded"]["pending"] == 0
    (warning,) = (row["text"] for row in pooled["warnings"] if row["code"] == "regraded")
    assert warning.startswith(f"People's grades that came with the data of run {imported} count.")
    assert f"3 trials in run {document['run_id']}" in warning


def test_a_regrade_says_how_the_judge_agrees_with_people(assay: Command, imported: str) -> None:
    document = assay("regrade", imported, "--judge", "openai/judge", "--json").document
    (judge,) = document["agreement"]
    assert judge["judge"] == "openai/judge"
    assert judge["agreement"] == pytest.approx(5 / 6)
    assert (judge["n"], judge["n_tasks"]) == (6, 3)
    assert judge["ci95"][0] < 5 / 6 < judge["ci95"][1]
    assert judge["confusion"]["Fail"] == {"Pass": 1, "Partial": 0, "Fail": 2}
    assert judge["confusion"]["Pass"] == {"Pass": 3, "Partial": 0, "Fail": 0}
    assert judge["by_candidate"] == {"m1": 1.0, "m2": pytest.approx(2 / 3)}
    assert judge["kappa"] == pytest.approx(2 / 3)
    assert document["grades"] == {"changed": 0, "unchanged": 0, "kept_reviews": 0}
    beside = assay("stats", "--json").document["diagnostics"]["judge_against_references"]
    assert beside == document["agreement"]
    text = assay("stats").out
    assert "openai/judge agrees with people on 83.3% of 6 responses (plausible" in text
    assert "Disagreements: Fail judged Pass 1." in text


def test_references_survive_a_restore(assay: Command, imported: str, project: Path) -> None:
    run = assay("regrade", imported, "--judge", "openai/judge", "--json").document["run_id"]
    before = means(assay)
    assert assay("import", "results", "--rebuild", "--store", "restored.db").code == 0
    assert means(assay, "--store", "restored.db") == before
    assert assay("stats", "--run", run, "--store", "restored.db", "--json").code == 0


def test_references_serve_as_calibration_samples(assay: Command, imported: str) -> None:
    measured = assay("calibrate", "openai/judge", "--samples", imported, "--json").document
    assert {
        sample["id"]: (sample["expected"], sample["judged"]) for sample in measured["samples"]
    } == {
        "101/m1/1": (1.0, 1.0),
        "101/m2/1": (0.0, 1.0),
        "102/m1/1": (0.0, 0.0),
        "102/m2/1": (1.0, 1.0),
        "103/m1/1": (1.0, 1.0),
        "103/m2/1": (0.0, 0.0),
    }
