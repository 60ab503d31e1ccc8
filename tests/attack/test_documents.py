"""Servers of documents that hang, loop, flood, redirect to private addresses, or change their
address after the check.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from tests.attack.network import CapturedNetwork
from tests.support.document_server import DocumentServer

from assay.domain.failure import CallFailed
from assay.providers.address_rules import FetchRules
from assay.providers.cited_pages import (
    LARGEST_DOCUMENT,
    MAX_REDIRECTS,
    FetchedDocument,
    fetch_document,
)
from assay.providers.origin import is_public, origin_of

PUBLIC = "93.184.216.34"


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[CapturedNetwork]:
    with CapturedNetwork(addresses=lambda _: (PUBLIC,)) as captured:
        captured.install(monkeypatch)
        yield captured


@pytest.fixture
def documents() -> Iterator[DocumentServer]:
    with DocumentServer() as running:
        yield running


def fetched(url: str, rules: FetchRules | None = None, **how: Any) -> FetchedDocument:
    return asyncio.run(fetch_document(url, rules or FetchRules(), **how))


def refusal(url: str, rules: FetchRules | None = None, **how: Any) -> str:
    with pytest.raises(CallFailed) as failed:
        fetched(url, rules, **how)
    return failed.value.detail


def allowing(server: DocumentServer, **how: Any) -> FetchRules:
    return FetchRules(frozenset({origin_of(server.url)}), **how)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "１２７.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "10.0.0.7",
        "172.16.3.4",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "[fe80::1]",
        "[fd00::1]",
        "[fec0::1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]",
        "224.0.0.1",
        "[ff02::1]",
        "255.255.255.255",
    ],
)
def test_no_private_address_is_called(network: CapturedNetwork, host: str) -> None:
    assert "not public" in refusal(f"http://{host}/doc")
    assert not network.destinations


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.1.2.3", "169.254.169.254"])
def test_no_name_of_a_private_address_is_called(network: CapturedNetwork, address: str) -> None:
    network.addresses = lambda _: (PUBLIC, address)
    assert address in refusal("https://docs.example.com/page")
    assert not network.destinations


def test_the_connection_uses_the_addresses_that_were_checked(network: CapturedNetwork) -> None:
    asked = count()
    network.addresses = lambda _: (PUBLIC,) if next(asked) == 0 else ("127.0.0.1",)
    network.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nhi"
    assert fetched("http://docs.example.com/") == FetchedDocument(b"hi", "text/plain")
    assert [host for host, _ in network.destinations] == [PUBLIC]
    # the name has changed its address meanwhile
    assert "not public" in refusal("http://docs.example.com/")


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:6379/",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "ftp://10.0.0.1/",
    ],
)
def test_no_redirect_reaches_a_private_address(network: CapturedNetwork, target: str) -> None:
    network.answer = (
        f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode()
    )
    assert (
        "not public" in (detail := refusal("http://docs.example.com/"))
        or "not an address" in detail
    )
    assert [host for host, _ in network.destinations] == [PUBLIC]


def test_allowed_origin_is_fetched_and_its_redirect_is_checked(documents: DocumentServer) -> None:
    other = f"http://localhost:{origin_of(documents.url).port}/page"
    assert b"Main" in fetched(f"{documents.url}/page", allowing(documents)).content
    assert "localhost" in refusal(f"{documents.url}/redirect?to={other}", allowing(documents))
    assert "not public" in refusal(f"{documents.url}/page")


def test_local_only_stops_remote_documents_even_if_allowed(network: CapturedNetwork) -> None:
    rules = FetchRules(frozenset({origin_of("https://docs.example.com")}), local_only=True)
    looked_up: list[str] = []
    network.addresses = lambda name: looked_up.append(name) or (PUBLIC,)  # type: ignore[func-returns-value]
    assert "local_only" in refusal("https://docs.example.com/", rules)
    assert not looked_up
    rules = FetchRules(frozenset({origin_of("http://intranet")}), local_only=True)
    assert f"it is {PUBLIC}, which local_only forbids" in refusal("http://intranet/", rules)
    assert not network.destinations


def test_local_only_still_needs_permission_for_private_addresses(documents: DocumentServer) -> None:
    assert "not public" in refusal(f"{documents.url}/page", FetchRules(local_only=True))
    assert fetched(f"{documents.url}/page", allowing(documents, local_only=True)).content


def test_a_hanging_server_ends_after_the_time_limit(documents: DocumentServer) -> None:
    assert "0.3 s" in refusal(f"{documents.url}/hang", allowing(documents), timeout_s=0.3)
    assert "0.3 s" in refusal(f"{documents.url}/drip", allowing(documents), timeout_s=0.3)


def test_a_loop_of_redirects_ends(documents: DocumentServer) -> None:
    assert "redirected more than 5 times" in refusal(f"{documents.url}/loop", allowing(documents))
    assert documents.served == MAX_REDIRECTS + 1


@pytest.mark.parametrize("path", ["/flood", "/flood?length=no", "/bomb"])
def test_a_flood_is_read_only_to_the_limit(documents: DocumentServer, path: str) -> None:
    assert "more than 4 MB" in refusal(documents.url + path, allowing(documents))
    assert documents.sent < 4 * LARGEST_DOCUMENT  # the socket buffers take some


def test_a_compressed_page_is_unpacked(documents: DocumentServer) -> None:
    documents.page = gzip.compress(b"<p>Main</p>")
    assert fetched(f"{documents.url}/gzip", allowing(documents)).content == b"<p>Main</p>"


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:93.184.216.34"]
)
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "192.88.99.1",
        "192.0.0.9",
        "3fff::1",
        "3fff:fff:ffff::1",
        "2001:1::1",
        "5f00::1",
        "::ffff:192.88.99.1",
    ],
)
def test_special_addresses_of_the_iana_registries_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "http://user:key@docs.example.com/",
        "javascript:alert(1)",
        "http://",
        "http://a b/",
        "http://[x]/",
    ],
)
def test_an_odd_address_is_refused_in_one_sentence(network: CapturedNetwork, url: str) -> None:
    assert "is not an address of a document" in refusal(url)
    assert not network.destinations
