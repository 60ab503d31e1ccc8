"""Access to the server: hosts, origins, tokens, request bodies, and the headers of every answer."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from fastapi.testclient import TestClient
from tests.web.conftest import Served

from assay.app.workspace import Workspace
from assay.domain.errors import SettingsError
from assay.web.security.access import COOKIE, Token
from assay.web.security.throttle import WrongTokens
from assay.web.server import create_app, serve

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from starlette.types import ASGIApp, Message

T = TypeVar("T")
HOME = "http://127.0.0.1:8000"
SECRET = "a-s3cret-of-any-length"
TYPED = {"accept": "text/html", "sec-fetch-site": "none"}


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path, environment={}) as opened:
        yield opened


@pytest.fixture
def client(workspace: Workspace) -> Iterator[TestClient]:
    with TestClient(create_app(workspace), base_url=HOME, follow_redirects=False) as opened:
        yield opened


def test_every_answer_carries_the_policy(client: TestClient) -> None:
    for path in ("/", "/health", "/api/runs", "/nowhere", "/review", "/openapi.json"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000", ""]
)
def test_another_sites_name_for_this_machine_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/api/runs", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:9", "127.0.0.1", "[::1]:8000", "LOCALHOST"])
def test_this_machines_names_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
    ],
)
def test_a_write_from_elsewhere_is_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert (
        client.post("/api/reviewer", json={"name": "mallory"}, headers=headers).status_code == 403
    )


@pytest.mark.parametrize("headers", [{}, {"sec-fetch-site": "same-origin"}, {"origin": HOME}])
def test_a_write_from_our_page_or_a_script_is_taken(
    client: TestClient, headers: dict[str, str]
) -> None:
    assert client.post("/api/reviewer", json={"name": "anna"}, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""],
)
def test_a_body_that_a_foreign_form_could_send_is_refused(client: TestClient, kind: str) -> None:
    answer = client.post("/api/reviewer", content='{"name": "x"}', headers={"content-type": kind})
    assert answer.status_code == 415


def test_unknown_fields_and_absurd_values_are_refused_with_their_place(client: TestClient) -> None:
    answer = client.post("/api/reviewer", json={"name": "x", "admin": True})
    assert answer.status_code == 422
    assert "admin" in answer.json()["error"]["where"]


def test_our_errors_have_their_statuses(client: TestClient) -> None:
    assert client.get("/api/assessments/a999").status_code == 404
    assert client.get("/api/assessments/nonsense").status_code == 404
    assert client.get("/runs/nothing", headers={"accept": "text/html"}).status_code == 404
    assert (
        "text/html"
        in client.get("/runs/nothing", headers={"accept": "text/html"}).headers["content-type"]
    )


def test_documentation_pages_that_would_load_from_elsewhere_are_off(client: TestClient) -> None:
    assert client.get("/redoc").status_code == 404
    assert client.get("/openapi.json").json()["info"]["title"] == "Assay"


@pytest.mark.parametrize(
    "path",
    ["/static/x/../../server.py", "/static/x/frame/dom.js", "/static/%2e%2e/%2e%2e/server.py"],
)
def test_only_our_static_files_are_given(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "example.com"])
def test_beyond_loopback_nothing_starts_without_a_token(workspace: Workspace, host: str) -> None:
    with pytest.raises(SettingsError, match="token"):
        create_app(workspace, host=host)
    with pytest.raises(SettingsError, match="token"):
        serve(workspace, host=host, port=0)


def test_a_token_that_can_be_guessed_is_refused(workspace: Workspace) -> None:
    with pytest.raises(SettingsError, match="15 characters, and a token of fewer than 16"):
        create_app(workspace, token="x" * 15)


def test_with_a_token_nobody_is_answered_without_it(workspace: Workspace) -> None:
    with TestClient(
        create_app(workspace, token=SECRET), base_url=HOME, follow_redirects=False
    ) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/api/runs").status_code == 401
        assert client.get("/", headers={"accept": "text/html"}).headers["location"] == "/signin"
        asked = client.get("/review?run=x&task=a%26b", headers={"accept": "text/html"}).headers[
            "location"
        ]
        assert parse_qsl(urlsplit(asked).query) == [("next", "/review?run=x&task=a%26b")]
        assert client.get(asked).status_code == 200
        assert client.get("/api/runs", headers={"authorization": "Bearer wrong"}).status_code == 401
        assert (
            client.get("/api/runs", headers={"authorization": f"Bearer {SECRET}"}).status_code
            == 200
        )
        assert (
            client.get(
                "/api/runs", headers={b"cookie": f"{COOKIE}=ü".encode("latin-1")}
            ).status_code
            == 401
        )
        assert client.post("/api/signin", json={"token": "wrong"}).status_code == 401
        entered = client.post("/api/signin", json={"token": SECRET})
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert SECRET not in cookie
        assert client.get("/api/runs").status_code == 200


def test_wrong_tokens_cost_time_and_right_ones_none(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.web.security.throttle.WRONG_S", 0.1)
    with (
        TestClient(create_app(workspace, token=SECRET), base_url=HOME) as client,
        ThreadPoolExecutor(25) as crowd,
    ):

        def tried(token: str) -> int:
            return client.post("/api/signin", json={"token": token}).status_code

        began = monotonic()
        items = list(crowd.map(tried, [f"wrong-{number}" for number in range(25)]))
        assert set(items) <= {401, 429}
        assert items.count(401) >= 20, "as many as may wait are looked at"
        assert monotonic() - began >= 0.1 * items.count(401), "one after the other"
        monkeypatch.setattr("assay.web.security.throttle.WRONG_S", 30.0)
        assert [tried(SECRET) for _ in range(3)] == [200, 200, 200]


async def status_of(app: ASGIApp, path: str, *, body: object = None, **headers: str) -> int:
    """Send a request from one address, and return the answer's status."""
    statuses: list[int] = []
    path, _, query = path.partition("?")
    content = b"" if body is None else json.dumps(body).encode()
    sent = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "content-length": str(len(content)),
        **headers,
    }
    scope = {
        "type": "http",
        "method": "GET" if body is None else "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "client": ("192.0.2.7", 1),
        "server": ("127.0.0.1", 8000),
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await app(scope, receive, send)
    return statuses[0]


def finished(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread of its own, because a browser's event loop may run in this
    one.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def test_every_way_to_show_a_token_shares_one_throttle(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.web.security.throttle.WRONG_S", 3600.0)
    token = Token(SECRET)
    app = create_app(workspace, token=SECRET, code=token)
    with TestClient(create_app(workspace, token=SECRET), base_url=HOME) as client:
        client.post("/api/signin", json={"token": SECRET})
        session = client.cookies[COOKIE]

    async def flood() -> tuple[Counter[int], list[int]]:
        tasks = [
            asyncio.create_task(guess)
            for number in range(40)
            for guess in (
                status_of(app, "/api/runs", authorization=f"Bearer wrong-{number}"),
                status_of(app, f"/api/runs?token=wrong-{number}"),
                status_of(app, f"/health?token=wrong-{number}"),
                status_of(app, "/api/runs", cookie=f"{COOKIE}=wrong-{number}"),
                status_of(app, "/api/signin", body={"token": f"wrong-{number}"}),
            )
        ]
        answered = asyncio.Semaphore(0)
        for task in tasks:
            task.add_done_callback(lambda _: answered.release())
        for _ in range(len(tasks) - 20):
            await answered.acquire()
        right = [
            await status_of(app, "/api/runs", authorization=f"Bearer {SECRET}"),
            await status_of(app, "/api/runs", cookie=f"{COOKIE}={session}"),
            await status_of(app, f"/?token={token.code}"),
            await status_of(app, "/api/signin", body={"token": SECRET}),
        ]
        answers = Counter(task.result() for task in tasks if task.done())
        for task in tasks:
            task.cancel()
        return answers, right

    answers, right = finished(flood())
    assert answers == {429: 180}, "twenty of one address wait"
    assert right == [200, 200, 303, 200], "a flood locks nobody out"


def test_no_number_of_addresses_makes_more_than_200_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.web.security.throttle.WRONG_S", 3600.0)

    async def flood() -> list[bool]:
        wrong = WrongTokens()
        tasks = [asyncio.create_task(wrong.delay(f"192.0.2.{number}")) for number in range(250)]
        await asyncio.sleep(0)
        refused = [task.result() for task in tasks if task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return [*refused, not wrong._turns]

    assert finished(flood()) == [False] * 50 + [True]


def test_the_code_in_the_address_opens_once(workspace: Workspace) -> None:
    token = Token(SECRET)
    code = token.code
    with TestClient(
        create_app(workspace, token=SECRET, code=token), base_url=HOME, follow_redirects=False
    ) as client:
        entered = client.get(f"/review?run=x&token={code}")
        assert entered.status_code == 303
        assert entered.headers["location"] == "/review?run=x"
        client.cookies.clear()
        assert client.get(f"/?token={code}", headers=TYPED).headers["location"] == "/signin"


@pytest.mark.parametrize("name", ["\u200b", "an\u202en", "a\x00b", "ann\u2066"])
def test_a_reviewer_s_name_holds_nothing_that_nobody_sees(client: TestClient, name: str) -> None:
    answer = client.post("/api/reviewer", json={"name": name})
    assert answer.status_code == 422
    assert "invisible" in answer.json()["error"]["problem"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "wanted",
    [
        "//evil.example/",
        "https://evil.example/",
        "/\t/evil.example",
        "\\\\evil.example",
        "javascript:1",
    ],
)
def test_signing_in_leads_nowhere_else(chromium: Browser, tmp_path: Path, wanted: str) -> None:
    server = Served(tmp_path, arguments=("--token", SECRET))
    server.start()
    context = chromium.new_context()
    try:
        page = context.new_page()
        page.route("**/api/signin", lambda route: route.fulfill(status=429, body="{}"))
        page.goto(f"{server.url}/signin?{urlencode({'next': wanted})}", wait_until="load")
        page.locator("#token").fill(SECRET)
        page.keyboard.press("Enter")
        page.get_by_text("Too many failed attempts.").wait_for()
        page.unroute("**/api/signin")
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "/signin" not in url)
        assert page.url.startswith(f"{server.url}/")
        page.goto(f"{server.url}/signin?{urlencode({'next': '/models?x'})}".replace("%3Fx", ""))
        page.locator("#token").fill(SECRET)
        page.keyboard.press("Enter")
        page.wait_for_url(f"{server.url}/models")
    finally:
        context.close()
        server.kill()
