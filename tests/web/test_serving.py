"""`assay serve` as a process: it ends when told to, and says what is wrong with a port."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.forked import clean_environment
from tests.web.conftest import Served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def served(template: Path, tmp_path: Path) -> Iterator[Served]:
    """A server in a process of its own."""
    server = Served(shutil.copytree(template, tmp_path / "store"))
    server.start()
    yield server
    server.kill()


def test_told_to_end_it_ends_streams_and_says_nothing_of_it(served: Served) -> None:
    stream = socket.create_connection(("127.0.0.1", served.port), timeout=10)
    stream.sendall(b"GET /api/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert stream.recv(100).startswith(b"HTTP/1.1 200")
    process = served.process
    assert process is not None
    process.send_signal(signal.SIGTERM)
    _, result = process.communicate(timeout=8)
    assert b"Traceback" not in result
    assert b"ERROR" not in result
    while stream.recv(65536):
        pass  # the stream was ended, not left open
    stream.close()
    served.process = None


def test_leases_of_a_desk_survive_a_restart(served: Served) -> None:
    mine = [item["id"] for item in served.get("/api/review/next?desk=desk-1&limit=3")["items"]]
    served.kill()
    served.start()
    theirs = [item["id"] for item in served.get("/api/review/next?desk=desk-2&limit=5")["items"]]
    assert not set(mine) & set(theirs)
    assert {
        item["id"] for item in served.get("/api/review/next?desk=desk-1&limit=3")["items"]
    } == set(mine)


@pytest.mark.slow
def test_a_port_that_is_taken_is_said(served: Served) -> None:
    command = [sys.executable, "-m", "assay", "serve", "--port", str(served.port)]
    done = subprocess.run(
        command,
        cwd=served.folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert f"port {served.port}" in done.stderr
    assert "Choose another with --port" in done.stderr
    assert "Traceback" not in done.stderr
