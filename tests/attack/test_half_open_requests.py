"""Requests that never end, and connections that never send one."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send
from tests.attack import figures

from assay.app.workspace import Workspace
from assay.web import server
from assay.web.security import body_limit, connection_limit
from assay.web.security.body_limit import BodyLimit
from assay.web.security.connection_limit import TimedConnection


async def never_sent(_: Message) -> None:
    raise AssertionError("nothing is answered here")


async def reads_all(_scope: Scope, receive: Receive, _send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    await receive()  # as a stream of events waits for the end of its connection


def test_a_body_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limit, "BODY_LIMIT_S", 0.05)
    pieces = iter([{"type": "http.request", "body": b"{", "more_body": True}])

    async def receive() -> Message:
        for piece in pieces:
            return piece
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(HTTPException) as refused:
        asyncio.run(
            BodyLimit(reads_all)(
                {"type": "http", "headers": [(b"content-length", b"9")]}, receive, never_sent
            )
        )
    assert refused.value.status_code == 408


def test_a_complete_request_may_wait_for_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limit, "BODY_LIMIT_S", 0.0)
    ended = asyncio.Event()

    async def receive() -> Message:
        if not ended.is_set():
            ended.set()
            return {"type": "http.request", "body": b"", "more_body": False}
        await asyncio.sleep(0.05)
        return {"type": "http.disconnect"}

    asyncio.run(
        BodyLimit(reads_all)(
            {"type": "http", "headers": [(b"content-length", b"9")]}, receive, never_sent
        )
    )


HEAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = b"POST /api/reviewer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n"
HALF_OPEN = {
    "nothing": b"",
    "half a line": HEAD[:10],
    "half a head": HEAD,
    "a head and the half of another": HEAD + b"\r\n" + HEAD,
    "half a body": POST + b'{"name',
    "half a body that nobody reads": POST.replace(b"/api/reviewer", b"/nowhere") + b'{"name',
}


@contextmanager
def served(monkeypatch: pytest.MonkeyPatch, run: Callable[[], None]) -> Iterator[int]:
    """Serve in a thread until the block ends; yield the port."""
    started: list[uvicorn.Server] = []
    ready = threading.Event()

    class StoppedByTest(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started.append(self)
            ready.set()

    monkeypatch.setattr(server, "_Server", StoppedByTest)
    monkeypatch.setattr(uvicorn, "Server", StoppedByTest)
    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(60), "the server did not start"
    try:
        yield started[0].servers[0].sockets[0].getsockname()[1]
    finally:
        started[0].should_exit = True
        thread.join(60)
        assert not thread.is_alive(), "the server did not end"


def ends(opened: socket.socket) -> bool:
    """True once the server has closed the connection; False if it has not within a minute."""
    opened.settimeout(60)
    try:
        while opened.recv(65536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.slow
def test_half_open_requests_are_closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(connection_limit, "HEAD_LIMIT_S", 0.3)
    monkeypatch.setattr(body_limit, "BODY_LIMIT_S", 0.3)

    def run() -> None:
        with Workspace.open(tmp_path, environment={}) as workspace:
            server.serve(workspace, port=0, announce=lambda _: None)

    with served(monkeypatch, run) as port:
        opened = []
        for sent in [*HALF_OPEN.values()] * 50:
            opened.append(socket.create_connection(("127.0.0.1", port)))
            opened[-1].sendall(sent)
        dripping = socket.create_connection(("127.0.0.1", port))
        dripping.sendall(HEAD + b"X-Drip: ")
        stopped = threading.Event()

        def drip() -> None:
            while not stopped.wait(0.05):
                try:
                    dripping.sendall(b"x")
                except OSError:
                    return

        threading.Thread(target=drip).start()
        try:
            held = sum(not ends(connection) for connection in [*opened, dripping])
        finally:
            stopped.set()
            for connection in [*opened, dripping]:
                connection.close()
    figures.publish(
        "connection without a complete request, held past the limit", tried=301, through=held
    )


def test_a_request_that_is_being_answered_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limit, "HEAD_LIMIT_S", 0.05)

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        await asyncio.sleep(0.5)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"answered"})

    config = uvicorn.Config(slow, http=TimedConnection, port=0, lifespan="off", log_config=None)
    with (
        served(monkeypatch, lambda: uvicorn.Server(config).run()) as port,
        socket.create_connection(("127.0.0.1", port)) as opened,
    ):
        opened.sendall(HEAD + b"Connection: close\r\n\r\n")
        opened.settimeout(60)
        received = b"".join(iter(lambda: opened.recv(65536), b""))
    assert b"answered" in received
