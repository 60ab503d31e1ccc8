"""Redirects that a session follows, and servers that accept no connection."""

from __future__ import annotations

import asyncio
import socket

import pytest
from yarl import URL

from assay.domain.failure import CallFailed
from assay.providers import session as sessions
from assay.providers.session import Address, HttpSession, _same_origin


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "file:/etc/passwd",
        "javascript:alert(1)",
        "data:text/plain,42",
        "//evil.example/v1",
        "https://evil.example/v1",
        "http://127.0.0.1:8001/v1",
        "http://user@127.0.0.1:8000/v1",
        "https://user:secret@127.0.0.1/v1",
        "http://127.0.0.1:99999/v1",
        "http://[::1/v1",
        "mailto:a@b",
        "https://127.0.0.1/v1/chat",
        "",
        None,
    ],
)
def test_a_redirect_elsewhere_is_not_followed(location: str | None) -> None:
    assert _same_origin(URL("http://127.0.0.1:8000/v1/chat"), location) is None


@pytest.mark.parametrize(
    "location", ["/v2/chat", "http://127.0.0.1:8000/v2", "//127.0.0.1:8000/v1"]
)
def test_a_redirect_on_the_same_origin_is_followed(location: str) -> None:
    assert _same_origin(URL("http://127.0.0.1:8000/v1/chat"), location) is not None


def test_a_server_that_accepts_no_connection_is_unreachable_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "FIRST_CONNECT_TIMEOUT_S", 0.2)
    monkeypatch.setattr(sessions, "CONNECT_TIMEOUT_S", 3600.0)
    waiting = []
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        # nobody accepts, so the queue of connections is full and further ones get no answer
        for _ in range(8):
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(full.getsockname())
        address = Address(
            URL(f"http://127.0.0.1:{full.getsockname()[1]}/v1"), {}, None, "the server", False
        )
        with pytest.raises(CallFailed) as failed:
            asyncio.run(_post(address))
    for each in waiting:
        each.close()
    assert (failed.value.kind, failed.value.charged) == ("connection", False)


async def _post(address: Address) -> None:
    session = HttpSession()
    try:
        await session.post(address, b"{}")
    finally:
        await session.close()
