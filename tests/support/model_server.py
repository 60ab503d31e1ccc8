"""A scripted model server on loopback that speaks OpenAI's chat completions and Anthropic's
messages.

It answers every request with a valid answer to the JSON schema it was sent (the same request, the
same answer), unless it is told otherwise: `answer` replaces the answers, `script` queues mishaps
for the next requests, `faults` draws them at a rate, `refuses` names request fields it answers with
400. It keeps every request and the most that were in flight at once.

    with ModelServer() as server:
        server.script([Mishap.HTTP_429, Mishap.OK])
        ... base_url=server.url ...
        assert len(server.calls) == 2

As a program: `python -m tests.support.model_server --port 0` prints its address; see `--help`.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import json
import random
import sys
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import orjson
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType


class Mishap(StrEnum):
    """Mishaps that can be scripted for one request; `OK` is a valid answer."""

    OK = "ok"
    HTTP_400 = "http_400"
    HTTP_401 = "http_401"
    HTTP_403 = "http_403"
    HTTP_404 = "http_404"
    HTTP_429 = "http_429"
    HTTP_429_WAIT = "http_429_wait"
    NO_QUOTA = "no_quota"
    HTTP_500 = "http_500"
    HTTP_502_HTML = "http_502_html"
    HTTP_503 = "http_503"
    HTTP_529 = "http_529"
    CONTEXT_LENGTH = "context_length"
    HANG = "hang"
    RESET = "reset"
    SLOW_DRIP = "slow_drip"
    EMPTY_BODY = "empty_body"
    EMPTY_CONTENT = "empty_content"
    HALF_BODY = "half_body"
    HALF_CONTENT = "half_content"
    HTML = "html"
    WRONG_SHAPE = "wrong_shape"
    WRONG_SCHEMA = "wrong_schema"
    PROSE = "prose"
    REFUSAL = "refusal"
    TRUNCATED = "truncated"
    REDIRECT_AWAY = "redirect_away"
    REDIRECT_HERE = "redirect_here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request that came in, in the words of both protocols."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def anthropic(self) -> bool:
        """True if the call used Anthropic's protocol."""
        return self.path.endswith("/messages")

    @property
    def prompt(self) -> str:
        """The last message's text."""
        return _text_of(self.body["messages"][-1]["content"]) if self.body.get("messages") else ""

    @property
    def images(self) -> list[dict[str, Any]]:
        """The pictures in all messages, as the protocol has them."""
        contents = [message["content"] for message in self.body.get("messages", ())]
        parts = [part for content in contents if isinstance(content, list) for part in content]
        return [part for part in parts if part.get("type") in ("image", "image_url")]

    @property
    def tools(self) -> list[str]:
        """The names of the tools that the model may call."""
        return [tool.get("function", tool)["name"] for tool in self.body.get("tools", ())]

    @property
    def results(self) -> list[tuple[str, str, bool]]:
        """The results of tool calls in all messages: id, text, and True for an error, which
        OpenAI's protocol has in the text.
        """
        results = []
        for message in self.body.get("messages", ()):
            if message["role"] == "tool":
                results.append(
                    (
                        message["tool_call_id"],
                        message["content"],
                        message["content"].startswith("Error: "),
                    )
                )
            blocks = message["content"] if isinstance(message["content"], list) else []
            results += [
                (block["tool_use_id"], block["content"], block.get("is_error", False))
                for block in blocks
                if block["type"] == "tool_result"
            ]
        return results

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema the answer should have: sent as such, as a forced tool, or written into
        the prompt.
        """
        match self.body:
            case {"response_format": {"json_schema": {"schema": dict(schema)}}}:
                return schema
            case {"tools": [{"input_schema": dict(schema)}, *_], "tool_choice": {"type": "tool"}}:
                return schema
            case _:
                return _schema_in(self.prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An answer that says more than its text.

    `tools` are (name, arguments) of tool calls in one answer; arguments that are a text go over the
    wire as they are.
    """

    text: str = ""
    tools: tuple[tuple[str, Any], ...] = ()
    finish: str = "stop"
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(slots=True)
class _Rate:
    share: float
    kinds: Sequence[Mishap]
    dice: random.Random


@dataclass(slots=True)
class _State:
    """State that the server's thread and the test share, guarded by one lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    queue: deque[Mishap] = field(default_factory=deque)
    rate: _Rate | None = None
    calls: list[Call] = field(default_factory=list)
    in_flight: int = 0
    peak: int = 0
    served: int = 0


class ModelServer:
    """A server in a thread of its own, as a context manager.

    Attributes:
        answer: makes the answer to a call; by default a valid one out of the call's schema, or a
            line of text.
        refuses: fields of a request that are answered with 400 as endpoints do that do not know
            them.
        no_images: what a request with images is answered with, as status 400; None where images are
            taken.
        delay_s: how long every answer takes.
        held: answers wait as long as this is true, so that a test can act while calls are under
            way.
        wait_s: what `HTTP_429_WAIT` asks for.
        keep: whether requests are kept in `calls`.
    """

    def __init__(
        self, *, port: int = 0, seed: int = 0, delay_s: float = 0.0, keep: bool = True
    ) -> None:
        self.answer: Callable[[Call], str | Said] = lambda call: generic_answer(call, seed=seed)
        self.refuses: set[str] = set()
        self.no_images: str | None = None
        self.delay_s = delay_s
        self.held = False
        self.wait_s = 1.0
        self.keep = keep
        self._port = port
        self._seed = seed
        self._state = _State()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None
        self._error: BaseException | None = None

    @property
    def address(self) -> str:
        """`http://127.0.0.1:PORT`; what ANTHROPIC_BASE_URL usually holds."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """The address with `/v1`; what OPENAI_BASE_URL usually holds."""
        return f"{self.address}/v1"

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every request so far, in the order of arrival."""
        with self._state.lock:
            return tuple(self._state.calls)

    @property
    def served(self) -> int:
        """Number of requests that came in, kept or not."""
        with self._state.lock:
            return self._state.served

    @property
    def in_flight(self) -> int:
        """Number of requests that came in and have no answer yet."""
        with self._state.lock:
            return self._state.in_flight

    @property
    def peak(self) -> int:
        """The most requests that were in flight at once."""
        with self._state.lock:
            return self._state.peak

    def script(self, mishaps: Iterable[Mishap]) -> None:
        """Let the next requests meet these, in order of arrival; after them everything is well
        again.
        """
        with self._state.lock:
            self._state.queue.extend(mishaps)

    def faults(self, share: float, kinds: Sequence[Mishap], *, seed: int = 0) -> None:
        """Let a share (0 to 1) of the requests that are not scripted meet one of these, drawn with
        the seed.
        """
        with self._state.lock:
            self._state.rate = (
                _Rate(share, tuple(kinds), random.Random(seed)) if share > 0 else None
            )

    def forget(self) -> None:
        """Drop what was scripted and counted."""
        with self._state.lock:
            self._state.queue.clear()
            self._state.calls.clear()
            self._state.rate = None
            self._state.peak = self._state.served = 0

    def __enter__(self) -> ModelServer:
        ready = threading.Event()
        self._thread = threading.Thread(
            target=self._serve, args=(ready,), name="model-server", daemon=True
        )
        self._thread.start()
        ready.wait()
        if self._error is not None:
            raise self._error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._loop is not None and self._stop is not None and self._thread is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(timeout=10)

    def _serve(self, ready: threading.Event) -> None:
        try:
            asyncio.run(self._run(ready))
        except BaseException as error:
            self._error = error
        finally:
            ready.set()

    async def _run(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.2)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", self._port, backlog=1024).start()
            self._port = runner.addresses[0][1]
            ready.set()
            await self._stop.wait()
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            return self._read_only(request)
        content = await request.content.read()
        try:
            body = orjson.loads(content)
        except orjson.JSONDecodeError:
            return _error(request.path, 400, "the body is not JSON", "invalid_request_error")
        call = Call(path=request.path, headers=request.headers, body=body)
        state = self._state
        with state.lock:
            state.served += 1
            state.in_flight += 1
            state.peak = max(state.peak, state.in_flight)
            if self.keep:
                state.calls.append(call)
            mishap = self._drawn()
        try:
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            while self.held:  # noqa: ASYNC110 - the test that sets it runs in another thread
                await asyncio.sleep(0.01)
            return await self._respond(request, call, mishap)
        finally:
            with state.lock:
                state.in_flight -= 1

    def _drawn(self) -> Mishap:
        state = self._state
        if state.queue:
            return state.queue.popleft()
        rate = state.rate
        if rate is not None and rate.dice.random() < rate.share:
            return rate.dice.choice(rate.kinds)
        return Mishap.OK

    def _read_only(self, request: web.BaseRequest) -> web.Response:
        if request.path.endswith("/models"):
            return _json({"object": "list", "data": [{"id": "scripted-1", "object": "model"}]})
        if request.path == "/stats":
            return _json({"calls": self.served, "peak": self.peak})
        return _error(request.path, 404, "not found", "not_found_error")

    async def _respond(
        self, request: web.BaseRequest, call: Call, mishap: Mishap
    ) -> web.StreamResponse:
        path = call.path
        if not path.endswith(("/chat/completions", "/messages")):
            return _error(path, 404, f"there is nothing at {path}", "not_found_error")
        for name in sorted(self.refuses):
            if name in call.body:
                return _refused_field(path, name)
        if self.no_images is not None and call.images:
            return _error(path, 400, self.no_images, "invalid_request_error")
        match mishap:
            case Mishap.HTTP_400:
                return _error(path, 400, "the request is wrong somehow", "invalid_request_error")
            case Mishap.HTTP_401:
                key = call.headers.get("Authorization", call.headers.get("x-api-key", ""))
                return _error(
                    path, 401, f"Incorrect API key provided: {key}.", "authentication_error"
                )
            case Mishap.HTTP_403:
                return _error(
                    path, 403, "your organisation may not use this model", "permission_error"
                )
            case Mishap.HTTP_404:
                return _error(
                    path,
                    404,
                    f"the model {call.body.get('model')} does not exist",
                    "not_found_error",
                )
            case Mishap.HTTP_429:
                return _error(path, 429, "rate limit reached", "rate_limit_error")
            case Mishap.HTTP_429_WAIT:
                wait = {"Retry-After": f"{self.wait_s:g}"}
                return _error(path, 429, "rate limit reached", "rate_limit_error", headers=wait)
            case Mishap.NO_QUOTA:
                return _error(path, 429, "You exceeded your current quota", "insufficient_quota")
            case Mishap.HTTP_500:
                return _error(path, 500, "the server had an error", "api_error")
            case Mishap.HTTP_502_HTML:
                return web.Response(status=502, text=_PAGE, content_type="text/html")
            case Mishap.HTTP_503:
                return _error(path, 503, "the engine is overloaded", "overloaded_error")
            case Mishap.HTTP_529:
                return _error(path, 529, "Overloaded", "overloaded_error")
            case Mishap.CONTEXT_LENGTH:
                result = "This model's maximum context length is 8192 tokens, you asked for 9000"
                return _error(
                    path, 400, result, "invalid_request_error", code="context_length_exceeded"
                )
            case Mishap.HANG:
                await asyncio.sleep(3600)
            case Mishap.RESET:
                if request.transport is not None:
                    request.transport.abort()
                return web.Response()
            case Mishap.EMPTY_BODY:
                return web.Response(content_type="application/json")
            case Mishap.HTML:
                return web.Response(text=_PAGE, content_type="text/html")
            case Mishap.WRONG_SHAPE:
                return _json({"object": "something else"})
            case Mishap.REDIRECT_AWAY:
                return web.Response(
                    status=307, headers={"Location": "http://198.51.100.7/v1/chat/completions"}
                )
            case Mishap.REDIRECT_HERE:
                return web.Response(status=308, headers={"Location": f"{path}"})
            case _:
                pass
        return await self._said(request, call, mishap)

    async def _said(
        self, request: web.BaseRequest, call: Call, mishap: Mishap
    ) -> web.StreamResponse:
        result = self.answer(call)
        if isinstance(result, str):
            result = Said(text=result)
        text, finish = result.text, result.finish
        match mishap:
            case Mishap.EMPTY_CONTENT:
                text = ""
            case Mishap.HALF_CONTENT:
                text = text[: max(1, len(text) // 2)]
            case Mishap.TRUNCATED:
                text, finish = text[: max(1, len(text) * 2 // 3)], "length"
            case Mishap.WRONG_SCHEMA:
                text = '{"note": "there are no grades in here"}'
            case Mishap.PROSE:
                text = "I looked at everything and on the whole I like the first one best, though it is close."
            case Mishap.REFUSAL:
                text, finish = "I cannot help with that.", "refusal"
            case _:
                pass
        payload = (
            _anthropic_payload(call, result, text, finish)
            if call.anthropic
            else _openai_payload(call, result, text, finish)
        )
        if mishap is Mishap.HALF_BODY:
            body = orjson.dumps(payload)
            return web.Response(body=body[: len(body) // 2], content_type="application/json")
        if mishap is Mishap.SLOW_DRIP:
            return await _dripped(request, orjson.dumps(payload))
        return _json(payload)


def generic_answer(call: Call, *, seed: int = 0) -> str:
    """A valid answer to the call's schema, or a line of text; the same for the same seed, prompt
    and `seed` field.
    """
    chance = _Chance(
        f"{seed}\x1f{call.body.get('seed')}\x1f{call.body.get('model')}\x1f{call.prompt}"
    )
    schema = call.schema
    if schema is None:
        return f"Answer {chance.word('text')} to a prompt of {len(call.prompt)} characters."
    answer = fill(schema, chance, root=schema)
    if isinstance(answer, dict):
        _rank_by_score(answer)
    return json.dumps(answer, ensure_ascii=False)


def _rank_by_score(answer: dict[str, Any]) -> None:
    """Put a ranking of names into the order of the scores that another field gives under those
    names.
    """
    ranked = [
        field
        for field in answer.values()
        if isinstance(field, list) and all(isinstance(name, str) for name in field)
    ]
    graded = [field for field in answer.values() if isinstance(field, dict)]
    for names in ranked:
        for grades in graded:
            if names and set(names) == set(grades):
                names.sort(key=lambda name: -_sum(grades[name]))


def _sum(value: Any) -> float:
    match value:
        case bool() | str() | None:
            return 0.0
        case int() | float():
            return float(value)
        case dict():
            return sum(_sum(inner) for inner in value.values())
        case _:
            return sum(_sum(inner) for inner in value)


class _Chance:
    """Numbers in 0 to 1 and words by name, the same for the same seed."""

    def __init__(self, seed: str) -> None:
        self._seed = hashlib.sha256(seed.encode("utf-8", "replace")).digest()

    def number(self, name: str) -> float:
        return (
            int.from_bytes(hashlib.sha256(self._seed + name.encode()).digest()[:6], "big") / 2**48
        )

    def sentence(self, name: str) -> str:
        """Plain words without a quotation or an identifier, so that nothing in it can seem made
        up.
        """
        chosen = [
            words[int(self.number(f"{name}#{place}") * len(words))]
            for place, words in enumerate(_WORDS)
        ]
        return "The {} is {} and its {} {} the rest.".format(*chosen)

    def word(self, name: str) -> str:
        return hashlib.sha256(self._seed + name.encode()).hexdigest()[:8]


def fill(
    schema: Mapping[str, Any], chance: _Chance, *, root: Mapping[str, Any], path: str = "$"
) -> Any:
    """A value that a JSON schema allows.

    Numbers lie between their bounds; an array of enums is a permutation of them; an array of
    objects with enums in them has an object for every combination, so that no candidate and no
    criterion is missing; other arrays are as short as they may be, so that no evidence is quoted
    that nobody wrote.
    """
    if "$ref" in schema:
        target: Any = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        return fill(target, chance, root=root, path=path)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        choices = schema["enum"]
        return choices[int(chance.number(path) * len(choices))]
    for union in ("anyOf", "oneOf"):
        if union in schema:
            kinds = [kind for kind in schema[union] if kind.get("type") != "null"]
            return fill(kinds[0], chance, root=root, path=path)
    if "allOf" in schema:
        merged: dict[str, Any] = {}
        for part in schema["allOf"]:
            merged.update(part)
        return fill(merged, chance, root=root, path=path)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next(name for name in kind if name != "null")
    match kind:
        case "array":
            return _filled_array(schema, chance, root=root, path=path)
        case "integer":
            low, high = _bounds(schema)
            return (
                low + int(chance.number(path) * (int(high) - int(low) + 1))
                if high > low
                else int(low)
            )
        case "number":
            low, high = _bounds(schema)
            return round(low + chance.number(path) * (high - low), 1)
        case "boolean":
            return chance.number(path) < 0.5
        case "null":
            return None
        case "string":
            text = chance.sentence(path)
            return text[: schema.get("maxLength", len(text))].ljust(schema.get("minLength", 0), ".")
        case _:
            properties: Mapping[str, Any] = schema.get("properties", {})
            return {
                name: fill(inner, chance, root=root, path=f"{path}.{name}")
                for name, inner in properties.items()
            }


def _filled_array(
    schema: Mapping[str, Any], chance: _Chance, *, root: Mapping[str, Any], path: str
) -> list[Any]:
    items: Any = schema.get("items", {})
    while "$ref" in items:
        target: Any = root
        for step in items["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        items = target
    least = int(schema.get("minItems", 0))
    most = schema.get("maxItems")
    if "enum" in items:
        order = sorted(items["enum"], key=lambda choice: chance.word(f"{path}.{choice}"))
        return order[:most]
    enums = {
        name: inner["enum"]
        for name, inner in items.get("properties", {}).items()
        if "enum" in inner and all(isinstance(choice, str) for choice in inner["enum"])
    }
    if enums:
        combinations = list(itertools.product(*enums.values()))
        if most is not None and len(combinations) > most:
            combinations = [
                (choice, *(others[0] for others in list(enums.values())[1:]))
                for choice in next(iter(enums.values()))
            ]
        filled = []
        for place, combination in enumerate(combinations):
            item = fill(items, chance, root=root, path=f"{path}[{place}]")
            item.update(zip(enums, combination, strict=True))
            filled.append(item)
        return filled[:most]
    return [fill(items, chance, root=root, path=f"{path}[{place}]") for place in range(least)]


def _bounds(schema: Mapping[str, Any]) -> tuple[float, float]:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = schema.get("maximum", schema.get("exclusiveMaximum", max(10, low)))
    return low, high


_WORDS: Final = tuple(
    line.split()
    for line in (
        "structure layout flow naming wording shape order outline design plan course frame make build form style",
        "clear plain tidy dense loose careful steady simple heavy light uneven sound brief direct cautious bold",
        "detail care balance intent logic pace depth scope purpose reach weight focus rigour spirit tone sense",
        "carries matches exceeds trails helps weakens guides shapes supports hinders lifts slows serves suits fits joins",
    )
)
_PAGE: Final = (
    "<!doctype html><html><head><title>Bad gateway</title></head><body><h1>Oh</h1></body></html>"
)


def _schema_in(prompt: str) -> dict[str, Any] | None:
    """The schema that prompted JSON carries: the last object of the prompt that looks like one."""
    start = prompt.rfind('{"')
    while start >= 0:
        with suppress(ValueError):
            result, _ = json.JSONDecoder().raw_decode(prompt, start)
            if (
                isinstance(result, dict)
                and result.get("type") == "object"
                and "properties" in result
                and _outermost(prompt, start)
            ):
                return result
        start = prompt.rfind('{"', 0, start)
    return None


def _outermost(prompt: str, start: int) -> bool:
    """True if the object begins a line, so that it is not part of a larger one."""
    return start == 0 or prompt[start - 1] in "\n "


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or () if isinstance(part, dict))


def _tokens(text: str) -> int:
    return max(1, len(text) // 4)


def _prompt_tokens(call: Call) -> int:
    return sum(_tokens(_text_of(message["content"])) for message in call.body.get("messages", []))


def _id_of(call: Call) -> str:
    """A letter for ids, which differ from message to message of a conversation."""
    return chr(97 + len(call.body["messages"]) % 26)


def _openai_payload(call: Call, said: Said, text: str, finish: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if finish == "refusal":
        message |= {"content": None, "refusal": text}
        finish = "stop"
    if said.tools:
        calls = [
            (name, given if isinstance(given, str) else json.dumps(given))
            for name, given in said.tools
        ]
        message["content"] = text or None
        message["tool_calls"] = [
            {
                "id": f"call_{_id_of(call)}{n}",
                "type": "function",
                "function": {"name": name, "arguments": given},
            }
            for n, (name, given) in enumerate(calls)
        ]
        finish = "tool_calls" if finish == "stop" else finish
    into = said.input_tokens if said.input_tokens is not None else _prompt_tokens(call)
    out = said.output_tokens if said.output_tokens is not None else _tokens(text)
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": said.model or f"{call.body.get('model')}-scripted",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": {"prompt_tokens": into, "completion_tokens": out, "total_tokens": into + out},
    }


def _anthropic_payload(call: Call, said: Said, text: str, finish: str) -> dict[str, Any]:
    reason = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"}.get(finish, finish)
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    if call.body.get("tool_choice", {}).get("type") == "tool" and finish != "refusal" and text:
        with suppress(ValueError):
            content = [
                {
                    "type": "tool_use",
                    "id": "toolu_1",
                    "name": call.body["tool_choice"]["name"],
                    "input": json.loads(text),
                }
            ]
            reason = "tool_use" if finish == "stop" else reason
    if said.tools:
        content += [
            {"type": "tool_use", "id": f"toolu_{_id_of(call)}{n}", "name": name, "input": given}
            for n, (name, given) in enumerate(said.tools)
        ]
        reason = "tool_use" if finish == "stop" else reason
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": said.model or f"{call.body.get('model')}-scripted",
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": said.input_tokens
            if said.input_tokens is not None
            else _prompt_tokens(call),
            "output_tokens": said.output_tokens
            if said.output_tokens is not None
            else _tokens(text),
        },
    }


def _json(
    payload: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.Response(
        status=status, body=orjson.dumps(payload), content_type="application/json", headers=headers
    )


def _error(
    path: str,
    status: int,
    message: str,
    kind: str,
    *,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    if path.endswith("/messages"):
        return _json(
            {"type": "error", "error": {"type": kind, "message": message}},
            status=status,
            headers=headers,
        )
    error = {"message": message, "type": kind, "param": param, "code": code or kind}
    return _json({"error": error}, status=status, headers=headers)


def _refused_field(path: str, name: str) -> web.Response:
    response = {
        "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "response_format": "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
    }.get(name, f"Unsupported value: '{name}' is not supported with this model.")
    return _error(
        path, 400, response, "invalid_request_error", code="unsupported_parameter", param=name
    )


async def _dripped(request: web.BaseRequest, body: bytes) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"Content-Type": "application/json", "Content-Length": str(len(body))}
    )
    await response.prepare(request)
    for start in range(0, len(body), 40):
        await response.write(body[start : start + 40])
        await asyncio.sleep(0.05)
    return response


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until stdin closes or the process is ended; the first line printed is the address."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.model_server", description=main.__doc__
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--delay-s", type=float, default=0.0, help="how long every answer takes")
    parser.add_argument(
        "--rate", type=float, default=0.0, help="share of requests that meet a fault, 0 to 1"
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        choices=list(Mishap),
        help="which faults; repeatable",
    )
    parser.add_argument(
        "--answer", default=None, help="this text for every request without a schema"
    )
    options = parser.parse_args(arguments)
    server = ModelServer(port=options.port, seed=options.seed, delay_s=options.delay_s, keep=False)
    if options.answer is not None:
        server.answer = lambda call: (
            options.answer if call.schema is None else generic_answer(call, seed=options.seed)
        )
    server.faults(
        options.rate, [Mishap(kind) for kind in options.fault] or [Mishap.HTTP_500, Mishap.HTTP_429]
    )
    with server:
        print(server.address, flush=True)
        with suppress(KeyboardInterrupt):
            sys.stdin.read() if not sys.stdin.isatty() else threading.Event().wait()


if __name__ == "__main__":
    main()
