"""A running shell: sends commands to the supervisor in the sandbox, with limits on time, memory and
disk space.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from assay.domain.errors import AssayError
from assay.domain.sandbox import CommandEnd, CommandResult, ShellRequest
from assay.sandbox import process_memory
from assay.sandbox.shells.visible import GATEWAY, WORKSPACE

SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")
START_LIMIT_S: Final = 30.0
LOOK_EVERY_S: Final = 0.1
_LATE_S: Final = 5.0  # extra time for the process inside to answer, after a command's time limit
_LONGEST_ANSWER: Final = 64 << 20
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class SandboxError(AssayError):
    """Raised if the sandbox could not be created. No command has run."""


class SupervisedShell:
    """A sandboxed shell that runs one command at a time in a supervisor process."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        request: ShellRequest,
        *,
        folder: str,
        grown: Sequence[Path],
    ) -> None:
        self._process = process
        self._request = request
        self._folder = folder
        self._grown = grown
        self._disk_before = sum(map(_size_of, grown))
        self._lost: CommandEnd | None = None

    @classmethod
    async def start(
        cls,
        words: Sequence[str],
        request: ShellRequest,
        description: Mapping[str, Any],
        *,
        workspace: str,
        temporary: Path,
        path: Sequence[str] = (),
        user: int | None = None,
    ) -> SupervisedShell:
        """Start the supervisor inside the sandbox.

        Raises SandboxError if the sandbox could not be created.

        Args:
            words: command that starts the supervisor, which then reads `description`, the shell's
                settings.
            workspace: path of the workspace inside the sandbox; `temporary` is the host's folder
                for temporary files.
            path: folders to search for programs before the usual ones.
            user: user id of the supervisor; None for the current user.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={"PATH": _PATH},
                limit=_LONGEST_ANSWER,
                start_new_session=True,
                user=user,
                group=user,
                extra_groups=None if user is None else [],
            )
        except OSError as error:
            problem = (error.strerror or str(error)).lower()
            raise SandboxError(
                "the sandbox", f"could not be started by {words[0]}: {problem}."
            ) from error
        shell = cls(process, request, folder=workspace, grown=(Path(request.workspace), temporary))
        inner_temporary = "/tmp" if workspace == WORKSPACE else str(temporary)
        environment = {
            "PATH": os.pathsep.join([*path, _PATH]),
            "HOME": inner_temporary,
            "TMPDIR": inner_temporary,
            "LANG": "C.UTF-8",
            **request.environment,
            **(request.gateway.variables if request.gateway else {}),
        }
        gateway = request.gateway and {
            "socket": GATEWAY if workspace == WORKSPACE else request.gateway.socket,
            "addresses": dict(request.gateway.addresses),
        }
        limits = request.limits
        told = {
            "environment": environment,
            "gateway": gateway,
            "network": request.network,
            "file_bytes": limits.file_bytes,
            "processes": limits.processes,
            "background": request.background,
            **description,
        }
        try:
            answer = await asyncio.wait_for(shell._ask(told), START_LIMIT_S)
        except TimeoutError:
            answer = None
        if answer is None or not answer["ready"]:
            process_memory.kill_all(process_memory.tree_of(process.pid))
            assert process.stderr is not None
            complaint = (await process.stderr.read())[-2000:].decode("utf-8", "replace").strip()
            await shell.close()
            problem = (
                answer["problem"]
                if answer
                else complaint.splitlines()[-1]
                if complaint
                else "its supervisor did not answer"
            )
            raise SandboxError("the sandbox", f"could not be created: {problem}.")
        return shell

    async def run(
        self,
        command: str,
        *,
        seconds: float | None = None,
        folder: str = "",
        output_bytes: int | None = None,
    ) -> CommandResult:
        """Run a command with `sh -c` and return its result.

        If the command exceeds a memory or disk limit, the shell ends.

        `seconds` limits wall time, and `output_bytes` the stored output; the shell's own limits are
        the defaults. `folder` is relative to the workspace.
        """
        limits = self._request.limits
        seconds = limits.seconds if seconds is None else seconds
        begun = time.monotonic()
        if self._lost is not None:
            return _ended(self._lost, 0.0)
        asked = {
            "command": command,
            "seconds": seconds,
            "folder": f"{self._folder}/{folder}" if folder else self._folder,
            "output_bytes": limits.output_bytes if output_bytes is None else output_bytes,
        }
        answering = asyncio.ensure_future(self._ask(asked))
        watching = asyncio.ensure_future(self._watch(begun + seconds + _LATE_S))
        try:
            await asyncio.wait({answering, watching}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                self._lost = watching.result()
                process_memory.kill_all(reversed(process_memory.tree_of(self._process.pid)))
            answer = await answering
        finally:
            watching.cancel()
        if answer is None or self._lost is not None:
            self._lost = self._lost or CommandEnd.SHELL_LOST
            return _ended(self._lost, time.monotonic() - begun)
        return CommandResult(**{**answer, "end": CommandEnd(answer["end"])})

    async def close(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        process_memory.kill_all(process_memory.tree_of(self._process.pid)[1:])
        await self._process.wait()
        self._lost = self._lost or CommandEnd.SHELL_LOST

    async def _ask(self, message: Mapping[str, Any]) -> dict[str, Any] | None:
        pipe, answers = self._process.stdin, self._process.stdout
        assert pipe is not None
        assert answers is not None
        with suppress(OSError, ValueError):
            pipe.write(json.dumps(message).encode() + b"\n")
            await pipe.drain()
            line = await answers.readline()
            return dict(json.loads(line)) if line else None
        return None

    async def _watch(self, until: float) -> CommandEnd:
        """Wait until the shell exceeds a limit that the supervisor cannot measure, and return that
        limit.
        """
        limits = self._request.limits
        look_at_disk = time.monotonic() + 1.0
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            now = time.monotonic()
            if now > until:
                return CommandEnd.SHELL_LOST
            if (
                process_memory.memory_of(process_memory.tree_of(self._process.pid))
                > limits.memory_bytes
            ):
                return CommandEnd.OUT_OF_MEMORY
            if now >= look_at_disk:
                size = await asyncio.to_thread(lambda: sum(map(_size_of, self._grown)))
                if size - self._disk_before > limits.disk_bytes:
                    return CommandEnd.DISK_FULL
                taken = time.monotonic() - now
                look_at_disk = now + max(1.0, 20 * taken)


def _ended(end: CommandEnd, seconds: float) -> CommandResult:
    return CommandResult(end=end, exit_code=None, output="", output_bytes=0, seconds=seconds)


def _size_of(folder: Path) -> int:
    """Return the size of a folder on disk in bytes, without the files that cannot be read."""
    size = 0
    pending = [str(folder)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    with suppress(OSError):
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
                        else:
                            size += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError as error:
            # a path that cannot be measured could hide any size
            if error.errno == errno.ENAMETOOLONG:
                return 1 << 60
    return size
