"""A command on a pseudo-terminal of a given size: read its screen, and press keys."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# A process of a new session takes the terminal as its own, so that Ctrl-C reaches it.
_START: Final = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from assay.__main__ import main; main()"
_PATIENCE_S: Final = 60.0  # spent only by a test that fails
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>78]|\][^\x07]*\x07)")


class Terminal:
    """The other end of a pseudo-terminal; `output` is everything that was written to it, with
    escape sequences.
    """

    def __init__(self, handle: int, process: subprocess.Popen[bytes]) -> None:
        self._handle, self._process = handle, process
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end inside a letter
        self._seen = 0
        self.output = ""

    def press(self, keys: str) -> None:
        """Type keys, but only what is written from now on is searched by `expect`."""
        self._seen = len(self.output)
        os.write(self._handle, keys.encode())

    def type(self, line: str) -> None:
        """Type a line and press Enter."""
        self.press(f"{line}\r")

    def expect(self, text: str) -> str:
        """Read until the text appears after the last key; return all that was written since,
        without escape sequences.
        """
        until = time.monotonic() + _PATIENCE_S
        while text not in (shown := plain(self.output[self._seen :])):
            if not self._read(until):
                raise AssertionError(f"{text!r} did not appear; the terminal shows:\n{shown}")
        return shown

    def interrupt(self, text: str) -> None:
        """Press Ctrl-C until the text appears: Python's `input` misses a signal that comes just
        before it waits for keys.
        """
        self.press("\x03")
        for _ in range(int(_PATIENCE_S // 10)):
            until = time.monotonic() + 10
            while time.monotonic() < until:
                if text in plain(self.output[self._seen :]):
                    return
                self._read(until)
            os.write(self._handle, b"\x03")
        raise AssertionError(
            f"{text!r} did not appear; the terminal shows:\n{plain(self.output[self._seen :])}"
        )

    def end(self) -> int:
        """Read until the process ends, and return its exit code."""
        until = time.monotonic() + _PATIENCE_S
        while self._read(until):
            pass
        return self._process.wait(timeout=_PATIENCE_S)

    def _read(self, until: float) -> bool:
        ready, _, _ = select.select([self._handle], [], [], max(0.0, until - time.monotonic()))
        try:
            got = os.read(self._handle, 65_536) if ready else b""
        except OSError:  # Linux reports the end of a pseudo-terminal as an error
            got = b""
        self.output += self._decoder.decode(got)
        return bool(got)


def plain(text: str) -> str:
    """Return output without escape sequences and carriage returns."""
    return _ESCAPES.sub("", text).replace("\r", "")


@contextmanager
def terminal(
    *arguments: str,
    folder: Path,
    columns: int = 80,
    rows: int = 24,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Terminal]:
    """Start `assay` on a pseudo-terminal; it is killed at the end of the block if it still runs."""
    handle, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    unset = {"NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR"}
    own = {name: value for name, value in os.environ.items() if name not in unset}
    process = subprocess.Popen(
        [sys.executable, "-c", _START, *arguments],
        stdin=other,
        stdout=other,
        stderr=other,
        cwd=folder,
        env={**own, "TERM": "xterm-256color", **(environment or {})},
        start_new_session=True,
    )
    os.close(other)
    try:
        yield Terminal(handle, process)
    finally:
        process.kill()
        process.wait()
        os.close(handle)
