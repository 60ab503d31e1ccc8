"""Agents that spend as much as they can under a budget.

Each call costs as much as its request allows, from a server that bills it before it answers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession, UnixConnector, web
from aiohttp.test_utils import TestServer
from tests.attack.figures import publish_cases
from tests.attack.test_budget import RUN, StoredLedger, booked, budgeted, opened

from assay.domain.agent_limits import AgentLimits
from assay.domain.calls import Reply, Usage
from assay.domain.failure import BUDGET, CallFailed, Fault
from assay.domain.model import ModelSpec, Price
from assay.domain.programs import Command
from assay.engine.spending import Spending
from assay.providers.directory import Directory
from assay.providers.gate import cache_surcharge, usage_in
from assay.store.opening import Store

__all__ = ["opened"]
pytestmark = pytest.mark.slow

CHAT, RESPONSES, COMPLETIONS, MESSAGES = (
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/completions",
    "/v1/messages",
)
ASK = [{"role": "user", "content": "hi"}]
BUDGET_USD = 0.1
CALLS = 40
PRICES = {"gpt-4o-mini": (0.15e-6, 0.6e-6), "claude-haiku-4-5": (1e-6, 5e-6)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spender:
    """An agent's requests, the server's behaviour, and the number of calls at once."""

    path: str = CHAT
    fields: Mapping[str, Any] = field(
        default_factory=lambda: {"messages": ASK, "max_tokens": 16_000}
    )
    server: str = "honest"
    at_once: int = 1
    trials: int = 1
    leaves: bool = False


STREAM = {"messages": ASK, "max_tokens": 16_000, "stream": True}
CACHED = {
    "type": "text",
    "text": "word " * 3000,
    "cache_control": {"type": "ephemeral", "ttl": "1h"},
}
SPENDERS: Mapping[str, Spender] = {
    "one by one": Spender(),
    "ten at once": Spender(at_once=10),
    "three trials at once": Spender(at_once=4, trials=3),
    "no limit of tokens": Spender(fields={"messages": ASK}),
    "no limit of tokens, ten at once": Spender(fields={"messages": ASK}, at_once=10),
    "ten answers": Spender(fields={"messages": ASK, "max_tokens": 4_000, "n": 10}),
    "ten answers without a limit": Spender(fields={"messages": ASK, "n": 10}),
    "two limits": Spender(
        fields={"messages": ASK, "max_tokens": 1, "max_completion_tokens": 16_000}
    ),
    "null as a limit": Spender(fields={"messages": ASK, "max_tokens": None}),
    "a long prompt": Spender(
        fields={"messages": [{"role": "user", "content": "x" * 100_000}], "max_tokens": 10}
    ),
    "long tools": Spender(
        fields={
            "messages": ASK,
            "max_tokens": 10,
            "tools": [
                {"type": "function", "function": {"name": "f", "description": "x" * 100_000}}
            ],
        }
    ),
    "no usage in replies": Spender(server="silent"),
    "stream": Spender(fields=STREAM),
    "stream without usage": Spender(fields=STREAM, server="silent"),
    "stream that is cut off": Spender(fields=STREAM, server="cut"),
    "lost connections": Spender(server="lost"),
    "an agent that hangs up": Spender(server="slow", leaves=True),
    "a proxy that times out": Spender(server="504"),
    "responses": Spender(path=RESPONSES, fields={"input": "hi", "max_output_tokens": 16_000}),
    "responses without a limit": Spender(path=RESPONSES, fields={"input": "hi"}),
    "completions": Spender(path=COMPLETIONS, fields={"prompt": "hi", "max_tokens": 16_000}),
    "the best of ten": Spender(
        path=COMPLETIONS, fields={"prompt": "hi", "max_tokens": 4_000, "best_of": 10}
    ),
    "ten prompts": Spender(path=COMPLETIONS, fields={"prompt": ["hi"] * 10, "max_tokens": 4_000}),
    "messages": Spender(path=MESSAGES, fields={"messages": ASK, "max_tokens": 4_000}),
    "messages that are cut off": Spender(
        path=MESSAGES, fields={**STREAM, "max_tokens": 4_000}, server="cut"
    ),
    "a prompt cached for an hour": Spender(
        path=MESSAGES, fields={"messages": ASK, "system": [CACHED], "max_tokens": 10}
    ),
}


@dataclass
class Meter:
    """A provider that bills each request at the most that it allows, before it answers."""

    behaviour: str
    billed_usd: float = 0.0
    requests: list[dict[str, Any]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        document = json.loads(body)
        self.requests.append(document)
        limits = [
            document.get(name) or 0
            for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")
        ]
        assert max(limits) > 0, "a request without a limit of tokens may cost anything"
        prompts = document.get("prompt")
        answers = max(document.get("n", 1), document.get("best_of", 1)) * (
            len(prompts) if isinstance(prompts, list) else 1
        )
        output = max(limits) * answers
        into, hour = len(body), len(CACHED["text"]) if "system" in document else 0
        input_usd, output_usd = PRICES[document["model"]]
        self.billed_usd += (into + hour) * input_usd + output * output_usd
        match self.behaviour:
            case "lost":
                assert request.transport is not None
                request.transport.abort()
            case "slow":
                await asyncio.sleep(0.3)
            case "504":
                return web.Response(status=504)
        anthropic = request.path == MESSAGES
        names = (
            ("input_tokens", "output_tokens")
            if request.path in (MESSAGES, RESPONSES)
            else ("prompt_tokens", "completion_tokens")
        )
        usage: dict[str, Any] = {names[0]: into - hour, names[1]: output}
        if hour:
            usage |= {
                "cache_creation_input_tokens": hour,
                "cache_creation": {"ephemeral_1h_input_tokens": hour},
            }
        if not document.get("stream"):
            return web.json_response({} if self.behaviour == "silent" else {"usage": usage})
        start: dict[str, Any] = (
            {"type": "message_start", "message": {"usage": {**usage, "output_tokens": 1}}}
            if anthropic
            else {"choices": [{}]}
        )
        end: dict[str, Any] = (
            {"type": "message_delta", "usage": usage}
            if anthropic
            else {"choices": [], "usage": usage}
        )
        events = [start] if self.behaviour in ("silent", "cut") else [start, end]
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        return web.Response(text=text, content_type="text/event-stream")


@asynccontextmanager
async def metered(behaviour: str) -> AsyncIterator[tuple[Meter, str]]:
    meter = Meter(behaviour)
    app = web.Application()
    app.router.add_post("/{path:.*}", meter.answer)
    async with TestServer(app) as server:
        yield meter, f"http://127.0.0.1:{server.port}"


def directory_for(address: str) -> Directory:
    addresses = {"ANTHROPIC_BASE_URL": address, "OPENAI_BASE_URL": f"{address}/v1"}
    return Directory(
        {**addresses, "ANTHROPIC_API_KEY": "sk-a", "OPENAI_API_KEY": "sk-o"}, base_folder=Path()
    )


async def spend(spender: Spender, store: Store) -> tuple[Meter, list[int], list[CallFailed]]:
    """Let the agent's trials call until the budget refuses; return the server, all statuses, and
    the refusals of the gates.
    """
    statuses: list[int] = []
    refusals: list[CallFailed] = []
    async with metered(spender.server) as (meter, address):
        directory = directory_for(address)
        spending = Spending(RUN, StoredLedger(store), directory)
        provider, model = (
            ("anthropic", "claude-haiku-4-5")
            if spender.path == MESSAGES
            else ("openai", "gpt-4o-mini")
        )

        async def trial() -> None:
            gate = directory.gate(provider, network=False, limits=AgentLimits(turns=10_000))
            async with (
                gate.open(spending) as gateway,
                ClientSession(connector=UnixConnector(gateway.socket)) as client,
            ):
                (token,) = gateway.variables.values()

                async def call() -> None:
                    document = {"model": model, **spender.fields}
                    asking = client.post(
                        f"http://gate{spender.path}", json=document, headers={"x-api-key": token}
                    )
                    with suppress(TimeoutError, ClientError):
                        async with asyncio.timeout(0.1 if spender.leaves else 60), asking as reply:
                            await reply.read()
                            statuses.append(reply.status)

                for _ in range(CALLS // spender.at_once):
                    await asyncio.gather(*(call() for _ in range(spender.at_once)))
                    if 402 in statuses:
                        break
                    if spender.leaves:
                        await asyncio.sleep(0.3)
                refusals.append(await asyncio.wait_for(gate.refusal(), 5))

        await asyncio.gather(*(trial() for _ in range(spender.trials)))
        await directory.close()
    return meter, statuses, refusals


@pytest.mark.parametrize("name", SPENDERS)
def test_an_agent_spends_no_more_than_the_budget(opened: Callable[[], Store], name: str) -> None:
    spender = SPENDERS[name]
    store = budgeted(opened(), BUDGET_USD)
    meter, _, refusals = asyncio.run(spend(spender, store))
    assert meter.requests, "the budget covers a call"
    assert meter.billed_usd <= BUDGET_USD
    assert meter.billed_usd <= booked(store) + 1e-9
    assert booked(store) <= BUDGET_USD + 1e-9
    assert {(refusal.kind, refusal.fault) for refusal in refusals} == {(BUDGET, Fault.BUDGET)}


def test_the_spenders_are_counted() -> None:
    publish_cases(
        "agent that spends all that its requests allow, under a budget",
        test_an_agent_spends_no_more_than_the_budget,
    )


async def ask(
    store: Store, document: object, *, path: str = CHAT, price: Price | None = None
) -> tuple[int, Any, Meter]:
    """Send one request under the budget, and return status, document and server."""
    async with metered("honest") as (meter, address):
        directory = directory_for(address)
        gate = directory.gate(
            "anthropic" if path == MESSAGES else "openai",
            network=True,
            limits=AgentLimits(),
            priced=lambda model: replace(model, price=price),
        )
        spending = Spending(RUN, StoredLedger(store), directory)
        async with (
            gate.open(spending) as gateway,
            ClientSession(connector=UnixConnector(gateway.socket)) as client,
        ):
            (token,) = gateway.variables.values()
            async with client.post(
                f"http://gate{path}", json=document, headers={"x-api-key": token}
            ) as reply:
                status, text = reply.status, await reply.text()
        await directory.close()
    return status, json.loads(text) if text.startswith("{") else text, meter


def test_refusals_have_the_form_of_the_provider(opened: Callable[[], Store]) -> None:
    store = budgeted(opened(), 0.0001)
    status, reply, meter = asyncio.run(ask(store, {"model": "gpt-4o-mini", "messages": ASK}))
    assert (status, reply["error"]["code"], meter.requests) == (402, "insufficient_quota", [])
    assert "more than is left of the budget" in reply["error"]["message"]
    asked = {"model": "claude-haiku-4-5", "messages": ASK, "max_tokens": 4000}
    status, reply, _ = asyncio.run(ask(store, asked, path=MESSAGES))
    assert (status, reply["type"], reply["error"]["type"]) == (402, "error", "billing_error")


def test_a_model_without_a_price_is_not_called_under_a_budget(opened: Callable[[], Store]) -> None:
    store = budgeted(opened(), 1)
    status, reply, meter = asyncio.run(ask(store, {"model": "of-my-own", "messages": ASK}))
    assert (status, meter.requests) == (402, [])
    assert "openai/of-my-own has no known price" in reply["error"]["message"]
    PRICES["of-my-own"] = (1e-6, 1e-6)
    price = Price(input_usd=1.0, output_usd=1.0)
    assert asyncio.run(ask(store, {"model": "of-my-own", "messages": ASK}, price=price))[0] == 200


def test_a_search_by_the_provider_is_refused_under_a_budget(opened: Callable[[], Store]) -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    asked = {"model": "claude-haiku-4-5", "messages": ASK, "max_tokens": 10, "tools": [search]}
    status, reply, _ = asyncio.run(ask(budgeted(opened(), 1), asked, path=MESSAGES))
    assert (status, "price of its own" in reply["error"]["message"]) == (403, True)


def test_a_stream_is_counted_without_an_event_nobody_asked_for(opened: Callable[[], Store]) -> None:
    store = budgeted(opened(), 1)
    asked = {"model": "gpt-4o-mini", "messages": ASK, "max_tokens": 10, "stream": True}
    _, text, meter = asyncio.run(ask(store, asked))
    assert meter.requests[0]["stream_options"] == {"include_usage": True}
    assert text == 'data: {"choices": [{}]}\n\n'
    assert booked(store) == pytest.approx(meter.billed_usd)
    _, text, _ = asyncio.run(ask(store, asked | {"stream_options": {"include_usage": True}}))
    assert '"usage"' in text


def test_a_message_that_was_cut_off_has_no_count_of_its_output() -> None:
    start: dict[str, Any] = {
        "type": "message_start",
        "message": {"usage": {"input_tokens": 10, "output_tokens": 1}},
    }
    assert usage_in(b"data: " + json.dumps(start).encode()) == (Usage(input_tokens=10), 0, None)


def test_writing_to_the_cache_costs_more() -> None:
    written = {
        "cache_creation_input_tokens": 1000,
        "cache_creation": {"ephemeral_1h_input_tokens": 600},
    }
    assert cache_surcharge(json.dumps({"usage": written}).encode()) == 100 + 600


def test_a_program_is_not_said_to_miscount(opened: Callable[[], Store]) -> None:
    store = budgeted(opened(), 1)
    spec = ModelSpec(provider="command", name="mine", program=Command(words=("mine",)))
    spending = Spending(RUN, StoredLedger(store), Directory({}, base_folder=Path()))

    async def call() -> str:
        for _ in range(2):
            try:
                async with spending.call(spec, input_tokens=10, output_tokens=10) as booking:
                    booking.note(Reply(text="a", cost_usd=0.7))
            except CallFailed as refused:
                return refused.detail
        return ""

    detail = asyncio.run(call())
    assert "command/mine stated a cost of up to $0.70 per call" in detail
    assert "counts more tokens" not in detail
