"""Approvals by a script are named in every result, and are not taken for reviews."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

import assay as library
from tests.journey.conftest import Command


@pytest.fixture
def four(assay: Command, project: Path) -> list[str]:
    """Four pending assessments of a run."""
    rows = ["task,candidate,trial,score,judge,joint"]
    rows += [f"greet,{name},{k},{score},j,1" for k in range(1, 5) for name, score in (("ann", 0.9), ("bob", 0.4))]
    (project / "scores.csv").write_text("\n".join(rows) + "\n", "utf-8")
    assert assay("import", "scores.csv").code == 0
    waiting = [row["id"] for row in assay("review", "list", "--json").document["assessments"]]
    assert len(waiting) == 4
    return waiting


def test_approvals_by_a_command_without_a_terminal_are_by_script(assay: Command, four: list[str]) -> None:
    assert assay("review", "approve", *four, "--reviewer", "Somebody Else").code == 0
    for command in (("stats",), ("compare", "ann", "bob"), ("rank",), ("gate", "ann", "--against", "bob", "--margin", "3pts")):
        assert "4 approved: 4 by script" in assay(*command).out, command
        document = assay(*command, "--json").document
        assert document["approvals"] == {"shown": 0, "scripted": 4, "imported": 0}, command
    me = getpass.getuser()
    assert f"Somebody Else, stated by {me}: approve" in assay("review", "show", four[0]).out
    (event,) = assay("review", "show", four[0], "--json").document["events"]
    assert (event["reviewer"], event["stated_by"], event["road"]) == ("Somebody Else", me, "scripted")
    assert f"Somebody Else, stated by {me}" in assay("export", "markdown").out


def test_vetted_results_refuse_scripts_until_the_project_accepts_them(assay: Command, four: list[str], project: Path) -> None:
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
    assert "4 by script; the project's setting `count_scripted: true` accepts approvals by script" in accepted.out


def test_vetted_results_refuse_grades_that_no_person_has_seen(assay: Command, project: Path) -> None:
    rows = ["task,candidate,trial,score,judge,state", *(f"t{n},{name},1,0.5,j,exempt" for n in range(3) for name in "ab")]
    (project / "scores.csv").write_text("\n".join(rows) + "\n", "utf-8")
    assay("import", "scores.csv")
    refused = assay("gate", "a", "--against", "b", "--margin", "3pts", "--require", "vetted")
    assert refused.code == 2
    assert "6 counted grades were seen by no person" in refused.err


def test_approvals_in_python_are_by_script(four: list[str]) -> None:
    library.review.approve(four[:2])
    library.review.correct(four[2], {"ann": 0.5}, reason="too kind")
    assert "3 approved: 3 by script" in repr(library.stats())
    assert library.stats().basis.approvals.scripted == 3
