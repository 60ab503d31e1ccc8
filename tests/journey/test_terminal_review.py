"""`assay review` on a pseudo-terminal: keys, scrolling, corrections, and grading by people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.journey.conftest import Command
from tests.support.model_server import ModelServer
from tests.support.sets import NAMES, write_set
from tests.support.terminal import terminal

JUDGE = "openai/judge-1"
KEYS = "[q]uit  [?] help"
POEM = "\n".join(f"verse {n}" for n in range(1, 61))
PEOPLE = {
    "name": "poems",
    "judge": "human",
    "rubric": [{"name": "rhyme", "scale": [0, 5]}, {"name": "sense", "scale": [0, 10]}],
    "candidates": [{"name": "ann", "model": "echo"}, {"name": "bob", "model": "echo"}],
    "tasks": [{"id": "ode", "prompt": f"Repeat this ode.\n{POEM}"}],
}


@pytest.fixture
def judged(assay: Command, server: ModelServer, project: Path) -> Path:
    assert assay("run", write_set(project, things=1, trials=3), "--judge", JUDGE).code == 0
    return project


@pytest.fixture
def graded_by_people(assay: Command, project: Path) -> Path:
    (project / "poems.json").write_text(json.dumps(PEOPLE), "utf-8")
    assert assay("run", "poems.json").code == 0
    return project


def states(assay: Command) -> list[str]:
    return sorted(row["state"] for row in assay("review", "list", "--json").document["assessments"])


def questions_of(assay: Command) -> list[str]:
    """Return the beginning of each question for a score, in their order."""
    (first, *_) = assay("review", "list", "--json").document["assessments"]
    criteria = dict.fromkeys(grade["criterion"] for grade in first["grades"])
    labels = "ABCDEF"[: len(first["candidates"])]
    return [f"Candidate {label} · {criterion} (" for criterion in criteria for label in labels]


def test_every_screen_counts_items_hides_names_and_shows_the_keys(
    assay: Command, judged: Path
) -> None:
    with terminal("review", folder=judged, rows=30) as screen:
        first = screen.expect(KEYS)
        assert "1 of 3" in first
        assert "[a]pprove  [c]orrect" in first
        assert not any(name in first for name in NAMES)
        screen.press("?")
        assert "Space, Page Down" in screen.expect("any key: back")
        screen.press("z")
        screen.expect("1 of 3")
        screen.press("a")
        screen.expect("2 of 3")
        screen.press("s")
        screen.expect("3 of 3")
        screen.press("q")
        assert screen.end() == 0
        assert "1 item decided; 2 items still pending" in screen.output
    assert states(assay) == ["approved", "pending", "pending"]


def test_undo_brings_the_last_item_back(assay: Command, judged: Path) -> None:
    with terminal("review", folder=judged) as screen:
        screen.expect("1 of 3")
        screen.press("u")
        screen.expect("Nothing was decided in this session.")
        screen.press("a")
        screen.expect("2 of 3")
        screen.press("u")
        screen.expect("1 of 3")
        screen.press("q")
        assert screen.end() == 0
    assert states(assay) == ["pending"] * 3


def test_a_typo_in_a_correction_is_edited_and_not_lost(assay: Command, judged: Path) -> None:
    questions = questions_of(assay)
    with terminal("review", folder=judged, columns=120) as screen:
        screen.expect(KEYS)
        screen.press("c")
        screen.expect(questions[0])
        screen.press("\x15" + "17/10\r")  # Ctrl-U clears the judge's score
        screen.expect("'17/10' is not a score.")
        screen.expect("): 17/10")
        screen.press("\x01\x04\r")  # to the beginning of the line, delete the 1
        for question in questions[1:]:
            screen.expect(question)
            screen.press("\r")
        screen.expect("reason: ")
        screen.press("\r")
        screen.expect("needs a reason")
        screen.press("too kind\r")
        screen.expect("2 of 3")
        screen.press("q")
        assert screen.end() == 0
    (event,) = [
        event
        for row in assay("review", "list", "--json", "--state", "corrected").document["assessments"]
        for event in assay("review", "show", row["id"], "--json").document["events"]
    ]
    assert (event["reason"], event["via"], event["displayed"]) == ("too kind", "terminal", True)
    assert list(event["corrections"].values()) == [0.7]


def test_ctrl_c_in_a_question_goes_back_to_the_item(assay: Command, judged: Path) -> None:
    with terminal("review", folder=judged) as screen:
        screen.expect(KEYS)
        screen.press("x")
        screen.expect("reason: ")
        screen.interrupt("[a]pprove")
        screen.press("q")
        assert screen.end() == 0
    assert states(assay) == ["pending"] * 3


def test_a_tall_item_scrolls_and_shows_the_prompt_that_was_sent(graded_by_people: Path) -> None:
    with terminal("review", folder=graded_by_people, rows=20) as screen:
        first = screen.expect("[g]rade  [x] reject")
        assert "Prompt that was sent (user)" in first
        assert "lines 1 to 18 of " in first
        assert "verse 40" not in first
        screen.press("\x1b[6~\x1b[6~")  # Page Down, twice
        screen.expect("verse 40")
        screen.press("\x1b[F")  # End
        screen.expect("sense (0–10, weight")
        screen.press("\x1b[H")
        screen.expect("lines 1 to 18 of ")
        screen.press("q")
        assert screen.end() == 0


def test_people_grade_by_criterion_with_names_hidden(
    assay: Command, graded_by_people: Path
) -> None:
    with terminal("review", folder=graded_by_people, columns=100, rows=200) as screen:
        shown = screen.expect("[g]rade  [x] reject")
        assert "ann" not in shown
        assert "bob" not in shown
        screen.press("g")
        for place, answer in enumerate(("4", "2/5", "10", "5")):
            criterion = "rhyme (0–5)" if place < 2 else "sense (0–10)"
            screen.expect(f"Candidate {'AB'[place % 2]} · {criterion}: ")
            screen.press(f"{answer}\r")
        screen.expect("reason: graded")
        screen.press("\r")
        assert screen.end() == 0
        assert "that was the last one: 1 item decided; see `assay stats`" in screen.output
    means = sorted(one["mean"] for one in assay("stats", "--json").document["candidates"])
    assert means == pytest.approx([0.45, 0.9])
    assert assay("review", "list", "--json").document["assessments"][0]["state"] == "corrected"


def test_a_blind_item_shows_grades_after_the_own_scores(assay: Command, judged: Path) -> None:
    (run,) = assay("runs", "--json").document["runs"]
    assert assay("review", "protocol", run["run_id"], "--set", "blind=1").code == 0
    questions = questions_of(assay)
    with terminal("review", folder=judged, columns=100, rows=200) as screen:
        assert "Report" not in screen.expect("[g]rade, then see")
        screen.press("a")
        screen.expect("'a' does nothing here")
        screen.press("g")
        for question in questions:
            screen.expect(question)
            screen.press("5\r")
        assert "your score: 5" in screen.expect("[a]pprove")
        screen.press("a")
        screen.expect("2 of 3")
        screen.press("q")
        assert screen.end() == 0
    assert states(assay) == ["approved", "pending", "pending"]


def test_one_login_gives_one_opinion_at_a_terminal_whatever_its_name(
    assay: Command, judged: Path
) -> None:
    (run,) = assay("runs", "--json").document["runs"]
    assert assay("review", "protocol", run["run_id"], "--set", "second=1").code == 0
    with terminal("review", "--reviewer", "ann", folder=judged, columns=100, rows=200) as screen:
        screen.expect("[a]pprove")
        screen.press("a")
        screen.expect("2 of 3")
        screen.press("q")
        assert screen.end() == 0
    with terminal("review", "--reviewer", "bob", folder=judged, columns=100, rows=200) as screen:
        screen.expect("[a]pprove")
        screen.press("a")
        screen.expect("already has a verdict of the same person, under the name ann")
        screen.press("q")
        assert screen.end() == 0
    assert states(assay) == ["pending"] * 3
    with terminal(
        "review", folder=judged, columns=100, rows=200, environment={"ASSAY_REVIEWER": "bob"}
    ) as screen:
        screen.expect("[a]pprove")
        screen.press("a")
        screen.expect("2 of 3")
        screen.press("q")
        assert screen.end() == 0
    assert states(assay) == ["approved", "pending", "pending"]
