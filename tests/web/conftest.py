"""A store with a judged set, a server of its own for each test, and a browser that notes everything
amiss.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from playwright.sync_api import Error, expect

from assay.app.opening import open_workspace
from assay.app.workspace import Workspace
from assay.domain.selection import Selection
from assay.web.server import create_app
from tests.support import forked
from tests.support.browser import browser as launched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Request, ViewportSize

NAMES = ("wilhelmina", "bartholomew", "casimira")
WINDOW: ViewportSize = {"width": 1360, "height": 800}
expect.set_options(timeout=30_000)
BOXES = "Object.keys(localStorage).filter(key => key.startsWith('assay.outbox.'))"
PAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
CRITERIA = ("integrity", "data_flow", "maintainability", "fitness")
CODE = """import threading


class Gate:
    def __init__(self):
        self.lock = threading.Lock()  # by {name}

    def enter(self, key):
        with self.lock:
            return key, {place}
"""
"""Mentions who wrote it, as real code does."""


def write_set(folder: Path, *, things: int, trials: int) -> Path:
    path = folder / "gates.json"
    documents = [
        {
            "thingName": f"Gate {number + 1}",
            "context": "Nothing may enter twice.",
            "language": "python",
            "trialsNeeded": trials,
            "snippets": [
                {"name": name, "content": CODE.format(name=name, place=place)}
                for place, name in enumerate(NAMES)
            ],
        }
        for number in range(things)
    ]
    path.write_text(json.dumps(documents), "utf-8")
    return path


def write_judge(folder: Path, *, missing_in: str | None = "gate-1") -> Path:
    """A recorded judge: attempt 1 of everything, attempt 2 with other scores, no attempt 3."""
    path = folder / "judge.jsonl"
    lines = [
        {"match": {"role": "judge", "attempt": attempt}, "reply": {"text": reply(attempt)}}
        for attempt in (1, 2)
    ]
    if missing_in:
        lines.append(
            {
                "match": {"role": "judge", "task": missing_in, "trial": 1},
                "reply": {"text": reply(1, lacking=True)},
            }
        )
    lines.append(
        {
            "match": {"role": "judge", "attempt": 3},
            "error": {"kind": "refused", "detail": "The recording ends.", "transient": False},
        }
    )
    path.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
    return path


def reply(attempt: int, *, lacking: bool = False) -> str:
    graded = {
        f"{{{{label:{name}}}}}": {
            criterion: {
                "score": 4 + place + attempt,
                "reason": f"`with self.lock:` guards the {criterion} of {place}.",
                "evidence": ["with self.lock:", "self.nowhere()"]
                if place == 0 and criterion == "fitness"
                else ["with self.lock:"],
            }
            for criterion in CRITERIA
            if not (lacking and place == 1 and criterion == "fitness")
        }
        for place, name in enumerate(NAMES)
    }
    return json.dumps(
        {
            "candidates": graded,
            "report": f"Attempt {attempt}: **{{{{label:{NAMES[0]}}}}}** takes `self.lock`.",
        }
    )


def judged_store(
    folder: Path,
    *,
    things: int = 2,
    trials: int = 5,
    judge: Path | str | None = None,
    protocol: dict[str, float] | None = None,
    review: str = "every",
) -> Path:
    """A store under `folder` with one run that waits for review; with a protocol, of a suite that
    says it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    suite_path = write_set(folder, things=things, trials=trials)
    if protocol is not None or review != "every":
        tasks = [
            {
                "id": f"gate-{place + 1}",
                "thing": one["thingName"],
                "context": one["context"],
                "trials": trials,
                "language": one["language"],
                "snippets": {snippet["name"]: snippet["content"] for snippet in one["snippets"]},
            }
            for place, one in enumerate(json.loads(suite_path.read_text("utf-8")))
        ]
        suite_path = folder / "suite.json"
        suite_path.write_text(
            json.dumps(
                {"name": "gates", "review": review, "protocol": protocol or {}, "tasks": tasks}
            ),
            "utf-8",
        )
    judge = judge or write_judge(folder)
    if isinstance(judge, Path) and judge.is_relative_to(folder):
        judge = judge.relative_to(folder)  # a copy of the folder finds its own recording
    named = judge if judge == "human" else f"replay/{judge}"
    # a process of its own: the browser's event loop runs in this one
    done = forked.run("run", suite_path, "--judge", named, folder=folder)
    assert done.returncode in (0, 1), done.stderr
    return folder


_ports: list[int] = []
_ports_in_use: set[int] = set()
_STARTED_IN = os.getcwd()


def reusable_port() -> int:
    """Return a port that no server of this session listens on now.

    The same few ports serve all tests, so that the shared browser context finds scripts and styles
    in its cache: without that, the first visit to the review page takes 0.9 s of CPU instead of 0.3
    s.
    """
    for port in _ports:
        if port not in _ports_in_use:
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        _ports.append(int(probe.getsockname()[1]))
    return _ports[-1]


@dataclass
class Served:
    """`assay serve` as a process of its own, which can be killed and started again at the same
    address.
    """

    folder: Path
    port: int = field(default_factory=reusable_port)
    arguments: tuple[str, ...] = ()
    process: forked.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        _ports_in_use.add(self.port)
        self.process = forked.start(
            "serve", "--port", self.port, *self.arguments, folder=self.folder
        )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with suppress(OSError):
                urllib.request.urlopen(f"{self.url}/health", timeout=1).close()
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        self.process.kill()
        raise AssertionError(f"the server did not start: {self.process.communicate()[1]!r}")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None
            _ports_in_use.discard(self.port)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    @property
    def run_id(self) -> str:
        return str(self.get("/api/runs")["runs"][0]["run_id"])

    def states(self) -> dict[str, int]:
        """Number of assessments in each state, without zeros."""
        counts: dict[str, int] = self.get("/api/runs")["runs"][0]["assessments"]
        return {state: n for state, n in counts.items() if n}

    def events(self) -> list[tuple[int, str, str]]:
        """(assessment, verb, reviewer) of every event in the store, oldest first."""
        with Workspace.open(self.folder, environment={}) as workspace:
            rows = list(workspace.archive.assessments.matching(Selection()))
            items = [
                (e.id, int(r.key), e)
                for r in rows
                for e in workspace.archive.assessments.detail(r.key).events
            ]
        return [
            (key, str(event.decision.verb), event.decision.reviewer)
            for _, key, event in sorted(items, key=lambda x: x[0])
        ]


@dataclass
class ServedHere(Served):
    """The same server in a thread of this process, which takes 0.15 s of CPU less than a process of
    its own.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    thread: threading.Thread | None = None
    server: StoppableServer | None = None

    def start(self) -> None:
        _ports_in_use.add(self.port)
        # asyncio turns Nagle's delay off only for a socket created with IPPROTO_TCP
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        listening.listen(256)
        # paths in messages are relative to the folder in which a person starts the server
        os.chdir(self.folder)
        running = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(listening, running))
        self.thread.start()
        assert running.wait(30), "the server did not start"

    def _run(self, listening: socket.socket, running: threading.Event) -> None:
        environment = forked.clean_environment()
        with (
            listening,
            open_workspace(self.folder, options=self.options, environment=environment) as workspace,
        ):
            workspace.notices.base = self.url
            config = uvicorn.Config(
                create_app(workspace), log_config=None, access_log=False, server_header=False
            )
            self.server = StoppableServer(config, running)
            self.server.run(sockets=[listening])

    def kill(self) -> None:
        if self.thread is not None:
            if self.server is not None:
                self.server.stop()
            self.thread.join(30)
            assert not self.thread.is_alive(), "the server did not end"
            self.thread = self.server = None
            _ports_in_use.discard(self.port)
            os.chdir(_STARTED_IN)


class StoppableServer(uvicorn.Server):
    """A server that another thread ends at once, with all its connections."""

    def __init__(self, config: uvicorn.Config, running: threading.Event) -> None:
        super().__init__(config)
        self.running = running
        self.ended = asyncio.Event()

    async def main_loop(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.running.set()
        await self.ended.wait()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.ended.set)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listener in self.servers:
            listener.close()
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)  # until the connections know that they are lost
        await self.lifespan.shutdown()


@contextmanager
def serving(folder: Path, **options: str) -> Iterator[Served]:
    """A server of a folder, with these settings, until the block ends."""
    server = ServedHere(folder, options=options)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@dataclass
class Watch:
    """Faults that a browser must never show: broken policy, foreign requests, dialogs, script
    errors.
    """

    amiss: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()

    def on(self, page: Page, served: Served) -> None:
        page.on("pageerror", lambda error: self.amiss.append(f"error: {error}"))
        page.on(
            "console",
            lambda message: self.hear(message.type, message.text, message.location["url"]),
        )
        page.on("dialog", lambda dialog: self.amiss.append(f"dialog: {dialog.message}"))

        def asked(request: Request) -> None:
            if not request.url.startswith((served.url, "data:")):
                self.amiss.append(f"elsewhere: {request.url}")

        page.on("request", asked)

    def hear(self, kind: str, text: str, address: str = "") -> None:
        if "ERR_INCOMPLETE_CHUNKED_ENCODING" in text:
            return  # the open stream of a page that was just left
        if kind in {"error", "warning"} and not any(part in text for part in self.expected):
            self.amiss.append(f"{kind}: {text} ({address})")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with launched() as running_browser:
        yield running_browser


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_store(tmp_path_factory.mktemp("judged") / "store")


@pytest.fixture(scope="session")
def free_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged store in which nothing waits: until then nobody is named, and no candidates are
    compared.
    """
    return judged_store(tmp_path_factory.mktemp("free") / "store", review="none")


@pytest.fixture(scope="module")
def standing(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server over a copy of the module's store, for all tests of a module that change nothing
    in it.
    """
    folder = tmp_path_factory.mktemp("standing") / "store"
    shutil.copytree(template, folder)
    with serving(folder) as server:
        yield server


@pytest.fixture
def served(template: Path, tmp_path: Path) -> Iterator[Served]:
    """A server over a fresh copy of the judged store: 2 Things, 3 candidates, 5 trials."""
    with serving(shutil.copytree(template, tmp_path / "store")) as server:
        yield server


@pytest.fixture
def watch() -> Iterator[Watch]:
    watching = Watch()
    yield watching
    assert watching.amiss == []


def new_context(chromium: Browser) -> BrowserContext:
    """Return a browser context with the window size and the timeout of these tests."""
    context = chromium.new_context(viewport=WINDOW)
    context.set_default_timeout(30_000)
    return context


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A context of the test's own: for init scripts, which cannot be taken out of a context
    again.
    """
    context = new_context(chromium)
    yield context
    context.close()


@pytest.fixture
def page(request: pytest.FixtureRequest, served: Served, watch: Watch) -> Iterator[Page]:
    """A page in the test's own context if it asks for `context`, else the page that all tests of
    this worker share.
    """
    if "context" in request.fixturenames:
        page = request.getfixturevalue("context").new_page()
        watch.on(page, served)
        yield page
        return
    shared: SharedPage = request.getfixturevalue("shared_page")
    page = shared.open()
    watch.on(page, served)
    yield page
    shared.reset(served.url)


@pytest.fixture
def page_at(shared_page: SharedPage, watch: Watch) -> Iterator[Callable[[Served], Page]]:
    """The page that all tests of this worker share, for a server of another fixture; ask for that
    fixture first.
    """
    servers: list[Served] = []

    def opened(server: Served) -> Page:
        servers.append(server)
        page = shared_page.open()
        watch.on(page, server)
        return page

    yield opened
    for server in servers:
        shared_page.reset(server.url)


@pytest.fixture(scope="session")
def shared_page(chromium: Browser) -> Iterator[SharedPage]:
    context = new_context(chromium)
    yield SharedPage(context)
    context.close()


@dataclass
class SharedPage:
    """One browser page for many tests, as new to each test as a page of its own.

    A page of its own costs 1.4 s of CPU until it shows the first item: its process starts, and its
    caches are cold. This one costs 0.4 s.
    """

    context: BrowserContext
    page: Page | None = None
    listeners: list[tuple[Any, Any]] = field(default_factory=list)

    def open(self) -> Page:
        """Return the page; a new one if the last test left it closed or stuck."""
        if self.page is None:
            self.page = page = self.context.new_page()
            listen = page.on

            def on(event: Any, listener: Any) -> None:
                self.listeners.append((event, listener))
                listen(event, listener)

            page.on = on  # type: ignore[method-assign, assignment]
        return self.page

    def reset(self, address: str) -> None:
        """Undo everything a test did to the page and its context, and delete what they stored for
        the server.
        """
        self.context.set_offline(False)
        self.context.unroute_all()
        self.context.clear_cookies()
        self.context.clear_permissions()
        page = self.open()
        for other in self.context.pages:
            if other is not page:
                other.close()
        try:
            self._reset_page(page)
        except Error:  # the test closed the page, or it asks whether to leave
            page.close()
            self.page = None
        self.listeners.clear()
        stored = {
            "origin": address,
            "storageTypes": "local_storage,indexeddb,service_workers,cache_storage",
        }
        session = self.context.new_cdp_session(self.open())
        session.send("Storage.clearDataForOrigin", stored)
        session.detach()

    def _reset_page(self, page: Page) -> None:
        for event, listener in self.listeners:
            page.remove_listener(event, listener)
        page.unroute_all()
        page.goto("about:blank", timeout=3000)
        page.emulate_media(
            media="null",
            color_scheme="null",
            reduced_motion="null",
            forced_colors="null",
            contrast="null",
        )
        if page.viewport_size != WINDOW:
            page.set_viewport_size(WINDOW)
        page.mouse.move(0, 0)  # a pointer left over a button would show its hint


@pytest.fixture
def review(page: Page, served: Served) -> Page:
    """The review page of the run, its first item painted."""
    page.goto(f"{served.url}/review?run={served.run_id}")
    ready(page)
    return page


def first_cell(page: Page) -> None:
    """Select the grade of the first criterion and candidate; an item with a flag begins at the
    flag.
    """
    page.locator('.right:not(.behind) [data-cell="0.0"]').click()


def complete_item(page: Page) -> str:
    """Skip until an item can be approved; its id."""
    for _ in range(10):
        if page.locator("[data-action=approve]").get_attribute("aria-disabled") == "false":
            return item_of(page)
        pressed(page, "s")
    raise AssertionError("every item lacks something")


def item_of(page: Page) -> str:
    """The id of the item on the page."""
    return str(page.locator("#item").get_attribute("data-id"))


def ready(page: Page) -> str:
    """Wait until an item is shown, painted and takes keys; its id."""
    page.wait_for_selector("#item:not([hidden]):not([aria-busy])")
    page.evaluate(PAINTED)
    return item_of(page)


def pressed(page: Page, *keys: str) -> str:
    """Press keys, wait until the item after them is painted; its id."""
    for key in keys:
        page.keyboard.press(key)
    return ready(page)


def eventually(holds: Callable[[], bool], *, within_s: float = 60.0) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.05)


def eventually_in(page: Page, holds: Callable[[], object], *, within_s: float = 60.0) -> None:
    """Wait until something is so that the browser reports to a listener of this test."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, (
            f"it did not become so; the page says: {page.locator('#said').all_inner_texts()}"
        )
        page.wait_for_timeout(20)  # listeners are called only while Playwright is at work


def decided(page: Page, *keys: str) -> None:
    """Press keys that decide the item on the page, and wait until another one, or none, takes its
    place.
    """
    before = item_of(page)
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_function(
        "before => { const item = document.getElementById('item'); return item.hidden || item.dataset.id !== before; }",
        arg=before,
    )
    page.evaluate(PAINTED)


def asks_why(page: Page, key: str) -> None:
    """Press a key until its panel is open; while an item is drawn anew, a key is nobody's."""

    def is_open() -> bool:
        page.keyboard.press(key)
        return page.locator("dialog.panel[open]").count() > 0

    eventually(is_open)


def unsent(page: Page) -> int:
    """Number of entries in the outboxes of this browser."""
    return int(page.evaluate(f"() => {BOXES}.flatMap(key => JSON.parse(localStorage[key])).length"))
