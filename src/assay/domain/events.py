"""Progress events that the engine sends to a listener instead of printing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from assay.domain.calls import Role
from assay.domain.failure import Failure
from assay.domain.identifiers import RunId
from assay.domain.remaining_cost import CallsAhead


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """A run started with `total` trials, of which `left` remain to be done, up to `concurrency` at
    once.

    `ahead`: predicted calls of the trials that remain; empty if they are unknown.
    `budget_left_usd`: None without a budget.
    """

    run: RunId
    suite: str
    total: int
    left: int
    concurrency: int = 1
    ahead: tuple[CallsAhead, ...] = ()
    budget_left_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """One call ended with a reply or a failure; `cost_usd` is None if the price is unknown."""

    role: Role
    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    failure: Failure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnded:
    """One trial ended and was stored, either as done or as failed."""

    task: str
    thing: str
    k: int
    of: int
    failure: Failure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """This process has stopped working on the run; `finished` is True if no process has unfinished
    trials of the run.
    """

    run: RunId
    finished: bool


Event: TypeAlias = RunStarted | CallEnded | TrialEnded | RunEnded
Listener: TypeAlias = Callable[[Event], None]


def nobody(event: Event) -> None:
    """Ignore an event; the listener for callers that need no progress."""
