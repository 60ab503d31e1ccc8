"""Honest review on PostgreSQL: blind verdicts, checks, repeats, reruns, second opinions and what is
made of them.
"""

from __future__ import annotations

import json
import secrets
import urllib.error
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.conftest import postgres as postgres  # the one server of a test session
from tests.support.postgres import new_database
from tests.web.api.test_concealment import names, rerun
from tests.web.api.test_control_items import asked, decide, own_verdict, upcoming, without_flags
from tests.web.conftest import Served, judged_store, serving
from tests.web.review.test_blind_verdict import switch

from assay.app.statistics import results
from assay.app.workspace import Workspace
from assay.domain.control_items import ControlKind
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def served(postgres: str, tmp_path: Path) -> Iterator[Served]:
    """Thirty judged items in a database of their own, served."""
    folder = tmp_path / "store"
    folder.mkdir()
    address = new_database(postgres, f"honest{secrets.token_hex(4)}")
    (folder / "assay.yaml").write_text(json.dumps({"store": address}), "utf-8")
    judged_store(folder, things=6, trials=5, judge=without_flags(folder))
    assert not (folder / ".assay" / "assay.db").exists()
    with serving(folder) as server:
        yield server


def kinds(served: Served, *, states: frozenset[AssessmentState] | None = None) -> list[ControlKind]:
    with Workspace.open(served.folder, environment={}) as workspace:
        return [one.kind for one in workspace.control_items.read(states=states)]


def test_a_run_is_reviewed_with_checks_and_repeats_to_its_end(served: Served) -> None:
    switch(served.folder, blind=0.3, plants=0.5, rereview=0.5, gap_items=3, gap_hours=0)
    blind = taken_back = 0
    judged_again: list[str] = []
    shown: list[tuple[int, int]] = []
    for n in range(120):
        items = upcoming(served)
        if not items:
            break
        item = items[0]
        if item["blind"]:
            assert decide(served, item["id"], "approve", n=900 + n)["ok"] is False
            assert own_verdict(served, item, 0.6)["blind"] is False
            blind += 1
        if item["id"] in names(served)[1] and not judged_again:
            judged_again.append(str(rerun(served, item["id"])[1]["new_id"]))
            continue
        verb = "reject" if n % 4 == 3 else "approve"
        assert decide(served, item["id"], verb, n=n)["ok"], item
        if n >= 5 and not taken_back:
            assert decide(served, item["id"], "undo", n=n)["state"] == "pending"
            assert decide(served, item["id"], verb, n=n + 500)["ok"]
            taken_back += 1
        progress = asked(served, "/review.json")["progress"]
        waiting = sum(state == "pending" for state in names(served)[0].values())
        assert asked(served, "/runs.json")["waiting"] == waiting, "the queue counts what is there"
        shown.append((progress["decided"], progress["waiting"]))
    else:
        pytest.fail("it never ended")
    assert blind
    assert taken_back
    assert judged_again
    steps = {
        (one[0] - before[0], before[1] - one[1]) for before, one in pairwise(shown) if one[1] > 1
    }
    assert steps == {(1, 1)}, (
        "every decision moves the totals alike, until nothing is expected any more"
    )
    result = kinds(served)
    assert {ControlKind.CHECK, ControlKind.REPEAT, ControlKind.ATTEMPT} <= set(result)
    real, _ = names(served)
    assert len(real) == 30
    assert "pending" not in real.values()
    with Workspace.open(served.folder, environment={}) as workspace:
        counted = sum(state == "approved" for state in real.values())
        assert (
            results.stats(workspace.store, workspace.settings, Selection()).basis.n_trials
            == counted
        )
    asked(served, "/api/review/end", {"key": "e" * 10, "reviewer": "ann"})
    (ann,) = asked(served, "/reviewers.json")["reviewers"]
    assert ann["decisions"] == 30
    assert ann["catch_rate"]["n"] + ann["false_alarms"]["n"] > 0
    assert ann["self_alike"]["n"] > 0
    checks = asked(served, "/reviewers/ann/checks.json")["checks"]
    assert len(checks) == ann["catch_rate"]["n"] + ann["false_alarms"]["n"]
    assert len(asked(served, "/audit.json?verb=undo")["events"]) in (0, 1)


def test_two_people_decide_and_a_third_settles(served: Served) -> None:
    switch(served.folder, second=1.0)
    for item, person in (("a1", "ann"), ("a2", "ann"), ("a1", "bob"), ("a2", "bob")):
        # an opinion on an unseen item measures no agreement
        asked(served, f"/api/assessments/{item}", as_=person)
    assert decide(served, "a1", "approve")["state"] == "pending"
    assert decide(served, "a2", "approve")["state"] == "pending"
    assert decide(served, "a1", "approve", as_="bob")["state"] == "approved"
    assert decide(served, "a2", "reject", as_="bob")["state"] == "pending"
    assert [one["id"] for one in asked(served, "/adjudication.json", as_="cleo")["disputes"]] == [
        "a2"
    ]
    body: dict[str, Any] = {
        "key": "j" * 10,
        "id": "a2",
        "choice": "second",
        "reason": "read again",
        "kind": "fact",
        "confidence": "sure",
        "reviewer": "cleo",
    }
    with pytest.raises(urllib.error.HTTPError):
        asked(served, "/api/adjudicate", {**body, "reviewer": "bob"})
    assert asked(served, "/api/adjudicate", body)["state"] == "rejected"
    bob = asked(served, "/reviewers/bob.json")
    assert (bob["others_alike"]["n"], bob["others_alike"]["value"]) == (2, 0.5)
