"""Signals at any moment of a command: its exit code is 130, never that of the signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.attack.figures import publish_cases
from tests.support import forked

STRIKE = """
import importlib.abc, os, runpy, sys

class Striker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Striker())
sys.argv = ["assay", "demo", "--no-serve"]
runpy.run_module("assay", run_name="__main__", alter_sys=True)
"""
"""Sends a signal when a module is about to be imported."""

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
MODULES = (
    "assay.cli.main",
    "click",
    "assay.cli.demo",
    "sqlalchemy",
    "assay.engine.execution",
    "assay.app.results_files",
)
STRIKES = [
    pytest.param(
        module, name, marks=() if SIGNALS[place % len(SIGNALS)] == name else pytest.mark.slow
    )
    for place, module in enumerate(MODULES)
    for name in SIGNALS
]
"""Every module with every signal; `make test` takes one signal for each module."""


@pytest.mark.parametrize(("module", "name"), STRIKES)
def test_a_signal_during_an_import_ends_with_130(module: str, name: str, tmp_path: Path) -> None:
    script = STRIKE.format(module=module, number=int(getattr(signal, name)))
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=forked.clean_environment(),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr


AFTER = """
import os, signal, sys
from assay.app import results_folder

def strike(self, run):
    os.kill(os.getpid(), signal.{name})

results_folder.Projector.end = strike
sys.argv = ["assay", "run", "suites/first.yaml"]
from assay.__main__ import main
main()
"""
"""Sends a signal when a run has been carried out and its results folder is written."""


@pytest.mark.parametrize("name", SIGNALS)
@pytest.mark.slow
def test_a_signal_after_the_last_trial_ends_with_130(name: str, tmp_path: Path) -> None:
    assert forked.run("init", folder=tmp_path).returncode == 0
    done = subprocess.run(
        [sys.executable, "-c", AFTER.format(name=name)],
        cwd=tmp_path,
        env=forked.clean_environment(),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_closed_terminal_is_ignored_under_nohup(tmp_path: Path) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    script = STRIKE.format(module="click", number=int(signal.SIGHUP))
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=forked.clean_environment(),
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=ignore,
    )
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path)


def test_the_documentation_states_the_signals_that_were_tried() -> None:
    publish_cases(
        "signal to a command, at the start or the end",
        test_a_signal_during_an_import_ends_with_130,
        test_a_signal_after_the_last_trial_ends_with_130,
        test_a_closed_terminal_is_ignored_under_nohup,
    )
