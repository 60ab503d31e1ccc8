"""Agents that come with Assay: `echo`, and any command line as `cmd: …`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from assay.agents.workspaces import ChooseSandbox, Work, WorkingAgent, WorkspaceTrials
from assay.domain.calls import ModelRequest
from assay.domain.programs import Agent
from assay.domain.sandbox import CommandEnd
from assay.domain.scenarios import Scenario, Step
from assay.ports import Provider, Shell

COMMAND: Final = "cmd:"


class EchoAgent:
    """Repeats the prompt and changes nothing, so that a scenario can be tried without an agent."""

    async def work(self, request: ModelRequest, scenario: Scenario, shell: Shell, work: Work) -> None:
        work.answer = "\n\n".join(message.content for message in request.messages)
        work.cost_usd = 0.0


class CommandAgent:
    """A command line that works in the workspace; `$ASSAY_PROMPT` holds the prompt."""

    def __init__(self, command: str) -> None:
        self._command = command

    async def work(self, request: ModelRequest, scenario: Scenario, shell: Shell, work: Work) -> None:
        result = await shell.run(self._command, seconds=60 * scenario.minutes)
        work.answer = result.output
        work.steps.append(Step(kind="command", text=self._command, seconds=result.seconds))
        if result.end is not CommandEnd.EXITED:
            work.end = str(result.end)
        elif result.exit_code:
            work.end = f"exit code {result.exit_code}"


def open_agent(program: Agent, *, choose: ChooseSandbox, base: Path, kept: Path) -> Provider | None:
    """Return the provider of one of Assay's own agents; None if the program names another agent."""
    agent: WorkingAgent | None = None
    if program.target == "echo":
        agent = EchoAgent()
    elif program.target.startswith(COMMAND):
        agent = CommandAgent(program.target.removeprefix(COMMAND).strip())
    return None if agent is None else WorkspaceTrials(agent, program, choose=choose, base=base, kept=kept)
