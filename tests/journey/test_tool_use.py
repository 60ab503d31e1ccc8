"""Suites that test tool use, from the suite file to the statistics: what is sent, stored, graded,
resumed and shown.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from assay.app.workspace import Workspace
from assay.domain.selection import Selection
from assay.web.server import create_app
from tests.journey.conftest import Command
from tests.support.model_server import Call, Mishap, ModelServer, Said

SUITE = """\
name: travel
score: tool_calls
candidates: [{name: good, model: openai/good}, {name: hasty, model: openai/hasty}]
tools:
  - name: get_weather
    description: The weather in a city today.
    parameters: {type: object, properties: {city: {type: string}}, required: [city]}
    answers:
      - {arguments: {city: Oslo}, result: {celsius: 12}}
      - {error: There is no such city.}
  - {name: book_hotel, description: Books a hotel., answers: booked}
tasks:
  - id: oslo
    prompt: How warm is it in Oslo and in Bergen?
    expected:
      - {name: get_weather, arguments: {city: Oslo}}
      - {name: get_weather, arguments: {city: Bergen}}
  - {id: thanks, prompt: Thank you., expected: []}
"""


def write(project: Path, text: str = SUITE) -> Path:
    path = project / "travel.yaml"
    path.write_text(text, "utf-8")
    return path


def alone(candidate: str) -> str:
    """The suite with one candidate and its first task."""
    return re.sub("candidates: .*", f"candidates: [openai/{candidate}]", SUITE).partition(
        "  - {id: thanks"
    )[0]


def travelling(call: Call) -> str | Said:
    """`good` asks for both cities at once, and then answers; `hasty` asks for one, and books a
    hotel with broken arguments.
    """
    if call.prompt == "Thank you.":
        return "You are welcome."
    if call.results:
        return "12 degrees in Oslo; Bergen is unknown."
    if call.body["model"] == "good":
        cities: tuple[tuple[str, Any], ...] = (
            ("get_weather", {"city": "Bergen"}),
            ("get_weather", {"city": "Oslo"}),
        )
        return Said(text="I look it up.", tools=cities)
    return Said(tools=(("get_weather", {"city": "Oslo"}), ("book_hotel", '{"city": "Osl')))


def scores(assay: Command) -> dict[str, float]:
    return {
        row["candidate"]: row["mean"] for row in assay("stats", "--json").document["candidates"]
    }


def transcript(project: Path, task: str, candidate: str) -> str:
    with Workspace.open(project, environment={}) as workspace:
        trial = next(
            row for row in workspace.archive.trials.matching(Selection()) if row.task == task
        )
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        answers = client.get(f"/runs/{trial.run_id}/trials/t{trial.key}/answers.json").json()[
            "answers"
        ]
    return str(next(answer["text"] for answer in answers if answer["candidate"] == candidate))


def test_a_suite_with_tools_runs_from_the_file_to_the_statistics(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = travelling
    assert assay("validate", write(project)).code == 0
    run = assay("run", write(project), "--json")
    assert run.code == 0, run.err
    assert scores(assay) == {"good": 1.0, "hasty": 0.5}
    assert server.calls[0].tools == ["get_weather", "book_hotel"]
    answered = next(call for call in server.calls if call.body["model"] == "good" and call.results)
    assert [(text, error) for _, text, error in answered.results] == [
        ("Error: There is no such city.", True),
        ('{"celsius": 12}', False),
    ]
    assert transcript(project, "oslo", "good") == (
        "## Turn 1 · user\n\nHow warm is it in Oslo and in Bergen?\n\n"
        "## Turn 1 · assistant\n\nI look it up.\n\n"
        '## Turn 1 · tool call\n\nget_weather {"city": "Bergen"}\n\n'
        "## Turn 1 · tool error\n\nThere is no such city.\n\n"
        '## Turn 1 · tool call\n\nget_weather {"city": "Oslo"}\n\n'
        '## Turn 1 · tool result\n\n{"celsius": 12}\n\n'
        "## Turn 1 · assistant\n\n12 degrees in Oslo; Bergen is unknown."
    )


def test_calls_and_the_first_difference_are_shown(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = travelling
    assay("run", write(project))
    rows = [
        row
        for row in assay("review", "list", "--json").document["assessments"]
        if row["scores"].get("hasty") == 0
    ]
    shown = assay("show", rows[0]["id"]).out
    assert 'book_hotel {"city": "Osl' in shown
    assert "tool error" in shown
    assert 'get_weather {"city": "Bergen"} was not called.' in shown
    with Workspace.open(project, environment={}) as workspace:
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        (pane,) = client.get(f"/api/assessments/{rows[0]['id']}").json()["panes"]
    assert pane["form"] == "turns"


def test_a_conversation_stops_after_its_tool_turns(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = lambda call: Said(tools=(("get_weather", {"city": "Oslo"}),))
    text = alone("good").replace("score: tool_calls", "score: tool_calls\ntool_turns: 3")
    run = assay("run", write(project, text), "--json")
    assert run.code == 0, run.err
    assert len(server.calls) == 3
    assert scores(assay) == {"openai/good": 0.0}
    assert transcript(project, "oslo", "openai/good").endswith(
        '## Turn 1 · tool result\n\n{"celsius": 12}'
    )


@pytest.mark.parametrize("folder", [False, True], ids=["store", "results-folder"])
def test_a_broken_conversation_resumes_after_its_tool_calls(
    assay: Command, server: ModelServer, project: Path, folder: bool
) -> None:
    server.answer = travelling
    server.script([Mishap.OK, Mishap.HTTP_400])
    run = assay("run", write(project, alone("hasty")), "--json")
    assert run.code == 1
    if folder:
        (project / ".assay" / "assay.db").rename(project / "old.db")
        assert assay("import", "results", "--rebuild").code == 0
    assert assay("resume", run.document["run_id"], "--json").document["trials"]["failed"] == 0
    broken, again = server.calls[1].body["messages"], server.calls[2].body["messages"]
    assert len(server.calls) == 3
    assert again == broken
    assert again[1]["tool_calls"][1]["function"]["arguments"] == '{"city": "Osl'


def test_a_model_without_tools_fails_and_is_not_scored(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.refuses = {"tools"}
    run = assay("run", write(project), "--json").document
    assert {(row["kind"], row["fault"]) for row in run["failures"]} == {("no_tools", "harness")}


def test_judges_and_other_scorers_see_the_last_reply(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = lambda call: travelling(call) if call.tools else json.dumps({})
    text = SUITE.replace("score: tool_calls", "score: exact").split("tasks:")[0]
    text += (
        "tasks: [{id: oslo, prompt: How warm?, expected: 12 degrees in Oslo; Bergen is unknown.}]\n"
    )
    assert assay("run", write(project, text)).code == 0
    assert scores(assay) == {"good": 1.0, "hasty": 1.0}


def test_a_dry_run_counts_one_round_of_calls(
    assay: Command, server: ModelServer, project: Path
) -> None:
    assert assay("run", write(project), "--dry-run", "--json").document["calls"] == 8


def test_a_regrade_compares_the_stored_calls_anew(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = travelling
    run = assay("run", write(project), "--json").document["run_id"]
    asked = len(server.calls)
    lenient = SUITE.replace(
        "score: tool_calls", "score: {tool_calls: {forbidden: [book_hotel], extra: true}}"
    )
    again = assay(
        "regrade", run, "--suite", write(project, lenient.replace("Bergen}", "Oslo}")), "--json"
    )
    assert again.code == 0, again.err
    assert len(server.calls) == asked
    changed = assay("regrade", run, "--suite", write(project, SUITE.replace("booked", "full")))
    assert changed.code == 2
    assert "its set of tools differs" in changed.err
