"""Call pure functions in a few warm child processes, with limits on time, memory and output size.

A child that exceeds its time limit is killed, and a new child starts at once, so that it warms up
while others work. Children are spawned, not forked. They inherit only their two pipes and the
module path, so their code cannot read any API key.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from assay.domain.isolation import IsolatedAnswer, IsolatedRequest, Returned, StopKind, Stopped

MAX_INPUT: Final = 4 * 2**20
"""Maximum bytes of a request."""
MAX_OUTPUT: Final = 8 * 2**20
MEMORY: Final = 2**30
"""Maximum bytes of address space per child; SymPy alone takes a quarter of that."""
START_LIMIT_S: Final = 60.0
"""Time limit for a child to import a function's modules; with a cold disk cache this takes seconds.
"""


@dataclass(slots=True, kw_only=True, eq=False)
class _Child:
    """A child process that answers one request at a time; `unread` counts answers to warm-ups that
    were not read yet.
    """

    process: asyncio.subprocess.Process
    warm: set[str] = field(default_factory=set)
    unread: int = 0

    def send(self, message: Mapping[str, Any]) -> None:
        body = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(len(body).to_bytes(4, "big") + body)

    async def receive(self) -> Mapping[str, Any]:
        """Return the next answer; raises EOFError if the child has ended."""
        assert self.process.stdout is not None
        head = await self.process.stdout.readexactly(4)
        length = int.from_bytes(head, "big")
        if length > MAX_OUTPUT:
            return {
                "stopped": StopKind.TOO_LONG,
                "detail": f"The function's value takes {length} bytes.",
            }
        answer: Mapping[str, Any] = json.loads(await self.process.stdout.readexactly(length))
        return answer

    async def kill(self) -> None:
        """Kill the child and the processes that it started, and wait until the child has ended."""
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        await self.process.wait()


class WorkerPool:
    """Implements `ports.Workers`.

    The first call starts a child; after `close` the pool can be used again.

    `size`: maximum functions running at the same time. `functions`: `module:function` by name, in
    addition to the functions of `assay.scoring.isolated`.
    """

    def __init__(
        self, *, size: int = 2, memory: int = MEMORY, functions: Mapping[str, str] | None = None
    ) -> None:
        self._size = size
        self._memory = memory
        self._functions = dict(functions or {})
        self._idle: list[_Child] = []
        self._turns = asyncio.Semaphore(size)

    async def call(self, request: IsolatedRequest, /) -> IsolatedAnswer:
        message = {
            "function": request.function,
            "arguments": dict(request.arguments),
            "time_limit_s": request.time_limit_s,
        }
        length = sum(len(value) for value in request.arguments.values() if isinstance(value, str))
        if length > MAX_INPUT:
            return Stopped(
                StopKind.TOO_LONG,
                f"The text is {length:,} characters long; the maximum is {MAX_INPUT:,}.",
            )
        async with self._turns:
            try:
                child = await self._warm_child(request.function)
            except (OSError, EOFError, TimeoutError) as error:
                return Stopped(
                    StopKind.CRASHED,
                    f"Assay could not start a child process: {error or type(error).__name__}",
                )
            return await self._ask(child, message, request)

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for child in idle:
            await child.kill()
        self._turns = asyncio.Semaphore(self._size)

    async def _ask(
        self, child: _Child, message: Mapping[str, Any], request: IsolatedRequest
    ) -> IsolatedAnswer:
        healthy = False
        try:
            async with asyncio.timeout(request.time_limit_s):
                child.send(message)
                answer = await child.receive()
            # A child is still usable after an ordinary exception. After a MemoryError nothing in it
            # is reliable, so it is replaced.
            healthy = answer.get("stopped") in (None, StopKind.CRASHED)
        except TimeoutError:
            return Stopped(
                StopKind.TIMEOUT, f"The function took longer than {request.time_limit_s:g} s."
            )
        except (EOFError, ConnectionError, ValueError):
            return _died(await child.process.wait())
        finally:
            if healthy:
                self._idle.append(child)
            else:
                await child.kill()
                with suppress(OSError):
                    self._idle.append(await self._start(request.function))
        if "stopped" in answer:
            return Stopped(StopKind(answer["stopped"]), str(answer["detail"]))
        return Returned(answer["value"])

    async def _warm_child(self, function: str) -> _Child:
        """Return a child that has imported the function's modules; raises OSError, EOFError or
        TimeoutError.
        """
        self._idle.sort(key=lambda child: function in child.warm)
        child = self._idle.pop() if self._idle else await self._start(function)
        try:
            if function not in child.warm:
                self._warm(child, function)
            async with asyncio.timeout(START_LIMIT_S):
                while child.unread:
                    await child.receive()
                    child.unread -= 1
        except BaseException:
            await child.kill()
            raise
        return child

    async def _start(self, function: str) -> _Child:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            # -P: otherwise Python would put the working folder first on its path, and that is the
            # temporary folder, where others may write modules. -B: a child may not write files.
            *(
                "-P",
                "-B",
                "-m",
                "assay.sandbox.child",
                str(self._memory),
                json.dumps(self._functions),
            ),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=tempfile.gettempdir(),
            env=_environment(),
            # A separate process group, so that `kill` also ends the processes that it started.
            start_new_session=True,
        )
        child = _Child(process=process)
        self._warm(child, function)
        return child

    def _warm(self, child: _Child, function: str) -> None:
        child.send({"function": function, "warm_up": True})
        child.warm.add(function)
        child.unread += 1


def _environment() -> dict[str, str]:
    """Return a child's environment: the module path, and variables that limit numerical libraries
    to one thread.
    """
    kept = {
        name: os.environ[name]
        for name in ("SYSTEMROOT", "LANG", "LC_ALL", "TMPDIR", "TEMP")
        if name in os.environ
    }
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**kept, **threads, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}


def _died(code: int) -> Stopped:
    if code == -getattr(signal, "SIGXCPU", 0):
        return Stopped(StopKind.TIMEOUT, "The function exceeded its limit of processor time.")
    if code == -signal.SIGKILL:
        return Stopped(
            StopKind.MEMORY, "The system killed the process, most likely because memory ran out."
        )
    return Stopped(StopKind.CRASHED, f"The process ended with code {code}.")
