"""A run's stored responses graded anew: by another scorer, another judge, another rubric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.journey.conftest import Command
from tests.support.model_server import Call, ModelServer
from tests.support.sets import write_set

JUDGE = "openai/judge-1"
ANSWERS = {"small": "About 41.8, I think.", "large": "42"}


def suite(folder: Path, name: str = "numbers.yaml", **changed: Any) -> Path:
    """A suite of two models and three numeric questions."""
    document = {
        "name": "numbers",
        "trials": 2,
        "candidates": [{"name": who, "model": f"openai/{who}"} for who in ANSWERS],
        "score": "exact",
        "tasks": [{"id": f"q{n}", "prompt": f"Question {n}?", "expected": "42"} for n in range(3)],
        **changed,
    }
    path = folder / name
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


def graded(by_label: float = 7.0) -> Any:
    """Answers as candidates do, and grades every criterion alike as a judge."""

    def answer(call: Call) -> str:
        schema = call.schema
        if schema is None:
            return ANSWERS.get(call.body["model"], "no answer")
        labels = schema["properties"]["candidates"]["properties"]
        grades = {
            label: {
                criterion: {
                    "evidence": [],
                    "reason": f"{label} has a plain point on {criterion}.",
                    "score": by_label,
                }
                for criterion in result["properties"]
            }
            for label, result in labels.items()
        }
        return json.dumps({"candidates": grades, "report": "All in all."})

    return answer


def test_a_change_of_scorer_grades_stored_answers_without_a_single_call(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = graded()
    first = assay("run", suite(project), "--json").document
    asked = len(server.calls)
    assert asked == 12
    again = assay(
        "regrade",
        first["run_id"],
        "--suite",
        suite(project, "new.yaml", score={"numeric": {"tolerance": 0.01}}),
        "--json",
    )
    assert again.code == 0, again.err
    document = again.document
    assert len(server.calls) == asked
    assert document["regrade_of"] == first["run_id"]
    assert document["run_id"] != first["run_id"]
    assert document["trials"]["done"] == 6
    assert document["assessments"]["not_required"] == 12
    assert document["grades"] == {"changed": 6, "unchanged": 6, "kept_reviews": 0}
    assert {
        (one["candidate"], one["judge_before"], one["judge"], one["after"])
        for one in document["changed"]
    } == {("small", "exact", "numeric", 1.0)}
    (pair,) = document["conclusions"]
    assert pair["changed"]
    assert "large" in pair["before"]["verdict"]
    assert assay("stats", "--json").document["runs"] == [document["run_id"]]
    both = assay("stats", "--all-runs", "--json").document
    assert both["pooled"] == 1
    assert {one["candidate"]: (one["mean"], one["n_trials"]) for one in both["candidates"]} == {
        "small": (1.0, 6),
        "large": (1.0, 6),
    }
    (hides,) = (warning["text"] for warning in both["warnings"] if warning["code"] == "regraded")
    assert f"Run {document['run_id']} regraded answers of run {first['run_id']}." in hides
    assert "6 trials that counted" in hides
    assert "mixed_settings" not in {warning["code"] for warning in both["warnings"]}
    before = assay("stats", "--run", first["run_id"], "--json").document
    assert {one["candidate"]: one["mean"] for one in before["candidates"]}["small"] < 0.7


def test_regrade_keeps_reviews_of_unchanged_grades(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = graded(7.0)
    run = assay("run", write_set(project, things=2, trials=2), "--judge", JUDGE, "--json").document[
        "run_id"
    ]
    rows = assay("review", "list", "--json").document["assessments"]
    a, b, c, waiting = (row["id"] for row in rows)
    assay("review", "approve", a, "--reviewer", "rita")
    assay(
        "review",
        "correct",
        b,
        "--score",
        "nora/integrity=2/10",
        "--reason",
        "it leaks",
        "--reviewer",
        "sam",
    )
    assay("review", "reject", c, "--reason", "nonsense", "--reviewer", "rita")
    asked = len(server.calls)

    def as_before_but_once(call: Call) -> str:
        result: str = graded(7.0 if len(server.calls) > asked + 1 else 3.0)(call)
        return result

    server.answer = as_before_but_once
    document = assay("regrade", run, "--judge", "openai/judge-2", "--json").document
    assert len(server.calls) == asked + 4
    grades = document["grades"]
    assert grades["changed"] == 4
    assert grades["unchanged"] == 12
    new = assay("review", "list", "--run", document["run_id"], "--json").document["assessments"]
    kept = [row for row in new if row["state"] != "pending"]
    changed = {(one["thing"], one["trial"]) for one in document["changed"]}
    decided = {(row["thing"], row["trial"]) for row in rows[:3]}
    assert {(row["thing"], row["trial"]) for row in kept} == decided - changed
    assert grades["kept_reviews"] == len(kept)
    old = {
        (row["thing"], row["trial"]): row
        for row in assay("review", "list", "--run", run, "--json").document["assessments"]
    }
    for row in kept:
        before = old[row["thing"], row["trial"]]
        assert (row["state"], row["scores"]) == (before["state"], before["scores"])
        detail = assay("review", "show", row["id"], "--json").document
        event = detail["events"][-1]
        past = assay("review", "show", before["id"], "--json").document["events"][-1]
        assert event["reason"] == f"unchanged by regrade of {run}"
        assert event["reviewer"] == past["reviewer"]
        assert (event["via"], event["displayed"]) == ("script", False)
        assert event["corrections"] == past["corrections"]
    assert all("judge-2" in row["judge"] for row in new)
    assert waiting not in {row["id"] for row in new}


def test_regrade_keeps_a_failed_answer_as_the_candidate_s_failure(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = lambda call: "" if call.body["model"] == "small" else "42"
    first = assay("run", suite(project, trials=1), "--json")
    assert first.code == 1
    asked = len(server.calls)
    again = assay("regrade", first.document["run_id"], "--json")
    assert again.code == 1
    assert len(server.calls) == asked
    assert {(one["kind"], one["fault"]) for one in again.document["failures"]} == {
        ("empty", "candidate")
    }
    stats = assay("stats", "--json").document
    assert (
        stats["excluded"]
        == assay("stats", "--run", first.document["run_id"], "--json").document["excluded"]
    )


def test_run_that_cannot_be_regraded_is_refused_in_one_sentence(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = graded()
    run = assay("run", suite(project, trials=1), "--json").document["run_id"]
    nothing_judged = assay("regrade", run, "--judge", JUDGE)
    assert nothing_judged.code == 2
    assert "--suite" in nothing_judged.err
    tasks = [{"id": "q0", "prompt": "Another question?", "expected": "42"}]
    other = assay("regrade", run, "--suite", suite(project, "other.yaml", tasks=tasks))
    assert other.code == 2
    assert "q0" in other.err
    assert assay("regrade", "nowhere").code == 2
    new = assay("regrade", run, "--json").document["run_id"]
    extended = assay("extend", new, "--trials", "1")
    assert extended.code == 2
    assert f"assay regrade {run}" in extended.err
    assert len(assay("runs", "--json").document["runs"]) == 2


def test_a_corrected_reference_regrades_the_answers_to_it(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = graded()
    run = assay("run", suite(project, trials=1), "--json").document["run_id"]
    tasks = [{"id": f"q{n}", "prompt": f"Question {n}?", "expected": "43"} for n in range(3)]
    document = assay(
        "regrade", run, "--suite", suite(project, "mended.yaml", tasks=tasks), "--json"
    ).document
    assert document["grades"]["changed"] > 0
    assert document["trials"]["done"] == 3
    counted = assay("stats", "--json").document
    assert {one["n_trials"] for one in counted["candidates"]} == {3}


def test_the_same_judge_is_asked_again(assay: Command, server: ModelServer, project: Path) -> None:
    run = assay("run", write_set(project, things=1, trials=3), "--judge", JUDGE, "--json").document[
        "run_id"
    ]
    text = assay("regrade", run)
    assert text.code == 0
    assert len(server.calls) == 6
    assert "scores changed compared with run" in text.out


def test_regrade_shows_its_calls_first_and_keeps_its_budget(
    assay: Command, server: ModelServer, project: Path
) -> None:
    prices = {f"openai/{name}": {"input": 1.0, "output": 1.0} for name in ("judge-1", "judge-2")}
    (project / "assay.yaml").write_text(
        yaml.safe_dump({"prices": prices, "concurrency": 1}), "utf-8"
    )
    server.answer = graded()
    run = assay("run", write_set(project, things=2, trials=2), "--judge", JUDGE, "--json").document[
        "run_id"
    ]
    asked = len(server.calls)
    ahead = assay("regrade", run, "--judge", "openai/judge-2", "--dry-run", "--json").document
    assert (ahead["calls"], ahead["trials"], ahead["regrade_of"]) == (4, 4, run)
    assert ahead["most_usd"] > ahead["likely_usd"] > 0
    assert len(server.calls) == asked
    assert len(assay("runs", "--json").document["runs"]) == 1
    unknown = assay("regrade", run, "--judge", "openai/judge-3", "--budget", "1")
    assert unknown.code == 2
    assert "openai/judge-3" in unknown.err
    cap = ahead["most_usd"] / 4 * 1.05  # enough for one call at its dearest
    capped = assay("regrade", run, "--judge", "openai/judge-2", "--budget", cap, "--json")
    assert (capped.code, capped.document["state"]) == (1, "paused")
    assert capped.document["cost_usd"] <= cap
    assert capped.document["paused"]["kind"] == "budget"
