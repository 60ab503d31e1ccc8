"""The first process of a sandboxed shell: confines itself, then runs one command after another.

It runs as a script with only the standard library, so the sandbox needs no other files. The first
line on stdin is a JSON object with the shell's settings, and each further line is a command. The
supervisor answers each command with one line of JSON on stdout. It has process id 1 in its
namespace. Therefore no command can kill it, and all processes end with it.

If the settings contain `namespaces`, the supervisor creates the namespaces itself; the key lists
the files in the new root folder. The steps follow pivot_root(2), user_namespaces(7),
capabilities(7) and landlock(7).
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from typing import Any

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = (
    1,
    2,
    4,
    8,
    0x1000,
    0x4000,
    1 << 18,
)
_MNT_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
# on all architectures
_MOUNT_SETATTR, _LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = (442, 444, 445, 446)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
_DEVICES = ("null", "zero", "full", "random", "urandom")
_WAIT_AFTER_EXIT_S = 0.2  # for output that a command's child processes still write

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Confine this process with the settings on the first line of stdin, then answer commands until
    stdin ends.
    """
    description = json.loads(sys.stdin.buffer.readline())
    try:
        if description.get("namespaces") is not None:
            _enter_namespaces(description)
        _limit(description)
        if description["gateway"] is not None:
            _open_gateway(description["gateway"], description["environment"])
    except OSError as error:
        _answer({"ready": False, "problem": f"{error}"})
        sys.exit(1)
    _answer({"ready": True})
    while line := sys.stdin.buffer.readline():
        _answer(_run(json.loads(line), description))
    _kill_everyone()


def _answer(document: dict[str, object]) -> None:
    sys.stdout.buffer.write(json.dumps(document).encode() + b"\n")
    sys.stdout.buffer.flush()


def _run(command: Mapping[str, Any], description: Mapping[str, Any]) -> dict[str, object]:
    begun = time.monotonic()
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command["command"]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=command["folder"],
            env=description["environment"],
            start_new_session=True,
        )
    except OSError as error:
        text = f"the command could not be started: {error.strerror}\n"
        return {
            "end": "exited",
            "exit_code": 126,
            "output": text,
            "output_bytes": len(text),
            "seconds": 0.0,
        }
    assert process.stdout is not None
    output = _Output(command["output_bytes"])
    end = (
        "exited"
        if _collect(process, process.stdout.fileno(), output, begun + command["seconds"])
        else "timed_out"
    )
    if end == "timed_out" or not description["background"]:
        _kill_everyone(process)
    code = process.wait()
    process.stdout.close()
    return {
        "end": end,
        "exit_code": None if end == "timed_out" else code if code >= 0 else 128 - code,
        "output": output.text(),
        "output_bytes": output.size,
        "seconds": time.monotonic() - begun,
    }


def _collect(
    process: subprocess.Popen[bytes], descriptor: int, output: _Output, until: float
) -> bool:
    """Read a process's output until the process exits; return False if the time limit is reached
    first.

    The pipe may stay open after the exit, because a background process of the command may still use
    it.
    """
    ended = None
    while True:
        now = time.monotonic()
        if ended is None and process.poll() is not None:
            ended = now
        if ended is None and now >= until:
            return False
        if ended is not None and now >= ended + _WAIT_AFTER_EXIT_S:
            return True
        if not select.select([descriptor], [], [], 0.02)[0]:
            continue
        portion = os.read(descriptor, 1 << 16)
        if not portion:
            try:
                process.wait(timeout=max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                return False
            return True
        output.add(portion)


class _Output:
    """Keeps the beginning and the end of a command's output, each up to half of the output
    limit.
    """

    def __init__(self, most: int) -> None:
        self._half = max(1, most // 2)
        self._head, self._tail = bytearray(), bytearray()
        self.size = 0

    def add(self, portion: bytes) -> None:
        self.size += len(portion)
        room = self._half - len(self._head)
        self._head += portion[:room]
        self._tail += portion[room:]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def text(self) -> str:
        tail = self._tail[-self._half :]
        left_out = self.size - len(self._head) - len(tail)
        middle = f"\n[{left_out} bytes left out]\n".encode() if left_out else b""
        return (bytes(self._head) + middle + bytes(tail)).decode("utf-8", "replace")


def _kill_everyone(process: subprocess.Popen[bytes] | None = None) -> None:
    """Kill all other processes in the sandbox or, without a process namespace, those in the
    command's session.
    """
    try:
        if os.getpid() == 1:
            os.kill(-1, signal.SIGKILL)
        elif process is not None:
            os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _open_gateway(gateway: Mapping[str, Any], environment: dict[str, str]) -> None:
    """Pass on connections from a port of 127.0.0.1 to the host's socket, and add the port's address
    to the environment.

    A thread does this, because commands may kill any other process.
    """
    import asyncio  # most shells have no gateway

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answers, requests = await asyncio.open_unix_connection(gateway["socket"])
        except OSError:
            writer.close()
            return
        await asyncio.gather(pour(reader, requests), pour(answers, writer), return_exceptions=True)

    async def pour(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while portion := await source.read(1 << 16):
                target.write(portion)
                await target.drain()
        finally:
            target.close()

    async def serve() -> None:
        await (await asyncio.start_server(connect, sock=server)).serve_forever()

    server = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{server.getsockname()[1]}"
    environment.update({name: address + path for name, path in gateway["addresses"].items()})
    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()


# --- Confinement ----------------------------------------------------------------------------------


def _check(result: int, step: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{step}: {os.strerror(number)}")
    return result


def _enter_namespaces(description: Mapping[str, Any]) -> None:
    """Make this process PID 1 in new namespaces, with a root directory that contains only the
    listed files.
    """
    shown = description["namespaces"]
    user, group = os.getuid(), os.getgid()
    flags = _CLONE_NEWNS | _CLONE_NEWUTS | _CLONE_NEWIPC | _CLONE_NEWPID
    flags |= 0 if description["network"] else _CLONE_NEWNET
    if user != 0:
        _check(_libc.unshare(_CLONE_NEWUSER), "user namespace")
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    _check(_libc.unshare(flags), "namespaces")
    child = os.fork()
    if child:
        _wait_for(child)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if not description["network"]:
        _raise_loopback()
    _build_root(shown)
    if user == 0:
        os.setgroups([])
        os.setresgid(description["user"], description["user"], description["user"])
        os.setresuid(description["user"], description["user"], description["user"])
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # changing the user clears it
    _drop_capabilities()
    _restrict_files(shown["writable"])


def _wait_for(child: int) -> None:
    """Wait outside the namespace for its process 1 to end, and exit with the same status."""
    sys.stdin.close()
    os.close(1)
    status = os.waitpid(child, 0)[1]
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _raise_loopback() -> None:
    """Bring up the loopback device of the new network, so that tests may use 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as network:
        request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)  # IFF_UP, IFF_RUNNING
        ioctl(network.fileno(), 0x8914, request)  # SIOCSIFFLAGS


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    done = _libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() if kind else None,
        flags,
        data.encode() if data else None,
    )
    _check(done, f"mount of {source} at {target}")


def _build_root(shown: Mapping[str, Any]) -> None:
    """Create a root folder from the listed files and folders, and detach the old root."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    root = shown["root"]
    _mount("tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=16m,mode=0755")
    for source, target, writable in shown["mounts"]:
        place = root + target
        _make_place(source, place)
        _mount(source, place, None, _MS_BIND | _MS_REC)
        _set_attributes(place, read_only=not writable)
    for target, pointed_at in shown["links"]:
        os.symlink(pointed_at, root + target)
    _build_devices(f"{root}/dev")
    os.makedirs(f"{root}/proc", exist_ok=True)
    _mount("proc", f"{root}/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    number = _PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, f"no sandbox for machines of type {os.uname().machine}")
    os.makedirs(f"{root}/.old")
    _check(_libc.syscall(number, root.encode(), f"{root}/.old".encode()), "pivot_root")
    os.chdir("/")
    _check(_libc.umount2(b"/.old", _MNT_DETACH), "leaving the old root")
    os.rmdir("/.old")
    _set_attributes("/", read_only=True, recursive=False)


def _build_devices(folder: str) -> None:
    os.makedirs(f"{folder}/shm", exist_ok=True)
    _mount("tmpfs", f"{folder}/shm", "tmpfs", _MS_NOSUID | _MS_NODEV, "size=64m,mode=1777")
    for device in _DEVICES:
        _write(f"{folder}/{device}", "")
        _mount(f"/dev/{device}", f"{folder}/{device}", None, _MS_BIND)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{target}", f"{folder}/{name}")


def _make_place(source: str, place: str) -> None:
    if os.path.isdir(source):
        os.makedirs(place, exist_ok=True)
        return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if not os.path.lexists(place):
        _write(place, "")


def _set_attributes(place: str, *, read_only: bool, recursive: bool = True) -> None:
    """Disable set-user-id programs and devices in a mount and, if `read_only`, writing; `recursive`
    includes nested mounts.
    """
    attributes = struct.pack("QQQQ", int(read_only) | 2 | 4, 0, 0, 0)
    flags = 0x8000 if recursive else 0  # AT_RECURSIVE
    done = _libc.syscall(_MOUNT_SETATTR, -100, place.encode(), flags, attributes, len(attributes))
    _check(done, f"attributes of {place}")


def _drop_capabilities() -> None:
    for capability in range(64):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = struct.pack("Ii", 0x20080522, 0)
    _check(_libc.capset(header, bytes(24)), "dropping capabilities")


def _restrict_files(writable: Sequence[str]) -> None:
    """Use Landlock to forbid mounting, and writing outside the listed folders; do nothing if the
    kernel lacks Landlock.
    """
    version = _libc.syscall(_LANDLOCK_CREATE, None, 0, 1)
    if version < 2:  # the first version does not allow moving files between folders
        return
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # Permissions to write, remove, create and move files; the one to truncate files was added in
    # version 3.
    rights = sum(1 << bit for bit in (1, *range(4, 14), *((14,) if version >= 3 else ())))
    rules = _check(_libc.syscall(_LANDLOCK_CREATE, struct.pack("Q", rights), 8, 0), "Landlock")
    # In the last two, the kernel does not let this user write anything that belongs to others.
    for place in (*writable, "/dev", "/proc"):
        opened = os.open(place, os.O_PATH | os.O_CLOEXEC)
        _check(
            _libc.syscall(_LANDLOCK_ADD, rules, 1, struct.pack("=Qi", rights, opened), 0),
            f"Landlock: {place}",
        )
        os.close(opened)
    _check(_libc.syscall(_LANDLOCK_RESTRICT, rules, 0), "Landlock")
    os.close(rules)


def _limit(description: Mapping[str, Any]) -> None:
    """Set resource limits for this process and its descendants, and prevent commands from reading
    or tracing this process.
    """
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: description["file_bytes"]}
    if os.getpid() == 1:  # outside a namespace, the limit counts all processes of the user
        limits[resource.RLIMIT_NPROC] = description["processes"]
    for limit, most in limits.items():
        _, hard = resource.getrlimit(limit)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (most, most))


if __name__ == "__main__":
    main()
