"""Ways of judging from the suite file to the statistics: pairs in both orders, judges that take
turns.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from tests.journey.conftest import Command
from tests.support.model_server import Call, ModelServer

SNIPPETS = {"nora": "good work", "omar": "fair work", "pia": "poor work"}
WORTH = {"good": 9.0, "fair": 6.0, "poor": 2.0}


def suite(
    folder: Path, judge: Any, *, trials: int = 2, tasks: int = 2, names: int = 3, **changed: Any
) -> Path:
    """A suite whose snippets say how good they are."""
    brought = dict(list(SNIPPETS.items())[:names])
    document = {
        "name": "works",
        "trials": trials,
        "judge": judge,
        "tasks": [
            {"id": f"t{n}", "context": f"Rule {n}.", "snippets": brought} for n in range(tasks)
        ],
        **changed,
    }
    path = folder / "works.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


def by_worth(call: Call) -> str:
    """Judges by what the snippets say: the better of two, or a score each."""
    worth = [
        (label, WORTH[word])
        for label, word in re.findall(r'label="(\w+)">\s*`{3,}\s*(\w+) work', call.prompt)
    ]
    assert call.schema is not None
    if "verdict" in call.schema["properties"]:
        best = max(worth, key=lambda one: one[1])[0]
        return json.dumps({"reason": f"{best} is the better work.", "verdict": best})
    grades = {
        label: {
            name: {"evidence": [], "reason": f"{label} shows it in {name}.", "score": score}
            for name in call.schema["properties"]["candidates"]["properties"][label]["properties"]
        }
        for label, score in worth
    }
    return json.dumps({"candidates": grades, "report": ""})


def first_shown(call: Call) -> str:
    """A judge that always prefers what it reads first."""
    label = re.findall(r'label="(\w+)"', call.prompt)[0]
    return json.dumps({"reason": "I liked the first.", "verdict": label})


def test_pairs_are_judged_in_both_orders_and_reviewed_as_any_grading(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = by_worth
    path = suite(project, {"model": "openai/judge-1", "mode": "pairwise"})
    ahead = assay("run", path, "--dry-run", "--json").document
    assert ahead["calls"] == 2 * 2 * 6
    ran = assay("run", path, "--json")
    assert ran.code == 0, ran.err
    assert len(server.calls) == 2 * 2 * 6
    assert ran.document["assessments"]["pending"] == 4
    rows = assay("review", "list", "--json").document["assessments"]
    assert rows[0]["scores"] == {"nora": 1.0, "omar": 0.5, "pia": 0.0}
    assert {grade["criterion"] for grade in rows[0]["grades"]} == {"preference"}
    ids = [row["id"] for row in rows]
    assay(
        "review",
        "correct",
        ids[0],
        "--score",
        "omar=1",
        "--score",
        "nora=0.5",
        "--reason",
        "I see it otherwise",
    )
    assert assay("review", "approve", *ids[1:]).code == 0
    means = {
        one["candidate"]: one["mean"] for one in assay("stats", "--json").document["candidates"]
    }
    assert means == {"nora": 0.875, "omar": 0.625, "pia": 0.0}
    ranked = assay("rank", "--json").document
    strengths = ranked["preferences"]
    assert strengths["candidates"][0]["candidate"] == "nora"
    assert strengths["comparisons"] == 12
    assert strengths["reason"] == "separation"
    assert strengths["candidates"][-1]["strength"] is None
    text = assay("rank").out
    assert "preferred" in text


def test_a_judge_that_follows_the_order_is_flagged_and_its_pairs_are_ties(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = first_shown
    assay(
        "run",
        suite(project, {"model": "openai/judge-1", "mode": "pairwise"}, names=2, review="flagged"),
        "--json",
    )
    rows = assay("review", "list", "--json").document["assessments"]
    assert {row["state"] for row in rows} == {"pending"}
    assert all(row["scores"] == {"nora": 0.5, "omar": 0.5} for row in rows)
    assert {flag["kind"] for row in rows for flag in row["flags"]} == {"order_decides"}
    listed = assay("review", "list").out
    assert "uncalibrated" in listed


def test_a_pair_is_regraded_and_rerun_as_any_other(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = by_worth
    run = assay(
        "run",
        suite(project, {"model": "openai/judge-1", "mode": "pairwise"}, names=2, trials=1),
        "--json",
    ).document["run_id"]
    (first, *_) = assay("review", "list", "--json").document["assessments"]
    assay("review", "approve", first["id"])
    again = assay("review", "rerun", first["id"], "--note", "mind the rules", "--json")
    assert again.code == 0, again.err
    assert "mind the rules" in server.calls[-1].prompt
    document = assay("regrade", run, "--json").document
    assert document["grades"]["changed"] == 0


def test_an_unreadable_verdict_is_asked_again_by_itself(
    assay: Command, server: ModelServer, project: Path
) -> None:
    items: list[str] = []

    def once_nonsense(call: Call) -> str:
        items.append("" if len(items) == 1 else by_worth(call))
        return items[-1] or "It depends."

    server.answer = once_nonsense
    path = suite(
        project, {"model": "openai/judge-1", "mode": "pairwise"}, names=2, trials=1, tasks=1
    )
    ran = assay("run", path, "--json")
    assert ran.code == 0
    assert len(server.calls) == 3
    assert ran.document["tokens"]["output"] >= 3, "every call that was paid for is counted"


def test_judges_take_turns_also_in_trials_that_are_added(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = by_worth
    path = suite(project, {"rotate": ["openai/judge-1", "openai/judge-2"]}, trials=3, tasks=1)
    assert assay("run", path, "--dry-run", "--json").document["calls"] == 3
    run = assay("run", path, "--json").document["run_id"]
    assert assay("extend", run, "--trials", 2, "--json").code == 0
    rows = assay("review", "list", "--json").document["assessments"]
    assert {(row["trial"], row["judge"]) for row in rows} == {
        (1, "openai/judge-1"),
        (2, "openai/judge-2"),
        (3, "openai/judge-1"),
        (4, "openai/judge-2"),
        (5, "openai/judge-1"),
    }
    assay("review", "approve", *[row["id"] for row in rows])
    again = assay("regrade", run, "--json").document
    assert again["grades"] == {"changed": 0, "unchanged": 15, "kept_reviews": 5}
    one_judge = assay("regrade", run, "--judge", "openai/judge-3", "--json").document
    assert one_judge["grades"]["unchanged"] == 15
    result = assay("review", "list", "--run", one_judge["run_id"], "--json").document["assessments"]
    assert {row["judge"] for row in result} == {"openai/judge-3"}
    assert len(result) == 5


def test_panel_combines_a_fixed_judge_with_rotating_judges(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = by_worth
    judges = [
        "openai/always",
        {"rotate": ["openai/judge-1", {"model": "openai/judge-2", "mode": "each"}]},
    ]
    assay("run", suite(project, judges, tasks=1), "--json")
    rows = assay("review", "list", "--json").document["assessments"]
    assert sorted({(row["trial"], row["judge"]) for row in rows}) == [
        (1, "openai/always"),
        (1, "openai/judge-1"),
        (2, "openai/always"),
        (2, "openai/judge-2"),
    ]


def test_a_wrong_rotation_is_said_with_its_place(assay: Command, project: Path) -> None:
    path = suite(project, {"rotate": ["openai/judge-1"]})
    output = assay("validate", path)
    assert output.code == 2
    assert "judge.rotate" in output.err + output.out
