"""The store's file is deleted or replaced while a process has it open: no write is reported as
stored.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.contract.stores import StandingClock, a_decision, a_plan, a_task, judged, planned, wait
from tests.journey.conftest import Command
from tests.support.model_server import Call, ModelServer
from tests.support.sets import write_set

from assay.domain.errors import StoreError
from assay.domain.lifecycle import Verb
from assay.domain.selection import Selection
from assay.store.opening import Store, open_store


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project" / "store.db"


@pytest.fixture
def store(place: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{place}", clock=StandingClock())
    store.journal.open_run(a_plan(), planned(a_task(), trials=2))
    yield store
    store.close()


def delete(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    shutil.copy(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)


def become_a_link(path: Path) -> None:
    shutil.copy(path, path.with_suffix(".copy"))
    path.unlink()
    path.symlink_to(path.with_suffix(".copy"))


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def move_the_folder(path: Path) -> None:
    path.parent.rename(f"{path.parent}-moved")


def exchange_the_folder(path: Path) -> None:
    shutil.copytree(path.parent, f"{path.parent}-copy")
    move_the_folder(path)
    Path(f"{path.parent}-copy").rename(path.parent)


def delete_the_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def exchange_the_log(path: Path) -> None:
    log = path.with_name(f"{path.name}-wal")
    shutil.copy(log, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(log)


REPLACED, LOG = "was replaced by another file", r"had its log \(-wal\) deleted or replaced"


@pytest.mark.parametrize(
    ("lose", "words"),
    [
        (delete, "was deleted"),
        (move_the_folder, "was deleted"),
        *(
            (way, REPLACED)
            for way in (replace, become_a_link, become_a_folder, exchange_the_folder)
        ),
        *((way, LOG) for way in (delete_the_log, exchange_the_log)),
    ],
)
def test_writes_to_a_store_that_is_gone_are_refused(
    store: Store, place: Path, lose: Callable[[Path], None], words: str
) -> None:
    first, second = store.journal.claim(a_plan().id, limit=2)
    wait(store.journal.record(judged(first)))
    (row,) = store.archive.assessments.matching(Selection())
    lose(place)
    with pytest.raises(StoreError, match=words):
        store.decisions.decide([a_decision(Verb.APPROVE, row.key)])
    with pytest.raises(StoreError, match=words):
        wait(store.journal.record(judged(second)))


def test_a_store_that_is_moved_and_moved_back_goes_on(store: Store, place: Path) -> None:
    first, second = store.journal.claim(a_plan().id, limit=2)
    wait(store.journal.record(judged(first)))
    moved = Path(f"{place.parent}-moved")
    place.parent.rename(moved)
    moved.rename(place.parent)
    wait(store.journal.record(judged(second)))
    place.parent.rename(moved)
    place.parent.symlink_to(moved)
    (row, _) = store.archive.assessments.matching(Selection())
    store.decisions.decide([a_decision(Verb.APPROVE, row.key)])
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute("SELECT count(*) FROM review_event").fetchone() == (1,)


def test_a_run_over_a_deleted_store_stops_and_keeps_its_results(
    assay: Command, server: ModelServer, project: Path
) -> None:
    usual = server.answer

    def answer(call: Call) -> object:
        if server.served == 4:
            (project / ".assay" / "assay.db").unlink()
        return usual(call)

    server.answer = answer  # type: ignore[assignment]
    ended = assay(
        "run",
        write_set(project, things=1, trials=9),
        "--judge",
        "openai/judge",
        "--concurrency",
        "1",
    )
    assert ended.code != 0
    assert "was deleted while this process had it open" in ended.err
    assert server.served < 9
    shutil.rmtree(project / ".assay")
    assert assay("import", "results", "--rebuild").code == 0
    assert len(assay("review", "list", "--json").document["assessments"]) >= 3
