"""Protocols that others implement for the engine. Code above the store uses the store's own classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractAsyncContextManager

    from assay.domain.calls import ModelRequest, Reply
    from assay.domain.identifiers import RunId, TrialKey
    from assay.domain.isolation import IsolatedAnswer, IsolatedRequest
    from assay.domain.lifecycle import RunState
    from assay.domain.model import ModelSpec
    from assay.domain.pages import PageAnswer, PageRequest
    from assay.domain.run import ClaimedTrial, Entry
    from assay.domain.sandbox import CommandRequest, CommandResult, ShellRequest


class Provider(Protocol):
    """Asks models over one wire protocol. One call is one attempt; the engine does the retries."""

    async def complete(self, request: ModelRequest, /) -> Reply:
        """Return the model's answer; raise `CallFailed` for any other outcome, including an empty answer."""
        ...

    async def close(self) -> None:
        """Release connections; safe to call twice."""
        ...


class ModelDirectory(Protocol):
    """Knows the provider, the price and the context size of each model."""

    def provider(self, model: ModelSpec, /) -> Provider: ...

    def cost_usd(self, model: ModelSpec, /, *, input_tokens: int, output_tokens: int) -> float | None:
        """Return the price of a call, or None if it is unknown."""
        ...

    def context_tokens(self, model: ModelSpec, /) -> int | None:
        """Return how many tokens fit into the model's context, or None if that is unknown."""
        ...


class Workers(Protocol):
    """Call named pure functions in child processes, under limits of time, memory and output length."""

    async def call(self, request: IsolatedRequest, /) -> IsolatedAnswer:
        """Return the function's value, or the reason why there is none; the function cannot harm the caller."""
        ...

    async def close(self) -> None:
        """End the child processes; safe to call twice."""
        ...


class Shell(Protocol):
    """Runs commands in one sandbox, one at a time. Files and processes outlive a command; variables do not."""

    async def run(
        self, command: str, *, seconds: float | None = None, folder: str = "", output_bytes: int | None = None
    ) -> CommandResult:
        """Run a command by `sh -c` in a folder below the workspace, and return how it ended."""
        ...


class Sandbox(Protocol):
    """A confined place for commands that may be hostile."""

    @property
    def name(self) -> str: ...

    def open(self, request: ShellRequest, /) -> AbstractAsyncContextManager[Shell]:
        """Yield a shell over a workspace; all of its processes are gone afterwards. Raises SandboxError."""
        ...


class CommandRunner(Protocol):
    """Runs single commands, each in its own workspace."""

    async def run(self, request: CommandRequest, /) -> CommandResult:
        """Run a command over its files; the result reports every outcome, failures included."""
        ...


class Pages(Protocol):
    """Render web pages that models wrote, without any network access."""

    async def shoot(self, request: PageRequest, /) -> PageAnswer:
        """Return a picture of each view, or the reason why there is none; the page cannot harm the caller."""
        ...

    async def close(self) -> None:
        """Stop the browser; safe to call twice."""
        ...


class Clock(Protocol):
    """Time, so that tests can advance it."""

    def now(self) -> str:
        """Return the time as ISO 8601 in UTC with milliseconds and `Z`."""
        ...

    def monotonic(self) -> float:
        """Return seconds from a clock that never goes backwards."""
        ...

    async def sleep(self, seconds: float, /) -> None: ...


class Ledger(Protocol):
    """Records calls to models and what they cost. When an `await` returns, the record is on disk."""

    async def record(self, entry: Entry, /) -> None:
        """Commit an entry; entries that wait at the same time share one commit."""
        ...

    async def reserve(self, run: RunId, usd: float, /) -> bool:
        """Reserve the worst-case cost of a call, or return False if the run's budget does not allow it.

        The reservation is atomic across processes, and outlives them: reservations of a killed process are booked as spent.
        """
        ...

    async def settle(self, run: RunId, reserved_usd: float, spent_usd: float, /) -> None:
        """Replace a reservation by the amount that was spent."""
        ...


class Journal(Ledger, Protocol):
    """Hands out the trials of a run and records their results.

    Claims belong to the process that opened the journal. They are void as soon as that process is gone; no clock is
    involved.
    """

    def begin(self, run: RunId, *, retry_failed: bool) -> None:
        """Mark the run as running and free trials whose holder is gone; with `retry_failed`, free failed ones too."""
        ...

    def state_of(self, run: RunId, /) -> RunState:
        """Return the run's state; the engine obeys `PAUSED` and `CANCELLED`."""
        ...

    def set_state(self, run: RunId, state: RunState, /) -> None:
        """Set the run's state; `FINISHED` takes effect only if no trial of the run is pending or claimed."""
        ...

    def claim(self, run: RunId, /, *, limit: int) -> Sequence[ClaimedTrial]:
        """Claim up to `limit` pending trials of the run in plan order; empty if none is left."""
        ...

    def structured(self, request: ModelRequest, /) -> str | None:
        """Return a stored reply of the structuring model to an equal request, in any run; None if there is none."""
        ...

    def release(self, trials: Iterable[TrialKey], /) -> None:
        """Release claimed trials and restore the state that they had before the claim."""
        ...
