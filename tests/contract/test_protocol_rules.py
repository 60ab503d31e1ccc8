"""Contract of the review protocol: it binds a decision where it is stored, on SQLite and
PostgreSQL.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.stores import (
    a_decision,
    a_plan,
    a_task,
    grades,
    judged,
    plain_grades,
    planned,
    wait,
)

from assay.domain.errors import Refused
from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.observations import (
    AuthorsDisclosed,
    BlindVerdict,
    GradesShown,
    Observation,
    ObservationBody,
    ObservationKind,
)
from assay.domain.review import Outcome, Via
from assay.domain.selection import AssessmentRow, Selection
from assay.store.opening import Store

EVERYTHING = Selection()
AT = "2026-11-01T10:00:00.000000Z"
PENDING, APPROVED = AssessmentState.PENDING, AssessmentState.APPROVED


def rows_under(store: Store, *, trials: int = 2, **shares: float) -> list[AssessmentRow]:
    """The pending assessments of a run with this review protocol."""
    plan = replace(a_plan(), protocol={"version": 1, **shares})
    store.journal.open_run(plan, planned(a_task(), trials=trials))
    for trial in store.journal.claim(plan.id, limit=trials):
        wait(store.journal.record(judged(trial, plain_grades(0.5))))
    return list(store.archive.assessments.matching(EVERYTHING))


def decide(
    store: Store,
    verb: Verb,
    key: int,
    *,
    by: str,
    score: float | None = None,
    once: str | None = None,
) -> Outcome:
    corrections = {} if score is None else {("alice", None): score}
    decision = a_decision(
        verb, key, reviewer=by, reason="why", corrections=corrections, idempotency=once
    )
    (event,) = store.decisions.decide([decision])
    return event.outcome


def state_of(store: Store, key: int) -> AssessmentState:
    return store.archive.assessments.detail(key).row.state  # type: ignore[arg-type] # AssessmentKey is int


def n_counted(store: Store) -> int:
    return len(store.archive.scores.columns(EVERYTHING).score)


@pytest.mark.quick_postgresql
def test_one_approval_of_two_is_an_opinion_that_counts_nowhere(store: Store) -> None:
    rows = rows_under(store, second=1.0)
    events = store.decisions.decide(
        [a_decision(Verb.APPROVE, row.key, reviewer="ann") for row in rows]
    )
    assert [(event.id, event.outcome, event.after) for event in events] == [
        (0, Outcome.FIRST_OPINION, PENDING)
    ] * 2
    assert n_counted(store) == 0
    assert store.archive.assessments.detail(rows[0].key).events == ()
    assert decide(store, Verb.APPROVE, rows[0].key, by="bea") is Outcome.DECIDED
    assert (state_of(store, rows[0].key), state_of(store, rows[1].key)) == (APPROVED, PENDING)
    assert n_counted(store) == 2  # both candidates of one trial


@pytest.mark.parametrize("again", ["ann", "Ann", "ANN"])
def test_a_second_opinion_of_the_same_person_is_refused(store: Store, again: str) -> None:
    row, _ = rows_under(store, second=1.0)
    decide(store, Verb.APPROVE, row.key, by="ann")
    with pytest.raises(
        Refused, match="already has your verdict; another reviewer must give the second"
    ):
        decide(store, Verb.APPROVE, row.key, by=again)
    assert state_of(store, row.key) is PENDING


@pytest.mark.parametrize("via", list(Via))
def test_two_names_that_one_person_states_are_one_person_on_every_road(
    store: Store, via: Via
) -> None:
    row, _ = rows_under(store, second=1.0)
    stated = replace(
        a_decision(Verb.APPROVE, row.key),
        via=via,
        displayed=via in (Via.PAGE, Via.TERMINAL),
        stated_by="root",
    )
    store.decisions.decide([replace(stated, reviewer="ann")])
    for name in ("cleo", "root"):
        own = name == "root"
        with pytest.raises(Refused, match="a verdict of the same person, under the name ann"):
            store.decisions.decide(
                [replace(stated, reviewer=name, stated_by="" if own else "root")]
            )
    at_another_login = replace(stated, reviewer="cleo", stated_by="")
    assert store.decisions.decide([at_another_login])[0].outcome is Outcome.DECIDED


def test_opinions_that_differ_are_a_dispute_that_a_third_person_settles(store: Store) -> None:
    row, _ = rows_under(store, second=1.0)
    decide(store, Verb.APPROVE, row.key, by="ann")
    assert decide(store, Verb.CORRECT, row.key, by="bea", score=0.9) is Outcome.DISPUTED
    with pytest.raises(Refused, match="is disputed"):
        decide(store, Verb.APPROVE, row.key, by="cleo")
    settling = a_decision(Verb.APPROVE, row.key, reviewer="Bea")
    with pytest.raises(Refused, match="is your own dispute"):
        store.decisions.settle(settling, together=False)
    with pytest.raises(Refused, match="is your own dispute"):
        store.decisions.settle(replace(settling, reviewer="cleo", stated_by="bea"), together=False)
    with pytest.raises(Refused, match="only the two who disagree settle it together"):
        store.decisions.settle(replace(settling, reviewer="cleo", stated_by="bea"), together=True)
    assert (
        store.decisions.settle(replace(settling, reviewer="cleo"), together=False).after is APPROVED
    )
    with pytest.raises(Refused, match="is approved"):
        store.decisions.settle(replace(settling, reviewer="dora"), together=False)
    # The undo of a settlement leaves the dispute as it was.
    decide(store, Verb.UNDO, row.key, by="cleo")
    with pytest.raises(Refused, match="is disputed"):
        decide(store, Verb.APPROVE, row.key, by="cleo")


def test_an_item_without_a_dispute_is_not_settled(store: Store) -> None:
    row, _ = rows_under(store, second=1.0)
    with pytest.raises(Refused, match="is not disputed"):
        store.decisions.settle(a_decision(Verb.APPROVE, row.key, reviewer="cleo"), together=True)


def test_an_undo_takes_back_an_opinion_or_the_decision_of_two(store: Store) -> None:
    row, _ = rows_under(store, second=1.0)
    decide(store, Verb.APPROVE, row.key, by="ann")
    with pytest.raises(Refused, match="only another reviewer's opinion"):
        decide(store, Verb.UNDO, row.key, by="bea")
    assert decide(store, Verb.UNDO, row.key, by="ann") is Outcome.WITHDRAWN
    for name in ("ann", "bea"):
        decide(store, Verb.APPROVE, row.key, by=name)
    assert decide(store, Verb.UNDO, row.key, by="bea") is Outcome.DECIDED
    # Ann's opinion stands, so Bea's next one decides; an undo by a third person needs two new
    # opinions.
    assert decide(store, Verb.APPROVE, row.key, by="bea") is Outcome.DECIDED
    decide(store, Verb.UNDO, row.key, by="cleo")
    assert decide(store, Verb.APPROVE, row.key, by="cleo") is Outcome.FIRST_OPINION
    assert decide(store, Verb.APPROVE, row.key, by="ann") is Outcome.DECIDED


def test_an_opinion_sent_again_changes_nothing(store: Store) -> None:
    row, other = rows_under(store, second=1.0)
    assert decide(store, Verb.APPROVE, row.key, by="ann", once="one") is Outcome.FIRST_OPINION
    assert decide(store, Verb.APPROVE, row.key, by="ann", once="one") is Outcome.FIRST_OPINION
    with pytest.raises(Refused, match="another opinion, by ann"):
        decide(store, Verb.REJECT, row.key, by="ann", once="one")
    with pytest.raises(Refused, match="for another item"):
        decide(store, Verb.APPROVE, other.key, by="ann", once="one")
    decide(store, Verb.APPROVE, row.key, by="bea")
    assert decide(store, Verb.APPROVE, row.key, by="ann", once="one") is Outcome.DECIDED
    assert len(store.observations.read(kinds=(ObservationKind.OPINION,))) == 2


def test_opinions_and_a_later_refusal_in_one_command_are_not_stored(store: Store) -> None:
    first, second = rows_under(store, second=1.0)
    decide(store, Verb.APPROVE, second.key, by="ann")
    with pytest.raises(Refused):
        store.decisions.decide(
            [a_decision(Verb.APPROVE, row.key, reviewer="ann") for row in (first, second)]
        )
    assert {observation.assessment for observation in store.observations.read()} == {second.key}


@pytest.mark.quick_postgresql
def test_nobody_decides_their_own_work(store: Store) -> None:
    row, other = rows_under(store)
    for verb in (Verb.APPROVE, Verb.REJECT, Verb.CORRECT):
        with pytest.raises(Refused, match="the work of Alice, and nobody decides their own work"):
            decide(store, verb, row.key, by="Alice", score=0.5 if verb is Verb.CORRECT else None)
    decide(store, Verb.APPROVE, row.key, by="ann")
    with pytest.raises(Refused, match="nobody decides their own work"):
        decide(store, Verb.UNDO, row.key, by="bob")
    assert store.archive.assessments.own_work([row.key, other.key], "BOB") == {row.key, other.key}
    assert set(store.archive.assessments.own_work_waiting(EVERYTHING, "bob")) == {other.key}
    assert store.archive.assessments.own_work([row.key], "ann") == frozenset()


@pytest.mark.parametrize(
    ("author", "second"),
    [
        ("ａｌｉｃｅ", "ｒｉｔａ"),
        ("al\u200bice", "ri\u200bta"),
        ("\u202ealice\u202c", "\u202erita\u202c"),
        ("ALICE\u00ad", "RITA\u00ad"),
    ],
)
def test_another_way_to_type_a_name_gives_no_other_person(
    store: Store, author: str, second: str
) -> None:
    row, _ = rows_under(store, second=1.0)
    with pytest.raises(Refused, match="nobody decides their own work"):
        decide(store, Verb.APPROVE, row.key, by=author)
    assert store.archive.assessments.own_work([row.key], author) == {row.key}
    decide(store, Verb.APPROVE, row.key, by="rita")
    with pytest.raises(Refused, match="already has your verdict"):
        decide(store, Verb.APPROVE, row.key, by=second)


def test_a_renamed_candidate_is_still_their_own_work(store: Store) -> None:
    row, _ = rows_under(store)
    store.renaming.rename("alice", "Alice Smith", reviewer="ann", reason="")
    for name in ("alice", "alice smith"):
        with pytest.raises(Refused, match="own work"):
            decide(store, Verb.APPROVE, row.key, by=name)


def test_a_single_candidate_bars_only_its_author(store: Store) -> None:
    store.journal.open_run(a_plan(), planned(a_task()))
    (trial,) = store.journal.claim(a_plan().id, limit=1)
    for candidate in ("alice", "bob"):
        own = grades({candidate: {"integrity": 0.5, "fitness": 0.5}})
        wait(
            store.journal.record(
                judged(trial, own, candidate=candidate, finished=candidate == "bob")
            )
        )
    of_alice, of_bob = store.archive.assessments.matching(EVERYTHING)
    assert decide(store, Verb.APPROVE, of_bob.key, by="alice") is Outcome.DECIDED
    with pytest.raises(Refused, match="own work"):
        decide(store, Verb.APPROVE, of_alice.key, by="alice")


def test_a_scripted_decision_on_a_blind_item_ends_the_reviewers_blindness(store: Store) -> None:
    row, _ = rows_under(store, blind=1.0)
    assert decide(store, Verb.APPROVE, row.key, by="ann") is Outcome.DECIDED
    (shown,) = store.observations.read(kinds=(ObservationKind.SHOWN,))
    assert (shown.assessment, shown.reviewer) == (row.key, "ann")


@pytest.mark.quick_postgresql
@pytest.mark.parametrize("via", [Via.PAGE, Via.TERMINAL])
@pytest.mark.parametrize("verb", [Verb.APPROVE, Verb.CORRECT])
def test_a_screen_decides_on_blind_grades_only_after_the_own_verdict(
    store: Store, via: Via, verb: Verb
) -> None:
    row, other = rows_under(store, blind=1.0)
    corrections = {("alice", None): 0.9} if verb is Verb.CORRECT else {}
    decision = replace(
        a_decision(verb, row.key, reason="why", corrections=corrections), via=via, displayed=True
    )
    with pytest.raises(Refused, match="is blind: give your own verdict first") as refusal:
        store.decisions.decide([decision])
    assert refusal.value.remedy == "Score it to see the judge's scores."
    verdict = BlindVerdict(scores={("alice", None): 0.4}, overall={"alice": 0.4})
    note(store, row, "somebody else", "other-verdict", verdict)
    note(store, other, "rita", "verdict-of-another-item", verdict)
    with pytest.raises(Refused, match="is blind"):
        store.decisions.decide([decision])
    assert state_of(store, row.key) is PENDING
    note(store, row, "rita", "verdict", verdict)
    assert store.decisions.decide([decision])[0].outcome is Outcome.DECIDED


def test_a_rejection_needs_no_own_verdict(store: Store) -> None:
    row, _ = rows_under(store, blind=1.0)
    decision = replace(
        a_decision(Verb.REJECT, row.key, reason="empty"), via=Via.PAGE, displayed=True
    )
    assert store.decisions.decide([decision])[0].outcome is Outcome.DECIDED


@pytest.mark.parametrize("trial", [1, None])
def test_who_saw_the_grades_or_the_authors_decides_without_a_verdict(
    store: Store, trial: int | None
) -> None:
    row, other = rows_under(store, blind=1.0)
    note(store, row, "rita", "shown", GradesShown())
    note(
        store,
        other,
        "ann",
        "disclosed",
        AuthorsDisclosed(task=other.task, k=other.k if trial else None),
        whole_run=True,
    )
    for key, name in ((row.key, "rita"), (other.key, "ann")):
        decision = replace(
            a_decision(Verb.APPROVE, key, reviewer=name), via=Via.PAGE, displayed=True
        )
        assert store.decisions.decide([decision])[0].outcome is Outcome.DECIDED
    assert (state_of(store, row.key), state_of(store, other.key)) == (APPROVED, APPROVED)


def note(
    store: Store,
    row: AssessmentRow,
    reviewer: str,
    key: str,
    body: ObservationBody,
    *,
    whole_run: bool = False,
) -> None:
    item = AssessmentKey(0) if whole_run else row.key
    given = Observation(
        run_id=row.run_id, assessment=item, reviewer=reviewer, at=AT, idempotency_key=key, body=body
    )
    store.observations.note([given])
