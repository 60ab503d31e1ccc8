"""Progress of a run in a notebook: one line under the cell that is updated while the run
executes.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from assay.app.statistics.notebooks import safe
from assay.domain.events import Event, Listener, RunEnded, RunStarted, TrialEnded, nobody

if TYPE_CHECKING:
    from collections.abc import Iterator


_EVERY_S: Final = 0.2


@contextmanager
def progress(listener: Listener | None) -> Iterator[Listener]:
    """Yield the given listener.

    Without one, yield a listener that shows progress in a notebook and does nothing elsewhere.
    """
    if listener is not None:
        yield listener
    elif not in_notebook():
        yield nobody
    else:
        yield _Line().hear


def in_notebook() -> bool:
    """True if a Jupyter kernel runs this program; IPython is not imported."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class _Line:
    """A progress line with the number of ended trials, all trials and failed trials."""

    def __init__(self) -> None:
        from IPython import display

        ipython: Any = display
        self._html = ipython.HTML
        self._handle = ipython.display(ipython.HTML("starting"), display_id=True)
        self._total = self._left = self._ended = self._failed = 0
        self._suite = ""
        self._shown_at = 0.0

    def hear(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._suite, self._total, self._left = event.suite, event.total, event.left
            case TrialEnded():
                self._ended += 1
                self._failed += event.failure is not None
            case RunEnded():
                self._shown_at = 0.0
        if time.monotonic() - self._shown_at > _EVERY_S:
            self._shown_at = time.monotonic()
            self._show()

    def _show(self) -> None:
        done = self._total - self._left + self._ended
        total = max(done, self._total)
        failed = f", {self._failed} failed" if self._failed else ""
        bar = f'<progress value="{done}" max="{max(total, 1)}"></progress>'
        self._handle.update(
            self._html(f"{bar} {safe(self._suite)}: {done} of {total} trials{failed}")
        )
