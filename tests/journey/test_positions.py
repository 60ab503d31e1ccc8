"""The position of candidates in a joint prompt, read from the bytes that a model server
receives.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.journey.conftest import Command
from tests.support.model_server import Call, Mishap, ModelServer

NAMES = ("nora", "omar", "pia")


def suite(folder: Path, *, models: bool, trials: int = 6, tasks: int = 2, **changed: Any) -> Path:
    """A suite whose candidates' responses hold their names, as snippets or as answers of models."""
    each = {name: f"work of {name}" for name in NAMES}
    document: dict[str, Any] = {
        "name": "positions",
        "trials": trials,
        "judge": "openai/judge-1",
        "parameters": {"seed": 7},
        "tasks": [
            {
                "id": f"t{n}",
                "score": "judge",
                **({"prompt": f"Question {n}?"} if models else {"snippets": each}),
            }
            for n in range(tasks)
        ],
        **changed,
    }
    if models:
        document["candidates"] = [{"name": name, "model": f"openai/{name}"} for name in NAMES]
    path = folder / "positions.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


def answer(call: Call) -> str:
    """Answers as a candidate with its name; as a judge, scores by the position in the prompt: 9, 6,
    3.
    """
    if call.schema is None:
        return f"work of {call.body['model']}"
    properties = call.schema["properties"]
    if "verdict" in properties:
        return json.dumps({"reason": "The first.", "verdict": properties["verdict"]["enum"][0]})
    grades = {
        label: {
            name: {"evidence": [], "reason": f"{label} on {name}.", "score": score}
            for name in properties["candidates"]["properties"][label]["properties"]
        }
        for label, score in zip(labels_in(call), (9, 6, 3), strict=False)
    }
    return json.dumps({"candidates": grades, "report": ""})


def judged(server: ModelServer, model: str = "judge-1") -> list[Call]:
    return [call for call in server.calls if call.body["model"] == model]


def labels_in(call: Call) -> list[str]:
    """Labels of the blocks, in the order of the request's text."""
    return re.findall(r'<candidate-\w+ label="(\w+)">', call.prompt)


def order_in(call: Call) -> tuple[str, ...]:
    """Names of the candidates, in the order of their blocks."""
    return tuple(re.findall(r"work of (\w+)", call.prompt))


def by_task(calls: list[Call], where: str) -> dict[str, list[tuple[str, ...]]]:
    orders: dict[str, list[tuple[str, ...]]] = {}
    for call in calls:
        (task,) = set(re.findall(where, call.prompt))
        orders.setdefault(task, []).append(order_in(call))
    return {task: sorted(drawn) for task, drawn in orders.items()}


@pytest.mark.parametrize("models", [False, True])
def test_each_candidate_stands_equally_often_in_each_position(
    assay: Command, server: ModelServer, project: Path, models: bool
) -> None:
    server.answer = answer
    assert assay("run", suite(project, models=models), "--json").code == 0
    calls = judged(server)
    assert len(calls) == 12
    assert all(labels_in(call) == ["A", "B", "C"] for call in calls), (
        "blocks stand in the order of their labels"
    )
    assert all(
        call.schema is not None
        and [*call.schema["properties"]["candidates"]["properties"]] == ["A", "B", "C"]
        for call in calls
    )
    for orders in by_task(calls, r"# (t\d)").values():
        assert len(orders) == 6
        for position in range(3):
            assert set(Counter(order[position] for order in orders).values()) == {2}
        for one, other in combinations(NAMES, 2):
            assert sum(order.index(one) < order.index(other) for order in orders) == 3
    assert "order is drawn by lot" in calls[0].prompt


def test_each_judge_of_a_panel_sees_an_order_of_its_own(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = answer
    judges = ["openai/judge-1", "openai/judge-2"]
    assert (
        assay("run", suite(project, models=False, judge=judges, tasks=4, trials=3), "--json").code
        == 0
    )
    orders = [by_task(judged(server, judge.split("/")[1]), r"# (t\d)") for judge in judges]
    assert orders[0] != orders[1]
    for judge in orders:
        assert all(
            Counter(order[0] for order in task) == dict.fromkeys(NAMES, 1)
            for task in judge.values()
        )


def test_judges_that_take_turns_are_balanced_each(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = answer
    rotation = {"rotate": ["openai/judge-1", "openai/judge-2"]}
    assert assay("run", suite(project, models=False, judge=rotation), "--json").code == 0
    for name in ("judge-1", "judge-2"):
        for orders in by_task(judged(server, name), r"# (t\d)").values():
            assert Counter(order[0] for order in orders) == dict.fromkeys(NAMES, 1)


def test_pairs_are_asked_in_both_orders_and_the_prompt_says_so(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = answer
    judge = {"model": "openai/judge-1", "mode": "pairwise"}
    assert assay("run", suite(project, models=True, judge=judge, trials=2), "--json").code == 0
    for orders in by_task(judged(server), r"# (t\d)").values():
        assert len(orders) == 2 * 6
        assert set(Counter(orders).values()) == {2}
    text = judged(server)[0].prompt
    assert "once in each order" in text
    assert "by lot" not in text


def test_code_arena_shows_one_page_a_prompt_under_one_label(
    assay: Command, server: ModelServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CHROMIUM", "/nowhere/chromium")
    page = "```html\n<p>work of {}</p>\n```"
    server.answer = lambda call: (
        page.format(call.body["model"]) if call.schema is None else answer(call)
    )
    path = suite(project, models=True, trials=2, score="code_arena")
    path.write_text(path.read_text().replace("score: judge", "score: code_arena"))
    assert assay("run", path, "--json").code == 0
    calls = judged(server)
    assert Counter(order_in(call) for call in calls) == {(name,): 4 for name in NAMES}
    assert {tuple(labels_in(call)) for call in calls} == {("A",)}
    assert not any("lot" in call.prompt for call in calls)


def test_a_resume_does_not_change_the_prompt(
    assay: Command, server: ModelServer, project: Path
) -> None:
    path = suite(project, models=True, trials=3)
    server.answer = answer
    assert assay("run", path, "--json").code == 0
    before = sorted(call.prompt for call in judged(server))
    server.forget()
    server.script([Mishap.HTTP_400])
    run = assay("run", path, "--concurrency", 1, "--json").document
    assert run["trials"]["failed"] > 0
    assert assay("resume", run["run_id"], "--json").code == 0
    assert sorted(call.prompt for call in judged(server)) == before


@pytest.mark.slow
def test_a_rerun_and_a_regrade_draw_the_order_again(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = answer
    run = assay("run", suite(project, models=False, tasks=4, trials=3), "--json").document["run_id"]
    first = by_task(judged(server), r"# (t\d)")
    server.forget()
    for row in assay("review", "list", "--json").document["assessments"]:
        assert assay("review", "rerun", row["id"], "--json").code == 0
    rerun = by_task(judged(server), r"# (t\d)")
    server.forget()
    assert assay("regrade", run, "--json").code == 0
    regraded = by_task(judged(server), r"# (t\d)")
    for orders in (rerun, regraded):
        assert orders != first
        assert all(
            set(Counter(order[0] for order in task).values()) == {1} for task in orders.values()
        )


def test_the_order_is_recorded_and_its_effect_shown(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = answer
    assert assay("run", suite(project, models=False, tasks=6, trials=3), "--json").code == 0
    rows = assay("review", "list", "--json").document["assessments"]
    for row in rows:
        shown = assay("review", "show", row["id"], "--json").document
        assert [shown["labels"][name] for name in shown["shown"]] == ["A", "B", "C"]
        assert sorted(row["scores"], key=lambda name: -row["scores"][name]) == shown["shown"]
    assert assay("review", "approve", *[row["id"] for row in rows]).code == 0
    stats = assay("stats", "--json").document
    (judge,) = stats["diagnostics"]["by_position"]
    assert judge["judge"] == "openai/judge-1"
    assert [effect["position"] for effect in judge["effects"]] == [1, 2, 3]
    assert [effect["effect"] for effect in judge["effects"]] == pytest.approx([0.3, 0.0, -0.3])
    assert [effect["n_scores"] for effect in judge["effects"]] == [18, 18, 18]
    assert "position_not_drawn" not in {warning["code"] for warning in stats["warnings"]}
    output = assay("stats").out
    assert (
        "effect of position, in points compared with the mean of all positions: 1. +30.0 (no range), 2. 0.0"
        in output
    )
    assert "There is no range, because candidate and position explain every score" in output


def test_stored_runs_without_positions_say_so(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = answer
    assert assay("run", suite(project, models=False, trials=2), "--json").code == 0
    rows = assay("review", "list", "--json").document["assessments"]
    assert assay("review", "approve", *[row["id"] for row in rows]).code == 0
    (store,) = project.rglob("*.db")
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE score SET place = NULL")
    for command in (("stats",), ("rank",), ("compare", "nora", "omar")):
        document = assay(*command, "--json").document
        (warning,) = [
            warning for warning in document["warnings"] if warning["code"] == "position_not_drawn"
        ]
        assert "in 4 of 4 trials" in warning["text"]
    assert assay("stats", "--json").document["diagnostics"]["by_position"] == []
