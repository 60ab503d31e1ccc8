"""Anthropic's messages protocol, without I/O.

It differs from chat completions: the system prompt is a separate field, `max_tokens` is required,
the temperature is at most 1, and seeds and penalties are missing. Assay requests a JSON answer as
the input of a tool that the model must call.
"""

from __future__ import annotations

from typing import Final

from assay.domain.calls import AnswerSchema, ModelRequest, Usage
from assay.domain.model import Parameters
from assay.domain.suite import Image, Message, ToolMessage
from assay.domain.tools import ToolCall
from assay.providers import protocol
from assay.providers.json_body import count, dump, whole

VERSION: Final = "2023-06-01"
DEFAULT_MAX_TOKENS: Final = 4096
_FINISH: Final = {
    "end_turn": "stop",
    "tool_use": "tool",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


class AnthropicMessages:
    """Anthropic's messages protocol; implements `protocol.Wire`."""

    def headers(self, key: str | None, /) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "anthropic-version": VERSION}
        if key is not None:
            headers["x-api-key"] = key
        return headers

    def sent(self, parameters: Parameters, /) -> Parameters:
        """Return the parameters that the protocol has a field for, with a token limit, and a
        temperature of at most 1.
        """
        temperature, top_p = parameters.temperature, parameters.top_p
        return Parameters(
            temperature=None if temperature is None else min(temperature, 1.0),
            # 1 is the default, and newer models refuse requests with both a temperature and a
            # top_p.
            top_p=None if top_p == 1 else top_p,
            max_tokens=DEFAULT_MAX_TOKENS
            if parameters.max_tokens is None
            else parameters.max_tokens,
            stop=parameters.stop or None,
        )

    def body(
        self, request: ModelRequest, habits: protocol.Habits = protocol.USUAL, /
    ) -> dict[str, object]:
        """Return the body of a request, which is also the request's `params` in a batch."""
        parameters = self.sent(request.parameters)
        schema = request.answer_schema
        messages = request.messages
        if schema is not None and not habits.structured:
            messages = protocol.with_schema(messages, schema)
        system = [message.content for message in messages if message.role == "system"]
        spoken = [message for message in messages if message.role != "system"]
        if not spoken:  # the protocol requires a user message
            system, spoken = [], [Message(role="user", content="\n\n".join(system))]
        body: dict[str, object] = {
            "model": request.model.name,
            "max_tokens": parameters.max_tokens,
            "messages": protocol.turns(
                spoken, _picture, _with_tools, pictures=protocol.shows(request, habits)
            ),
        }
        if system:
            body["system"] = "\n\n".join(system)
        if parameters.temperature is not None and "temperature" not in habits.unsent:
            body["temperature"] = parameters.temperature
        if parameters.top_p is not None and "top_p" not in habits.unsent:
            body["top_p"] = parameters.top_p
        if parameters.stop and "stop" not in habits.unsent:
            body["stop_sequences"] = parameters.stop
        if request.tools:
            body["tools"] = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": tool.parameters,
                }
                for tool in request.tools
            ]
        if schema is not None and habits.structured:
            name = protocol.schema_name(schema)
            body["tools"] = [
                {"name": name, "description": "Hands in the answer.", "input_schema": schema.schema}
            ]
            body["tool_choice"] = {"type": "tool", "name": name, "disable_parallel_tool_use": True}
        return body

    def read(
        self,
        payload: object,
        /,
        *,
        asked: str,
        key: str | None = None,
        schema: AnswerSchema | None = None,
        tools: bool = False,
    ) -> protocol.Completion:
        """Return the answer: the schema tool's input as JSON if a schema was requested, otherwise
        the text and tool calls.
        """
        if type(payload) is not dict or type(blocks := payload.get("content")) is not list:
            raise protocol.misshapen(asked, "content")
        usage, cached_tokens = _counted(payload.get("usage"))
        tool = None if schema is None else protocol.schema_name(schema)
        texts: list[str] = []
        calls: list[ToolCall] = []
        handed_in = ""
        for block in blocks:
            match block:
                case {"type": "text", "text": str(text)}:
                    texts.append(text)
                case {"type": "tool_use", "name": name, "input": dict(document)} if (
                    document and name == tool
                ):
                    handed_in = handed_in or dump(document).decode()
                case {"type": "tool_use"} if tools:
                    calls.append(
                        protocol.tool_call(
                            block.get("id"), block.get("name"), block.get("input"), len(calls) + 1
                        )
                    )
                case _:
                    pass
        reason = payload.get("stop_reason")
        finish = _FINISH.get(reason, reason) if type(reason) is str and reason else "stop"
        if handed_in and finish == "tool":
            finish = "stop"
        text = handed_in or "".join(texts)
        if finish == "refusal":
            raise protocol.refused(asked, text, usage, key=key)
        if not calls and (not text or text.isspace()):
            raise protocol.no_text(asked, finish, usage)
        version = payload.get("model")
        return protocol.Completion(
            text=whole(text),
            finish_reason=finish,
            usage=usage,
            tool_calls=tuple(calls),
            cached_tokens=cached_tokens,
            model_version=version if type(version) is str and version else None,
        )


def _picture(image: Image) -> dict[str, object]:
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": image.media_type, "data": image.data},
    }


def _with_tools(message: ToolMessage) -> list[dict[str, object]]:
    blocks: list[dict[str, object]]
    if message.results:
        blocks = [
            {
                "type": "tool_result",
                "tool_use_id": result.call_id,
                "content": result.text,
                **({"is_error": True} if result.is_error else {}),
            }
            for result in message.results
        ]
        return [{"role": "user", "content": blocks}]
    # The protocol refuses blank texts, and an input that is not an object.
    blocks = [{"type": "text", "text": message.content}] if message.content.strip() else []
    for call in message.calls:
        arguments = {"malformed": call.malformed} if call.arguments is None else call.arguments
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
    return [{"role": "assistant", "content": blocks}]


def _counted(usage: object) -> tuple[Usage, int]:
    """Return (input and output tokens, cached tokens).

    This protocol counts cached input tokens separately.
    """
    if type(usage) is not dict:
        return Usage(), 0
    fresh = count(usage.get("input_tokens"))
    read = count(usage.get("cache_read_input_tokens")) or 0
    written = count(usage.get("cache_creation_input_tokens")) or 0
    into = None if fresh is None else fresh + read + written
    return Usage(input_tokens=into, output_tokens=count(usage.get("output_tokens"))), read
