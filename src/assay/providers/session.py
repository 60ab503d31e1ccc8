"""Send all model calls through one HTTP session, and return status, headers and bytes, or the
failure.

House rules. Connections belong to the event loop that opened them, so each loop opens a client for
its first request. The engine limits concurrency; the connector has no limit. Redirects to another
origin are refused, so that no key or document is sent there. Bodies are bytes; protocol modules
parse them. Connections use exactly the addresses that `CheckedResolver` checked, so a name that
resolves differently a moment later does no harm.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple, NoReturn

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from assay.domain.failure import CallFailed, Fault
from assay.providers.origin import is_local_address

TIMEOUT_S: Final = 120.0
CONNECT_TIMEOUT_S: Final = 20.0
# A server that drops packets, as behind a wrong port of a firewall, held up the first call of a run
# for a minute.
FIRST_CONNECT_TIMEOUT_S: Final = 5.0
"""Time limit for connecting to a server that has not answered this process yet."""
LARGEST_ANSWER: Final = 20 * 1024 * 1024
# aiohttp would send a larger body at once, which blocks the event loop and gives a warning; a
# stream is sent in pieces.
_LARGE_BODY: Final = 1024 * 1024
TRANSPORT_ERRORS: Final = (aiohttp.ClientError, TimeoutError, OSError, ValueError)
# The two redirects that keep method and body; after a 301 or 302, clients turn a POST into a GET
# (RFC 9110, 15.4).
_MOVED: Final = frozenset({307, 308})


class Address(NamedTuple):
    """URL, headers and proxy, built once for all calls.

    `place`: host and port, for messages. `pinned`: True if the host may be called only at addresses
    on this machine or network.
    """

    url: URL
    headers: Mapping[str, str]
    proxy: str | None
    place: str
    pinned: bool = False


class NotLocal(OSError):
    """Raised if a name that must be on this machine or network resolves to another address."""


def check_local(address: str) -> None:
    """Raise `NotLocal` if an address is not on this machine or network."""
    if not is_local_address(address):
        raise NotLocal(f"its name resolves to {address}, which is not on this machine or network")


class CheckedResolver(AbstractResolver):
    """Resolves names, and refuses a name with an address for which `check` raises an exception."""

    def __init__(self, check: Callable[[str], None] = check_local) -> None:
        self._check = check
        self._resolver = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return a host's addresses, all of which were checked."""
        addresses = await self._resolver.resolve(host, port, family)
        for address in addresses:
            self._check(address["host"])
        return addresses

    async def close(self) -> None:
        await self._resolver.close()


class HttpAnswer(NamedTuple):
    """An HTTP answer with any status; `elapsed_s` is the time from sending to the last byte."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    elapsed_s: float


class HttpSession:
    """A process's HTTP connections; safe to share between tasks and event loops."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._answering: set[URL] = set()
        self._clients: dict[tuple[asyncio.AbstractEventLoop, bool], aiohttp.ClientSession] = {}

    async def post(self, address: Address, body: bytes) -> HttpAnswer:
        """Send a body and read the whole answer; raises `CallFailed` without an answer."""
        return await self.send("POST", address, body)

    async def send(
        self,
        method: str,
        address: Address,
        body: bytes | Callable[[], object],
        *,
        timeout_s: float | None = None,
        into: Path | None = None,
    ) -> HttpAnswer:
        """Send a request and read the whole answer; raises `CallFailed` without an answer.

        `body`: bytes, or a function that returns another aiohttp body, such as a form with a file.
        `timeout_s`: time limit; by default the session's. `into`: file for the body of an answer
        with status 200, which may then have any length.
        """
        began = perf_counter()
        url = address.url
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        for last_try in (False, True):
            try:
                async with self._opened(pinned=address.pinned).request(
                    method,
                    url,
                    data=body()
                    if callable(body)
                    else body
                    if len(body) < _LARGE_BODY
                    else BytesIO(body),
                    headers=address.headers,
                    proxy=address.proxy,
                    allow_redirects=False,
                    timeout=_limits(
                        limit_s,
                        CONNECT_TIMEOUT_S if self._reached(url) else FIRST_CONNECT_TIMEOUT_S,
                    ),
                ) as response:
                    self._answering.add(url.origin())
                    status, headers = response.status, response.headers
                    if into is not None and status == 200:
                        content = await _save(response.content, into)
                    else:
                        content = await _read(response.content, address.place)
            except TRANSPORT_ERRORS as error:
                raise_call_failed(error, address.place, limit_s, reached=self._reached(url))
            if (
                status in _MOVED
                and not last_try
                and (moved := _same_origin(url, headers.get("Location")))
            ):
                url = moved
                continue
            break
        return HttpAnswer(status, headers, content, perf_counter() - began)

    async def close(self) -> None:
        """Close this event loop's connections, and drop those of ended loops; safe to call
        twice.
        """
        loop = asyncio.get_running_loop()
        for pinned in (False, True):
            client = self._clients.pop((loop, pinned), None)
            if client is not None:
                await client.close()
        self._drop_ended()

    def _reached(self, url: URL) -> bool:
        try:
            return url.origin() in self._answering
        except ValueError:  # not an address
            return False

    def _opened(self, *, pinned: bool) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        client = self._clients.get((loop, pinned))
        if client is None:
            self._drop_ended()
            client = self._clients[loop, pinned] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, ttl_dns_cache=300, resolver=CheckedResolver() if pinned else None
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "assay-bench"},
                # With `trust_env`, aiohttp looks up the proxy on every request and reads `.netrc`;
                # the endpoint already has its proxy.
                trust_env=False,
            )
        return client

    def _drop_ended(self) -> None:
        """Drop clients whose event loop has ended, because they can no longer be closed."""
        for key in [key for key in self._clients if key[0].is_closed()]:
            self._clients.pop(key).detach()


@lru_cache(maxsize=64)
def _limits(total_s: float, connect_s: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_s, sock_connect=min(connect_s, total_s))


def raise_call_failed(
    error: Exception, place: str, timeout_s: float, *, reached: bool = True
) -> NoReturn:
    """Raise `CallFailed` with a sentence about the transport failure.

    `reached`: the server has answered before.
    """
    # The order matters: a connection time-out is also a TimeoutError, and a TLS failure is also a
    # ClientConnectorError.
    match error:
        case aiohttp.ConnectionTimeoutError():
            kind, detail, transient = (
                "connection",
                f"{place} cannot be reached: it did not accept a connection in time.",
                reached,
            )
        case TimeoutError():
            kind, detail, transient = (
                "timeout",
                f"{place} did not answer within {timeout_s:g} s.",
                True,
            )
        case aiohttp.ClientSSLError():
            kind, transient = "connection", False
            detail = f"{place} cannot be reached safely: {_reason(error)}."
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, NotLocal):
            kind, detail, transient = (
                "not_local",
                f"{place} was not called: {error.os_error}.",
                False,
            )
        case aiohttp.ClientConnectorError():
            kind, detail, transient = (
                "connection",
                f"{place} cannot be reached: {_reason(error)}.",
                True,
            )
        case aiohttp.ServerDisconnectedError() | ConnectionResetError():
            kind, detail, transient = (
                "connection",
                f"{place} closed the connection without an answer.",
                True,
            )
        case aiohttp.ClientPayloadError():
            kind, detail, transient = (
                "connection",
                f"{place} ended the connection in the middle of its answer.",
                True,
            )
        case aiohttp.ClientResponseError():
            kind, detail, transient = (
                "bad_response",
                f"{place} answered with something that is not HTTP.",
                True,
            )
        case ValueError() if not isinstance(error, aiohttp.ClientError):
            kind, detail, transient = (
                "connection",
                f"{place} cannot be called: the address or the key is malformed.",
                False,
            )
        case _:
            kind, detail, transient = (
                "connection",
                f"the connection to {place} failed: {type(error).__name__}.",
                True,
            )
    unsent = isinstance(
        error,
        aiohttp.ConnectionTimeoutError | aiohttp.ClientConnectorError | aiohttp.ClientSSLError,
    )
    raise CallFailed(
        kind, detail, transient=transient, fault=Fault.PROVIDER, charged=not unsent
    ) from error


async def _read(content: aiohttp.StreamReader, place: str) -> bytes:
    # Most answers arrive in one block, which is returned without being copied.
    first = await content.readany()
    if content.at_eof():
        return first
    blocks, size = [first], len(first)
    while block := await content.readany():
        blocks.append(block)
        size += len(block)
        if size > LARGEST_ANSWER:
            raise CallFailed(
                "bad_response",
                f"{place} sent more than {LARGEST_ANSWER // 1024**2} MB as an answer.",
                transient=True,
                fault=Fault.PROVIDER,
            )
    return b"".join(blocks)


async def _save(content: aiohttp.StreamReader, path: Path) -> bytes:
    with path.open("wb") as file:
        async for block in content.iter_any():
            file.write(block)
    return b""


def _same_origin(url: URL, location: str | None) -> URL | None:
    """Return a redirect's target if it has the same scheme, host and port, otherwise None."""
    if not location:
        return None
    try:
        moved = url.join(URL(location))
        same = moved.origin() == url.origin()
    except ValueError:  # not an address, or an address without a host, such as file:///etc/passwd
        return None
    return moved if same and moved.scheme in ("http", "https") and moved.user is None else None


def _reason(error: aiohttp.ClientConnectorError | aiohttp.ClientSSLError) -> str:
    cause = getattr(error, "os_error", None)
    # a TLS failure
    if tls_reason := getattr(cause, "verify_message", None) or getattr(cause, "reason", None):
        return str(tls_reason).replace("_", " ").lower()
    number = getattr(cause, "errno", None)
    text = (
        os.strerror(number)
        if number is not None and number > 0
        else getattr(cause, "strerror", None)
    )
    return str(text or cause or error).rstrip(".").lower()
