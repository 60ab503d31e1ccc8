"""Grading by people alone: no key, no model, and the statistics all the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.journey.conftest import Command

if TYPE_CHECKING:
    from pathlib import Path

SET = [
    {
        "thingName": "Gate",
        "context": "Nothing may enter twice.",
        "trialsNeeded": 2,
        "snippets": [{"name": "ann", "content": "x = 1"}, {"name": "bob", "content": "y = 2"}],
    }
]


def test_people_grade_a_set_of_snippets_without_any_key(assay: Command, project: Path) -> None:
    (project / "gates.json").write_text(json.dumps(SET), "utf-8")
    ran = assay("run", "gates.json", "--judge", "human", "--json")
    assert ran.code == 0
    assert ran.document["assessments"]["pending"] == 2
    assert ran.document["tokens"] == {"input": 0, "output": 0}
    assert {one["mean"] for one in assay("stats", "--json").document["candidates"]} == {None}
    first, second = assay("review", "list", "--json").document["assessments"]
    assert {one["score"] for one in first["grades"]} == {None}
    assert {one["judge"] for one in (first, second)} == {"human"}
    assert assay("review", "approve", first["id"]).code == 2
    assert assay("review", "rerun", first["id"], "--note", "again").code == 2
    for one, score in ((first, 0.8), (second, 0.6)):
        scores = [
            part
            for name, value in (("ann", score), ("bob", 0.3))
            for part in ("--score", f"{name}={value}")
        ]
        assert assay("review", "correct", one["id"], *scores, "--reason", "as read").code == 0
    stats = assay("stats", "--json").document
    assert {one["candidate"]: round(one["mean"], 6) for one in stats["candidates"]} == {
        "ann": 0.7,
        "bob": 0.3,
    }
    assert "uncalibrated_judge" not in {one["code"] for one in stats["warnings"]}
    assert assay("compare", "ann", "bob").code == 0


def test_people_grade_one_candidate_each_by_themselves(assay: Command, project: Path) -> None:
    (project / "suite.yaml").write_text(
        "name: each\nreview: none\njudge: {model: human, mode: each}\nrubric: [{name: fit, scale: [0, 5]}]\n"
        "tasks: [{id: one, prompt: Say it., snippets: {ann: it}}]\n",
        "utf-8",
    )
    assert assay("run", "suite.yaml", "--json").document["assessments"]["pending"] == 1
    (one,) = assay("review", "list", "--json").document["assessments"]
    assert (
        assay("review", "correct", one["id"], "--score", "ann/fit=4/5", "--reason", "fits").code
        == 0
    )
    (ann,) = assay("stats", "--json").document["candidates"]
    assert ann["mean"] == 0.8


def test_imported_responses_are_graded_by_people(assay: Command, project: Path) -> None:
    (project / "gates.json").write_text(json.dumps(SET), "utf-8")
    (project / "exact.yaml").write_text(
        "name: exact\nscore: exact\ntasks: [{id: one, prompt: Say a., expected: a, snippets: {ann: a, bob: b}}]\n",
        "utf-8",
    )
    run = assay("run", "gates.json", "--judge", "human", "--json").document["run_id"]
    again = assay("regrade", run, "--judge", "human", "--json")
    assert again.code == 0, again.err
    assert again.document["assessments"]["pending"] == 2


def test_a_person_has_no_name_of_its_own_and_is_no_candidate(assay: Command, project: Path) -> None:
    text = "name: wrong\njudge: {model: human, name: ann}\ntasks: [{id: one, prompt: Say., snippets: {a: x, b: y}}]\n"
    (project / "wrong.yaml").write_text(text, "utf-8")
    assert assay("run", "wrong.yaml").code == 2
    text = "name: wrong\ncandidates: [human, echo]\nscore: exact\ntasks: [{id: one, prompt: Say., expected: x}]\n"
    (project / "wrong.yaml").write_text(text, "utf-8")
    assert "is a grader" in assay("run", "wrong.yaml").err
