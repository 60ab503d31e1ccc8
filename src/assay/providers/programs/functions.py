"""Python functions as candidates: each concurrent call has a worker process, which is killed at its
time limit.

A worker answers one call after another. `host` forks the workers of a function, so the function's
module is imported only once and a worker starts within a millisecond. A worker is replaced after
any failure except an exception.
"""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from assay.domain.calls import ModelRequest, Reply
from assay.domain.digest import JsonValue
from assay.domain.errors import SettingsError
from assay.domain.programs import Agent, Function
from assay.providers.json_body import dump, parse, whole
from assay.providers.programs import host
from assay.providers.programs.call import (
    LONGEST_ANSWER,
    LONGEST_LOG,
    failed,
    input_of,
    reply_of,
    without_secrets,
)

START_LIMIT_S: Final = 60.0
"""Time limit in seconds for importing the function, and for setting up its class."""

_HEAD_START_S: Final = 0.01
_BLOCK: Final = 1 << 16
LONGEST_PRINTED: Final = 32 * 2**20
"""Maximum bytes that one call may print.

A call that prints more is in an endless loop and would block the parent.
"""


class _Printed:
    """Reads a worker's printed output, so that the worker never blocks; stores the first
    `LONGEST_LOG` bytes per call.
    """

    def __init__(self) -> None:
        self._pipe, self.write_end = os.pipe()
        os.set_blocking(self._pipe, False)
        self._kept = bytearray()
        self._size = 0
        self.flooded = False
        self.on_flood: Callable[[], None] = _nothing
        asyncio.get_running_loop().add_reader(self._pipe, self._read)

    def take(self) -> str:
        self._read(LONGEST_PRINTED)
        text = self._kept.decode("utf-8", "replace")
        if self._size > len(self._kept):
            text += f"\n… {self._size - len(self._kept):,} more bytes were printed."
        self._kept.clear()
        self._size = 0
        return text

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pipe)
        os.close(self._pipe)

    def _read(self, most: int = 1 << 20) -> None:
        """Read at most `most` available bytes, so that a flood of output does not block other
        calls.
        """
        for _ in range(0, most, _BLOCK):
            try:
                block = os.read(self._pipe, _BLOCK)
            except BlockingIOError:
                return
            if not block:
                asyncio.get_running_loop().remove_reader(self._pipe)
                return
            self._kept += block[: LONGEST_LOG - len(self._kept)]
            self._size += len(block)
            if self._size > LONGEST_PRINTED and not self.flooded:
                self.flooded = True
                self.on_flood()


@dataclass(slots=True, kw_only=True, eq=False)
class _Worker:
    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    printed: _Printed
    ended: asyncio.Future[int]

    async def ask(self, message: Mapping[str, JsonValue]) -> dict[str, Any]:
        """Send a message and return its answer; raises EOFError or ConnectionError if the worker
        has ended.
        """
        _write(self.writer, message)
        return await self.receive()

    async def receive(self) -> dict[str, Any]:
        return await _receive(self.reader)

    def close(self) -> None:
        self.writer.close()
        self.printed.close()


@dataclass(slots=True, kw_only=True, eq=False)
class _Host:
    """The process that imports the function and forks its workers."""

    process: asyncio.subprocess.Process
    control: socket.socket
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    ends: dict[int, asyncio.Future[int]] = field(default_factory=dict)
    watch: asyncio.Task[None] | None = None

    async def watch_ends(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                number, code = host.ENDED.unpack(await self.reader.readexactly(host.ENDED.size))
                _settle(self.ends.pop(number, None), code)
        for waiting in self.ends.values():
            _settle(waiting, -signal.SIGKILL)
        self.ends.clear()

    async def close(self) -> None:
        if self.watch is not None:
            self.watch.cancel()
        self.writer.close()
        self.control.close()
        try:
            # The host first ends the workers that it was told to end, and then notices that the
            # socket is closed.
            await asyncio.wait_for(self.process.wait(), 5.0)
        except TimeoutError:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()


class _CannotStart(Exception):
    """Raised if the function cannot be imported or set up.

    `detail`: one sentence. `log`: the traceback.
    """

    def __init__(self, detail: str, log: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.log = log


class Functions:
    """A `ports.Provider` for one function.

    The first call starts its processes; after `close` it can be used again.

    `target`: the importable function as `FILE.py:NAME` or `module:NAME`. `environment`: variables
    for the workers, which may need the user's keys. `pickled`: the callable, if workers cannot
    import it.
    """

    def __init__(
        self,
        program: Function | Agent,
        *,
        target: str,
        folder: Path,
        environment: Mapping[str, str],
        pickled: bytes = b"",
    ) -> None:
        self._program = program
        self._environment = dict(environment)
        self._job: dict[str, JsonValue] = {
            "target": target,
            "folder": str(folder),
            "path": [str(folder), *(entry for entry in sys.path if entry)],
            "options": dict(program.options),
            "pickled": base64.b64encode(pickled).decode(),
            "preload": True,
        }
        self._idle: list[_Worker] = []
        self._host: _Host | None = None
        self._starting = asyncio.Lock()
        self._starting_host = asyncio.Lock()
        self._broken: _CannotStart | None = None
        self._numbers = 0

    async def complete(self, request: ModelRequest, /) -> Reply:
        """Call the function in a worker; raises `CallFailed` with the traceback and printed
        output.
        """
        try:
            worker = self._idle.pop() if self._idle else await self._freed_or_started()
        except _CannotStart as error:
            log = without_secrets(error.log, self._environment)
            raise failed(
                "cannot_start", f"{self._program.target}: {error.detail}", log=log
            ) from None
        answer = None
        began = perf_counter()
        try:
            answer = await self._ask(worker, request)
        finally:
            if answer is None:
                self._end(worker)
        elapsed_s = perf_counter() - began
        log = self._log(worker, answer.get("log", ""))
        self._idle.append(worker)
        if "failed" not in answer:
            return reply_of(str(answer["text"]), answer, request, elapsed_s=elapsed_s, log=log)
        detail = str(answer["detail"])
        if answer["failed"] == "no_answer" and log.strip():
            detail = f"The function printed {log.strip()[:60]!r} and returned None; return the answer as text."
        raise failed(str(answer["failed"]), without_secrets(detail, self._environment), log=log)

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()
        running, self._host = self._host, None
        self._broken = None
        self._starting = asyncio.Lock()
        self._starting_host = asyncio.Lock()
        if running is not None:
            await running.close()

    async def _ask(self, worker: _Worker, request: ModelRequest) -> dict[str, Any]:
        """Return the worker's answer; raises `CallFailed` without an answer, and the worker must
        then be replaced.
        """
        limit = self._program.timeout_s
        try:
            async with asyncio.timeout(limit):
                return await worker.ask(input_of(request))
        except TimeoutError:
            raise failed(
                "timeout", f"The function did not return within {limit:g} s.", log=self._log(worker)
            ) from None
        except _TooLong:
            detail = f"The function's answer has more than {LONGEST_ANSWER // 2**20} MB."
            raise failed("too_long", detail, log=self._log(worker)) from None
        except (EOFError, OSError):
            if worker.printed.flooded:
                detail = f"The function printed more than {LONGEST_PRINTED // 2**20} MB."
                raise failed("too_long", detail, log=self._log(worker)) from None
            detail = f"The function's process {ending_of(await self._code(worker))}."
            raise failed("crashed", detail, log=self._log(worker)) from None

    def _log(self, worker: _Worker, trace: str = "") -> str:
        printed = worker.printed.take()
        between = "\n" if printed and trace and not printed.endswith("\n") else ""
        return whole(without_secrets(f"{printed}{between}{trace}", self._environment))

    async def _code(self, worker: _Worker) -> int | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                return await asyncio.shield(worker.ended)
        return None

    def _end(self, worker: _Worker) -> None:
        if self._host is not None and not worker.ended.done():
            with suppress(OSError):
                self._host.control.send(host.ORDER.pack(host.END, worker.number))
        worker.close()

    async def _freed_or_started(self) -> _Worker:
        """Return a free or new worker.

        One worker starts at a time, so that quick functions need few workers.
        """
        async with self._starting:
            if self._idle:
                return self._idle.pop()
            starting = asyncio.ensure_future(self._start())
            try:
                # The next call waits a moment, but not as long as a class may take to set up.
                await asyncio.wait((starting,), timeout=_HEAD_START_S)
            except BaseException:
                starting.cancel()
                raise
        return await starting

    async def _start(self) -> _Worker:
        async with self._starting_host:
            if self._broken is not None:
                raise self._broken
            if self._host is None or self._host.process.returncode is not None:
                try:
                    self._host = await self._start_host()
                except _CannotStart as error:
                    self._broken = error
                    raise
        worker = await self._fork(self._host)
        try:
            async with asyncio.timeout(START_LIMIT_S):
                ready = await worker.receive()
        except (TimeoutError, EOFError, OSError) as error:
            code = None if isinstance(error, TimeoutError) else await self._code(worker)
            why = (
                f"took longer than {START_LIMIT_S:g} s to set up"
                if isinstance(error, TimeoutError)
                else f"{ending_of(code)} while it was set up"
            )
            log = self._log(worker)
            self._end(worker)
            raise _CannotStart(f"its process {why}.", log) from None
        except BaseException:
            self._end(worker)
            raise
        if ready["trouble"] is not None:
            log = self._log(worker, ready["trouble"]["log"])
            self._end(worker)
            raise _CannotStart(ready["trouble"]["detail"], log)
        return worker

    async def _start_host(self) -> _Host:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            process = await asyncio.create_subprocess_exec(
                # With -P, the folder of `host` is not searched for modules.
                *(sys.executable, "-P", host.__file__, str(theirs.fileno())),
                pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env=self._environment,
                start_new_session=True,  # the parent handles Ctrl-C and ends the run cleanly
            )
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours.dup())
        started = _Host(process=process, control=ours, reader=reader, writer=writer)
        try:
            async with asyncio.timeout(START_LIMIT_S):
                _write(writer, self._job)
                ready = await _receive(reader)
        except (TimeoutError, EOFError, OSError) as error:
            slow = isinstance(error, TimeoutError)
            if slow:
                process.kill()
            code = await process.wait()
            await started.close()
            why = (
                f"took longer than {START_LIMIT_S:g} s to import"
                if slow
                else f"{ending_of(code)} during the import"
            )
            raise _CannotStart(f"its process {why}.", "") from None
        except BaseException:
            await started.close()
            raise
        if ready["trouble"] is not None:
            await started.close()
            raise _CannotStart(ready["trouble"]["detail"], ready["trouble"]["log"])
        if ready["threads"] > 1 and self._job["preload"]:
            # A fork contains only the thread that forked, and locks that other threads held stay
            # locked in it.
            await started.close()
            self._job["preload"] = False
            return await self._start_host()
        started.watch = asyncio.create_task(started.watch_ends())
        return started

    async def _fork(self, running: _Host) -> _Worker:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        printed = _Printed()
        self._numbers += 1
        # Other workers are forked in the meantime; with their number, this time limit would end the
        # wrong worker.
        number = self._numbers
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        running.ends[number] = ended
        try:
            order = host.ORDER.pack(host.FORK, number)
            await _send_pipes(running.control, order, [theirs.fileno(), printed.write_end])
        except OSError:
            ours.close()
            printed.close()
            raise _CannotStart("its process is gone.", "") from None
        finally:
            theirs.close()
            os.close(printed.write_end)
        reader, writer = await asyncio.open_connection(sock=ours)
        printed.on_flood = reader.feed_eof
        return _Worker(number=number, reader=reader, writer=writer, printed=printed, ended=ended)


class _TooLong(Exception):
    """Raised for an answer larger than `LONGEST_ANSWER` bytes."""


def _write(writer: asyncio.StreamWriter, message: Mapping[str, JsonValue]) -> None:
    body = dump(message)
    writer.write(host.LENGTH.pack(len(body)) + body)


async def _receive(reader: asyncio.StreamReader) -> dict[str, Any]:
    (length,) = host.LENGTH.unpack(await reader.readexactly(host.LENGTH.size))
    if length > LONGEST_ANSWER:
        raise _TooLong
    message: dict[str, Any] = parse(await reader.readexactly(length))
    return message


async def _send_pipes(control: socket.socket, order: bytes, pipes: list[int]) -> None:
    while True:
        try:
            socket.send_fds(control, [order], pipes)
        except BlockingIOError:  # hundreds of orders are waiting at the host
            await asyncio.sleep(0.01)
        else:
            return


def _settle(waiting: asyncio.Future[int] | None, code: int) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(code)


def _nothing() -> None:
    """Do nothing; the placeholder for a function that stops a reader."""


def ending_of(code: int | None) -> str:
    """Describe how a process ended, from its exit code: `was ended by SIGSEGV`, or `ended with exit
    code 3`.
    """
    if code is None:
        return "ended"
    if code < 0:
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


def check_platform(where: str) -> None:
    """Raise `SettingsError` if this platform cannot fork processes."""
    if not hasattr(os, "fork"):
        raise SettingsError(
            where,
            ("needs a system that can fork processes, unlike Windows."),
            remedy="Use WSL, or start it with `command:` or `http:`.",
        )
