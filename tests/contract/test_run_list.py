"""The Register and the EventLog: portions without gap or double, nobody named where something
waits, on both databases.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import create_engine, text
from tests.contract.rows import driven
from tests.contract.stores import a_decision, a_plan, a_task, judged, plain_grades, planned, wait

from assay.domain.control_items import CheckOrigin, ControlItem
from assay.domain.errors import InputError, UnknownName
from assay.domain.event_log import EventFilter, LoggedEvent
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import Verb
from assay.domain.review import Via
from assay.domain.run import Entry
from assay.domain.run_list import FAILS, WAITS, RunFilter, RunOrder
from assay.domain.selection import Selection
from assay.store.opening import Store

EVERY = RunFilter()


def a_run(
    store: Store,
    number: int,
    *,
    suite: str = "sums",
    candidates: tuple[str, ...] = ("alice", "bob"),
    trials: int = 2,
    batch: str | None = None,
) -> list[AssessmentKey]:
    """A run that was judged and waits for review; later numbers started later, but for two that
    started at once.
    """
    started = f"2025-01-{min(number, 3):02}T00:00:00.000Z"
    plan = replace(
        a_plan(f"run-{number}", suite=suite, candidates=candidates), started=started, batch_id=batch
    )
    store.journal.open_run(plan, planned(a_task(f"task-{number}"), trials=trials))
    for trial in store.journal.claim(plan.id, limit=trials):
        wait(store.journal.record(judged(trial, plain_grades(0.5, candidates))))
    return [row.key for row in store.archive.assessments.matching(Selection(runs=(plan.id,)))]


def approve(store: Store, keys: list[AssessmentKey], **more: str) -> None:
    store.decisions.decide([a_decision(Verb.APPROVE, key, **more) for key in keys])


def ids(store: Store, wanted: RunFilter = EVERY, order: RunOrder = RunOrder.NEWEST) -> list[str]:
    """Every run that matches, read two at a time."""
    items: list[str] = []
    before: RunId | None = None
    while True:
        rows, more = store.register.page(wanted, before=before, limit=2, order=order)
        items += [row.id for row in rows]
        if not more:
            return items
        before = rows[-1].id


@pytest.mark.quick_postgresql
def test_run_pages_come_newest_first_and_match_the_archive(store: Store) -> None:
    for number in range(1, 6):  # 3, 4 and 5 started at the same time
        a_run(store, number)
    assert ids(store) == ["run-5", "run-4", "run-3", "run-2", "run-1"]
    rows, more = store.register.page(EVERY, limit=50)
    assert more is False
    assert rows == store.archive.runs.matching()
    with pytest.raises(UnknownName):
        store.register.page(EVERY, before=RunId("none"))


def test_filters_keep_the_matching_rows(store: Store) -> None:
    approve(store, a_run(store, 1, batch="Night_1"))
    approve(store, a_run(store, 2, suite="words", candidates=("alice", "carol")))
    a_run(store, 3, candidates=("dora", "bob"))
    assert ids(store, RunFilter(suite="sums")) == ["run-3", "run-1"]
    assert ids(store, RunFilter(suite="SUMS")) == []
    assert ids(store, RunFilter(batch_id="Night_1")) == ["run-1"]
    assert ids(store, RunFilter(state=WAITS)) == ["run-3"]
    assert ids(store, RunFilter(text="night_")) == ["run-1"]
    assert ids(store, RunFilter(text="%")) == []
    assert ids(store, RunFilter(text="WORD")) == ["run-2"]
    assert ids(store, RunFilter(candidate="Alice")) == ["run-2", "run-1"]
    assert ids(store, RunFilter(candidate="alice", suite="words", text="run")) == ["run-2"]
    with pytest.raises(InputError):
        store.register.page(RunFilter(state="asleep"))


@pytest.mark.quick_postgresql
def test_every_order_lists_each_run_once_over_its_pages(store: Store) -> None:
    approve(store, a_run(store, 1, suite="words", trials=2))
    a_run(store, 2, suite="Sums", trials=3)
    a_run(store, 3, suite="sums")
    a_run(store, 4, suite="words")
    assert ids(store, order=RunOrder.OLDEST) == ["run-1", "run-2", "run-3", "run-4"]
    assert ids(store, order=RunOrder.NAME) == ["run-3", "run-2", "run-4", "run-1"]
    assert ids(store, order=RunOrder.WAITING) == ["run-2", "run-4", "run-3", "run-1"]
    # all cost the same
    assert ids(store, order=RunOrder.COST) == ["run-4", "run-3", "run-2", "run-1"]
    assert ids(store, RunFilter(suite="words"), RunOrder.OLDEST) == ["run-1", "run-4"]


@pytest.mark.quick_postgresql
def test_removed_runs_of_a_batch_are_those_that_are_out_of_use(store: Store) -> None:
    for number, batch in enumerate(("night", "Night", "night", "day", None, "night"), start=1):
        a_run(store, number, batch=batch)
    store.run_removal.take_out(
        [RunId("run-1"), RunId("run-4"), RunId("run-5")], reviewer="ann", reason="bad"
    )
    store.run_removal.take_out([RunId("run-2")], reviewer="bob", reason="", archived=True)
    store.run_removal.take_out([RunId("run-3")], reviewer="ann", reason="by mistake")
    store.run_removal.restore("run-3", reviewer="ann", reason="")
    removed = store.run_removal.of_batch("NIGHT")
    assert [(each.run_id, each.verb, each.reviewer, each.reason) for each in removed] == [
        ("run-1", "delete", "ann", "bad"),
        ("run-2", "archive", "bob", ""),
    ]
    assert store.run_removal.of_batch("nowhere") == ()


def test_failed_and_archived_runs_are_filters_of_their_own(store: Store) -> None:
    a_run(store, 1)
    plan = a_plan("run-9")
    broken = Failure(kind="timeout", fault=Fault.PROVIDER, detail="no answer", tries=3)
    store.journal.open_run(plan, planned(a_task("task-9"), trials=1))
    for trial in store.journal.claim(plan.id, limit=1):
        wait(store.journal.record(Entry(trial=trial.key, finished=True, failure=broken)))
    assert ids(store, RunFilter(state=FAILS)) == ["run-9"]
    assert {one.value: one.runs for one in store.register.facets(EVERY)["state"]}[FAILS] == 1
    store.run_removal.take_out([RunId("run-1")], reviewer="ann", reason="", archived=True)
    assert ids(store) == ["run-9"]
    assert ids(store, RunFilter(state="archived")) == ["run-1"]


def test_candidates_are_matched_counted_and_listed_while_items_wait(store: Store) -> None:
    approve(store, a_run(store, 1))
    a_run(store, 2, candidates=("dora", "bob"))
    assert ids(store, RunFilter(candidate="dora")) == ["run-2"]
    assert ids(store, RunFilter(text="dora")) == ["run-2"]
    assert ids(store, RunFilter(candidate="bob")) == ["run-2", "run-1"]
    assert {one.name: one.runs for one in store.register.candidates()} == {
        "alice": 1,
        "bob": 2,
        "dora": 1,
    }
    store.renaming.rename("dora", "dorothy", reviewer="ann", reason="misspelt")
    name, runs = store.register.runs_of_candidate("DORA", limit=5)
    assert (name, [(run.id, own) for run, own in runs]) == ("dorothy", [("run-2", "dora")])
    assert next(one for one in store.register.candidates() if one.name == "dorothy").written == (
        "dora",
    )


def test_facets_count_matching_runs(store: Store) -> None:
    approve(store, a_run(store, 1, batch="one"))
    approve(store, a_run(store, 2, batch="one"))
    a_run(store, 3, suite="words")
    facets = store.register.facets(EVERY)
    assert [(one.value, one.runs) for one in facets["suite"]] == [("sums", 2), ("words", 1)]
    narrowed = store.register.facets(RunFilter(suite="sums", candidate="alice", text="run-"))
    assert [(one.value, one.runs) for one in narrowed["suite"]] == [("sums", 2)]
    assert WAITS not in {one.value for one in narrowed["state"]}
    assert {one.value: one.runs for one in facets["state"]}[WAITS] == 1


def test_the_log_is_read_backwards_and_filtered(store: Store) -> None:
    one, two = a_run(store, 1, trials=3), a_run(store, 2)
    approve(store, one[:2])
    approve(store, two[:1], reviewer="ann")
    store.decisions.decide([a_decision(Verb.REJECT, one[2], reason="why")])
    store.decisions.decide([a_decision(Verb.UNDO, one[2])])
    whole, after = store.event_log.portion(EventFilter())
    assert after is None
    assert [entry.event.id for entry in whole] == sorted(
        (entry.event.id for entry in whole), reverse=True
    )
    assert [(entry.run_id, entry.suite, entry.task, entry.k, entry.of) for entry in whole][-1] == (
        "run-1",
        "sums",
        "task-1",
        1,
        3,
    )
    seen: list[LoggedEvent] = []
    before: int | None = None
    while True:
        result, before = store.event_log.portion(EventFilter(), before=before, limit=2)
        seen += result
        if before is None:
            break
    assert tuple(seen) == whole

    def n(**wanted: object) -> int:
        return len(store.event_log.portion(EventFilter(**wanted))[0])  # type: ignore[arg-type]

    assert n(run="run-1") == 4
    assert n(reviewer="ann") == 1
    assert n(verb=Verb.UNDO) == 1
    assert n(item=one[2]) == 2
    assert n(via=Via.PAGE) + n(via=Via.SCRIPT) + n(via=Via.TERMINAL) == 5
    assert n(day="2025-01-02") == 5
    assert n(day="2025-01-03") == n(day="2025-01-01") == 0
    with pytest.raises(UnknownName):
        n(run="none")


def test_waiting_count_includes_control_items(store: Store) -> None:
    first, second = a_run(store, 1), a_run(store, 2)
    approve(store, second)
    assert [(run.id, run.has_control_items) for run in store.event_log.waiting()] == [
        ("run-1", False)
    ]
    item = ControlItem(
        key=AssessmentKey(0),
        run_id=RunId("run-2"),
        source=second[0],
        reviewer="ann",
        made="",
        judged=plain_grades(),
        origin=CheckOrigin(how="known_good"),
    )
    store.control_items.put(item)
    assert [run.id for run in store.event_log.waiting()] == ["run-1"], (
        "a check alone keeps nothing waiting"
    )
    store.control_items.put(replace(item, run_id=RunId("run-1"), source=first[0]))
    assert [(run.id, run.has_control_items) for run in store.event_log.waiting()] == [
        ("run-1", True)
    ]
    approve(store, first)
    assert store.event_log.waiting() == ()


def test_the_chain_is_looked_at_in_parts_and_a_changed_event_is_found(
    store: Store, url: str
) -> None:
    assert store.event_log.newest() == (0, "")
    assert store.event_log.check(0).ended
    keys = a_run(store, 1, trials=4)
    for key in keys:
        approve(store, [key])
    whole = store.event_log.check(0)
    assert (whole.checked, whole.broken, whole.ended) == (4, None, True)
    assert whole.up_to == store.event_log.newest()[0]
    assert store.event_log.check(whole.up_to - 2).checked == 2
    engine = create_engine(driven(url))
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE review_event SET reason = 'other' WHERE id = :id"), {"id": whole.up_to - 1}
        )
    engine.dispose()
    broken = store.event_log.check(0)
    assert (broken.broken, broken.up_to, broken.ended) == (whole.up_to - 1, whole.up_to - 2, True)
    assert store.event_log.first_broken() == whole.up_to - 1
