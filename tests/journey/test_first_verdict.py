"""The first verdict of a newcomer: the README's commands from an empty folder, and a first call
that fails.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.model_server import Mishap

if TYPE_CHECKING:
    from tests.journey.conftest import Command
    from tests.support.model_server import Call, ModelServer

ROOT = Path(__file__).resolve().parents[2]
CITIES = {
    "Peru": "Lima",
    "France": "Paris",
    "Norway": "Oslo",
    "Italy": "Rome",
    "Chad": "N'Djamena",
    "Cuba": "Havana",
}


def test_the_readme_leads_from_nothing_to_a_decision_without_a_key(
    assay: Command, project: Path
) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    block = readme.split("<!-- carried out by tests/journey/test_first_verdict.py -->")[1].split(
        "```"
    )[1]
    commands = re.findall(r"^\$ assay ([^#\n]+?)\s*(?:#.*)?$", block, re.MULTILINE)
    assert commands == [
        "init ../my-bench && cd ../my-bench",
        "run suites/first.yaml",
        "compare careful hasty",
    ]
    assert assay("init").code == 0
    ran = assay("run", "suites/first.yaml")
    assert ran.code == 0, ran.err
    verdict = assay("compare", "careful", "hasty")
    assert block.rstrip().splitlines()[-1] in verdict.out
    compared = assay("compare", "careful", "hasty", "--json").document
    assert (compared["decision"], compared["n_tasks"]) == ("better", 8)


def write_table(project: Path) -> None:
    rows = [f"What is the capital of {country}?,{city}" for country, city in CITIES.items()]
    (project / "rows.csv").write_text("\n".join(["question,answer", *rows, ""]), "utf-8")
    (project / "terse.txt").write_text("One word. {{question}}", "utf-8")
    (project / "long.txt").write_text("Explain. {{question}}", "utf-8")


def test_a_table_and_two_prompts_give_a_chatty_right_answer_its_due(
    assay: Command, server: ModelServer, project: Path
) -> None:
    write_table(project)

    def answer(call: Call) -> str:
        asked = call.body["messages"][-1]["content"]
        city = next(city for country, city in CITIES.items() if country in asked)
        return (
            f"Good question! The capital is **{city}**, as everybody knows."
            if asked.startswith("Explain")
            else "Bonn"
        )

    server.answer = answer
    made = assay(
        "init",
        "--from",
        "rows.csv",
        "--prompt",
        "terse.txt",
        "--prompt",
        "long.txt",
        "--model",
        "openai/m",
    )
    assert made.code == 0, made.err
    assert "next: assay run rows.yaml && assay compare terse long" in made.out
    ran = assay("run", "rows.yaml")
    assert "  long, row-2: 100 for: Good question! The capital is **Lima**" in ran.out
    assert "look: terse scored 0 in all 6 scores." in ran.out
    compared = assay("compare", "long", "terse", "--json").document
    assert (compared["decision"], compared["difference"]) == ("better", 1.0)


@pytest.mark.parametrize("mishap", [Mishap.HTTP_401, Mishap.HTTP_403, Mishap.HTTP_404])
def test_a_fatal_first_call_sends_nothing_else(
    assay: Command, server: ModelServer, project: Path, mishap: Mishap
) -> None:
    write_table(project)
    assay(
        "init",
        "--from",
        "rows.csv",
        "--prompt",
        "terse.txt",
        "--prompt",
        "long.txt",
        "--model",
        "openai/m",
    )
    server.script([mishap] * 100)
    stopped = assay("run", "rows.yaml", "--json")
    assert stopped.code != 0
    assert len(server.calls) == 2
    document = stopped.document
    assert document["trials"]["done"] == 0
    assert document["state"] in ("interrupted", "paused")
    server.forget()
    server.answer = lambda _: "Lima"
    resumed = assay("resume", document["run_id"], "--json").document
    assert (resumed["trials"]["done"], resumed["failures"]) == (6, [])
    assert len(server.calls) == 12


def test_a_judge_with_a_wrong_key_is_found_by_the_first_trial(
    assay: Command, server: ModelServer, project: Path
) -> None:
    rows = [
        {"id": f"t{n}", "prompt": "Why?", "snippets": {"ann": "Because.", "bob": "No."}}
        for n in range(20)
    ]
    (project / "why.yaml").write_text(
        json.dumps({"name": "why", "judge": "openai/judge", "tasks": rows}), "utf-8"
    )
    server.script([Mishap.HTTP_401] * 100)
    assert assay("run", "why.yaml").code != 0
    assert len(server.calls) == 1


def test_the_answers_of_the_first_trial_are_used(
    assay: Command, server: ModelServer, project: Path
) -> None:
    write_table(project)
    assay("init", "--from", "rows.csv", "--prompt", "terse.txt", "--model", "openai/m")
    server.answer = lambda _: "Lima"
    assert assay("run", "rows.yaml").code == 0
    assert len(server.calls) == 6
