"""Protocols that the engine calls and that other packages implement.

Code above the store uses the store's classes directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from assay.domain.agent_limits import Spent
    from assay.domain.budget import Booking, Grant, Reservation
    from assay.domain.calls import ModelRequest, Reply
    from assay.domain.failure import CallFailed
    from assay.domain.identifiers import RunId, TrialKey
    from assay.domain.isolation import IsolatedAnswer, IsolatedRequest
    from assay.domain.jobs import (
        BatchJob,
        BatchStatus,
        JobRequest,
        JobStage,
        ParkedTrial,
        RequestKey,
    )
    from assay.domain.lifecycle import RunState
    from assay.domain.model import ModelSpec
    from assay.domain.pages import PageAnswer, PageRequest
    from assay.domain.run import ClaimedTrial, Entry
    from assay.domain.sandbox import CommandRequest, CommandResult, Gateway, ShellRequest
    from assay.domain.scenarios import Scenario
    from assay.domain.tools import Tool, ToolCall, ToolResult


class Provider(Protocol):
    """Sends requests to models.

    Each call makes a single attempt, because the engine handles retries.

    Requests with `tools` go only to providers with the attribute `calls_tools = True`; for others
    they fail as `no_tools`.
    """

    async def complete(self, request: ModelRequest, /) -> Reply:
        """Return the model's answer; raises `CallFailed` for any other outcome, including an empty
        answer.
        """
        ...

    async def close(self) -> None:
        """Release connections. Calling it twice is safe."""
        ...


class Allowance(Protocol):
    """The rest of a run's budget, for providers that call models by themselves."""

    def call(
        self, model: ModelSpec, /, *, input_tokens: int, output_tokens: int
    ) -> AbstractAsyncContextManager[Booking]:
        """Reserve the cost of a call with at most these tokens, and book its actual cost at the end
        of the context.

        Raises `CallFailed` before the call if the budget does not cover it or the price is unknown.
        """
        ...


@runtime_checkable
class SpendingProvider(Protocol):
    """A provider whose answer takes several calls of models, each of which is reserved in the run's
    budget by itself.
    """

    async def complete_within(self, request: ModelRequest, allowance: Allowance, /) -> Reply:
        """Return the answer as `Provider.complete` does; raises `CallFailed` of kind `budget` if
        the budget is spent.
        """
        ...


class ModelDirectory(Protocol):
    """Looks up each model's provider, price and context size."""

    def provider(self, model: ModelSpec, /) -> Provider: ...

    def batches(self, model: ModelSpec, /) -> BatchApi | None:
        """Return the model's batch API; None if it has none."""
        ...

    def cost_usd(
        self, model: ModelSpec, /, *, input_tokens: int, output_tokens: int
    ) -> float | None:
        """Return the price of a call in US dollars; None if unknown."""
        ...

    def context_tokens(self, model: ModelSpec, /) -> int | None:
        """Return the size of the model's context in tokens; None if unknown."""
        ...


class NeverAnswered(Exception):
    """Raised for a batch request that the provider neither executed nor charged, so that it can be
    sent again.
    """


class BatchApi(Protocol):
    """A provider's batch API, which answers files of requests within a day.

    Each method makes a single attempt.

    `most_requests` and `most_bytes` are the limits of one batch. `share` is the price of a batch
    request divided by that of a call.
    """

    place: str
    most_requests: int
    most_bytes: int
    share: float

    def line(self, custom_id: str, request: ModelRequest, /) -> bytes:
        """Encode a request as one line of a batch file."""
        ...

    def reply(self, request: ModelRequest, line: Mapping[str, object], habits: str, /) -> Reply:
        """Decode one line of results; raises `CallFailed` for a failed request, `NeverAnswered` for
        one that was not executed.
        """
        ...

    def habits(self, model: ModelSpec, /) -> str:
        """Return the format of requests to a model, which is stored with each batch job."""
        ...

    async def prepare(self, path: str, token: str, /) -> str:
        """Upload a batch file unless it has been uploaded before, and return a mark by which `find`
        identifies the batch.
        """
        ...

    async def find(self, path: str, token: str, mark: str, requests: int, /) -> str | None:
        """Return the id of the batch with this mark, or None; raises `CallFailed` if the provider
        cannot tell yet.
        """
        ...

    async def create(self, path: str, token: str, mark: str, /) -> str:
        """Create a batch and return its id.

        After a failure with `charged`, the batch may exist nevertheless.
        """
        ...

    async def look(self, remote_id: str, /) -> BatchStatus:
        """Return the state of a batch."""
        ...

    async def fetch(self, remote_id: str, status: BatchStatus, beside: str, /) -> tuple[str, ...]:
        """Download the answers and errors of an ended batch to files of lines named after
        `beside`.
        """
        ...

    async def cancel(self, remote_id: str, /) -> None:
        """Ask the provider to cancel a batch. Has no effect on a batch that has ended."""
        ...


class Workers(Protocol):
    """Calls named pure functions in child processes, with limits on time, memory and output
    length.
    """

    async def call(self, request: IsolatedRequest, /) -> IsolatedAnswer:
        """Call a function and return its value, or the reason for a failure.

        The function cannot harm this process.
        """
        ...

    async def close(self) -> None:
        """End the child processes. Calling it twice is safe."""
        ...


class Shell(Protocol):
    """Runs commands in one sandbox, one at a time.

    Files outlive a command, variables do not; see `ShellRequest.background`.
    """

    async def run(
        self,
        command: str,
        *,
        seconds: float | None = None,
        folder: str = "",
        output_bytes: int | None = None,
    ) -> CommandResult:
        """Run a command with `sh -c` in a folder below the workspace; return its exit code, output
        or other outcome.
        """
        ...


class Sandbox(Protocol):
    """Runs untrusted commands in isolation."""

    @property
    def name(self) -> str: ...

    def open(self, request: ShellRequest, /) -> AbstractAsyncContextManager[Shell]:
        """Yield a shell in a workspace and end all of its processes afterwards; raises
        `SandboxError`.
        """
        ...


class CommandRunner(Protocol):
    """Runs single commands, each in a separate workspace."""

    async def run(self, request: CommandRequest, /) -> CommandResult:
        """Run a command in a workspace with these files.

        The result describes every outcome, including failures.
        """
        ...


class ModelGate(Protocol):
    """Lets the commands of one trial reach the models of one provider, and counts what they use."""

    @property
    def end(self) -> str | None:
        """The limit that the calls have reached; None if they are within all limits."""
        ...

    @property
    def spent(self) -> Spent: ...

    async def refusal(self) -> CallFailed:
        """Wait until the budget refuses a call, and return the reason."""
        ...

    def open(self, allowance: Allowance | None = None, /) -> AbstractAsyncContextManager[Gateway]:
        """Listen until the end of the context; with an allowance, each call is reserved in it
        before it is sent.
        """
        ...


class AgentWorkspace(Protocol):
    """Sandboxed copy of a scenario's repository, in which a model works by calling tools."""

    @property
    def tools(self) -> tuple[Tool, ...]: ...

    async def use(self, call: ToolCall, /) -> ToolResult:
        """Execute a tool call; an invalid call returns an error message for the model."""
        ...

    async def report(self, *, answer: str, end: str, turns: int | None = None) -> str:
        """End all processes, run the validation commands, and return the report (see
        `domain.scenarios`) as text.
        """
        ...


class WorkspaceSource(Protocol):
    """Prepares workspaces, a limited number at a time."""

    def open(self, scenario: Scenario, task: str, /) -> AbstractAsyncContextManager[AgentWorkspace]:
        """Yield a workspace; raises `CallFailed` if it cannot be prepared."""
        ...


class Pages(Protocol):
    """Renders web pages that models wrote, without any network access."""

    async def shoot(self, request: PageRequest, /) -> PageAnswer:
        """Render a page and return a picture of each view, or the reason for a failure.

        The page cannot harm this process.
        """
        ...

    async def close(self) -> None:
        """Stop the browser. Calling it twice is safe."""
        ...


class Clock(Protocol):
    """Clock that tests can control."""

    def now(self) -> str:
        """Return the time as ISO 8601 in UTC with milliseconds and `Z`."""
        ...

    def monotonic(self) -> float:
        """Return the seconds of a clock that never goes backwards."""
        ...

    async def sleep(self, seconds: float, /) -> None: ...


class Ledger(Protocol):
    """Records model calls and their costs. Each method returns only after its record is on disk."""

    async def record(self, entry: Entry, /) -> None:
        """Commit an entry. Entries that wait at the same time are committed together."""
        ...

    async def reserve(self, run: RunId, reservation: Reservation, /) -> Grant:
        """Reserve the cost of a call if the run's budget allows the call under the rule in
        `domain.budget`.

        Reservations are atomic across processes. Those of a killed process are booked as spent.
        """
        ...

    async def settle(self, run: RunId, reservation: Reservation, spent_usd: float, /) -> None:
        """Replace a reservation with the amount that was actually spent."""
        ...


class Jobs(Protocol):
    """Batch jobs at providers and the trials that wait for them; the store documents each
    method.
    """

    def digest(self, request: ModelRequest, /) -> str: ...
    def plan(
        self,
        run: RunId,
        /,
        *,
        token: str,
        stage: JobStage,
        place: str,
        model: str,
        base_url: str | None,
        habits: str,
    ) -> int: ...
    def claim(self, run: RunId, trials: Sequence[TrialKey], /) -> Sequence[ClaimedTrial]: ...
    def requests_of(self, trials: Sequence[TrialKey], /) -> tuple[JobRequest, ...]: ...
    def structuring(self, run: RunId, /) -> dict[str, RequestKey]: ...
    def heard(self, trials: Sequence[TrialKey], /) -> Mapping[tuple[int, str], Sequence[Reply]]: ...
    def park(
        self, run: RunId, trials: Sequence[ParkedTrial], /, *, void: Iterable[RequestKey] = ()
    ) -> frozenset[TrialKey]: ...
    def trials_of(self, job: int, /) -> tuple[TrialKey, ...]: ...
    def stranded(self, run: RunId, /) -> tuple[TrialKey, ...]: ...
    def of_runs(
        self, runs: Sequence[RunId] = (), /, *, only_open: bool = False
    ) -> tuple[BatchJob, ...]: ...
    def hold(self, job: int, /) -> BatchJob | None: ...
    def let_go(self, job: int, /) -> None: ...
    def note(self, job: int, /, **changes: object) -> None: ...
    def drop(self, job: int, /) -> None: ...
    def finish(self, job: int, /, *, answered: Collection[int]) -> bool: ...
    def void_dead(self, run: RunId, /) -> None: ...
    def retry_failed(self, run: RunId, /) -> None: ...
    def rest(self, run: RunId, /) -> RunState: ...


class TrialJournal(Ledger, Protocol):
    """Records the progress of trials, and finds earlier results that can be reused."""

    def structured(self, request: ModelRequest, /) -> str | None:
        """Return the structuring model's stored reply to the same request in any run; None if the
        store has no such reply.
        """
        ...


class Journal(TrialJournal, Protocol):
    """Hands out the trials of a run and records their results.

    A claim is valid until the process that opened the journal ends; it has no time limit.
    """

    def begin(self, run: RunId, *, retry_failed: bool) -> None:
        """Mark the run as running and release trials of ended processes; with `retry_failed`, also
        release failed trials.
        """
        ...

    def state_of(self, run: RunId, /) -> RunState:
        """Return the run's state.

        The engine stops starting trials when it is `PAUSED` or `CANCELLED`.
        """
        ...

    def set_state(self, run: RunId, state: RunState, /) -> None:
        """Set the run's state.

        `FINISHED` takes effect only if no trial of the run is pending or claimed.
        """
        ...

    def leave_paused(self, run: RunId, /) -> None:
        """Record that this process stops executing the run, and pause the run unless another
        process goes on.
        """
        ...

    def claim(self, run: RunId, /, *, limit: int) -> Sequence[ClaimedTrial]:
        """Claim up to `limit` pending trials of the run in the order of the plan; empty if no trial
        is pending.
        """
        ...

    async def record_together(self, entries: Sequence[Entry], /) -> None:
        """Commit entries in one transaction, in this order; after an error, no entry is stored."""
        ...

    def release(self, trials: Iterable[TrialKey], /) -> None:
        """Release claimed trials and restore the state that they had before the claim."""
        ...
