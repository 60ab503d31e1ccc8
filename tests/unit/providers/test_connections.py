"""Connections to endpoints: which addresses a name may resolve to, and which redirects are
followed.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.attack.network import PUBLIC, CapturedNetwork

from assay.domain.calls import ModelRequest, Purpose, Role
from assay.domain.failure import CallFailed
from assay.domain.model import DEFAULTS, ModelSpec
from assay.domain.suite import Message
from assay.providers.directory import Directory

if TYPE_CHECKING:
    from collections.abc import Iterator

MODEL = ModelSpec(provider="openai", name="m")
REQUEST = ModelRequest(
    model=MODEL,
    messages=(Message(role="user", content="hello"),),
    parameters=DEFAULTS,
    purpose=Purpose(role=Role.CANDIDATE, task="t", trial=1),
)


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[CapturedNetwork]:
    with CapturedNetwork() as captured:
        captured.install(monkeypatch)
        yield captured


def failed_call(address: str, *, local_only: bool = False) -> CallFailed:
    async def ask() -> CallFailed:
        environment = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "k1"}
        directory = Directory(environment, base_folder=Path(), local_only=local_only, timeout_s=5)
        try:
            with pytest.raises(CallFailed) as failure:
                await directory.provider(MODEL).complete(REQUEST)
        finally:
            await directory.close()
        return failure.value

    return asyncio.run(ask())


@pytest.mark.parametrize("local_only", [False, True])
@pytest.mark.parametrize("addresses", [(PUBLIC,), ("127.0.0.1", PUBLIC), ("2002:808:808::1",)])
def test_a_local_name_that_resolves_elsewhere_is_not_asked(
    network: CapturedNetwork, addresses: tuple[str, ...], local_only: bool
) -> None:
    network.addresses = lambda _: addresses
    failure = failed_call("http://gpu-box:8000/v1", local_only=local_only)
    assert failure.kind == "not_local"
    assert addresses[-1] in failure.detail
    assert not failure.transient
    assert network.destinations == []


@pytest.mark.parametrize(
    "target", ["https://127.0.0.1:8000/v1", "http://127.0.0.1:8001/v1", "//evil.example/v1"]
)
def test_a_redirect_to_another_origin_is_not_followed(
    network: CapturedNetwork, target: str
) -> None:
    network.answer = (
        f"HTTP/1.1 307 Moved\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode()
    )
    failure = failed_call("http://127.0.0.1:8000/v1")
    assert failure.kind == "http_307"
    assert network.destinations == [("127.0.0.1", 8000)]
