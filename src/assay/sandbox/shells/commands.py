"""Run single commands, each in its own sandboxed workspace, which is deleted afterwards."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from assay.domain.sandbox import CommandEnd, CommandRequest, CommandResult, ShellRequest
from assay.ports import Sandbox
from assay.sandbox.shells.choice import sandbox_of, working_sandbox
from assay.sandbox.shells.implementations import remove
from assay.sandbox.shells.shell import SandboxError


class SandboxedCommands:
    """Runs commands in the named sandbox or the first working one, with at most one command per
    processor at a time.
    """

    def __init__(self, name: str | None = None) -> None:
        self._sandbox: Sandbox | None = None if name is None else sandbox_of(name)
        self._turns: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    async def choose(self) -> Sandbox:
        """Return the sandbox for commands.

        Raises InputError if no sandbox works on this machine.
        """
        if self._sandbox is None:
            self._sandbox = await working_sandbox()
        return self._sandbox

    async def run(self, request: CommandRequest, /) -> CommandResult:
        sandbox = await self.choose()
        async with self._turn():
            with tempfile.TemporaryDirectory(
                prefix="assay-workspace-", ignore_cleanup_errors=True
            ) as folder:
                await asyncio.to_thread(_write, Path(folder), request.files)
                try:
                    async with sandbox.open(
                        ShellRequest(workspace=folder, checks=request.checks)
                    ) as shell:
                        return await shell.run(request.command, seconds=request.seconds)
                except SandboxError as error:
                    return CommandResult(
                        end=CommandEnd.SHELL_LOST,
                        exit_code=None,
                        output=f"{error}",
                        output_bytes=0,
                        seconds=0.0,
                    )
                finally:
                    await asyncio.to_thread(remove, folder)

    def _turn(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._turns is None or self._turns[0] is not loop:
            self._turns = loop, asyncio.Semaphore(os.cpu_count() or 1)
        return self._turns[1]


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8", newline="")
