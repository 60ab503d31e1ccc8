"""Requests to models and their replies, independent of the wire format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.domain.digest import JsonValue
from assay.domain.model import ModelSpec, Parameters
from assay.domain.suite import Message, Task
from assay.domain.tools import Tool, ToolCall


class Role(StrEnum):
    """Role of the model that a request goes to."""

    CANDIDATE = "candidate"
    JUDGE = "judge"
    USER = "user"
    STRUCTURER = "structurer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """Purpose of a call.

    It is stored with the call but never sent; recordings use it to find the matching answer.

    `labels`: the label that the judge sees for each candidate's name.
    """

    role: Role
    task: str
    trial: int
    attempt: int = 1
    candidate: str | None = None
    judge: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSchema:
    """Name and JSON Schema of the document that the model should return."""

    name: str
    schema: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request to one model.

    Attributes:
        parameters: complete; the provider adds only the model's name.
        tools: tools that the model may call; cannot be combined with `answer_schema`.
        task: set only for candidates that are programs, because programs may use more of the task
            than its messages.
    """

    model: ModelSpec
    messages: tuple[Message, ...]
    parameters: Parameters
    purpose: Purpose
    answer_schema: AnswerSchema | None = None
    tools: tuple[Tool, ...] = ()
    task: Task | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts as reported by the provider; None if it did not report them."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's answer: text, tool calls, or both.

    Attributes:
        tool_calls: empty unless the request had `tools`.
        finish_reason: `stop`, `length`, `refusal`, `tool` or another value from the provider.
        model_version: the model that answered, as reported by the server.
        latency_s: from sending the request to receiving the last byte; None if not measured.
        first_token_s: set only if the reply was streamed.
        cost_usd: None if the price is unknown, never 0 in that case.
        blind: True if the request had images and the model does not accept images.
        log: additional output of a program.
    """

    text: str
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    model_version: str | None = None
    latency_s: float | None = 0.0
    first_token_s: float | None = None
    cost_usd: float | None = None
    blind: bool = False
    log: str = ""
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def truncated(self) -> bool:
        """True if the token limit cut the answer off."""
        return self.finish_reason == "length"
