"""Tasks with an ideal: structure, judge by a rubric with verdicts, verify the final answer, flag;
in one command.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient

from assay.app.review import decisions, protocol
from assay.app.review.decisions import assessment_key
from assay.app.review.item_view import Showcase
from assay.app.workspace import Workspace
from assay.cli.review_item import grade_lines, material_lines
from assay.domain.identifiers import RunId
from assay.web.server import create_app
from tests.journey.conftest import Command
from tests.journey.test_references import rlhf
from tests.support.model_server import Call, ModelServer

HOME = "http://127.0.0.1:8000"
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
        return json.dumps(
            {"steps": ["Divide."], "final_answer": final, "assumptions": "", "extra": 1}
        )
    assert call.schema is not None
    (label,) = call.schema["properties"]["candidates"]["properties"]
    assert '"steps": [' in call.prompt
    right = '"final_answer": "61"' not in call.prompt
    grades = {
        "problem_understanding": {
            "evidence": [],
            "reason": "It restates the problem.",
            "score": "Yes",
        },
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
    document = assay(
        "run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json"
    ).document
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
    assert judge["on_verdicts"]
    assert judge["judge_rates"] == {"Pass": 0.5, "Partial": 0.5, "Fail": 0.0}
    assert judge["people_rates"] == {"Pass": 0.5, "Partial": 0.0, "Fail": 0.5}
    assert judge["bias"] == pytest.approx(0.25)
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
        "run",
        "raw.json",
        "--rubric",
        "rubric.yaml",
        "--judge",
        "openai/judge",
        "--stage",
        "structure",
        "--json",
    )
    assert staged.code == 0, staged.err
    assert (asked(server, "structurer"), asked(server, "judge")) == (6, 0)
    assert staged.document["state"] == "interrupted"
    assert staged.document["trials"]["done"] == 0
    resumed = assay("resume", staged.document["run_id"], "--json").document
    assert resumed["trials"]["done"] == 2
    assert (asked(server, "structurer"), asked(server, "judge")) == (6, 4)
    again = assay(
        "run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json"
    ).document
    assert again["regrade_of"] == staged.document["regrade_of"]
    assert (asked(server, "structurer"), asked(server, "judge")) == (6, 8)


def test_structures_are_in_the_results_folder_and_restored(
    assay: Command, server: ModelServer, files: Path
) -> None:
    grading = ("--rubric", "rubric.yaml", "--judge", "openai/judge", "--json")
    run = assay("run", "raw.json", *grading).document["run_id"]
    kept = [
        path
        for path in (files / "results").rglob("*")
        if path.is_file() and b"Divide." in path.read_bytes()
    ]
    assert any(run in str(path) or run in path.read_text("utf-8", "replace") for path in kept)
    lines = [
        line
        for path in kept
        if path.name.endswith(".structured.jsonl")
        for line in path.read_text().splitlines()
    ]
    structures = {row["custom_id"]: row for row in map(json.loads, lines)}
    assert set(structures) == {"101", "102", "101#ideal", "102#ideal"}
    assert structures["101#ideal"]["model"] == "openai/structurer"
    assert structures["101#ideal"]["steps"] == ["Divide."]
    assert len(lines) == 6
    assert assay("import", "results", "--rebuild", "--store", "restored.db").code == 0
    assert assay("regrade", run, *grading, "--store", "restored.db").document["trials"]["done"] == 2
    assert (asked(server, "structurer"), asked(server, "judge")) == (6, 8)


def test_an_anonymous_export_hides_verdicts_and_verifications(assay: Command, files: Path) -> None:
    run = assay(
        "run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json"
    ).document["run_id"]
    out = files / "rows.jsonl"
    waiting = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    assert (
        assay("review", "approve", *(row["id"] for row in waiting), "--reviewer", "rita").code == 0
    )
    exported = assay("export", "jsonl", "--run", run, "--anonymise", "--output", out)
    assert exported.code == 0, exported.err
    (row, *_) = (json.loads(line) for line in out.read_text("utf-8").splitlines())
    (name,) = row["verdicts"]
    assert name not in {"m1", "m2"}
    assert {row["verifications"][0]["candidate"]} == set(row["scores"]) == {name}


def test_an_unreadable_structure_reaches_a_person(
    assay: Command, server: ModelServer, files: Path
) -> None:
    server.answer = lambda call: "I take nothing apart."
    document = assay(
        "run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json"
    ).document
    assert {(row["kind"], row["fault"]) for row in document["failures"]} == {
        ("unparsable", "judge")
    }
    rows = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    assert {row["flags"][0]["kind"] for row in rows} == {"parse_error"}
    assert asked(server, "judge") == 0


def test_an_answer_is_verified_although_the_judge_cannot_be_read(
    assay: Command, server: ModelServer, files: Path
) -> None:
    server.answer = lambda call: (
        answer(call) if call.body["model"] == "structurer" else "I would rather not say."
    )
    assay("run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json")
    rows = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    kinds = {row["candidates"][0]: [flag["kind"] for flag in row["flags"]] for row in rows}
    assert kinds == {"m1": ["parse_error"], "m2": ["parse_error", "failed_verification"]}
    for row in rows:
        scores = [
            part
            for name in ("problem_understanding", "results_formulae")
            for part in ("--score", f"{row['candidates'][0]}/{name}=1")
        ]
        assert (
            assay(
                "review", "correct", row["id"], *scores, "--reason", "read", "--reviewer", "rita"
            ).code
            == 0
        )
    lines = [json.loads(line) for line in assay("export", "evaluations").out.splitlines()]
    assert {(line["model_id"], line["final_answer_verified"]) for line in lines} == {
        ("m1", True),
        ("m2", False),
    }
    assert all(
        "prose" in line["parsing_error"] and line["aggregated_score"] == "Pass" for line in lines
    )


def test_a_suite_judges_and_verifies_in_one_run(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = lambda call: json.dumps(
        {
            "candidates": {
                label: {
                    "quality": {
                        "evidence": [],
                        "reason": "A reason that says something.",
                        "score": 8,
                    }
                }
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
    assert {row["candidates"][0]: row["verifications"][0]["verified"] for row in rows} == {
        "ann": True,
        "bob": False,
    }
    means = {
        row["candidate"]: row["mean"] for row in assay("stats", "--json").document["candidates"]
    }
    assert means == {"ann": 0.8, "bob": 0.8}


def test_flat_tasks_read_as_the_nested_ones(
    assay: Command, server: ModelServer, files: Path
) -> None:
    flat = [
        {
            "task_id": 5500,
            "prompt": "Find the next number.",
            "ideal_response": "To solve this.",
            "final_answer": "\\(60\\)",
            "model_responses": [{"model_id": "m1", "response_text": "m1 answers 54"}],
            "human_evaluations": [
                {"model_id": "m1", "model_failure": True, "failure_comments": "Wrong."}
            ],
            "metadata": {"subject": "Algebra", "system_prompt": "Answer exactly."},
        }
    ]
    (files / "flat.json").write_text(json.dumps(flat), "utf-8")
    both = assay(
        "run",
        "flat.json",
        "raw.json",
        "--rubric",
        "rubric.yaml",
        "--judge",
        "openai/judge",
        "--json",
    )
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
def test_a_wrong_rubric_file_names_its_line(
    assay: Command, files: Path, change: dict[str, Any], message: str
) -> None:
    (files / "rubric.yaml").write_text(yaml.safe_dump({**RUBRIC, **change}), "utf-8")
    refused = assay("run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge")
    assert refused.code == 2
    assert "rubric.yaml:" in refused.err
    assert message in refused.err


def graded_and_approved(assay: Command) -> str:
    run = assay(
        "run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json"
    ).document["run_id"]
    waiting = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    partial = next(row for row in waiting if row["candidates"] == ["m2"])
    correction = (
        "--score",
        "m2/results_formulae=0",
        "--reason",
        "It is off by one.",
        "--reviewer",
        "rita",
    )
    assert assay("review", "correct", partial["id"], *correction).code == 0
    others = [row["id"] for row in waiting if row["id"] != partial["id"]]
    assert assay("review", "approve", *others, "--reviewer", "rita").code == 0
    return str(run)


def test_evaluations_are_exported_as_lines(assay: Command, files: Path) -> None:
    run = graded_and_approved(assay)
    lines = [
        json.loads(line) for line in assay("export", "evaluations", "--run", run).out.splitlines()
    ]
    assert sorted((line["task_id"], line["model_id"]) for line in lines) == [
        (101, "m1"),
        (101, "m2"),
        (102, "m1"),
        (102, "m2"),
    ]
    assert len({line["evaluation_id"] for line in lines}) == 4
    corrected = next(line for line in lines if line["human_corrected_scores"])
    partial = "Off by 1"
    assert corrected["parsed_rubric_scores"]["results_formulae"] == {
        "score": "Partial",
        "justification": partial,
    }
    assert corrected["human_corrected_scores"]["results_formulae"]["score"] == "No"
    assert (corrected["aggregated_score"], corrected["aggregated_number"]) == ("Fail", 0.25)
    assert (corrected["human_reviewer_id"], corrected["human_review_status"]) == (
        "rita",
        "Completed",
    )
    assert corrected["human_review_comments"] == "It is off by one."
    assert corrected["review_reasons"][0] == "m2 was judged partly right."
    assert (corrected["final_answer_verified"], corrected["needs_human_review"]) == (False, True)
    assert corrected["structured_model_response"]["response"]["final_answer"] == "61"
    assert json.loads(corrected["raw_judge_output"]["raw_content"])["report"] == "Done."
    # Each model solution was structured once, and its call belongs to one evaluation alone.
    assert sorted(line["structuring_api_calls"] for line in lines) == [1, 1, 2, 2]
    assert all(
        line["judging_api_calls"] == 1 and line["created_at"].endswith("Z") for line in lines
    )


def test_nothing_unreviewed_is_exported_as_evaluation(assay: Command, files: Path) -> None:
    run = assay(
        "run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json"
    ).document["run_id"]
    exported = assay("export", "evaluations", "--run", run)
    assert (exported.code, exported.out) == (0, "")
    assert "0 counted rows so far" in exported.err
    assert assay("export", "final-results", "--run", run, "--all").code == 2


def test_final_results_fill_a_folder_that_can_be_imported(assay: Command, files: Path) -> None:
    run = graded_and_approved(assay)
    exported = assay("export", "final-results", "--run", run, "--output", "data", "--json").document
    home = Path(exported["output"])
    assert home.parent.name == "data"
    time = home.name.removeprefix("raw_")
    assert {path.name for path in home.iterdir()} == {
        f"raw_ingested_{time}.json",
        "raw_evaluations.jsonl",
        "raw_evaluations_formatted.json",
        "raw_final_results.json",
    }
    document = json.loads((home / "raw_final_results.json").read_text("utf-8"))
    assert document == json.loads(assay("export", "final-results", "--run", run).out)
    summary = document["summary"]
    assert (summary["batch_id"], summary["models_evaluated"]) == ("raw", ["m1", "m2"])
    assert (summary["total_tasks_processed"], summary["total_evaluations_processed"]) == (2, 4)
    assert (summary["total_structuring_api_calls"], summary["total_judging_api_calls"]) == (6, 4)
    assert (summary["structuring_model"], summary["judging_model"]) == (
        "openai/structurer",
        "openai/judge",
    )
    assert {name: sums["judging"]["calls"] for name, sums in summary["by_model"].items()} == {
        "m1": 2,
        "m2": 2,
    }
    assert {name: sums["structuring"]["calls"] for name, sums in summary["by_task"].items()} == {
        "101": 3,
        "102": 3,
    }
    task = document["results"][0]
    assert (task["task_id"], task["final_answer"]) == (101, "\\(60\\)")
    assert task["structured_ideal_response"]["response"]["steps"] == ["Divide."]
    first = task["evaluations"][0]
    assert first["human_evaluation"]["model_failure"] in (True, False)
    assert (
        first["judge_evaluation"]["parsed_rubric_scores"]["problem_understanding"]["score"] == "Yes"
    )
    ingested = home / f"raw_ingested_{time}.json"
    again = assay(
        "run",
        ingested,
        "--rubric",
        "rubric.yaml",
        "--judge",
        "openai/judge",
        "--store",
        "b.db",
        "--json",
    )
    assert again.document["trials"]["done"] == 2
    assert again.document["agreement"][0]["n"] == 4


@pytest.mark.slow
def test_questions_about_a_prompt_become_keys_of_metadata(assay: Command, files: Path) -> None:
    document = raw()
    questions = [
        {"question": "Subject", "human_input_value": "Algebra"},
        {"question": "Task URL", "human_input_value": "x"},
    ]
    document["rlhf"][0]["messages"][0]["prompt_evaluation"] = [
        *questions,
        {"question": "taskId", "human_input_value": "7"},
    ]
    (files / "raw.json").write_text(json.dumps(document), "utf-8")
    graded_and_approved(assay)
    assert assay("export", "final-results", "--output", "data").code == 0
    (path,) = (files / "data").rglob("*_final_results.json")
    task = json.loads(path.read_text("utf-8"))["results"][0]
    assert task["metadata"] == {"subject": "Algebra", "task_url": "x", "taskId": "7"}


def test_exported_evaluations_can_be_anonymous(assay: Command, files: Path) -> None:
    run = graded_and_approved(assay)
    document = json.loads(assay("export", "final-results", "--run", run, "--anonymise").out)
    assert sorted(document["summary"]["models_evaluated"]) == ["candidate 1", "candidate 2"]
    judged = [each for task in document["results"] for each in task["evaluations"]]
    assert {each["model_id"] for each in judged} == {"candidate 1", "candidate 2"}
    assert {each["judge_evaluation"]["human_reviewer_id"] for each in judged} == {"reviewer 1"}


def reviewed_as(panes: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return what the review page says of each response: verdict, check, and the final answer that
    was taken out of it.
    """
    return [
        (
            pane["verdict"],
            pane["check"] and pane["check"]["message"],
            pane["structured"]["final_answer"],
        )
        for pane in panes
    ]


def test_reviewers_see_verdict_check_and_structure(assay: Command, files: Path) -> None:
    assay("run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json")
    waiting = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    partial = next(
        row["id"] for row in waiting if (row["task"], row["candidates"]) == ("101", ["m2"])
    )
    with (
        Workspace.open(files, environment={}) as workspace,
        TestClient(create_app(workspace), base_url=HOME) as client,
    ):
        item = client.get(f"/api/assessments/{partial}").json()
        assert reviewed_as(item["panes"]) == [("Partial", "Final answer does not match.", "61")]
        assert (item["final_answer"], item["ideal"]) == ("\\(60\\)", "The solution of 101.")
        showcase = Showcase(workspace.archive, workspace.journal)
        shown = showcase.item(decisions.assessment(workspace.store, assessment_key(partial)))
        lines = [line.text for line in (*material_lines(shown, (), ()), *grade_lines(shown))]
        assert "  Candidate A: Partial" in lines
        assert "  Candidate A: Final answer does not match. (math)" in lines
        assert lines[(at := lines.index("1. Divide.")) : at + 2] == [
            "1. Divide.",
            "Final answer: 61",
        ]
        assert {"The solution of 101.", "\\(60\\)"} <= {*lines}
        correction = {"pane": 0, "criterion": "results_formulae", "score": 0.0}
        decision = {
            "key": "k" * 8,
            "id": partial,
            "verb": "correct",
            "reason": "Wrong.",
            "corrections": [correction],
        }
        assert client.post("/api/decisions", json={"decisions": [decision]}).json()["results"][0][
            "ok"
        ]
        assert (
            reviewed_as(client.get(f"/api/assessments/{partial}").json()["panes"])[0][0] == "Fail"
        )


def test_a_blind_item_withholds_verdict_and_check(assay: Command, files: Path) -> None:
    run = assay(
        "run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json"
    ).document["run_id"]
    (partial, *_) = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    with (
        Workspace.open(files, environment={}) as workspace,
        TestClient(create_app(workspace), base_url=HOME) as client,
    ):
        protocol.switch(workspace, RunId(run), {"blind": 1.0}, reviewer="operator")
        for address in (
            f"/api/assessments/{partial['id']}",
            f"/assessments/{partial['id']}.json",
            "/api/review/next?desk=desk",
        ):
            text = client.get(address).text
            assert '"structured":{' in text
            assert not re.search(r'"verdict":"|Final answer (does|matches)|"math"', text), address


def test_a_review_policy_holds_for_a_file_of_answers(assay: Command, files: Path) -> None:
    given = ("run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json")
    flagged = assay(*given, "--review", "flagged")
    assert flagged.code == 0, flagged.err
    states = {
        row["candidates"][0]: row["state"]
        for row in assay("review", "list", "--run", flagged.document["run_id"], "--json").document[
            "assessments"
        ]
    }
    assert states == {"m1": "exempt", "m2": "pending"}
    none = assay(*given, "--review", "none").document
    rows = assay("review", "list", "--run", none["run_id"], "--json").document["assessments"]
    assert {row["state"] for row in rows} == {"exempt"}
    wrong = assay(*given, "--review", "some")
    assert wrong.code == 2
    assert "is not a review policy" in wrong.err


def test_a_rubric_states_its_review_policy(assay: Command, files: Path) -> None:
    (files / "rubric.yaml").write_text(yaml.safe_dump({**RUBRIC, "review": "flagged"}), "utf-8")
    given = ("run", "raw.json", "--rubric", "rubric.yaml", "--judge", "openai/judge", "--json")
    flagged = assay(*given).document
    rows = assay("review", "list", "--run", flagged["run_id"], "--json").document["assessments"]
    assert {row["candidates"][0]: row["state"] for row in rows} == {"m1": "exempt", "m2": "pending"}
    every = assay(*given, "--review", "every").document
    rows = assay("review", "list", "--run", every["run_id"], "--json").document["assessments"]
    assert {row["state"] for row in rows} == {"pending"}
    (files / "rubric.yaml").write_text(yaml.safe_dump({**RUBRIC, "review": {"sample": 2}}), "utf-8")
    wrong = assay(*given)
    assert wrong.code == 2
    assert "rubric.yaml:" in wrong.err
    assert "review.sample" in wrong.err


def test_repeated_gradings_of_an_answer_are_one_trial(
    assay: Command, server: ModelServer, files: Path
) -> None:
    given = (
        "run",
        "raw.json",
        "--rubric",
        "rubric.yaml",
        "--judge",
        "openai/judge",
        "--review",
        "none",
        "--json",
    )
    once = assay(*given).document["run_id"]
    before = asked(server, "judge")
    ran = assay(*given, "--trials", "3")
    assert ran.code == 0, ran.err
    assert asked(server, "judge") == before + 12, "two models, two tasks, three gradings"
    single, repeated = (
        assay("stats", "--run", run, "--json").document for run in (once, ran.document["run_id"])
    )
    for one, several in zip(single["candidates"], repeated["candidates"], strict=True):
        assert (several["n_trials"], several["n_tasks"], several["mean"]) == (
            one["n_trials"],
            one["n_tasks"],
            one["mean"],
        )
        assert several["ci95"] == one["ci95"]
    among = repeated["diagnostics"]["judges_among_themselves"]
    assert among["judges"] == [
        "openai/judge",
        "openai/judge (grading 2)",
        "openai/judge (grading 3)",
    ]
    seeds = {
        call.body["seed"]
        for call in [call for call in server.calls if call.body["model"] == "judge"][-12:]
    }
    assert len(seeds) == 6, "each grading of each task has its own"
    for wrong, problem in (
        ("0", "--trials: is 0, and must be at least 1"),
        ("21", "at most 20 times"),
    ):
        refused = assay(*given, "--trials", wrong)
        assert (refused.code, problem in refused.err) == (2, True)
    people = assay(
        "run", "raw.json", "--rubric", "rubric.yaml", "--judge", "human", "--trials", "2"
    )
    assert (people.code, "people grade here" in people.err) == (2, True)


def test_verdicts_of_people_in_the_file_are_the_headline(
    assay: Command, server: ModelServer, files: Path
) -> None:
    given = (
        "run",
        "raw.json",
        "--rubric",
        "rubric.yaml",
        "--judge",
        "openai/judge",
        "--review",
        "none",
        "--json",
    )
    run = assay(*given).document["run_id"]
    document = assay("stats", "--json").document
    assert document["read"]["choice"] == "with_references"
    rates = {
        row["candidate"]: {rate["verdict"]: rate["rate"] for rate in row["rates"]}
        for row in document["verdicts"]["candidates"]
    }
    # People failed m2's answer to 101 and m1's to 102; the judge gives Pass and Partial.
    assert rates == {name: {"Pass": 0.5, "Partial": 0.0, "Fail": 0.5} for name in ("m1", "m2")}
    assert "m1: Pass 50.0% (" in assay("stats").out
    alone = assay("stats", "--run", run, "--json").document["verdicts"]["candidates"]
    assert [rate["rate"] for rate in alone[1]["rates"]] == [0.0, 1.0, 0.0]
    by_verdict = assay("stats", "--criterion", "verdict", "--json").document["candidates"]
    assert [row["mean"] for row in by_verdict] == [0.5, 0.5]
    diagnostics = assay("stats", "--criterion", "verdict", "--json").document["diagnostics"]
    (judge,) = diagnostics["judge_against_references"]
    assert (judge["judge"], judge["on_verdicts"], judge["n"], judge["agreement"]) == (
        "openai/judge",
        True,
        4,
        0.25,
    )
