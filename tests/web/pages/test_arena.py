"""The arena: two responses without names, a vote that counts once, then who wrote them."""

from __future__ import annotations

import csv
import json
import re
import shutil
import urllib.request
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.support.documented_keys import as_table
from tests.web.accessibility import WIDTHS, serious
from tests.web.conftest import Served, Watch, eventually, judged_store, serving
from tests.web.pages_store import SECRETS, WRITERS, ask, pages_store, pair_of

from assay.app.imports.restore import rebuild
from assay.app.review import protocol
from assay.app.workspace import Workspace
from assay.domain.observations import DecisionTaken, ObservationKind
from assay.domain.selection import Selection
from assay.web import keyboard
from assay.web.templating import folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page, Response

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def pages_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pages_store(tmp_path_factory.mktemp("pages") / "store")


@pytest.fixture
def served(pages_template: Path, tmp_path: Path) -> Iterator[Served]:
    """A server over 2 tasks, 3 candidates, 2 trials, judged."""
    with serving(shutil.copytree(pages_template, tmp_path / "store")) as server:
        yield server


SHADES = {"#1b5e20": 3, "#0d47a1": 2, "#b71c1c": 1}
"""What each writer's page looks like, and how good it is."""


def shade_of(text: str) -> str:
    return next(shade for shade in SHADES if shade in text)


def next_pair(served: Served, reviewer: str = "ann") -> Any:
    status, result = ask(served, f"/api/arena/{served.run_id}/next", reviewer=reviewer)
    assert status == 200
    return result["pair"]


def vote(
    served: Served, item: Any, choice: str, *, key: str, reviewer: str = "ann"
) -> tuple[int, Any]:
    body = {**pair_of(item, reviewer), "choice": choice, "key": key, "active_ms": 1200}
    return ask(served, f"/api/arena/{served.run_id}/votes", body)


def shown(page: Page) -> None:
    page.wait_for_selector("#bout:not([hidden]) .side-head")
    page.evaluate(
        "() => new Promise(d => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(d))))"
    )


def open_pair(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/arena/{served.run_id}")
    shown(page)


def voted(page: Page, key: str) -> str:
    page.keyboard.press(key)
    page.wait_for_selector("#reveal:not([hidden])")
    return str(page.locator("#reveal").inner_text())


def test_arena_vote_by_key_reveals_authors_and_opens_the_next_pair(
    page: Page, served: Served
) -> None:
    page.goto(f"{served.url}/arena")
    page.get_by_role("link", name="Vote frontends").click()
    shown(page)
    first = page.url
    assert all(f"{name}=" in first for name in ("task", "trial", "pair"))
    reveal = voted(page, "a")
    assert "You found A better" in reveal
    assert len([name for name in WRITERS if name in reveal]) == 2
    assert "arena-judge" in reveal
    assert ("✓ agrees" in reveal) != ("✕ disagrees" in reveal)
    assert page.evaluate("document.activeElement.id") == "reveal-title"
    page.keyboard.press("j")
    page.wait_for_function("before => location.href !== before", arg=first)
    expect(page.locator("#reveal")).to_be_hidden()
    page.go_back()
    page.wait_for_selector("#reveal:not([hidden])")
    assert page.url == first
    assert ask(served, "/arena.json")[1]["runs"][0]["votes"] == 1


def test_no_name_and_no_score_leaves_before_the_vote(page: Page, served: Served) -> None:
    leaks: list[str] = []

    def read(response: Response) -> None:
        if "/static/" in response.url:
            return
        heard = f"{response.url} {response.headers} {response.text() if response.ok else ''}"
        leaks.extend(f"{response.url}: {entry}" for entry in SECRETS.findall(heard))

    page.on("response", read)
    open_pair(page, served)
    page.keyboard.press("p")
    page.wait_for_selector("iframe >> nth=1")
    page.frame_locator("iframe").first.locator("h1").wait_for()
    page.keyboard.press("s")
    page.wait_for_timeout(300)
    twin = page.locator("link[rel=alternate]").get_attribute("href")
    leaks.extend(SECRETS.findall(page.request.get(served.url + str(twin)).text()))
    leaks.extend(SECRETS.findall(page.request.get(f"{served.url}/arena.json").text()))
    assert leaks == []
    page.remove_listener("response", read)
    assert SECRETS.search(voted(page, "b")), "what is looked for is told after the vote"


def test_a_second_press_and_a_lost_answer_count_once(
    page: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("ERR_FAILED",)
    open_pair(page, served)
    lost: list[str] = []

    def lose_first(route: Any) -> None:
        lost.append(route.request.post_data)
        if len(lost) == 1:
            route.fetch()  # it arrives, and its answer is lost
            route.abort()
        else:
            route.continue_()

    page.route("**/votes", lose_first)
    page.evaluate(
        """() => { for (const key of ['a', 'a', 'b']) document.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
                   document.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', repeat: true, bubbles: true})); }"""
    )
    page.wait_for_selector("#reveal:not([hidden])")
    assert len(lost) == 2
    assert lost[0] == lost[1]
    assert ask(served, "/arena.json")[1]["runs"][0]["votes"] == 1
    page.keyboard.press("b")
    expect(page.locator("#said")).to_contain_text("voted on this pair", use_inner_text=True)
    assert ask(served, "/arena.json")[1]["runs"][0]["votes"] == 1


def test_arena_key_in_a_field_or_with_a_modifier_casts_no_vote(page: Page, served: Served) -> None:
    open_pair(page, served)
    page.locator("[data-dialog=reviewer]").click()
    page.locator("#reviewer-name").press("a")
    page.keyboard.press("Escape")
    for key in ("Control+a", "Alt+b", "Enter", "Space", "Backspace"):
        page.locator("#thing").focus()
        page.keyboard.press(key)
    expect(page.locator("#reveal")).to_be_hidden()
    page.locator("#thing").focus()
    voted(page, "a")  # an earlier vote would be in the store before this one
    assert ask(served, "/arena.json")[1]["runs"][0]["votes"] == 1


def test_arena_keeps_the_focus_during_keyboard_voting(page: Page, served: Served) -> None:
    open_pair(page, served)
    page.emulate_media(reduced_motion="reduce")
    expect(page.locator("#said")).to_have_attribute("aria-live", "polite")
    page.keyboard.press("]")
    assert page.evaluate("document.activeElement.id") == "side-1"
    page.keyboard.press("Tab")  # into the side: its switch, then its button
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent").startswith("Start the page")
    page.keyboard.press("Enter")
    page.wait_for_selector("#side-1 iframe")
    assert page.evaluate("document.activeElement.dataset.stop") == "1", (
        "what was pressed is gone; its opposite has the focus"
    )
    page.keyboard.press("Enter")
    expect(page.locator("iframe")).to_have_count(0)
    assert page.evaluate("document.activeElement.textContent").startswith("Start the page")
    page.keyboard.press("v")
    assert page.evaluate("document.activeElement.closest('.side') !== null")
    voted(page, "b")
    assert page.evaluate("document.activeElement.id") == "reveal-title"
    page.keyboard.press("j")
    page.wait_for_selector("#said:has-text('Next pair')")
    assert page.evaluate("document.activeElement.id") == "thing"
    page.keyboard.press("s")
    page.wait_for_selector("#said:has-text('Skipped')")
    assert page.evaluate("document.activeElement.id") == "thing"
    page.keyboard.press("u")
    page.wait_for_selector("#said:has-text('Vote undone')")
    assert page.evaluate("document.activeElement.id") == "thing"
    moving = page.evaluate(
        "() => document.getAnimations().filter((one) => one.effect.getComputedTiming().duration > 20).length"
    )
    assert moving == 0


def test_arena_shows_the_beginning_of_a_huge_response(
    page_at: Callable[[Served], Page], tmp_path: Path
) -> None:
    huge = (
        "```html\n<!doctype html><title>x</title>"
        + "<p>line</p>\n" * 420_000
        + "<p id=end></p>\n```"
    )
    given = {(writer, "counter"): huge for writer in WRITERS[:2]}
    with serving(
        pages_store(
            tmp_path / "store", tasks=("counter",), trials=1, writers=WRITERS[:2], given=given
        )
    ) as server:
        item = next_pair(server)
        assert [(len(pane["text"]), pane["cut"], pane["page_cut"]) for pane in item["panes"]] == [
            (200_000, True, True)
        ] * 2
        status, result = ask(
            server, f"/api/arena/{server.run_id}/previews", {**pair_of(item), "side": 0}
        )
        assert status == 201
        request = urllib.request.Request(
            server.url + result["address"], headers={"sec-fetch-dest": "iframe"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert 1_900_000 < len(answer.read()) < 2_100_000
        page = page_at(server)
        page.goto(f"{server.url}/arena/{server.run_id}")
        shown(page)
        expect(page.locator("#side-0")).to_contain_text(
            "only its first 2,000,000 characters are run", use_inner_text=True
        )
        page.keyboard.press("v")
        expect(page.locator("#side-0")).to_contain_text(
            "Only the beginning of the response is shown", use_inner_text=True
        )
        assert "You found A better" in voted(page, "a")
        page.goto("about:blank")


def test_undo_takes_the_vote_back_and_shows_the_pair_again(
    page: Page, served: Served, watch: Watch
) -> None:
    watch.expected = ("409",)
    open_pair(page, served)
    before = page.url
    voted(page, "e")
    page.keyboard.press("j")
    page.wait_for_function("before => location.href !== before", arg=before)
    page.keyboard.press("u")
    page.wait_for_url(before)
    shown(page)
    expect(page.locator("#reveal")).to_be_hidden()
    assert ask(served, "/arena.json")[1]["runs"][0]["votes"] == 0
    page.keyboard.press("u")
    page.wait_for_selector("text=You have no vote to undo.")


def test_arena_sides_survive_a_reload_and_differ_by_person(served: Served) -> None:
    item = next_pair(served)
    address = f"/arena/{served.run_id}.json?" + item["address"].partition("?")[2]
    texts = [pane["text"] for pane in item["panes"]]
    again = [ask(served, address, reviewer="ann")[1]["pair"]["panes"] for _ in range(3)]
    assert all([pane["text"] for pane in panes] == texts for panes in again)
    others = [
        ask(served, address, reviewer=f"person{n}")[1]["pair"]["panes"][0]["text"]
        for n in range(24)
    ]
    assert 4 <= others.count(texts[0]) <= 20, (
        "about half see the sides turned; 1 in 1,300 seeds would fail"
    )


def test_the_order_of_the_sides_is_kept_with_the_vote(served: Served) -> None:
    item = next_pair(served)
    status, result = vote(served, item, "b", key="first-vote")
    assert status == 201
    names = result["reveal"]["names"]
    for pane, name in zip(item["panes"], names, strict=True):
        assert shade_of(pane["text"]) == dict(zip(WRITERS, SHADES, strict=True))[name], (
            "A is the one that stood left"
        )
    (judge,) = result["reveal"]["judges"]
    assert (judge["a"] > judge["b"]) == (judge["says"] == "a")
    assert judge["agrees"] == (judge["says"] == "b")
    assert vote(served, item, "b", key="first-vote")[1] == result, (
        "the same key again is the same vote"
    )
    assert vote(served, item, "a", key="first-vote")[0] == 409, "the key belongs to the other vote"
    assert vote(served, item, "a", key="other-vote")[0] == 409


def test_arena_offers_every_pair_equally_and_once(served: Served) -> None:
    seen: Counter[tuple[str, ...]] = Counter()
    items = set()
    for n in range(12):
        item = next_pair(served)
        items.add((item["task"], item["trial"], item["pair"]))
        _, result = vote(served, item, "equal", key=f"vote-number-{n}")
        seen[tuple(sorted(result["reveal"]["names"]))] += 1
        assert max(seen.values()) - min(seen.get(pair, 0) for pair in seen) <= 1
    assert len(items) == 12
    assert sorted(seen.values()) == [4, 4, 4]
    assert next_pair(served) is None


def test_a_skipped_pair_comes_again_at_the_end(served: Served) -> None:
    first = next_pair(served)
    status, result = ask(served, f"/api/arena/{served.run_id}/skip", pair_of(first))
    assert status == 200
    came = []
    item = result["pair"]
    n = 0
    while item is not None and n < 20:
        came.append((item["task"], item["trial"], item["pair"]))
        vote(served, item, "a", key=f"vote-after-skip-{n}")
        item, n = next_pair(served), n + 1
    assert came[-1] == (first["task"], first["trial"], first["pair"])
    assert len(came) == 12


def test_requests_that_make_no_sense_are_refused_in_a_sentence(served: Served) -> None:
    run, item = served.run_id, next_pair(served)
    assert ask(served, "/api/arena/nowhere/next")[0] == 404
    for wrong in ({"pair": "0" * 12}, {"task": "none"}, {"trial": 99}):
        status, result = ask(
            served,
            f"/api/arena/{run}/votes",
            {**pair_of(item), **wrong, "choice": "a", "key": "k" * 8},
        )
        assert (status, bool(result["error"]["problem"])) == (404, True)
    status, _ = ask(
        served, f"/api/arena/{run}/votes", {**pair_of(item), "choice": "c", "key": "k" * 8}
    )
    assert status == 422
    status, _ = ask(served, f"/api/arena/{run}/undo", {"key": "k" * 8, "reviewer": "ann"})
    assert status == 409
    _, result = vote(served, item, "a", key="a vote of ann")
    body = {"key": "somebody else", "reviewer": "bob", "vote": result["reveal"]["vote"]}
    assert ask(served, f"/api/arena/{run}/undo", body)[0] == 409, (
        "nobody takes back what another person voted"
    )
    status, result = ask(
        served, f"/api/arena/{run}/undo", {"key": "a vote of ann", "reviewer": "ann"}
    )
    assert (status, result["error"]["problem"]) == (409, "was used for another vote.")
    assert (
        vote(served, next_pair(served, "bob"), "a", key="a vote of ann", reviewer="bob")[0] == 409
    )
    assert ask(served, "/preview/guessed")[0] == 409, (
        "whoever does not say what it is for is told nothing"
    )


def test_arena_keys_buttons_and_help_match_the_key_registry(page: Page, served: Served) -> None:
    open_pair(page, served)
    bound = [key for entry in keyboard.COMPARISON for key in entry.keys]
    assert len(bound) == len(set(bound))
    assert not set(bound) & keyboard.NEVER_BOUND
    for button in page.locator("footer [data-action]").all():
        action = str(button.get_attribute("data-action"))
        expect(button.locator("kbd")).to_have_text(
            keyboard.badge(action, keyboard.COMPARISON), use_inner_text=True
        )
    documented = (Path(__file__).parents[3] / "docs" / "how-to" / "vote-in-the-arena.md").read_text(
        "utf-8"
    )
    assert as_table(keyboard.COMPARISON) in documented
    page.keyboard.press("?")
    told = page.locator("#help").inner_text()
    assert all(entry.about in told for entry in keyboard.COMPARISON)
    script = (folder("static") / "arena" / "arena_pair.js").read_text("utf-8")
    actions = set(
        re.findall(
            r"^  (\w+)(?::|,)",
            script[script.index("const actions = {") : script.index("bindKeys(")],
            re.M,
        )
    )
    assert actions == {entry.action for entry in keyboard.COMPARISON}


def test_a_person_may_look_at_both_pages_and_stop_them(page: Page, served: Served) -> None:
    open_pair(page, served)
    expect(page.locator("iframe"), "nothing runs unasked").to_have_count(0)
    page.keyboard.press("p")
    page.wait_for_selector("iframe >> nth=1")
    button = page.frame_locator("iframe").first.locator("button")
    # the page runs in a process of its own, and handles a click when it gets there
    for clicks in ("1", "2"):
        button.click()
        expect(button).to_have_text(clicks)
    page.get_by_role("button", name="Stop", exact=True).first.click()
    expect(page.locator("iframe")).to_have_count(1)
    page.get_by_role("button", name="Source").first.click()
    expect(page.locator(".source").first).to_contain_text("<!doctype html>", use_inner_text=True)
    page.keyboard.press("p")
    eventually(lambda: page.locator("iframe").count() == 0)


def test_pages_that_run_go_on_through_the_vote(page: Page, served: Served) -> None:
    asked: list[str] = []
    page.on(
        "request", lambda request: asked.append(request.url) if "/preview" in request.url else None
    )
    open_pair(page, served)
    page.keyboard.press("p")
    for side in (0, 1):
        button = page.locator(f"#side-{side} iframe").content_frame.locator("button")
        button.click()
        expect(button).to_have_text("1")
    before = len(asked)
    page.evaluate("window.frameElements = [...document.querySelectorAll('iframe')]")
    page.locator("#thing").focus()
    voted(page, "a")
    expect(page.locator(".who-wrote"), "the heads are drawn anew").to_have_count(2)
    assert page.evaluate(
        "frameElements.every((one, side) => one === document.querySelectorAll('iframe')[side])"
    )
    for side in (0, 1):
        expect(page.locator(f"#side-{side} iframe").content_frame.locator("button")).to_have_text(
            "1", use_inner_text=True
        )
    assert len(asked) == before, "no page is asked for again"
    page.locator("#side-0").get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator("iframe")).to_have_count(1)


def test_vote_in_a_run_under_blind_review_reveals_and_is_noted(tmp_path: Path) -> None:
    there = pages_store(tmp_path / "store", review="every")
    with Workspace.open(there, environment={}) as workspace:
        (run,) = workspace.archive.runs.matching(Selection())
        protocol.switch(workspace, run.id, {"blind": 1.0}, reviewer="operator")
    with serving(there) as server:
        item = next_pair(server)
        _, result = vote(server, item, "a", key="a blind vote")
        assert len(set(result["reveal"]["names"])) == 2
        with Workspace.open(there, environment={}) as workspace:
            assert len(workspace.observations.read(kinds=(ObservationKind.DISCLOSED,))) == 1


def items(served: Served, reviewer: str, n: int) -> list[Any]:
    return [
        ask(served, f"/assessments/a{key}.json", reviewer=reviewer)[1] for key in range(1, n + 1)
    ]


def test_voter_who_saw_the_authors_no_longer_reviews_blind(tmp_path: Path) -> None:
    there = pages_store(tmp_path / "store", trials=1, review="every")
    with serving(there) as server:
        item = next_pair(server)
        _, result = vote(server, item, "a", key="ann's vote")
        assert len(set(result["reveal"]["names"])) == 2
        by_name = {who: items(server, who, 6) for who in ("ann", "bob")}
        task = {one["id"]: one["task"] for one in by_name["ann"]}
        told = {who: {one["id"] for one in some if one["told"]} for who, some in by_name.items()}
        assert told == {"ann": {one for one in task if task[one] == item["task"]}, "bob": set()}
        assert {
            "the arena has shown you" in one["stamp"] for one in by_name["ann"] if one["told"]
        } == {True}
        assert not any(one["panes"][0]["name"] for some in by_name.values() for one in some), (
            "names stay hidden"
        )
        with Workspace.open(there, environment={}) as workspace:
            (run,) = workspace.archive.runs.matching(Selection())
            protocol.switch(workspace, run.id, {"blind": 1.0}, reviewer="operator")
        (known, *_), (new, *_) = sorted(told["ann"]), sorted(set(task) - told["ann"])
        unseen = "carl"
        assert [
            ask(server, f"/assessments/{known}.json", reviewer=who)[1]["blind"]
            for who in ("ann", unseen)
        ] == [False, True]
        decision = {"key": "approved by ann", "id": known, "verb": "approve", "reviewer": "ann"}
        assert ask(server, "/api/decisions", {"decisions": [decision]})[1]["results"][0]["ok"]
        with Workspace.open(there, environment={}) as workspace:
            (noted,) = workspace.observations.read(kinds=(ObservationKind.DECISION,))
            assert isinstance(noted.body, DecisionTaken)
            assert (noted.body.arm, noted.body.disclosed) == ("assisted", True)
        assert ask(server, f"/assessments/{new}.json", reviewer=unseen)[1]["told"] is False


def test_texts_that_came_with_the_suite_are_known_in_every_trial(tmp_path: Path) -> None:
    folder = judged_store(tmp_path / "gates", things=2, trials=3)
    with serving(folder) as server:
        item = next_pair(server)
        vote(server, item, "equal", key="ann's vote")
        told = [(one["task"] == item["task"], one["told"]) for one in items(server, "ann", 6)]
        assert sorted(told) == [(False, False)] * 3 + [(True, True)] * 3


def test_names_inside_responses_are_hidden_until_the_vote(
    page_at: Callable[[Served], Page], tmp_path: Path
) -> None:
    given = {
        (
            writer,
            "counter",
        ): f"```html\n<!doctype html><h1>By {writer.title()}</h1>\n```\nI am {writer}."
        for writer in WRITERS
    }
    with serving(
        pages_store(tmp_path / "store", tasks=("counter",), trials=1, given=given)
    ) as server:
        item = next_pair(server)
        assert not SECRETS.search(str(item))
        page = page_at(server)
        assert [(pane["text"].count("▒▒▒"), pane["names_hidden"]) for pane in item["panes"]] == [
            (2, True)
        ] * 2
        page.goto(f"{server.url}/arena/{server.run_id}")
        shown(page)
        expect(page.locator("#side-0")).to_contain_text(
            "contains a name that may reveal", use_inner_text=True
        )
        page.keyboard.press("v")
        source = page.locator("#side-0 .source")
        expect(source).to_contain_text("I am ▒▒▒.", use_inner_text=True)
        expect(page.locator("#side-0")).to_contain_text("replaces a name", use_inner_text=True)
        reveal = voted(page, "a")
        left = next(name for name in WRITERS if f"A is {name}" in reveal)
        page.keyboard.press("v")
        page.keyboard.press("v")
        expect(source).to_contain_text(f"I am {left}.", use_inner_text=True)
        page.keyboard.press("u")
        page.wait_for_selector("text=Vote undone.")
        page.keyboard.press("v")
        expect(source).to_contain_text("I am ▒▒▒.", use_inner_text=True)
        page.goto("about:blank")


def test_a_run_is_begun_from_a_prompt_cost_first_and_voted_on(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/arena")
    page.get_by_role("button", name="Estimate cost").click()
    page.wait_for_selector("text=Enter a prompt.")
    page.get_by_label("Prompt", exact=True).fill("Build a counter.")
    page.get_by_role("button", name="Estimate cost").click()
    page.wait_for_selector("text=Select at least two models.")
    lines = [
        {"match": {"role": "candidate"}, "reply": {"text": text}}
        for text in ("<h1>one</h1>", "<h1>two</h1>")
    ]
    for name, line in zip(("one", "two"), lines, strict=True):
        (served.folder / f"{name}.jsonl").write_text(json.dumps(line), "utf-8")
        page.locator("#add-model").fill(f"replay/{served.folder / name}.jsonl")
        page.get_by_role("button", name="Add model").click()
    page.get_by_role("button", name="Estimate cost").click()
    page.wait_for_selector("text=2 calls")
    before = len(served.get("/api/runs")["runs"])
    page.get_by_role("button", name="Start and vote").click()
    page.wait_for_url("**/arena/*arena-build-a-counter*")
    page.wait_for_selector("#bout:not([hidden]) .side-head", timeout=20_000)
    page.wait_for_timeout(100)
    assert len(served.get("/api/runs")["runs"]) == before + 1
    reveal = voted(page, "0")
    assert "You found both bad" in reveal
    assert "one.jsonl" in reveal


def test_the_ranking_counts_votes_and_no_undone_ones(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/arena/{served.run_id}/ranking")
    expect(page.locator("main")).to_contain_text("No votes yet", use_inner_text=True)
    for n in range(10):
        item = next_pair(served)
        left = SHADES[shade_of(item["panes"][0]["text"])]
        right = SHADES[shade_of(item["panes"][1]["text"])]
        choice = "both_bad" if n == 9 else "a" if (left > right) == (n % 4 != 0) else "b"
        vote(served, item, choice, key=f"vote-number-{n}")
    item = next_pair(served)
    vote(served, item, "a", key="to be undone")
    ask(served, f"/api/arena/{served.run_id}/undo", {"key": "undo that one", "reviewer": "ann"})
    status, result = ask(served, f"/arena/{served.run_id}/ranking.json")
    assert status == 200
    assert (result["votes"], result["compared"], result["both_bad"]) == (10, 9, 1)
    assert sum(one["wins"] for one in result["candidates"]) == 9
    assert result["left"]["n"] == 9
    (judge,) = result["diagnostics"]["judges"]
    assert judge["judge"] == "arena-judge"
    assert judge["agreed"]["n"] == 9
    page.reload()
    outcome = page.locator("main").inner_text()
    assert "Votes: 10, people: 1, tasks: 2" in outcome
    assert "arena-judge agrees with people's preference" in outcome
    table = page.request.get(f"{served.url}/arena/{served.run_id}/charts/strengths.csv").text()
    assert table.startswith("candidate,mean,low,high")
    pairs = page.request.get(f"{served.url}/arena/{served.run_id}/pairs.csv").text().splitlines()
    assert len(pairs) == 4
    assert (
        page.request.get(f"{served.url}/arena/{served.run_id}/charts/strengths.pdf").status == 404
    )
    assert "No pair is decided yet" in outcome
    assert {one["decision"] for one in result["pairs"]} == {"not_decided"}
    assert f"of {result['pairs'][0]['compared']} votes" in outcome
    links = {str(one.get_attribute("href")) for one in page.locator(".files a").all()}
    path = f"/arena/{served.run_id}"
    assert {f"{path}/pairs.csv", f"{path}/votes.csv", f"{path}/ranking.json"} <= links
    votes = list(
        csv.DictReader(page.request.get(f"{served.url}{path}/votes.csv").text().splitlines())
    )
    assert len(votes) == 10, "a vote that was taken back is no vote"
    assert sum(one["choice"] == "both_bad" for one in votes) == 1
    assert {one["left"] for one in votes} | {one["right"] for one in votes} == set(WRITERS)


def test_votes_come_back_from_the_results_folder(served: Served, tmp_path: Path) -> None:
    for n, choice in enumerate(("a", "b", "equal")):
        vote(served, next_pair(served), choice, key=f"vote-number-{n}")
    run = served.run_id
    ask(served, f"/api/arena/{run}/undo", {"key": "undo that one", "reviewer": "ann"})
    before = ask(served, f"/arena/{run}/ranking.json")[1]
    (record,) = (served.folder / "results").rglob(f"*{run}*.jsonl")
    eventually(lambda: record.read_text("utf-8").count('"undo that one"') == 1)
    served.kill()
    (tmp_path / "other").mkdir()
    with Workspace.open(tmp_path / "other", environment={}) as workspace:
        assert rebuild(workspace.store, workspace.results, served.folder / "results").votes == 4
    with serving(tmp_path / "other") as other:
        assert ask(other, f"/arena/{run}/ranking.json")[1] == before


HOSTILE = (
    "<img src=x onerror=alert(1)></script><script>alert(2)</script>\u202emoc.live\u202c{{7*7}}"
)


def test_arena_pages_are_accessible_at_every_width(
    chromium: Browser, watch: Watch, tmp_path: Path
) -> None:
    writers = ("wilhelmina", HOSTILE.partition("\u202e")[0])
    given = {(writers[1], "counter"): HOSTILE, (writers[0], "counter"): f"As GPT-4 I say {HOSTILE}"}
    there = pages_store(
        tmp_path / "store", tasks=("counter",), trials=2, writers=writers, given=given, judged=False
    )
    with serving(there) as server:
        run = server.run_id
        for scheme in ("light", "dark"):
            context = chromium.new_context(color_scheme=scheme, reduced_motion="reduce")
            page = context.new_page()
            watch.on(page, server)
            for path in ("/arena", f"/arena/{run}", f"/arena/{run}/ranking"):
                page.goto(server.url + path)
                page.wait_for_load_state("load")
                if path == f"/arena/{run}":
                    shown(page)
                    if scheme == "light":
                        assert "GPT-4" in voted(page, "a").upper()
                assert serious(page) == [], path
                for width, height in WIDTHS:
                    page.set_viewport_size({"width": width, "height": height})
                    over = page.evaluate(
                        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
                    )
                    assert over <= 0, f"{path} is {over} px too wide at {width}"
                page.keyboard.press("?")
                page.wait_for_timeout(60)
                assert serious(page) == [], f"{path} with its sheet"
            context.close()
        row = ask(server, f"/arena/{run}/ranking.json")[1]
        assert (row["votes"], row["telling"]["votes"]) == (1, 1)


def test_an_empty_store_leads_to_a_first_pair(
    page_at: Callable[[Served], Page], tmp_path: Path
) -> None:
    with serving(tmp_path) as server:
        page = page_at(server)
        page.goto(f"{server.url}/arena")
        expect(page.get_by_role("heading", name="There are no runs to vote on yet")).to_be_visible()
        expect(page.get_by_label("Prompt", exact=True)).to_be_visible()
        assert serious(page) == []
        page.goto("about:blank")
