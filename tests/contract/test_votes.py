"""The Arena: votes are appended, count once, can be taken back and show a silent edit, on both
databases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from tests.contract.rows import assert_derived_agrees, driven
from tests.contract.stores import a_call, a_plan, a_task, grades, judged, planned, wait

from assay.domain.arena import Choice, Pairing, Vote
from assay.domain.assessment import Response
from assay.domain.errors import Refused, UnknownName
from assay.domain.identifiers import RunId
from assay.store.opening import Store


def a_vote(**more: Any) -> Vote:
    made = Vote(
        run_id=a_plan().id,
        pairing=Pairing(position=0, k=1, left=1, right=0),
        choice=Choice.LEFT,
        reviewer="ann",
        idempotency_key="the first",
        active_ms=900,
        telling=True,
    )
    return replace(made, **more)


@pytest.fixture
def run(store: Store) -> str:
    """Two tasks, two trials each; alice is asked, bob's snippet comes with the first task."""
    plan = a_plan()
    auth = a_task("auth", snippets={"bob": "def b(): ...\n"})
    store.journal.open_run(plan, planned(auth, a_task("pay"), trials=2))
    scores = grades(
        {"alice": {"integrity": 0.8, "fitness": 0.5}, "bob": {"integrity": 0.25, "fitness": 0.5}}
    )
    (claimed, *_) = store.journal.claim(plan.id, limit=1)
    answer = Response(candidate="alice", text="def a(): ...\n")
    wait(store.journal.record(judged(claimed, scores, calls=[a_call(claimed)], responses=[answer])))
    return plan.id


def test_a_vote_said_twice_is_stored_once_as_it_was_first(store: Store, run: str) -> None:
    first = store.arena.cast(a_vote())
    assert first.id > 0
    assert first.task == "auth"
    assert store.arena.cast(a_vote(active_ms=5)) == first
    assert store.arena.votes(first.run_id) == (first,)
    assert store.arena.vote_on(first.run_id, first.pairing, reviewer="ann") == first
    assert (
        store.arena.vote_on(first.run_id, Pairing(position=0, k=1, left=0, right=1), reviewer="ann")
        == first
    )
    assert store.arena.vote_on(first.run_id, first.pairing, reviewer="bob") is None
    assert (first.choice, first.pairing.left, first.active_ms, first.telling) == (
        Choice.LEFT,
        1,
        900,
        True,
    )


def test_one_person_votes_once_on_a_pair_whichever_side_is_which(store: Store, run: str) -> None:
    store.arena.cast(a_vote())
    with pytest.raises(Refused):
        store.arena.cast(
            a_vote(idempotency_key="again", pairing=Pairing(position=0, k=1, left=0, right=1))
        )
    store.arena.cast(a_vote(idempotency_key="bob's", reviewer="bob"))
    store.arena.cast(
        a_vote(idempotency_key="other trial", pairing=Pairing(position=0, k=2, left=0, right=1))
    )
    assert store.arena.by_pair(a_plan().id) == {(0, 1): 3}
    assert store.arena.voted(a_plan().id, reviewer="ann") == {(0, 1, 0, 1), (0, 2, 0, 1)}
    assert store.arena.counts([a_plan().id]) == {a_plan().id: 3}


def test_a_vote_taken_back_stands_no_more_and_the_row_stays(
    store: Store, run: str, url: str
) -> None:
    first = store.arena.cast(a_vote())
    taken = store.arena.take_back(first.run_id, reviewer="ann", idempotency_key="undo one")
    assert taken == first
    assert (
        store.arena.take_back(first.run_id, reviewer="ann", idempotency_key="undo one") == first
    ), "a retry changes nothing"
    assert store.arena.votes(first.run_id) == ()
    assert store.arena.by_pair(first.run_id) == {(0, 1): 0}
    assert store.arena.counts([first.run_id]) == {}
    with pytest.raises(Refused):
        store.arena.take_back(first.run_id, reviewer="ann", idempotency_key="undo two")
    again = store.arena.cast(a_vote(idempotency_key="the second", choice=Choice.BOTH_BAD))
    assert [vote.choice for vote in store.arena.votes(first.run_id)] == [Choice.BOTH_BAD]
    assert again.again, "whoever votes anew on a pair knows who wrote what"
    assert not first.again
    with pytest.raises(Refused):
        store.arena.take_back(
            first.run_id, reviewer="bob", idempotency_key="undo three", vote=again.id
        )
    assert_derived_agrees(url)


def test_a_key_belongs_to_one_person_one_pair_and_one_purpose(store: Store, run: str) -> None:
    other = replace(a_plan(), id=RunId("another-run"))
    store.journal.open_run(other, planned(a_task("auth"), trials=2))
    first = store.arena.cast(a_vote())
    for more in (
        {"reviewer": "bob"},
        {"pairing": Pairing(position=0, k=2, left=1, right=0)},
        {"pairing": Pairing(position=1, k=1, left=1, right=0)},
        {"run_id": other.id},
        {"choice": Choice.EQUAL if first.choice is not Choice.EQUAL else Choice.LEFT},
    ):
        with pytest.raises(Refused, match="another vote"):
            store.arena.cast(a_vote(**more))
    with pytest.raises(Refused, match="another vote"):
        store.arena.take_back(first.run_id, reviewer="ann", idempotency_key=first.idempotency_key)
    assert store.arena.votes(first.run_id) == (first,), "what was refused left no trace"
    store.arena.cast(a_vote(reviewer="bob", idempotency_key="bob's"))
    second = store.arena.cast(
        a_vote(idempotency_key="the second", pairing=Pairing(position=0, k=2, left=1, right=0))
    )
    store.arena.take_back(first.run_id, reviewer="ann", idempotency_key="undo one")
    for who, where, vote in (
        ("bob", first.run_id, None),
        ("ann", other.id, None),
        ("ann", first.run_id, first.id),
    ):
        with pytest.raises(Refused, match="another vote"):
            store.arena.take_back(where, reviewer=who, idempotency_key="undo one", vote=vote)
    with pytest.raises(Refused, match="another vote"):
        store.arena.cast(a_vote(idempotency_key="undo one", pairing=second.pairing))
    assert [vote.reviewer for vote in store.arena.votes(first.run_id)] == ["ann", "bob"]
    assert store.arena.votes(other.id) == ()
    assert store.arena.first_broken() is None


def test_vote_on_an_unknown_pair_is_refused(store: Store, run: str) -> None:
    with pytest.raises(UnknownName):
        store.arena.cast(a_vote(pairing=Pairing(position=9, k=1, left=0, right=1)))
    with pytest.raises(UnknownName):
        store.arena.votes(replace(a_plan(), id="none").id)  # type: ignore[arg-type]


def test_trial_offers_its_pairs_for_voting(store: Store, run: str) -> None:
    contest = store.arena.contest(a_plan().id, 0, 1)
    assert contest is not None
    assert {place: one.text for place, one in contest.responses.items()} == {
        0: "def a(): ...\n",
        1: "def b(): ...\n",
    }
    assert [one.candidate for one in contest.responses.values()] == ["alice", "bob"]
    ((_, scores),) = contest.judged.items()
    assert scores[0].score == pytest.approx((2 * 0.8 + 0.5) / 3)
    assert store.arena.judged(a_plan().id, [a_vote()]) == {(0, 1): contest.judged}
    untouched = store.arena.contest(a_plan().id, 1, 2)
    assert untouched is not None
    assert untouched.responses == {}
    assert store.arena.contest(a_plan().id, 0, 3) is None
    assert store.arena.extent(a_plan().id) == (2, 2)
    assert store.arena.position_of(a_plan().id, "pay") == 1
    assert store.arena.position_of(a_plan().id, "none") is None


def test_a_vote_that_was_changed_shows(opened: Callable[[], Store], url: str) -> None:
    store = opened()
    store.journal.open_run(a_plan(), planned(a_task("auth"), trials=3))
    for k in (1, 2, 3):
        store.arena.cast(
            a_vote(idempotency_key=f"vote {k}", pairing=Pairing(position=0, k=k, left=0, right=1))
        )
    store.arena.take_back(a_plan().id, reviewer="ann", idempotency_key="undo")
    assert store.arena.first_broken() is None
    engine = create_engine(driven(url))
    with engine.begin() as connection:
        connection.execute(text("UPDATE vote SET choice = 'right' WHERE once = 'vote 2'"))
    engine.dispose()
    assert store.arena.first_broken() == store.arena.votes(a_plan().id)[1].id
