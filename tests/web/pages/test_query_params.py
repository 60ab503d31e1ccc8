"""Query parameters of pages are read or refused, on every page, in the same words."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from tests.contract.stores import a_plan, a_task, grades, judged, planned, wait

import assay.web.api
import assay.web.pages
from assay.app.workspace import Workspace
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.review import Decision, Via
from assay.domain.selection import Selection
from assay.web.query_params import parameters_of
from assay.web.server import create_app, routers

RUN = "20250101-000000-alpha-aaaa"
FREE = {
    "find",
    "q",
    "read",
    "labels",
    "title",
    "at",
    "budget",
    "batch_id",
    "protocol",
    "candidate",
    "judge",
}
"""Any text is right for these somewhere: searches, what is read from answers, cache keys, what the
start page's script keeps.
"""

PATHS = {
    "run_id": RUN,
    "assessment_id": "a1",
    "batch_id": "spring",
    "number": "1",
    "ref": "replay/x",
    "trial_id": "t1",
    "kind": "csv",
    "ending": "csv",
    "name": "forest.csv",
    "token": "x",
    "place": "0",
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Pages over a run of three tasks, wholly approved by Ines."""
    with Workspace.open(tmp_path_factory.mktemp("parameters"), environment={}) as workspace:
        plan = a_plan(RUN, suite="alpha", batch_id="spring")
        workspace.journal.open_run(
            plan, planned(a_task("auth", thing="Auth service"), a_task("pay"), a_task("mail"))
        )
        for number, trial in enumerate(workspace.journal.claim(plan.id, limit=10)):
            whole = {name: {"integrity": 0.5, "fitness": 0.1 * number} for name in ("alice", "bob")}
            wait(workspace.journal.record(judged(trial, grades(whole))))
        workspace.decisions.decide(
            [
                Decision(
                    assessment=row.key,
                    verb=Verb.APPROVE,
                    reviewer="Ines",
                    via=Via.PAGE,
                    displayed=True,
                )
                for row in workspace.archive.assessments.matching(Selection())
            ]
        )
        assert workspace.archive.assessments.tally(Selection()) == {AssessmentState.APPROVED: 3}
        yield TestClient(
            create_app(workspace), base_url="http://127.0.0.1:8000", follow_redirects=False
        )


def pages() -> list[tuple[str, frozenset[str]]]:
    """Every page and file that a browser opens, with the names of what it reads from its
    address.
    """
    items = []
    for router in routers(assay.web.api, assay.web.pages):
        for route in router.routes:
            if (
                isinstance(route, APIRoute)
                and "GET" in (route.methods or ())
                and not route.include_in_schema
            ):
                path = re.sub(r"{(\w+)(:path)?}", lambda part: PATHS[part[1]], route.path)
                items.append((path, parameters_of(route)))
    return items


def said(answer: Any) -> str:
    return re.sub(
        r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", answer.text.partition("<main")[2]))
    )


PAGES = pages()


def test_an_empty_parameter_is_the_same_as_none(client: TestClient) -> None:
    for path in ("/audit?before=&check=", "/runs?sort=&q="):
        assert client.get(path).status_code == 200, path


def test_pages_are_listed_with_their_parameters() -> None:
    reads = dict(PAGES)
    assert {"task", "criterion", "from"} <= reads["/results"]
    assert {"criterion", "after"} <= reads["/compare/grades"]
    assert len(reads) > 60


@pytest.mark.parametrize("path", [path for path, _ in PAGES])
def test_unknown_parameter_is_no_filter(client: TestClient, path: str) -> None:
    answer = client.get(path, params={"zz-unread": "1"}, headers={"accept": "text/html"})
    assert answer.status_code == 404, path
    assert "zz-unread" in answer.text


def names_nothing(path: str, name: str) -> bool:
    """True if the parameter takes any value."""
    if path.startswith("/statistics/trials") and name in {"a", "b"}:
        return True  # carried along to the page that compares them
    if path == "/signin":
        return True  # where to go afterwards; another place is never gone to
    if path.startswith("/statistics/charts") and name == "at":
        return True  # makes addresses differ, for browsers that keep pictures
    return name in FREE and not path.startswith(("/statistics", "/results"))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (path, name)
        for path, names in PAGES
        for name in sorted(names)
        if not names_nothing(path, name)
    ],
)
def test_a_value_that_is_not_there_is_said_and_never_passed_over(
    client: TestClient, path: str, name: str
) -> None:
    base = {"run": RUN} if path.startswith("/compare/grades") else {}
    base |= {"suite": "alpha"} if path.startswith("/results/trend") else {}
    base |= {"a": RUN, "b": RUN} if path.startswith("/registry/diff") else {}
    answer = client.get(path, params={**base, name: "zz-unknown"}, headers={"accept": "text/html"})
    if answer.status_code in {303, 308}:  # a way on, where it is said
        answer = client.get(answer.headers["location"], headers={"accept": "text/html"})
    assert 400 <= answer.status_code < 500, (path, name, answer.status_code)
    assert "zz-unknown" in answer.text or answer.status_code == 404, "what was found is said"


@pytest.mark.parametrize(
    ("address", "nearest"),
    [
        ("/results?tusk=auth", "Did you mean 'task'?"),
        ("/results?task=auht", "Did you mean 'auth'?"),
        ("/results?scope=autto", "Did you mean 'auto'?"),
        ("/statistics/trials?candidate=alise", "Did you mean 'alice'?"),
        ("/results?from=300", "a list of 3"),
        ("/statistics/trials?from=300", "a list of 3"),
        (f"/runs/{RUN}?from=300", "a list of 3"),
        (f"/runs/{RUN}?from=x", "must be a whole number"),
        ("/criteria?from=300", "in a list of"),
        ("/runs?suite=alfa", "Did you mean 'alpha'?"),
        ("/runs?batch=sprin", "Did you mean 'spring'?"),
        ("/runs?candidate=bobb", "Did you mean 'bob'?"),
        ("/review?task=payy", "Did you mean 'Pay'?"),
        ("/review?judge=jugde", "Did you mean 'judge'?"),
        ("/review?criterion=zz", "expected a whole number from 1"),
        ("/audit?reviewer=Inez", "Did you mean 'Ines'?"),
        ("/?before=20250101-000000-alpha-aaab", "Did you mean '20250101-000000-alpha-aaaa'?"),
        (f"/compare/grades?run={RUN}&only=agre", "Did you mean 'agree'?"),
        ("/runs?sort=newst", "Did you mean 'newest'?"),
        ("/batches/spring?across=trails", "Did you mean 'trials'?"),
        ("/start?mode=jiont", "Did you mean 'joint'?"),
    ],
)
def test_unknown_value_suggests_the_nearest_or_lists_the_valid(
    client: TestClient, address: str, nearest: str
) -> None:
    answer = client.get(address)
    assert 400 <= answer.status_code < 500
    assert nearest in " ".join(answer.json()["error"].values())


def test_a_message_lists_each_task_once(client: TestClient) -> None:
    assert client.get("/results?task=zz").json()["error"]["remedy"] == "Known: auth, pay, mail."
    assert said(client.get("/results?task=zz", headers={"accept": "text/html"})).count("auth") == 1


@pytest.mark.parametrize("columns", ["", f"?col={RUN}~alice"])
def test_agreement_without_two_columns_leads_to_the_choice(
    client: TestClient, columns: str
) -> None:
    answer = client.get(f"/compare/agreement{columns}", headers={"accept": "text/html"})
    assert answer.status_code == 200
    assert "Select at least two columns" in said(answer)
    assert client.get(f"/compare/agreement.json{columns}").json()["tasks"] == 0


def test_the_twin_says_the_same_as_data(client: TestClient) -> None:
    answer = client.get("/statistics.json?tusk=auth")
    assert answer.json()["error"]["remedy"].startswith("Known: a, all_runs, b, batch_id")
