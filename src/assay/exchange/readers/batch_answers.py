"""Read the body of a batch response: the answer's text, finish reason and tokens, or the party at
fault for a missing text.

Known bodies: OpenAI's chat completions, completions and responses; Mistral's, vLLM's and Groq's
copies of them; Anthropic's messages; Gemini's `GenerateContentResponse`; Bedrock's Converse and the
model families on Bedrock (Titan, Llama, Mistral, Cohere); embeddings, scores and reranking, in
which the numbers are the answer.

Finish reasons are Assay's `stop`, `length` and `tool`; others keep the provider's name. An answer
that the model refused or a filter stopped is a refusal even if it has text, as when Assay itself
calls a model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from assay.domain.digest import JsonValue
from assay.domain.failure import Failure, Fault
from assay.domain.unescaped_json import unescaped_json
from assay.exchange.parsing.foreign_names import foreign_names
from assay.exchange.parsing.json_values import (
    JsonObject,
    as_count,
    as_duration,
    as_list,
    as_object,
    as_text,
    objects_in,
)
from assay.exchange.readers.batch_lines import failed

_SHOWN: Final = 2000
_MANY: Final = 2**53  # above this, `as_count` accepts no number
_NAMES: Final = foreign_names(__name__)
_FINISH: Final = {name: reason for reason in ("stop", "length", "tool") for name in _NAMES[reason]}
_REFUSED: Final = frozenset(_NAMES["refused"])
_NUMBERS: Final = ("data", "results", "segments", "embedding", "embeddings", "scores")


class BatchAnswer(NamedTuple):
    """A body's text, or the failure that explains a missing text; `finish` is None if the body does
    not state it.
    """

    text: str | None
    finish: str | None
    failure: Failure | None


def answer_of(body: JsonObject) -> BatchAnswer:
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return _chosen(choices[0])
    content = body.get("content")
    if isinstance(content, list):  # Anthropic's messages
        calls = [block for block in objects_in(content) if block.get("type") == "tool_use"]
        return _answer(_text(content), as_text(body.get("stop_reason")), calls)
    output = body.get("output")
    if isinstance(output, list):  # OpenAI's responses
        return _output(body, objects_in(output))
    if "candidates" in body or "promptFeedback" in body:
        return _candidate(body)
    if isinstance(output, dict):  # Bedrock's Converse
        parts = as_list(as_object(output.get("message")).get("content"))
        calls = [part for part in objects_in(parts) if "toolUse" in part]
        return _answer(_text(parts), as_text(body.get("stopReason")), calls)
    for key, text_key, reason_key in (
        ("results", "outputText", "completionReason"),  # Titan
        ("outputs", "text", "stop_reason"),  # Mistral on Bedrock
        ("generations", "text", "finish_reason"),  # Cohere
    ):
        first = as_object(next(iter(as_list(body.get(key))), None))
        if text_key in first:
            return _answer(as_text(first[text_key]), as_text(first.get(reason_key)))
    for key in ("generation", "text"):  # Llama on Bedrock; Cohere's chat, transcriptions
        if isinstance(body.get(key), str):
            reason = as_text(body.get("stop_reason")) or as_text(body.get("finish_reason"))
            return _answer(as_text(body[key]), reason)
    for key in _NUMBERS:
        if key in body:  # embeddings, scores, reranking: numbers are the answer
            return BatchAnswer(
                json.dumps(body[key], ensure_ascii=False, separators=(",", ":")), None, None
            )
    return BatchAnswer(None, None, _no_answer("the body holds no choices."))


def model_in(body: JsonObject) -> str | None:
    model = body.get("model")
    return model if isinstance(model, str) and model else as_text(body.get("modelVersion"))


def measures_of(body: JsonObject) -> tuple[int | None, int | None, float | None]:
    """Return (prompt tokens, answer tokens, model time in seconds), each None if unknown.

    Cached tokens count as prompt tokens and reasoning tokens as answer tokens, as in providers'
    bills.
    """
    usage = body.get("usage")
    if isinstance(usage, dict):
        read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
        # The usual case: nearly every line of a file with a million lines.
        if (
            len(usage) == 3
            and type(read) is int
            and type(written) is int
            and 0 <= read < _MANY
            and 0 <= written < _MANY
        ):
            return read, written, None
        return *_tokens(usage), _seconds(body, usage)
    usage = body.get("usageMetadata")
    if isinstance(usage, dict):  # Gemini
        read = _sum(usage, "promptTokenCount", "toolUsePromptTokenCount")
        return read, _sum(usage, "candidatesTokenCount", "thoughtsTokenCount"), None
    if "inputTextTokenCount" in body:  # Titan
        counts = [as_count(result.get("tokenCount")) for result in objects_in(body.get("results"))]
        written = None if None in counts or not counts else sum(count or 0 for count in counts)
        return as_count(body["inputTextTokenCount"]), written, None
    return (
        as_count(body.get("prompt_token_count")),
        as_count(body.get("generation_token_count")),
        None,
    )


def _tokens(usage: JsonObject) -> tuple[int | None, int | None]:
    read = as_count(usage.get("prompt_tokens", usage.get("input_tokens", usage.get("inputTokens"))))
    written = as_count(
        usage.get("completion_tokens", usage.get("output_tokens", usage.get("outputTokens")))
    )
    if read is not None and "cache_read_input_tokens" in usage:  # Anthropic counts them separately
        cached = (usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens"))
        read += sum(as_count(part) or 0 for part in cached)
    return read, written


def _seconds(body: JsonObject, usage: JsonObject) -> float | None:
    milliseconds = as_duration(as_object(body.get("metrics")).get("latencyMs"))
    return as_duration(usage.get("total_time")) if milliseconds is None else milliseconds / 1000


def _answer(
    text: str | None, reason: str | None, calls: Sequence[object] = (), refusal: str | None = None
) -> BatchAnswer:
    """Build an answer from its text and finish reason; if there is no text, the tool call is the
    answer.
    """
    finish = None if reason is None else _FINISH.get(reason, reason)
    if refusal or reason in _REFUSED:
        detail = refusal or f"the answer ended with {reason}{': ' if text else '.'}{text or ''}"
        return BatchAnswer(
            None, finish, Failure(kind="refused", fault=Fault.REFUSAL, detail=detail[:_SHOWN])
        )
    if text:
        return BatchAnswer(text, finish, None)
    if calls:
        return BatchAnswer(unescaped_json({"tool_calls": calls}), finish, None)
    if reason in ("error", "ERROR"):
        return BatchAnswer(None, finish, _no_answer("the provider ended the answer with an error."))
    why = "the model gave an empty answer."
    if finish == "length":
        why = "the model reached the token limit before it wrote any text."
    elif finish not in (None, "stop"):
        why = f"the model gave no text and ended with {finish}."
    return BatchAnswer(None, finish, Failure(kind="empty", fault=Fault.CANDIDATE, detail=why))


def _chosen(choice: JsonObject) -> BatchAnswer:
    finish = as_text(choice.get("finish_reason")) or as_text(choice.get("stop_reason"))
    message = choice.get("message")
    if not isinstance(message, dict):
        text = choice.get("text")
        if isinstance(text, str):
            return _answer(text, finish)
        return BatchAnswer(None, finish, _no_answer("the choice holds no message."))
    content = message.get("content")
    if finish == "stop" and isinstance(content, str) and content:
        return BatchAnswer(content, finish, None)
    if isinstance(content, list):
        content = _text(content)
    # An answer may come with an empty refusal.
    refusal = None if content else as_text(message.get("refusal"))
    return _answer(as_text(content), finish, as_list(message.get("tool_calls")), refusal)


def _output(body: JsonObject, items: list[JsonObject]) -> BatchAnswer:
    parts = [
        part
        for item in items
        for part in as_list(item.get("content"))
        if item.get("type") != "reasoning"
    ]
    text = _text(parts)
    refusal = next(
        (
            as_text(part.get("refusal"))
            for part in objects_in(parts)
            if part.get("type") == "refusal"
        ),
        None,
    )
    calls = [
        item for item in items if as_text(item.get("type")) in ("function_call", "custom_tool_call")
    ]
    status = as_text(body.get("status"))
    reason = as_text(as_object(body.get("incomplete_details")).get("reason")) or status
    if status == "cancelled":
        return BatchAnswer(None, status, failed("cancelled", 400, "the response was cancelled."))
    if status == "failed":
        return BatchAnswer(
            None, status, _no_answer("the response failed without an error message.")
        )
    return _answer(text, reason, calls, None if text else refusal)


def _candidate(body: JsonObject) -> BatchAnswer:
    """Return the first candidate in Gemini's reply; empty if the prompt was blocked."""
    first = as_object(next(iter(as_list(body.get("candidates"))), None))
    blocked = as_text(as_object(body.get("promptFeedback")).get("blockReason"))
    if not first and blocked is not None:
        detail = as_text(as_object(body.get("promptFeedback")).get("blockReasonMessage"))
        return _answer(None, None, refusal=f"the prompt was blocked: {detail or blocked}.")
    if not first:
        return BatchAnswer(None, None, _no_answer("the body holds no candidates."))
    parts = objects_in(as_object(first.get("content")).get("parts"))
    spoken: list[JsonValue] = [dict(part) for part in parts if part.get("thought") is not True]
    reason = as_text(first.get("finishReason"))
    message = as_text(first.get("finishMessage"))
    return _answer(
        _text(spoken),
        reason,
        [part["functionCall"] for part in parts if "functionCall" in part],
        refusal=f"{reason}: {message}" if message is not None and reason in _REFUSED else None,
    )


def _text(parts: list[JsonValue]) -> str:
    return "".join(
        part if isinstance(part, str) else str(part["text"])
        for part in parts
        if isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str))
    )


def _sum(usage: JsonObject, first: str, second: str) -> int | None:
    """Return the sum of two counts; a missing second count is 0, but a missing first count gives
    None.
    """
    count = as_count(usage.get(first))
    more = as_count(usage.get(second))
    return more if count is None else count + (more or 0)


def _no_answer(why: str) -> Failure:
    return Failure(kind="no_answer", fault=Fault.PROVIDER, detail=why)
