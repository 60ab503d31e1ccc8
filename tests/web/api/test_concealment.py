"""Planted checks among the items of the review page behave as real items do."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.control_items import WAITING, put_check
from tests.web.api.test_control_items import asked, decide, key_of, upcoming, without_flags
from tests.web.conftest import Served, judged_store, serving
from tests.web.review.test_blind_verdict import switch

from assay.app.statistics import results
from assay.app.workspace import Workspace
from assay.domain.lifecycle import AssessmentState
from assay.domain.observations import ObservationKind
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def with_checks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty items under a protocol with checks; ten are decided, and a check waits for ann."""
    folder = tmp_path_factory.mktemp("cover") / "store"
    folder.mkdir(parents=True)
    judged_store(folder, things=4, trials=5, judge=without_flags(folder))
    switch(folder, plants=0.5)
    with serving(folder) as server:
        for n in range(10):
            real = [one for one in upcoming(server) if one["id"] not in names(server)[1]]
            decide(server, real[0]["id"], "approve", n=n)
        asked(server, "/api/review/leave", {"desk": "desk-1"})
        if not names(server, states=WAITING)[1]:
            put_a_check(folder)
    return folder


def put_a_check(folder: Path) -> None:
    """Put a planted check beside an approved item, since a random draw might put none."""
    with Workspace.open(folder, environment={}) as workspace:
        row = next(
            row
            for row in workspace.archive.assessments.matching(Selection())
            if str(row.state) == "approved"
        )
        put_check(workspace, row.key)


@pytest.fixture
def served(with_checks: Path, tmp_path: Path) -> Iterator[Served]:
    with serving(shutil.copytree(with_checks, tmp_path / "store")) as server:
        yield server


def names(
    served: Served, *, states: frozenset[AssessmentState] | None = None
) -> tuple[dict[str, str], list[str]]:
    """Real items by the names they go by with their states, and the names of checks; the operator
    knows both.
    """
    with Workspace.open(served.folder, environment={}) as workspace:
        real = {
            f"a{row.key}": str(row.state)
            for row in workspace.archive.assessments.matching(Selection())
        }
        return real, [f"a{one.key}" for one in workspace.control_items.read(states=states)]


def a_check_and_a_real_item(served: Served) -> tuple[str, str]:
    real, checks = names(served, states=WAITING)
    return checks[0], next(name for name, state in real.items() if state == "pending")


def test_owner_sees_which_items_are_decided_on_every_other_page(served: Served) -> None:
    real, checks = names(served)
    run = served.run_id
    listed = asked(served, f"/api/runs/{run}")["evaluations"]
    assert {one["id"]: one["state"] for one in listed} == real
    states = [
        cell["state"]
        for task in asked(served, f"/runs/{run}.json")["tasks"]
        for cell in task["cells"]
    ]
    assert (states.count("approved"), states.count("needs_review")) == (10, 10)
    assert {one["id"] for one in asked(served, "/audit.json")["events"]} <= set(real)
    assert asked(served, "/statistics.json")["stats"]["candidates"][0]["n_trials"] == 10
    assert asked(served, "/runs.json")["waiting"] == 10
    assert not set(real) & set(checks)


def test_responses_are_read_in_full_under_cover(served: Served) -> None:
    for item in a_check_and_a_real_item(served):
        pane = asked(served, f"/api/assessments/{item}/panes/0")
        assert pane["text"]
        assert pane["cut"] is False


def test_every_total_of_the_review_page_moves_alike(served: Served) -> None:
    check, real = a_check_and_a_real_item(served)
    run = served.run_id

    def totals() -> Any:
        return asked(served, "/review.json")["progress"], asked(served, f"/review.json?run={run}")[
            "progress"
        ]

    def moved(before: Any, after: Any) -> Any:
        if isinstance(before, dict):
            return {name: moved(before[name], after[name]) for name in before}
        if isinstance(before, list | tuple):
            return [moved(*both) for both in zip(before, after, strict=True)]
        return round(after - before, 1) if isinstance(before, int | float) else before == after

    first = totals()
    assert decide(served, check, "approve")["ok"]
    second = totals()
    assert decide(served, real, "approve")["ok"]
    third = totals()
    assert moved(first, second) == moved(second, third)
    assert decide(served, check, "undo")["ok"]
    fourth = totals()
    assert decide(served, real, "undo")["ok"]
    assert moved(third, fourth) == moved(fourth, totals())


def test_second_reviewer_may_treat_a_check_like_a_real_item(served: Served) -> None:
    check, real = a_check_and_a_real_item(served)
    for item in (check, real):
        asked(served, f"/api/review/next?desk=desk-1&limit=1&first={item}")
    shapes = []
    for item in (check, real):
        leased = asked(served, f"/api/review/next?desk=desk-2&limit=5&first={item}", as_="bob")
        assert item not in {one["id"] for one in leased["items"]}
        seen = asked(served, f"/api/assessments/{item}", as_="bob")
        done = decide(served, item, "approve", as_="bob")
        undone = decide(served, item, "undo", as_="bob")
        shapes.append((sorted(seen), seen["state"], done["state"], undone["state"]))
    assert shapes[0] == shapes[1]
    with Workspace.open(served.folder, environment={}) as workspace:
        assert not workspace.observations.read(kinds=(ObservationKind.CHECK,), reviewer="bob"), (
            "it measures nobody else"
        )


def test_a_check_lies_on_one_desk_at_a_time_like_any_item(served: Served) -> None:
    check, _ = a_check_and_a_real_item(served)
    first = asked(served, f"/api/review/next?desk=desk-1&limit=5&first={check}")
    assert check in [one["id"] for one in first["items"]]
    others = [asked(served, f"/api/review/next?desk=desk-2{n}&limit=1") for n in range(8)]
    assert check not in {one["id"] for other in others for one in other["items"]}
    again = asked(served, "/api/review/next?desk=desk-1&limit=5")
    assert [one["id"] for one in again["items"]] == [one["id"] for one in first["items"]], (
        "as before a reload"
    )
    assert others[1]["elsewhere"] == 5 + 1, "what lies on desks is counted alike"
    asked(served, "/api/review/skip", {"desk": "desk-1", "id": check})
    late = asked(served, f"/api/review/next?desk=desk-3&limit=5&first={check}", as_="bob")
    assert check in {one["id"] for one in late["items"]}


def test_filters_find_a_check_like_its_real_twin(served: Served) -> None:
    check, _ = a_check_and_a_real_item(served)
    task = asked(served, f"/api/assessments/{check}")["task"]
    for wanted, there in (
        (task, True),
        (next(f"gate-{n}" for n in range(1, 5) if f"gate-{n}" != task), False),
    ):
        items = asked(served, f"/api/review/next?desk=desk-{there}&limit=5&task={wanted}")["items"]
        assert (check in {one["id"] for one in items}) == there
        asked(served, "/api/review/leave", {"desk": f"desk-{there}"})


def rerun(served: Served, item: str, attempt: int = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first answer and the last one."""
    body = {
        "key": f"rerun-{item}-{attempt}",
        "id": item,
        "attempt": attempt,
        "reviewer": "ann",
        "reason": "unsure",
    }
    first = last = asked(served, "/api/rerun", body)
    while last["status"] == "running":
        time.sleep(0.02)
        last = asked(served, "/api/rerun", body)
    return first, last


def test_a_check_is_judged_again_like_a_real_item_and_nobody_is_asked(served: Served) -> None:
    check, real = a_check_and_a_real_item(served)
    with Workspace.open(served.folder, environment={}) as workspace:
        before = sum(run.input_tokens for run in workspace.archive.runs.matching(Selection()))
        standing = results.stats(workspace.store, workspace.settings, Selection()).basis.n_trials
    came: dict[str, Any] = {}
    for item in (real, check):
        first, last = rerun(served, item)
        assert first == {"status": "running", "id": item}
        assert last["status"] == "done", last
        assert last["attempt"] == 2
        assert last["new_id"] != item
        new = asked(served, f"/api/assessments/{last['new_id']}")
        old = asked(served, f"/api/assessments/{item}")
        assert decide(served, item, "approve", n=9)["ok"] is False
        came[item] = (
            sorted(last),
            sorted(new),
            new["attempt"],
            new["state"],
            [one["attempt"] for one in new["attempts"]],
            [one["id"] == item for one in new["attempts"]],
            old["state"],
            old["current"],
            old["rerunnable"],
            [one["verb"] for one in old["events"]],
        )
        assert rerun(served, item)[1] == last, "a wish counts once"
    assert came[check] == came[real]
    with Workspace.open(served.folder, environment={}) as workspace:
        rows = [
            row for row in workspace.archive.assessments.matching(Selection()) if row.attempt > 1
        ]
        assert len(rows) == 1, "of the check nothing is stored among what counts"
        assert (
            results.stats(workspace.store, workspace.settings, Selection()).basis.n_trials
            == standing
        )
        spent = (
            sum(run.input_tokens for run in workspace.archive.runs.matching(Selection())) - before
        )
        calls = [int(row.key) for row in rows]
    assert spent <= 1_000 * len(calls)
    second = rerun(served, rerun(served, check)[1]["new_id"], attempt=2)[1]
    assert second["attempt"] == 3
    third = rerun(served, second["new_id"], attempt=3)[1]
    assert third["status"] == "failed"
    assert "attempt 3 of at most 3" in third["error"]["problem"]


def test_rerun_check_measures_the_reviewer_once(served: Served) -> None:
    check, _ = a_check_and_a_real_item(served)
    new = rerun(served, check)[1]["new_id"]
    assert decide(served, new, "reject")["state"] == "rejected"
    with Workspace.open(served.folder, environment={}) as workspace:
        told = workspace.observations.read(kinds=(ObservationKind.CHECK,), reviewer="ann")
        assert len([one for one in told if f"a{one.assessment}" == key_of(served, check)]) == 1
        assert not [one for one in told if f"a{one.assessment}" == key_of(served, new)]
