"""Approvals by a script are named in every result, and are not taken for reviews."""

from __future__ import annotations

import getpass
import json
from pathlib import Path

import pytest

import assay as library
from tests.journey.conftest import Command


@pytest.fixture
def four(assay: Command, project: Path) -> list[str]:
    """Four pending assessments of a run."""
    rows = ["task,candidate,trial,score,judge,joint"]
    rows += [
        f"greet,{name},{k},{score},j,1"
        for k in range(1, 5)
        for name, score in (("ann", 0.9), ("bob", 0.4))
    ]
    (project / "scores.csv").write_text("\n".join(rows) + "\n", "utf-8")
    assert assay("import", "scores.csv").code == 0
    waiting = [row["id"] for row in assay("review", "list", "--json").document["assessments"]]
    assert len(waiting) == 4
    return waiting


def test_approvals_by_a_command_without_a_terminal_are_by_script(
    assay: Command, four: list[str]
) -> None:
    assert assay("review", "approve", *four, "--reviewer", "Somebody Else").code == 0
    for command in (
        ("stats",),
        ("compare", "ann", "bob"),
        ("rank",),
        ("gate", "ann", "--against", "bob", "--margin", "3pts"),
    ):
        assert "4 approved: 4 by script" in assay(*command).out, command
        document = assay(*command, "--json").document
        assert document["approvals"] == {"shown": 0, "scripted": 4, "imported": 0}, command
    me = getpass.getuser()
    assert f"Somebody Else, stated by {me}: approve" in assay("review", "show", four[0]).out
    (event,) = assay("review", "show", four[0], "--json").document["events"]
    assert (event["reviewer"], event["stated_by"], event["road"]) == (
        "Somebody Else",
        me,
        "scripted",
    )
    assert f"Somebody Else, stated by {me}" in assay("export", "markdown").out


def test_vetted_results_refuse_scripts_until_the_project_accepts_them(
    assay: Command, four: list[str], project: Path
) -> None:
    assay("review", "approve", *four)
    gate = ("gate", "ann", "--against", "bob", "--margin", "3pts", "--require", "vetted")
    for command in (gate, ("export", "csv", "--require", "vetted")):
        refused = assay(*command)
        assert refused.code == 2
        assert "4 of 4 approvals were made by script (a1, a2, a3, a4)" in refused.err
        assert "count_scripted: true" in refused.err
    with pytest.raises(library.InputError, match="4 of 4 approvals were made by script"):
        library.gate("ann", "bob", margin=0.03, require="vetted")
    (project / "assay.yaml").write_text("count_scripted: true\n", "utf-8")
    assert assay("export", "csv", "--require", "vetted").code == 0
    accepted = assay(*gate)
    assert accepted.code != 2
    assert (
        "4 by script; the project's setting `count_scripted: true` accepts approvals by script"
        in accepted.out
    )


def test_vetted_results_are_refused_if_no_grade_counts(assay: Command, four: list[str]) -> None:
    gate = ("gate", "ann", "--against", "bob", "--margin", "3pts", "--require", "vetted")
    for command in (
        gate,
        ("export", "csv", "--require", "vetted"),
        ("export", "markdown", "--require", "vetted"),
    ):
        refused = assay(*command)
        assert refused.code == 2
        assert "No grade counts yet: 4 trials await review." in refused.err
    with pytest.raises(library.InputError, match="No grade counts yet: 4 trials await review"):
        library.gate("ann", "bob", margin=0.03, require="vetted")


def test_vetted_results_refuse_grades_that_no_person_has_seen(
    assay: Command, project: Path
) -> None:
    rows = [
        "task,candidate,trial,score,judge,state",
        *(f"t{n},{name},1,0.5,j,exempt" for n in range(3) for name in "ab"),
    ]
    (project / "scores.csv").write_text("\n".join(rows) + "\n", "utf-8")
    assay("import", "scores.csv")
    refused = assay("gate", "a", "--against", "b", "--margin", "3pts", "--require", "vetted")
    assert refused.code == 2
    assert "6 counted grades were seen by no person" in refused.err


def test_lists_of_runs_and_exports_state_the_approvals(assay: Command, four: list[str]) -> None:
    assay("review", "approve", *four[:3])
    by_script = {"shown": 0, "scripted": 3, "imported": 0}
    (row,) = assay("runs", "--json").document["runs"]
    assert row["approvals"] == by_script
    assert "3: 3 by script" in assay("runs").out
    assert assay("show", row["run_id"], "--json").document["approvals"] == by_script
    assert "3 approved: 3 by script" in assay("show", row["run_id"]).out
    summary = assay("export", "csv", "--output", "counted.csv")
    assert "3 approved: 3 by script" in summary.err
    assert (
        assay("export", "csv", "--output", "more.csv", "--json").document["approvals"] == by_script
    )
    record = json.loads(assay("export", "json").out)
    assert record["approvals"] == record["runs"][0]["approvals"] == by_script
    report = assay("export", "junit", "--threshold", "0.5").out
    assert '<property name="approvals" value="3 approved: 3 by script"/>' in report
    lines = [json.loads(line) for line in assay("export", "evaluations").out.splitlines()]
    assert {line["human_review_road"] for line in lines} == {"scripted"}
    final = json.loads(assay("export", "final-results").out)
    assert final["summary"]["approvals"] == by_script


def test_a_run_records_the_setting_that_accepts_scripts(assay: Command, project: Path) -> None:
    suite = project / "suite.yaml"
    suite.write_text(
        "name: s\nscore: exact\ntasks: [{id: t, expected: a, snippets: {bot: a}}]\n", "utf-8"
    )
    assert assay("run", suite).code == 0
    (project / "assay.yaml").write_text("count_scripted: true\n", "utf-8")
    assert assay("run", suite).code == 0
    newest, oldest = (row["run_id"] for row in assay("runs", "--json").document["runs"])
    recorded = [
        assay("show", run, "--json").document["environment"]["count_scripted"]
        for run in (oldest, newest)
    ]
    assert recorded == [False, True]


def test_approvals_in_python_are_by_script(four: list[str]) -> None:
    library.review.approve(four[:2])
    library.review.correct(four[2], {"ann": 0.5}, reason="too kind")
    assert "3 approved: 3 by script" in repr(library.stats())
    assert library.stats().basis.approvals.scripted == 3
