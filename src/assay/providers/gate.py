"""Let the commands of one trial reach the models of one provider, without the key and without a
network.

The gate listens on a UNIX socket, which a sandbox shows to its commands. It accepts only requests
that carry the trial's own token, adds the key, and sends them to the provider's address. Only
requests for answers pass, because a key also opens files, batches and administration, and tools
that the provider runs pass only if the trial may use the network.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from math import ceil
from typing import Any, Final

from aiohttp import web
from yarl import URL

from assay.domain.agent_limits import AgentLimits, Spent
from assay.domain.budget import Booking
from assay.domain.calls import Usage
from assay.domain.failure import CallFailed
from assay.domain.model import ModelSpec
from assay.domain.sandbox import Gateway
from assay.ports import Allowance, ModelDirectory
from assay.providers.endpoint import Endpoint
from assay.providers.error_mapping import GAVE_UP_WAITING
from assay.providers.gate_protocols import FORMS
from assay.providers.gate_requests import DEFAULT_OUTPUT, GatedRequest, GateRules
from assay.providers.gate_shapes import RequestRefused
from assay.providers.json_body import UnreadableBody, count, dump, parse
from assay.providers.origin import origin_of
from assay.providers.registry import ProviderContext
from assay.providers.session import Address
from assay.providers.wires import WIRES

TIMEOUT_S: Final = 600.0
_BOOKING_S: Final = 10.0
LARGEST_REQUEST: Final = 32 << 20
MAX_CONNECTIONS: Final = 64
MAX_CALLS: Final = 4
"""Maximum calls at a time, each of which may take `LARGEST_REQUEST` bytes of memory."""

_LISTED: Final = re.compile(r"/v1/models(?:/[\w:-][\w.:-]*)?", re.ASCII)
_FREE: Final = ("/count_tokens",)
_RETURNED: Final = ("content-type", "retry-after", "request-id", "x-request-id")
_QUERY: Final = {"beta": re.compile("true"), "limit": re.compile("[0-9]{1,4}")}
_HEADERS: Final = {
    "accept": re.compile(r"[\w/*+.,;= -]{1,100}", re.ASCII),
    "anthropic-version": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "openai-beta": re.compile(r"responses=experimental"),
}
_BETAS: Final = re.compile(
    r"(?:claude-code|interleaved-thinking|adaptive-thinking|fine-grained-tool-streaming|context-management|context-1m"
    r"|prompt-caching|prompt-caching-scope|extended-cache-ttl|token-efficient-tools|output-128k|max-tokens-3-5-sonnet"
    r"|structured-outputs|effort|token-counting|tool-examples|advanced-tool-use|tool-search-tool|redact-thinking"
    r"|web-search|web-fetch|computer-use|pdfs)-[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|claude-code-[0-9]{8}"
)
"""Values of `anthropic-beta` that pass; the others, such as files, containers and MCP, are left
out.
"""

_NOTE: Final = "x-assay-note"
# of each protocol: the address, its path, and the key
_VARIABLES: Final[Mapping[str, tuple[str, str, str]]] = {
    "anthropic": ("ANTHROPIC_BASE_URL", "", "ANTHROPIC_API_KEY"),
    "openai": ("OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY"),
}


class Gate:
    """A `ports.ModelGate` for one trial; `spent` is what its calls have used so far, and `end` the
    limit that they reached.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        context: ProviderContext,
        directory: ModelDirectory,
        *,
        rules: GateRules,
        limits: AgentLimits,
        priced: Callable[[ModelSpec], ModelSpec],
    ) -> None:
        self._endpoint = endpoint
        self._context = context
        self._directory = directory
        self._rules = rules
        self._limits = limits
        self._priced = priced
        self._allowance: Allowance | None = None
        self._refused: CallFailed | None = None
        self._has_refused = asyncio.Event()
        self._calls: set[asyncio.Task[Any]] = set()
        self._token = secrets.token_urlsafe(24)
        self._slots = asyncio.Semaphore(MAX_CALLS)
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

    async def refusal(self) -> CallFailed:
        """Wait until the budget refuses a call, and return the reason."""
        while self._refused is None:
            await self._has_refused.wait()
        return self._refused

    @asynccontextmanager
    async def open(self, allowance: Allowance | None = None, /) -> AsyncIterator[Gateway]:
        self._allowance = allowance
        folder = tempfile.mkdtemp(prefix="assay-gate-")
        socket = os.path.join(folder, "model.sock")
        http = web.Server(self._answer)
        server = await asyncio.get_running_loop().create_unix_server(
            lambda: http() if len(http.connections) < MAX_CONNECTIONS else _Closed(), path=socket
        )
        os.chmod(socket, 0o600)
        address, path, key = _VARIABLES[self._endpoint.vendor.protocol]
        try:
            yield Gateway(socket=socket, addresses={address: path}, variables={key: self._token})
        finally:
            server.close()
            await http.shutdown(timeout=0.1)
            if self._calls:  # cancelled calls still book what they may have cost
                await asyncio.wait(self._calls, timeout=_BOOKING_S)
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        given = request.headers.get("x-api-key") or request.headers.get(
            "authorization", ""
        ).removeprefix("Bearer ")
        called = f"{request.method} {request.rel_url.raw_path}"
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode()):
            return self._error(401, "Send the key of this trial, which is in the environment.")
        path = request.rel_url.raw_path
        asks = request.method == "POST" and path in FORMS[self._endpoint.vendor.protocol]
        if not asks and not (request.method == "GET" and _LISTED.fullmatch(path)):
            return self._error(
                403, f"{called[:200]} is not open to agents of {self._endpoint.vendor.name}."
            )
        async with self._slots:
            body = bytearray()
            async for part in request.content.iter_any():
                body += part
                if len(body) > LARGEST_REQUEST:
                    return self._error(413, f"A request may have {LARGEST_REQUEST:,} bytes.")
            if self.end is not None:
                return self._error(403, f"This trial has reached its {self.end}.")
            try:
                query = _query(request)
                if asks:
                    return await self._within_budget(
                        request, query, self._rules.read(path, bytes(body))
                    )
                if body:
                    raise RequestRefused(called, "has a body.")
                return await self._forwarded(request, query, None, Booking())
            except RequestRefused as refused:
                return self._error(403, str(refused))

    async def _within_budget(
        self, request: web.BaseRequest, query: Mapping[str, str], asked: GatedRequest
    ) -> web.Response:
        """Forward a call if the budget covers its worst case, which is reserved until its cost is
        known.
        """
        if self._refused is not None:
            return self._error(402, _over_budget(self._refused))
        if asked.path.endswith(_FREE) or self._allowance is None:
            return await self._forwarded(request, query, asked, Booking())
        if asked.parts.run_by_provider:
            problem = "is run by the provider at a price of its own, which a budget cannot reserve."
            raise RequestRefused(
                asked.parts.run_by_provider[0], problem, "Run without `--budget`, or leave it out."
            )
        model = self._model(asked.model)
        output_tokens = asked.most_output_tokens
        if output_tokens is None:
            context = self._directory.context_tokens(model)
            limit = DEFAULT_OUTPUT if context is None else min(DEFAULT_OUTPUT, max(1, context // 4))
            asked = asked.limited(limit, old_name=not self._is_own_address())
            output_tokens = limit * asked.answers
        call = self._allowance.call(
            model, input_tokens=asked.most_input_tokens, output_tokens=output_tokens
        )
        task = asyncio.current_task()
        if task is not None:
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)
        try:
            async with call as booking:
                return await self._forwarded(request, query, asked, booking)
        except CallFailed as refused:
            self._refused = refused
            self._has_refused.set()
            return self._error(402, _over_budget(refused))

    def _is_own_address(self) -> bool:
        """True if the provider is OpenAI itself, and not another server that speaks its
        protocol.
        """
        vendor = self._endpoint.vendor
        return vendor.name == "openai" and origin_of(self._endpoint.url) == origin_of(
            vendor.address
        )

    def _model(self, name: str) -> ModelSpec:
        return self._priced(ModelSpec(provider=self._endpoint.vendor.name, name=name))

    async def _forwarded(
        self,
        request: web.BaseRequest,
        query: Mapping[str, str],
        asked: GatedRequest | None,
        booking: Booking,
    ) -> web.Response:
        """Send a call to the provider, note its cost in the booking, and return the reply without
        the key.
        """
        endpoint = self._endpoint
        url = URL(endpoint.url)
        path = url.path.removesuffix("/messages").removesuffix("/chat/completions")
        target = url.with_path(path + request.rel_url.path.removeprefix("/v1")).with_query(
            {**query, **url.query}
        )
        headers = WIRES[endpoint.vendor.protocol]().headers(endpoint.key) | _headers(request)
        address = Address(target, headers, endpoint.proxy, endpoint.place, endpoint.pinned)
        counts = asked is not None and not asked.path.endswith(_FREE)
        self._unsettled += counts
        try:
            adds_usage = asked is not None and asked.hides_usage
            body = b"" if asked is None else (asked.with_usage() if adds_usage else asked).body
            answer = await self._context.http().send(
                request.method, address, body, timeout_s=TIMEOUT_S
            )
        except CallFailed as failed:
            booking.note_failure(failed)
            self._unsettled -= counts and not failed.charged
            return self._error(502, failed.detail)
        if asked is not None and counts and answer.status == 200:
            booking.usd = self._count(answer.body, asked.model)
        elif counts and answer.status not in GAVE_UP_WAITING:
            self._unsettled -= 1
            booking.usd = 0.0
        content = _without_usage(answer.body) if adds_usage else answer.body
        content = content.replace(endpoint.key.encode(), b"[key]") if endpoint.key else content
        passed = {name: answer.headers[name] for name in _RETURNED if name in answer.headers}
        if asked is not None and asked.parts.dropped:
            passed[_NOTE] = (
                f"left out: {', '.join(asked.parts.dropped)}"[:1000]
                .encode("ascii", "replace")
                .decode()
            )
        return web.Response(status=answer.status, body=content, headers=passed)

    def _error(self, status: int, message: str) -> web.Response:
        """Return a refusal in the form of the provider's own errors."""
        kinds = {401: "authentication_error", 402: "billing_error", 403: "permission_error"}
        error: dict[str, str | None] = {
            "type": kinds.get(status, "invalid_request_error"),
            "message": f"Assay: {message}",
        }
        if self._endpoint.vendor.protocol == "anthropic":
            return web.Response(
                status=status,
                body=dump({"type": "error", "error": error}),
                content_type="application/json",
            )
        code = "insufficient_quota" if status == 402 else None
        error |= {"type": code or error["type"], "param": None, "code": code}
        return web.Response(
            status=status, body=dump({"error": error}), content_type="application/json"
        )

    def _count(self, body: bytes, name: str) -> float | None:
        """Add a reply to the sums, note the limit that it reaches, and return its cost."""
        usage, cached, stated = usage_in(body)
        model = self._model(name)
        cost = self._context.cost_of(model, usage, cached, stated)
        if cost is not None and (extra := cache_surcharge(body)):
            cost += (
                self._context.cost_of(model, Usage(input_tokens=extra, output_tokens=0), 0, None)
                or 0.0
            )
        self._unsettled -= usage.input_tokens is not None and usage.output_tokens is not None
        self._spent = self._spent.plus(usage.input_tokens, usage.output_tokens, cost)
        self.end = self._limits.reached(self.spent)
        return cost


def _query(request: web.BaseRequest) -> dict[str, str]:
    """Return the query of a request; raises `RequestRefused` for parameters that do not pass or
    occur twice.
    """
    query: dict[str, str] = {}
    for name, value in request.rel_url.query.items():
        if name in query or name not in _QUERY or not _QUERY[name].fullmatch(value):
            raise RequestRefused(
                f"The parameter {name[:60]!r}", "does not pass.", "Leave it out of the address."
            )
        query[name] = value
    return query


def _headers(request: web.BaseRequest) -> dict[str, str]:
    """Return the headers to forward; the others say nothing about the call, or would open what its
    key can do.
    """
    headers: dict[str, str] = {}
    for name, allowed in _HEADERS.items():
        values = request.headers.getall(name, [])
        if len(values) == 1 and allowed.fullmatch(values[0]):
            headers[name] = values[0]
    betas = ",".join(request.headers.getall("anthropic-beta", [])).split(",")
    if passed := [beta.strip() for beta in betas if _BETAS.fullmatch(beta.strip())]:
        headers["anthropic-beta"] = ",".join(passed)
    return headers


class _Closed(asyncio.Protocol):
    """Closes a connection at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def usage_in(body: bytes) -> tuple[Usage, int, float | None]:
    """Return tokens, cached tokens and stated cost of a reply; unknown output tokens if a stream
    was cut off.
    """
    stated = _stated_usage(body)
    into = count(stated.get("input_tokens", stated.get("prompt_tokens")))
    read, written = (
        count(stated.get(f"cache_{name}_input_tokens")) or 0 for name in ("read", "creation")
    )
    details = stated.get("prompt_tokens_details") or stated.get("input_tokens_details")
    cached = read or (count(details.get("cached_tokens")) or 0 if isinstance(details, dict) else 0)
    cost = stated.get("cost")
    tokens = Usage(
        input_tokens=None if into is None else into + read + written,
        output_tokens=count(stated.get("output_tokens", stated.get("completion_tokens"))),
    )
    return (
        tokens,
        cached,
        float(cost) if isinstance(cost, int | float) and 0 <= cost < 1e6 else None,
    )


def cache_surcharge(body: bytes) -> int:
    """Return the tokens by which writing to Anthropic's cache costs more: a quarter of the tokens,
    or all of those for an hour.
    """
    stated = _stated_usage(body)
    written = count(stated.get("cache_creation_input_tokens")) or 0
    by_time = stated.get("cache_creation")
    hour = count(by_time.get("ephemeral_1h_input_tokens")) or 0 if isinstance(by_time, dict) else 0
    return ceil(0.25 * max(0, written - hour)) + hour


def _stated_usage(body: bytes) -> dict[str, Any]:
    """Return the fields of all usage in a reply; in a stream, later events replace earlier ones."""
    stated: dict[str, Any] = {}
    streamed = [
        line[5:] for line in body.split(b"\n") if line.startswith(b"data:") and b'"usage"' in line
    ]
    for text in streamed or [body]:
        document = _document(text)
        for holder in (document, document.get("message"), document.get("response")):
            usage = holder.get("usage") if isinstance(holder, dict) else None
            if isinstance(usage, dict):
                stated |= {key: value for key, value in usage.items() if value is not None}
                if streamed and holder is document.get("message"):
                    # the count at the start of the answer says nothing about its end
                    stated.pop("output_tokens", None)
    return stated


def _without_usage(body: bytes) -> bytes:
    """Return a stream without the event of its usage, for clients that did not ask for it and
    expect a choice in each event.
    """
    events = re.split(rb"(?<=\n\n)|(?<=\r\n\r\n)", body)
    return b"".join(event for event in events if not _states_only_usage(event))


def _states_only_usage(event: bytes) -> bool:
    if not event.startswith(b"data:") or b'"usage"' not in event:
        return False
    document = _document(event[5:].strip())
    return document.get("choices") == [] and isinstance(document.get("usage"), dict)


def _over_budget(refused: CallFailed) -> str:
    return f"The budget of this run stops the call: {refused.detail} The run pauses."


def _document(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body; an empty one if there is none."""
    try:
        document = parse(body)
    except UnreadableBody:
        return {}
    return document if isinstance(document, dict) else {}
