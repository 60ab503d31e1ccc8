"""Records for commands that run in a sandbox: limits of a shell, and the result of each command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class CommandEnd(StrEnum):
    """How a command ended."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    DISK_FULL = "disk_full"
    SHELL_LOST = "shell_lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellLimits:
    """Limits of a sandboxed shell, over all processes in it.

    Attributes:
        memory_bytes: memory of all processes together.
        processes: processes and threads at a time.
        file_bytes: size of one file.
        disk_bytes: growth of the workspace and the temporary folder together.
        seconds: wall time of one command that has no limit of its own.
        output_bytes: output kept of one command; the rest is read and thrown away.
    """

    memory_bytes: int = 4 << 30
    processes: int = 512
    file_bytes: int = 1 << 30
    disk_bytes: int = 8 << 30
    seconds: float = 600.0
    output_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellRequest:
    """A shell over one workspace.

    Attributes:
        workspace: the one folder that commands may change; they see it as `/workspace`, unless nothing confines them.
        network: True lets commands reach the network.
        readable: further files and folders that commands may read, under the same paths.
        environment: variables of the commands, beside PATH, HOME, TMPDIR and LANG. Nothing is inherited.
    """

    workspace: str
    network: bool = False
    readable: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: ShellLimits = field(default_factory=ShellLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The result of one command.

    Attributes:
        exit_code: as the shell reports it, 128 + N after signal N; None if the command did not exit by itself.
        output: standard output and standard error as they came; the middle is left out if it is too long.
        output_bytes: bytes that the command wrote.
        seconds: wall time.
    """

    end: CommandEnd
    exit_code: int | None
    output: str
    output_bytes: int
    seconds: float

    @property
    def succeeded(self) -> bool:
        """True if the command exited with code 0."""
        return self.exit_code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    """One command in its own workspace, which holds these files by name and is deleted afterwards."""

    files: Mapping[str, str]
    command: str
    seconds: float
