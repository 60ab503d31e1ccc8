"""The command line as a user has it: in a folder of its own, in this process or as a process of its
own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import exit_code
from tests.support.model_server import ModelServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


Command = Callable[..., Said]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the working folder; no setting of this machine reaches it."""
    for name in list(os.environ):
        if name.startswith("ASSAY_") or name.endswith(("_API_KEY", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def assay(project: Path, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process; a traceback on stderr fails the test."""

    def command(*arguments: object) -> Said:
        capfd.readouterr()
        code = exit_code([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert "Traceback" not in err, err
        return Said(code=code, out=out, err=err)

    return command


@pytest.fixture
def server(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A scripted model server that `openai/…` models reach."""
    with ModelServer() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-never-to-be-seen")
        yield running


def start(*arguments: object, **environment: str) -> subprocess.Popen[bytes]:
    """A command as a process of its own, to be killed or interrupted."""
    return subprocess.Popen(
        [sys.executable, "-m", "assay", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
    )
