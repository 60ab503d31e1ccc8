"""Agent that applies a scenario's recorded solution, to prove that the scenario can be solved."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

from assay.agents.workspaces import ENVIRONMENT, AgentNeeds, OpenWorkspace
from assay.domain.failure import CallFailed, Fault
from assay.domain.scenarios import Scenario
from assay.domain.tools import ToolCall

SOLUTION: Final = "solution"
"""Name of the agent, and of the solution folder next to the fixture; other agents cannot see this folder."""


class SolutionAgent:
    """Copies the files of the scenario's folder `solution` to the workspace; an empty file deletes the file with its path."""

    needs = AgentNeeds()

    def __init__(self, words: str, folder: Path) -> None:
        del words
        self._folder = folder

    async def work(self, prompt: str, scenario: Scenario, workspace: OpenWorkspace) -> tuple[str, str]:
        """Apply the solution; raises `CallFailed` if the scenario has no solution."""
        solution = self._folder / scenario.folder / SOLUTION
        paths = sorted(path for path in solution.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        texts = {path.relative_to(solution).as_posix(): path.read_text("utf-8", "replace") for path in paths}
        if not texts:
            detail = f"This scenario has no recorded solution: {solution} has no files."
            raise CallFailed(ENVIRONMENT, detail, transient=False, fault=Fault.HARNESS)
        for path, text in texts.items():
            write = ToolCall(id=path, name="write_file", arguments={"path": path, "content": text})
            remove = ToolCall(id=path, name="run_command", arguments={"command": f"rm -f -- {shlex.quote(path)}"})
            await workspace.use(write if text else remove)
        return f"Applied {', '.join(texts)}.", "done"
