"""Cost of review with many waiting items: index seeks, bytes sent, long responses, many
listeners.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import socket
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from sqlalchemy import event
from sqlalchemy.engine import Engine
from starlette.testclient import TestClient
from tests.support.waiting_store import fill
from tests.web.conftest import Served, item_of, pressed, ready, serving

from assay.app.review.item_view import MAX_TEXT
from assay.app.workspace import Workspace
from assay.web import live as live_module
from assay.web.server import create_app

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Page

pytestmark = pytest.mark.slow

WAITING, RUNS = 300, 3
LARGE = re.compile(
    r"\b(?:trial|assessment|score|grade|call|response|body|observation|review_event)\b"
)
COUNTS = re.compile(r"\bcount\s*\(", re.IGNORECASE)
OFFSET = re.compile(r"\bOFFSET \?")
KILOBYTES = {"/": 70, "/review": 130, "/results": 90, "/start": 110}
"""Sent for a page with nothing kept in the browser, compressed, scripts and styles included."""


class Heard:
    """Statements of SQLite with what was bound to them."""

    def __init__(self) -> None:
        self.statements: list[tuple[Any, str, Any]] = []

    def __call__(self, _: Any, cursor: Any, statement: str, parameters: Any, *__: Any) -> None:
        self.statements.append((cursor.connection, statement, parameters))


@pytest.fixture(scope="module")
def filled_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled")
    fill(f"sqlite:///{folder}/assay.db", WAITING, runs=RUNS)
    return folder


@pytest.fixture
def filled(filled_template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(filled_template, tmp_path, dirs_exist_ok=True)


@pytest.fixture
def asked(filled: Path) -> Iterator[tuple[TestClient, Heard]]:
    """A client of the app, and what the app asks the store for it."""
    heard = Heard()
    options = {"store": f"sqlite:///{filled}/assay.db"}
    with (
        Workspace.open(filled, options=options, environment={}) as workspace,
        TestClient(create_app(workspace), base_url="http://127.0.0.1") as client,
    ):
        event.listen(Engine, "before_cursor_execute", heard)
        yield client, heard
        event.remove(Engine, "before_cursor_execute", heard)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/runs.json",
        "/review",
        "/api/review/next?limit=5&desk=desk-1",
        "/api/review/next?limit=5&desk=desk-1&run=20250101-000001-waiting-abcd",
        "/api/review/next?limit=5&desk=desk-1&suite=waiting-1",
        "/api/review/next?limit=5&desk=desk-1&task=task-1-3",
        "/api/review/next?limit=5&desk=desk-1&judge=strict",
        "/api/assessments/a7",
    ],
)
def test_no_page_scans_a_large_table(asked: tuple[TestClient, Heard], path: str) -> None:
    client, heard = asked
    assert client.get(path).status_code == 200
    check_plans(heard)


def test_nor_does_a_decision(asked: tuple[TestClient, Heard]) -> None:
    client, heard = asked
    response = client.post(
        "/api/decisions", json={"decisions": [{"key": "key-0001", "id": "a7", "verb": "approve"}]}
    )
    assert response.json()["results"][0]["ok"]
    assert response.json()["progress"]["waiting"] == WAITING - 1
    check_plans(heard)


def check_plans(heard: Heard) -> None:
    read = [
        one
        for one in heard.statements
        if one[1].lstrip().upper().startswith(("SELECT", "UPDATE", "DELETE", "INSERT"))
    ]
    assert len(read) >= 3
    for connection, statement, parameters in read:
        if COUNTS.search(statement):
            # what lies on desks, one reviewer's own checks, and runs: few beside what waits
            assert re.search(r"FROM (lease|aside|run)\b", statement), statement
        if OFFSET.search(statement):
            assert parameters[-1] == 0, statement  # as SQLAlchemy writes a mere limit
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]
        for line in plan:
            # one step from the end
            newest = "ORDER BY review_event.id DESC" in statement and "LIMIT" in statement
            assert newest or not (line.startswith("SCAN") and LARGE.search(line)), (
                f"{line}\n{statement}"
            )


def test_a_filter_by_task_finds_its_items_and_only_them(asked: tuple[TestClient, Heard]) -> None:
    client, _ = asked
    for named in ("task-1-3", "TASK-1-3", "Sum 1.3"):
        items = client.get(
            "/api/review/next", params={"limit": 20, "desk": f"desk-{named}", "task": named}
        ).json()["items"]
        client.post("/api/review/leave", json={"desk": f"desk-{named}"})
        assert [
            (item["task"], item["k"]) for item in sorted(items, key=lambda item: item["k"])
        ] == [("task-1-3", k) for k in range(1, 6)]
    assert client.get("/api/review/next?desk=desk&task=nothing").status_code == 404


@pytest.mark.parametrize("path", KILOBYTES)
def test_a_page_is_small_on_the_wire(
    page: Page, context: BrowserContext, served: Served, path: str
) -> None:
    client = context.new_cdp_session(page)
    client.send("Network.enable")
    sent: list[float] = []
    client.on("Network.loadingFinished", lambda said: sent.append(said["encodedDataLength"]))
    page.goto(served.url + path)
    page.wait_for_load_state("load")
    if path == "/review":
        ready(page)
    page.wait_for_timeout(100)
    assert 2_000 < sum(sent) <= 1000 * KILOBYTES[path]


def test_texts_travel_compressed_and_streams_do_not_wait_for_more(served: Served) -> None:
    request = urllib.request.Request(served.url + "/review", headers={"accept-encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["cache-control"] == "no-store"
        page = gzip.decompress(answer.read()).decode()
    script = re.findall(r'src="(/static/[^"]+review\.js)"', page)[0]
    with urllib.request.urlopen(served.url + script, timeout=30) as answer:
        assert "immutable" in answer.headers["cache-control"]
        assert "content-encoding" not in answer.headers
    with urllib.request.urlopen(served.url + "/api/runs", timeout=30) as answer:
        assert answer.headers["cache-control"] == "no-store"
    request = urllib.request.Request(served.url + "/api/live", headers={"accept-encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=30) as stream:
        assert "content-encoding" not in stream.headers
        assert [stream.readline() for _ in range(3)][2].startswith(b"event: ")


@pytest.fixture(scope="module")
def lengthy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Items of four responses of 300 kB each."""
    folder = tmp_path_factory.mktemp("lengthy")
    fill(f"sqlite:///{folder}/assay.db", 10, candidates=4, lines=5_000)
    with serving(folder, store=f"sqlite:///{folder}/assay.db") as server:
        yield server


def test_long_response_is_cut_and_shown_whole_on_request(
    lengthy: Served, page_at: Callable[[Served], Page]
) -> None:
    page = page_at(lengthy)
    page.goto(f"{lengthy.url}/review")
    first = ready(page)
    item, whole = (
        lengthy.get(f"/api/assessments/{first}{query}")["panes"][0] for query in ("", "?whole=1")
    )
    assert item["cut"]
    assert not whole["cut"]
    assert len(item["text"]) <= MAX_TEXT < len(whole["text"]) == item["chars"]
    assert whole["text"].startswith(item["text"])
    assert item["lines"] == whole["lines"] == 5_000
    assert lengthy.get(f"/api/assessments/{first}/panes/0") == whole
    shown = page.locator("#pane .line").count()
    assert shown == item["text"].count("\n") < 5_000
    page.get_by_role("button", name=f"Show {5_000 - shown:,} more lines").click()
    page.wait_for_function("() => document.querySelectorAll('#pane .line').length === 5000")
    expect(page.get_by_role("button", name="more lines")).to_have_count(0)
    last = page.locator("#pane .line").last
    assert last.inner_text().strip() == "return total"
    expect(last).to_have_attribute("data-n", "5000")
    assert pressed(page, "j") != first
    assert item_of(page) != first


def test_a_quotation_beyond_the_beginning_brings_its_line(
    lengthy: Served, page_at: Callable[[Served], Page]
) -> None:
    page = page_at(lengthy)
    page.goto(f"{lengthy.url}/review")
    ready(page)
    expect(page.locator(".line.lit")).to_have_count(0)
    page.locator(".evidence .quote").first.click()
    page.wait_for_function("() => document.querySelector('.line.lit')?.dataset.n === '5000'")
    expect(page.locator("#pane .line")).to_have_count(5_000)
    assert page.locator(".line.lit").inner_text().strip() == "return total"


def test_five_long_items_travel_as_their_beginnings(lengthy: Served) -> None:
    with urllib.request.urlopen(
        f"{lengthy.url}/api/review/next?limit=5&desk=desk-long", timeout=30
    ) as answer:
        content = answer.read()
    items = json.loads(content)["items"]
    texts = sum(len(pane["text"]) for item in items for pane in item["panes"])
    assert len(items) == 5
    assert all(len(item["panes"]) == 4 for item in items)
    assert texts <= 20 * MAX_TEXT
    assert len(content) <= 1.25 * texts
    missing = urllib.request.Request(f"{lengthy.url}/api/assessments/{items[0]['id']}/panes/4")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(missing, timeout=10)


def test_listeners_do_not_hold_up_the_review_and_are_bounded(
    served: Served, monkeypatch: pytest.MonkeyPatch, filled: Path
) -> None:
    streams = []
    for _ in range(100):
        stream = socket.create_connection(("127.0.0.1", served.port), timeout=10)
        stream.sendall(b"GET /api/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        streams.append(stream)
    for stream in streams:
        assert stream.recv(100).startswith(b"HTTP/1.1 200")
    assert len(served.get("/api/review/next?desk=desk-1&limit=5")["items"]) == 5
    for stream in streams:
        stream.close()
    monkeypatch.setattr(live_module, "MAX_LISTENERS", 0)
    with (
        Workspace.open(
            filled, options={"store": f"sqlite:///{filled}/assay.db"}, environment={}
        ) as workspace,
        TestClient(create_app(workspace), base_url="http://127.0.0.1") as client,
    ):
        response = client.get("/api/live")
    assert response.status_code == 503
    assert "too many pages are connected" in json.loads(response.text)["error"]["problem"]


def test_a_page_nobody_looks_at_holds_no_connection(
    context: BrowserContext, page: Page, served: Served
) -> None:
    context.add_init_script(
        """window.open_ = 0;
        const Was = EventSource;
        window.EventSource = class extends Was {
          constructor(...given) { super(...given); open_ += 1; }
          close() { super.close(); open_ -= 1; }
        };
        let unseen = false;
        Object.defineProperty(document, 'hidden', { get: () => unseen });
        window.look = (at) => { unseen = !at; document.dispatchEvent(new Event('visibilitychange')); };"""
    )
    for path in ("/", "/results"):
        page.goto(served.url + path)
        page.wait_for_function("() => window.open_ === 1")
        page.evaluate("() => look(false)")
        assert page.evaluate("() => window.open_") == 0
        page.evaluate("() => look(true)")
        assert page.evaluate("() => window.open_") == 1
