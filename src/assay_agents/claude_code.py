"""Claude Code as an agent: it runs without a terminal, and its JSON output becomes the trajectory.

Each line of output is a JSON document: messages with text, tool calls and tool results, and finally
a `result` with turns, tokens and cost. A `result` may have the subtype `success` although
`is_error` is true, so both fields are read.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from assay.plugins import (
    PROMPT,
    AgentNeeds,
    CallFailed,
    CommandEnd,
    Fault,
    OpenWorkspace,
    Scenario,
    SettingsError,
    Step,
    Usage,
    Work,
)

PROGRAM: Final = "claude"
LARGEST_OUTPUT: Final = 8 << 20
"""Maximum bytes of output to keep; of longer output, the beginning and the end (with the result)
are kept.
"""

_FLAGS: Final = (
    "-p --output-format stream-json --verbose --dangerously-skip-permissions --strict-mcp-config"
)
_QUIET: Final = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
_ENDS: Final = {
    "success": "done",
    "error_max_turns": "turn limit",
    "error_max_budget_usd": "cost limit",
}


class ClaudeCode:
    """Runs `claude` in the workspace.

    Words after the agent's name are further options, such as `--model haiku`.

    A `--settings` file is read from the working folder and is read-only in the sandbox. Raises
    `SettingsError` if `claude` is not installed or the settings file does not exist.
    """

    def __init__(self, words: str, folder: Path) -> None:
        program, readable = _installed()
        try:
            options = shlex.split(words)
        except ValueError as error:
            raise SettingsError(
                "agent 'claude-code'", f"has options that cannot be read: {error}."
            ) from error
        options = [
            part
            for each in options
            for part in (each.split("=", 1) if each.startswith("--settings=") else [each])
        ]
        for place, option in enumerate(options[:-1]):
            if option == "--settings" and not options[place + 1].lstrip().startswith("{"):
                settings = (folder / options[place + 1]).resolve()
                if not settings.is_file():
                    raise SettingsError(
                        "agent 'claude-code'",
                        f"has the option --settings {settings}, which is not a file.",
                    )
                options[place + 1] = str(settings)
                readable.append(str(settings))
        # The prompt comes on standard input, because a prompt that begins with a hyphen would be
        # read as an option.
        self._command = (
            f'printf %s "${PROMPT}" | {shlex.join(program)} {_FLAGS} {shlex.join(options)}'
        )
        self.needs = AgentNeeds(provider="anthropic", readable=tuple(readable), environment=_QUIET)

    async def work(
        self, prompt: str, scenario: Scenario, workspace: OpenWorkspace
    ) -> tuple[str, str]:
        """Run the program; raises `CallFailed` if it does not start or its model calls fail."""
        result = await workspace.shell.run(
            self._command, seconds=60 * scenario.minutes, output_bytes=LARGEST_OUTPUT
        )
        outcome = read_output(result.output, workspace.work)
        if result.end is not CommandEnd.EXITED:
            return "", str(result.end)
        if outcome is None:
            if not workspace.work.steps:
                detail = f"claude printed no readable result (exit code {result.exit_code}): {result.output[-400:].strip()}"
                raise CallFailed("agent_not_started", detail, transient=False, fault=Fault.HARNESS)
            return "", f"no result (exit code {result.exit_code})"
        answer = str(outcome.get("result") or "")
        subtype = str(outcome.get("subtype") or "no subtype")
        end = _ENDS.get(subtype, subtype.replace("_", " "))
        if outcome.get("terminal_reason") == "api_error" or outcome.get("api_error_status"):
            work = workspace.work
            status = outcome.get("api_error_status")
            kind = f"http_{status}" if isinstance(status, int) else "connection"
            raise CallFailed(
                kind,
                f"claude: {answer[:400]}",
                transient=False,
                fault=Fault.PROVIDER,
                usage=work.usage,
                cost_usd=work.cost_usd,
            )
        return answer, "error" if end == "done" and outcome.get("is_error") else end


def read_output(output: str, work: Work) -> dict[str, Any] | None:
    """Add steps, tokens, cost and turns from the output of `claude` to the record; return the last
    `result` or None.

    Lines that are not JSON or have an unexpected form are skipped.
    """
    places: dict[str, int] = {}
    outcome: dict[str, Any] | None = None
    for event in _events(output):
        match event:
            case {"type": "system", "subtype": "init", "model": str(model)}:
                work.model = model
            case {"type": "assistant" | "user", "message": {"content": list(blocks)}}:
                for block in blocks:
                    _note(block, work.steps, places)
            case {"type": "result"}:
                outcome = event
    if outcome is not None:
        work.turns = _count(outcome.get("num_turns"))
        cost = outcome.get("total_cost_usd")
        known = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e6
        work.cost_usd = float(cost) if cost is not None and known else None
        match outcome.get("usage"):
            case dict(usage):
                read = [
                    _count(usage.get(f"{name}input_tokens"))
                    for name in ("", "cache_read_", "cache_creation_")
                ]
                total = None if read[0] is None else sum(count or 0 for count in read)
                work.usage = Usage(
                    input_tokens=total, output_tokens=_count(usage.get("output_tokens"))
                )
    return outcome


def _events(output: str) -> Iterator[dict[str, Any]]:
    for line in output.split("\n"):
        if line.startswith("{"):
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            yield event


def _note(block: object, steps: list[Step], places: dict[str, int]) -> None:
    """Add one block of a message as a step; a tool result is added to the step of its call."""
    match block:
        case {"type": "text", "text": str(text)}:
            steps.append(Step(kind="message", text=text))
        case {"type": "tool_use", "id": str(call), "name": str(name), "input": given}:
            places[call] = len(steps)
            steps.append(Step(kind="tool", tool=name, text=json.dumps(given, ensure_ascii=False)))
        case {"type": "tool_result", "tool_use_id": str(call), "content": content} if (
            call in places
        ):
            parts = content if isinstance(content, list) else [{"text": content}]
            result = "\n".join(
                part["text"]
                for part in parts
                if isinstance(part, dict) and isinstance(part.get("text"), str)
            )
            steps[places[call]] = replace(steps[places[call]], result=result)


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 40 else None


def _installed() -> tuple[list[str], list[str]]:
    place = shutil.which(PROGRAM)
    if place is None:
        raise SettingsError(
            "agent 'claude-code'",
            f"needs the program `{PROGRAM}`, which is not installed on this machine.",
            remedy="Install Claude Code, so that `claude --version` works, or choose another agent.",
        )
    program = Path(os.path.realpath(place))
    node = shutil.which("node")
    # npm's package, whose link the shell cannot follow
    if program.suffix in (".js", ".mjs", ".cjs") and node is not None:
        return [os.path.realpath(node), str(program)], [os.path.realpath(node), str(program.parent)]
    return [str(program)], [str(program)]
