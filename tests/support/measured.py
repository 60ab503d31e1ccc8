"""Processes of `assay` with their peak memory and wall time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_MEMORY: Final = 600 * 2**20
"""Bytes that no input may make a process exceed."""


_SMALL: Final = """
import os, sys
child = os.posix_spawn(sys.executable, [sys.executable, "-m", "assay", *sys.argv[2:]], os.environ)
_, status, usage = os.wait4(child, 0)
open(sys.argv[1], "w").write(f"{status} {usage.ru_maxrss}")
"""
"""Starts `assay` from a small process: the peak that Linux reports begins at what the starting
process held.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The end of a process: exit status (negative: the signal), output, peak resident bytes and
    seconds.
    """

    status: int
    out: str
    err: str
    peak: int
    wall_s: float


def measured(*arguments: str | Path, folder: Path, limit_s: float = 60.0) -> Measured:
    """Run `assay` in a folder to its end; it is killed after `limit_s`."""
    began = time.monotonic()
    out, err, used = (folder / f"measured.{name}" for name in ("out", "err", "used"))
    with out.open("wb") as to, err.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", _SMALL, str(used), *map(str, arguments)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=to,
            stderr=errors,
            start_new_session=True,
        )
        timer = threading.Timer(limit_s, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        process.wait()
        timer.cancel()
    status, peak = (
        map(int, used.read_text("utf-8").split()) if used.exists() else (signal.SIGKILL, 0)
    )
    texts = [path.read_text("utf-8", "replace") for path in (out, err)]
    for path in (out, err, used):
        path.unlink(missing_ok=True)
    return Measured(
        status=os.waitstatus_to_exitcode(status),
        out=texts[0],
        err=texts[1],
        peak=peak * (1 if sys.platform == "darwin" else 1024),
        wall_s=time.monotonic() - began,
    )
