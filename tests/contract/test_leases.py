"""Contract of leases: an item is on one desk, leases expire, and the next waiting item takes one
index seek.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.contract.stores import a_decision, a_plan, a_task, grades, judged, planned, wait

from assay.domain.errors import UnknownName
from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.selection import Selection
from assay.store.opening import Store

EVERYTHING = Selection()
SCORES = grades({name: {"integrity": 0.8, "fitness": 0.5} for name in ("alice", "bob")})


def waiting(
    store: Store, n: int = 4, identifier: str = "20250102-030405-arithmetic-abcd"
) -> list[int]:
    """Keys of `n` assessments that wait in a run of their own."""
    plan = a_plan(identifier)
    store.journal.open_run(plan, planned(a_task("auth"), a_task("pay"), trials=n // 2))
    for trial in store.journal.claim(plan.id, limit=n):
        wait(store.journal.record(judged(trial, SCORES)))
    return [row.key for row in store.archive.assessments.matching(Selection(runs=(identifier,)))]


def test_an_item_lies_on_one_desk_until_its_time_is_over(store: Store) -> None:
    one, two, *_ = waiting(store)
    leases = store.leases
    assert leases.lease([one, two], desk="a", now=100, until=200) == {one, two}
    assert leases.lease([one], desk="b", now=150, until=250) == frozenset()
    assert leases.lease([one], desk="a", now=150, until=250) == {one}, "one's own lease is renewed"
    assert leases.lease([one, two], desk="b", now=201, until=300) == {two}
    assert leases.on_desk("a", now=201) == (one,)
    assert (leases.on_other_desks("a", now=201), leases.on_other_desks("c", now=201)) == (1, 2)


def test_leases_end_by_item_by_desk_and_by_both(store: Store) -> None:
    one, two, three, _ = waiting(store)
    store.leases.lease([one, two], desk="a", now=0, until=10)
    store.leases.lease([three], desk="b", now=0, until=10)
    store.leases.free(key=three, desk="a")
    assert store.leases.on_desk("b", now=0) == (three,)
    store.leases.free(key=three)
    store.leases.free(desk="a")
    assert store.leases.on_other_desks("c", now=0) == 0
    assert store.leases.lease([], desk="a", now=0, until=10) == frozenset()


def test_task_filter_finds_its_waiting_items_in_every_run(store: Store) -> None:
    first = waiting(store)
    second = waiting(store, identifier="20250102-030405-arithmetic-bcde")
    of_pay = store.leases.seeker(Selection(tasks=("PAY",)))
    result, key = [], of_pay(0)
    while key is not None:
        result.append(key)
        key = of_pay(key)
    rows = [row for row in store.archive.assessments.matching(EVERYTHING) if row.task == "pay"]
    assert result == [row.key for row in rows]
    assert set(result) <= {*first, *second}
    assert len(result) == 4
    (trial,) = {row.trial for row in rows if row.key == result[0]}
    assert [
        row.key for row in store.archive.assessments.matching(EVERYTHING, trial=trial)
    ] == result[:1]
    store.decisions.decide([a_decision(Verb.APPROVE, result[0])])
    assert of_pay(0) == result[1]
    pending = store.archive.assessments.matching(
        Selection(tasks=("pay",)), states=frozenset({AssessmentState.PENDING}), limit=2
    )
    assert [row.key for row in pending] == result[1:3]


def test_the_next_that_waits_is_found_within_the_selection(store: Store) -> None:
    first = waiting(store)
    second = waiting(store, identifier="20250102-030405-arithmetic-bcde")
    everything, of_second = (
        store.leases.seeker(EVERYTHING),
        store.leases.seeker(Selection(runs=(a_plan().id[:-4] + "bcde",))),
    )
    assert everything(0) == first[0]
    assert everything(first[1]) == first[2]
    assert of_second(0) == second[0]
    assert everything(second[-1]) is None
    store.decisions.decide([a_decision(Verb.APPROVE, AssessmentKey(first[0]))])
    assert everything(0) == first[1]
    of_task = store.leases.seeker(Selection(tasks=("pay",)))
    assert of_task(0) == first[2]
    with pytest.raises(UnknownName):
        store.leases.seeker(Selection(suites=("nowhere",)))


@pytest.mark.quick_postgresql
def test_eight_simultaneous_leases_get_different_items(store: Store) -> None:
    keys = waiting(store, 40)

    def take(desk: int) -> set[int]:
        return {
            key for key in keys if store.leases.lease([key], desk=f"desk {desk}", now=0, until=10)
        }

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(take, range(8)))
    assert sum(len(mine) for mine in taken) == len(set().union(*taken)) == len(keys)


def test_runs_come_page_by_page_and_their_states_as_sums(store: Store) -> None:
    first = waiting(store)
    second = waiting(store, identifier="20250102-030405-arithmetic-bcde")
    store.decisions.decide(
        [a_decision(Verb.APPROVE, first[0]), a_decision(Verb.REJECT, second[0], reason="no")]
    )
    whole = store.archive.runs.matching()
    assert store.archive.runs.newest(limit=5) == whole
    (newest,) = store.archive.runs.newest(limit=1)
    assert newest == whole[0]
    assert store.archive.runs.newest(limit=5, before=newest.id) == whole[1:]
    assert store.archive.runs.newest(limit=5, before=whole[1].id) == ()
    assert store.archive.runs.newest(limit=5, before="nothing") == whole
    states = {AssessmentState.PENDING: 6, AssessmentState.APPROVED: 1, AssessmentState.REJECTED: 1}
    assert store.archive.assessments.tally(EVERYTHING) == states
    assert (
        store.archive.assessments.tally(Selection(runs=(whole[1].id,)))[AssessmentState.PENDING]
        == 3
    )
