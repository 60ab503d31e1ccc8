"""Run functions in a thread, so that they work in a notebook and never block the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from assay.app.runs.stopper import Stopper

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def outside_loop(work: Callable[[Stopper | None], T]) -> T:
    """Call a function in this thread, or in a new thread if this thread runs an event loop.

    Ctrl-C stops it in both cases.
    """
    if not _has_running_loop():
        return work(None)
    stopper = Stopper()
    ended = _in_thread(work, stopper)
    try:
        return ended.result()
    except KeyboardInterrupt:
        stopper.stop()
        return ended.result()  # raises Interrupted, with the command that resumes the run


def _has_running_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def in_thread(work: Callable[[Stopper | None], T]) -> T:
    """Call a function in a thread and await the result; cancelling the task stops the function."""
    stopper = Stopper()
    ended = asyncio.wrap_future(_in_thread(work, stopper))
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        stopper.stop()
        await asyncio.wait([ended])
        if not ended.cancelled():
            # the run reports that it was stopped; the caller gets the cancellation instead
            ended.exception()
        raise


def _in_thread(work: Callable[[Stopper | None], T], stopper: Stopper) -> Future[T]:
    # With the caller's context, so that a notebook shows what a listener prints under the cell that
    # started the run.
    context = contextvars.copy_context()
    ended: Future[T] = Future()
    ended.set_running_or_notify_cancel()

    def carry() -> None:
        try:
            ended.set_result(context.run(work, stopper))
        except (
            BaseException
        ) as error:  # every error is passed to the caller, even a KeyboardInterrupt
            ended.set_exception(error)

    # A daemon thread, so that a second Ctrl-C ends the process although a call is still waiting.
    threading.Thread(target=carry, name="assay", daemon=True).start()
    return ended
