"""No decision is lost and none is counted twice, whatever happens to server, network, browser or
store; in a real browser.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.support.waiting_store import fill
from tests.web.conftest import Served, Watch, eventually, item_of, pressed, ready, unsent

from assay.app.workspace import Workspace
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.slow

FAULTS = (
    "Failed to load resource",
    "ERR_CONNECTION",
    "ERR_FAILED",
    "ERR_INTERNET_DISCONNECTED",
    "ERR_EMPTY_RESPONSE",
    "ERR_SOCKET_NOT_CONNECTED",
)


FAULTY = """let drawn = 7;
window.faults = 0;
const real = window.fetch;
window.fetch = async (path, options) => {
  if (path !== '/api/decisions') return real(path, options);
  drawn = (drawn * 1103515245 + 12345) % 2147483648;
  const fate = drawn / 2147483648;
  if (fate < 0.45) window.faults += 1;
  if (fate < 0.15) return new Response('{}', { status: [500, 502, 503, 429, 408][Math.floor(fate * 33)] });
  if (fate < 0.3) throw new TypeError('never sent');
  const answer = await real(path, options);
  if (fate < 0.45) throw new TypeError('the answer was lost');
  return answer;
};"""
"""Chance lets decisions end in trouble before they arrive, instead of an answer, and after they
were taken.
"""

HELD = """const real = window.fetch;
const gate = new Promise((open) => { window.open_ = open; });
window.fetch = async (path, options) => { if (path === '/api/decisions') await gate; return real(path, options); };"""


@pytest.fixture
def many(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Makes a server over a store in which so many items wait."""
    made: list[Served] = []

    def make(waiting: int, *arguments: str) -> Served:
        fill(f"sqlite:///{tmp_path}/assay.db", waiting)
        server = Served(
            tmp_path, arguments=("--store", f"sqlite:///{tmp_path}/assay.db", *arguments)
        )
        made.append(server)
        server.start()
        return server

    yield make
    for server in made:
        server.kill()


def opened(context: BrowserContext, served: Served, path: str = "/review") -> Page:
    page = context.new_page()
    page.goto(served.url + path)
    ready(page)
    return page


def events(served: Served) -> list[tuple[int, str]]:
    """(assessment, verb) of every event in the store of a server made by `many`."""
    options = {"store": f"sqlite:///{served.folder}/assay.db"}
    with Workspace.open(served.folder, options=options, environment={}) as workspace:
        return [
            (int(row.key), str(event.decision.verb))
            for row, event in workspace.archive.exports.events(Selection())
        ]


def check_once(served: Served, decided: list[str], *, waiting: int) -> None:
    """Exactly these items were approved, each by one event, and nothing else happened."""
    assert sorted(events(served)) == sorted((int(item[1:]), "approve") for item in decided)
    left = {"pending": waiting - len(decided), "approved": len(decided)}
    assert served.states() == {state: n for state, n in left.items() if n}


def test_a_server_killed_amid_decisions_and_answers_at_random(
    context: BrowserContext, many: Callable[..., Served], watch: Watch
) -> None:
    served = many(60)
    watch.expected = FAULTS
    page = context.new_page()
    watch.on(page, served)

    page.add_init_script(FAULTY)
    page.goto(f"{served.url}/review")
    decided: dict[str, None] = {}
    while len(decided) < 14 or (len(decided) < 50 and page.evaluate("() => window.faults") < 4):
        before = len(decided)
        # the same once more where nothing is left until the server is back
        decided[ready(page)] = None
        page.keyboard.press("a")
        if len(decided) in (4, 9) and len(decided) > before:
            served.kill()
            page.wait_for_timeout(200)
            decided[ready(page)] = None
            page.keyboard.press("a")
            served.start()
        page.wait_for_timeout(50)
    eventually(lambda: unsent(page) == 0, within_s=40)
    assert page.evaluate("() => window.faults") > 3
    check_once(served, [*decided], waiting=60)


def test_a_key_pressed_as_the_next_item_arrives_decides_nothing(
    context: BrowserContext, many: Callable[..., Served]
) -> None:
    served = many(30)
    page = opened(context, served)
    context.set_offline(True)
    decided: list[str] = []
    while item_of(page) not in decided:
        decided.append(item_of(page))
        pressed(page, "a")
    context.set_offline(False)
    page.evaluate("""() => new Promise((done) => {
        const before = document.getElementById('item').dataset.id;
        new MutationObserver(([change], observer) => {
            if (change.target.dataset.id === before) return;
            observer.disconnect(); // items after this one follow a key press
            requestAnimationFrame(() => requestAnimationFrame(() => {
                document.dispatchEvent(new KeyboardEvent('keydown', { key: 'a', bubbles: true, cancelable: true }));
                done();
            }));
        }).observe(document.getElementById('item'), { attributeFilter: ['data-id'] });
    })""")
    expect(page.locator("#said")).to_contain_text("only just appeared", use_inner_text=True)
    arrived = ready(page)
    assert arrived not in decided
    page.keyboard.press("a")
    eventually(lambda: unsent(page) == 0)
    check_once(served, [*decided, arrived], waiting=30)


def test_a_tab_closed_offline_sends_when_another_is_opened(
    context: BrowserContext, many: Callable[..., Served]
) -> None:
    served = many(30)
    page = opened(context, served)
    context.set_offline(True)
    decided = [item_of(page)]
    decided.append(pressed(page, "a"))
    pressed(page, "a")
    eventually(lambda: "2 decisions have not been sent" in page.locator("#unsent").inner_text())
    page.close()
    context.set_offline(False)
    again = opened(context, served)
    assert item_of(again) not in decided
    eventually(lambda: unsent(again) == 0)
    check_once(served, decided, waiting=30)


def test_two_tabs_of_one_reviewer_share_an_outbox_and_no_item(
    context: BrowserContext, many: Callable[..., Served]
) -> None:
    served = many(30)
    tabs = [opened(context, served), opened(context, served)]
    context.set_offline(True)
    decided = []
    for _ in range(2):
        for tab in tabs:
            decided.append(ready(tab))
            tab.keyboard.press("a")
    context.set_offline(False)
    eventually(lambda: unsent(tabs[0]) == 0)
    assert len(set(decided)) == 4
    decided.append(ready(tabs[0]))
    for _ in range(4):
        # a second one of a key that is down repeats, and decides nothing
        tabs[0].keyboard.down("a")
    eventually(lambda: unsent(tabs[0]) == 0)
    check_once(served, decided, waiting=30)


def test_eight_reviewers_in_eight_browsers_decide_each_item_once(
    chromium: Browser, many: Callable[..., Served]
) -> None:
    waiting = 80
    served = many(waiting)
    contexts = [chromium.new_context() for _ in range(8)]
    pages = []
    for number, made in enumerate(contexts):
        made.add_cookies([{"name": "assay_reviewer", "value": f"r{number}", "url": served.url}])
        if number % 2:  # clocks that are years apart change nothing
            made.add_init_script(f"Date.now = () => {number} * 1e11")
        pages.append(opened(made, served))
    approve = """() => { if (document.getElementById('item').hidden) return 0;
        document.dispatchEvent(new KeyboardEvent('keydown', { key: 'a', bubbles: true, cancelable: true })); return 1; }"""
    for _ in range(400):
        if not sum(page.evaluate(approve) for page in pages):
            break
    eventually(lambda: all(unsent(page) == 0 for page in pages))
    for page in pages:  # what others had on their desks
        while page.evaluate(approve):
            page.wait_for_timeout(30)
    eventually(lambda: all(unsent(page) == 0 for page in pages))
    done = events(served)
    assert len(done) == len(set(done)) == waiting
    assert served.states() == {"approved": waiting}
    for made in contexts:
        made.close()


@pytest.mark.parametrize("fails", ["setItem", "localStorage"])
def test_a_browser_that_keeps_nothing_says_so_and_sends_all_the_same(
    context: BrowserContext, many: Callable[..., Served], watch: Watch, fails: str
) -> None:
    served = many(10)
    watch.expected = FAULTS
    no = "throw new DOMException('no', 'QuotaExceededError')"
    context.add_init_script(
        f"Storage.prototype.setItem = () => {{ {no}; }};"
        if fails == "setItem"
        else f"for (const n of ['localStorage', 'sessionStorage']) Object.defineProperty(window, n, {{ get() {{ {no}; }} }});"
    )
    page = context.new_page()
    watch.on(page, served)
    page.goto(f"{served.url}/review")
    ready(page)
    context.set_offline(True)
    decided = [item_of(page)]
    decided.append(pressed(page, "a"))
    pressed(page, "a")
    eventually(lambda: "This browser cannot store data" in page.locator("#unsent").inner_text())
    assert page.evaluate("() => !dispatchEvent(new Event('beforeunload', { cancelable: true }))"), (
        "leaving is asked about"
    )
    context.set_offline(False)
    eventually(lambda: served.states().get("approved") == 2)
    check_once(served, decided, waiting=10)


def test_a_session_that_ended_keeps_the_outbox_and_says_so(
    context: BrowserContext, many: Callable[..., Served]
) -> None:
    served = many(10, "--token", "a-rather-long-secret")
    enter = f"{served.url}/review?token=a-rather-long-secret"
    page = context.new_page()
    page.goto(enter)
    decided = [ready(page)]
    context.clear_cookies()
    pressed(page, "a")
    eventually(lambda: "session has expired" in page.locator("#unsent").inner_text())
    assert unsent(page) == 1
    other = context.new_page()
    other.goto(enter)
    eventually(lambda: unsent(page) == 0)
    assert sorted(events(served)) == [(int(decided[0][1:]), "approve")]


def test_a_slow_answer_holds_up_nothing_and_is_said(
    context: BrowserContext, many: Callable[..., Served]
) -> None:
    served = many(20)
    context.add_init_script(HELD)
    page = opened(context, served)
    decided = [item_of(page), *(pressed(page, "a") for _ in range(2))]
    pressed(page, "a")
    eventually(lambda: "3 decisions have not been sent" in page.locator("#unsent").inner_text())
    page.evaluate("() => window.open_()")
    eventually(lambda: unsent(page) == 0)
    eventually(lambda: page.locator("#unsent").is_hidden())
    check_once(served, decided, waiting=20)


def test_a_store_that_another_process_has_locked_is_waited_for(
    context: BrowserContext, many: Callable[..., Served]
) -> None:
    served = many(20)
    page = opened(context, served)
    decided = [item_of(page)]
    with closing(sqlite3.connect(served.folder / "assay.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        decided.append(pressed(page, "a"))
        pressed(page, "a")
        page.wait_for_timeout(1500)
        assert unsent(page) == 2
        other.execute("ROLLBACK")
    eventually(lambda: unsent(page) == 0)
    check_once(served, decided, waiting=20)


def test_when_nothing_is_left_here_and_no_server_answers_it_is_said(
    context: BrowserContext, many: Callable[..., Served]
) -> None:
    served = many(20)
    page = opened(context, served)
    context.set_offline(True)
    decided: list[str] = []
    while item_of(page) not in decided:
        decided.append(item_of(page))
        pressed(page, "a")
    result = page.locator("#said")
    eventually(lambda: "next one has not arrived yet" in result.inner_text())
    page.keyboard.press("u")  # and once more, which leads to the same place
    eventually(lambda: "awaits review again" in result.inner_text())
    ready(page)
    page.keyboard.press("a")
    page.keyboard.press("a")
    expect(result).to_contain_text("next one has not arrived yet", use_inner_text=True)
    context.set_offline(False)
    eventually(lambda: item_of(page) not in decided)
    eventually(lambda: "has not arrived" not in result.inner_text())
    eventually(lambda: unsent(page) == 0)
    assert served.states() == {"pending": 15, "approved": 5}
