"""The Witness: observations count once, asides stand apart from everything that is listed, on both databases."""

from __future__ import annotations

from dataclasses import replace

from tests.contract.stores import a_plan, a_task, planned

from assay.domain.identifiers import AssessmentKey
from assay.domain.observing import Aside, AsideKind, Observation, Seen
from assay.domain.selection import Selection
from assay.store.opening import Store


def an_observation(**more: object) -> Observation:
    made = Observation(
        kind=Seen.OPINION, run_id=a_plan().id, assessment=AssessmentKey(7), reviewer="ann", at="2026-01-01T00:00:00Z",
        once="first", body={"verb": "approve"},
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def test_an_observation_said_twice_is_stored_once_as_it_was_first(store: Store) -> None:
    store.journal.open_run(a_plan(), planned(a_task()))
    (first,) = store.witness.note([an_observation()])
    (second,) = store.witness.note([an_observation(body={"verb": "reject"})])
    assert first.id == second.id
    assert second.body == {"verb": "approve"}
    both = store.witness.note_and_read(an_observation(once="second", reviewer="bob"))
    assert [one.reviewer for one in both] == ["ann", "bob"]
    assert store.witness.observations(kinds=(Seen.SHOWN,)) == ()
    assert len(store.witness.observations(run=a_plan().id, reviewer="bob")) == 1


def test_no_list_and_no_count_knows_an_aside(store: Store) -> None:
    store.journal.open_run(a_plan(), planned(a_task()))
    assert list(store.archive.assessments(Selection())) == []
    assert store.witness.asides() == ()
    assert store.witness.aside(AssessmentKey(1)) is None


def test_every_kind_of_aside_has_a_word_that_fits_its_column() -> None:
    assert max(len(kind) for kind in (*AsideKind, *Seen)) <= 12
    assert Aside.__dataclass_params__.frozen  # type: ignore[attr-defined]
