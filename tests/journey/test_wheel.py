"""A wheel built from this tree, in a virtual environment that holds nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.journey.test_pytest_plugin import UNUSED, documented_test

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command without this machine's Python path and Assay settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONPATH" and not name.startswith("ASSAY_")
    }
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_wheel_installs_into_an_empty_environment_and_runs_the_demo(tmp_path: Path) -> None:
    built = run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        tmp_path,
        ROOT,
        cwd=tmp_path,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "empty", with_pip=True)
    python = tmp_path / "empty" / "bin" / "python"
    probe = run(
        python,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "-d",
        tmp_path / "probe",
        "click",
        cwd=tmp_path,
    )
    if probe.returncode != 0:
        reason = f"WHEEL NOT TESTED: the package index cannot be reached: {probe.stderr[-300:]}"
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(reason)
        pytest.skip(reason)
    installed = run(python, "-m", "pip", "install", "-q", wheel, cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    folder = tmp_path / "project"
    folder.mkdir()
    demo = run(tmp_path / "empty" / "bin" / "assay", "demo", "--no-serve", cwd=folder)
    assert demo.returncode == 0, demo.stderr
    assert "architects" in demo.stdout + demo.stderr
    assert run(python, "-m", "assay", "doctor", cwd=folder).returncode == 0
    # The entry point of the installed package must offer the fixture; a test without it must load
    # nothing.
    assert run(python, "-m", "pip", "install", "-q", "pytest", cwd=tmp_path).returncode == 0
    (folder / "test_bot.py").write_text(documented_test(), "utf-8")
    (folder / "test_unused.py").write_text(UNUSED, "utf-8")
    unused = run(python, "-m", "pytest", "test_unused.py", cwd=folder)
    assert unused.returncode == 0, unused.stdout
    used = run(python, "-m", "pytest", "test_bot.py", cwd=folder)
    assert "hasty scores 50.0, below 90.0." in used.stdout, used.stdout + used.stderr
