"""Stop a run or a calibration from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Stopper:
    """Stops a run in another thread, as cleanly as Ctrl-C does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._cancel: Callable[[], object] | None = None

    def holds(self, cancel: Callable[[], object] | None) -> None:
        """Set the function that stops the work (None after its end).

        If a stop was already requested, call the function now.
        """
        with self._lock:
            self._cancel = cancel
            if self._stopped and cancel is not None:
                cancel()

    def stop(self) -> None:
        """Cancel calls in progress and release claimed trials.

        Has no effect after the run has ended.
        """
        with self._lock:
            self._stopped = True
            if self._cancel is not None:
                self._cancel()
