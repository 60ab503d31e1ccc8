"""Agents that need no other program: `echo`, and any command line as `cmd: …`."""

from __future__ import annotations

import re
from pathlib import Path

from assay.agents.workspaces import AgentNeeds, OpenWorkspace
from assay.domain.sandbox import CommandEnd
from assay.domain.scenarios import Scenario, Step


class EchoAgent:
    """Repeats the prompt and changes no file, to try a scenario without an agent."""

    needs = AgentNeeds()

    def __init__(self, words: str = "", folder: Path = Path()) -> None:
        del words, folder

    async def work(
        self, prompt: str, scenario: Scenario, workspace: OpenWorkspace
    ) -> tuple[str, str]:
        return prompt, "done"


class CommandAgent:
    """Runs a command line in the workspace, with the prompt in the variable `$ASSAY_PROMPT`.

    A provider in brackets before the command is the provider whose models it uses: `cmd: [openai]
    ./agent.sh`. With `cmd: [openai/gpt-5] ./agent.sh`, it may use this model only.
    """

    def __init__(self, words: str, folder: Path = Path()) -> None:
        del folder
        provider = re.match(r"\[([a-z0-9_-]+(?:/[^\]\s]+)?)\]\s+", words)
        self.needs = AgentNeeds(provider=provider[1] if provider else "")
        self._command = words[provider.end() :].strip() if provider else words.strip()

    async def work(
        self, prompt: str, scenario: Scenario, workspace: OpenWorkspace
    ) -> tuple[str, str]:
        result = await workspace.shell.run(self._command, seconds=60 * scenario.minutes)
        workspace.work.steps.append(
            Step(kind="command", text=self._command, seconds=result.seconds)
        )
        if result.end is not CommandEnd.EXITED:
            return result.output, str(result.end)
        return result.output, f"exit code {result.exit_code}" if result.exit_code else "done"
