"""Blind-first: not one byte of a score, reason or name leaves the server before the reviewer's own
verdict.
"""

from __future__ import annotations

import json
import re
import shutil
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.web.conftest import (
    CRITERIA,
    NAMES,
    Served,
    Watch,
    eventually,
    item_of,
    judged_store,
    ready,
    serving,
)

from assay.app.review import protocol
from assay.app.workspace import Workspace
from assay.domain.observations import BlindVerdict, DecisionTaken, ObservationKind, with_body
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page, Response

SECRETS = re.compile(
    "|".join(
        (
            *NAMES,
            "replay/",
            r"judge\.jsonl",
            "guards the",
            r"with self\.lock:\W+guards",
            "takes .{0,3}self",
            r"self\.nowhere",
            r'"(?:score|judged|raw)":\s*[0-9]+\.[0-9]',
        )
    ),
    re.IGNORECASE,
)
"""Names, words of the judge's reasons and report, and any number in a field for scores."""


IN_SIGHT = """() => {
  const cell = document.querySelector(".right:not(.behind) [data-field].on");
  const { x, y, width, height } = cell.getBoundingClientRect();
  return [cell.dataset.field, document.elementFromPoint(x + width / 2, y + height / 2) === cell];
}"""
"""The framed cell, and whether nothing covers it."""


def post(served: Served, path: str, body: dict[str, Any]) -> Any:
    data = json.dumps(body).encode()
    request = urllib.request.Request(
        served.url + path,
        data,
        {"content-type": "application/json", "sec-fetch-site": "same-origin"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def scores_for(item: dict[str, Any], score: float = 0.5) -> list[dict[str, Any]]:
    return [
        {"pane": pane, "criterion": name, "score": score}
        for pane in range(len(item["panes"]))
        for name in CRITERIA
    ]


@pytest.fixture(scope="module")
def blind_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = judged_store(tmp_path_factory.mktemp("blind") / "store")
    switch(folder, blind=1.0)
    return folder


def switch(folder: Path, **shares: float) -> None:
    with Workspace.open(folder, environment={}) as workspace:
        (run,) = workspace.archive.runs.matching(Selection())
        protocol.switch(workspace, run.id, shares, reviewer="operator")


@pytest.fixture
def served(blind_template: Path, tmp_path: Path) -> Iterator[Served]:
    with serving(shutil.copytree(blind_template, tmp_path / "store")) as server:
        yield server


def test_no_byte_leaves_before_the_verdict(page: Page, served: Served) -> None:
    leaks: list[str] = []

    def read(response: Response) -> None:
        if "/api/live" in response.url or "/static/" in response.url:
            return
        heard = f"{response.url} {response.headers} {response.text() if response.ok else ''}"
        leaks.extend(f"{response.url}: {entry}" for entry in SECRETS.findall(heard))

    page.on("response", read)
    run = served.run_id
    for path in ("/assessments/a1", f"/review?run={run}"):
        page.goto(served.url + path)
        page.wait_for_load_state("load")
    ready(page)
    for key in ("j", "j", "k", "i", "i", "o", "v", "t", "ArrowRight", "s", "f"):
        page.keyboard.press(key)
        ready(page)
    assert not SECRETS.findall(page.content())
    assert leaks == []


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1024, 640), (390, 844), (320, 256)])
def test_blind_form_and_its_message_are_in_view(
    page: Page, served: Served, width: int, height: int
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{served.url}/review?run={served.run_id}")
    ready(page)
    page.wait_for_selector(".ways")
    seen = []
    for digit in "56787":
        page.keyboard.press(digit)
        seen.append(page.evaluate(IN_SIGHT))
    assert [cell for cell, _ in seen] == ["1.0", "2.0", "3.0", "0.1", "1.1"]
    assert all(shown for _, shown in seen), seen
    page.keyboard.press("Control+Enter")
    expect(page.locator("#said")).to_contain_text("has no score")
    first = page.locator(".card p").first
    expect(first).to_contain_text("are shown once you have saved your own verdict")


def test_a_verdict_is_sent_until_the_server_answers(
    page: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("Failed to load resource", "ERR_INTERNET_DISCONNECTED")
    page.goto(f"{served.url}/review?run={served.run_id}")
    first = ready(page)
    page.wait_for_selector(".ways")
    fields = page.locator('[data-field]:not([data-field^="-1."])')
    for field in fields.all():
        field.fill("7")
    page.context.set_offline(True)
    page.keyboard.press("Control+Enter")
    result = page.locator("#said")
    eventually(lambda: "saved as a draft and will be sent" in (result.text_content() or ""))
    fields.first.fill("6")
    page.keyboard.press("Control+Enter")
    page.context.set_offline(False)
    eventually(lambda: "Your verdict is saved. Now approve" in (result.text_content() or ""))
    assert item_of(page) == first
    scores = sorted(score for _, _, score in served.get(f"/api/assessments/{first}")["own"])
    assert scores[0] == 0.6
    assert set(scores[1:]) == {0.7}


def test_nor_do_programs_get_any(served: Served) -> None:
    run = served.run_id
    paths = [f"/review.json?run={run}&item=a1", "/api/review/next?desk=desk&limit=20"]
    paths += ["/api/review/next?desk=other&limit=5&first=a1"]
    paths += [f"/assessments/a{n}.json" for n in range(1, 11)] + [
        f"/api/assessments/a{n}" for n in range(1, 11)
    ]
    paths += ["/reviewers", "/reviewers.json", "/adjudication", "/adjudication.json"]
    paths += [f"/runs/{run}/trials/t{n}" for n in range(1, 11)]
    for path in paths:
        with urllib.request.urlopen(served.url + path) as answer:
            result = f"{answer.headers} {answer.read().decode()}"
            assert not SECRETS.findall(result), path
            assert "etag" not in result.lower()


def test_the_stream_of_runs_says_nothing_of_a_score(served: Served) -> None:
    with urllib.request.urlopen(served.url + "/api/live") as stream:
        assert not SECRETS.findall(stream.read1(4000).decode())


def test_the_judge_s_grades_cannot_be_approved_unseen(served: Served) -> None:
    response = post(
        served, "/api/decisions", {"decisions": [{"key": "k" * 10, "id": "a2", "verb": "approve"}]}
    )
    assert response["results"][0]["ok"] is False
    assert "verdict" in response["results"][0]["error"]["problem"]
    assert not SECRETS.findall(json.dumps(response["results"]))


def test_a_verdict_that_leaves_a_score_out_is_refused_and_shows_nothing(served: Served) -> None:
    item = served.get("/api/assessments/a2")
    assert item["blind"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(
            served,
            "/api/review/verdict",
            {"key": "v" * 10, "id": "a2", "scores": scores_for(item)[1:]},
        )
    assert not SECRETS.findall(refused.value.read().decode())
    assert served.get("/api/assessments/a2")["blind"]


def test_own_scores_by_keys_then_the_judge_s_then_approve(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/assessments/a2")
    ready(page)
    page.locator(".ways").wait_for()
    expect(page.locator(".correction")).to_contain_text("not been sent", use_inner_text=True)
    for _ in range(len(NAMES) * len(CRITERIA)):
        page.keyboard.press("6")
        ready(page)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".cell")
    expect(page.locator(".own").first).to_have_text("you: 6", use_inner_text=True)
    item = served.get("/api/assessments/a2")
    assert not item["blind"]
    assert len(item["own"]) == len(NAMES) * len(CRITERIA)
    assert item["hidden"]
    ready(page)
    page.keyboard.press("a")
    eventually(lambda: served.get("/api/assessments/a2")["state"] == "approved")
    with Workspace.open(served.folder, environment={}) as workspace:
        # The record of a decision is written after its answer.
        eventually(lambda: bool(workspace.observations.read(kinds=(ObservationKind.DECISION,))))
        (decision,) = workspace.observations.read(kinds=(ObservationKind.DECISION,))
        (verdict,) = workspace.observations.read(kinds=(ObservationKind.VERDICT,))
    assert isinstance(decision.body, DecisionTaken)
    assert isinstance(verdict.body, BlindVerdict)
    assert decision.body.arm == "blind"
    assert decision.body.active_ms is not None
    assert set(verdict.body.scores.values()) == {0.6}


def test_correcting_after_the_verdict_begins_with_it(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/assessments/a3")
    item_of(page)
    ready(page)
    page.locator(".ways").wait_for()
    for _ in range(len(NAMES) * len(CRITERIA)):
        page.keyboard.press("1")
        page.keyboard.press("Enter")
        ready(page)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".own")
    ready(page)
    page.keyboard.press("c")
    page.keyboard.press("Enter")
    eventually(lambda: served.get("/api/assessments/a3")["state"] == "corrected")
    assert {
        cell["raw"]
        for row in served.get("/api/assessments/a3")["criteria"]
        for cell in row["cells"]
    } == {1.0}


def test_a_draft_of_a_verdict_survives_a_reload(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/assessments/a4")
    ready(page)
    page.keyboard.press("7")
    ready(page)
    page.reload()
    ready(page)
    expect(page.locator('[data-field="0.0"]')).to_have_value("7")


def test_verdict_after_seeing_grades_counts_as_assisted(
    blind_template: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "store"
    shutil.copytree(blind_template, folder)
    switch(folder, blind=0.0)
    with serving(folder) as server:
        assert server.get("/api/assessments/a5")["panes"][0]["score"] is not None
        switch(folder, blind=1.0)
        assert server.get("/api/assessments/a6")["blind"]
        assert not server.get("/api/assessments/a5")["blind"]
        post(
            server,
            "/api/decisions",
            {"decisions": [{"key": "k" * 10, "id": "a5", "verb": "approve"}]},
        )
        with Workspace.open(folder, environment={}) as workspace:
            (decision,) = workspace.observations.read(kinds=(ObservationKind.DECISION,))
        assert isinstance(decision.body, DecisionTaken)
        assert decision.body.arm == "assisted"


@pytest.mark.slow
def test_from_an_empty_store_to_a_first_verdict_by_pasting(
    chromium: Browser, tmp_path: Path, watch: Watch
) -> None:
    server = Served(tmp_path / "empty")
    server.folder.mkdir()
    server.start()
    try:
        page = chromium.new_page()
        watch.on(page, server)
        page.goto(server.url)
        page.locator("[name=thing]").fill("A gate")
        for place, name in enumerate(("ann", "bob")):
            page.locator("[name=name]").nth(place).fill(name)
            page.locator("[name=content]").nth(place).fill(f"x = {place}")
        page.get_by_role("button", name="Grade these").click()
        page.wait_for_url("**/review?run=*")
        item = ready(page)
        page.locator(".ways").wait_for()
        expect(page.locator(".correction")).to_contain_text(
            "No judge graded this", use_inner_text=True
        )
        shown = server.get(f"/api/assessments/{item}")
        for _ in range(len(shown["criteria"]) * 2):
            page.keyboard.press("8")
            ready(page)
        page.keyboard.press("Control+Enter")
        eventually(lambda: server.get(f"/api/assessments/{item}")["state"] == "corrected")
        assert server.get(f"/api/assessments/{item}")["events"][0]["reason"] == "Graded by a person"
        assert [path.stem for path in (server.folder / "suites").iterdir()] == ["a-gate"]
        page.close()
    finally:
        server.kill()


def test_correction_begins_with_the_reviewer_s_own_verdict(page: Page, served: Served) -> None:
    item = served.get("/api/assessments/a3")
    post(served, "/api/review/verdict", {"key": "v" * 10, "id": "a3", "scores": scores_for(item)})
    page.goto(f"{served.url}/assessments/a3")
    ready(page)
    page.wait_for_load_state("networkidle")
    page.keyboard.press("c")
    page.locator(".ways").wait_for()
    fields = page.locator("[data-field]").evaluate_all(
        "found => found.map(one => [one.dataset.field, one.value])"
    )
    scores = {value for name, value in fields if not name.startswith("-1")}
    assert scores == {"5"}
    assert {value for name, value in fields if name.startswith("-1")} == {"50"}


def test_approving_a_blind_item_asks_for_a_verdict_first(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/assessments/a3")
    ready(page)
    page.keyboard.press("a")
    eventually(lambda: "Score every criterion yourself first" in page.locator("#said").inner_text())
    expect(page.locator("#said")).not_to_contain_text("has no score", use_inner_text=True)


def decided(served: Served, item: str, verb: str, **more: Any) -> None:
    decision = {"key": f"{verb} of {item}", "id": item, "verb": verb, **more}
    (result,) = post(served, "/api/decisions", {"decisions": [decision]})["results"]
    assert result["ok"], result


def arms(served: Served) -> list[tuple[str, str]]:
    with Workspace.open(served.folder, environment={}) as workspace:
        decisions = with_body(workspace.observations.read(), DecisionTaken)
        return [(str(taken.verb), str(taken.arm)) for _, taken in decisions]


def test_a_decided_item_that_was_looked_at_is_not_blind_after_an_undo(served: Served) -> None:
    for item, looked in (("a2", True), ("a3", False)):
        decided(served, item, "reject", reason="other")
        if looked:
            assert SECRETS.findall(json.dumps(served.get(f"/api/assessments/{item}")))
        decided(served, item, "undo")
        # A decision without a look at the item is a scripted one, and ends blindness too.
        assert served.get(f"/api/assessments/{item}")["blind"] is False
    verdict = {"id": "a2", "key": "v" * 10, "scores": scores_for(served.get("/api/assessments/a2"))}
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(served, "/api/review/verdict", verdict)
    assert refused.value.code == 409
    decided(served, "a2", "approve")
    assert arms(served)[-1] == ("approve", "assisted")


def test_superseded_attempt_is_hidden_while_the_next_waits_blind(served: Served) -> None:
    wish = {"id": "a2", "attempt": 1, "reason": "unclear", "key": "r" * 10}
    post(served, "/api/rerun", wish)
    eventually(lambda: post(served, "/api/rerun", wish)["status"] == "done")
    new = post(served, "/api/rerun", wish)["new_id"]
    assert served.get(f"/api/assessments/{new}")["blind"]
    earlier = served.get("/api/assessments/a2")
    assert earlier["state"] == "superseded"
    assert not SECRETS.findall(json.dumps(earlier))
    assert arms(served) == [("rerun", "blind")]
    post(served, "/api/review/verdict", {"id": new, "key": "v" * 10, "scores": scores_for(earlier)})
    assert SECRETS.findall(json.dumps(served.get("/api/assessments/a2")))
