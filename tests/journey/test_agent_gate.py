"""Agents that are command lines reach their model through a gate: no key and no other network in
the sandbox, limits and costs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.domain.calls import Usage
from assay.providers.gate import usage_in
from tests.journey.conftest import Command
from tests.journey.test_bench import SCENARIO, bench, scenario
from tests.journey.test_task_tests import _no_sandbox_works
from tests.support.model_server import Mishap, ModelServer, Said

__all__ = ["scenario"]

KEY = "sk-never-to-be-seen"
CLIENT = """
import json, os, sys, urllib.error, urllib.request

BASE, KEY = (os.environ[f"{sys.argv[1]}_{name}"] for name in ("BASE_URL", "API_KEY"))

def call(path, body=None, *, key=KEY, method=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}", "x-api-key": key, "Cookie": "a=b"}
    request = urllib.request.Request(BASE + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()

ASKED = {"model": sys.argv[2], "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}
exec(sys.argv[3])
"""


@pytest.fixture
def ask(
    assay: Command, scenario: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Let an agent run Python with a function `call`, and return the outcome and what it
    printed.
    """
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.address)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    server.answer = lambda call: Said(text="hello", input_tokens=1000, output_tokens=100)
    (scenario / "repo-fixture" / "client.py").write_text(CLIENT, "utf-8")

    def run(
        code: str, *, provider: str = "openai", model: str = "gpt-4o-mini", limits: str = "{}"
    ) -> tuple[Any, str]:
        (scenario / "scenario.yaml").write_text(f"{SCENARIO}\nlimits: {limits}\n", "utf-8")
        words = f'cmd: [{provider}] python3 client.py {provider.upper()} {model} "{code}"'
        document = bench(assay, "--agent", f"mine={words}", "--tier", "L0")
        assert KEY not in json.dumps(document)
        shown = assay("show", "t1").out
        assert KEY not in shown
        return document, shown

    return run


def test_calls_carry_the_key_that_the_sandbox_lacks(ask: Any, server: ModelServer) -> None:
    document, shown = ask(
        "print(call('/chat/completions', ASKED)); print(sorted(os.environ)); print(BASE)"
    )
    assert document["agent_trials"][0]["ended"] == "done"
    assert "hello" in shown
    assert "http://127.0.0.1:" in shown
    (sent,) = server.calls
    assert sent.headers["Authorization"] == f"Bearer {KEY}"
    assert "Cookie" not in sent.headers
    assert "x-api-key" not in sent.headers
    assert ", 1 turn and 1 step" in shown


@pytest.mark.slow
def test_both_protocols_are_counted_and_priced(
    ask: Any, assay: Command, server: ModelServer
) -> None:
    document, _ = ask("call('/chat/completions', ASKED); call('/chat/completions', ASKED)")
    run = assay("show", document["run_id"], "--json").out
    assert json.loads(run)["cost_usd"] == pytest.approx(2 * (1000 * 0.15 + 100 * 0.6) / 1e6)
    document, _ = ask(
        "call('/v1/messages?beta=true', ASKED)", provider="anthropic", model="claude-haiku-4-5"
    )
    run = assay("show", document["run_id"], "--json").out
    assert json.loads(run)["cost_usd"] == pytest.approx((1000 * 1 + 100 * 5) / 1e6)
    assert server.calls[-1].headers["x-api-key"] == KEY


REFUSED = (
    "call('/chat/completions', ASKED, key='guessed')",
    "call('/files', ASKED)",
    "call('/models', method='DELETE')",
    "call('/../v1/chat/completions', ASKED)",
    "call('/chat/completions/../../admin', ASKED)",
    "call('/chat/completions', ['no object'])",
    "call('/chat/completions', ASKED | {'tools': [{'type': 'web_search'}]})",
    "call('/chat/completions', ASKED | {'mcp_servers': []})",
    "call('/chat/completions', ASKED | {'messages': [{'content': [{'image_url': {'url': 'https://a.example/?q=1'}}]}]})",
    "call('/chat/completions', ASKED | {'model': 'openai/gpt-5:online'})",
    "call('/models/..', method='GET')",
    "call('/chat/completions', ASKED | {'filler': 'x' * (33 << 20)})",
)


def test_other_requests_do_not_pass(ask: Any, server: ModelServer) -> None:
    _, shown = ask(f"print([status for status, _ in ({', '.join(REFUSED)})])")
    assert "[401, 403, 403, 403, 403, 403, 403, 403, 403, 403, 403, 413]" in shown
    assert not server.calls


@pytest.mark.parametrize(
    ("limits", "end", "calls"),
    [
        ("{turns: 2}", "turn limit", 2),
        ("{tokens: 1500}", "token limit", 2),
        ("{cost_usd: 0.0003}", "cost limit", 2),
    ],
)
def test_limits_close_the_gate_and_the_work_is_graded(
    ask: Any, server: ModelServer, limits: str, end: str, calls: int
) -> None:
    document, shown = ask(
        "for _ in range(4): print(call('/chat/completions', ASKED)[0])", limits=limits
    )
    (trial,) = document["agent_trials"]
    assert (trial["ended"], trial["score"]) == (end, pytest.approx(0.3))
    assert len(server.calls) == calls
    assert "403" in shown


@pytest.mark.slow
def test_unknown_usage_is_no_zero_and_ends_a_limited_trial(
    ask: Any, assay: Command, server: ModelServer
) -> None:
    server.script([Mishap.WRONG_SHAPE])
    document, _ = ask(
        "call('/chat/completions', ASKED); call('/chat/completions', ASKED)",
        limits="{tokens: 100000}",
    )
    assert document["agent_trials"][0]["ended"] == "token limit, as tokens are unknown"
    assert len(server.calls) == 1
    assert json.loads(assay("show", document["run_id"], "--json").out)["cost_usd"] is None


def test_refused_and_broken_calls_reach_the_agent_without_the_key(
    ask: Any, server: ModelServer
) -> None:
    server.script([Mishap.HTTP_401, Mishap.HTTP_429, Mishap.RESET])
    _, shown = ask("for _ in range(3): print(call('/chat/completions', ASKED))")
    for text in ("(401", "[key]", "(429", "(502"):
        assert text in shown


def test_missing_key_and_unknown_provider_are_told_before_the_run(
    assay: Command, scenario: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        "OPENAI_API_KEY"
        in assay("bench", "basics", "fix-slug", "--agent", "a=cmd: [openai] true").err
    )
    assert (
        "is unknown" in assay("bench", "basics", "fix-slug", "--agent", "a=cmd: [nobody] true").err
    )


def test_usage_is_read_from_streams_of_all_forms() -> None:
    def events(*documents: object) -> bytes:
        return (
            b"".join(
                b"event: x\ndata: " + json.dumps(each).encode() + b"\n\n" for each in documents
            )
            + b"data: [DONE]\n\n"
        )

    start = {
        "message": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}}
    }
    stopped = {"type": "message_delta", "usage": {"output_tokens": 30, "input_tokens": None}}
    assert usage_in(events(start, {"delta": '"usage"'}, stopped)) == (
        Usage(input_tokens=15, output_tokens=30),
        5,
        None,
    )
    chat = {
        "choices": [],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 3},
        },
    }
    assert usage_in(events({"usage": None}, chat)) == (
        Usage(input_tokens=7, output_tokens=2),
        3,
        None,
    )
    done = {"response": {"usage": {"input_tokens": 4, "output_tokens": 6, "cost": 0.5}}}
    assert usage_in(events(done)) == (Usage(input_tokens=4, output_tokens=6), 0, 0.5)
    for odd in (
        b"",
        b"[]",
        b"data: {",
        b'{"usage": 7}',
        b'{"usage": {"input_tokens": "7", "prompt_tokens_details": 1}}',
    ):
        assert usage_in(odd) == (Usage(), 0, None)


def test_a_spent_budget_stops_the_agent_and_pauses_the_run(
    ask: Any, assay: Command, server: ModelServer, scenario: Path
) -> None:
    server.answer = lambda call: Said(
        text="hello", input_tokens=1000, output_tokens=call.body["max_completion_tokens"]
    )
    endless = "[call('/chat/completions', {**ASKED, 'max_tokens': None, 'max_completion_tokens': 15000}) for _ in range(10**6)]"
    ask("1")  # which writes the scenario
    words = f'cmd: [openai] python3 client.py OPENAI gpt-4o-mini "{endless}"'
    result = assay(
        "bench",
        "basics",
        "fix-slug",
        "--agent",
        f"mine={words}",
        "--tier",
        "L0",
        "--budget",
        "0.05",
        "--json",
    )
    document = json.loads(result.out)
    assert result.code == 1
    assert (document["state"], document["failures"], document["agent_trials"]) == ("paused", [], [])
    assert (document["paused"]["kind"], document["paused"]["fault"]) == ("budget", "budget")
    assert "more than is left of the budget" in document["paused"]["detail"]
    assert len(server.calls) == 5, "each costs $0.00915"
    assert document["cost_usd"] == document["budget"]["booked_usd"] == pytest.approx(5 * 0.00915)
    resumed = assay("resume", document["run_id"], "--budget", "0.06", "--json")
    assert json.loads(resumed.out)["paused"]["kind"] == "budget"
    assert len(server.calls) == 6, "what the first attempt cost still counts"
