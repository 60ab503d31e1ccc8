"""Pause a run whose calls fail for a reason that every further call would meet: a wrong key, a lost
server, a spent budget.

A *line* is a model or program that the run calls. A fatal failure in a line
(`domain.failure.is_fatal`) starts a streak; an answer, or a failure of another kind, ends it. As
long as a line has never answered, one fatal failure holds back further calls until the calls in
flight have ended. If none of them was answered, the run pauses. A wrong key therefore costs no more
requests than may run at once. A line that has answered before pauses the run after `FEW` fatal
failures in a row, because a single task may meet a 404 of its own.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from assay.domain.failure import Failure

FEW: Final = 5
"""Number of equal fatal failures in a row that pause a run, whatever its line has answered before.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """The reason why a run paused itself: the failure of a model's calls, and how often it occurred
    in a row.
    """

    model: str
    failure: Failure
    times: int = 1


@dataclass(slots=True)
class _Line:
    """Calls in flight to one model, and its streak of equal fatal failures."""

    in_flight: int = 0
    has_answered: bool = False
    kind: str = ""
    streak: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def in_doubt(self) -> bool:
        """True if a fatal failure may be everybody's, which the calls in flight will show."""
        return self.streak > 0 and self.in_flight > 0 and not self.has_answered

    def wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class Breaker:
    """Watches the calls of one process for one run.

    `halt` is set once the run must pause, and stays set.
    """

    def __init__(self) -> None:
        self.halt: Halt | None = None
        self._lines: defaultdict[str, _Line] = defaultdict(_Line)

    async def admit(self, model: str) -> bool:
        """Wait until a call may start; False if the run pauses.

        The caller must report the end of an admitted call.
        """
        line = self._lines[model]
        await self._settled(line)
        if self.halt is not None:
            return False
        line.in_flight += 1
        return True

    def has_answered(self, model: str) -> bool:
        """True if a call of this process to the model was answered."""
        return self._lines[model].has_answered

    def answered(self, model: str) -> None:
        line = self._lines[model]
        line.has_answered = True
        line.streak = 0
        self.left(model)

    def left(self, model: str) -> None:
        """Report the end of a call that says nothing about its model, such as a cancelled one."""
        line = self._lines[model]
        line.in_flight -= 1
        line.wake()

    async def failed(self, model: str, failure: Failure, *, fatal: bool) -> bool:
        """Report a failed call; True if the run pauses because of it, so that its trial is not to
        be blamed.

        Waits while other calls to a model without any answer are in flight, because they decide.
        """
        line = self._lines[model]
        if not fatal:
            line.streak = 0
            self.left(model)
            return False
        line.streak = line.streak + 1 if line.kind == failure.kind else 1
        line.kind = failure.kind
        line.in_flight -= 1
        if line.streak >= FEW or not (line.has_answered or line.in_flight):
            self.halt = self.halt or Halt(model=model, failure=failure, times=line.streak)
        self._wake_all()
        await self._settled(line)
        return self.halt is not None

    def stop(self, model: str, failure: Failure) -> None:
        """Report a call that the budget refused: the run pauses at once."""
        self._lines[model].in_flight -= 1
        self.halt = self.halt or Halt(model=model, failure=failure)
        self._wake_all()

    async def _settled(self, line: _Line) -> None:
        while line.in_doubt and self.halt is None:
            await line.changed.wait()

    def _wake_all(self) -> None:
        for line in self._lines.values():
            line.wake()
