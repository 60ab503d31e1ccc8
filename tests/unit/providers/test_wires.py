"""Payloads of both protocols, in the shapes servers have been seen to send."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.domain.calls import AnswerSchema, ModelRequest, Purpose, Role, Usage
from assay.domain.failure import CallFailed, Fault
from assay.domain.model import DEFAULTS, ModelSpec, Parameters
from assay.domain.suite import Message
from assay.providers.anthropic_messages import AnthropicMessages
from assay.providers.error_mapping import Saying
from assay.providers.json_body import dump, parse
from assay.providers.openai_chat import OpenAIChat
from assay.providers.protocol import USUAL, Habits, learned, with_schema

SCHEMA = AnswerSchema(
    name="grades", schema={"type": "object", "properties": {"score": {"type": "number"}}}
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "message",
                    "content",
                    "text",
                    "usage",
                    "type",
                    "input",
                    "delta",
                    "finish_reason",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def request(
    *messages: Message, parameters: Parameters = DEFAULTS, schema: AnswerSchema | None = None
) -> ModelRequest:
    return ModelRequest(
        model=ModelSpec(provider="openai", name="m"),
        messages=messages or (Message(role="user", content="q"),),
        parameters=parameters,
        purpose=Purpose(role=Role.JUDGE, task="t", trial=1),
        answer_schema=schema,
    )


def chat(content: Any, *, finish: Any = "stop", **around: Any) -> dict[str, Any]:
    message = content if isinstance(content, dict) else {"role": "assistant", "content": content}
    return {"choices": [{"message": message, "finish_reason": finish}], **around}


OUTCOMES = {"answered", "empty", "refused", "bad_response"}


def outcome(
    wire: OpenAIChat | AnthropicMessages, payload: Any, schema: AnswerSchema | None = None
) -> str:
    """The kind of failure that reading gives, or `answered`."""
    try:
        return "answered" if wire.read(payload, asked="m", schema=schema).text.strip() else "blank"
    except CallFailed as failure:
        return failure.kind


class TestChatCompletions:
    @pytest.mark.parametrize(
        ("payload", "text", "finish"),
        [
            (chat("42"), "42", "stop"),
            (
                chat(
                    [
                        {"type": "text", "text": "4"},
                        {"type": "output_text", "text": "2"},
                        {"type": "image"},
                    ]
                ),
                "42",
                "stop",
            ),
            (chat("42", finish="length"), "42", "length"),
            (chat("42", finish=None), "42", "stop"),
            (chat("42", finish="eos"), "42", "eos"),
            (
                chat(
                    {"content": "42", "refusal": None, "reasoning_content": "hm", "annotations": []}
                ),
                "42",
                "stop",
            ),
            (chat("a\ud83d\0b"), "a\ufffd\ufffdb", "stop"),
        ],
    )
    def test_the_answer_is_found(self, payload: dict[str, Any], text: str, finish: str) -> None:
        completion = OpenAIChat().read(payload, asked="m")
        assert (completion.text, completion.finish_reason) == (text, finish)

    @pytest.mark.parametrize(
        ("payload", "kind", "fault"),
        [
            (chat(None), "empty", None),
            (
                chat(
                    {"content": None, "tool_calls": [{"function": {"arguments": "42"}}]},
                    finish="tool_calls",
                ),
                "empty",
                None,
            ),
            (chat(" \n"), "empty", None),
            (chat({"content": "", "reasoning_content": "long thoughts"}), "empty", None),
            (chat({"content": None, "refusal": "I will not."}), "refused", Fault.REFUSAL),
            (chat("half an ans", finish="content_filter"), "refused", Fault.REFUSAL),
            (chat(None, finish="content_filter"), "refused", Fault.REFUSAL),
            ({"choices": []}, "bad_response", Fault.PROVIDER),
            ({"choices": None}, "bad_response", Fault.PROVIDER),
            ({"choices": [{"text": "old style"}]}, "bad_response", Fault.PROVIDER),
            ([], "bad_response", Fault.PROVIDER),
            ("text", "bad_response", Fault.PROVIDER),
            (None, "bad_response", Fault.PROVIDER),
        ],
    )
    def test_no_answer_is_a_named_failure(
        self, payload: Any, kind: str, fault: Fault | None
    ) -> None:
        with pytest.raises(CallFailed) as caught:
            OpenAIChat().read(payload, asked="m")
        assert (caught.value.kind, caught.value.fault) == (kind, fault)

    @pytest.mark.parametrize(
        ("around", "usage"),
        [
            (
                {"usage": {"prompt_tokens": 3, "completion_tokens": 4}},
                Usage(input_tokens=3, output_tokens=4),
            ),
            (
                {"x_groq": {"usage": {"prompt_tokens": 3, "completion_tokens": 4}}},
                Usage(input_tokens=3, output_tokens=4),
            ),
            ({"usage": None}, Usage()),
            ({"usage": {"prompt_tokens": -1, "completion_tokens": True}}, Usage()),
            ({"usage": {"prompt_tokens": "3"}}, Usage()),
            ({"usage": {"prompt_tokens": 2**63, "completion_tokens": 2**62}}, Usage()),
            (
                {"usage": {"prompt_tokens": 2**40, "completion_tokens": 10**400}},
                Usage(input_tokens=2**40),
            ),
            ({}, Usage()),
        ],
    )
    def test_tokens_are_counted_where_the_server_counts(
        self, around: dict[str, Any], usage: Usage
    ) -> None:
        assert OpenAIChat().read(chat("42", **around), asked="m").usage == usage

    @pytest.mark.parametrize("cost", [-1, True, "1", float("inf"), float("nan"), 10**400])
    def test_an_impossible_cost_is_unknown(self, cost: object) -> None:
        assert OpenAIChat().read(chat("42", usage={"cost": cost}), asked="m").cost_usd in (
            None,
            1.0,
        )

    @given(JSON)
    def test_any_json_gives_an_answer_or_a_named_failure(self, payload: Any) -> None:
        assert outcome(OpenAIChat(), payload) in OUTCOMES


class TestMessages:
    def test_a_prompt_of_instructions_alone_is_asked_by_the_user(self) -> None:
        body = AnthropicMessages().body(request(Message(role="system", content="Grade this.")))
        assert parse(dump(body))["messages"] == [{"role": "user", "content": "Grade this."}]
        assert "system" not in body

    def test_several_instructions_become_one(self) -> None:
        body = AnthropicMessages().body(
            request(
                Message(role="system", content="a"),
                Message(role="user", content="q"),
                Message(role="system", content="b"),
            )
        )
        assert body["system"] == "a\n\nb"

    def test_text_between_and_around_other_blocks_is_joined(self) -> None:
        blocks = [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "4"},
            {"type": "text", "text": "2"},
        ]
        assert (
            AnthropicMessages().read({"content": blocks, "stop_reason": "end_turn"}, asked="m").text
            == "42"
        )

    @pytest.mark.parametrize(
        ("name", "outcome_"), [("grades", "answered"), ("transfer_money", "empty")]
    )
    def test_only_the_tool_of_the_schema_hands_in_an_answer(self, name: str, outcome_: str) -> None:
        payload = {
            "content": [{"type": "tool_use", "name": name, "input": {"a": 1}}],
            "stop_reason": "tool_use",
        }
        schema = AnswerSchema(name="grades", schema={})
        assert outcome(AnthropicMessages(), payload) == "empty"
        assert outcome(AnthropicMessages(), payload, schema) == outcome_

    def test_cached_tokens_count_as_input(self) -> None:
        usage = {
            "input_tokens": 5,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
            "output_tokens": 3,
        }
        payload = {
            "content": [{"type": "text", "text": "42"}],
            "stop_reason": "end_turn",
            "usage": usage,
        }
        completion = AnthropicMessages().read(payload, asked="m")
        assert completion.usage == Usage(input_tokens=125, output_tokens=3)
        assert completion.cached_tokens == 100

    @given(JSON)
    def test_any_json_gives_an_answer_or_a_named_failure(self, payload: Any) -> None:
        assert outcome(AnthropicMessages(), payload) in OUTCOMES


class TestHabits:
    @pytest.mark.parametrize(
        ("message", "param", "expected"),
        [
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                "max_tokens",
                Habits(token_limit="max_completion_tokens"),
            ),
            (
                "'response_format' of type 'json_schema' is not supported",
                "response_format",
                Habits(structured=False),
            ),
            ("Invalid schema for response_format 'grades'", "", Habits(structured=False)),
            (
                "tool_choice: forcing a tool is not compatible with thinking",
                "",
                Habits(structured=False),
            ),
            (
                "No endpoints found that can handle the requested parameters.",
                "",
                Habits(structured=False),
            ),
            (
                "Unsupported value: 'temperature' does not support 0.7 with this model.",
                "temperature",
                Habits(unsent=frozenset({"temperature"})),
            ),
            (
                "`temperature` and `top_p` cannot both be specified for this model.",
                "",
                Habits(unsent=frozenset({"top_p"})),
            ),
            (
                "temperature is deprecated for this model",
                "",
                Habits(unsent=frozenset({"temperature"})),
            ),
            ("max_tokens is too large: 99999", "max_tokens", USUAL),
            ("temperature must be at most 1", "temperature", USUAL),
            ("something else", "", USUAL),
        ],
    )
    def test_a_refusal_is_understood(self, message: str, param: str, expected: Habits) -> None:
        asked = request(schema=SCHEMA)
        assert learned(USUAL, Saying(message, "", "", param), asked) == expected

    def test_schema_is_not_blamed_when_it_was_not_sent(self) -> None:
        assert learned(USUAL, Saying("response_format is odd"), request()) == USUAL


def test_a_prompted_schema_goes_to_the_end_of_the_users_last_message() -> None:
    messages = (Message(role="user", content="q"), Message(role="assistant", content="a"))
    asked = with_schema(messages, SCHEMA)
    assert asked[0].content.startswith("q\n\n")
    assert '"score"' in asked[0].content
    assert asked[1] == messages[1]
