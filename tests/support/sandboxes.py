"""Commands in sandboxes for tests: as this user, and as an ordinary user if the tests run as
root.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler
from importlib import import_module
from pathlib import Path

from assay.domain.sandbox import CommandEnd, CommandResult, Gateway, ShellLimits, ShellRequest
from assay.sandbox.shells import implementations
from assay.sandbox.shells.choice import problem_of, sandbox_of
from assay.sandbox.shells.shell import SUPERVISOR

ORDINARY_USER = 65534
SYSTEM_PYTHON = "/usr/bin/python3"
ROOT = os.geteuid() == 0


def in_shell(name: str, request: ShellRequest, *commands: str) -> list[CommandResult]:
    """The results of commands in one shell of a sandbox."""

    async def run() -> list[CommandResult]:
        async with sandbox_of(name).open(request) as shell:
            return [await shell.run(command) for command in commands]

    return asyncio.run(run())


def as_ordinary_user(name: str, request: ShellRequest, *commands: str) -> list[CommandResult]:
    """The same, by a process that gave up root before; everything it needs lies where that user can
    read it.
    """
    with tempfile.TemporaryDirectory(prefix="assay-ordinary-") as folder:
        os.chmod(folder, 0o755)
        supervisor = shutil.copy(SUPERVISOR, folder)
        given = json.dumps([name, asdict(request), commands, supervisor])
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.sandboxes"],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[2],
        )
        assert done.returncode == 0, done.stderr
        return [
            CommandResult(**{**result, "end": CommandEnd(result["end"])})
            for result in json.loads(done.stdout)
        ]


def problem(name: str) -> str | None:
    """The reason for which this sandbox does not work here; None if it does."""
    return asyncio.run(problem_of(sandbox_of(name)))


@contextmanager
def listening() -> Iterator[tuple[int, list[object]]]:
    """A port of the host, and who connected to it."""
    knocks: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.0)
        yield server.getsockname()[1], knocks
        with suppress(BlockingIOError):
            knocks.append(server.accept()[1])


@contextmanager
def serving(text: str) -> Iterator[str]:
    """The socket of a web server that answers every request with a text and its path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"{text} {self.path}".encode())

        def log_message(self, *_: object) -> None: ...

        def address_string(self) -> str:
            return ""

    with tempfile.TemporaryDirectory(prefix="assay-server-", dir="/tmp") as folder:
        place = f"{folder}/s"
        with socketserver.ThreadingUnixStreamServer(place, Handler) as server:
            if ROOT:  # the shells of an ordinary user cannot give it to themselves
                os.chmod(folder, 0o711)
                os.chown(place, ORDINARY_USER, ORDINARY_USER)
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            yield place
            server.shutdown()


def become_ordinary(supervisor: Path) -> None:
    """Give up root, and use a Python and a supervisor that every user may read."""
    # the other user may not be able to read them
    for name_of_module in ("concurrent.futures.thread", "encodings.ascii"):
        import_module(name_of_module)
    os.setgroups([])
    os.setresgid(ORDINARY_USER, ORDINARY_USER, ORDINARY_USER)
    os.setresuid(ORDINARY_USER, ORDINARY_USER, ORDINARY_USER)
    for attribute, value in (("_PYTHON", (SYSTEM_PYTHON, "-I", "-S")), ("SUPERVISOR", supervisor)):
        setattr(implementations, attribute, value)
    sys.prefix = sys.base_prefix = "/usr"


def _main() -> None:
    name, request, commands, supervisor = json.load(sys.stdin)
    limits = ShellLimits(**request.pop("limits"))
    gateway = Gateway(**request["gateway"]) if request["gateway"] else None
    become_ordinary(Path(supervisor))
    results = in_shell(
        name,
        ShellRequest(**{**request, "readable": (), "limits": limits, "gateway": gateway}),
        *commands,
    )
    print(json.dumps([asdict(result) for result in results]))


if __name__ == "__main__":
    _main()
