"""Every response while items wait: no name or score of any kind of item, and nothing that marks a
check.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import time
import urllib.error
import urllib.request
from collections.abc import Collection
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from tests.support.control_items import ANSWERED, put_check, put_repeat
from tests.web.api.test_control_items import asked, decide, upcoming, without_flags
from tests.web.conftest import NAMES, Served, judged_store, serving
from tests.web.review.test_blind_verdict import SECRETS, switch

from assay.app import people
from assay.app.review.concealment import Concealment
from assay.app.workspace import Workspace
from assay.domain.control_items import ControlKind
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import Selection
from assay.web.server import create_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOME = "http://127.0.0.1:8000"


def addresses(workspace: Workspace, run: str, *, sealed: list[str]) -> list[str]:
    """Every address that can be read, with what its parameters may hold; a new parameter has to be
    named here.
    """
    known = {
        "run_id": [run],
        "assessment_id": ["a1", *sealed],
        "trial_id": ["t1", "t7"],
        "token": ["x"],
        "kind": ["csv", "jsonl"],
        "batch_id:path": [run, "b"],
        "batch_id": [run],
        "name:path": [NAMES[0]],
        "name": ["root", NAMES[0], "forest", "default"],
        "ref:path": ["echo"],
        "number": ["1"],
        "place": ["0", "9"],
        "pane": ["0", "9"],
        "ending": ["csv", "svg", "json"],
        "evaluation_id": ["a1", "t1", run],
        "digest": [],
        "path": [],
    }
    items: list[str] = []
    routes = [*create_app(workspace).routes]
    while routes:
        route = routes.pop()
        routes += getattr(getattr(route, "original_router", None), "routes", [])
        if (
            not isinstance(route, APIRoute)
            or "GET" not in (route.methods or ())
            or route.path.startswith("/static")
        ):
            continue
        paths = [route.path]
        for part in re.findall(r"\{([^}]+)\}", route.path):
            paths = [path.replace(f"{{{part}}}", value) for path in paths for value in known[part]]
        items += [path for path in paths if path != "/api/live"]
    queries = [f"?run={run}", "?desk=desk-9&limit=20"]
    both = [
        path + query
        for path in items
        for query in queries
        if "next" in path or not query.startswith("?desk")
    ]
    sides = "&".join(f"col={run}~{name}" for name in NAMES[:2])
    more = [
        f"/start?suite=gates.json&run={run}",
        "/api/suites/read?path=gates.json",
        f"/compare?{sides}",
        f"/review.json?run={run}&item={sealed[0]}",
        f"/statistics/behind?run={run}&what=scores",
    ]
    return [*items, *both, *more]


def heard(served: Served, path: str, *, as_: str = "root") -> str:
    request = urllib.request.Request(served.url + path, headers={"cookie": f"assay_reviewer={as_}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return f"{answer.headers} {answer.read().decode('utf-8', 'replace')}"
    except urllib.error.HTTPError as refused:
        return refused.read().decode("utf-8", "replace")


@pytest.fixture(scope="module", params=["blind", pytest.param("human", marks=pytest.mark.slow)])
def waiting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten items wait, blind-first or to be graded by people alone."""
    folder = tmp_path_factory.mktemp(request.param) / "store"
    if request.param == "blind":
        judged_store(folder)
        switch(folder, blind=1.0)
    else:
        judged_store(folder, judge="human")
    return folder


def test_no_address_tells_a_reviewer_a_score_or_a_name_while_items_wait(
    waiting: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "store"
    shutil.copytree(waiting, folder)
    with Workspace.open(folder, environment={}) as workspace:
        (run,) = workspace.archive.runs.matching(Selection())
        names = Concealment(workspace.store)
        sealed = [
            names.sealed(row.key)
            for row in workspace.archive.assessments.matching(Selection(), limit=2)
        ]
        paths = addresses(workspace, str(run.id), sealed=sealed)
        assert len(paths) > 80
        invitation = people.invite(workspace.store, "ann", role="reviewer", base=HOME)
        leaks, answered = [], set()
        with TestClient(create_app(workspace), base_url=HOME) as client:
            assert client.get(invitation.link).status_code == 200
            for path in paths:
                for accept in ("application/json", "text/html"):
                    answer = client.get(path, headers={"accept": accept}, follow_redirects=False)
                    # The answer may repeat the address.
                    result = f"{answer.headers} {answer.text}".replace(
                        quote(path, safe="/?=&~"), ""
                    ).replace(path, "")
                    leaks += [
                        f"{path}: {secret}"
                        for secret in set(SECRETS.findall(result))
                        if secret not in path
                    ]
                    if answer.status_code == 200:
                        answered.add(path.partition("?")[0])
        assert leaks == [], "\n".join(leaks)
        assert {"/review", "/review.json", "/api/review/next"} <= answered
        assert {f"{kind}/{sealed[0]}" for kind in ("/assessments", "/api/assessments")} <= answered
        assert not any(path.endswith("/a1") for path in answered), (
            "a reviewer opens only what the queue handed out"
        )
        assert not any(
            path.startswith(("/runs", "/results", "/statistics", "/registry", "/compare", "/arena"))
            for path in answered
        )


@pytest.mark.parametrize(
    "path", ["/review?judge=replay/judge", f"/review?task={NAMES[0]}", "/review.json?task=gate-11"]
)
def test_no_error_suggests_a_name_to_a_reviewer(waiting: Path, tmp_path: Path, path: str) -> None:
    folder = tmp_path / "store"
    shutil.copytree(waiting, folder)
    with Workspace.open(folder, environment={}) as workspace:
        invitation = people.invite(workspace.store, "ann", role="reviewer", base=HOME)
        with TestClient(create_app(workspace), base_url=HOME) as client:
            client.get(invitation.link)
            answer = client.get(path)
            assert answer.status_code in {403, 404}
            assert "judge.jsonl" not in answer.text
            assert "Did you mean" not in answer.text


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty items of a run whose suite wants checks and repeats from the start."""
    folder = tmp_path_factory.mktemp("checked") / "store"
    folder.mkdir(parents=True)
    protocol = {"plants": 0.4, "rereview": 0.5, "gap_items": 3, "gap_hours": 0}
    return judged_store(folder, things=8, trials=5, judge=without_flags(folder), protocol=protocol)


@pytest.fixture
def served(checked: Path, tmp_path: Path) -> Iterator[Served]:
    with serving(shutil.copytree(checked, tmp_path / "store")) as server:
        yield server


def shape(value: Any) -> Any:
    """Types and fields, without what they hold; of a list, the shapes it has.

    A quotation stands somewhere or nowhere.
    """
    if isinstance(value, dict):
        return {name: "place" if name == "at" else shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return sorted({json.dumps(shape(one), sort_keys=True) for one in value})
    return (
        "number"
        if isinstance(value, int | float) and not isinstance(value, bool)
        else type(value).__name__
    )


def reals_and_checks(served: Served) -> tuple[set[str], dict[str, ControlKind]]:
    """By the names that pages call them by."""
    with Workspace.open(served.folder, environment={}) as workspace:
        real = {f"a{row.key}" for row in workspace.archive.assessments.matching(Selection())}
        return real, {f"a{one.key}": one.kind for one in workspace.control_items.read()}


def open_checks(served: Served) -> set[str]:
    _, checks = reals_and_checks(served)
    with Workspace.open(served.folder, environment={}) as workspace:
        done = {f"a{one.key}" for one in workspace.control_items.read(states=ANSWERED)}
    return {name for name, kind in checks.items() if kind is ControlKind.CHECK and name not in done}


def met(served: Served, names: Collection[str]) -> set[ControlKind]:
    """The kinds of checks among items."""
    _, checks = reals_and_checks(served)
    return {checks[name] for name in names if name in checks}


@pytest.fixture
def hardly_drawn(checked: Path, tmp_path: Path) -> Iterator[Served]:
    """The same items, reviewed with shares so small that the test puts its own check and repeat and
    draws no others.
    """
    folder = shutil.copytree(checked, tmp_path / "store")
    switch(folder, plants=0.0001, rereview=0.0001)
    with serving(folder) as server:
        yield server


def put_one_of_each(served: Served) -> None:
    with Workspace.open(served.folder, environment={}) as workspace:
        approved = frozenset({AssessmentState.APPROVED})
        first, second, *_ = workspace.archive.assessments.matching(Selection(), states=approved)
        put_check(workspace, first.key)
        put_repeat(workspace, second.key)


def test_nothing_tells_a_check_from_a_real_item(hardly_drawn: Served) -> None:
    served = hardly_drawn
    real, _ = reals_and_checks(served)
    seen: dict[str, dict[str, Any]] = {}
    numbers: list[tuple[str, int, int]] = []
    counts: set[int] = set()
    decided = {"ok": True}
    held: list[dict[str, Any]] = []
    while len(numbers) < 35:
        if len(numbers) == 5:
            put_one_of_each(served)
        if not held:  # five at a time, among which a control item that waits always comes
            held = asked(served, "/api/review/next?desk=desk-1&limit=5")["items"]
            counts.add(len(held))
        item = held.pop(0)
        seen[item["id"]] = item
        if item["blind"]:  # a repeat: its own verdict first
            scores = [{"pane": pane, "criterion": None, "score": 0.5} for pane in range(3)]
            body = {
                "key": f"v-{item['id']}-xxxxx",
                "id": item["id"],
                "scores": scores,
                "reviewer": "ann",
            }
            asked(served, "/api/review/verdict", body)
        by_name = {
            "key": f"ann-{item['id']}-xx",
            "id": item["id"],
            "verb": "approve",
            "reviewer": "ann",
            "active_ms": 900,
        }
        answer = asked(served, "/api/decisions", {"decisions": [by_name]})
        assert answer["results"][0]["ok"], answer
        decided = answer["progress"]
        numbers.append((item["id"], decided["decided"], decided["waiting"]))
    _, checks = reals_and_checks(served)
    plants = {key for key, kind in checks.items() if kind is ControlKind.CHECK} & set(seen)
    repeats = {key for key, kind in checks.items() if kind is ControlKind.REPEAT} & set(seen)
    assert plants, checks
    assert repeats, checks
    assert counts == {5}  # a check takes a place, it adds none
    # the same fields with the same kinds of values, while waiting and when decided
    whole = {json.dumps(shape(seen[key]), sort_keys=True) for key in set(seen) & real}
    assert {json.dumps(shape(seen[key]), sort_keys=True) for key in plants} <= whole
    after = {key: asked(served, f"/api/assessments/{key}") for key in seen}
    decided_shapes = {json.dumps(shape(after[key]), sort_keys=True) for key in set(seen) & real}
    assert {json.dumps(shape(after[key]), sort_keys=True) for key in plants} <= decided_shapes
    # every decision moves the same numbers by one
    assert [n for _, n, _ in numbers] == list(range(1, len(numbers) + 1))
    assert {before - after for (_, _, before), (_, _, after) in pairwise(numbers)} == {1}
    # and others may look as well
    for key in (*[*plants][:2], *[*repeats][:2], *[*set(seen) & real][:2]):
        assert asked(served, f"/api/assessments/{key}", as_="bob")["state"] == "approved"


def test_a_repeat_comes_in_another_order_and_without_the_first_decision(served: Served) -> None:
    first: dict[tuple[str, int], list[str]] = {}
    held: list[dict[str, Any]] = []
    while held or (held := upcoming(served)):
        item = held.pop(0)
        if reals_and_checks(served)[1].get(item["id"]) is ControlKind.REPEAT:
            break
        first[item["thing"], item["k"]] = [pane["text"] for pane in item["panes"]]
        decide(served, item["id"], "approve")
    else:
        pytest.fail("no repeat came")
    again = [pane["text"] for pane in item["panes"]]
    before = first[item["thing"], item["k"]]
    assert sorted(again) == sorted(before)
    assert again != before
    assert item["events"] == []
    for path in (
        f"/api/assessments/{item['id']}",
        f"/assessments/{item['id']}",
        f"/assessments/{item['id']}.json",
    ):
        assert not any(name in heard(served, path, as_="ann") for name in NAMES), path


@pytest.mark.slow
def test_time_does_not_tell_a_check_apart(served: Served) -> None:
    real, _ = reals_and_checks(served)
    while not (open_ := open_checks(served)):
        for item in upcoming(served):
            decide(served, item["id"], "approve", n=1)
    waiting = [
        key
        for key in sorted(real)
        if asked(served, f"/api/assessments/{key}")["state"] == "pending"
    ][:6]
    took: dict[bool, list[float]] = {True: [], False: []}
    for round_ in range(30):
        for key in (*open_, *waiting):
            began = time.perf_counter()
            asked(served, f"/api/assessments/{key}")
            if round_ > 2:
                took[key in open_].append(time.perf_counter() - began)
    mine, theirs = (statistics.median(took[one]) for one in (True, False))
    assert 0.67 <= mine / theirs <= 1.5, (mine, theirs)
