"""Replies about a planted check have the same words as replies about a real item."""

from __future__ import annotations

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient
from tests.support.control_items import WAITING, put_check
from tests.web.api.test_control_items import without_flags
from tests.web.conftest import eventually, judged_store
from tests.web.review.test_blind_verdict import switch

from assay.app.review import adjudication
from assay.app.workspace import Workspace
from assay.domain.observations import ObservationKind
from assay.domain.selection import Selection
from assay.web.server import create_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WHOLE = {"pane": 0, "criterion": None, "score": 0.5}
FITNESS = {"pane": 0, "criterion": "fitness", "score": 0.5}
SAID: tuple[tuple[str, dict[str, Any]], ...] = (
    ("reject", {"reason": ""}),
    ("reject", {"reason": "  ", "note": "a note is no reason"}),
    ("correct", {"corrections": []}),
    ("correct", {"corrections": [FITNESS], "reason": ""}),
    ("correct", {"corrections": [], "reason": ""}),
    ("correct", {"corrections": [{**FITNESS, "criterion": "nope"}]}),
    ("correct", {"corrections": [{**FITNESS, "criterion": "1"}]}),
    ("correct", {"corrections": [{**FITNESS, "pane": 9}]}),
    ("correct", {"corrections": [FITNESS, {**FITNESS, "score": 0.6}]}),
    ("correct", {"corrections": [FITNESS, WHOLE]}),
    ("correct", {"corrections": [{**FITNESS, "score": 1.5}]}),
    ("approve", {"run": "r-other"}),
    ("undo", {}),
)


class Desk:
    """A server in this process, and one store with an item that waits and a check that waits for
    ann.
    """

    def __init__(self, client: TestClient, workspace: Workspace) -> None:
        self.client, self.workspace = client, workspace
        rows = [
            row
            for row in workspace.archive.assessments.matching(Selection())
            if str(row.state) == "pending"
        ]
        self.reals = [f"a{row.key}" for row in rows]
        self.checks = [f"a{one.key}" for one in workspace.control_items.read(states=WAITING)]

    def said(self, item: str, verb: str, n: object = 0, *, as_: str = "ann", **more: Any) -> Any:
        """The answer to one decision, without what differs between any two items."""
        body = {
            "key": f"{item}-{verb}-{as_}-{n}",
            "id": item,
            "verb": verb,
            "reviewer": as_,
            "reason": "why",
            **more,
        }
        self.client.cookies.set("assay_reviewer", body["reviewer"])
        self.client.get(f"/api/assessments/{item}")  # a page shows the item before anybody decides
        document = self.client.post("/api/decisions", json={"decisions": [body]}).json()
        document = document["results"][0] if "results" in document else document["error"]
        shown = json.dumps(document)
        assert "assay review" not in shown
        return json.loads(re.sub(rf"\b{item}\b", "IT", shown))

    def seen(self, item: str, *, as_: str) -> Any:
        self.client.cookies.set("assay_reviewer", as_)
        document = self.client.get(f"/api/assessments/{item}").json()
        events = [(one["verb"], one["reviewer"], one["after"]) for one in document["events"]]
        return [
            document[one] for one in ("state", "closed", "hidden", "no_rerun", "second", "current")
        ], events

    def settled(self, item: str) -> Any:
        """A dispute as it is listed, what settling it answers, by how many the count rose, and the
        item after it.
        """
        before = self.client.get("/adjudication.json").json()
        (dispute,) = [one for one in before["disputes"] if one["id"] == item]
        body = {
            "key": f"settle-{item}",
            "id": item,
            "choice": "second",
            "reason": "read again",
            "kind": "rubric",
            "confidence": "sure",
            "reviewer": "cleo",
        }
        alone = self.client.post("/api/adjudicate", json={**body, "reviewer": "bob"}).json()[
            "error"
        ]["problem"]
        items = [self.client.post("/api/adjudicate", json=body).json() for _ in range(2)]
        late = self.client.post("/api/adjudicate", json={**body, "key": f"later-{item}"}).json()[
            "error"
        ]["problem"]
        after = self.client.get("/adjudication.json").json()
        counts = [one["settled"].get("rubric", {}).get("sure", 0) for one in (before, after)]
        return (
            [one["verb"] for one in dispute["opinions"]],
            alone,
            items,
            late,
            counts[1] - counts[0],
            self.seen(item, as_="ann"),
        )

    def again(self, item: str, attempt: int = 1, n: object = 0) -> dict[str, Any]:
        wish = {
            "key": f"again-{item}-{attempt}-{n}",
            "id": item,
            "attempt": attempt,
            "reason": "why",
            "reviewer": "ann",
        }
        last: dict[str, Any] = {}

        def ended() -> bool:
            last.update(self.client.post("/api/rerun", json=wish).json())
            return last.get("status") != "running"

        eventually(ended)
        return last


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alike") / "store"
    folder.mkdir(parents=True)
    judged_store(folder, things=3, trials=4, judge=without_flags(folder))
    with Workspace.open(folder, environment={}) as workspace:
        for row in list(workspace.archive.assessments.matching(Selection()))[:2]:
            put_check(workspace, row.key)
    switch(folder, plants=0.02)
    return folder


@contextmanager
def opened(stored: Path, tmp_path: Path, **protocol: Any) -> Iterator[Desk]:
    folder = tmp_path / "store"
    shutil.copytree(stored, folder)
    if protocol:
        switch(folder, plants=0.02, **protocol)
    # without a browser's headers, a decision counts as a script's
    browser = {"sec-fetch-site": "same-origin"}
    with (
        Workspace.open(folder, environment={}) as workspace,
        TestClient(
            create_app(workspace),
            base_url="http://127.0.0.1:8000",
            cookies={"assay_reviewer": "ann"},
            headers=browser,
        ) as client,
    ):
        yield Desk(client, workspace)


@pytest.fixture
def desk(stored: Path, tmp_path: Path) -> Iterator[Desk]:
    with opened(stored, tmp_path) as result:
        yield result


def test_senseless_request_is_refused_alike_for_control_items(desk: Desk) -> None:
    check, real = desk.checks[0], desk.reals[0]
    for n, (verb, more) in enumerate(SAID):
        answers = [desk.said(item, verb, n, **more) for item in (check, real)]
        assert not answers[0].get("ok"), (verb, more)
        for one in answers:
            one.pop("key", None)
        assert answers[0] == answers[1], (verb, more)
    assert desk.seen(check, as_="ann") == desk.seen(real, as_="ann")
    assert (
        desk.workspace.observations.read(kinds=(ObservationKind.DECISION, ObservationKind.CHECK))
        == ()
    )


def test_an_unknown_candidate_or_criterion_is_refused_by_its_kind(desk: Desk) -> None:
    for item in (desk.checks[0], desk.reals[0]):
        number = int(item[1:])
        for place in ({"pane": 900 + number}, {"criterion": str(number)}):
            row = desk.said(item, "correct", str(place), corrections=[{**FITNESS, **place}])[
                "error"
            ]["problem"]
            assert row.startswith(("there is no candidate", "there is no criterion"))


@pytest.mark.slow
def test_deciding_again_and_undoing_are_answered_alike(desk: Desk) -> None:
    items = [
        [
            desk.said(item, "approve"),
            desk.said(item, "approve"),
            desk.said(item, "approve", 1),
            desk.said(item, "approve", as_="bob"),
            desk.said(item, "reject", as_="bob"),
            desk.said(item, "correct", as_="bob", corrections=[WHOLE]),
            desk.said(item, "undo", as_="bob"),
            desk.seen(item, as_="ann"),
            desk.seen(item, as_="bob"),
            desk.said(item, "undo"),
            desk.said(item, "undo"),
            desk.said(item, "undo", 1),
            desk.seen(item, as_="bob"),
            desk.said(item, "approve"),
            desk.seen(item, as_="bob"),
            desk.said(item, "reject", 2),
            desk.said(item, "undo", 2, as_="bob"),
            desk.seen(item, as_="ann"),
            desk.again(item)["status"],
            desk.said(item, "undo", 3, as_="bob"),
            desk.said(item, "undo", 3),
            desk.said(item, "approve", 3),
            desk.seen(item, as_="ann"),
        ]
        for item in (desk.checks[0], desk.reals[0])
    ]
    for one, other in zip(*items, strict=True):
        assert one == other
    assert items[0][6]["error"]["problem"] == "was decided by ann."
    assert items[0][2]["error"]["problem"] == "is approved, not pending: ann decided it."
    assert items[0][12][1] == [("approve", "ann", "approved"), ("undo", "ann", "pending")]


def test_a_key_that_another_item_was_decided_with_decides_nothing(desk: Desk) -> None:
    check, real, *more = (*desk.checks[:1], *desk.reals)
    first = {"key": "one-key-for-all", "verb": "approve", "reviewer": "ann"}
    for source, others in ((check, (real, desk.checks[1])), (more[0], (real, desk.checks[1]))):
        body = {**first, "key": f"key-of-{source}", "id": source}
        assert desk.client.post("/api/decisions", json={"decisions": [body]}).json()["results"][0][
            "ok"
        ]
        items = [
            desk.client.post("/api/decisions", json={"decisions": [{**body, "id": item}]}).json()[
                "results"
            ][0]
            for item in others
        ]
        wish = {"key": body["key"], "attempt": 1, "reason": "why", "reviewer": "ann"}
        again = [
            desk.client.post("/api/rerun", json={**wish, "id": item}).json() for item in others
        ]
        for answers in (items, again):
            assert answers[0]["error"]["problem"] == answers[1]["error"]["problem"]
        assert [desk.seen(item, as_="ann")[0][0] for item in others] == ["pending", "pending"]


def test_of_many_decisions_at_once_one_is_taken(desk: Desk) -> None:
    check, real = desk.checks[0], desk.reals[0]
    for item in (check, real):
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda n, item=item: desk.said(item, "reject", n), range(8)))
        assert sum(one["ok"] for one in answers) == 1
        lost = {json.dumps(one["error"]) for one in answers if not one["ok"]}
        assert len(lost) == 1
        assert "is rejected, not pending: ann decided it." in lost.pop()
        assert len(desk.seen(item, as_="ann")[1]) == 1
    assert len(desk.workspace.observations.read(kinds=(ObservationKind.CHECK,))) == 1, (
        "it counts once"
    )


@pytest.mark.slow
def test_two_opinions_come_to_the_same_on_a_check_as_on_a_real_item(
    stored: Path, tmp_path: Path
) -> None:
    with opened(stored, tmp_path, second=1.0) as desk:
        items = [
            [
                desk.said(item, "reject", reason=""),
                desk.said(item, "correct", corrections=[]),
                desk.said(item, "undo"),
                desk.said(item, "approve"),
                desk.said(item, "approve"),
                desk.seen(item, as_="ann"),
                desk.seen(item, as_="bob"),
                desk.said(item, "reject", 1),
                desk.said(item, "undo", as_="bob"),
                desk.said(item, "approve", as_="bob"),
                desk.seen(item, as_="ann"),
                desk.said(item, "reject", 2),
                desk.said(item, "undo", 1),
                desk.said(item, "undo", as_="bob"),
                desk.said(item, "undo", 1, as_="bob"),
                desk.seen(item, as_="bob"),
                desk.seen(item, as_="ann"),
                desk.said(item, "reject", 1, as_="bob"),
                desk.seen(item, as_="ann"),
                desk.seen(item, as_="cleo"),
                desk.said(item, "approve", as_="cleo"),
                desk.said(item, "undo", as_="cleo"),
                {**desk.again(item).get("error", {}), "where": ""},
                desk.said(item, "undo", 3),
                desk.seen(item, as_="ann"),
                desk.seen(item, as_="bob"),
            ]
            for item in (desk.checks[0], desk.reals[0])
        ]
        for one, other in zip(*items, strict=True):
            assert one == other
        assert items[0][9]["state"] == "approved"
        assert "disputed" in items[0][20]["error"]["problem"]
        assert "disputed" in items[0][22]["problem"]
        for item in (desk.checks[0], desk.reals[0]):
            assert desk.said(item, "approve", 9)["ok"]
        figures = desk.client.get("/reviewers.json").json()
        check, real = (desk.settled(item) for item in (desk.checks[0], desk.reals[0]))
        assert (*check[:-2], check[-1]) == (*real[:-2], real[-1])
        assert (check[-2], real[-2], real[-1][0][0]) == (0, 1, "approved"), (
            "the check is in no count"
        )
        assert desk.client.get("/reviewers.json").json() == figures, (
            "whoever settled a check is in no figure"
        )
        assert adjudication.settled(desk.workspace.store) == {
            "rubric": {"sure": 1, "fairly": 0, "unsure": 0}
        }


def test_while_the_judge_fails_a_check_is_not_judged_again_either(desk: Desk) -> None:
    check, other = desk.checks
    real = desk.reals[0]
    assert desk.again(real)["status"] == "done"
    new = desk.again(real)["new_id"]
    down = desk.again(new, 2)
    assert down["status"] == "failed", "the recording has no third attempt"
    like = desk.again(check)
    assert (like["status"], like["error"]) == (down["status"], down["error"])
    assert desk.seen(check, as_="ann")[0][0] == "pending"
    assert not desk.workspace.observations.read(kinds=(ObservationKind.CHECK,)), (
        "it measures nothing"
    )
    assert desk.again(desk.reals[1])["status"] == "done"
    for item in (check, other):
        assert desk.again(item, n=1)["status"] == "done", "it works again"


def test_a_check_fails_as_a_real_item_does_if_the_judge_cannot_be_called(
    stored: Path, tmp_path: Path
) -> None:
    with opened(stored, tmp_path) as desk:
        for recording in (tmp_path / "store").rglob("*.jsonl"):
            recording.unlink()
        items = (desk.checks[0], desk.reals[-1])  # the check first: no rerun has failed before
        problems = {
            desk.client.get(f"/api/assessments/{item}").json()["rerun_problem"] for item in items
        }
        outcomes = [desk.again(item) for item in items]
        assert [outcome["status"] for outcome in outcomes] == ["failed", "failed"]
        assert len(problems) == 1
        assert problems != {""}
        assert outcomes[0]["error"] == outcomes[1]["error"]
