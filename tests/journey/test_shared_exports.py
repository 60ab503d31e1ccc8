"""Exports of a server: clients share them until the store changes, and each includes what was
decided before it was asked for.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, BinaryIO

import pytest

from assay.app.exports import shared_exports
from assay.app.exports.exporters import exported_file
from assay.app.exports.reports import written_together
from assay.app.exports.shared_exports import SharedExports, SharedFile
from assay.app.settings import Settings
from assay.app.statistics.run_choice import choose
from assay.app.workspace import Workspace
from assay.domain.errors import InputError
from assay.domain.lifecycle import AssessmentState, RunState, Verb
from assay.domain.run_choice import ChosenRuns
from assay.domain.selection import Selection
from assay.store.opening import Store
from tests.contract.stores import a_decision, a_plan
from tests.journey.test_statistics import fill
from tests.support import forked

RUN = "20250101-000000-alpha-aaaa"


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


class Slow:
    """The exporter of a server, which waits before it writes; it counts what it writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began, self.may_end = Event(), Event()
        self.written: list[str] = []
        real, together = exported_file, written_together

        def one_file(workspace: Workspace, form: str, selection: Selection) -> BinaryIO:
            self._wait(form)
            return real(workspace, form, selection)

        def report(
            store: Store, settings: Settings, forms: tuple[str, ...], selection: Selection
        ) -> dict[str, str]:
            self._wait(*forms)
            return together(store, settings, forms, selection)

        monkeypatch.setattr(shared_exports, "exported_file", one_file)
        monkeypatch.setattr(shared_exports, "written_together", report)

    def _wait(self, *forms: str) -> None:
        self.written += forms
        self.began.set()
        assert self.may_end.wait(60)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    return Slow(monkeypatch)


@pytest.fixture
def reviewed(project: Path) -> Iterator[Workspace]:
    """A run of three tasks, of which one trial each is approved and one waits."""
    with Workspace.open(project) as workspace:
        fill(workspace, a_plan(RUN), [["approve", "wait"]] * 3)
        yield workspace


def approve_one(workspace: Workspace) -> None:
    pending = frozenset({AssessmentState.PENDING})
    row = next(iter(workspace.archive.assessments.matching(Selection(), states=pending)))
    workspace.decisions.decide((a_decision(Verb.APPROVE, row.key),))


def content_of(file: SharedFile) -> str:
    return b"".join(file.chunks()).decode()


def test_clients_that_ask_at_once_share_one_export(reviewed: Workspace, slow: Slow) -> None:
    exports = SharedExports(reviewed)
    with ThreadPoolExecutor(6) as threads:
        early = threads.submit(exports.file, "html", Selection())
        assert slow.began.wait(60)
        late = [threads.submit(exports.file, "html", Selection()) for _ in range(4)]
        other = threads.submit(exports.file, "markdown", Selection())
        slow.may_end.set()
        files = [early.result(60), *(client.result(60) for client in late)]
        markdown = other.result(60)
    assert all(file is files[0] for file in files)
    assert content_of(markdown).startswith("#")
    assert slow.written == ["html", "markdown"]


def test_an_export_begun_before_a_decision_is_not_given_after_it(
    reviewed: Workspace, slow: Slow
) -> None:
    exports = SharedExports(reviewed)
    with ThreadPoolExecutor(4) as threads:
        early = threads.submit(exports.file, "csv", Selection())
        assert slow.began.wait(60)
        approve_one(reviewed)
        late = [threads.submit(exports.file, "csv", Selection()) for _ in range(3)]
        ends = time.monotonic() + 60
        while _n_waiting(exports) < 2:  # the third waits for its turn to write
            assert time.monotonic() < ends
            time.sleep(0.01)
        slow.may_end.set()
        files = [client.result(60) for client in late]
    assert files[0] is files[1] is files[2]
    assert files[0] is not early.result()
    assert slow.written == ["csv", "csv"]
    assert content_of(files[0]).count(RUN) == content_of(exports.file("csv", Selection())).count(
        RUN
    )


def test_a_kept_export_is_given_until_a_decision_lands(reviewed: Workspace, slow: Slow) -> None:
    slow.may_end.set()
    exports = SharedExports(reviewed)
    for form in ("csv", "html"):
        before = exports.file(form, Selection())
        assert exports.file(form, Selection()) is before
        n_written = len(slow.written)
        approve_one(reviewed)
        after = exports.file(form, Selection())
        assert content_of(after) != content_of(before)
        assert len(slow.written) > n_written
        assert exports.file(form, Selection()) is after
    assert content_of(exports.file("csv", Selection())).count(RUN) == 2 * (3 + 2)


def test_a_change_by_another_process_ends_a_kept_export(folder: Path) -> None:
    with Workspace.open(folder, environment={}) as workspace:
        exports = SharedExports(workspace)
        before = exports.file("csv", Selection())
        (folder / "two.csv").write_text("task,candidate,trial,score\nt9,ann,1,0.5\n", "utf-8")
        done = forked.run("import", "two.csv", folder=folder)
        assert done.returncode == 0, done.stderr
        assert "t9" in content_of(exports.file("csv", Selection()))
        assert "t9" not in content_of(before)


def test_a_run_whose_process_was_killed_ends_a_kept_export(
    reviewed: Workspace, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow.may_end.set()
    exports = SharedExports(reviewed)
    exports.file("html", Selection())

    def killed(store: Store, selection: Selection) -> ChosenRuns:
        chosen = choose(store, selection)
        state = RunState.INTERRUPTED
        return replace(chosen, runs=tuple(replace(run, state=state) for run in chosen.runs))

    monkeypatch.setattr(shared_exports, "choose", killed)
    exports.file("html", Selection())
    assert slow.written == ["html", "markdown"] * 2


def test_a_lease_ends_no_kept_export(reviewed: Workspace) -> None:
    exports = SharedExports(reviewed)
    before = exports.file("html", Selection())
    pending = frozenset({AssessmentState.PENDING})
    (row, *_) = reviewed.archive.assessments.matching(Selection(), states=pending)
    reviewed.leases.lease([row.key], desk="a", now=0, until=10)
    assert exports.file("html", Selection()) is before


def test_kept_exports_are_bounded_by_their_size(
    reviewed: Workspace, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow.may_end.set()
    monkeypatch.setattr(shared_exports, "LEAST_BYTES", 400)
    monkeypatch.setattr(shared_exports, "KEPT_BYTES", 1000)
    exports = SharedExports(reviewed)
    one, two, three = (Selection(tasks=(name,)) for name in task_names(reviewed))
    for selection in (one, two, three):
        assert exports.file("csv", selection).size <= 1000
    assert 0 < exports.kept_bytes <= 1000
    assert exports.file("csv", one).size
    assert slow.written == ["csv"] * 4, "the oldest gave way"
    assert exports.file("html", one).size > 1000
    assert exports.kept_bytes <= 1000


def task_names(workspace: Workspace) -> list[str]:
    return sorted({row.task for row in workspace.archive.assessments.matching(Selection())})


def test_a_report_of_the_server_is_that_of_the_command(reviewed: Workspace) -> None:
    for form in ("html", "markdown"):
        shared = content_of(SharedExports(reviewed).file(form, Selection()))
        alone = exported_file(reviewed, form, Selection()).read().decode()
        assert without_time(shared) == without_time(alone)


def without_time(text: str) -> str:
    return re.sub(r"Written \S+ by", "Written by", text)


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
