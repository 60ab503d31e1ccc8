"""What a hostile page does in its frame reaches nothing: not the world outside, not the page around it, not the person's keys."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Error

from tests.support.evil import Evil
from tests.web.conftest import Served
from tests.web.escapes import AROUND, BUSY, GREEDY, KEYS, NETWORK
from tests.web.pages_store import SECRETS, ask, pages_store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, Page

LOOK_MS = 500
"""What two pages have to get out."""

VECTORS = {**NETWORK, **AROUND, **GREEDY}
NAMED = list(VECTORS)
TWOS = [tuple(NAMED[place : place + 2]) for place in range(0, len(NAMED), 2)]
TASKS = {"--".join(two): (two[0], two[-1]) for two in TWOS} | {"busy": ("busy",) * 2, "keys": ("keys",) * 2}
"""Two hostile pages stand beside each other."""
PAGES = {**VECTORS, "busy": BUSY, "keys": KEYS}

NOT_EVEN_FREE = {
    "webtransport": "needs a server that speaks HTTP/3",
    "app-data": "reads what only this app has",
    "webrtc-blank": "a blank frame is another origin here as well",
    "speculation": "this browser prefetches nothing when it is driven",
    "service-worker": "needs a script from the server",
    "javascript-string": "is refused by the policy of the page itself",
    "blob-frame": "runs no script",
}
"""Pages that do nothing where nothing holds them either, in this set-up; they are tried all the same."""


@pytest.fixture(scope="module")
def evil() -> Iterator[Evil]:
    outside = Evil()
    yield outside
    outside.close()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, evil: Evil) -> Iterator[Served]:
    """A run with a task for each hostile page: one candidate wrote it, the other wrote a harmless one."""
    folder = tmp_path_factory.mktemp("hostile") / "store"
    writers = ("wilhelmina", "bartholomew")
    given = {
        (writer, task): f"```html\n{PAGES[name].replace('EVIL', evil.url)}\n```"
        for task, two in TASKS.items()
        for writer, name in zip(writers, two, strict=True)
    }
    pages_store(folder, tasks=tuple(TASKS), trials=1, writers=writers, given=given, judged=False)
    server = Served(folder)
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def pairs(hostile: Served) -> dict[str, dict[str, Any]]:
    """The pair of each task."""
    found: dict[str, dict[str, Any]] = {}
    run = hostile.run_id
    for n in range(len(TASKS)):
        item = ask(hostile, f"/api/arena/{run}/next", reviewer="finder")[1]["pair"]
        found[item["task"]] = item
        body = {key: item[key] for key in ("task", "trial", "pair", "reviewer")}
        ask(hostile, f"/api/arena/{run}/votes", {**body, "choice": "equal", "key": f"finder-{n}-vote"})
    assert found.keys() == TASKS.keys()
    return found


class Around:
    """A browser window with one page, and everything that got out into it."""

    def __init__(self, context: BrowserContext) -> None:
        self.out: list[str] = []
        self.context = context
        context.on("page", lambda opened: self.out.append(f"window {opened.url}"))
        self.page: Page = context.new_page()
        self.out.clear()
        self.page.on("dialog", self._dialog)
        self.page.on("download", lambda one: self.out.append(f"download {one.url}"))
        self.page.on("console", lambda said: self._hear(said.text))

    def _hear(self, text: str) -> None:
        if "GOT OUT" in text:
            self.out.append(text)

    def _dialog(self, dialog: Any) -> None:
        self.out.append(f"dialog {dialog.type}: {dialog.message}")
        dialog.dismiss()

    def look(self, address: str) -> None:
        """Note what became of the page around the frame."""
        if self.page.url != address:
            self.out.append(f"the page went to {self.page.url}")
            return
        marked = self.page.evaluate("() => document.documentElement.dataset.out ?? null")
        if marked is not None:
            self.out.append(f"the page was marked {marked}")


@contextmanager
def around(browser: Browser) -> Iterator[Around]:
    context = browser.new_context(viewport={"width": 1360, "height": 900}, accept_downloads=False)
    context.set_default_timeout(10_000)
    try:
        yield Around(context)
    finally:
        context.close()


def started(page: Page, served: Served, item: dict[str, Any]) -> str:
    """Open a pair and start both pages; the pair's address."""
    address = f"{served.url}{item['address']}"
    page.goto(address)
    page.wait_for_selector("#bout:not([hidden]) .side-head")
    page.wait_for_timeout(80)
    page.keyboard.press("p")
    page.wait_for_selector("iframe >> nth=1")
    return address


def clicked(page: Page) -> None:
    """A person clicks into each frame, which lets its page do more."""
    for frame in page.locator("iframe").all():
        box = frame.bounding_box()
        if box is not None:
            page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] - 40)


def test_each_page_gets_out_where_nothing_holds_it(chromium: Browser, evil: Evil) -> None:
    """Else it would prove nothing that it does not get out of its frame."""
    tame = []
    for name in [name for name in (*NETWORK, *AROUND) if name not in NOT_EVEN_FREE]:
        free = evil.url.replace("127.0.0.1", "localhost")
        evil.put("/held", f"<title>x</title><iframe src='/inner/{name}' width=600 height=400></iframe>")
        evil.put(f"/inner/{name}", PAGES[name].replace("EVIL", evil.url))
        with around(chromium) as window:
            evil.forget()

            def got_out(name: str = name, window: Around = window) -> bool:
                return bool(window.out) or any(one != "a connection" or "connect" in name for one in evil.heard)

            with suppress(Error):
                window.page.goto(f"{free}/held")
            for click in (False, True):
                deadline = time.monotonic() + 0.6
                while not got_out() and time.monotonic() < deadline:
                    window.page.wait_for_timeout(40)
                    with suppress(Error):
                        if click:
                            clicked(window.page)
                        window.look(f"{free}/held")
            if not got_out():
                tame.append(name)
    assert tame == []


@pytest.mark.parametrize("task", ["--".join(two) for two in TWOS])
def test_in_its_frame_a_page_reaches_nothing(
    chromium: Browser, evil: Evil, hostile: Served, pairs: dict[str, dict[str, Any]], task: str
) -> None:
    evil.forget()
    with around(chromium) as window:
        page = window.page
        address = started(page, hostile, pairs[task])
        page.wait_for_timeout(LOOK_MS)
        clicked(page)
        page.wait_for_timeout(200)
        window.look(address)
        page.locator("#thing").click()
        if page.locator("iframe").count():
            page.keyboard.press("p")
        page.wait_for_function("() => !document.querySelector('iframe')")
    assert (window.out, evil.heard) == ([], [])


def test_the_policies_stand_in_the_answer_and_it_is_for_a_frame_only(
    hostile: Served, pairs: dict[str, dict[str, Any]]
) -> None:
    item = pairs["busy"]
    body = {key: item[key] for key in ("task", "trial", "pair", "reviewer")}
    status, said = ask(hostile, f"/api/arena/{hostile.run_id}/previews", {**body, "side": 0})
    assert status == 201
    request = urllib.request.Request(hostile.url + said["address"], headers={"sec-fetch-dest": "iframe"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        headers = {name.lower(): value for name, value in answer.headers.items()}
        page = answer.read().decode()
    policy = dict.fromkeys(part.strip() for part in headers["content-security-policy"].split(";"))
    assert {"sandbox allow-scripts", "default-src 'none'", "connect-src 'none'", "form-action 'none'", "base-uri 'none'",
            "script-src 'unsafe-inline'", "frame-ancestors 'self'"} <= policy.keys()  # fmt: skip
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-dns-prefetch-control"] == "off"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert headers["connection-allowlist"] == "()"
    assert page.index("RTCPeerConnection") < page.index("hostile")
    assert not SECRETS.search(str(headers))
    assert len(said["address"]) >= len("/preview/") + 32
    for wanted in ("document", "script", "image"):
        request = urllib.request.Request(hostile.url + said["address"], headers={"sec-fetch-dest": wanted})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=5)
        assert refused.value.code == 409


def test_a_page_that_never_ends_is_stopped_by_a_button(
    chromium: Browser, hostile: Served, pairs: dict[str, dict[str, Any]]
) -> None:
    with around(chromium) as window:
        page = window.page
        started(page, hostile, pairs["busy"])
        page.wait_for_timeout(500)
        stalls = page.evaluate(
            """() => new Promise(done => { let worst = 0, last = performance.now(); const end = last + 1500;
                 const step = () => { const now = performance.now(); worst = Math.max(worst, now - last); last = now;
                                      now < end ? setTimeout(step, 10) : done(worst); }; step(); })"""
        )
        assert stalls < 400, f"the page around it stood still for {stalls:.0f} ms"
        for _ in range(2):
            page.locator("[data-stop]").first.click()
        assert page.locator("iframe").count() == 0
        page.keyboard.press("a")
        page.wait_for_selector("#reveal:not([hidden])")


def test_a_page_that_takes_the_keyboard_is_stopped_and_keys_still_vote(
    chromium: Browser, hostile: Served, pairs: dict[str, dict[str, Any]]
) -> None:
    with around(chromium) as window:
        page = window.page
        page.mouse.move(5, 5)
        started(page, hostile, pairs["keys"])
        page.wait_for_timeout(900)
        page.keyboard.press("b")
        page.wait_for_selector("#reveal:not([hidden])")
        assert "You found B better" in page.locator("#reveal").inner_text()
