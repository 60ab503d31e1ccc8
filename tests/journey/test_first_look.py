"""The summary of a run: one answer per candidate, and signs that a scorer does not fit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from tests.journey.conftest import Command
    from tests.support.model_server import ModelServer

CITIES = ("Lima", "Paris", "Oslo", "Rome")


def write_suite(project: Path, score: str, **answers: str) -> None:
    """A suite of four capitals; `{}` in an answer is the expected one."""
    rows: list[dict[str, Any]] = [
        {
            "id": city.lower(),
            "expected": city,
            "snippets": {who: text.replace("{}", city) for who, text in answers.items()},
        }
        for city in CITIES
    ]
    (project / "capitals.yaml").write_text(
        json.dumps({"name": "capitals", "score": score, "tasks": rows}), "utf-8"
    )


def test_an_answer_of_each_candidate_is_shown_with_its_score(assay: Command, project: Path) -> None:
    write_suite(
        project, "contains", chatty="The capital is {}.", wrong="It is Bonn." + " So long." * 100
    )
    ran = assay("run", "capitals.yaml")
    assert "  chatty, lima: 100 for: The capital is Lima. (expected: Lima)" in ran.out
    assert "  wrong, lima: 0 for: It is Bonn. So long." in ran.out
    assert max(map(len, ran.out.splitlines())) < 250
    assert "look: wrong scored 0 in all 4 scores. Read its answers" in ran.out
    assert "look: chatty scored 100 in all 4 scores." in ran.out
    assert "regrade" not in ran.out


def test_a_reference_inside_zeros_names_the_command_that_scores_them_anew(
    assay: Command, project: Path
) -> None:
    write_suite(project, "exact", chatty="The capital is {}.", wrong="It is Bonn.")
    document = assay("run", "capitals.yaml", "--json").document
    by_code = {(sign["code"], sign["candidate"]): sign for sign in document["signs"]}
    assert set(by_code) == {
        ("all_zero", "chatty"),
        ("all_zero", "wrong"),
        ("reference_in_zero", "chatty"),
    }
    sign = by_code["reference_in_zero", "chatty"]
    assert (
        "4 of the 4 answers of chatty that scored 0 contain the reference (scored by `exact`)"
        in sign["text"]
    )
    assert sign["command"] == f"assay regrade {document['run_id']} --score contains"
    (chatty, _) = document["answers"]
    assert chatty == {
        "candidate": "chatty",
        "task": "lima",
        "trial": 1,
        "text": "The capital is Lima.",
        "expected": "Lima",
        "score": 0.0,
    }
    again = assay(*sign["command"].split()[1:], "--json")
    assert again.code == 0, again.err
    assert again.document["grades"]["changed"] == 4
    means = assay("stats", "--run", again.document["run_id"], "--json").document["candidates"]
    assert {row["candidate"]: row["mean"] for row in means} == {"chatty": 1.0, "wrong": 0.0}


def test_a_method_that_cannot_score_stored_answers_is_refused(
    assay: Command, project: Path
) -> None:
    write_suite(project, "exact", ann="{}")
    run = assay("run", "capitals.yaml", "--json").document["run_id"]
    misspelt = assay("regrade", run, "--score", "contain")
    assert (misspelt.code, "Did you mean 'contains'?" in misspelt.err) == (2, True), misspelt.err
    judged = assay("regrade", run, "--score", "judge")
    assert (judged.code, "is not a rule" in judged.err) == (2, True), judged.err


def test_unreviewed_grades_are_not_shown(
    assay: Command, server: ModelServer, project: Path
) -> None:
    rows = [{"id": "a", "prompt": "Why?", "snippets": {"ann": "Because.", "bob": "No."}}]
    suite = {"name": "why", "judge": "openai/judge", "tasks": rows}
    (project / "why.yaml").write_text(json.dumps(suite), "utf-8")
    ran = assay("run", "why.yaml")
    assert "  ann, a: not scored yet for: Because." in ran.out
    assert "look:" not in ran.out


def test_answers_that_a_token_limit_cut_off_are_counted(
    assay: Command, server: ModelServer, project: Path
) -> None:
    from tests.support.model_server import Mishap

    rows = [{"id": city, "prompt": f"{city}?", "expected": city} for city in CITIES]
    suite = {"name": "cut", "score": "contains", "candidates": ["openai/m"], "tasks": rows}
    (project / "cut.yaml").write_text(json.dumps(suite), "utf-8")
    server.script([Mishap.TRUNCATED] * 2)
    document = assay("run", "cut.yaml", "--concurrency", 1, "--json").document
    (sign,) = (sign for sign in document["signs"] if sign["code"] == "cut_off")
    assert sign["text"].startswith("2 of 4 answers of openai/m were cut off by a token limit")
