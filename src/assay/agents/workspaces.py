"""Carry out an agent's trial: prepare a workspace, let the agent work in it, run the validation
commands, and report.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from assay.agents.files import (
    COMPILED,
    IGNORED,
    LARGEST_DIFF,
    MAX_PATHS,
    Snapshot,
    changed_paths,
    copy_fixture,
    open_up,
    parts_of_difference,
    remove,
    within,
)
from assay.agents.fresh_copies import AgentChanges, agent_changes, fresh_copy, restore_checks
from assay.agents.kept import KeptWorkspaces
from assay.agents.tools import TOOLS, use_tool
from assay.domain.calls import ModelRequest, Reply, Usage
from assay.domain.errors import AssayError
from assay.domain.failure import CallFailed, Fault
from assay.domain.programs import Agent
from assay.domain.sandbox import CommandEnd, GuardedChecks, ShellLimits, ShellRequest
from assay.domain.scenarios import CheckCommand, CheckOutcome, Scenario, Step, WorkspaceReport
from assay.domain.tools import ToolCall, ToolResult
from assay.ports import Allowance, ModelGate, Sandbox, Shell
from assay.scoring.regex import search_for
from assay.scoring.workspace_grader import heuristic_patterns

SHOWN_OUTPUT: Final = 20_000
LARGEST_STEPS: Final = 400_000

PROMPT: Final = "ASSAY_PROMPT"
"""Environment variable of the agent's shell that holds the prompt."""

LONGEST_PROMPT: Final = 100_000
"""Maximum bytes of a prompt; Linux allows 128 KiB in one variable."""

ChooseSandbox: TypeAlias = Callable[[], Awaitable[Sandbox]]
OpenGate: TypeAlias = Callable[[str, Scenario], ModelGate]
"""Returns the gate to a provider's models for one trial; raises `SettingsError` if it cannot be
used here.
"""

NOT_FOUND: Final = 127
"""Exit code of a shell whose command does not exist."""

ENVIRONMENT: Final = "environment"
"""Kind of failure that the workspace caused, not the candidate."""


@dataclass(slots=True)
class Work:
    """Record of an agent at work: its steps, its last message, and the reason why it ended.

    An agent that is not a model states here what it used, as far as it knows: tokens, cost, replies
    of the model (`turns`) and the model's name.
    """

    steps: list[Step] = field(default_factory=list)
    answer: str = ""
    end: str = "done"
    turns: int | None = None
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNeeds:
    """Needs of an agent that works in a sandbox by itself.

    Attributes:
        provider: the provider whose models it asks, or one model as `provider/name`; empty if it
            asks no provider.
        readable: files and folders of the host that its commands may read, under the same paths.
        environment: environment variables for its commands.
    """

    provider: str = ""
    readable: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


class OpenWorkspace:
    """A workspace in which an agent works; implements `ports.AgentWorkspace`."""

    tools = TOOLS

    def __init__(
        self,
        shell: Shell,
        scenario: Scenario,
        finishing: Callable[[Work], Awaitable[WorkspaceReport]],
        gate: ModelGate | None = None,
    ) -> None:
        self.shell = shell
        self.work = Work()
        self._scenario = scenario
        self._finishing = finishing
        self.gate = gate

    async def use(self, call: ToolCall, /) -> ToolResult:
        began = time.monotonic()
        result = await use_tool(call, self.shell, self._scenario)
        seconds = round(time.monotonic() - began, 3)
        self.work.steps.append(
            Step(kind="tool", tool=call.name, text=call.text, result=result.text, seconds=seconds)
        )
        return result

    def count(self) -> None:
        """Replace the tokens and cost that the agent states with those that the gate counted."""
        if self.gate is not None:
            spent = self.gate.spent
            self.work.usage = Usage(
                input_tokens=spent.input_tokens, output_tokens=spent.output_tokens
            )
            self.work.cost_usd = spent.cost_usd
            self.work.turns = spent.turns if self.work.turns is None else self.work.turns

    async def report(self, *, answer: str, end: str, turns: int | None = None) -> str:
        self.work.answer, self.work.end, self.work.turns = (
            answer,
            end,
            self.work.turns if turns is None else turns,
        )
        return (await self._finishing(self.work)).to_text()


_NOTHING: Final = AgentNeeds()


class Workspaces:
    """Prepares workspaces, at most one per processor at a time; implements `ports.WorkspaceSource`.

    Args:
        choose: returns the sandbox for all commands.
        base: the folder to which a scenario's folder is relative.
        kept: the folder of the workspaces.
        gate: opens an agent's gate to its models.
    """

    def __init__(
        self, *, choose: ChooseSandbox, base: Path, kept: KeptWorkspaces, gate: OpenGate
    ) -> None:
        self._choose = choose
        self._base = base
        self._kept = kept
        self.gate = gate
        self._turns: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    @asynccontextmanager
    async def open(
        self,
        scenario: Scenario,
        task: str,
        /,
        *,
        prompt: str = "",
        needs: AgentNeeds = _NOTHING,
        allowance: Allowance | None = None,
    ) -> AsyncIterator[OpenWorkspace]:
        """Yield a workspace with a copy of the fixture; calls through the agent's gate are reserved
        in the allowance, if any.

        Raises:
            CallFailed: the workspace could not be prepared, or the sandbox was lost.
        """
        async with (
            self._turn(),
            self._kept.place(task.replace("/", "-")) as place,
            AsyncExitStack() as stack,
        ):
            with _blaming_the_environment():
                fixture = self._base / scenario.folder / scenario.fixture
                sandbox = await self._choose()
                control, folder = (
                    place / "control" if scenario.baseline else fixture,
                    place / "workspace",
                )
                gate = self.gate(needs.provider, scenario) if needs.provider else None
                copied = await asyncio.to_thread(
                    _copy_unchanged, scenario, fixture, control if scenario.baseline else folder
                )
                if scenario.baseline:
                    await _warm_up(sandbox, scenario, control)
                    await asyncio.to_thread(shutil.copytree, control, folder, symlinks=True)
                # In the background, because the agent need not wait for it.
                base = asyncio.ensure_future(
                    asyncio.to_thread(Snapshot, control) if scenario.baseline else _known(copied)
                )
                stack.push_async_callback(asyncio.wait, [base])
                wanted = ShellRequest(
                    workspace=str(folder),
                    network=scenario.network,
                    readable=needs.readable,
                    environment={**needs.environment, PROMPT: prompt},
                    gateway=None
                    if gate is None
                    else await stack.enter_async_context(gate.open(allowance)),
                    limits=ShellLimits(seconds=60 * scenario.minutes),
                )
                shell = await stack.enter_async_context(sandbox.open(wanted))
            began = time.monotonic()

            async def finish(work: Work) -> WorkspaceReport:
                seconds = time.monotonic() - began
                with _blaming_the_environment():
                    before = await base
                    # The agent's shell ends before its files are read: a process that it left
                    # behind could exchange them for links.
                    await stack.aclose()
                    workspace.count()
                    await asyncio.to_thread(open_up, folder)
                    now = await asyncio.to_thread(Snapshot, folder)
                    changed = await asyncio.to_thread(changed_paths, before, now)
                    changes = agent_changes(scenario, before, now, folder, changed)
                    course = _Course(
                        sandbox=sandbox,
                        scenario=scenario,
                        source=control,
                        place=place / "validated",
                    )
                    outcomes = await course.outcomes(changes)
                    if any(outcome.exit_code == NOT_FOUND for outcome in outcomes):
                        _check_tools(outcomes, await course.outcomes(None))
                return await asyncio.to_thread(
                    _report, scenario, work, before, now, changes, outcomes, seconds
                )

            yield (workspace := OpenWorkspace(shell, scenario, finish, gate))

    def _turn(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._turns is None or self._turns[0] is not loop:
            self._turns = loop, asyncio.Semaphore(os.cpu_count() or 1)
        return self._turns[1]


class WorkingAgent(Protocol):
    """An agent that is not a model: it works on a prompt in a workspace by itself.

    It runs commands with `workspace.shell.run` and adds its steps to `workspace.work`. Files in the
    workspace may be links that the agent's commands made, so it must also read files with commands.
    """

    @property
    def needs(self) -> AgentNeeds: ...

    async def work(
        self, prompt: str, scenario: Scenario, workspace: OpenWorkspace
    ) -> tuple[str, str]:
        """Work until the task is done or the agent gives up; return its last message and the reason
        why it ended.
        """
        ...


class WorkspaceTrials:
    """Lets a `WorkingAgent` answer the requests of trials with a scenario; implements
    `ports.Provider`.
    """

    def __init__(self, agent: WorkingAgent, program: Agent, workspaces: Workspaces) -> None:
        self._agent = agent
        self._program = program
        self._workspaces = workspaces

    async def complete(self, request: ModelRequest, /) -> Reply:
        """Carry out one trial; the reply's text is the workspace report.

        Raises:
            CallFailed: the workspace could not be prepared, or the sandbox was lost.
        """
        return await self._carry_out(request, None)

    async def _carry_out(self, request: ModelRequest, allowance: Allowance | None) -> Reply:
        task = request.task
        if task is None or task.scenario is None:
            detail = (
                f"Agent {self._program.label!r} works in a workspace, and the task has no scenario."
            )
            raise CallFailed(ENVIRONMENT, detail, transient=False, fault=Fault.HARNESS)
        prompt = "\n\n".join(message.content for message in request.messages).replace("\0", "")
        if len(prompt.encode()) > LONGEST_PROMPT:
            detail = f"The prompt has {len(prompt):,} characters; the maximum for an agent is {LONGEST_PROMPT:,} bytes."
            raise CallFailed("prompt_too_long", detail, transient=False, fault=Fault.HARNESS)
        began = time.monotonic()
        opening = self._workspaces.open(
            task.scenario, task.id, prompt=prompt, needs=self._agent.needs, allowance=allowance
        )
        async with opening as workspace:
            work, gate = workspace.work, workspace.gate
            try:
                answer, end = await self._work(prompt, task.scenario, workspace)
                text = await workspace.report(answer=answer, end=end)
            except CallFailed as failed:
                workspace.count()
                if gate is not None and gate.spent.turns:  # these calls must be paid for
                    failed.usage, failed.cost_usd = work.usage, work.cost_usd
                raise
        return Reply(
            text=text,
            usage=work.usage,
            cost_usd=work.cost_usd,
            model_version=work.model and _clean(work.model),
            latency_s=time.monotonic() - began,
        )

    async def _work(
        self, prompt: str, scenario: Scenario, workspace: OpenWorkspace
    ) -> tuple[str, str]:
        """Let the agent work; if it reached a limit on model use, return this limit as the end,
        even if it then failed.
        """
        gate = workspace.gate
        if gate is None:
            return await self._agent.work(prompt, scenario, workspace)
        working = asyncio.ensure_future(self._agent.work(prompt, scenario, workspace))
        refusal = asyncio.ensure_future(gate.refusal())
        try:
            await asyncio.wait((working, refusal), return_when=asyncio.FIRST_COMPLETED)
            if refusal.done():
                # the run pauses, so the agent need not work on without its model
                raise refusal.result()
        finally:
            for task in (working, refusal):
                task.cancel()
            await asyncio.wait((working, refusal))
        try:
            answer, end = working.result()
        except CallFailed:
            if gate.end is None:
                raise
            return "", gate.end
        return answer, gate.end or end

    async def close(self) -> None:
        """Do nothing: every sandbox ends with its trial."""


class GatedTrials(WorkspaceTrials):
    """Lets an agent that reaches models through a gate answer; implements `ports.Provider` and
    `ports.SpendingProvider`.
    """

    async def complete_within(self, request: ModelRequest, allowance: Allowance, /) -> Reply:
        """Carry out one trial as `complete` does, with each call of the agent within the
        allowance.
        """
        return await self._carry_out(request, allowance)


async def _warm_up(sandbox: Sandbox, scenario: Scenario, control: Path) -> None:
    """Run the baseline commands in the copy that becomes the base of the diff; they may use the
    network.
    """
    if not scenario.baseline:
        return
    async with sandbox.open(
        ShellRequest(workspace=str(control), network=scenario.setup_network)
    ) as shell:
        for command in scenario.baseline:
            result = await shell.run(command)
            if not result.succeeded:
                output = result.output[-400:].strip()
                detail = f"The baseline command {command!r} failed before the agent began: {output}"
                raise CallFailed(ENVIRONMENT, detail, transient=False, fault=Fault.HARNESS)


@contextmanager
def _blaming_the_environment() -> Iterator[None]:
    try:
        yield
    except (OSError, shutil.Error, AssayError) as error:
        detail = f"The workspace could not be used: {error}"[:500]
        raise CallFailed(ENVIRONMENT, detail, transient=False, fault=Fault.HARNESS) from error


def _copy_unchanged(scenario: Scenario, fixture: Path, target: Path) -> Snapshot:
    """Copy the fixture; raises `CallFailed` if one of its files has changed since the run was
    planned.
    """
    target.mkdir(parents=True)
    digests, snapshot = copy_fixture(fixture, target)
    _check_unchanged(scenario, fixture, digests)
    return snapshot


def _check_unchanged(scenario: Scenario, fixture: Path, digests: Mapping[str, str]) -> None:
    """Raise `CallFailed` if the digests of a fixture's files differ from those when the run was
    planned.
    """
    for name, planned in scenario.files.items():
        if not IGNORED.isdisjoint(name.split("/")) or name.endswith(COMPILED):
            continue
        if digests.get(name) != planned:
            detail = f"{fixture / name} has changed since this run was planned. Restore it, or start a new run."
            raise CallFailed("fixture_changed", detail, transient=False, fault=Fault.HARNESS)


async def _known(snapshot: Snapshot) -> Snapshot:
    return snapshot


def _check_tools(outcomes: Sequence[CheckOutcome], untouched: Sequence[CheckOutcome]) -> None:
    """Raise `CallFailed` if a command's program is missing, even without the agent's changes.

    Exit code 127 alone shows nothing, because an agent could cause it to turn a low score into no
    score.
    """
    for outcome, before in zip(outcomes, untouched, strict=True):
        # A path is no tool: the agent may have had to write that program.
        missing = re.search(r"(?:^|\s)([^\s:/]+): (?:command )?not found", before.output)
        if outcome.exit_code == before.exit_code == NOT_FOUND and missing is not None:
            detail = f"The command {outcome.command!r} needs {missing[1]!r}, which this machine or sandbox does not have."
            raise CallFailed(ENVIRONMENT, detail, transient=False, fault=Fault.HARNESS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Course:
    """The validation of one trial: each run of the commands works on a fresh copy of the fixture.

    Attributes:
        source: the fixture, or its copy in which the baseline commands ran.
        place: the folder of the copy, which exists only while the commands run.
    """

    sandbox: Sandbox
    scenario: Scenario
    source: Path
    place: Path

    async def outcomes(self, changes: AgentChanges | None) -> tuple[CheckOutcome, ...]:
        """Run the validation commands in order, in a separate shell, on a copy with these changes
        or on an unchanged one.
        """
        scenario = self.scenario
        if not scenario.commands:
            return ()
        try:
            await asyncio.to_thread(self._copy, changes)
            outcomes: list[CheckOutcome] = []
            request = ShellRequest(
                workspace=str(self.place),
                network=scenario.setup_network,
                background=False,
                checks=GuardedChecks.of(scenario.protected_files, scenario.files),
            )
            async with self.sandbox.open(request) as shell:
                for check in scenario.commands:
                    if outcomes:
                        applied = changes.applied if changes is not None else ()
                        await asyncio.to_thread(
                            restore_checks, scenario, self.source, self.place, applied
                        )
                    outcomes.append(await _outcome(shell, check))
            return tuple(outcomes)
        finally:
            await asyncio.to_thread(remove, self.place)

    def _copy(self, changes: AgentChanges | None) -> None:
        prepared = bool(self.scenario.baseline)
        digests = fresh_copy(self.source, self.place, changes, prepared=prepared)
        if not prepared:
            _check_unchanged(self.scenario, self.source, digests)


async def _outcome(shell: Shell, check: CheckCommand) -> CheckOutcome:
    """Run a validation command; raises `CallFailed` if the sandbox was lost."""
    result = await shell.run(check.command, seconds=check.seconds, output_bytes=SHOWN_OUTPUT)
    if result.end is CommandEnd.SHELL_LOST:
        raise CallFailed(
            ENVIRONMENT, f"The sandbox was lost during {check.command!r}.", transient=False
        )
    return CheckOutcome(
        kind=check.kind,
        command=check.command,
        exit_code=result.exit_code,
        end=str(result.end),
        seconds=round(result.seconds, 3),
        output=_clean(result.output),
    )


def _report(
    scenario: Scenario,
    work: Work,
    base: Snapshot,
    now: Snapshot,
    changes: AgentChanges,
    outcomes: tuple[CheckOutcome, ...],
    seconds: float,
) -> WorkspaceReport:
    # Protected files first, because a cut must not hide that they were changed.
    parts = parts_of_difference(base, now, changes.changed, scenario.protected_files)
    cut = {"diff": sum(map(len, parts)) > LARGEST_DIFF, "paths": len(now.sizes) > MAX_PATHS}
    steps, cut["steps"] = _within(work.steps)
    return WorkspaceReport(
        answer=_clean(work.answer),
        end=_clean(work.end),
        turns=work.turns,
        diff=_clean(within(parts)),
        paths=tuple(map(_clean, sorted(now.sizes)[:MAX_PATHS])),
        files=now.kept(scenario.keep),
        base=base.kept(scenario.keep),
        matches={text: _holders(text, base, now) for text in scenario.search}
        | {
            name: list(_matching(now, *where))
            for name, where in heuristic_patterns(scenario).items()
        },
        outcomes=outcomes,
        violations=tuple(map(_clean, changes.sentences)),
        steps=steps,
        cut=tuple(name for name, is_cut in cut.items() if is_cut),
        seconds=round(seconds, 3),
    )


def _holders(text: str, base: Snapshot, now: Snapshot) -> list[str]:
    """Return the files that contain a text; a file that became unreadable or too large counts with
    its earlier content.
    """
    contents = {path: now.texts.get(path, base.texts.get(path, "")) for path in now.sizes}
    return [path for path, content in contents.items() if text in content]


def _matching(now: Snapshot, paths: str, pattern: str) -> Iterator[str]:
    """Yield the first path that fits `paths` and whose text matches `pattern`; nothing if the
    search takes too long.
    """
    holds, paths = search_for(pattern), paths.replace("**/", "*")
    with suppress(TimeoutError):
        yield from islice(
            (path for path, text in now.texts.items() if fnmatchcase(path, paths) and holds(text)),
            1,
        )


def _within(steps: Sequence[Step]) -> tuple[tuple[Step, ...], bool]:
    """Return all steps, and True if each was cut to an equal share of the limit because together
    they exceed it.
    """
    if sum(len(step.text) + len(step.result) for step in steps) <= LARGEST_STEPS:
        return tuple(steps), False
    share = LARGEST_STEPS // (2 * len(steps))
    return tuple(
        replace(step, text=step.text[:share], result=step.result[:share]) for step in steps
    ), True


def _clean(text: str) -> str:
    return text.replace("\0", "\\0").encode("utf-8", "replace").decode("utf-8")
