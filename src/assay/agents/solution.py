"""Agent that applies a scenario's recorded solution, to prove that the scenario can be solved."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Final

from assay.agents.tools import write_file
from assay.agents.workspaces import ENVIRONMENT, AgentNeeds, OpenWorkspace
from assay.domain.failure import CallFailed, Fault
from assay.domain.scenarios import Scenario, Step
from assay.domain.tools import ToolCall, ToolResult

SOLUTION: Final = "solution"
"""Name of the agent, and of the solution folder next to the fixture; other agents cannot see this
folder.
"""


class SolutionAgent:
    """Copies the files of the scenario's folder `solution` to the workspace; an empty file deletes
    the file with its path.
    """

    needs = AgentNeeds()

    def __init__(self, words: str, folder: Path) -> None:
        del words
        self._folder = folder

    async def work(
        self, prompt: str, scenario: Scenario, workspace: OpenWorkspace
    ) -> tuple[str, str]:
        """Apply the solution; raises `CallFailed` if the scenario has no solution."""
        solution = self._folder / scenario.folder / SOLUTION
        paths = sorted(
            path
            for path in solution.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        )
        contents = {path.relative_to(solution).as_posix(): path.read_bytes() for path in paths}
        if not contents:
            raise _failure(f"This scenario has no recorded solution: {solution} has no files.")
        for path, content in contents.items():
            result = await _apply(path, content, workspace)
            if result.is_error:
                raise _failure(f"The solution's file {path} could not be applied: {result.text}")
            if os.access(solution / path, os.X_OK):
                await workspace.shell.run(f"chmod +x -- {shlex.quote(path)}")
        return f"Applied {', '.join(contents)}.", "done"


async def _apply(path: str, content: bytes, workspace: OpenWorkspace) -> ToolResult:
    """Write a file, or remove it if its content is empty; a file that is not text appears in the
    steps with its size.
    """
    if not content:
        command = f"rm -f -- {shlex.quote(path)}"
        return await workspace.use(
            ToolCall(id=path, name="run_command", arguments={"command": command})
        )
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" not in text:
        return await workspace.use(
            ToolCall(id=path, name="write_file", arguments={"path": path, "content": text})
        )
    call = ToolCall(id=path, name="write_file", arguments={"path": path, "bytes": len(content)})
    result = await write_file(call, workspace.shell, shlex.quote(f"./{path}"), content)
    workspace.work.steps.append(
        Step(kind="tool", tool=call.name, text=call.text, result=result.text)
    )
    return result


def _failure(detail: str) -> CallFailed:
    return CallFailed(ENVIRONMENT, detail, transient=False, fault=Fault.HARNESS)
