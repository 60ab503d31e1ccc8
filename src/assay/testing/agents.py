"""Contract tests that every agent that works in workspaces must pass."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from assay.agents.kept import KeptWorkspaces
from assay.agents.opening import WORKSPACE_AGENTS
from assay.agents.workspaces import AgentNeeds, Workspaces, WorkspaceTrials
from assay.domain.calls import ModelRequest, Purpose, Role
from assay.domain.digest import bytes_digest
from assay.domain.model import DEFAULTS, of_program
from assay.domain.programs import Agent
from assay.domain.scenarios import Scenario, WorkspaceReport
from assay.domain.suite import Message, Scoring, Task
from assay.sandbox.shells.choice import sandbox_of, working_sandbox
from assay.scoring.workspace_grader import EVALUATORS

if TYPE_CHECKING:
    from assay.ports import ModelGate, Sandbox


class WorkspaceAgentContract:
    """Contract tests for one agent: inherit, and set `agent`, its name under
    `assay.workspace_agents`.

    The trials run in the first sandbox that works, or in the named one; `none` is a shell without a
    sandbox. An agent that asks models needs tests of its own.

    Attributes:
        words: text after the agent's name.
        prompt: a task that the agent can carry out in the folder with `files`.
    """

    agent: ClassVar[str]
    words: ClassVar[str] = ""
    prompt: ClassVar[str] = "Write the file done.txt."
    files: ClassVar[dict[str, str]] = {"README.md": "A folder.\n"}
    sandbox: ClassVar[str | None] = None

    def test_it_states_its_needs(self, tmp_path: Path) -> None:
        assert isinstance(WORKSPACE_AGENTS.load(self.agent)(self.words, tmp_path).needs, AgentNeeds)

    def test_it_works_and_its_trial_is_reported(self, tmp_path: Path) -> None:
        report = self._report(tmp_path, self.prompt)
        assert report.end.strip(), "an agent returns its last message and the reason why it ended"

    def test_odd_prompts_are_no_error(self, tmp_path: Path) -> None:
        for number, prompt in enumerate(
            ("", "--help", "'; exit 1; \"$(false)`", "Ünïcode \N{SNOWMAN}\n\n", "x" * 90_000)
        ):
            self._report(tmp_path / str(number), prompt)

    def _report(self, folder: Path, prompt: str) -> WorkspaceReport:
        async def choose() -> Sandbox:
            return sandbox_of(self.sandbox) if self.sandbox else await working_sandbox()

        def no_gate(provider: str, scenario: Scenario) -> ModelGate:
            raise AssertionError(
                f"this contract has no models from {provider}; test such an agent with your own server"
            )

        for name, text in self.files.items():
            (folder / "repo" / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / "repo" / name).write_text(text, "utf-8")
        digests = {name: bytes_digest((folder / "repo" / name).read_bytes()) for name in self.files}
        scenario = Scenario(folder=".", fixture="repo", files=digests, minutes=1.0)
        asked, scoring = (Message(role="user", content=prompt),), Scoring(method=EVALUATORS)
        task = Task(id="task", thing="task", prompt=asked, scoring=scoring, scenario=scenario)
        program = Agent(target=self.agent)
        made = WORKSPACE_AGENTS.load(self.agent)(self.words, folder)
        trials = WorkspaceTrials(
            made,
            program,
            Workspaces(
                choose=choose,
                base=folder,
                kept=KeptWorkspaces(folder / "kept", most_bytes=10**9),
                gate=no_gate,
            ),
        )
        purpose = Purpose(role=Role.CANDIDATE, task="task", trial=1)
        request = ModelRequest(
            model=of_program(program),
            messages=task.prompt,
            parameters=DEFAULTS,
            purpose=purpose,
            task=task,
        )
        report = WorkspaceReport.from_text(asyncio.run(trials.complete(request)).text)
        assert report is not None
        return report
