"""Recordings."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from assay.domain.calls import ModelRequest, Purpose, Reply, Role
from assay.domain.errors import SettingsError
from assay.domain.failure import CallFailed, Fault
from assay.domain.model import DEFAULTS, ModelSpec
from assay.domain.suite import Message
from assay.domain.tools import Tool, ToolCall
from assay.providers.prices import PriceList
from assay.providers.recordings import Recording
from assay.providers.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Mapping


def purpose(
    task: str = "auth",
    trial: int = 1,
    *,
    attempt: int = 1,
    role: Role = Role.JUDGE,
    candidate: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Purpose:
    return Purpose(
        role=role,
        task=task,
        trial=trial,
        attempt=attempt,
        candidate=candidate,
        judge="j",
        labels=labels or {},
    )


def replay(*lines: object) -> Replay:
    recording = Recording([json.dumps(line) for line in lines], name="a.jsonl")
    return Replay(lambda: recording, cost_of=PriceList().cost_of)


def ask(provider: Replay, what_for: Purpose) -> Reply:
    request = ModelRequest(
        model=ModelSpec(provider="replay", name="a.jsonl"),
        messages=(Message(role="user", content="q"),),
        parameters=DEFAULTS,
        purpose=what_for,
    )
    return asyncio.run(provider.complete(request))


def line(text: str, **match: object) -> dict[str, object]:
    return {"match": match, "reply": {"text": text}}


def test_recording_line_answers_calls_that_match_its_keys() -> None:
    provider = replay(line("a", task="auth"), line("c", role="candidate"), line("z"))
    assert ask(provider, purpose("auth", 4)).text == "a"
    assert ask(provider, purpose("other", role=Role.CANDIDATE)).text == "c"
    assert ask(provider, purpose("other")).text == "z"


def test_the_line_that_names_most_holds() -> None:
    provider = replay(
        line("any", task="auth"),
        line("second", task="auth", trial=2),
        line("rerun", task="auth", trial=2, attempt=2),
    )
    assert [ask(provider, purpose(trial=k)).text for k in (1, 2, 3)] == ["any", "second", "any"]
    assert ask(provider, purpose(trial=2, attempt=2)).text == "rerun"


def test_equal_recording_lines_take_turns_and_the_last_repeats() -> None:
    provider = replay(line("1", task="auth"), line("2", task="auth"))
    assert [ask(provider, purpose(trial=1)).text for _ in range(3)] == ["1", "2", "2"]
    assert ask(provider, purpose(trial=2)).text == "1"
    assert ask(provider, purpose(trial=1, candidate="x")).text == "1"


def test_labels_stand_in_for_names() -> None:
    provider = replay(line("{{label:Ada B}} beats {{ label:chen }}; {{other}} stays"))
    reply = ask(provider, purpose(labels={"Ada B": "B", "Chen": "A"}))
    assert reply.text == "B beats A; {{other}} stays"


@pytest.mark.parametrize(
    "name", ['the "big" one', "a\\b", "tab\there", "Zoë", 'C:\\new "x"', "\\u0041"]
)
def test_a_name_that_json_escapes_is_found_in_a_document_and_in_a_text(name: str) -> None:
    label = f"{{{{label:{name}}}}}"
    document = replay(
        {"reply": {"text": {"candidates": {label: {"score": 7}}, "ranking": [label]}}}
    )
    seen = purpose(labels={name: "B", "Chen": "A"})
    assert json.loads(ask(document, seen).text) == {
        "candidates": {"B": {"score": 7}},
        "ranking": ["B"],
    }
    assert ask(replay(line(json.dumps({"best": label}))), seen).text == '{"best": "B"}'
    assert ask(replay(line(f"{label} wins")), seen).text == "B wins"


def test_unknown_label_in_a_recording_fails_and_lists_the_labels() -> None:
    with pytest.raises(CallFailed, match="Did you mean 'Chen'") as caught:
        ask(replay(line("{{label:Chem}}")), purpose(labels={"Chen": "A"}))
    assert caught.value.fault is Fault.HARNESS


def test_everything_a_reply_may_say_is_kept() -> None:
    by_name = {
        "text": "t",
        "finish_reason": "length",
        "usage": {"input_tokens": 3, "output_tokens": 4},
        "model": "m-1",
    }
    reply = ask(replay({"reply": by_name}), purpose())
    assert (reply.text, reply.finish_reason, reply.model_version, reply.cost_usd) == (
        "t",
        "length",
        "m-1",
        0.0,
    )
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 4)


def test_a_document_as_text_is_served_as_json() -> None:
    assert ask(replay({"reply": {"text": {"score": 7}}}), purpose()).text == '{"score":7}'


def test_a_recorded_error_fails_again() -> None:
    with pytest.raises(CallFailed) as caught:
        ask(replay({"error": {"kind": "http_500", "detail": "down", "transient": True}}), purpose())
    assert (caught.value.kind, caught.value.detail, caught.value.transient) == (
        "http_500",
        "down",
        True,
    )


def test_call_without_a_recording_fails_and_names_the_call() -> None:
    with pytest.raises(CallFailed) as caught:
        ask(replay(line("a", task="auth")), purpose("billing", 3))
    failed = caught.value
    assert (failed.kind, failed.transient, failed.fault) == ("no_recording", False, Fault.HARNESS)
    assert "a.jsonl has no answer for" in failed.detail
    assert "task 'billing', trial 3" in failed.detail


def test_batch_output_answers_its_task_line_by_trial() -> None:
    def output(text: str) -> dict[str, object]:
        body = {
            "model": "m",
            "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 1},
        }
        return {
            "id": "b",
            "custom_id": "auth",
            "response": {"status_code": 200, "body": body},
            "error": None,
        }

    provider = replay(output("1"), output("2"))
    assert [ask(provider, purpose(trial=k)).text for k in (1, 2, 3)] == ["1", "2", "2"]
    assert ask(provider, purpose()).usage.input_tokens == 3


def test_a_failed_line_of_batch_output_fails() -> None:
    lines = (
        {"custom_id": "a", "response": None, "error": {"code": "batch_expired"}},
        {"custom_id": "b", "response": {"status_code": 500, "body": {}}},
        {"custom_id": "c", "response": {"status_code": 200, "body": {"choices": []}}},
    )
    provider = replay(*lines)
    for task, kind in (("a", "bad_response"), ("b", "http_500"), ("c", "bad_response")):
        with pytest.raises(CallFailed) as caught:
            ask(provider, purpose(task))
        assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "a.jsonl:2: is not a JSON document"),
        ("[]", "a.jsonl:2: is not a JSON object"),
        ('{"match": {}}', 'either "reply" or "error"'),
        ('{"reply": {"text": "a"}, "error": {"kind": "x"}}', 'either "reply" or "error"'),
        ('{"match": {"tsak": "a"}, "reply": {"text": "a"}}', "Did you mean 'task'?"),
        (
            '{"match": {"trial": "1"}, "reply": {"text": "a"}}',
            "trial = '1', which is not a whole number",
        ),
        ('{"match": {"task": 1}, "reply": {"text": "a"}}', "task = 1, which is not a text"),
        ('{"match": [], "reply": {"text": "a"}}', '"match" is not an object'),
        ('{"reply": {"txt": "a"}}', 'an object with a "text"'),
        ('{"reply": {"text": "a", "finsh_reason": "stop"}}', "Did you mean 'finish_reason'?"),
        ('{"error": {"detail": "x"}}', 'an object with a "kind"'),
    ],
)
def test_a_wrong_line_is_named(text: str, says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Recording(['{"reply": {"text": "fine"}}', text], name="a.jsonl")
    assert says in str(caught.value)


def test_blank_lines_do_not_matter_but_an_empty_recording_does() -> None:
    assert (
        Recording(["", '{"reply": "short form"}', "  "], name="a.jsonl").answer(purpose())
        is not None
    )
    with pytest.raises(SettingsError, match="no recorded answer"):
        Recording(["", " "], name="a.jsonl")


def tool_reply(*calls: object, **reply: object) -> dict[str, object]:
    return {"match": {}, "reply": {**reply, "tool_calls": list(calls)}}


def test_recorded_tool_calls_are_replayed_in_order() -> None:
    model = replay(
        tool_reply(
            {"name": "look", "arguments": {"at": "clock"}},
            {"id": "x", "name": "look", "arguments": "{bro"},
        ),
        {"match": {}, "reply": {"text": "Noon."}},
    )
    request = ModelRequest(
        model=ModelSpec(provider="replay", name="a.jsonl"),
        messages=(Message(role="user", content="q"),),
        parameters=DEFAULTS,
        purpose=purpose(),
        tools=(Tool(name="look", description="", parameters={"type": "object"}),),
    )
    first = asyncio.run(model.complete(request))
    assert (first.text, first.finish_reason) == ("", "tool")
    assert first.tool_calls == (
        ToolCall(id="call_1", name="look", arguments={"at": "clock"}),
        ToolCall(id="x", name="look", arguments=None, malformed="{bro"),
    )
    assert asyncio.run(model.complete(request)).text == "Noon."


def test_recorded_tool_calls_are_no_answer_without_tools() -> None:
    with pytest.raises(CallFailed) as caught:
        ask(replay(tool_reply({"name": "look"})), purpose())
    assert caught.value.kind == "empty"


@pytest.mark.parametrize(
    "calls", [{"name": "look"}, ["look"], [{"arguments": {}}], [{"name": "look", "args": {}}]]
)
def test_recorded_tool_calls_without_names_are_refused(calls: object) -> None:
    with pytest.raises(SettingsError) as caught:
        replay({"match": {}, "reply": {"tool_calls": calls}})
    assert "a.jsonl:1" in str(caught.value)
