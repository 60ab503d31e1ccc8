"""Chooses a sandbox: the one that the user named, or the first that works here."""

from __future__ import annotations

import os
import tempfile
from typing import Final

from assay.domain.errors import InputError
from assay.domain.sandbox import ShellRequest
from assay.ports import Sandbox
from assay.sandbox.shells.implementations import BubblewrapShells, ContainerShells, NamespaceShells, UnconfinedShells
from assay.sandbox.shells.shell import SandboxError

CONFINING: Final = (BubblewrapShells, NamespaceShells, ContainerShells)
"""The sandboxes, with the best first: the first two need no image and start within a tenth of a second."""


def sandbox_of(name: str | None = None) -> Sandbox:
    """Return the sandbox with this name, or the first one by default; `none` means a shell without a sandbox.

    Raises:
        InputError: there is no sandbox with this name.
    """
    for kind in (*CONFINING, UnconfinedShells):
        sandbox: Sandbox = kind()
        if name in (None, sandbox.name):
            return sandbox
    names = ", ".join(kind().name for kind in (*CONFINING, UnconfinedShells))
    raise InputError("sandbox", f"is {name!r}, and must be one of {names}.")


async def problem_of(sandbox: Sandbox) -> str | None:
    """Return the reason why a sandbox does not work here; None if it works. Runs one command in it."""
    with tempfile.TemporaryDirectory(prefix="assay-probe-") as folder:
        try:
            async with sandbox.open(ShellRequest(workspace=folder)) as shell:
                done = await shell.run("echo works", seconds=20.0)
        except SandboxError as error:
            return f"{error.where} {error.problem}"
    return None if done.output == "works\n" else f"{sandbox.name} ran a command, which ended with: {done.output[-200:]}"


async def working_sandbox() -> Sandbox:
    """Return the first sandbox that works here.

    Raises:
        InputError: none works; the message gives the reason for each.
    """
    reasons = []
    # If this process is root, bubblewrap must be started as another user, who cannot see files that only root may open.
    kinds = CONFINING if os.geteuid() else sorted(CONFINING, key=lambda kind: kind is BubblewrapShells)
    for kind in kinds:
        sandbox: Sandbox = kind()
        reason = await problem_of(sandbox)
        if reason is None:
            return sandbox
        reasons.append(reason.rstrip("."))
    raise InputError(
        "sandbox",
        f"none works here: {'; '.join(reasons)}.",
        remedy="Install bubblewrap or Docker, or add --no-sandbox to run commands with your full user permissions.",
    )
