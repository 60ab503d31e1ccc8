"""Contract of the number of changes: every committed change of any process counts, but no lease and
no note that an item was shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.contract.stores import a_decision, a_plan, a_task, grades, judged, planned, wait

from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import Verb
from assay.domain.observations import BlindVerdict, GradesShown, Observation
from assay.domain.selection import Selection
from assay.store.opening import Store

RUN = RunId("20250102-030405-arithmetic-abcd")
SCORES = grades({name: {"integrity": 0.8, "fitness": 0.5} for name in ("alice", "bob")})


def waiting(store: Store) -> list[int]:
    plan = a_plan(RUN)
    store.journal.open_run(plan, planned(a_task("auth"), a_task("pay")))
    for trial in store.journal.claim(plan.id, limit=2):
        wait(store.journal.record(judged(trial, SCORES)))
    return [row.key for row in store.archive.assessments.matching(Selection())]


@pytest.mark.quick_postgresql
def test_decisions_count_for_every_process_and_leases_for_none(
    store: Store, opened: Callable[[], Store]
) -> None:
    other = opened()
    numbers = [other.changes()]
    one, two = waiting(store)
    numbers.append(other.changes())
    store.decisions.decide([a_decision(Verb.APPROVE, one)])
    numbers.append(other.changes())
    other.decisions.decide([a_decision(Verb.REJECT, two)])
    numbers.append(store.changes())
    assert numbers == sorted(set(numbers)), "each is higher than the one before"
    store.leases.lease([one], desk="a", now=0, until=10)
    store.leases.free(desk="a")
    assert (store.changes(), other.changes()) == (numbers[-1], numbers[-1])


def test_that_an_item_was_shown_does_not_count_and_a_verdict_does(store: Store) -> None:
    one, _ = waiting(store)
    before = store.changes()
    shown = Observation(
        run_id=RUN,
        assessment=AssessmentKey(one),
        reviewer="ann",
        at="2025-01-02T03:04:05.678Z",
        idempotency_key="shown:1:ann",
        body=GradesShown(),
    )
    store.observations.note([shown])
    assert store.changes() == before
    verdict = replace(shown, idempotency_key="verdict:1", body=BlindVerdict(scores={}, overall={}))
    store.observations.note(
        [replace(shown, reviewer="bob", idempotency_key="shown:1:bob"), verdict]
    )
    assert store.changes() == before + 1


def test_what_is_rolled_back_does_not_count(store: Store) -> None:
    before = store.changes()
    with pytest.raises(RuntimeError), store.database.writing():
        raise RuntimeError
    assert store.changes() == before


def test_rows_that_are_staged_count_too(store: Store) -> None:
    before = store.changes()
    with store.database.staging():
        assert store.changes() == before, "nothing is committed yet"
    assert store.changes() == before + 1


def test_a_run_out_of_use_counts(store: Store) -> None:
    waiting(store)
    before = store.changes()
    store.run_removal.take_out([RUN], reviewer="ann", reason="a test")
    assert store.changes() > before
