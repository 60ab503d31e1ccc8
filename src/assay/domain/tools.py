"""Tools that a model may call, its calls, and their results, independent of the wire format.

To continue a conversation after a `Reply` with `tool_calls`, add two messages to the request: a
`ToolMessage` with role `assistant`, the reply's text and its calls, and a `ToolMessage` with role
`tool` and one result for each call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from assay.domain.digest import JsonValue
from assay.domain.unescaped_json import unescaped_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that a model may call.

    `parameters` is the JSON Schema of its arguments, of type `object`.
    """

    name: str
    description: str
    parameters: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's call of a tool, even of a tool that was not offered to the model.

    `arguments` is None if the model did not write a JSON object; `malformed` is then the text that
    it wrote.
    """

    id: str
    name: str
    arguments: Mapping[str, JsonValue] | None
    malformed: str = ""

    @classmethod
    def written(cls, key: str, name: str, text: str) -> ToolCall:
        """Return the call with id `key` and the arguments in a text; an empty text means no
        arguments.
        """
        try:
            arguments = json.loads(text, parse_constant=_refuse) if text.strip() else {}
        except (ValueError, RecursionError):
            arguments = None
        if isinstance(arguments, dict):
            return cls(id=key, name=name, arguments=arguments)
        return cls(id=key, name=name, arguments=None, malformed=text)

    @property
    def text(self) -> str:
        """The arguments as JSON, or the malformed text."""
        return self.malformed if self.arguments is None else unescaped_json(dict(self.arguments))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of the call with this id.

    `is_error` is True if the call failed; `text` is then the reason.
    """

    call_id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CannedAnswer:
    """A tool's result in a suite, for calls with at least these arguments."""

    text: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CannedTool:
    """A tool that a task offers; a call's result is the first of the tool's answers that matches
    the call.
    """

    tool: Tool
    answers: tuple[CannedAnswer, ...]


def canned_result(call: ToolCall, tools: Sequence[CannedTool]) -> ToolResult:
    """Return a task's result for a call.

    If no answer matches the call, the result is an error that explains this to the model.
    """
    by_name = {canned.tool.name: canned for canned in tools}
    if call.name not in by_name:
        problem = f"There is no tool {call.name!r}. The tools are: {', '.join(by_name)}."
    elif call.arguments is None:
        problem = "The arguments are not a JSON object."
    else:
        for answer in by_name[call.name].answers:
            if contains(call.arguments, answer.arguments):
                return ToolResult(call_id=call.id, text=answer.text, is_error=answer.is_error)
        problem = "There is no result for these arguments."
    return ToolResult(call_id=call.id, text=problem, is_error=True)


def contains(arguments: Mapping[str, JsonValue], part: Mapping[str, JsonValue]) -> bool:
    """True if the arguments have every name in `part` with the same value."""
    return all(
        name in arguments and same_json(arguments[name], value) for name, value in part.items()
    )


def same_json(a: object, b: object) -> bool:
    """True if two JSON values are equal; unlike in Python, `true` does not equal 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and contains(a, b)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_json, a, b))
    return a == b


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCall:
    """A call that a task expects; if `arguments` is None, any arguments match."""

    name: str
    arguments: Mapping[str, JsonValue] | None = None

    def __str__(self) -> str:
        return (
            self.name if self.arguments is None else f"{self.name} {unescaped_json(self.arguments)}"
        )


def expected_calls(text: str) -> tuple[ExpectedCall, ...]:
    """Return the calls in a task's `expected`: names separated by commas, or a JSON list of names
    and `{name, arguments}`.

    Raises ValueError for any other text; the message is the end of a sentence about the text.
    """
    try:
        items = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else [name.strip() for name in text.split(",")]
        )
    except (ValueError, RecursionError):
        raise ValueError("is not a JSON list.") from None
    calls = []
    for place, item in enumerate(items, 1):
        match item:
            case str(name) if name:
                calls.append(ExpectedCall(name=name))
            case {"name": str(name), **more} if name and not more:
                calls.append(ExpectedCall(name=name))
            case {"name": str(name), "arguments": dict(arguments), **more} if name and not more:
                calls.append(ExpectedCall(name=name, arguments=arguments))
            case "" if len(items) == 1:
                pass
            case _:
                raise ValueError(
                    f"has call {place} as {json.dumps(item)[:80]}, expected a name or {{name, arguments}}."
                )
    return tuple(calls)
