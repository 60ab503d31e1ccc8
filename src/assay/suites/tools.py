"""Tools in a suite: what a task offers to candidates, with the results of calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from assay.domain.digest import JsonValue
from assay.domain.errors import did_you_mean
from assay.domain.tools import CannedAnswer, CannedTool, Tool
from assay.domain.unescaped_json import unescaped_json
from assay.suites.grammar import (
    FREE_MAPPING,
    TEXT,
    Keys,
    Kind,
    ReadContext,
    Schema,
    key,
    list_of,
    read_free,
    read_text,
    whole,
)
from assay.suites.located_yaml import Value
from assay.suites.problems import Path

# Both protocols accept these names.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NO_ARGUMENTS: Final[Mapping[str, JsonValue]] = {"type": "object", "properties": {}}

TOOL_TURNS: Final = whole(1, 100)


def _read_result(value: Value, path: Path, context: ReadContext) -> str | None:
    """Read text, or any other value as JSON."""
    if isinstance(value, dict | list | bool):
        return unescaped_json(read_free(value, path, context))
    return read_text(value, path, context)


_RESULT: Final = Kind(_read_result, {})


class AnswerKeys(Keys):
    """One result of a tool."""

    arguments = key(
        FREE_MAPPING, "The result is for calls with at least these arguments; absent: for any call."
    )
    result = key(_RESULT, "Text, or a value that is sent as JSON.")
    error = key(TEXT, "In place of `result`: the message of a failed call.")


_ANSWERS: Final = list_of(Kind(AnswerKeys.read, AnswerKeys.schema()))


def _read_answers(
    value: Value, path: Path, context: ReadContext
) -> tuple[CannedAnswer, ...] | None:
    if not isinstance(value, list):
        text = _read_result(value, path, context)
        return None if text is None else (CannedAnswer(text=text),)
    answers = []
    for inner, keys in _ANSWERS.read(value, path, context) or ():
        text = keys.error if keys.result is None else keys.result
        if (keys.result is None) == (keys.error is None):
            context.report(inner, "must have either `result` or `error`.")
        elif text is not None:
            answers.append(
                CannedAnswer(
                    text=text, arguments=keys.arguments or {}, is_error=keys.result is None
                )
            )
    return tuple(answers)


class ToolKeys(Keys):
    """A tool that a candidate may call."""

    name = key(TEXT, required="Name the tool.")
    description = key(TEXT, "Tells the model what the tool does.")
    parameters = key(FREE_MAPPING, "The JSON Schema of the arguments, of type object.")
    answers = key(
        Kind(_read_answers, {}),
        "One result for every call, or a list of {arguments, result} and {arguments, error}.",
    )


def _read_tool(value: Value, path: Path, context: ReadContext) -> ToolKeys | None:
    return ToolKeys.read({"name": value} if isinstance(value, str) else value, path, context)


_ITEM: Final[Schema] = {"anyOf": [{"type": "string"}, ToolKeys.schema()]}
TOOLS: Final = list_of(Kind(_read_tool, _ITEM))


def offered_tools(
    entries: list[tuple[Path, ToolKeys]], context: ReadContext, known: Mapping[str, CannedTool]
) -> dict[str, CannedTool]:
    """Return a task's tools by name; keys that the task leaves out are taken from the suite's
    tools, `known`.
    """
    tools: dict[str, CannedTool] = {}
    for path, keys in entries:
        name, base = keys.name, known.get(keys.name or "")
        if name is None:
            continue
        parameters = keys.parameters or (_NO_ARGUMENTS if base is None else base.tool.parameters)
        answers = (
            keys.answers if keys.answers is not None else None if base is None else base.answers
        )
        if _NAME.fullmatch(name) is None:
            context.report(
                path, f"is named {name!r}, expected up to 64 letters, digits, `_` and `-`."
            )
        elif name in tools:
            context.report(path, f"is a second tool {name!r}.", "Keep one of them.")
        elif answers is None and "answers" not in keys.node:
            hint = did_you_mean(name, known)
            context.report(
                path,
                f"has no `answers`, and the suite has no tool {name!r}.{hint}",
                "Write the result of a call.",
            )
        elif parameters.get("type") != "object":
            context.report(
                (*path, "parameters"),
                "is not of type object.",
                "Write {type: object, properties: {...}}.",
            )
        else:
            description = keys.description or ("" if base is None else base.tool.description)
            tool = Tool(name=name, description=description, parameters=parameters)
            tools[name] = CannedTool(tool=tool, answers=answers or ())
    return tools
