"""OpenAI's chat completions, the protocol of OpenAI, OpenRouter, vLLM, Ollama and many others,
without I/O.

Batch files and recordings also use this code.
"""

from __future__ import annotations

from typing import Final

from assay.domain.calls import AnswerSchema, ModelRequest, Usage
from assay.domain.model import Parameters
from assay.domain.suite import Image, ToolMessage
from assay.domain.tools import ToolCall
from assay.providers import protocol
from assay.providers.json_body import count, whole

_FINISH: Final = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refusal",
    "tool_calls": "tool",
    "function_call": "tool",
}

MAX_USD: Final = 1e6
"""A call with a higher cost is a server error."""


class OpenAIChat:
    """OpenAI's chat completions protocol; implements `protocol.Wire`."""

    def headers(self, key: str | None, /) -> dict[str, str]:
        """Return the content type, and the key as a bearer token, as headers."""
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def sent(self, parameters: Parameters, /) -> Parameters:
        """Return all parameters, because the protocol has a field for each."""
        return parameters

    def body(
        self, request: ModelRequest, habits: protocol.Habits = protocol.USUAL, /
    ) -> dict[str, object]:
        """Return the body of a request, which is the same in a batch file."""
        parameters = self.sent(request.parameters)
        schema, pictures = request.answer_schema, protocol.shows(request, habits)
        body: dict[str, object] = {
            "model": request.model.name,
            "messages": protocol.turns(request.messages, _picture, _with_tools, pictures=pictures),
        }
        if request.tools:
            body["tools"] = [{"type": "function", "function": tool} for tool in request.tools]
        if schema is not None:
            if habits.structured:
                wanted = {
                    "name": protocol.schema_name(schema),
                    "strict": True,
                    "schema": schema.schema,
                }
                body["response_format"] = {"type": "json_schema", "json_schema": wanted}
            else:
                body["messages"] = protocol.turns(
                    protocol.with_schema(request.messages, schema),
                    _picture,
                    _with_tools,
                    pictures=pictures,
                )
        if parameters.max_tokens is not None:
            body[habits.token_limit] = parameters.max_tokens
        unsent = habits.unsent
        for name in protocol.SAMPLING:
            value = getattr(parameters, name)
            if value is not None and name not in unsent:
                body[name] = value
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
        """Return the answer in a chat completion.

        Content may be text or a list of parts. Tool calls are an answer only if the request offered
        tools. A refusal, or an answer cut off by a content filter, raises `refused`, because half
        an answer must not be graded.
        """
        choice = _first(payload)
        message = choice.get("message")
        if type(payload) is not dict or type(message) is not dict:
            raise protocol.misshapen(asked, "a message in choices")
        usage, cached_tokens, cost_usd = _counted(payload)
        reason = choice.get("finish_reason")
        finish = _FINISH.get(reason, reason) if type(reason) is str and reason else "stop"
        refusal = message.get("refusal")
        if finish == "refusal" or (type(refusal) is str and refusal.strip()):
            raise protocol.refused(asked, refusal if type(refusal) is str else "", usage, key=key)
        text = _content(message.get("content"))
        calls = _tool_calls(message.get("tool_calls")) if tools else ()
        if calls and finish == "stop":  # some servers end an answer with calls as any other
            finish = "tool"
        if not calls and (not text or text.isspace()):
            raise protocol.no_text(asked, finish, usage)
        version = payload.get("model")
        return protocol.Completion(
            text=whole(text),
            finish_reason=finish,
            usage=usage,
            tool_calls=calls,
            cached_tokens=cached_tokens,
            model_version=version if type(version) is str and version else None,
            cost_usd=cost_usd,
        )


def _picture(image: Image) -> dict[str, object]:
    return {
        "type": "image_url",
        "image_url": {"url": f"data:{image.media_type};base64,{image.data}"},
    }


def _with_tools(message: ToolMessage) -> list[dict[str, object]]:
    if message.results:
        return [
            # The protocol has no field for failed calls.
            {
                "role": "tool",
                "tool_call_id": result.call_id,
                "content": f"{'Error: ' * result.is_error}{result.text}",
            }
            for result in message.results
        ]
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
        for call in message.calls
    ]
    return [{"role": message.role, "content": message.content or None, "tool_calls": calls}]


def _tool_calls(calls: object) -> tuple[ToolCall, ...]:
    if type(calls) is not list:
        return ()
    functions = ((call, call.get("function")) for call in calls if type(call) is dict)
    return tuple(
        protocol.tool_call(call.get("id"), function.get("name"), function.get("arguments"), place)
        for place, (call, function) in enumerate(functions, 1)
        if type(function) is dict
    )


def _counted(payload: dict[str, object]) -> tuple[Usage, int, float | None]:
    """Return the token counts, the number of cached tokens, and the cost if the server states it,
    as OpenRouter does.
    """
    usage = payload.get("usage")
    if type(usage) is not dict:
        extra = payload.get("x_groq")
        usage = extra.get("usage") if type(extra) is dict else None
        if type(usage) is not dict:
            return protocol.NOTHING_COUNTED, 0, None
    tokens = Usage(
        input_tokens=count(usage.get("prompt_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
    )
    details = usage.get("prompt_tokens_details")
    cached = (count(details.get("cached_tokens")) or 0) if type(details) is dict else 0
    cost = usage.get("cost")
    if not isinstance(cost, int | float) or isinstance(cost, bool) or not 0 <= cost < MAX_USD:
        return tokens, cached, None
    return tokens, cached, float(cost)


def _first(payload: object) -> dict[str, object]:
    choices = payload.get("choices") if type(payload) is dict else None
    if type(choices) is list and choices and type(choices[0]) is dict:
        return choices[0]
    return {}


def _content(content: object) -> str:
    if type(content) is str:
        return content
    if type(content) is list:
        parts = (part.get("text") if type(part) is dict else part for part in content)
        return "".join(part for part in parts if type(part) is str)
    return ""
