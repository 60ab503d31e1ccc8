"""A backup is whole or absent: killed at any stage, or on a full disk, it leaves no store that
looks valid and is empty.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.attack.figures import publish_cases
from tests.journey.conftest import Command

COPY_AND_DIE = """
import os, signal, sys
from pathlib import Path
from assay.app import store_copies
from assay.app.workspace import Workspace
from assay.store import copying

stage, target = sys.argv[1:]
original = copying._copy_table

def copy_some(reader, writer, database, table):
    n = original(reader, writer, database, table)
    if table.name == stage:
        os.kill(os.getpid(), signal.SIGKILL)
    return n

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

copying._copy_table = copy_some
if stage == "settle":
    copying.settle_file = die
with Workspace.open(Path.cwd(), options=None) as opened:
    store_copies.copy_to(opened, f"sqlite:///{target}")
"""


STAGES = ("suite_copy", "body", "run", "trial", "response", "assessment", "score", "settle")


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_killed_backup_leaves_no_file_of_that_name(
    assay: Command, project: Path, stage: str
) -> None:
    assert assay("init").code == 0
    assert assay("run", "suites/first.yaml").code == 0
    killed = subprocess.run(
        [sys.executable, "-c", COPY_AND_DIE, stage, "kept.db"],
        cwd=project,
        check=False,
        timeout=120,
    )
    assert killed.returncode == -signal.SIGKILL
    assert not (project / "kept.db").exists()
    assert list(project.glob(".kept.db.*.part*")), "the unfinished copy is hidden"
    assert assay("store", "backup", "kept.db").code == 0
    assert not list(project.glob(".kept.db.*")), "the next backup removes what the killed one left"
    assert not list(project.glob("kept.db-*")), "the log is in the file"
    assert assay("doctor", "--check-store", "--store", "kept.db").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["run", "trial"])
def test_a_copy_cut_off_in_an_existing_file_is_no_valid_store(
    assay: Command, project: Path, stage: str
) -> None:
    assert assay("init").code == 0
    assert assay("run", "suites/first.yaml").code == 0
    (project / "kept.db").touch()
    killed = subprocess.run(
        [sys.executable, "-c", COPY_AND_DIE, stage, "kept.db"],
        cwd=project,
        check=False,
        timeout=120,
    )
    assert killed.returncode == -signal.SIGKILL
    refused = assay("runs", "--store", "kept.db")
    assert (refused.code, "unfinished copy" in refused.err) == (2, True)
    checked = assay("doctor", "--store", "kept.db", "--json")
    assert {check["what"]: check["state"] for check in checked.document["checks"]}[
        "store"
    ] == "broken"
    assert assay("store", "copy", "kept.db").code == 0
    assert (
        assay("stats", "--json", "--store", "kept.db").document == assay("stats", "--json").document
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits of file sizes are POSIX")
@pytest.mark.parametrize("most", [0, 50_000, 200_000])
def test_a_backup_on_a_full_disk_leaves_nothing(assay: Command, project: Path, most: int) -> None:
    assert assay("init").code == 0
    assert assay("run", "suites/first.yaml").code == 0
    script = f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most})); "
    script += "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); from assay.cli.main import main; main()"
    command = [sys.executable, "-c", script, "store", "backup", "kept.db"]
    full = subprocess.run(
        command,
        cwd=project,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env=dict(os.environ),
    )
    assert full.returncode == 2, full.stderr
    assert "Traceback" not in full.stderr
    assert not list(project.glob("*kept.db*")) + list(project.glob(".kept.db*"))


def test_the_documentation_states_the_backups_that_were_cut_off() -> None:
    publish_cases(
        "backup that is killed, cut off or meets a full disk",
        test_a_killed_backup_leaves_no_file_of_that_name,
        test_a_copy_cut_off_in_an_existing_file_is_no_valid_store,
        test_a_backup_on_a_full_disk_leaves_nothing,
    )
