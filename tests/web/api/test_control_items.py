"""Planted checks, repeats, second opinions and adjudication: through the server, and never in
anything that counts.
"""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient
from tests.contract.stores import wait
from tests.web.accessibility import WIDTHS, serious
from tests.web.conftest import NAMES, Served, eventually, judged_store, serving, write_judge
from tests.web.review.test_blind_verdict import switch

from assay.app import people
from assay.app.review import decisions, rerun
from assay.app.review.concealment import Concealment
from assay.app.statistics import results
from assay.app.workspace import Workspace
from assay.domain.control_items import ControlKind
from assay.domain.errors import Refused
from assay.domain.selection import Selection
from assay.web.server import create_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many") / "store"
    folder.mkdir(parents=True)
    return judged_store(folder, things=8, trials=5, judge=without_flags(folder))


def without_flags(folder: Path) -> Path:
    """A recorded judge that quotes nothing that stands nowhere, so that what it wrote may be known
    to be good.
    """
    judge = write_judge(folder, missing_in=None)
    judge.write_text(judge.read_text("utf-8").replace("self.nowhere()", "with self.lock:"), "utf-8")
    return judge


@pytest.fixture
def served(many: Path, tmp_path: Path) -> Iterator[Served]:
    with serving(shutil.copytree(many, tmp_path / "store")) as server:
        yield server


def asked(
    served: Served, path: str, body: dict[str, Any] | None = None, *, as_: str = "ann"
) -> Any:
    headers = {
        "content-type": "application/json",
        "cookie": f"assay_reviewer={as_}",
        "sec-fetch-site": "same-origin",
    }
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(
        urllib.request.Request(served.url + path, data, headers), timeout=30
    ) as answer:
        return json.load(answer)


def key_of(served: Served, name: str) -> str:
    """Return the store's key of an item that has another id on pages."""
    with Workspace.open(served.folder, environment={}) as workspace:
        return f"a{Concealment(workspace.store).key_of(name)}"


def decide(
    served: Served, item: str, verb: str, *, as_: str = "ann", **more: Any
) -> dict[str, Any]:
    """Decide as a page does: it shows the item to this person first, so that an opinion is this
    person's own.
    """
    asked(served, f"/api/assessments/{item}", as_=as_)
    key = f"{as_}-{verb}-{item}-{len(more)}-{more.pop('n', 0)}"
    body = {
        "key": key,
        "id": item,
        "verb": verb,
        "reviewer": as_,
        "reason": "why",
        "active_ms": 4200,
        **more,
    }
    row: dict[str, Any] = asked(served, "/api/decisions", {"decisions": [body]}, as_=as_)[
        "results"
    ][0]
    return row


def upcoming(served: Served, *, as_: str = "ann", desk: str = "desk-1") -> list[dict[str, Any]]:
    row: list[dict[str, Any]] = asked(served, f"/api/review/next?desk={desk}&limit=3", as_=as_)[
        "items"
    ]
    return row


@pytest.mark.slow
def test_plants_come_among_the_items_and_never_count(served: Served) -> None:
    switch(served.folder, plants=0.5)
    real = {f"a{n}" for n in range(1, 41)}
    seen: set[str] = set()
    for _ in range(90):
        items = upcoming(served)
        if not items:
            break
        item = items[0]
        key = key_of(served, item["id"])
        assert key == item["id"]
        seen.add(key)
        verb = "reject" if key not in real and len(seen - real) % 2 else "approve"
        assert decide(served, item["id"], verb)["ok"], item["id"]
    plants = seen - real
    assert real <= seen
    assert 3 <= len(plants) <= 38
    with Workspace.open(served.folder, environment={}) as workspace:
        rows = list(decisions.assessments(workspace.store, Selection()))
        assert {f"a{row.key}" for row in rows} == real
        (run,) = workspace.archive.runs.matching(Selection())
        assert sum(run.assessments.values()) == 40
        standing = results.stats(workspace.store, workspace.settings, Selection())
        assert standing.basis.n_trials == 40
        assert len(list(workspace.archive.exports.score_rows(Selection(), everything=True))) == 120
        assert {aside.kind for aside in workspace.control_items.read()} == {ControlKind.CHECK}
    eventually(lambda: asked(served, "/reviewers.json")["reviewers"][0]["decisions"] == 40)
    (ann,) = asked(served, "/reviewers.json")["reviewers"]
    told = asked(served, "/reviewers/ann/checks.json")["checks"]
    assert ann["catch_rate"]["n"] + ann["false_alarms"]["n"] == len(told)
    assert len(plants) - 1 <= len(told) <= len(plants), (
        "one that was on the desk as nothing else waited measures nothing"
    )
    assert ann["sensitivity"]["value"] is None
    assert ann["sensitivity"]["reason"] in ("fewer_than_20", "nothing_yet")
    assert {one["id"] for one in told} <= real
    assert all(
        one["right"] == ((one["verb"] == "reject") != (one["how"] == "known_good")) for one in told
    )
    assert all(one["changed"] or one["words"] for one in told if one["how"] != "known_good")
    assert ann["active_s"]["value"] == 4.2
    document = asked(served, f"/api/runs/{served.run_id}")
    assert {one["id"] for one in document["evaluations"]} == real


def test_a_plant_can_be_undone_and_answers_count_once(served: Served) -> None:
    switch(served.folder, plants=0.5)
    real = {f"a{n}" for n in range(1, 41)}
    plant = None
    while plant is None:
        item = upcoming(served)[0]
        if key_of(served, item["id"]) in real:
            decide(served, item["id"], "approve")
        else:
            plant = item["id"]
    assert decide(served, plant, "reject")["state"] == "rejected"
    assert decide(served, plant, "reject")["state"] == "rejected"
    assert decide(served, plant, "approve", n=1)["ok"] is False
    assert decide(served, plant, "undo")["state"] == "pending"
    assert asked(served, f"/api/assessments/{plant}")["state"] == "pending"
    assert asked(served, f"/api/assessments/{plant}", as_="bob")["state"] == "pending"
    assert decide(served, plant, "approve", n=2)["state"] == "approved"
    (ann,) = asked(served, "/reviewers.json")["reviewers"]
    # the session goes on: no figure gives one away
    assert ann["catch_rate"]["n"] + ann["false_alarms"]["n"] == 0
    assert asked(served, "/reviewers/ann/checks.json")["checks"] == []
    asked(served, "/api/review/end", {"key": "e" * 10, "reviewer": "ann"})
    (ann,) = asked(served, "/reviewers.json")["reviewers"]
    assert ann["catch_rate"]["n"] + ann["false_alarms"]["n"] == 1
    (told,) = asked(served, "/reviewers/ann/checks.json")["checks"]
    assert told["verb"] == "approve"
    assert told["right"] == (told["how"] == "known_good")


@pytest.mark.parametrize("blind", [0.0, 1.0])
@pytest.mark.slow
def test_own_earlier_decisions_come_again_as_other_items_come(served: Served, blind: float) -> None:
    switch(served.folder, rereview=0.5, gap_items=5, gap_hours=0, blind=blind)
    real = {f"a{n}" for n in range(1, 41)}
    again = None
    for n in range(40):
        items = upcoming(served)
        if not items:
            break
        item = items[0]
        assert item["blind"] == bool(blind), item["id"]
        if key_of(served, item["id"]) not in real:
            again = item
            break
        if blind:
            own_verdict(served, item, 0.9)
        assert decide(served, item["id"], "approve", n=n)["ok"]
    assert again is not None
    if blind:
        assert decide(served, again["id"], "approve")["ok"] is False
        assert own_verdict(served, again, 0.5)["blind"] is False
        assert decide(served, again["id"], "approve", n=1)["ok"]
    else:
        scores = [{"pane": pane, "criterion": None, "score": 0.5} for pane in range(3)]
        assert decide(served, again["id"], "correct", corrections=scores)["ok"]
    with Workspace.open(served.folder, environment={}) as workspace:
        token = people.invite(workspace.store, "ann", role="reviewer", base=served.url).token
    session = signed_in(served, token)
    own = own_figures(served, session)
    assert own["self_alike"]["n"] == 0, (
        "the session goes on: no own figure says what the last item was"
    )
    (ann,) = asked(served, "/reviewers.json")["reviewers"]
    assert ann["self_alike"]["n"] == 3, "the owner sees every figure at once"
    asked(served, "/api/review/end", {"key": "e" * 10, "reviewer": "ann"})
    ann = own_figures(served, session)
    assert ann["self_alike"]["n"] == 3
    assert ann["self_distance"]["value"] > 0


def signed_in(served: Served, token: str) -> str:
    """Return the session cookie that a token opens."""
    body = json.dumps({"token": token}).encode()
    entered = urllib.request.Request(
        f"{served.url}/api/signin", data=body, headers={"content-type": "application/json"}
    )
    with urllib.request.urlopen(entered, timeout=30) as answer:
        return str(answer.headers["set-cookie"]).partition(";")[0]


def own_figures(served: Served, session: str) -> Any:
    """Return ann's figures as she sees them with her invitation."""
    wanted = urllib.request.Request(f"{served.url}/reviewers/ann.json", headers={"cookie": session})
    with urllib.request.urlopen(wanted, timeout=30) as answer:
        return json.load(answer)


def own_verdict(
    served: Served, item: dict[str, Any], score: float, *, as_: str = "ann"
) -> dict[str, Any]:
    scores = [
        {"pane": pane, "criterion": None, "score": score} for pane in range(len(item["panes"]))
    ]
    body = {"key": f"v-{item['id']}-xxxxx", "id": item["id"], "scores": scores, "reviewer": as_}
    result: dict[str, Any] = asked(served, "/api/review/verdict", body, as_=as_)
    return result


def test_two_agreeing_reviewers_decide_and_a_dispute_waits(served: Served) -> None:
    for item in ("a1", "a2", "a3"):
        asked(served, "/api/review/second", {"key": "s" * 10, "id": item, "reviewer": "ann"})
        asked(served, f"/api/assessments/{item}")
        assert decide(served, item, "approve")["state"] == "pending"
        assert decide(served, item, "reject", n=7)["ok"] is False
        assert asked(served, f"/api/assessments/{item}", as_="bob")["events"] == []
    assert "a1" not in {one["id"] for _ in range(3) for one in upcoming(served, desk="other")}
    assert decide(served, "a1", "approve", as_="bob")["state"] == "approved"
    assert decide(served, "a2", "reject", as_="bob")["state"] == "pending"
    assert decide(served, "a3", "undo")["state"] == "pending"
    assert decide(served, "a3", "reject", as_="bob")["state"] == "pending"
    (dispute,) = asked(served, "/adjudication.json", as_="cleo")["disputes"]
    assert dispute["id"] == "a2"
    assert [one["verb"] for one in dispute["opinions"]] == ["approve", "reject"]
    assert not {"ann", "bob"} & set(json.dumps(dispute).split('"'))
    body = {
        "key": "j" * 10,
        "id": "a2",
        "choice": "first",
        "reason": "read again",
        "kind": "rubric",
        "confidence": "fairly",
        "reviewer": "ann",
    }
    with pytest.raises(urllib.error.HTTPError):
        asked(served, "/api/adjudicate", body)
    body["reviewer"] = "cleo"
    assert asked(served, "/api/adjudicate", body)["state"] == "approved"
    assert asked(served, "/api/adjudicate", body)["state"] == "approved"
    after = asked(served, "/adjudication.json")
    assert after["disputes"] == []
    assert after["settled"] == {"rubric": {"sure": 0, "fairly": 1, "unsure": 0}}
    for wrong in ({"kind": "mood"}, {"confidence": "very"}):
        with pytest.raises(urllib.error.HTTPError) as refused:
            asked(served, "/api/adjudicate", {**body, **wrong})
        assert refused.value.code == 422
    bob = asked(served, "/reviewers/bob.json")
    assert (bob["others_alike"]["n"], bob["others_alike"]["value"]) == (2, 0.5)


@pytest.mark.slow
def test_the_new_pages_are_accessible_and_not_clipped(page: Page, served: Served) -> None:
    switch(served.folder, second=1.0)
    decide(served, "a1", "approve")
    decide(served, "a1", "reject", as_="bob")
    for path in ("/reviewers", "/reviewers/ann", "/reviewers/ann/checks", "/adjudication"):
        page.set_viewport_size({"width": 1360, "height": 800})
        page.goto(served.url + path)
        page.wait_for_load_state("load")
        assert serious(page) == [], path
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            over = page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert over <= 0, f"{path} is {over} px too wide at {width}"
    page.locator("[name=kind]").select_option("scale")
    page.locator("[name=confidence]").select_option("sure")
    page.locator("[name=reason]").fill("read again")
    page.get_by_role("button", name="Settle").click()
    page.wait_for_function("() => document.getElementById('said').textContent.includes('Settled')")


def test_undo_of_an_agreed_item_frees_it(served: Served) -> None:
    switch(served.folder, second=1.0)
    first = decide(served, "a1", "approve", as_="ann")
    assert first["state"] == "pending"
    assert decide(served, "a1", "approve", as_="bob")["state"] == "approved"
    again = decide(served, "a1", "approve", as_="ann")
    assert again["ok"], "the same key once more, after the other agreed"
    assert again["state"] == "approved"
    assert decide(served, "a1", "undo", as_="bob")["state"] == "pending"
    assert decide(served, "a1", "undo", as_="bob")["ok"], "sent twice"
    assert decide(served, "a1", "reject", as_="bob")["state"] == "pending", "bob may decide anew"
    assert [one["id"] for one in asked(served, "/adjudication.json")["disputes"]] == ["a1"], (
        "ann's opinion stands"
    )


def test_a_verdict_after_the_scores_were_seen_is_refused(served: Served) -> None:
    item = upcoming(served)[0]
    assert not item["blind"]
    scores = [{"pane": pane, "criterion": None, "score": 0.5} for pane in range(len(item["panes"]))]
    with pytest.raises(urllib.error.HTTPError) as caught:
        asked(
            served,
            "/api/review/verdict",
            {"key": "v" * 10, "id": item["id"], "reviewer": "ann", "scores": scores},
        )
    assert caught.value.code == 409


def test_only_adjudication_settles_a_dispute(served: Served) -> None:
    switch(served.folder, second=1.0)
    decide(served, "a1", "approve")
    decide(served, "a1", "reject", as_="bob")
    for who, verb in (("cleo", "approve"), ("cleo", "reject")):
        result = decide(served, "a1", verb, as_=who)
        assert result["ok"] is False
        assert "disputed" in result["error"]["problem"]
        assert "/adjudication" in result["error"]["remedy"]
    switch(served.folder, second=0.0)
    assert "disputed" in decide(served, "a1", "approve", as_="cleo", n=3)["error"]["problem"], (
        "whatever the protocol is now"
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        asked(
            served,
            "/api/rerun",
            {"key": "r" * 10, "id": "a1", "attempt": 1, "reason": "why", "reviewer": "bob"},
        )
    assert refused.value.code == 409
    with Workspace.open(served.folder, environment={}) as workspace:
        key = decisions.assessment_key("a1")
        with pytest.raises(Refused, match="disputed"):
            decisions.approve(workspace, [decisions.assessment_key("a2"), key])
        with pytest.raises(Refused, match="disputed"):
            decisions.correct(workspace, key, {(NAMES[0], None): 0.5}, reason="none")
        with pytest.raises(Refused, match="disputed"):
            wait(rerun.rerun(workspace, key, reason="again", force=True))
        assert (
            decisions.assessment(workspace.store, decisions.assessment_key("a2")).row.state
            == "pending"
        )
    assert [one["id"] for one in asked(served, "/adjudication.json")["disputes"]] == ["a1"]
    body = {
        "key": "j" * 10,
        "id": "a1",
        "choice": "first",
        "reason": "read again",
        "kind": "rubric",
        "confidence": "fairly",
        "reviewer": "cleo",
    }
    assert asked(served, "/api/adjudicate", body)["state"] == "approved"
    assert "is approved" in decide(served, "a1", "reject", as_="bob", n=9)["error"]["problem"], (
        "no dispute any more"
    )


@pytest.mark.slow
def test_a_check_that_is_judged_again_refuses_others_as_a_real_item_does(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "store"
    shutil.copytree(many, folder)
    switch(folder, plants=0.5)
    monkeypatch.setattr("assay.web.jobs.reruns._AROUND_S", 1.5)
    with (
        Workspace.open(folder, environment={}) as workspace,
        TestClient(
            create_app(workspace),
            base_url="http://127.0.0.1:8000",
            cookies={"assay_reviewer": "ann"},
        ) as client,
    ):

        def said(name: str, verb: str, *, as_: str = "ann") -> dict[str, Any]:
            body = {
                "key": f"{as_}-{verb}-{name}",
                "id": name,
                "verb": verb,
                "reviewer": as_,
                "reason": "why",
            }
            row: dict[str, Any] = client.post("/api/decisions", json={"decisions": [body]}).json()[
                "results"
            ][0]
            return row

        name, key = "", None
        while key is None or not workspace.control_items.read(keys=[key]):
            if name:
                assert said(name, "approve")["ok"]
            name = client.get("/api/review/next?desk=desk-1&limit=1").json()["items"][0]["id"]
            key = Concealment(workspace.store).key_of(name)
        wish = {"key": "ann-again-1", "id": name, "attempt": 1, "reason": "why", "reviewer": "ann"}
        assert client.post("/api/rerun", json=wish).json()["status"] == "running"
        other = client.post("/api/rerun", json={**wish, "key": "ann-again-2"}).json()["error"]
        refused = said(name, "approve", as_="bob")["error"]
        own = said(name, "reject")["error"]
        assert other["where"] == refused["where"] == own["where"] == name
        assert (
            other["problem"] == own["problem"] == "is being judged again, because you requested it."
        )
        assert refused["problem"] == "is being judged again, because ann requested it."
        eventually(lambda: client.post("/api/rerun", json=wish).json()["status"] == "done")
        assert [one.kind for one in workspace.control_items.read()].count(ControlKind.ATTEMPT) == 1


@pytest.mark.slow
def test_idempotency_key_of_one_item_is_refused_for_another(many: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    shutil.copytree(many, folder)
    switch(folder, plants=0.5)
    with (
        Workspace.open(folder, environment={}) as workspace,
        TestClient(
            create_app(workspace),
            base_url="http://127.0.0.1:8000",
            cookies={"assay_reviewer": "ann"},
        ) as client,
    ):

        def said(name: str, key: str, verb: str = "approve") -> dict[str, Any]:
            body = {"key": key, "id": name, "verb": verb, "reviewer": "ann", "reason": "why"}
            row: dict[str, Any] = client.post("/api/decisions", json={"decisions": [body]}).json()[
                "results"
            ][0]
            return row

        def is_check(name: str) -> bool:
            return bool(
                workspace.control_items.read(keys=[Concealment(workspace.store).key_of(name)])
            )

        last = check = ""
        while not check:
            (item,) = client.get("/api/review/next?desk=desk-1&limit=1").json()["items"]
            if is_check(item["id"]):
                check = item["id"]
            else:
                last = item["id"]
                assert said(last, f"decides-{last}")["ok"]
        ahead = client.get(f"/api/review/next?desk=desk-1&limit=5&after={check}").json()["items"]
        real, shared, judged = [item["id"] for item in ahead if not is_check(item["id"])][:3]
        assert client.post(
            "/api/review/second", json={"key": "a-second-opinion", "id": shared}
        ).json()["ok"]
        assert said(shared, "an-opinion")["state"] == "pending"
        wish = {
            "key": "judged-again",
            "id": judged,
            "attempt": 1,
            "reason": "why",
            "reviewer": "ann",
        }
        eventually(lambda: client.post("/api/rerun", json=wish).json()["status"] == "done")
        problem = "was sent before for another item."
        for key in (f"decides-{last}", "an-opinion", "judged-again"):
            for name in (check, real):
                assert said(name, key)["error"] == {
                    "where": "key",
                    "problem": problem,
                    "remedy": "Use a different key for each decision.",
                }, (name, key)
                again = client.post("/api/rerun", json={**wish, "key": key, "id": name}).json()
                assert again["error"]["problem"] == problem
                assert client.get(f"/api/assessments/{name}").json()["state"] == "pending"
        assert said(last, f"decides-{last}")["ok"], "said once more"
        assert said(check, "of-the-check")["ok"]
        assert said(check, "of-the-check")["ok"], "said once more"
        for name in (last, real):
            assert said(name, "of-the-check")["error"]["problem"] == problem
        assert said(real, "of-its-own")["ok"]


def test_a_rerun_names_an_attempt_that_is_there(served: Served) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        asked(
            served,
            "/api/rerun",
            {"key": "r" * 10, "id": "a1", "attempt": 5, "reason": "why", "reviewer": "bob"},
        )
    assert refused.value.code == 409
    assert "no attempt 5" in refused.value.read().decode()


def test_first_of_two_opinions_changes_no_figure(served: Served) -> None:
    switch(served.folder, second=1.0)
    decide(served, "a1", "approve")
    assert asked(served, "/reviewers.json", as_="bob")["reviewers"] == []
    decide(served, "a1", "approve", as_="bob")
    eventually(
        lambda: (
            [one["decisions"] for one in asked(served, "/reviewers.json")["reviewers"]] == [1, 1]
        ),
        within_s=20,
    )


def test_statistics_include_a_run_under_review_with_planted_checks(served: Served) -> None:
    switch(served.folder, blind=0.5, plants=0.5)
    assert asked(served, "/statistics.json")["stats"]["runs"] == [served.run_id]
