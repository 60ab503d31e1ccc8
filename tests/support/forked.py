"""Processes of `assay`, each forked from one that has imported it already: a second less at each
start.

Every one is a process of its own, with its own folder, variables and descriptors, and can be ended
by any signal. What is measured of a start itself, or of a process and its parent, takes `python -m
assay` instead.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import assay

ROOT = Path(__file__).parents[2]


@dataclass
class Process:
    """A started command: its process id, and where what it says goes."""

    pid: int
    out: IO[bytes]
    err: IO[bytes]
    status: int | None = None

    def poll(self) -> int | None:
        """Its exit status (negative: the signal that ended it), or None while it runs."""
        if self.status is None:
            self.status = _ask(reap=self.pid)["status"]
        return self.status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float = 60) -> tuple[bytes, bytes]:
        """Wait for its end; what it said on stdout and stderr."""
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(["assay"], timeout)
            time.sleep(0.01)
        items = []
        for stream in (self.out, self.err):
            stream.seek(0)
            items.append(stream.read())
            stream.close()
        return items[0], items[1]


def clean_environment() -> dict[str, str]:
    """This process's variables without settings of Assay, leading to the same code wherever the
    process starts.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    return {**kept, "PYTHONPATH": str(Path(assay.__file__).parents[1])}


def start(*arguments: object, folder: Path, **variables: str) -> Process:
    """`assay` with these arguments in this folder, with no settings of Assay but these
    variables.
    """
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - they live as long as the process
    names = [f"/proc/{os.getpid()}/fd/{stream.fileno()}" for stream in (out, err)]
    result = _ask(
        start=[str(a) for a in arguments],
        folder=str(folder),
        environment={**clean_environment(), **variables},
        streams=names,
    )
    return Process(result["pid"], out, err)


def run(*arguments: object, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The same, to its end."""
    process = start(*arguments, folder=folder, **variables)
    out, err = process.communicate(timeout=300)
    assert process.status is not None
    return subprocess.CompletedProcess(
        list(map(str, arguments)), process.status, out.decode(), err.decode()
    )


@cache
def _parent() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.forked"],
        cwd=ROOT,
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _ask(**wanted: object) -> Any:
    parent = _parent()
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(json.dumps(wanted) + "\n")
    parent.stdin.flush()
    answer = parent.stdout.readline()
    assert answer, "the process that starts the others has ended"
    return json.loads(answer)


def _serve() -> None:
    """Fork at each line of stdin; end, with all children, at its end."""
    import uvicorn.protocols.http.h11_impl  # noqa: F401 - these so that children need not

    import assay.store.opening
    import assay.web.server  # noqa: F401
    from assay.cli.main import COMMANDS

    for module, _ in COMMANDS.values():
        import_module(module)
    gc.freeze()  # else each child would copy all of memory at its first collection
    children: set[int] = set()
    for line in sys.stdin:
        wanted = json.loads(line)
        if "reap" in wanted:
            pid, status = os.waitpid(wanted["reap"], os.WNOHANG)
            children.discard(pid)
            answer = {"status": os.waitstatus_to_exitcode(status) if pid else None}
        else:
            pid = os.fork()
            if not pid:
                _become(wanted)
            children.add(pid)
            answer = {"pid": pid}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _become(wanted: dict[str, Any]) -> None:
    """The command itself; never returns."""
    status = 70
    try:
        out, err = (os.open(name, os.O_WRONLY) for name in wanted["streams"])
        for number, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), out, err)):
            os.dup2(descriptor, number)
        os.chdir(wanted["folder"])
        os.environ.clear()
        os.environ.update(wanted["environment"])
        sys.argv = ["assay", *wanted["start"]]
        from assay.__main__ import main

        if step := os.environ.get("KILLED_AT_STEP"):
            from tests.support.killed import arm

            arm(int(step))
        try:
            main()
            status = 0
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


if __name__ == "__main__":
    _serve()
