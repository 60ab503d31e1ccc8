"""Contract of providers, for both wire protocols against a real server on loopback.

`echo` and `replay` hold to the same promises where they apply; see `TestEveryProvider`.
"""

from __future__ import annotations

import asyncio
import gc
import socket
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.model_server import Call, Mishap, ModelServer, Said

from assay.domain.calls import AnswerSchema, ModelRequest, Purpose, Reply, Role
from assay.domain.failure import CallFailed, Fault
from assay.domain.model import DEFAULTS, ModelSpec, Parameters
from assay.domain.suite import Message, ToolMessage
from assay.domain.tools import Tool, ToolCall, ToolResult
from assay.providers.directory import Directory
from assay.providers.http_model import HttpModel
from assay.providers.json_body import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.ports import Provider

KEY = "sk-proj-Zq81mVtR44nB0x7LwPpSd2"
GRADES = AnswerSchema(
    name="grades of a trial",
    schema={
        "type": "object",
        "properties": {
            "report": {"type": "string"},
            "ranking": {"type": "array", "items": {"type": "string", "enum": ["A", "B", "C"]}},
            "score": {"type": "number", "minimum": 0, "maximum": 10},
        },
        "required": ["report", "ranking", "score"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True)
class Protocol:
    """One wire protocol and how its server is found."""

    model: ModelSpec
    address_variable: str
    key_variable: str


OPENAI = Protocol(
    ModelSpec(provider="openai", name="gpt-4o-mini"), "OPENAI_BASE_URL", "OPENAI_API_KEY"
)
ANTHROPIC = Protocol(
    ModelSpec(provider="anthropic", name="claude-sonnet-4-5"),
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_API_KEY",
)


@pytest.fixture(params=[OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
def protocol(request: pytest.FixtureRequest) -> Protocol:
    param: Protocol = request.param
    return param


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def asking(protocol: Protocol, **changes: object) -> ModelRequest:
    request = ModelRequest(
        model=protocol.model,
        messages=(
            Message(role="system", content="Be terse."),
            Message(role="user", content="What is 6 times 7?"),
        ),
        parameters=DEFAULTS,
        purpose=Purpose(role=Role.CANDIDATE, task="six-by-seven", trial=1, candidate="mini"),
    )
    return replace(request, **changes)  # type: ignore[arg-type]


def directory(protocol: Protocol, server: ModelServer, *, timeout_s: float = 20.0) -> Directory:
    environment = {protocol.address_variable: server.url, protocol.key_variable: KEY}
    return Directory(environment, base_folder=Path(), timeout_s=timeout_s)


def ask(
    protocol: Protocol, server: ModelServer, *requests: ModelRequest, timeout_s: float = 20.0
) -> Reply:
    """The reply to the last of these requests, asked one after the other of one provider."""

    async def go() -> Reply:
        known = directory(protocol, server, timeout_s=timeout_s)
        try:
            for request in requests or (asking(protocol),):
                provider = known.provider(request.model)
                assert isinstance(provider, HttpModel)
                reply = await provider.complete(request)
            return reply
        finally:
            await known.close()

    return asyncio.run(go())


def failure(
    protocol: Protocol, server: ModelServer, *requests: ModelRequest, timeout_s: float = 20.0
) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        ask(protocol, server, *requests, timeout_s=timeout_s)
    return caught.value


class TestAnswers:
    def test_a_reply_carries_text_tokens_version_time_and_price(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.answer = lambda _: Said(text="42", input_tokens=1000, output_tokens=200)
        reply = ask(protocol, server)
        assert reply.text == "42"
        assert reply.finish_reason == "stop"
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (1000, 200)
        assert reply.model_version == f"{protocol.model.name}-scripted"
        assert reply.latency_s is not None
        assert reply.latency_s > 0
        # USD a million tokens as published: gpt-4o-mini 0.15 and 0.60, claude-sonnet-4-5 3 and 15.
        assert reply.cost_usd == pytest.approx(0.00027 if protocol is OPENAI else 0.006)

    def test_every_parameter_reaches_the_wire(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        parameters = Parameters(
            temperature=1.4,
            top_p=0.9,
            max_tokens=77,
            frequency_penalty=0.1,
            presence_penalty=0.2,
            seed=7,
            stop=("END",),
        )
        ask(protocol, server, asking(protocol, parameters=parameters))
        body = server.calls[0].body
        user = {"role": "user", "content": "What is 6 times 7?"}
        if protocol is OPENAI:
            assert body == {
                "model": "gpt-4o-mini",
                "messages": [{"role": "system", "content": "Be terse."}, user],
                "temperature": 1.4,
                "top_p": 0.9,
                "max_tokens": 77,
                "frequency_penalty": 0.1,
                "presence_penalty": 0.2,
                "seed": 7,
                "stop": ["END"],
            }
        else:  # no seed, no penalties, and the temperature ends at 1
            assert body == {
                "model": "claude-sonnet-4-5",
                "system": "Be terse.",
                "messages": [user],
                "temperature": 1.0,
                "top_p": 0.9,
                "max_tokens": 77,
                "stop_sequences": ["END"],
            }

    def test_parameter_that_is_not_set_is_not_sent(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        ask(protocol, server, asking(protocol, parameters=Parameters()))
        sent = set(server.calls[0].body)
        assert sent == (
            {"model", "messages"}
            if protocol is OPENAI
            else {"model", "messages", "system", "max_tokens"}
        )

    def test_the_key_goes_into_the_usual_header(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        ask(protocol, server)
        headers = server.calls[0].headers
        if protocol is OPENAI:
            assert headers["Authorization"] == f"Bearer {KEY}"
        else:
            assert headers["x-api-key"] == KEY
            assert headers["anthropic-version"] == "2023-06-01"

    def test_a_schema_is_sent_as_structured_output_and_answered_as_json(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        reply = ask(protocol, server, asking(protocol, answer_schema=GRADES))
        assert sorted(parse(reply.text.encode())) == ["ranking", "report", "score"]
        assert reply.finish_reason == "stop"
        body = server.calls[0].body
        if protocol is OPENAI:
            wanted = {"name": "grades_of_a_trial", "strict": True, "schema": GRADES.schema}
            assert body["response_format"] == {"type": "json_schema", "json_schema": wanted}
        else:
            assert body["tools"][0]["input_schema"] == GRADES.schema
            assert body["tool_choice"]["name"] == "grades_of_a_trial"

    def test_an_answer_cut_off_by_the_token_limit_says_so(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.script([Mishap.TRUNCATED])
        assert ask(protocol, server).truncated

    def test_half_characters_in_a_prompt_do_not_stop_the_call(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        ask(
            protocol,
            server,
            asking(protocol, messages=(Message(role="user", content="a\ud83d b"),)),
        )
        assert server.calls[0].prompt == "a? b"

    def test_a_prompt_of_many_megabytes_arrives_whole(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        text = "word " * 1_000_000
        ask(protocol, server, asking(protocol, messages=(Message(role="user", content=text),)))
        assert len(server.calls[0].prompt) == len(text)


class TestFailures:
    @pytest.mark.parametrize(
        ("mishap", "kind", "transient", "fault", "says"),
        [
            (Mishap.HTTP_400, "http_400", False, Fault.HARNESS, "the request is wrong somehow"),
            (Mishap.HTTP_401, "http_401", False, Fault.HARNESS, "_API_KEY"),
            (Mishap.HTTP_403, "http_403", False, Fault.HARNESS, "_API_KEY"),
            (Mishap.HTTP_404, "http_404", False, Fault.HARNESS, "does not exist"),
            (Mishap.HTTP_429, "http_429", True, Fault.PROVIDER, "rate limit reached"),
            (Mishap.NO_QUOTA, "http_429", False, Fault.HARNESS, "quota"),
            (Mishap.HTTP_500, "http_500", True, Fault.PROVIDER, "the server had an error"),
            (Mishap.HTTP_502_HTML, "http_502", True, Fault.PROVIDER, "Bad gateway"),
            (Mishap.HTTP_503, "http_503", True, Fault.PROVIDER, "overloaded"),
            (Mishap.HTTP_529, "http_529", True, Fault.PROVIDER, "Overloaded"),
            (Mishap.CONTEXT_LENGTH, "context_length", False, None, "8192 tokens"),
            (Mishap.RESET, "connection", True, Fault.PROVIDER, "closed the connection"),
            (Mishap.EMPTY_BODY, "empty", True, Fault.PROVIDER, "empty body"),
            (Mishap.EMPTY_CONTENT, "empty", True, None, "empty answer"),
            (Mishap.HALF_BODY, "bad_response", True, Fault.PROVIDER, "not a whole JSON document"),
            (Mishap.HTML, "bad_response", True, Fault.PROVIDER, "a web page"),
            (Mishap.WRONG_SHAPE, "bad_response", True, Fault.PROVIDER, "answered without"),
            (Mishap.REFUSAL, "refused", False, Fault.REFUSAL, "cannot help"),
            (Mishap.REDIRECT_AWAY, "http_307", False, Fault.HARNESS, "198.51.100.7"),
        ],
    )
    def test_a_mishap_becomes_a_named_failure(
        self,
        protocol: Protocol,
        server: ModelServer,
        mishap: Mishap,
        kind: str,
        transient: bool,
        fault: Fault | None,
        says: str,
    ) -> None:
        server.script([mishap])
        failed = failure(protocol, server)
        assert (failed.kind, failed.transient, failed.fault) == (kind, transient, fault)
        assert says in failed.detail
        assert KEY not in f"{failed!r} {failed}"
        assert failed.detail.isprintable()
        assert len(server.calls) == 1

    def test_a_server_that_hangs_is_given_up_after_the_time_out(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.script([Mishap.HANG])
        failed = failure(protocol, server, timeout_s=0.3)
        assert (failed.kind, failed.transient, failed.fault) == ("timeout", True, Fault.PROVIDER)

    def test_a_server_that_drips_longer_than_the_time_out_is_given_up(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.script([Mishap.SLOW_DRIP])
        assert failure(protocol, server, timeout_s=0.2).kind == "timeout"

    def test_nobody_listening_is_a_connection_failure(self, protocol: Protocol) -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            silent = ModelServer(port=closed.getsockname()[1])
        failed = failure(protocol, silent)
        assert (failed.kind, failed.transient) == ("connection", True)
        assert "cannot be reached: connection refused" in failed.detail

    def test_a_server_without_tls_is_not_asked_again_with_it(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        secure = replace(protocol.model, base_url=server.url.replace("http:", "https:"))
        failed = failure(protocol, server, asking(protocol, model=secure))
        assert (failed.kind, failed.transient) == ("connection", False)
        assert "cannot be reached safely" in failed.detail

    def test_retry_after_is_handed_on(self, protocol: Protocol, server: ModelServer) -> None:
        server.wait_s = 2.5
        server.script([Mishap.HTTP_429_WAIT])
        assert failure(protocol, server).retry_after_s == 2.5

    def test_a_key_that_the_server_quotes_is_taken_out(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.script([Mishap.HTTP_401])
        failed = failure(protocol, server)
        assert "Incorrect API key provided" in failed.detail
        assert KEY[3:] not in failed.detail
        assert protocol.key_variable in failed.detail

    def test_a_redirect_within_the_host_is_followed(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.script([Mishap.REDIRECT_HERE])
        assert ask(protocol, server).text
        assert len(server.calls) == 2

    def test_an_answer_over_the_size_limit_is_refused(
        self, protocol: Protocol, server: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("assay.providers.session.LARGEST_ANSWER", 1_000_000)
        server.answer = lambda _: "x" * 2_000_000
        failed = failure(protocol, server)
        assert failed.kind == "bad_response"
        assert "MB" in failed.detail

    def test_empty_answer_still_reports_its_cost(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.answer = lambda _: Said(text="  \n", input_tokens=1000, output_tokens=200)
        failed = failure(protocol, server)
        assert failed.kind == "empty"
        assert failed.usage is not None
        assert failed.cost_usd == pytest.approx(0.00027 if protocol is OPENAI else 0.006)

    def test_answer_that_used_up_its_tokens_is_not_asked_again(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.answer = lambda _: Said(text="", finish="length")
        failed = failure(protocol, server)
        assert (failed.kind, failed.transient) == ("empty", False)
        assert "max_tokens" in failed.detail

    def test_cancelling_a_call_cancels_it(self, protocol: Protocol, server: ModelServer) -> None:
        server.script([Mishap.HANG])

        async def go() -> None:
            known = directory(protocol, server)
            try:
                async with asyncio.timeout(0.2):
                    await known.provider(protocol.model).complete(asking(protocol))
            finally:
                await known.close()

        with pytest.raises(TimeoutError):
            asyncio.run(go())


class TestFallbacks:
    def test_refused_structured_output_becomes_a_prompt_and_is_remembered(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        field = "response_format" if protocol is OPENAI else "tools"
        server.refuses = {field}
        request = asking(protocol, answer_schema=GRADES)
        reply = ask(protocol, server, request, request)
        assert sorted(parse(reply.text.encode())) == ["ranking", "report", "score"]
        assert [field in call.body for call in server.calls] == [True, False, False]
        assert server.calls[1].prompt.startswith("What is 6 times 7?")
        assert '"ranking"' in server.calls[1].prompt

    def test_a_renamed_token_limit_is_remembered(self, server: ModelServer) -> None:
        server.refuses = {"max_tokens"}
        ask(OPENAI, server, asking(OPENAI), asking(OPENAI))
        limits = [name for call in server.calls for name in call.body if name.startswith("max_")]
        assert limits == ["max_tokens", "max_completion_tokens", "max_completion_tokens"]

    def test_a_sampling_parameter_a_model_does_not_take_is_left_out_and_said(
        self, protocol: Protocol, server: ModelServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        server.refuses = {"temperature"}
        ask(protocol, server, asking(protocol), asking(protocol))
        assert ["temperature" in call.body for call in server.calls] == [True, False, False]
        assert "does not accept temperature" in caplog.text

    def test_field_refused_by_one_model_is_still_sent_to_another(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.refuses = {"temperature"}
        other = replace(protocol.model, name="another")
        ask(protocol, server, asking(protocol), asking(protocol, model=other))
        assert ["temperature" in call.body for call in server.calls] == [True, False, True, False]

    def test_a_reasoning_model_that_refuses_several_things_is_still_asked(
        self, server: ModelServer
    ) -> None:
        server.refuses = {"max_tokens", "temperature", "response_format"}
        assert ask(OPENAI, server, asking(OPENAI, answer_schema=GRADES)).text
        assert len(server.calls) == 4

    def test_many_calls_at_once_learn_together(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        field = "response_format" if protocol is OPENAI else "tools"
        server.refuses = {field}
        server.delay_s = 0.05

        async def go() -> None:
            known = directory(protocol, server)
            provider = known.provider(protocol.model)
            async with asyncio.TaskGroup() as group:
                for _ in range(20):
                    group.create_task(provider.complete(asking(protocol, answer_schema=GRADES)))
            await known.close()

        asyncio.run(go())
        assert len(server.calls) == 40

    def test_another_400_is_not_asked_again(self, protocol: Protocol, server: ModelServer) -> None:
        server.script([Mishap.HTTP_400])
        failure(protocol, server, asking(protocol, answer_schema=GRADES))
        assert len(server.calls) == 1


class TestConnections:
    def test_calls_under_way_at_once_are_the_callers_to_limit(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.delay_s = 1.0

        async def go() -> None:
            known = directory(protocol, server)
            provider = known.provider(protocol.model)
            async with asyncio.TaskGroup() as group:
                for _ in range(150):
                    group.create_task(provider.complete(asking(protocol)))
            await known.close()

        asyncio.run(go())
        assert server.peak > 100  # where aiohttp alone would stop

    def test_a_directory_serves_one_loop_after_another(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        known = directory(protocol, server)

        async def go() -> str:
            text = (await known.provider(protocol.model).complete(asking(protocol))).text
            await known.close()
            return text

        assert asyncio.run(go()) == asyncio.run(go())

    @pytest.mark.filterwarnings(
        "ignore::ResourceWarning"
    )  # the loop ended with its connections open
    def test_a_loop_that_ended_without_closing_leaves_the_next_one_alone(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        known = directory(protocol, server)
        for _ in range(2):
            assert asyncio.run(known.provider(protocol.model).complete(asking(protocol))).text
        asyncio.run(known.close())
        gc.collect()  # so that what is left open is warned about here and not in another test

    def test_a_directory_serves_two_loops_at_once(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.delay_s = 0.1
        known = directory(protocol, server)

        async def go() -> int:
            texts = [
                (await known.provider(protocol.model).complete(asking(protocol))).text
                for _ in range(4)
            ]
            await known.close()
            return len(texts)

        with ThreadPoolExecutor(2) as threads:
            assert [
                done.result() for done in [threads.submit(asyncio.run, go()) for _ in range(2)]
            ] == [4, 4]

    def test_no_connection_outlives_close(
        self, protocol: Protocol, server: ModelServer, recwarn: pytest.WarningsRecorder
    ) -> None:
        ask(protocol, server)
        assert not [warning for warning in recwarn if issubclass(warning.category, ResourceWarning)]


@pytest.fixture(params=["openai", "anthropic", "echo", "replay"])
def anyone(
    request: pytest.FixtureRequest, server: ModelServer, tmp_path: Path
) -> tuple[Directory, ModelSpec]:
    (tmp_path / "answers.jsonl").write_text('{"reply": {"text": "recorded"}}\n')
    environment = {"OPENAI_BASE_URL": server.url, "ANTHROPIC_BASE_URL": server.url}
    names = {
        "openai": "gpt-4o-mini",
        "anthropic": "claude-sonnet-4-5",
        "echo": "",
        "replay": "answers.jsonl",
    }
    model = ModelSpec(provider=request.param, name=names[request.param])
    return Directory(environment, base_folder=tmp_path), model


class TestEveryProvider:
    def test_it_answers_with_text_and_a_price_and_can_be_closed_twice(
        self, anyone: tuple[Directory, ModelSpec]
    ) -> None:
        known, model = anyone

        async def go() -> Reply:
            provider: Provider = known.provider(model)
            reply = await provider.complete(asking(replace(OPENAI, model=model)))
            for _ in range(2):
                await provider.close()
                await known.close()
            return reply

        reply = asyncio.run(go())
        assert reply.text
        assert reply.finish_reason == "stop"
        assert reply.cost_usd is not None


class TestTheScriptedServer:
    def test_faults_come_at_their_rate(self, server: ModelServer) -> None:
        server.faults(0.5, [Mishap.HTTP_500], seed=3)

        async def go() -> int:
            known = directory(OPENAI, server)
            failed = 0
            for _ in range(200):
                try:
                    await known.provider(OPENAI.model).complete(asking(OPENAI))
                except CallFailed:
                    failed += 1
            await known.close()
            return failed

        # binomial(200, 1/2): outside with p < 0.001, and the seed is fixed
        assert 75 <= asyncio.run(go()) <= 125

    def test_equal_requests_get_equal_answers_and_seeds_tell_them_apart(
        self, server: ModelServer
    ) -> None:
        def answered(seed: int) -> str:
            return ask(
                OPENAI,
                server,
                asking(OPENAI, answer_schema=GRADES, parameters=Parameters(seed=seed)),
            ).text

        assert answered(1) == answered(1) != answered(2)

    def test_an_answer_of_ones_own_sees_the_call(self, server: ModelServer) -> None:
        def shouted(call: Call) -> str:
            return call.prompt.upper()

        server.answer = shouted
        assert ask(OPENAI, server).text == "WHAT IS 6 TIMES 7?"


WEATHER = Tool(
    name="get_weather",
    description="The weather in a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


class TestTools:
    def test_tools_are_offered_in_the_protocol_s_form(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        assert ask(protocol, server, asking(protocol, tools=(WEATHER,))).tool_calls == ()
        (offered,) = server.calls[0].body["tools"]
        fields = {"name": WEATHER.name, "description": WEATHER.description}
        if protocol is OPENAI:
            assert offered == {
                "type": "function",
                "function": {**fields, "parameters": WEATHER.parameters},
            }
        else:
            assert offered == {**fields, "input_schema": WEATHER.parameters}
        assert "tool_choice" not in server.calls[0].body

    def test_parallel_calls_keep_order_ids_and_text(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        calls: tuple[tuple[str, dict[str, object]], ...] = (
            ("get_weather", {"city": "Oslo"}),
            ("get_time", {}),
            ("get_weather", {"city": "Bern", "day": 2}),
        )
        server.answer = lambda _: Said(text="Let me look.", tools=calls)
        reply = ask(protocol, server, asking(protocol, tools=(WEATHER,)))
        assert (reply.text, reply.finish_reason) == ("Let me look.", "tool")
        # The second tool was not offered: the call is kept, so that whoever holds the conversation
        # can answer it.
        assert [(call.name, call.arguments) for call in reply.tool_calls] == list(calls)
        assert len({call.id for call in reply.tool_calls}) == 3

    def test_a_reply_may_have_calls_and_no_text(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.answer = lambda _: Said(tools=(("get_weather", {"city": "Oslo"}),))
        reply = ask(protocol, server, asking(protocol, tools=(WEATHER,)))
        assert reply.text == ""
        assert reply.usage.output_tokens is not None

    @pytest.mark.parametrize("broken", ['{"city": "Os', '["Oslo"]', '{"city": NaN}', "Oslo"])
    def test_malformed_arguments_are_kept_as_text(self, server: ModelServer, broken: str) -> None:
        server.answer = lambda _: Said(tools=(("get_weather", broken),))
        (call,) = ask(OPENAI, server, asking(OPENAI, tools=(WEATHER,))).tool_calls
        assert (call.arguments, call.malformed, call.text) == (None, broken, broken)

    def test_an_input_that_is_not_an_object_is_malformed(self, server: ModelServer) -> None:
        server.answer = lambda _: Said(tools=(("get_weather", ["Oslo"]),))
        (call,) = ask(ANTHROPIC, server, asking(ANTHROPIC, tools=(WEATHER,))).tool_calls
        assert (call.arguments, call.malformed) == (None, '["Oslo"]')

    def test_arguments_cut_off_by_the_limit_stay_truncated(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.answer = lambda _: Said(tools=(("get_weather", {}),), finish="length")
        reply = ask(protocol, server, asking(protocol, tools=(WEATHER,)))
        assert reply.truncated
        assert len(reply.tool_calls) == 1

    def test_calls_and_results_go_back_to_the_model(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        first = asking(protocol, tools=(WEATHER,))
        calls = (
            ToolCall(id="a1", name="get_weather", arguments={"city": "Zürich"}),
            ToolCall(id="a2", name="get_weather", arguments=None, malformed='{"city'),
        )
        results = (
            ToolResult(call_id="a1", text="12 °C"),
            ToolResult(call_id="a2", text="no JSON", is_error=True),
        )
        ask(
            protocol,
            server,
            replace(
                first,
                messages=(
                    *first.messages,
                    ToolMessage(role="assistant", content="", calls=calls),
                    ToolMessage(role="tool", content="", results=results),
                ),
            ),
        )
        call = server.calls[0]
        broken = "Error: no JSON" if protocol is OPENAI else "no JSON"
        assert call.results == [("a1", "12 °C", False), ("a2", broken, True)]
        sent = call.body["messages"]
        if protocol is OPENAI:
            assert [message["role"] for message in sent] == [
                "system",
                "user",
                "assistant",
                "tool",
                "tool",
            ]
            written = [each["function"]["arguments"] for each in sent[2]["tool_calls"]]
            assert written == ['{"city": "Zürich"}', '{"city']
            assert sent[2]["content"] is None
        else:
            assert [message["role"] for message in sent] == ["user", "assistant", "user"]
            assert [block["input"] for block in sent[1]["content"]] == [
                {"city": "Zürich"},
                {"malformed": '{"city'},
            ]

    def test_calls_without_offered_tools_are_no_answer(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.answer = lambda _: Said(tools=(("get_weather", {"city": "Oslo"}),))
        failed = failure(protocol, server)
        assert failed.kind == "empty"
        assert "it was offered none" in failed.detail

    def test_a_model_without_tools_fails_by_name(
        self, protocol: Protocol, server: ModelServer
    ) -> None:
        server.refuses = {"tools"}
        failed = failure(protocol, server, asking(protocol, tools=(WEATHER,)))
        assert (failed.kind, failed.transient, failed.fault) == ("no_tools", False, Fault.HARNESS)
        assert "tools' is not supported with this model" in failed.detail
        assert len(server.calls) == 1
