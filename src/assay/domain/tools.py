"""Tools that a model may call, its calls, and their results, independent of the wire format.

To continue a conversation after a `Reply` with `tool_calls`, add two messages to the request: a `ToolMessage` with role
`assistant`, the reply's text and its calls, and a `ToolMessage` with role `tool` and one result for each call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from assay.domain.digest import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that a model may call. `parameters` is the JSON Schema of its arguments, of type `object`."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's call of a tool, which may be one that it was not offered.

    `arguments` is None if the model did not write a JSON object; `malformed` is then the text that it wrote.
    """

    id: str
    name: str
    arguments: Mapping[str, JsonValue] | None
    malformed: str = ""

    @classmethod
    def written(cls, key: str, name: str, text: str) -> ToolCall:
        """Return the call with id `key` and the arguments in a text; an empty text means no arguments."""
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
        return self.malformed if self.arguments is None else json.dumps(dict(self.arguments), ensure_ascii=False)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of the call with this id. `is_error` is True if the call failed; `text` is then the reason."""

    call_id: str
    text: str
    is_error: bool = False
