"""Fetch public documents to which a template refers, with limits on addresses, redirects, size and
time.

A template is somebody else's file, so its addresses must not reach private machines. Each hop of a
redirect is checked anew, and the connection uses exactly the addresses that the resolver checked,
so a name that resolves differently a moment later does no harm. No proxy is used, because a proxy
would resolve the name again.
"""

from __future__ import annotations

import asyncio
import ipaddress
import zlib
from contextlib import suppress
from typing import Final, NamedTuple

import aiohttp
from yarl import URL

from assay.domain.failure import CallFailed
from assay.providers.address_rules import FetchRules
from assay.providers.origin import Origin, origin_of
from assay.providers.session import TRANSPORT_ERRORS, CheckedResolver, raise_call_failed

LARGEST_DOCUMENT: Final = 4 * 10**6
"""Maximum bytes of a document, before and after decompression."""
TIMEOUT_S: Final = 30.0
MAX_REDIRECTS: Final = 5

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class FetchedDocument(NamedTuple):
    """The content of a document and its media type, which is empty if the server stated none."""

    content: bytes
    media_type: str


async def fetch_document(
    url: str, rules: FetchRules, *, timeout_s: float = TIMEOUT_S
) -> FetchedDocument:
    """Fetch a document over HTTP(S); raises `CallFailed` for a forbidden address, an exceeded limit
    or another failure.
    """
    place = url
    try:
        async with asyncio.timeout(timeout_s):
            for _ in range(MAX_REDIRECTS + 1):
                origin = _origin(url)
                place = origin.netloc
                moved = await _request(url, origin, rules)
                if isinstance(moved, FetchedDocument):
                    return moved
                url = moved
    except TRANSPORT_ERRORS as error:
        raise_call_failed(error, place, timeout_s)
    raise _failed(f"{place} redirected more than {MAX_REDIRECTS} times.")


async def _request(url: str, origin: Origin, rules: FetchRules) -> FetchedDocument | str:
    """Return the document, or the target address of a redirect."""
    # refused by name, because a look-up would tell its owner
    if rules.local_only and not origin.local:
        raise _failed(
            f"{origin.netloc} was not called: local_only allows only this machine and network."
        )
    # The host as it was checked: aiohttp asks no resolver for an address written as numbers, of
    # which there are several spellings.
    target = URL(url).with_host(origin.host)
    with suppress(ValueError):
        _check(origin, str(ipaddress.ip_address(origin.host)), rules)
    headers = {
        "User-Agent": "assay-bench",
        "Accept": "text/html, text/*;q=0.9",
        "Accept-Encoding": "gzip, deflate",
    }
    # A new connector for each hop: a pooled connection or a cached name could belong to another
    # check.
    connector = aiohttp.TCPConnector(
        resolver=CheckedResolver(lambda address: _check(origin, address, rules)),
        use_dns_cache=False,
        force_close=True,
    )
    async with (
        aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as session,
        session.get(target, headers=headers, allow_redirects=False) as answer,
    ):
        if answer.status in _REDIRECTS and (location := answer.headers.get("Location")):
            return str(target.join(URL(location)))
        if answer.status != 200:
            raise _failed(f"{origin.netloc} answered with status {answer.status}.")
        content = bytearray()
        async for block in answer.content.iter_any():
            content += block
            _check_size(len(content), origin)
        text = _decompressed(bytes(content), answer.headers.get("Content-Encoding", ""), origin)
        return FetchedDocument(
            text, answer.content_type if "Content-Type" in answer.headers else ""
        )


def _origin(url: str) -> Origin:
    try:
        return origin_of(url)
    except ValueError as error:
        raise _failed(f"{url[:200]!r} is not an address of a document: {error}.") from error


def _check(origin: Origin, address: str, rules: FetchRules) -> None:
    if problem := rules.problem(origin, address):
        raise _failed(f"{origin.netloc} was not called: it is {address}, {problem}.")


def _check_size(size: int, origin: Origin) -> None:
    if size > LARGEST_DOCUMENT:
        raise _failed(
            f"{origin.netloc} sent more than {LARGEST_DOCUMENT // 10**6} MB, the maximum for a document."
        )


def _decompressed(content: bytes, encoding: str, origin: Origin) -> bytes:
    if encoding.lower() in ("", "identity"):
        return content
    try:
        # 47: gzip or zlib, as the content's head says. The length is limited, because 4 MB may
        # unpack to 4 GB.
        text = zlib.decompressobj(47).decompress(content, LARGEST_DOCUMENT + 1)
    except zlib.error as error:
        raise _failed(
            f"{origin.netloc} sent a document compressed as {encoding[:40]!r}, which cannot be unpacked."
        ) from error
    _check_size(len(text), origin)
    return text


def _failed(detail: str) -> CallFailed:
    return CallFailed("document", detail, transient=False, charged=False)
