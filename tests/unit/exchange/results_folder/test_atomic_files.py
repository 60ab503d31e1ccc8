"""A file is there whole or not at all, even when its writer is killed; and none is replaced
unasked.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from assay.domain.errors import InputError, Refused
from assay.exchange.results_folder.atomic_files import AtomicFile, write_atomically

WRITER = """
import sys
from pathlib import Path
from assay.exchange.results_folder.atomic_files import AtomicFile
with AtomicFile(Path(sys.argv[1]), force=True) as file:
    print("begun", flush=True)
    for number in range(10**9):
        file.write(f"{number}\\n" * 1000)
        if number == 100:
            print("half", flush=True)
"""


def test_a_file_appears_only_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    with AtomicFile(target) as file:
        file.write("a,b\n")
        assert not target.exists()
    assert target.read_text("utf-8") == "a,b\n"
    assert list(tmp_path.iterdir()) == [target]


def test_an_exception_leaves_nothing(tmp_path: Path) -> None:
    with suppress(KeyError), AtomicFile(tmp_path / "out.csv") as file:
        file.write("half")
        raise KeyError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("nameless", [True, False], ids=["without-a-name", "hidden-name"])
def test_killed_writer_leaves_the_former_file(tmp_path: Path, there: bool, nameless: bool) -> None:
    target = tmp_path / "out.csv"
    if there:
        target.write_text("old and whole", "utf-8")
    script = WRITER if nameless else f"import os; del os.O_TMPFILE\n{WRITER}"
    writer = subprocess.Popen(
        [sys.executable, "-c", script, str(target)], stdout=subprocess.PIPE, env=dict(os.environ)
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"begun\n"
    assert writer.stdout.readline() == b"half\n"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    hidden = [path for path in tmp_path.iterdir() if path != target]
    assert len(hidden) == (0 if nameless and hasattr(os, "O_TMPFILE") else 1)
    assert [path.name for path in tmp_path.glob("[!.]*")] == (["out.csv"] if there else [])
    assert not there or target.read_text("utf-8") == "old and whole"


def test_a_file_that_is_there_is_not_replaced_unasked(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("mine", "utf-8")
    with pytest.raises(Refused, match="--force"):
        AtomicFile(target)
    assert target.read_text("utf-8") == "mine"
    write_atomically(target, "new")
    assert target.read_text("utf-8") == "new"


def test_a_file_that_came_meanwhile_is_not_replaced_either(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    file = AtomicFile(target).__enter__()
    target.write_text("theirs", "utf-8")
    with pytest.raises(Refused):
        file.__exit__(None, None, None)
    assert target.read_text("utf-8") == "theirs"
    assert list(tmp_path.iterdir()) == [target]


def test_a_place_that_is_no_place_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder"):
        AtomicFile(tmp_path / "nowhere" / "out.csv")
    with pytest.raises(InputError, match="is a folder"):
        AtomicFile(tmp_path)


def test_write_to_a_device_leaves_the_device() -> None:
    with AtomicFile(Path("/dev/null")) as file:
        file.write("gone")
    assert not Path("/dev/null").is_file()


def test_a_lone_surrogate_is_written_as_an_escape(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", "x\udc80y")
    assert (tmp_path / "a").read_bytes() == b"x\\udc80y"
