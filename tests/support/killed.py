"""End this process with SIGKILL at its n-th step: before or after a commit, or before or after a
request to a server.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import count
from typing import Any

from assay.providers.session import HttpSession
from assay.store.execution.writer_thread import Writer


def arm(step: int) -> None:
    """Let this process die at a step, counted from 1."""
    steps = count(1)

    def take() -> None:
        if next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    write: Callable[..., Any] = Writer._write
    send: Callable[..., Any] = HttpSession.send

    def writing(self: Writer, what: Any, *, counts: bool = True) -> Any:
        take()
        result = write(self, what, counts=counts)
        take()
        return result

    async def sending(self: HttpSession, *arguments: Any, **options: Any) -> Any:
        take()
        answer = await send(self, *arguments, **options)
        take()
        return answer

    Writer._write = writing  # type: ignore[method-assign]
    HttpSession.send = sending  # type: ignore[method-assign]
