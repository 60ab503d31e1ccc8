"""Exports of a server: clients that ask for the same one share it, and each includes what was
decided before it asked.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any, BinaryIO

import pytest

from assay.app.exports import exporters, shared_exports
from assay.app.exports.shared_exports import SharedExports
from assay.app.workspace import Workspace
from assay.domain.errors import InputError
from assay.domain.selection import Selection
from tests.support import forked


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one.csv").write_text(
        "task,candidate,trial,score\nt1,ann,1,0.5\nt1,bob,1,0.4\nt2,bob,1,0.1\n", "utf-8"
    )
    done = forked.run("import", "one.csv", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_a_file_is_read_from_its_beginning_by_each_client(folder: Path) -> None:
    with Workspace.open(folder, environment={}) as workspace:
        file = SharedExports(workspace).file("csv", Selection())
        first = file.chunks()
        begins = next(first)
        assert b"".join(file.chunks()) == begins + b"".join(first)
        assert begins.count(b"\n") == 4


def test_clients_that_wait_share_one_export_and_no_earlier_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end, written = Event(), Event(), []

    def slow(workspace: Workspace, form: str, selection: Selection) -> BinaryIO:
        written.append(form)
        began.set()
        assert may_end.wait(60)
        return real(workspace, form, selection)

    real = exporters.exported_file
    monkeypatch.setattr(shared_exports, "exported_file", slow)
    with Workspace.open(folder, environment={}) as workspace, ThreadPoolExecutor(4) as threads:
        exports = SharedExports(workspace)
        early = threads.submit(exports.file, "csv", Selection())
        assert began.wait(60)
        late = [threads.submit(exports.file, "csv", Selection()) for _ in range(3)]
        ends = time.monotonic() + 60
        while _n_waiting(exports) < 2:  # the third waits for its turn to write
            assert time.monotonic() < ends
            time.sleep(0.01)
        may_end.set()
        files = [one.result(60) for one in late]
    assert files[0] is files[1] is files[2]
    assert files[0] is not early.result()
    assert written == ["csv", "csv"]


def _n_waiting(exports: SharedExports) -> int:
    futures: list[Any] = list(exports._waiting.values())
    return sum(len(future._condition._waiters) for future in futures)


def test_a_refusal_reaches_everybody_and_holds_up_nobody(folder: Path) -> None:
    with Workspace.open(folder, environment={}) as workspace:
        exports = SharedExports(workspace)
        for _ in range(2):
            with pytest.raises(InputError):
                exports.file("csv", Selection(runs=("20200101-000000-none-0000",)))
        assert b"".join(exports.file("csv", Selection()).chunks())
