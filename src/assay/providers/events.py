"""Server-sent events out of bytes that arrive in any pieces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from assay.domain.failure import CallFailed, Fault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

_BLANK_LINE: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")  # not str.splitlines: JSON may hold U+2028 as it is
_LONGEST: Final = 20 * 1024 * 1024


class Event(NamedTuple):
    """One event: its name (empty when it has none) and its data lines joined."""

    name: str
    data: str


async def events_in(next_piece: Callable[[], Awaitable[bytes]]) -> AsyncIterator[Event]:
    """Events as they are complete; the last one counts even without the blank line that should follow it.

    Raises:
        CallFailed: the events together are longer than any answer may be.
    """
    waiting = b""
    total = 0
    while piece := await next_piece():
        total += len(piece)
        if total > _LONGEST:
            raise CallFailed(
                "bad_response", "the streamed answer is longer than 20 MB.", transient=True, fault=Fault.PROVIDER
            )
        waiting += piece
        *complete, waiting = _BLANK_LINE.split(waiting)
        for block in complete:
            if event := _event(block):
                yield event
    if event := _event(waiting):
        yield event


def _event(block: bytes) -> Event | None:
    name, data = "", []
    for line in _LINE_END.split(block.decode("utf-8", "replace")):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
    return Event(name, "\n".join(data)) if data else None
