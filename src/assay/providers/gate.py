"""Let the commands of one trial reach the models of one provider, without the key and without a network.

The gate listens on a UNIX socket, which a sandbox shows to its commands. It accepts only requests that carry the trial's own
token, adds the key, and sends them to the provider's address. Only requests for answers pass, because a key also opens files,
batches and administration, and tools that the provider runs pass only if the trial may use the network.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web
from yarl import URL

from assay.domain.agent_limits import AgentLimits, Spent
from assay.domain.calls import Usage
from assay.domain.failure import CallFailed
from assay.domain.model import ModelSpec
from assay.domain.sandbox import Gateway
from assay.providers.endpoint import Endpoint
from assay.providers.http_model import WIRES
from assay.providers.json_body import UnreadableBody, count, dump, parse
from assay.providers.registry import ProviderContext
from assay.providers.session import Address

TIMEOUT_S: Final = 600.0
LARGEST_REQUEST: Final = 32 << 20
MOST_CONNECTIONS: Final = 64
MOST_CALLS: Final = 4
"""Maximum calls at a time, each of which may take `LARGEST_REQUEST` bytes of memory."""

_OPEN: Final = re.compile(
    r"POST /v1/(?:messages(?:/count_tokens)?|chat/completions|responses|completions|embeddings)|GET /v1/models(?:/[\w:-][\w.:-]*)?"
)
_FREE: Final = ("/count_tokens",)
_PASSED: Final = ("accept", "anthropic-beta", "anthropic-version", "openai-beta")
_RETURNED: Final = ("content-type", "retry-after", "request-id", "x-request-id")
_RUN_BY_PROVIDERS: Final = ("web_", "mcp", "code_", "file_search", "image_generation")
_REACHES_OUT: Final = frozenset({"mcp_servers", "web_search_options", "plugins"})
_ADDRESSES: Final = frozenset({"url", "image_url", "file_url"})
_SEARCHING: Final = re.compile(r":online$|-search\b")
_VARIABLES: Final[Mapping[str, tuple[str, str, str]]] = {
    "anthropic": ("ANTHROPIC_BASE_URL", "", "ANTHROPIC_API_KEY"),
    "openai": ("OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY"),
}  # of each protocol: the address, its path, and the key


class Gate:
    """A `ports.ModelGate` for one trial; `spent` is what its calls have used so far, and `end` the limit that they reached."""

    def __init__(self, endpoint: Endpoint, context: ProviderContext, *, network: bool, limits: AgentLimits) -> None:
        self._endpoint = endpoint
        self._context = context
        self._network = network
        self._limits = limits
        self._token = secrets.token_urlsafe(24)
        self._slots = asyncio.Semaphore(MOST_CALLS)
        self._unsettled = 0  # calls that were sent and whose price nobody stated
        self._spent = Spent()
        self.end: str | None = None

    @property
    def spent(self) -> Spent:
        """The calls so far; tokens and cost are None if a call did not state them."""
        return (
            Spent(turns=self._spent.turns, input_tokens=None, output_tokens=None, cost_usd=None)
            if self._unsettled
            else self._spent
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Gateway]:
        folder = tempfile.mkdtemp(prefix="assay-gate-")
        socket = os.path.join(folder, "model.sock")
        http = web.Server(self._answer)
        server = await asyncio.get_running_loop().create_unix_server(
            lambda: http() if len(http.connections) < MOST_CONNECTIONS else _Closed(), path=socket
        )
        os.chmod(socket, 0o600)
        address, path, key = _VARIABLES[self._endpoint.vendor.protocol]
        try:
            yield Gateway(socket=socket, addresses={address: path}, variables={key: self._token})
        finally:
            server.close()
            await http.shutdown(timeout=0.1)
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        given = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        called = f"{request.method} {request.rel_url.raw_path}"
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode()):
            return _error(401, "Send the key of this trial, which is in the environment.")
        if not _OPEN.fullmatch(called):
            return _error(403, f"{called[:200]} is not open to agents.")
        async with self._slots:
            body = bytearray()
            async for part in request.content.iter_any():
                body += part
                if len(body) > LARGEST_REQUEST:
                    return _error(413, f"A request may have {LARGEST_REQUEST:,} bytes.")
            document = _document(bytes(body))
            if problem := self._problem(document, posted=request.method == "POST"):
                return _error(403, problem)
            return await self._forwarded(request, bytes(body), str(document.get("model", "")))

    def _problem(self, document: Mapping[str, Any], *, posted: bool) -> str | None:
        """Return the reason why a request does not pass; None if it does."""
        if self.end is not None:
            return f"This trial has reached its {self.end}."
        if posted and not document:
            return "The request is not a JSON object."
        tools = document.get("tools")
        types = [str(tool.get("type", "")) for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
        if self._network:
            return None
        runs = _REACHES_OUT & document.keys() or any(each.startswith(_RUN_BY_PROVIDERS) for each in types)
        searches = _SEARCHING.search(str(document.get("model", "")))
        if runs or searches or any(_links(document.get(key)) for key in ("messages", "input", "system")):
            return "This trial has no network, so the provider may not search, fetch or run anything for it."
        return None

    async def _forwarded(self, request: web.BaseRequest, body: bytes, model: str) -> web.Response:
        endpoint = self._endpoint
        url = URL(endpoint.url)
        path = url.path.removesuffix("/messages").removesuffix("/chat/completions")
        target = url.with_path(path + request.rel_url.path.removeprefix("/v1")).with_query(
            {**url.query, **request.rel_url.query}
        )
        headers = WIRES[endpoint.vendor.protocol]().headers(endpoint.key)
        headers |= {name: request.headers[name] for name in _PASSED if name in request.headers}
        address = Address(target, headers, endpoint.proxy, endpoint.place, endpoint.pinned)
        counts = request.method == "POST" and not request.rel_url.path.endswith(_FREE)
        self._unsettled += counts
        try:
            answer = await self._context.http().send(request.method, address, body, timeout_s=TIMEOUT_S)
        except CallFailed as failed:
            self._unsettled -= counts and not failed.charged
            return _error(502, failed.detail)
        if counts and answer.status == 200:
            self._count(answer.body, model)
        elif counts:
            self._unsettled -= 1
        content = answer.body.replace(endpoint.key.encode(), b"[key]") if endpoint.key else answer.body
        passed = {name: answer.headers[name] for name in _RETURNED if name in answer.headers}
        return web.Response(status=answer.status, body=content, headers=passed)

    def _count(self, body: bytes, name: str) -> None:
        """Add a reply to the sums, and note the limit that it reaches."""
        usage, cached, stated = usage_in(body)
        cost = self._context.cost_of(ModelSpec(provider=self._endpoint.vendor.name, name=name), usage, cached, stated)
        self._unsettled -= usage.input_tokens is not None and usage.output_tokens is not None
        self._spent = self._spent.plus(usage.input_tokens, usage.output_tokens, cost)
        self.end = self._limits.reached(self.spent)


def _links(content: object) -> bool:
    """True if a part of the messages contains an address from which the provider would fetch an image or a document."""
    waiting = [content]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict) and part.get("type") not in ("tool_use", "function_call"):
            addresses = (part[key] for key in _ADDRESSES & part.keys())
            if any(isinstance(address, str) and not address.startswith("data:") for address in addresses):
                return True
            waiting += part.values()
    return False


class _Closed(asyncio.Protocol):
    """Closes a connection at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def usage_in(body: bytes) -> tuple[Usage, int, float | None]:
    """Return tokens, cached tokens and stated cost of a reply; in a stream, later events replace earlier ones."""
    stated: dict[str, Any] = {}
    streamed = [line[5:] for line in body.split(b"\n") if line.startswith(b"data:") and b'"usage"' in line]
    for text in streamed or [body]:
        document = _document(text)
        for holder in (document, document.get("message"), document.get("response")):
            usage = holder.get("usage") if isinstance(holder, dict) else None
            stated |= {key: value for key, value in usage.items() if value is not None} if isinstance(usage, dict) else {}
    into = count(stated.get("input_tokens", stated.get("prompt_tokens")))
    read, written = (count(stated.get(f"cache_{name}_input_tokens")) or 0 for name in ("read", "creation"))
    details = stated.get("prompt_tokens_details") or stated.get("input_tokens_details")
    cached = read or (count(details.get("cached_tokens")) or 0 if isinstance(details, dict) else 0)
    cost = stated.get("cost")
    tokens = Usage(
        input_tokens=None if into is None else into + read + written,
        output_tokens=count(stated.get("output_tokens", stated.get("completion_tokens"))),
    )
    return tokens, cached, float(cost) if isinstance(cost, int | float) and 0 <= cost < 1e6 else None


def _document(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body; an empty one if there is none."""
    try:
        document = parse(body)
    except UnreadableBody:
        return {}
    return document if isinstance(document, dict) else {}


def _error(status: int, message: str) -> web.Response:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": f"Assay: {message}"}}
    return web.Response(status=status, body=dump(body), content_type="application/json")
