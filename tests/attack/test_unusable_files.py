"""Files, folders and descriptors that cannot be used end in a sentence, never in an internal error
of Assay.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.attack.figures import publish, publish_cases
from tests.journey.conftest import Command, assay as assay, project as project
from tests.support import forked

from assay.app.workspace import Workspace
from assay.web.server import create_app


@pytest.mark.parametrize("command", ["runs", "stats", "doctor"])
@pytest.mark.parametrize(
    "path", ["a" * 300, f"{'b' * 300}/assay.db", "c\0d", "loop/assay.db", "file/assay.db"]
)
def test_a_store_at_an_impossible_path_is_named(
    assay: Command, tmp_path: Path, command: str, path: str
) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_text("no folder")
    done = assay(command, "--store", path)
    assert done.code in (1, 2)
    assert "internal error in Assay" not in done.err + done.out
    assert "cannot be" in done.err + done.out


ALL_TRIED = """
import os, sys
from assay.cli.main import exit_code
for command in {commands!r}:
    print("==", command, exit_code(command.split()), flush=True)
"""


def try_without_power(folder: Path, *commands: str) -> str:
    """Run commands one after the other in a process that may not break the rights of files; return
    what they print.

    After each comes a line with the command and its exit code.
    """
    # Root may search every folder, so its process gives up that power.
    weaker = (
        ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    )
    done = subprocess.run(
        [*weaker, sys.executable, "-c", ALL_TRIED.format(commands=commands)],
        cwd=folder,
        env=forked.clean_environment(),
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "internal error in Assay" not in done.stdout
    return done.stdout


SEARCHING = ("runs", "stats", "doctor")


@pytest.mark.parametrize(
    "mode", [0o600, *(pytest.param(mode, marks=pytest.mark.slow) for mode in (0o000, 0o400))]
)
def test_a_folder_that_may_not_be_searched_is_named(tmp_path: Path, mode: int) -> None:
    (tmp_path / ".assay").mkdir()
    (tmp_path / ".assay").chmod(mode)
    printed = try_without_power(tmp_path, *SEARCHING)
    for command in SEARCHING:
        output, printed = re.split(rf"^== {command} [12]\n", printed, maxsplit=1, flags=re.M)
        assert "ermission denied" in output, command


READ_ONLY = {"runs": 0, "stats": 0, "run suites/first.yaml": 2}
"""Exit codes of commands in a folder that cannot be written."""


@pytest.mark.slow
def test_a_store_in_a_read_only_folder_can_be_read(tmp_path: Path) -> None:
    assert forked.run("init", folder=tmp_path).returncode == 0
    assert forked.run("run", "suites/first.yaml", folder=tmp_path).returncode == 0
    for path in (tmp_path / ".assay" / "assay.db", tmp_path / ".assay", tmp_path):
        path.chmod(0o444 if path.is_file() else 0o555)
    printed = try_without_power(tmp_path, *READ_ONLY)
    for command, code in READ_ONLY.items():
        output, printed = re.split(rf"^== {command} {code}\n", printed, maxsplit=1, flags=re.M)
        assert "first" in output or "may not be written" in output, command


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and time of change of each file, without the log's index, which readers use to wait for
    each other.
    """
    files = [
        path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("-shm")
    ]
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in files
        if path.stat().st_size
    }


READING = (
    "runs",
    "stats",
    "review list",
    "rank",
    "doctor --check-store",
    "show {run}",
    "export csv --output out.csv",
)
WRITING = (
    "run suites/first.yaml",
    "resume {run}",
    "regrade {run}",
    "delete {run} --yes",
    "review approve a1",
    "store restore kept.db",
)


def test_read_only_reads_a_store_and_changes_nothing(assay: Command, project: Path) -> None:
    assert assay("init").code == 0
    run = assay("run", "suites/first.yaml", "--json").document["run_id"]
    assert assay("store", "backup", "kept.db", "--read-only").code == 0
    # A process that has the store open keeps its newest rows in the log.
    with Workspace.open(project) as writing:
        assert not writing.store.database.read_only
        assay("run", "suites/first.yaml")
        before = content(project / ".assay"), content(project / "results")
        for command in READING:
            done = assay(*command.format(run=run).split(), "--read-only")
            assert done.code == 0, (command, done.err)
        assert len(assay("runs", "--json", "--read-only").document["runs"]) == 2
        for command in WRITING:
            done = assay(*command.format(run=run).split(), "--read-only")
            assert (done.code, "open for reading only" in done.err) == (2, True), (
                command,
                done.err,
            )
        assert (content(project / ".assay"), content(project / "results")) == before
    (project / "empty").mkdir()
    missing = assay("runs", "--read-only", "--store", "empty/new.db")
    assert missing.code == 2
    assert "there is no store yet" in missing.err
    assert not list((project / "empty").iterdir())


def test_a_read_only_server_shows_pages_and_takes_no_decision(
    assay: Command, project: Path
) -> None:
    assert assay("init").code == 0
    assert assay("run", "suites/first.yaml").code == 0
    with (
        Workspace.open(project, read_only=True) as reading,
        TestClient(create_app(reading), base_url="http://127.0.0.1") as client,
    ):
        for page in ("/", "/results", "/audit", "/review", "/arena"):
            assert client.get(page).status_code == 200, page
        body = {"decisions": [{"id": "a1", "verb": "approve", "key": "0123456789"}]}
        refused = client.post("/api/decisions", json=body, headers={"origin": "http://127.0.0.1"})
        assert (refused.status_code, "open for reading only" in refused.text) == (503, True)


EXHAUSTED = """
import os, resource, sys
from assay.__main__ import main
import assay.cli.main, assay.store.opening, assay.cli.registry, assay.app.workspace, assay.app.registry.runs
resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most}))
sys.argv = ["assay", "runs"]
for free in range({cases}):
    child = os.fork()
    if not child:
        while True:
            try:
                os.dup(1)
            except OSError:
                break
        os.closerange({most} - free, {most})
        main()
    _, status = os.waitpid(child, 0)
    print("==", free, os.waitstatus_to_exitcode(status), flush=True)
"""
DESCRIPTOR_CASES = 6


@pytest.mark.slow
def test_exhausted_file_descriptors_are_named(tmp_path: Path) -> None:
    assert forked.run("init", folder=tmp_path).returncode == 0
    assert forked.run("run", "suites/first.yaml", folder=tmp_path).returncode == 0
    done = subprocess.run(
        [sys.executable, "-c", EXHAUSTED.format(most=64, cases=DESCRIPTOR_CASES)],
        cwd=tmp_path,
        env=forked.clean_environment(),
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "internal error in Assay" not in done.stdout
    assert "Traceback" not in done.stdout
    cases = re.findall(r"(.*?)^== (\d) (\d+)\n", done.stdout, re.M | re.S)
    assert [int(free) for _, free, _ in cases] == list(range(DESCRIPTOR_CASES)), done.stdout
    for output, free, code in cases:
        named = "ulimit -n 4096" in output or "Too many open files" in output
        assert code == "0" or named, f"{free} free descriptors: {output}"


@pytest.mark.parametrize(
    "content",
    [
        b"task\r,candidate,score\na,b,1\n",
        b"task,candidate,score\ra,b,1\rc,d,0\r",
        b"task,candidate,score\na,b\rx,1\nc,d,0.5\n",
        b'task,candidate,score\n"a\rb",b,1\nc,d\r,0.5\n',
        b"task,candidate,\r\r\rscore\r\n\r\ra,b,1\n",
        b"\r,\r",
        b"a" * 200_000 + b",b\n1,2\n",
    ],
)
def test_a_stray_carriage_return_is_a_row_or_a_sentence(
    assay: Command, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "scores.csv").write_bytes(content)
    done = assay("import", "scores.csv")
    assert done.code in (0, 1, 2)
    assert "internal error in Assay" not in done.err


def test_the_documentation_states_the_files_that_were_tried() -> None:
    impossible = 15 + 3 * len(SEARCHING) + len(READ_ONLY)
    publish("store at a path, or in a folder, that cannot be used", tried=impossible, through=0)
    publish("command with too few file descriptors", tried=DESCRIPTOR_CASES, through=0)
    publish_cases(
        "import of a CSV with stray carriage returns",
        test_a_stray_carriage_return_is_a_row_or_a_sentence,
    )
