"""Hostile pages in arena frames reach nothing: no network, no page around them, no keys of the
reviewer.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Error, expect
from tests.support.browser import isolating
from tests.support.evil import Evil
from tests.web.conftest import Served, serving
from tests.web.escapes import AROUND, BUSY, GREEDY, KEYS, NETWORK, QUIET, RAN
from tests.web.hostile_stage import Around, Outside, both_ran, held_openly, portions, until
from tests.web.pages_store import SECRETS, ask, pages_store

from assay.web.security.sandboxed_frames import guarded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

LOOK_MS = 400
"""What pages have to get out, once they ran."""
AT_ONCE = 8
"""Browser pages that wait together."""

VECTORS = {**NETWORK, **AROUND, **GREEDY}


def grouped(names: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Names in groups that stand in one page: quiet ones by six, the others alone."""
    names = tuple(names)
    yield from portions((name for name in names if name in QUIET), 6)
    yield from ((name,) for name in names if name not in QUIET)


def all_of(names: Iterable[str]) -> dict[str, str]:
    return {name: VECTORS[name] for name in names}


SIDES = [*grouped(NETWORK), *grouped((*AROUND, *GREEDY))]
HOSTILE = {
    f"pair-{n}": (SIDES[n], SIDES[min(n + 1, len(SIDES) - 1)]) for n in range(0, len(SIDES), 2)
}
TASKS = [*HOSTILE, "busy", "keys"]
"""Two hostile pages stand beside each other."""

NOT_EVEN_FREE = {
    "webtransport": "needs a server that speaks HTTP/3",
    "app-data": "reads what only this app has",
    "webrtc-blank": "a blank frame is another origin here as well",
    "speculation": "this browser prefetches nothing when it is driven",
    "service-worker": "needs a script from the server",
    "javascript-string": "is refused by the policy of the page itself",
    "blob-frame": "runs no script",
}
"""Pages that do nothing where nothing holds them either, in this set-up; they are tried all the
same.
"""


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    servers = Outside()
    yield servers
    servers.close()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, outside: Outside) -> Iterator[Served]:
    """A run with a task for every two hostile pages, each by a candidate of its own."""
    folder = tmp_path_factory.mktemp("hostile") / "store"
    writers = ("wilhelmina", "bartholomew")
    pages = {
        (writer, task): outside.written(all_of(names))
        for task, two in HOSTILE.items()
        for writer, names in zip(writers, two, strict=True)
    }
    pages |= {
        (writer, task): page
        for task, page in (("busy", BUSY), ("keys", KEYS))
        for writer in writers
    }
    given = {which: f"```html\n{page}\n```" for which, page in pages.items()}
    pages_store(folder, tasks=TASKS, trials=1, writers=writers, given=given, judged=False)
    with serving(folder) as server:
        yield server


@pytest.fixture(scope="module")
def pairs(hostile: Served) -> dict[str, dict[str, Any]]:
    """The pair of each task."""
    by_name: dict[str, dict[str, Any]] = {}
    item = ask(hostile, f"/api/arena/{hostile.run_id}/next")[1]["pair"]
    while item["task"] not in by_name:
        by_name[item["task"]] = item
        body = {key: item[key] for key in ("task", "trial", "pair", "reviewer")}
        item = ask(hostile, f"/api/arena/{hostile.run_id}/skip", body)[1]["pair"]
    assert by_name.keys() == set(TASKS)
    return by_name


@pytest.fixture(scope="module")
def stage(chromium: Browser) -> Iterator[list[Around]]:
    """Windows that all share; each is led on from what it showed before."""
    with isolating(chromium) as browser:
        yield [Around.opened(browser) for _ in range(AT_ONCE)]


def opened(page: Page, served: Served, item: dict[str, Any]) -> str:
    """Open a pair; its address."""
    address = f"{served.url}{item['address']}"
    page.goto(address)
    page.wait_for_selector("#bout:not([hidden]) .side-head")
    return address


def started(page: Page) -> None:
    """Start both pages; one may be stopped again at once."""
    page.wait_for_timeout(80)
    page.keyboard.press("p")
    page.wait_for_selector("iframe")


@pytest.fixture(scope="module")
def freed(stage: list[Around], outside: Outside) -> dict[str, bool]:
    """Map each hostile page to true if it gets out of an unguarded frame, which shows that the
    attack works.
    """
    host = Evil()
    by_name: dict[str, bool] = {}

    def heard(name: str) -> bool:
        return any(one != "a connection" or "connect" in name for one in outside.of(name).heard)

    outward = [
        free
        for group in grouped(NETWORK)
        if (free := tuple(name for name in group if name not in NOT_EVEN_FREE))
    ]
    for start in range(0, len(outward), 12):
        groups = outward[start : start + 12]
        names = tuple(name for group in groups for name in group)
        around = stage[0].anew()
        around.page.goto(held_openly(outside, map(all_of, groups), host), wait_until="commit")
        if not until(around.page, heard, names, within_s=2):
            around.clicked()
            until(around.page, heard, names, within_s=2)
        by_name |= {name: heard(name) for name in names}
    for names in portions((name for name in AROUND if name not in NOT_EVEN_FREE), AT_ONCE):
        there = {name: one.anew() for name, one in zip(names, stage, strict=False)}
        at = {name: held_openly(outside, [all_of([name])], outside.of(name)) for name in names}

        def got_out(name: str, there: dict[str, Around] = there, at: dict[str, str] = at) -> bool:
            with suppress(Error):
                there[name].look(at[name])
            return bool(there[name].out) or heard(name)

        for name, around in there.items():
            with suppress(Error):
                around.page.goto(at[name], wait_until="commit")
        last = around.page
        if not until(last, got_out, names, within_s=2):
            for name in names:
                if not got_out(name):
                    there[name].clicked()
            until(last, got_out, names, within_s=2)
        by_name |= {name: got_out(name) for name in names}
    host.close()
    return by_name


@pytest.mark.parametrize(
    "name", [name for name in (*NETWORK, *AROUND) if name not in NOT_EVEN_FREE]
)
def test_a_page_gets_out_where_nothing_holds_it(freed: dict[str, bool], name: str) -> None:
    """Else it would prove nothing that it does not get out of its frame."""
    assert freed[name]


@pytest.fixture(scope="module")
def held(
    stage: list[Around],
    freed: object,
    outside: Outside,
    hostile: Served,
    pairs: dict[str, dict[str, Any]],
) -> dict[str, list[str]]:
    """Leaks of each page from its frame: at once, after a click into it, and when it is stopped.

    What came to the page around is that of all the names in the two frames.
    """
    by_name: dict[str, list[str]] = {}
    for tasks in portions(HOSTILE, AT_ONCE):
        there = {task: one.anew() for task, one in zip(tasks, stage, strict=False)}
        names = {
            task: dict.fromkeys(name for group in HOSTILE[task] for name in group) for task in tasks
        }
        for name in (name for task in tasks for name in names[task]):
            outside.of(name).forget()
        at = {task: opened(around.page, hostile, pairs[task]) for task, around in there.items()}
        titles = {task: around.page.title() for task, around in there.items()}
        for around in there.values():
            started(around.page)
        last = around.page
        until(last, both_ran, there.values(), within_s=8)
        last.wait_for_timeout(LOOK_MS)
        for around in there.values():
            around.clicked()
        last.wait_for_timeout(LOOK_MS)
        for task, around in there.items():
            around.look(at[task], titles[task])
            around.page.locator("#thing").click()
            if around.page.locator("iframe").count():
                around.page.keyboard.press("p")
            around.page.wait_for_function("() => !document.querySelector('iframe')")
        last.wait_for_timeout(100)
        for task, around in there.items():
            shared = [*around.out, *([] if both_ran(around) else [f"only {around.ran} pages ran"])]
            by_name |= {name: [*shared, *outside.of(name).heard] for name in names[task]}
    return by_name


@pytest.mark.parametrize("name", VECTORS)
def test_in_its_frame_a_page_reaches_nothing(held: dict[str, list[str]], name: str) -> None:
    assert held[name] == []


def test_the_policies_stand_in_the_answer_and_it_is_for_a_frame_only(
    hostile: Served, pairs: dict[str, dict[str, Any]]
) -> None:
    item = pairs["busy"]
    body = {key: item[key] for key in ("task", "trial", "pair", "reviewer")}
    status, result = ask(hostile, f"/api/arena/{hostile.run_id}/previews", {**body, "side": 0})
    assert status == 201
    for wanted in ("document", "script", "image", "frame", None):
        request = urllib.request.Request(hostile.url + result["address"])
        if wanted is not None:
            request.add_header("sec-fetch-dest", wanted)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=5)
        assert refused.value.code == 409, wanted
    request = urllib.request.Request(
        hostile.url + result["address"], headers={"sec-fetch-dest": "iframe"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        headers = {name.lower(): value for name, value in answer.headers.items()}
        page = answer.read().decode()
    policy = dict.fromkeys(part.strip() for part in headers["content-security-policy"].split(";"))
    assert {
        "sandbox allow-scripts",
        "default-src 'none'",
        "connect-src 'none'",
        "form-action 'none'",
        "base-uri 'none'",
        "script-src 'unsafe-inline'",
        "frame-ancestors 'self'",
    } <= policy.keys()
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-dns-prefetch-control"] == "off"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert headers["connection-allowlist"] == "()"
    assert page.index("RTCPeerConnection") < page.index("hostile")
    assert not SECRETS.search(str(headers))
    assert len(result["address"]) >= len("/preview/") + 32
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=5)
    assert refused.value.code == 404, "an address is used up by its page"


def test_without_a_frame_nothing_of_a_page_runs(stage: list[Around], outside: Outside) -> None:
    """By plain http from another machine no browser says that it wants a page for a frame."""
    around, evil = stage[0].anew(), outside.of("alone")
    evil.put("/alone", guarded(RAN + VECTORS["fetch"].replace("EVIL", evil.url)))
    evil.put("/framed", "<iframe src='/alone'></iframe>")
    evil.forget()
    around.page.goto(f"{evil.url}/alone", wait_until="commit")
    around.page.wait_for_timeout(LOOK_MS)
    assert (around.ran, around.page.locator("body *").count(), evil.heard) == (0, 0, [])
    around.page.goto(f"{evil.url}/framed", wait_until="commit")
    assert until(around.page, lambda one: one.ran, [around], within_s=3), (
        "else the guard would stop every page"
    )


def test_a_page_that_never_ends_is_stopped_by_a_button(
    stage: list[Around], hostile: Served, pairs: dict[str, dict[str, Any]]
) -> None:
    page = stage[0].page
    opened(page, hostile, pairs["busy"])
    started(page)
    page.wait_for_timeout(300)
    stalls = page.evaluate(
        """() => new Promise(done => { let worst = 0, last = performance.now(); const end = last + 1500;
             const step = () => { const now = performance.now(); worst = Math.max(worst, now - last); last = now;
                                  now < end ? setTimeout(step, 10) : done(worst); }; step(); })"""
    )
    # In one process with the endless page it would stand still for good; a busy machine may stop it
    # for a moment.
    assert stalls < 5000, f"the page around it stood still for {stalls:.0f} ms"
    for _ in range(2):
        page.locator("[data-stop]").first.click()
    expect(page.locator("iframe")).to_have_count(0)
    page.keyboard.press("a")
    page.wait_for_selector("#reveal:not([hidden])")


def test_a_page_that_takes_the_keyboard_is_stopped_and_keys_still_vote(
    stage: list[Around], hostile: Served, pairs: dict[str, dict[str, Any]]
) -> None:
    page = stage[0].page
    page.mouse.move(5, 5)
    opened(page, hostile, pairs["keys"])
    started(page)
    page.wait_for_selector("text=kept taking the keyboard")
    page.keyboard.press("b")
    page.wait_for_selector("#reveal:not([hidden])")
    expect(page.locator("#reveal")).to_contain_text("You found B better", use_inner_text=True)
