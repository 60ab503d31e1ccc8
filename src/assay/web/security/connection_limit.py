"""Limits the time that the head of a request takes to arrive; `body_limit` limits the time for
bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

HEAD_LIMIT_S: Final = 10.0
"""Seconds until a request's head must be complete, from the opening of the connection or from the
head's first byte.
"""


class TimedConnection(H11Protocol):
    """A connection that is closed if the head of a request does not arrive in time."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in uvicorn's class
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()  # a request is being answered
        elif self._deadline is None:
            # Not `close`: it would wait until the other end has read what was sent before.
            self._deadline = self.loop.call_later(HEAD_LIMIT_S, self.transport.abort)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
