"""Draws charts in a child process, because vl-convert aborts its whole process if it cannot draw its input.

One child makes all drawings, one after another, because starting a child takes 1 s and a drawing 0.1 s. It starts with the
first drawing, ends with this process, and is replaced if it dies or exceeds `LIMIT_S` or `MOST_MEMORY`. The child runs this
file as a module.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import IO, Final

from assay.domain.digest import JsonValue
from assay.domain.errors import InputError

LIMIT_S: Final = 60.0
"""Seconds that a drawing may take, including the start of the child on a busy machine."""
MOST_MEMORY: Final = 2**30
"""Maximum bytes of data in the child's memory; only on Linux. A large chart takes 150 MB."""

_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR", "TEMP", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
"""Environment variables that locate fonts and libraries; keys are not passed to the child."""


class Renderer:
    """Draws Vega-Lite specifications without network access. Threads may share a renderer."""

    def __init__(self, *, limit_s: float = LIMIT_S, memory: int = MOST_MEMORY) -> None:
        self._limit_s = limit_s
        self._memory = memory
        self._lock = threading.Lock()  # protects the child, which draws one chart at a time
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def draw(self, specification: JsonValue, *, scale: float = 1.0) -> bytes:
        """Return the drawing as PNG; raises `InputError` if vl-convert cannot draw it within the limits."""
        wanted = json.dumps({"specification": specification, "scale": scale}).encode()
        with self._lock:
            child = self._running()
            late = threading.Event()

            def give_up() -> None:
                late.set()
                child.kill()

            timer = threading.Timer(self._limit_s, give_up)
            timer.start()
            try:
                assert child.stdin is not None
                assert child.stdout is not None
                _send(child.stdin, b"?", wanted)
                status, drawn = _receive(child.stdout)
            except (OSError, EOFError):
                self._end()
                reason = f"the drawing process ended with code {child.returncode}"
                if late.is_set():
                    reason = f"drawing took more than {self._limit_s:g} s"
                raise _undrawn(reason) from None
            finally:
                timer.cancel()
        if status != b"+":
            raise _undrawn(drawn.decode("utf-8", "replace"))
        return drawn

    def close(self) -> None:
        """End the child; the next drawing starts a new one."""
        with self._lock:
            self._end()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._owner != os.getpid():  # after a fork, the child still belongs to the process that started it
            self._child = None
        if self._child is not None and self._child.poll() is not None:
            self._end()
        if self._child is None:
            self._child, self._owner = self._start(), os.getpid()
        return self._child

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return subprocess.Popen(
            # -P: otherwise Python would put the working folder first on its path, and others may write modules there.
            [sys.executable, "-P", "-m", "assay.report.charts.renderer", str(self._memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**environment, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
            start_new_session=True,  # this process handles Ctrl-C and ends the child
        )

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None or self._owner != os.getpid():
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


@cache
def shared_renderer() -> Renderer:
    """Return this process's renderer; its child ends with this process."""
    renderer = Renderer()
    atexit.register(renderer.close)
    return renderer


def _undrawn(reason: str) -> InputError:
    return InputError("chart", f"could not be drawn: {reason}.", remedy="If you need only the numbers, use --output FILE.csv.")


def _send(pipe: IO[bytes], status: bytes, body: bytes) -> None:
    pipe.write(status + len(body).to_bytes(8, "big") + body)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> tuple[bytes, bytes]:
    head = pipe.read(9)
    if len(head) < 9:
        raise EOFError
    body = pipe.read(int.from_bytes(head[1:], "big"))
    return head[:1], body


def _drawn(wanted: Mapping[str, JsonValue]) -> bytes:
    converter = importlib.import_module("vl_convert")
    return bytes(converter.vegalite_to_png(wanted["specification"], scale=wanted["scale"], allowed_base_urls=[]))


def _serve(memory: int) -> None:
    with suppress(ImportError):  # not on Windows
        resource = importlib.import_module("resource")
        # RLIMIT_AS is not used, because the JavaScript engine reserves terabytes of address space, which take no memory.
        for limit, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CORE, 0)):
            with suppress(ValueError, OSError):
                resource.setrlimit(limit, (most, most))
    while True:
        try:
            _, body = _receive(sys.stdin.buffer)
        except EOFError:
            return
        try:
            _send(sys.stdout.buffer, b"+", _drawn(json.loads(body)))
        except Exception as error:  # only this drawing fails; the next one may be fine
            _send(sys.stdout.buffer, b"-", f"{type(error).__name__}: {error}".splitlines()[0][:300].encode())


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
