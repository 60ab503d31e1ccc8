"""Delays responses to wrong tokens, which may come as `Bearer`, `?token=`, a cookie, or a sign-in.

A right token is never delayed, so a flood of wrong tokens locks nobody out, not even users of the
same address. The minimum length (`SHORTEST_TOKEN`) prevents guessing; the delay prevents a flood
from keeping the server busy.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

SHORTEST_TOKEN: Final = 16
"""Minimum number of characters of a token."""

WRONG_S: Final = 0.5
"""Seconds that the response to a wrong token takes; responses to one address are sent one after
another.
"""

_MAX_TRIES: Final = 20  # waiting responses per address
# waiting responses in total, because an attacker may have any number of addresses
_MAX_WAITING: Final = 200


@dataclass(slots=True)
class _Turn:
    """A queue of wrong tokens from one address."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wait: int = 0


class WrongTokens:
    """Delays the responses to wrong tokens."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn] = {}
        self._waiting = 0

    async def delay(self, address: str) -> bool:
        """Wait until the response to a wrong token may be sent; return False at once if too many
        are waiting.
        """
        turn = self._turns.setdefault(address, _Turn())
        if turn.wait >= _MAX_TRIES or self._waiting >= _MAX_WAITING:
            if not turn.wait:
                del self._turns[address]
            return False
        turn.wait += 1
        self._waiting += 1
        try:
            # Without this lock, 25 wrong tokens sent together were all answered immediately.
            async with turn.lock:
                await asyncio.sleep(WRONG_S)
            return True
        finally:
            turn.wait -= 1
            self._waiting -= 1
            if not turn.wait:
                # Otherwise every address that ever tried would stay in memory.
                del self._turns[address]
