"""A store copied to SQLite and PostgreSQL and back is the same, row by row."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.contract.rows import all_rows, assert_derived_agrees
from tests.contract.stores import StandingClock, a_decision, a_plan, a_task, judged, planned, wait
from tests.contract.test_observations import an_observation
from tests.contract.test_votes import a_vote
from tests.support.postgres import new_database

from assay.domain.errors import Refused, StoreError
from assay.domain.lifecycle import Verb
from assay.domain.observations import OpinionGiven
from assay.store import copying
from assay.store.opening import Store, open_store


def filled(url: str) -> Store:
    store = open_store(url, clock=StandingClock())
    tasks = planned(
        a_task("one", prompt="half \ud83d and \0", tags=["é", "A"]), a_task("two"), trials=2
    )
    store.journal.open_run(a_plan(), tasks)
    for trial in store.journal.claim(a_plan().id, limit=3):
        wait(store.journal.record(judged(trial)))
    store.decisions.decide([a_decision(Verb.APPROVE, 1, note="Ünïcode ­")])
    store.arena.cast(a_vote())
    store.observations.note([an_observation("opinion", OpinionGiven(verb=Verb.REJECT, reason="­é"))])
    store.run_removal.take_out([a_plan().id], reviewer="ann", reason="for a while", archived=True)
    store.run_removal.restore(a_plan().id, reviewer="ann", reason="", archived=True)
    return store


@pytest.mark.quick_postgresql
def test_a_copy_there_and_back_is_the_same(url: str, tmp_path: Path, postgres: str) -> None:
    others = [
        f"sqlite:///{tmp_path}/one.db",
        new_database(postgres, f"c{secrets.token_hex(6)}"),
        f"sqlite:///{tmp_path}/two.db",
    ]
    source = filled(url)
    before = all_rows(url)
    for address in others:
        target = open_store(address, clock=StandingClock())
        copying.copy_rows(source.database, target.database)
        source.close()
        source = target
        assert all_rows(address) == before
        assert_derived_agrees(address)
    source.close()
    for address in others:
        store = open_store(address, clock=StandingClock())
        assert store.event_log.first_broken() is None
        assert store.arena.first_broken() is None
        assert [part for part in store.check.parts() if part.problems] == []
        assert [event.verb for event in store.run_removal.events()] == ["archive", "restore"]
        (event,) = store.decisions.decide([a_decision(Verb.UNDO, 1)])
        assert event.id == 2
        assert len(store.journal.claim(a_plan().id, limit=9)) == 1
        store.close()


def test_a_copy_into_a_store_with_results_is_refused(tmp_path: Path) -> None:
    source, target = filled(f"sqlite:///{tmp_path}/a.db"), filled(f"sqlite:///{tmp_path}/b.db")
    before = all_rows(f"sqlite:///{tmp_path}/b.db")
    with pytest.raises(Refused, match="is not empty"):
        copying.copy_rows(source.database, target.database)
    assert all_rows(f"sqlite:///{tmp_path}/b.db") == before
    source.close()
    target.close()


def test_a_copy_that_differs_is_not_kept(tmp_path: Path) -> None:
    source = filled(f"sqlite:///{tmp_path}/a.db")
    target = open_store(f"sqlite:///{tmp_path}/b.db", clock=StandingClock())
    before = all_rows(f"sqlite:///{tmp_path}/b.db")
    with target.database.writing() as connection:
        connection.execute(
            text(
                "CREATE TRIGGER spoil AFTER INSERT ON suite BEGIN UPDATE suite SET name = 'x'; END"
            )
        )
    with pytest.raises(StoreError, match="row 1 of suite differs"):
        copying.copy_rows(source.database, target.database)
    assert all_rows(f"sqlite:///{tmp_path}/b.db") == before
    source.close()
    target.close()
