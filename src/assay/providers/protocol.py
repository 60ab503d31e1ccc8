"""The interface of wire protocols, and code that all of them share.

A protocol module has no I/O: it converts a request to a body, and a payload to a `Completion`.
`http_model` handles sending, time, fallbacks and prices.

Endpoints accept different parts of a request. If an endpoint refuses a part for a model (the name
of the token limit, structured output, images, a sampling parameter), the model's `Habits` record
the refusal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from assay.domain.calls import AnswerSchema, ModelRequest, Role, Usage
from assay.domain.failure import CallFailed, Fault
from assay.domain.model import Parameters
from assay.domain.suite import Image, Message, ToolMessage
from assay.domain.tools import ToolCall
from assay.providers.error_mapping import Saying, clean, saying
from assay.providers.json_body import dump, whole

SAMPLING: Final = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "seed", "stop")
_UNSUPPORTED: Final = re.compile(
    r"unsupported|not support|n't support|unrecogni[sz]ed|unknown|not permitted|not allowed|unexpected|"
    r"only the default|deprecated|cannot both be specified",
    re.IGNORECASE,
)
_STRUCTURED: Final = (
    "response_format",
    "response format",
    "json_schema",
    "json schema",
    "structured output",
    "guided",
    "grammar",
    "tool_choice",
    "input_schema",
    "tools",
    # OpenRouter's message if no host of the model accepts all parts of the request
    "no endpoints found",
)
_IMAGES: Final = (
    "image",
    "vision",
    "multimodal",
    "multi-modal",
    "modality",
    "content must be a string",
    "must be a string",
    "content parts",
)
_NOT_A_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """Parts of a request that an endpoint accepts for a model, learned from its answers."""

    token_limit: str = "max_tokens"
    structured: bool = True
    images: bool = True
    unsent: frozenset[str] = frozenset()


USUAL: Final = Habits()
NOTHING_COUNTED: Final = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The content of a reply.

    `cached_tokens`: included in the input tokens. `cost_usd`: cost stated by the server, or None.
    """

    text: str
    finish_reason: str
    usage: Usage
    tool_calls: tuple[ToolCall, ...] = ()
    cached_tokens: int = 0
    model_version: str | None = None
    cost_usd: float | None = None


class Wire(Protocol):
    """Interface of a wire protocol."""

    def headers(self, key: str | None, /) -> dict[str, str]:
        """Return the headers of every request."""
        ...

    def sent(self, parameters: Parameters, /) -> Parameters:
        """Return the parameters that a request contains, with the values that are sent."""
        ...

    def body(self, request: ModelRequest, habits: Habits, /) -> dict[str, object]:
        """Return the body of a request."""
        ...

    def read(
        self,
        payload: object,
        /,
        *,
        asked: str,
        key: str | None,
        schema: AnswerSchema | None,
        tools: bool,
    ) -> Completion:
        """Return the answer in a payload; raises `CallFailed` if the payload has no answer.

        `asked` is the model's name in messages. `schema` and `tools` describe the request: its
        schema, and True if it offered tools.
        """
        ...


def learned(habits: Habits, complaint: Saying, request: ModelRequest) -> Habits:
    """Return the habits after a refusal; unchanged if no optional part of the request caused the
    refusal.
    """
    if habits.images and _droppable(request) and complaint.mentions(*_IMAGES):
        return replace(habits, images=False)
    unsupported = _UNSUPPORTED.search(f"{complaint.message} {complaint.code}") is not None
    # There is no list of models that need the other name, because such a list becomes outdated, and
    # one refused call per model and process is enough to find out.
    renamed = complaint.mentions("max_completion_tokens") or (
        complaint.param == "max_tokens" and unsupported
    )
    if renamed and habits.token_limit == "max_tokens" and request.parameters.max_tokens is not None:
        return replace(habits, token_limit="max_completion_tokens")
    if request.answer_schema is not None and complaint.mentions(*_STRUCTURED):
        return replace(habits, structured=False)
    if unsupported:
        named = [
            name
            for name in SAMPLING
            if getattr(request.parameters, name) is not None and _names(complaint, name)
        ]
        # "cannot both be specified": the temperature is kept
        if "temperature" in named and "top_p" in named:
            named.remove("temperature")
        if named:
            return replace(habits, unsent=habits.unsent | set(named))
    if (
        habits.images
        and _droppable(request)
        and not complaint.mentions("context", "too long", "maximum", "quota", "billing")
    ):
        # the server gives no reason, and images are the most likely cause
        return replace(habits, images=False)
    return habits


def has_images(request: ModelRequest) -> bool:
    """True if a message contains an image."""
    return any(message.images for message in request.messages)


def shows(request: ModelRequest, habits: Habits) -> bool:
    """True if Assay sends images.

    A candidate always gets them, because without images it would answer a different question.
    """
    return habits.images or request.purpose.role is Role.CANDIDATE


def _droppable(request: ModelRequest) -> bool:
    return has_images(request) and request.purpose.role is not Role.CANDIDATE


def turns(
    messages: Iterable[Message],
    picture: Callable[[Image], dict[str, object]],
    with_tools: Callable[[ToolMessage], list[dict[str, object]]],
    *,
    pictures: bool,
) -> list[dict[str, object]]:
    """Return messages in the form of both protocols: plain text, or a list of parts if there are
    images.

    `picture` converts an image, and `with_tools` a message with tool calls or results, to the
    protocol's form.
    """
    shown: list[dict[str, object]] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            shown += with_tools(message)
        else:
            content = _parts(message, picture) if message.images and pictures else message.content
            shown.append({"role": message.role, "content": content})
    return shown


def _parts(
    message: Message, picture: Callable[[Image], dict[str, object]]
) -> list[dict[str, object]]:
    parts: list[dict[str, object]] = (
        [{"type": "text", "text": message.content}] if message.content else []
    )
    for image in message.images:
        if image.caption:
            parts.append({"type": "text", "text": image.caption})
        parts.append(picture(image))
    return parts


def refuses_tools(complaint: Saying) -> bool:
    """True if a server refused a request because the model cannot call tools."""
    text = f"{complaint.message} {complaint.code}"
    return complaint.mentions("tool") and (
        _UNSUPPORTED.search(text) is not None or complaint.mentions("no endpoints")
    )


def tool_call(key: object, name: object, arguments: object, place: int) -> ToolCall:
    """Return a tool call of an answer, numbered `place` from 1; some servers omit the id
    (`key`).
    """
    key = whole(key) if type(key) is str and key else f"call_{place}"
    text = (
        arguments
        if type(arguments) is str
        else ""
        if arguments is None
        else dump(arguments).decode()
    )
    return ToolCall.written(key, whole(name) if type(name) is str else "", whole(text))


def no_text(asked: str, finish: str, usage: Usage) -> CallFailed:
    """Return the failure for an answer without text, according to its finish reason."""
    if finish == "refusal":
        return refused(asked, "", usage, key=None)
    if finish == "tool":
        detail = f"{asked} called a tool instead of answering, but it was offered none."
        return CallFailed("empty", detail, transient=True, usage=usage)
    if finish == "length":
        detail = f"{asked} reached the token limit before it wrote any text; raise max_tokens."
        return CallFailed("empty", detail, transient=False, usage=usage)
    return CallFailed("empty", f"{asked} returned an empty answer.", transient=True, usage=usage)


def refused(asked: str, words: str, usage: Usage, *, key: str | None) -> CallFailed:
    reason = clean(words, key=key)
    detail = f"{asked} refused to answer: {reason}" if reason else f"{asked} refused to answer."
    return CallFailed("refused", detail, transient=False, fault=Fault.REFUSAL, usage=usage)


def misshapen(asked: str, lacks: str) -> CallFailed:
    return CallFailed(
        "bad_response", f"{asked} answered without {lacks}.", transient=True, fault=Fault.PROVIDER
    )


def unreadable(
    asked: str, headers: Mapping[str, str], body: bytes, *, key: str | None
) -> CallFailed:
    if not body.strip():
        return CallFailed(
            "empty", f"{asked} sent an empty body.", transient=True, fault=Fault.PROVIDER
        )
    if "html" in headers.get("Content-Type", "") or body.lstrip()[:1] == b"<":
        what = f"a web page instead of JSON ({clean(saying(body).message, key=key) or 'without a title'})"
    else:
        what = "something that is not a whole JSON document"
    return CallFailed("bad_response", f"{asked} sent {what}.", transient=True, fault=Fault.PROVIDER)


def with_schema(messages: tuple[Message, ...], schema: AnswerSchema) -> tuple[Message, ...]:
    """Append the JSON Schema to the last user message."""
    wish = (
        "\n\nAnswer with exactly one JSON document and nothing else: no prose, no code fence. "
        f"It follows this JSON Schema:\n{dump(schema.schema).decode()}"
    )
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role == "user":
            asked = replace(messages[place], content=messages[place].content + wish)
            return (*messages[:place], asked, *messages[place + 1 :])
    return (*messages, Message(role="user", content=wish.lstrip()))


def schema_name(schema: AnswerSchema) -> str:
    """Return the schema's name, reduced to the characters that both protocols allow."""
    return _NOT_A_NAME.sub("_", schema.name)[:64] or "answer"


def _names(complaint: Saying, parameter: str) -> bool:
    if complaint.param:
        return complaint.param == parameter
    quote = "['\"`]" if parameter == "stop" else ""  # "stop" is also a common word
    return re.search(rf"(?<!\w){quote}{parameter}{quote}(?!\w)", complaint.message) is not None
