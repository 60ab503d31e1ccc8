"""A review protocol binds commands, Python and HTTP alike, and results state what the review
achieved.
"""

from __future__ import annotations

import os
import pwd
import secrets
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient

import assay as assay_
from assay.app.review.decisions import assessment_key
from assay.app.workspace import Workspace
from assay.domain.errors import Refused
from assay.domain.lifecycle import Verb
from assay.domain.review import Decision, Outcome, Via
from assay.web.server import create_app
from tests.contract.conftest import postgres as postgres  # the one server of a test session
from tests.journey.conftest import Command
from tests.journey.test_regrade import graded
from tests.support.model_server import ModelServer
from tests.support.postgres import new_database

WHOLE = {"blind": 1.0, "second": 1.0}


def suite(folder: Path, **protocol: float) -> Path:
    """Four items that a judge grades: two tasks with two trials each."""
    document = {
        "name": "letters",
        "trials": 2,
        "judge": "openai/judge-1",
        "rubric": [{"name": "clear", "weight": 1, "scale": [0, 10]}],
        "protocol": protocol,
        "tasks": [
            {
                "id": f"t{n}",
                "prompt": "Write.",
                "snippets": {"nora": f"Dear {n}", "omar": f"Hi {n}"},
            }
            for n in (1, 2)
        ],
    }
    path = folder / "letters.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres")
        monkeypatch.setenv("ASSAY_STORE", new_database(server, f"protocol{secrets.token_hex(4)}"))


@pytest.fixture
def items(assay: Command, server: ModelServer, project: Path, store: None) -> list[str]:
    """The ids of four pending items of a run that plans all of them blind first and by two
    people.
    """
    server.answer = graded()
    assert assay("run", suite(project, **WHOLE)).code == 0
    return ids(assay)


def ids(assay: Command) -> list[str]:
    return [row["id"] for row in assay("review", "list", "--json").document["assessments"]]


def achieved(assay: Command) -> dict[str, Any]:
    (protocol,) = assay("stats", "--json").document["protocol"]
    return dict(protocol["achieved"])


def test_one_scripted_person_achieves_nothing_that_the_suite_planned(
    assay: Command, items: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workspace, "login", "ann")
    approved = assay("review", "approve", *items)
    assert approved.code == 0
    assert "a1: first of two opinions; another reviewer must give the second" in approved.out
    stats = assay("stats").out
    assert (
        "review: 0 of 4 blind, 0 of 4 by two people, 4 await another person; planned: all;" in stats
    )
    assert "100%" not in stats
    assert achieved(assay) == {
        "decisions": 0,
        "blind": 0,
        "by_two": 0,
        "in_order": None,
        "waiting_for_second": 4,
    }
    again = assay("review", "approve", items[0], "--reviewer", "Ann")
    assert again.code == 2
    assert "already has your verdict; another reviewer must give the second" in again.err
    stated = assay("review", "approve", items[0], "--reviewer", "Somebody Else")
    assert stated.code == 2
    assert "already has a verdict of the same person, under the name ann" in stated.err
    assert assay("stats", "--json").document["excluded"]["pending"] == 4


def test_a_second_person_decides_or_disputes(
    assay: Command, items: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workspace, "login", "ann")
    assay("review", "approve", *items)
    monkeypatch.setattr(Workspace, "login", "bea")
    assert assay("review", "approve", items[0]).out.strip() == f"{items[0]}: pending → approved"
    rejected = assay("review", "reject", items[1], "--reason", "no", "--json").document
    assert [(event["outcome"], event["after"], event["event"]) for event in rejected["events"]] == [
        ("disputed", "pending", 0)
    ]
    assert achieved(assay) == {
        "decisions": 1,
        "blind": 0,
        "by_two": 1,
        "in_order": None,
        "waiting_for_second": 3,
    }
    assert (
        "0 of 4 blind, 1 of 4 by two people, 3 await another person; planned: all"
        in assay("stats").out
    )
    # Undone, nothing is left of it.
    assert assay("review", "undo", items[0], "--reviewer", "cleo").code == 0
    assert achieved(assay) == {
        "decisions": 0,
        "blind": 0,
        "by_two": 0,
        "in_order": None,
        "waiting_for_second": 3,
    }


def test_a_first_opinion_is_shown_only_to_those_whose_own_is_not_due(
    assay: Command, items: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    item = items[0]

    def shown(*more: str) -> tuple[str, dict[str, Any]]:
        both = assay("review", "show", item, *more), assay("review", "show", item, "--json", *more)
        assert [answer.code for answer in both] == [0, 0]
        return both[0].out, both[1].document

    monkeypatch.setattr(Workspace, "login", "ann")
    assert assay("review", "reject", item, "--reason", "too long").code == 0
    text, document = shown()
    assert "ann: reject: too long (by script)" in text
    (own,) = document["opinions"]
    assert (own["reviewer"], own["decision"], own["road"], own["stated_by"]) == (
        "ann",
        "reject",
        "scripted",
        None,
    )
    assert (own["scores"], own["corrections"], document["opinions_hidden"]) == ({}, {}, 0)
    monkeypatch.setattr(Workspace, "login", "bea")
    for name in ((), ("--reviewer", "ann"), ("--reviewer", "cleo")):
        text, document = shown(*name)
        assert "1 opinion of another person is shown once you have given yours." in text
        assert "too long" not in text
        assert (document["opinions"], document["opinions_hidden"]) == ([], 1)
    assert "too long" not in assay("show", item).out
    assert assay("review", "reject", item, "--reason", "too short").code == 0
    text, document = shown()
    assert "ann: reject: too long (by script)" in text
    assert "bea: reject: too short (pending → rejected; by script)" in text
    assert [opinion["reviewer"] for opinion in document["opinions"]] == ["ann", "bea"]


def test_whose_part_is_done_reads_who_must_decide_next(
    assay: Command, items: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workspace, "login", "ann")
    gate = ("gate", "nora", "--against", "omar", "--margin", "3pts", "--require", "vetted")
    both_first = "Review them first: `assay review`, or `assay serve`."
    assert both_first in assay("stats").out
    assert both_first in assay(*gate).err
    assert assay("review", "approve", *items[:3]).code == 0
    where = "on the review page, or with `assay review` under their own login."
    second = f"items await the opinion of a person other than ann: {where}"
    assert f"Review yours first: `assay review`, or `assay serve`. 3 {second}" in assay("stats").out
    assert assay("review", "approve", items[3]).code == 0
    assert f"Your part is done. 4 {second}" in assay("stats").out
    assert f"Your part is done. 4 {second}" in assay(*gate).err
    monkeypatch.setattr(Workspace, "login", "bea")
    assert both_first in assay("stats").out
    assert assay("review", "reject", *items[:3], "--reason", "no").code == 0
    assert (
        "Review yours first: `assay review`, or `assay serve`. 3 items are disputed"
        in assay("stats").out
    )
    monkeypatch.setattr(Workspace, "login", "nora")
    assert (
        "3 items are disputed: a third person settles it at /adjudication (`assay serve`). 1 item grades"
        in assay("stats").out
    )


def test_python_gives_the_first_of_two_opinions(assay: Command, items: list[str]) -> None:
    events = assay_.review.approve(items, reviewer="ann")
    assert {event.outcome for event in events} == {Outcome.FIRST_OPINION}
    with pytest.raises(Refused, match="already has your verdict"):
        assay_.review.reject(items[:1], reason="no", reviewer="ANN")
    assert assay_.review.undo(items[0], reviewer="ann").outcome is Outcome.WITHDRAWN
    assert achieved(assay)["waiting_for_second"] == 3
    assert [row.state for row in assay_.review.list()] == ["pending"] * 4


def test_nobody_decides_their_own_work_by_command_or_python(
    assay: Command, server: ModelServer, project: Path
) -> None:
    assert assay("run", suite(project)).code == 0
    items = ids(assay)
    refused = assay("review", "approve", *items, "--reviewer", "Nora")
    assert refused.code == 2
    assert (
        "grades the work of Nora, and nobody decides their own work. Another reviewer must decide it."
        in refused.err
    )
    with pytest.raises(Refused, match="nobody decides their own work"):
        assay_.review.reject(items, reason="no", reviewer="omar")
    assert assay("review", "approve", *items, "--reviewer", "ann").code == 0


def test_kept_reviews_of_a_regrade_are_by_two_again(
    assay: Command, items: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ann", "bea"):
        monkeypatch.setattr(Workspace, "login", name)
        assay("review", "approve", *items)
    (run,) = assay("runs", "--json").document["runs"]
    regraded = assay("regrade", run["run_id"], "--json")
    assert regraded.code == 0, regraded.err
    new = regraded.document["run_id"]
    (protocol,) = assay("stats", "--run", new, "--json").document["protocol"]
    assert (
        protocol["achieved"]["decisions"],
        protocol["achieved"]["by_two"],
        protocol["achieved"]["blind"],
    ) == (4, 4, 0)


def test_a_regrade_keeps_what_two_people_read_at_one_server(
    assay: Command, items: list[str], project: Path
) -> None:
    browser = {"sec-fetch-site": "same-origin"}
    (run,) = assay("runs", "--json").document["runs"]
    assert assay("review", "protocol", run["run_id"], "--set", "blind=0").code == 0
    with (
        Workspace.open(project) as workspace,
        TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as client,
    ):
        for reviewer in ("ann", "bea"):
            client.cookies.set("assay_reviewer", reviewer)
            for item in items:
                assert client.get(f"/api/assessments/{item}").status_code == 200
                decision = {
                    "key": f"{reviewer}-{item}-123456",
                    "id": item,
                    "verb": "approve",
                    "reviewer": reviewer,
                }
                answer = client.post(
                    "/api/decisions", json={"decisions": [decision]}, headers=browser
                )
                assert answer.json()["results"][0]["ok"], answer.text
    new = assay("regrade", run["run_id"], "--json").document["run_id"]
    regraded = assay("review", "list", "--run", new, "--json").document["assessments"]
    assert [row["state"] for row in regraded] == ["approved"] * len(items)


def test_a_regrade_keeps_a_settlement_but_no_open_dispute(
    assay: Command, items: list[str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workspace, "login", "ann")
    assay("review", "approve", *items[:2])
    monkeypatch.setattr(Workspace, "login", "bea")
    assert assay("review", "reject", *items[:2], "--reason", "no").code == 0
    with Workspace.open(project) as workspace:
        settled = Decision(
            assessment=assessment_key(items[0]),
            verb=Verb.APPROVE,
            reviewer="cleo",
            via=Via.SCRIPT,
            displayed=False,
        )
        assert workspace.decisions.settle(settled, together=False).after == "approved"
    (run,) = assay("runs", "--json").document["runs"]
    new = assay("regrade", run["run_id"], "--json").document["run_id"]
    regraded = assay("review", "list", "--run", new, "--json").document["assessments"]
    assert [row["state"] for row in regraded] == ["approved", "pending", "pending", "pending"]
    # Both opinions came along, so the figures still tell that two people judged it.
    (protocol,) = assay("stats", "--run", new, "--json").document["protocol"]
    assert (protocol["achieved"]["decisions"], protocol["achieved"]["by_two"]) == (1, 1)


@pytest.mark.parametrize("source", ["ASSAY_REVIEWER", "LOGNAME", "assay.yaml"])
def test_one_script_that_names_two_reviewers_is_one_person(
    assay: Command, items: list[str], project: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    def name(reviewer: str) -> None:
        if source == "assay.yaml":
            (project / "assay.yaml").write_text(f"reviewer: {reviewer}\n", "utf-8")
        else:
            monkeypatch.setenv(source, reviewer)

    login = pwd.getpwuid(os.getuid()).pw_name
    name("ann")
    assert assay("review", "approve", items[0]).code == 0
    name("bea")
    second = assay("review", "approve", items[0])
    assert second.code == 2
    assert "already has" in second.err
    assert "verdict" in second.err
    name("ann")
    (opinion,) = assay("review", "show", items[0], "--json").document["opinions"]
    by_login = source == "LOGNAME"
    assert (opinion["reviewer"], opinion["stated_by"]) == (
        (login, None) if by_login else ("ann", login)
    )
    assert achieved(assay)["by_two"] == 0


def test_one_person_gives_no_second_opinion_in_python_under_another_name(
    assay: Command, items: list[str]
) -> None:
    assay_.review.approve(items, reviewer="ann")
    for name in ("bea", "cleo"):
        with pytest.raises(Refused, match="the same person, under the name ann"):
            assay_.review.approve(items[0], reviewer=name)
    assert achieved(assay)["by_two"] == 0


@pytest.mark.parametrize("signed_in", ["ann", "bea"])
def test_a_program_over_http_binds_to_the_protocol(
    assay: Command, items: list[str], project: Path, monkeypatch: pytest.MonkeyPatch, signed_in: str
) -> None:
    """A program that approves over HTTP, whatever name it states, neither decides nor counts as
    blind.
    """
    monkeypatch.setattr(Workspace, "login", signed_in)
    token = "a-s3cret-of-any-length"
    address = "http://127.0.0.1:8000"
    with (
        Workspace.open(project) as workspace,
        TestClient(create_app(workspace, token=token), base_url=address) as client,
    ):
        client.headers["authorization"] = f"Bearer {token}"
        for reviewer in ("ann", "bea", "cleo"):
            decision = {
                "key": f"k-{reviewer}-12345678",
                "id": items[0],
                "verb": "approve",
                "reviewer": reviewer,
            }
            answer = client.post("/api/decisions", json={"decisions": [decision]})
            assert answer.status_code == 200, answer.text
            (result,) = answer.json()["results"]
            # The first of two opinions; every other name that this person states is refused.
            assert result["ok"] is (reviewer == "ann"), result
            assert result["ok"] is False or result["state"] == "pending", result
    assert (achieved(assay)["decisions"], achieved(assay)["blind"]) == (0, 0)
    assert achieved(assay)["waiting_for_second"] == 1
    assert assay("stats", "--json").document["excluded"]["pending"] == 4


def test_a_page_decides_a_blind_item_only_after_the_own_verdict(
    assay: Command, items: list[str], project: Path
) -> None:
    with (
        Workspace.open(project) as workspace,
        TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as client,
    ):
        client.headers["sec-fetch-site"] = "same-origin"
        assert client.get(f"/api/assessments/{items[0]}").status_code == 200
        decision = {"key": "page-1-12345678", "id": items[0], "verb": "approve"}
        (result,) = client.post("/api/decisions", json={"decisions": [decision]}).json()["results"]
        assert result["ok"] is False
        assert "is blind: give your own verdict first." in str(result)
    # A command shows nothing: its decision is stored, as one of two opinions, and is never called
    # blind.
    assert "first of two opinions" in assay("review", "approve", items[0], "--reviewer", "ann").out
    assert achieved(assay)["blind"] == 0


def test_hasty_decisions_on_the_page_stand_beside_the_result(
    assay: Command, server: ModelServer, project: Path
) -> None:
    server.answer = graded()
    assert assay("run", suite(project)).code == 0
    assert "attention:" not in assay("stats").out
    address = "http://127.0.0.1:8000"
    with (
        Workspace.open(project) as workspace,
        TestClient(create_app(workspace), base_url=address) as client,
    ):
        client.headers["sec-fetch-site"] = "same-origin"
        for number, (item, active_ms) in enumerate(
            zip(ids(assay), (400, 1_500, 0, None), strict=True)
        ):
            assert client.get(f"/api/assessments/{item}").status_code == 200
            decision = {
                "key": f"page-{number}-12345678",
                "id": item,
                "verb": "approve",
                "active_ms": active_ms,
            }
            answer = client.post("/api/decisions", json={"decisions": [decision]})
            assert answer.json()["results"][0]["ok"] is True, answer.text
    line = "attention: 2 of 3 decisions took under 1 s, 1 was faster than the answers can be read (600 words per minute); "
    assert f"{line}time not measured for 1\n" in assay("stats").out
    for command in (("stats",), ("compare", "nora", "omar"), ("rank",)):
        signs = assay(*command, "--json").document["attention"]
        assert (signs["decisions"], signs["timed"], signs["not_timed"], signs["too_quick"]) == (
            4,
            3,
            1,
            2,
        )


def test_every_text_about_a_run_states_what_was_achieved(
    assay: Command, items: list[str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ann", "bea"):
        monkeypatch.setattr(Workspace, "login", name)
        assert assay("review", "approve", items[0]).code == 0
    (run,) = (row["run_id"] for row in assay("runs", "--json").document["runs"])
    line = "0 of 1 blind, 1 of 1 by two people; planned: all"
    for command in (
        ("stats",),
        ("show", run),
        ("export", "html"),
        ("export", "markdown"),
        ("export", "latex"),
    ):
        assert line in assay(*command).out, command
    numbers = {"decisions": 1, "blind": 0, "by_two": 1, "in_order": None, "waiting_for_second": 0}
    (exported,) = assay("export", "json").document["runs"]
    for document in (exported, assay("show", run, "--json").document):
        assert document["protocol"]["achieved"] == numbers
        assert document["protocol"]["second"] == 1.0
        assert document["attention"]["decisions"] == 0
    with (
        Workspace.open(project) as workspace,
        TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as client,
    ):
        for page in ("/results", f"/runs/{run}/record"):
            assert line in client.get(page).text, page


def test_a_run_rebuilt_from_its_results_achieved_the_same(
    assay: Command, items: list[str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ann", "bea"):
        monkeypatch.setattr(Workspace, "login", name)
        assert assay("review", "approve", items[0]).code == 0
        with (
            Workspace.open(project) as workspace,
            TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as page,
        ):
            page.headers["sec-fetch-site"] = "same-origin"
            assert page.get(f"/api/assessments/{items[1]}").status_code == 200
            decision = {
                "key": f"page-{name}-12345678",
                "id": items[1],
                "verb": "reject",
                "reason": "no",
                "active_ms": 300,
            }
            assert (
                page.post("/api/decisions", json={"decisions": [decision]}).json()["results"][0][
                    "ok"
                ]
                is True
            )
    assert assay("review", "approve", items[2]).code == 0
    before = assay("stats", "--json").document
    assert achieved(assay) == {
        "decisions": 2,
        "blind": 1,
        "by_two": 2,
        "in_order": None,
        "waiting_for_second": 1,
    }
    assert before["attention"]["too_quick"] == 2
    monkeypatch.setenv("ASSAY_STORE", f"sqlite:///{project / 'rebuilt.db'}")
    assert assay("import", "results", "--rebuild").code == 0
    after = assay("stats", "--json").document
    assert (after["protocol"], after["attention"]) == (before["protocol"], before["attention"])
