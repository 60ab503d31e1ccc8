"""Agents that come with Assay: `echo`, `solution`, and any command line as `cmd: …`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from assay.agents.solution import SOLUTION, SolutionAgent
from assay.agents.workspaces import OpenWorkspace, WorkingAgent, Workspaces, WorkspaceTrials
from assay.domain.programs import Agent
from assay.domain.sandbox import CommandEnd
from assay.domain.scenarios import Scenario, Step
from assay.ports import Provider

COMMAND: Final = "cmd:"


class EchoAgent:
    """Repeats the prompt and changes nothing, so that a scenario can be tried without an agent."""

    async def work(self, prompt: str, scenario: Scenario, workspace: OpenWorkspace) -> tuple[str, str]:
        return prompt, "done"


class CommandAgent:
    """A command line that works in the workspace; `$ASSAY_PROMPT` holds the prompt."""

    def __init__(self, command: str) -> None:
        self._command = command

    async def work(self, prompt: str, scenario: Scenario, workspace: OpenWorkspace) -> tuple[str, str]:
        result = await workspace.shell.run(self._command, seconds=60 * scenario.minutes)
        workspace.work.steps.append(Step(kind="command", text=self._command, seconds=result.seconds))
        if result.end is not CommandEnd.EXITED:
            return result.output, str(result.end)
        return result.output, f"exit code {result.exit_code}" if result.exit_code else "done"


def open_agent(program: Agent, workspaces: Workspaces, folder: Path) -> Provider | None:
    """Return the provider of one of Assay's own agents; None if the program names another agent.

    `folder` is the working folder, to which a scenario's folder is relative.
    """
    agent: WorkingAgent | None = None
    if program.target == "echo":
        agent = EchoAgent()
    elif program.target == SOLUTION:
        agent = SolutionAgent(folder)
    elif program.target.startswith(COMMAND):
        agent = CommandAgent(program.target.removeprefix(COMMAND).strip())
    return None if agent is None else WorkspaceTrials(agent, program, workspaces)
