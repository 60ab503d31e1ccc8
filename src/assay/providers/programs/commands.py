"""Commands as candidates: one process per prompt, without a shell.

Processes that the command started are killed with it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from assay.domain.calls import ModelRequest, Reply
from assay.domain.failure import Fault
from assay.domain.programs import Command
from assay.domain.prompts import filled_in
from assay.providers.json_body import UnreadableBody, dump, parse, whole
from assay.providers.programs.call import (
    LONGEST_ANSWER,
    LONGEST_LOG,
    bad_answer,
    failed,
    input_of,
    reply_in,
    reply_of,
    text_values,
    without_secrets,
)
from assay.providers.programs.functions import ending_of

_GRACE_S: Final = 0.5
"""Seconds to wait for output after the command has ended, because a remaining process may keep the
pipe open.
"""


class Commands:
    """A `ports.Provider` for one command."""

    def __init__(self, program: Command, *, folder: Path, environment: Mapping[str, str]) -> None:
        self._program = program
        self._folder = folder
        self._environment = dict(environment)

    async def complete(self, request: ModelRequest, /) -> Reply:
        """Run the command; raises `CallFailed` with the exit code and the standard error output."""
        given = input_of(request)
        values = text_values(given)
        words = [filled_in(word, values) for word in self._program.words]
        began = perf_counter()
        try:
            transport, run = await asyncio.get_running_loop().subprocess_exec(
                _Run, *words, cwd=self._folder, env=self._environment, start_new_session=True
            )
        except ValueError:
            raise failed(
                "bad_input",
                (
                    "An argument would contain a NUL character. Set `stdin: text` to send the prompt on standard input."
                ),
            ) from None
        except OSError as error:
            raise failed("cannot_start", _why_not(error, words[0]), fault=Fault.HARNESS) from None
        try:
            async with asyncio.timeout(self._program.timeout_s):
                code = await run.ended_after(self._input(given))
        except TimeoutError:
            detail = f"The command did not end within {self._program.timeout_s:g} s."
            raise failed("timeout", detail, log=self._log(run.errors)) from None
        finally:
            run.kill_group()
            await run.exited.wait()
            transport.close()
        if len(run.output) > LONGEST_ANSWER:
            detail = f"The command wrote more than {LONGEST_ANSWER // 2**20} MB to standard output."
            raise failed("too_long", detail, log=self._log(run.errors))
        return self._reply(run.output, code, run.errors, request, elapsed_s=perf_counter() - began)

    async def close(self) -> None:
        """Do nothing, because each call ends its process."""

    def _input(self, given: Mapping[str, Any]) -> bytes:
        match self._program.stdin:
            case "json":
                return dump(
                    {
                        name: given[name]
                        for name in ("task", "prompt", "messages", "system_prompt", "trial", "seed")
                    }
                )
            case "text":
                return str(given["prompt"]).encode("utf-8", "replace")
            case _:
                return b""

    def _reply(
        self,
        output: bytearray,
        code: int,
        errors: bytearray,
        request: ModelRequest,
        *,
        elapsed_s: float,
    ) -> Reply:
        log = self._log(errors)
        if code != 0:
            last = log.strip().rpartition("\n")[2]
            printed = without_secrets(
                output[:LONGEST_LOG].decode("utf-8", "replace"), self._environment
            )
            log = "\n".join(
                part for part in (log, printed and f"Standard output:\n{printed}") if part
            )
            kind = f"exit_{code}" if code > 0 else "crashed"
            # A shell ends with 126 or 127 if it cannot start a program, which is not the
            # candidate's answer.
            fault = Fault.HARNESS if code in (126, 127) else Fault.CANDIDATE
            raise failed(
                kind,
                f"The command {ending_of(code)}{f': {last}' if last else ''}.",
                log=log,
                fault=fault,
            )
        if not (self._program.response or self._program.usage):
            text = output.decode("utf-8", "replace")
            return reply_of(
                text.removesuffix("\n").removesuffix("\r"),
                {},
                request,
                elapsed_s=elapsed_s,
                log=log,
            )
        try:
            document = parse(bytes(output))
        except UnreadableBody as error:
            shown = output[:60].decode("utf-8", "replace")
            raise bad_answer(
                f"The command's output is not JSON ({error}): {shown!r}.", log=log
            ) from None
        return reply_in(document, self._program, request, elapsed_s=elapsed_s, log=log)

    def _log(self, errors: bytearray) -> str:
        return whole(without_secrets(errors.decode("utf-8", "replace"), self._environment))


class _Run(asyncio.SubprocessProtocol):
    """Collects a process's output.

    Unlike asyncio's streams, it does not wait for remaining child processes.
    """

    def __init__(self) -> None:
        self.output, self.errors = bytearray(), bytearray()
        self.exited = asyncio.Event()
        self._closed = asyncio.Event()
        self._open = {1, 2}
        self._transport: asyncio.SubprocessTransport | None = None

    async def ended_after(self, given: bytes) -> int:
        """Write the input, wait for the end of the process and its output, and return the exit
        code.
        """
        assert self._transport is not None
        pipe = self._transport.get_pipe_transport(0)
        assert isinstance(pipe, asyncio.WriteTransport)
        pipe.write(given)
        pipe.close()
        await self.exited.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), _GRACE_S)
        return self._transport.get_returncode() or 0

    def kill_group(self) -> None:
        """Kill the process and all processes that it started."""
        assert self._transport is not None
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._transport.get_pid(), signal.SIGKILL)
            else:
                self._transport.kill()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.errors += data[: LONGEST_LOG - len(self.errors)]
        elif len(self.output) <= LONGEST_ANSWER:
            self.output += data
            if len(self.output) > LONGEST_ANSWER:
                self.kill_group()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self._closed.set()

    def process_exited(self) -> None:
        self.exited.set()


def _why_not(error: OSError, name: str) -> str:
    if isinstance(error, FileNotFoundError):
        return (
            f"The program {name!r} does not exist, or the interpreter in its first line is missing."
        )
    if isinstance(error, PermissionError):
        return f"{name!r} is not executable. Run: chmod +x {name}"
    if error.errno == 7:  # E2BIG
        return "The prompt is too long for an argument. Remove {{prompt}} from `command` to send the prompt on standard input."
    return f"{name!r} cannot be started: {error.strerror}."
