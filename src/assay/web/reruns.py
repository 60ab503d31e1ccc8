"""Reruns that people asked for on a page: carried out beside the requests, and asked after by key.

The page says the same request again until it hears how it ended, so a server that was killed in between simply starts
anew; the number of the attempt it means to replace keeps one wish from becoming two reruns.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from assay.app import reviewing
from assay.app.opinions import refuse_disputed
from assay.domain.errors import AssayError, Refused
from assay.domain.identifiers import AssessmentKey, shown_assessment
from assay.domain.review import Via
from assay.web.errors import problem_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.app.queue import ReviewQueue
    from assay.app.wiring import Workspace

_AT_ONCE: Final = 4  # a person waits for each, and the judge's limits are shared with runs
_REMEMBERED: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One rerun as it was asked for; `attempt` is the one it means to replace."""

    key: str
    assessment: AssessmentKey
    attempt: int
    reviewer: str
    reason: str
    note: str


class Reruns:
    """The reruns of this process. Lives in the server's event loop."""

    def __init__(self, workspace: Workspace, queue: ReviewQueue) -> None:
        self._workspace = workspace
        self._queue = queue
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._outcomes: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, wish: Wish) -> Mapping[str, Any]:
        """How it stands: `running`, `done` with the new attempt, or `failed` with why; starts it when it is new.

        Raises:
            UnknownName: there is no such assessment.
            Refused: two people dispute it, or it has not had that attempt.
        """
        known = self._outcomes.get(wish.key)
        if known is not None:
            return known
        detail = await asyncio.to_thread(reviewing.assessment, self._workspace, wish.assessment)
        if len(detail.attempts) > wish.attempt:
            return self._done(wish, detail.attempts[-1], attempt=len(detail.attempts))
        if len(detail.attempts) < wish.attempt:
            raise Refused(shown_assessment(wish.assessment), f"has no attempt {wish.attempt}; its last is {len(detail.attempts)}.",
                          remedy="Look at it again, then ask.")  # fmt: skip
        await asyncio.to_thread(refuse_disputed, self._workspace, (wish.assessment,))
        self._outcomes[wish.key] = {"status": "running", "id": shown_assessment(wish.assessment)}
        while len(self._outcomes) > _REMEMBERED:
            self._outcomes.popitem(last=False)
        task = asyncio.create_task(self._carry_out(wish))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return self._outcomes[wish.key]

    async def stop(self) -> None:
        """Give up what still runs; the page asks again."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry_out(self, wish: Wish) -> None:
        try:
            async with self._slots:
                new, failure = await reviewing.rerun(
                    self._workspace,
                    wish.assessment,
                    reason=wish.reason,
                    note=wish.note,
                    reviewer=wish.reviewer,
                    via=Via.PAGE,
                    displayed=True,
                    idempotency_key=wish.key,
                )
        except AssayError as error:
            self._outcomes[wish.key] = self._failed(wish) | problem_of(error)
        except asyncio.CancelledError:
            self._outcomes.pop(wish.key, None)
            raise
        except Exception as error:  # a page that waits must hear of any end; the server goes on
            said = Refused("rerun", f"broke off ({type(error).__name__}).", remedy="The server's log says more.")
            self._outcomes[wish.key] = self._failed(wish) | problem_of(said)
            raise
        else:
            if new is None:
                why = failure.detail if failure else "no reason is known"
                kind = failure.kind if failure else "unknown"
                self._outcomes[wish.key] = self._failed(wish) | problem_of(Refused(kind, why))
            else:
                self._outcomes[wish.key] = self._done(wish, new, attempt=wish.attempt + 1)

    def _done(self, wish: Wish, new: AssessmentKey, *, attempt: int) -> dict[str, Any]:
        self._queue.done_with(wish.assessment)
        self._queue.soon(new)
        return {
            "status": "done",
            "id": shown_assessment(wish.assessment),
            "new_id": shown_assessment(new),
            "attempt": attempt,
        }

    def _failed(self, wish: Wish) -> dict[str, Any]:
        return {"status": "failed", "id": shown_assessment(wish.assessment)}
