"""`assay review` on a pseudo-terminal: decisions, corrections, long items, people's grades."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.journey.conftest import Command
from tests.support.model_server import ModelServer
from tests.support.sets import NAMES, write_set
from tests.support.terminal import terminal

JUDGE = "openai/judge-1"
KEYS = "[q]uit [?] help: "
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


def test_every_item_is_plain_text_with_its_place_hidden_names_and_choices(
    assay: Command, judged: Path
) -> None:
    with terminal("review", folder=judged, environment={"NO_COLOR": "1"}) as screen:
        first = screen.expect(KEYS)
        assert "1 of 3" in first
        assert "[a]pprove [c]orrect [x] reject [r]erun [s]kip [u]ndo [v]iew" in first
        assert not any(name in first for name in NAMES)
        screen.type("?")
        assert "the item stays pending" in screen.expect(KEYS)
        screen.type("z")
        screen.expect("'z' does nothing here")
        screen.type("a")
        assert ": approved\n" in screen.expect("2 of 3")
        screen.type("SKIP")
        screen.expect("3 of 3")
        screen.type("quit")
        assert screen.end() == 0
        assert "1 item decided; 2 items still pending" in screen.output
        assert "\x1b" not in screen.output
    assert states(assay) == ["approved", "pending", "pending"]


@pytest.mark.parametrize("ending", ["\x03", "\x04"])
def test_ctrl_c_and_the_end_of_input_end_with_the_counts(
    assay: Command, judged: Path, ending: str
) -> None:
    with terminal("review", folder=judged) as screen:
        screen.expect(KEYS)
        screen.type("a")
        screen.expect("2 of 3")
        screen.expect(KEYS)
        if ending == "\x03":
            screen.interrupt("1 item decided; 2 items still pending")
        else:
            screen.press(ending)
            screen.expect("1 item decided; 2 items still pending")
        assert screen.end() == 0
    assert states(assay) == ["approved", "pending", "pending"]


def test_an_item_that_was_decided_elsewhere_gives_way_to_the_next(
    assay: Command, judged: Path
) -> None:
    with terminal("review", folder=judged) as screen:
        first = screen.expect(KEYS)
        (number,) = set(re.findall(r" · (a\d+)\n", first))
        assert assay("review", "approve", number).code == 0
        screen.type("a")
        screen.expect(f"{number} was decided by someone else in the meantime.")
        screen.expect(KEYS)
        screen.type("q")
        assert screen.end() == 0
        assert "0 items decided; 2 items still pending" in screen.output
    assert states(assay) == ["approved", "pending", "pending"]


def test_undo_brings_the_last_item_back(assay: Command, judged: Path) -> None:
    with terminal("review", folder=judged) as screen:
        screen.expect("1 of 3")
        screen.type("u")
        screen.expect("Nothing was decided in this session.")
        screen.type("a")
        screen.expect("2 of 3")
        screen.type("u")
        screen.expect("1 of 3")
        screen.type("q")
        assert screen.end() == 0
    assert states(assay) == ["pending"] * 3


def test_a_mistake_in_a_correction_is_asked_again(assay: Command, judged: Path) -> None:
    questions = questions_of(assay)
    with terminal("review", folder=judged, columns=120) as screen:
        screen.expect(KEYS)
        screen.type("c")
        screen.expect(questions[0])
        screen.type("17/10")
        screen.expect("'17/10' is not a score.")
        screen.type("7/10")
        for question in questions[1:]:
            screen.expect(question)
            screen.type("")
        screen.expect("reason: ")
        screen.type("")
        screen.expect("needs a reason")
        screen.type("too kind")
        screen.expect("2 of 3")
        screen.type("q")
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
        screen.type("x")
        screen.expect("reason: ")
        screen.interrupt("[a]pprove")
        screen.type("q")
        assert screen.end() == 0
    assert states(assay) == ["pending"] * 3


def test_a_long_item_is_decided_only_after_all_of_it_was_shown(
    assay: Command, project: Path
) -> None:
    saga = "\n".join(f"verse {n}" for n in range(1, 301))
    suite = {**PEOPLE, "tasks": [{"id": "saga", "prompt": f"Repeat this.\x1b[2J\u202e\n{saga}"}]}
    (project / "saga.json").write_text(json.dumps(suite), "utf-8")
    assert assay("run", "saga.json").code == 0
    with terminal("review", folder=project, environment={"PAGER": "cat"}) as screen:
        first = screen.expect(KEYS)
        assert "Prompt that was sent (user)" in first
        assert "Repeat this.\\x1b[2J\\u202e" in first
        assert "verse 198\n" in first
        assert "verse 201" not in first
        assert first.count("… the rest is left out; type view to see all of it") == 3
        assert "sense (0–10, weight" in first
        screen.type("g")
        assert "Type view to see it all, then decide." in screen.expect(KEYS)
        screen.type("view")
        assert "verse 300" in screen.expect(KEYS)
        screen.type("x")
        screen.expect("reason: ")
        screen.type("no rhymes")
        assert screen.end() == 0
        assert "\x1b[2J" not in screen.output
        assert "\u202e" not in screen.output
    (row,) = assay("review", "list", "--json", "--state", "rejected").document["assessments"]
    (event,) = assay("review", "show", row["id"], "--json").document["events"]
    assert (event["via"], event["displayed"]) == ("terminal", True)


def test_people_grade_by_criterion_with_names_hidden(
    assay: Command, graded_by_people: Path
) -> None:
    with terminal("review", folder=graded_by_people, columns=100, rows=200) as screen:
        shown = screen.expect("[g]rade [x] reject")
        assert "ann" not in shown
        assert "bob" not in shown
        screen.type("g")
        for place, answer in enumerate(("4", "2/5", "10", "5")):
            criterion = "rhyme (0–5)" if place < 2 else "sense (0–10)"
            screen.expect(f"Candidate {'AB'[place % 2]} · {criterion}: ")
            screen.type(answer)
        screen.expect("reason [graded]: ")
        screen.type("")
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
        assert "Report" not in screen.expect("[g]rade [x] reject")
        screen.type("a")
        screen.expect("'a' does nothing here")
        screen.type("g")
        for question in questions:
            screen.expect(question)
            screen.type("5")
        assert "your score: 5" in screen.expect("[a]pprove")
        screen.type("a")
        screen.expect("2 of 3")
        screen.type("q")
        assert screen.end() == 0
    assert states(assay) == ["approved", "pending", "pending"]


def test_a_script_completes_no_opinion_of_the_same_login(
    assay: Command, judged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = assay("runs", "--json").document["runs"]
    assert assay("review", "protocol", run["run_id"], "--set", "second=1").code == 0
    with terminal(
        "review", folder=judged, columns=100, rows=200, environment={"ASSAY_REVIEWER": "mia"}
    ) as screen:
        screen.expect("[a]pprove")
        screen.type("a")
        screen.expect("2 of 3")
        screen.type("q")
        assert screen.end() == 0
    monkeypatch.setenv("ASSAY_REVIEWER", "mia")
    (item,) = [
        row["id"]
        for row in assay("review", "list", "--json").document["assessments"]
        if assay("review", "show", row["id"], "--json").document["opinions"]
    ]
    monkeypatch.delenv("ASSAY_REVIEWER")
    for name in ([], ["--reviewer", "leo"]):
        second = assay("review", "approve", item, *name)
        assert second.code == 2
        assert "from the same login, under the name mia" in second.err
    assert states(assay) == ["pending"] * 3


def test_one_login_gives_one_opinion_at_a_terminal_whatever_its_name(
    assay: Command, judged: Path
) -> None:
    (run,) = assay("runs", "--json").document["runs"]
    assert assay("review", "protocol", run["run_id"], "--set", "second=1").code == 0
    with terminal("review", "--reviewer", "ann", folder=judged, columns=100, rows=200) as screen:
        screen.expect("[a]pprove")
        screen.type("a")
        screen.expect("2 of 3")
        screen.type("q")
        assert screen.end() == 0
    with terminal("review", "--reviewer", "bob", folder=judged, columns=100, rows=200) as screen:
        screen.expect("[a]pprove")
        screen.type("a")
        screen.expect("already has a verdict of the same person, under the name ann")
        screen.type("q")
        assert screen.end() == 0
    assert states(assay) == ["pending"] * 3
    with terminal(
        "review", folder=judged, columns=100, rows=200, environment={"ASSAY_REVIEWER": "bob"}
    ) as screen:
        screen.expect("[a]pprove")
        screen.type("a")
        screen.expect("2 of 3")
        screen.type("q")
        assert screen.end() == 0
    assert states(assay) == ["approved", "pending", "pending"]
