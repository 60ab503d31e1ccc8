"""Tools that a model can call in a workspace. Each tool runs as a command inside the sandbox."""

from __future__ import annotations

import base64
import re
import shlex
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from assay.domain.sandbox import CommandEnd
from assay.domain.scenarios import Scenario
from assay.domain.tools import Tool, ToolCall, ToolResult
from assay.ports import Shell

COMMAND_S: Final = 60.0
LONGEST_RESULT: Final = 30_000
"""Maximum bytes of a tool result; the middle of a longer result is left out."""

_CHUNK: Final = 60_000  # bytes of base64 in one command; Linux allows 128 KiB in one argument
_LARGEST: Final = 4 << 20
_NO_ANSWER: Final = "Nobody can answer that. Use your best judgement."


def _tool(name: str, description: str, parameters: Mapping[str, str]) -> Tool:
    """Return a tool with text parameters; a final `?` makes a parameter optional."""
    properties: dict[str, Any] = {
        key: {"type": "string", "description": text} for key, text in parameters.items()
    }
    required: list[Any] = [key for key, text in parameters.items() if not text.endswith("?")]
    return Tool(
        name=name,
        description=description.format(seconds=COMMAND_S),
        parameters={
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
    )


TOOLS: Final = tuple(
    _tool(name, **row)
    for name, row in tomllib.loads((files(__package__) / "tools.toml").read_text("utf-8")).items()
)


async def use_tool(call: ToolCall, shell: Shell, scenario: Scenario) -> ToolResult:
    """Execute a model's tool call; an invalid call returns an error message for the model."""
    tool = next((tool for tool in TOOLS if tool.name == call.name), None)
    if tool is None:
        return _failed(
            call,
            f"There is no tool {call.name!r}. The tools are: {', '.join(t.name for t in TOOLS)}.",
        )
    given = call.arguments
    if given is None:
        return _failed(call, "The arguments are not a JSON object.")
    properties: Any = tool.parameters["properties"]
    required: Any = tool.parameters["required"]
    wrong = [name for name in required if name not in given]
    wrong += [
        name
        for name, value in given.items()
        if name not in properties or not isinstance(value, str)
    ]
    if wrong:
        return _failed(
            call, f"These arguments are missing, unknown or not text: {', '.join(wrong)}."
        )
    texts: dict[str, str] = {name: str(value).replace("\0", "") for name, value in given.items()}
    path = shlex.quote(f"./{texts.get('path') or '.'}".replace(".//", "/"))
    match call.name:
        case "ask_user":
            return ToolResult(call_id=call.id, text=answer_to(texts["question"], scenario.answers))
        case "read_file":
            return await _ran(call, shell, f"cat -- {path}")
        case "write_file":
            return await write_file(call, shell, path, texts["content"].encode("utf-8", "replace"))
        case "edit_file":
            return await _edited(call, shell, path, texts["old"], texts["new"])
        case "list_directory":
            command = f"find {path} -type d \\( -name .git -o -name node_modules \\) -prune -o -type f -print | sort | head -n 1000"
            return await _ran(call, shell, command)
        case "search":
            return await _ran(
                call,
                shell,
                f"grep -rnIE -e {shlex.quote(texts['pattern'])} -- {path} | head -n 300",
            )
        case _:
            return await _ran(call, shell, texts["command"])


def answer_to(question: str, answers: Mapping[str, str]) -> str:
    """Return the oracle's answer to the same question, otherwise to a key whose words the question
    contains.
    """
    wanted = _plain(question)
    for known, answer in answers.items():
        if _plain(known) == wanted:
            return answer
    return next(
        (answer for known, answer in answers.items() if _plain(known) in wanted), _NO_ANSWER
    )


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w]|_", " ", text).casefold().split())


async def _ran(call: ToolCall, shell: Shell, command: str) -> ToolResult:
    result = await shell.run(command, seconds=COMMAND_S, output_bytes=LONGEST_RESULT)
    if result.succeeded:
        return ToolResult(call_id=call.id, text=result.output or "(no output)")
    ended = (
        f"exit code {result.exit_code}"
        if result.end is CommandEnd.EXITED
        else str(result.end).replace("_", " ")
    )
    return _failed(call, f"{result.output}\n[{ended}]".strip())


async def write_file(call: ToolCall, shell: Shell, path: str, content: bytes) -> ToolResult:
    """Write a file and the folders above it; `path` is quoted for the shell."""
    coded = base64.b64encode(content).decode()
    if len(coded) > _LARGEST:
        return _failed(
            call, f"The content is too long; a file may have {_LARGEST // 4 * 3:,} bytes."
        )
    mode = ">"
    for start in range(0, len(coded) or 1, _CHUNK):
        part = coded[start : start + _CHUNK]
        folder = f'mkdir -p -- "$(dirname -- {path})" && ' if mode == ">" else ""
        result = await _ran(
            call, shell, f"{folder}printf %s {shlex.quote(part)} | base64 -d {mode} {path}"
        )
        if result.is_error:
            return result
        mode = ">>"
    return ToolResult(call_id=call.id, text="written")


async def _edited(call: ToolCall, shell: Shell, path: str, old: str, new: str) -> ToolResult:
    read = await shell.run(f"base64 -w0 -- {path}", seconds=COMMAND_S, output_bytes=_LARGEST)
    if not read.succeeded or read.output_bytes > _LARGEST:
        return _failed(
            call, read.output[:500] if not read.succeeded else "The file is too large to edit."
        )
    content = base64.b64decode(read.output).decode("utf-8", "replace")
    if content.count(old) != 1 or not old:
        return _failed(
            call,
            f"`old` occurs {content.count(old) if old else 0} times; it must occur exactly once.",
        )
    return await write_file(call, shell, path, content.replace(old, new).encode("utf-8", "replace"))


def _failed(call: ToolCall, problem: str) -> ToolResult:
    return ToolResult(call_id=call.id, text=problem, is_error=True)
