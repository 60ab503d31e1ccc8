"""Records for sandboxed commands: shell limits, requests and results."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

CHECKERS: Final = (
    *(
        "pytest",
        "_pytest",
        "pluggy",
        "mypy",
        "ruff",
        "flake8",
        "pylint",
        "pyright",
        "black",
        "isort",
        "bandit",
        "tox",
        "nox",
    ),
    *("coverage", "hypothesis", "pip", "setuptools", "build", "wheel"),
)
"""Modules of tools that check code or run checks."""

RESERVED: Final = frozenset(sys.stdlib_module_names).union(CHECKERS)
"""Modules that a file of graded code must not replace."""


class CommandEnd(StrEnum):
    """Reasons why a command ended."""

    EXITED = "exited"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    DISK_FULL = "disk_full"
    SHELL_LOST = "shell_lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellLimits:
    """Limits of a sandboxed shell and all its processes.

    Attributes:
        memory_bytes: total memory of all processes.
        processes: number of processes and threads at a time.
        file_bytes: maximum size of one file.
        disk_bytes: maximum total growth of the workspace and the temporary folder.
        seconds: wall time for a command without its own limit.
        output_bytes: maximum output kept per command; the rest is discarded.
    """

    memory_bytes: int = 4 << 30
    processes: int = 512
    file_bytes: int = 1 << 30
    disk_bytes: int = 8 << 30
    seconds: float = 600.0
    output_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A server on the host that one shell's commands reach at a port of 127.0.0.1.

    Attributes:
        socket: the server's UNIX socket, in a separate folder.
        addresses: environment variables for the server's address, each with the path that follows
            host and port.
        variables: further environment variables for the commands.
    """

    socket: str
    addresses: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedChecks:
    """Checks whose result the graded code must not decide; a process outside of the code's counts
    the tests.

    Attributes:
        trusted: paths of the files that the graded code could not write, relative to the workspace.
        own: modules of Python that files of the workspace replace on purpose.
    """

    trusted: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    @classmethod
    def of(cls, trusted: Iterable[str], known: Iterable[str]) -> Self:
        """Return the checks for these trusted files in a workspace whose author wrote or named the
        `known` files.
        """
        tops = {path.partition("/")[0] for path in known} | {
            path.rpartition("/")[2] for path in known
        }
        names = {name.removesuffix(".py") for name in tops}
        return cls(
            trusted=tuple(path for path in trusted if path.endswith(".py")),
            own=tuple(sorted(names & RESERVED)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellRequest:
    """A request for a shell in one workspace.

    Attributes:
        workspace: the only folder that commands may change; they see it as `/workspace`, unless
            they run without a sandbox.
        network: True if commands may use the network.
        readable: further files and folders that commands may read, under the same paths.
        environment: environment variables for the commands, in addition to PATH, HOME, TMPDIR and
            LANG. Nothing is inherited.
        gateway: the only server that commands reach without a network.
        background: True if processes may outlive the command that started them; False ends them
            with it.
        checks: the checks to guard, if the commands run graded code.
    """

    workspace: str
    network: bool = False
    readable: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    gateway: Gateway | None = None
    background: bool = True
    checks: GuardedChecks | None = None
    limits: ShellLimits = field(default_factory=ShellLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The result of one command.

    Attributes:
        exit_code: as the shell reports it, so 128 + N after signal N; None if the command did not
            exit by itself.
        output: standard output and standard error in the order they were written; the middle is
            left out if it is too long.
        output_bytes: number of bytes that the command wrote.
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
    """A request for one command in a workspace with these files; `checks` is as in
    `ShellRequest`.
    """

    files: Mapping[str, str]
    command: str
    seconds: float
    checks: GuardedChecks | None = None
