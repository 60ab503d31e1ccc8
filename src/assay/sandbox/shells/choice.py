"""Choose a sandbox: the one that the user named, or the first that works on this machine."""

from __future__ import annotations

import os
import tempfile
from typing import Final

from assay.domain.errors import InputError
from assay.domain.sandbox import ShellRequest
from assay.ports import Sandbox
from assay.sandbox.shells.implementations import (
    BubblewrapShells,
    ContainerShells,
    NamespaceShells,
    UnconfinedShells,
)
from assay.sandbox.shells.shell import SandboxError

CONFINING: Final = (BubblewrapShells, NamespaceShells, ContainerShells)
"""Available sandboxes, best first. The first two need no image and start within 0.1 s."""


def sandbox_of(name: str | None = None) -> Sandbox:
    """Return the sandbox with this name, or the first one by default; `none` means a shell without
    a sandbox.

    Raises InputError if no sandbox has this name.
    """
    for kind in (*CONFINING, UnconfinedShells):
        sandbox: Sandbox = kind()
        if name in (None, sandbox.name):
            return sandbox
    names = ", ".join(kind().name for kind in (*CONFINING, UnconfinedShells))
    raise InputError("sandbox", f"is {name!r}, and must be one of {names}.")


async def problem_of(sandbox: Sandbox) -> str | None:
    """Run one command to test a sandbox on this machine; return the problem, or None if the sandbox
    works.
    """
    with tempfile.TemporaryDirectory(prefix="assay-probe-") as folder:
        try:
            async with sandbox.open(ShellRequest(workspace=folder)) as shell:
                done = await shell.run("echo works", seconds=20.0)
        except SandboxError as error:
            return f"{error.where} {error.problem}"
    return (
        None
        if done.output == "works\n"
        else f"{sandbox.name} ran a command, which ended with: {done.output[-200:]}"
    )


async def working_sandbox() -> Sandbox:
    """Return the first sandbox that works on this machine.

    Raises InputError with each sandbox's problem if none works.
    """
    reasons = []
    # If this process is root, bubblewrap must be started as another user, who cannot see files that
    # only root may open.
    kinds = (
        CONFINING if os.geteuid() else sorted(CONFINING, key=lambda kind: kind is BubblewrapShells)
    )
    for kind in kinds:
        sandbox: Sandbox = kind()
        reason = await problem_of(sandbox)
        if reason is None:
            return sandbox
        reasons.append(reason.rstrip("."))
    raise InputError(
        "sandbox",
        f"no sandbox works on this machine: {'; '.join(reasons)}.",
        remedy="Install bubblewrap or Docker, or add --no-sandbox to run commands with your full user permissions.",
    )
