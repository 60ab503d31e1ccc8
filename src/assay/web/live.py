"""Live updates of the list of runs.

The store is read once per second for all open pages together.
"""

from __future__ import annotations

import asyncio
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from assay.domain.errors import StoreError
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import Selection
from assay.web.responses import json_bytes
from assay.web.run_rows import LiveRunDocument, approvals_of_runs, looked_at

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from assay.app.registry.run_verdicts import RunVerdicts
    from assay.app.workspace import Workspace
    from assay.web.jobs.runs import Runner

LOOK_S: Final = 0.8
"""Seconds between reads, and thus the longest delay until a page shows a finished trial."""

BREATH_S: Final = 15.0
"""Seconds between keep-alive comments, which also reveal closed pages."""

MAX_LISTENERS: Final = 500
"""Maximum number of streams, because each keeps a connection open, and a process may open about a
thousand.
"""

SHOWN: Final = 50
"""Number of runs that are watched, newest first."""

NEW_VERDICTS: Final = 2
"""Maximum number of verdicts computed per read, so that requests of other pages never wait long."""


class Live:
    """The current state of the runs, which is read from the store only while a page listens."""

    def __init__(
        self, workspace: Workspace, verdicts: RunVerdicts, runner: Runner | None = None
    ) -> None:
        self._workspace = workspace
        self._verdicts = verdicts
        self._runner = runner
        self._changed = asyncio.Condition()
        self._rows: dict[str, bytes] = {}
        self._decided = 0
        self._turn = 0
        self._begun = token_hex(4)
        self._waiting = 0
        self._listeners = 0
        self._looking: asyncio.Task[None] | None = None
        self._stopped = False

    @property
    def has_room(self) -> bool:
        """True if one more listener may connect."""
        return self._listeners < MAX_LISTENERS

    def _newest(self) -> tuple[list[LiveRunDocument], int]:
        summaries = self._workspace.archive.runs.newest(limit=SHOWN)
        verdicts = self._verdicts.of(summaries, most=NEW_VERDICTS)
        by_run = approvals_of_runs(self._workspace, summaries)
        rows = [
            looked_at(self._workspace, run, by_run[run.id], self._runner, verdict=verdicts[run.id])
            for run in summaries
        ]
        return rows, self._workspace.archive.assessments.tally(Selection()).get(
            AssessmentState.PENDING, 0
        )

    def _newest_decision(self) -> int:
        """Return a value that changes with every decision."""
        return self._workspace.archive.trials.decided_since(None)[0]

    async def listen(self) -> AsyncIterator[bytes]:
        """Stream server-sent events: first all runs, then changed runs, pending assessments, and a
        signal after each decision.
        """
        self._listeners += 1
        if self._looking is None or self._looking.done():
            # The state is as old as the last listener, and a page would reload if it contained a
            # deleted run.
            self._rows = {}
            self._looking = asyncio.create_task(self._look())
        seen: dict[str, bytes] = {}
        told: int | None = None
        waiting: int | None = None
        try:
            # A browser that loses the stream, for example at a server restart, reconnects after two
            # seconds.
            yield b"retry: 2000\n\n"
            while not self._stopped:
                news = [row for run, row in self._rows.items() if seen.get(run) != row]
                seen = dict(self._rows)
                if news:
                    yield b"event: runs\ndata: [" + b",".join(news) + b"]\n\n"
                if self._rows and waiting != self._waiting:
                    waiting = self._waiting
                    yield b"event: waiting\ndata: %d\n\n" % waiting
                if told != self._turn:
                    told = self._turn
                    # Turns restart at 0 with the server; the random part distinguishes them from
                    # those before the restart.
                    yield f"event: decided\ndata: {self._begun}-{told}\n\n".encode()
                try:
                    async with self._changed:
                        await asyncio.wait_for(self._changed.wait(), BREATH_S)
                except TimeoutError:
                    yield b": \n\n"
        finally:
            self._listeners -= 1

    async def stop(self) -> None:
        """End every stream, so that the server can stop."""
        self._stopped = True
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        async with self._changed:
            self._changed.notify_all()

    async def _look(self) -> None:
        while self._listeners and not self._stopped:
            try:
                rows, waiting = await asyncio.to_thread(self._newest)
                decided = await asyncio.to_thread(self._newest_decision)
            except StoreError:
                rows = None  # the next read may succeed; until then pages keep their state
            if rows is not None:
                fresh = {row.id: json_bytes(row) for row in rows}
                if (fresh, decided, waiting) != (self._rows, self._decided, self._waiting):
                    self._turn += decided != self._decided
                    self._rows, self._decided, self._waiting = fresh, decided, waiting
                    async with self._changed:
                        self._changed.notify_all()
            await asyncio.sleep(LOOK_S)
