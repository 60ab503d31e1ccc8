"""Writes the prompt into a file of the workspace."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from assay.plugins import PROMPT, AgentNeeds

if TYPE_CHECKING:
    from assay.plugins import OpenWorkspace, Scenario


class Scribe:
    """Made once for each run, with the text after its name and the working folder."""

    needs = AgentNeeds(environment={"SCRIBE": "1"})

    def __init__(self, words: str, folder: Path) -> None:
        self._file = words.strip() or "done.txt"

    async def work(
        self, prompt: str, scenario: Scenario, workspace: OpenWorkspace
    ) -> tuple[str, str]:
        """Write the file by a command, because only commands run in the sandbox."""
        result = await workspace.shell.run(f'printf %s "${PROMPT}" > {shlex.quote(self._file)}')
        return f"Wrote {self._file}.", "done" if result.succeeded else "failed"
