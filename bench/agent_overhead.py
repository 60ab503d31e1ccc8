"""Overhead of an agent's trial: preparing, comparing and storing a workspace of 1,000 files, beyond
the agent's own time.

    python bench/agent_overhead.py [--files 1000] [--trials 10]

The floor is the start of two sandboxed shells that run `true`, from the same run. Promised: under
300 ms per trial.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from assay.agents.kept import KeptWorkspaces
from assay.agents.opening import open_agent
from assay.agents.workspaces import Workspaces
from assay.domain.calls import ModelRequest, Purpose, Role
from assay.domain.digest import bytes_digest
from assay.domain.model import Parameters, of_program
from assay.domain.programs import Agent
from assay.domain.sandbox import ShellRequest
from assay.domain.scenarios import CheckCommand, Scenario, WorkspaceReport
from assay.domain.suite import Message, Scoring, Task
from assay.ports import ModelGate
from assay.sandbox.shells.commands import SandboxedCommands

PROMISED_MS = 300.0


def no_gate(provider: str, scenario: Scenario) -> ModelGate:
    """Refuse models: the measured agent asks none."""
    raise NotImplementedError


async def measured(folder: Path, files: int, trials: int) -> tuple[list[float], list[float]]:
    """Return the overhead of each trial and the time of two empty shells, in milliseconds."""
    fixture = folder / "repo"
    for number in range(files):
        place = fixture / f"package{number % 20}" / f"module{number}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"value = {number}\n" * 40, "utf-8")
    digests = {
        path.relative_to(fixture).as_posix(): bytes_digest(path.read_bytes())
        for path in fixture.rglob("*.py")
    }
    scenario = Scenario(
        folder=".",
        fixture="repo",
        files=digests,
        commands=(CheckCommand(kind="test", command="true"),),
    )
    task = Task(id="s/L0", thing="s", scoring=Scoring(method="evaluators"), scenario=scenario)
    program = Agent(target="cmd: true")
    commands = SandboxedCommands()
    workspaces = Workspaces(
        choose=commands.choose,
        base=folder,
        kept=KeptWorkspaces(folder / "kept", most_bytes=10**9),
        gate=no_gate,
    )
    provider = open_agent(program, workspaces, folder)
    assert provider is not None
    request = ModelRequest(
        model=of_program(program),
        messages=(Message(role="user", content="go"),),
        parameters=Parameters(),
        purpose=Purpose(role=Role.CANDIDATE, task=task.id, trial=1, candidate="a"),
        task=task,
    )
    sandbox = await commands.choose()
    over, floor = [], []
    for _ in range(trials):
        began = time.perf_counter()
        for _ in range(2):
            async with sandbox.open(ShellRequest(workspace=str(fixture))) as shell:
                await shell.run("true")
        floor.append(1000 * (time.perf_counter() - began))
        began = time.perf_counter()
        reply = await provider.complete(request)
        total = time.perf_counter() - began
        report = WorkspaceReport.from_text(reply.text)
        assert report is not None
        assert not report.diff
        over.append(1000 * (total - sum(step.seconds for step in report.steps)))
    return over, floor


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        over, floor = asyncio.run(measured(Path(folder), options.files, options.trials))
    overhead = statistics.median(over)
    print(
        f"overhead per trial: median {overhead:.0f} ms, most {max(over):.0f} ms; two empty shells {statistics.median(floor):.0f} ms"
    )
    print(f"promised: under {PROMISED_MS:.0f} ms")
    return int(overhead >= PROMISED_MS)


if __name__ == "__main__":
    sys.exit(main())
