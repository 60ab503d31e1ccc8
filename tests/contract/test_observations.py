"""Observations count once, and control items stand apart from everything that is listed, on both
databases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.contract.stores import a_decision, a_plan, a_task, judged, plain_grades, planned, wait

from assay.domain.control_items import (
    AttemptOrigin,
    CheckOrigin,
    ControlItem,
    ControlKind,
    RepeatOrigin,
)
from assay.domain.errors import Refused, UnknownName
from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import AssessmentPurpose, AssessmentState, Verb
from assay.domain.observations import (
    KIND_OF,
    Arm,
    AuthorsDisclosed,
    BlindVerdict,
    CheckAnswered,
    DecisionTaken,
    DisputeSettled,
    GradesShown,
    MintEnded,
    MintRequested,
    Observation,
    ObservationBody,
    ObservationKind,
    OpinionGiven,
    OpinionWithdrawn,
    ProtocolSwitched,
    SecondRequested,
    SessionEnded,
)
from assay.domain.protocol import Protocol
from assay.domain.review import Decision
from assay.domain.selection import Selection
from assay.store.opening import Store

RUN = a_plan().id
STATE = AssessmentState


def an_observation(
    key: str,
    body: ObservationBody,
    *,
    reviewer: str = "ann",
    assessment: int = 7,
    purpose: AssessmentPurpose = AssessmentPurpose.WORK,
) -> Observation:
    return Observation(
        run_id=RUN,
        assessment=AssessmentKey(assessment),
        reviewer=reviewer,
        at="2026-01-01T00:00:00Z",
        idempotency_key=key,
        body=body,
        purpose=purpose,
    )


def test_an_observation_sent_twice_is_stored_once_as_it_was_first(store: Store) -> None:
    store.journal.open_run(a_plan(), planned(a_task()))
    approval, rejection = OpinionGiven(verb=Verb.APPROVE), OpinionGiven(verb=Verb.REJECT)
    (first,) = store.observations.note([an_observation("first", approval)])
    (second,) = store.observations.note([an_observation("first", approval)])
    assert first == second
    (shown,) = store.observations.note([an_observation("shown", GradesShown())])
    assert store.observations.note([an_observation("shown", GradesShown(), reviewer="bob")]) == (
        shown,
    )
    store.observations.note([an_observation("second", rejection, reviewer="bob")])
    both = store.observations.read(kinds=(ObservationKind.OPINION,))
    assert [opinion.reviewer for opinion in both] == ["ann", "bob"]
    assert len(store.observations.read(run=RUN, reviewer="bob")) == 1


@pytest.mark.parametrize(
    "other",
    [
        an_observation("used", OpinionGiven(verb=Verb.REJECT)),
        an_observation("used", OpinionGiven(verb=Verb.APPROVE, note="new")),
        an_observation("used", OpinionWithdrawn()),
        an_observation("used", OpinionGiven(verb=Verb.APPROVE), reviewer="bob"),
        an_observation("used", OpinionGiven(verb=Verb.APPROVE), assessment=8),
    ],
)
def test_an_opinion_under_a_used_key_with_other_content_is_refused(
    store: Store, other: Observation
) -> None:
    store.journal.open_run(a_plan(), planned(a_task()))
    stored = store.observations.note([an_observation("used", OpinionGiven(verb=Verb.APPROVE))])
    with pytest.raises(Refused, match="another opinion"):
        store.observations.note([other])
    assert store.observations.read(kinds=(ObservationKind.OPINION,)) == stored


BODIES: tuple[ObservationBody, ...] = (
    GradesShown(),
    BlindVerdict(
        scores={("alice", "integrity"): 0.5, ("bob", None): 1.0},
        overall={"alice": 0.5, "bob": None},
    ),
    DecisionTaken(verb=Verb.RERUN, arm=Arm.BLIND),
    DecisionTaken(
        verb=Verb.CORRECT,
        arm=Arm.ASSISTED,
        active_ms=1200,
        corrections=2,
        protocol=3,
        disclosed=True,
        size=40,
        distance=0.25,
        shift=-0.25,
        left_won=False,
        result={"alice": 0.75},
    ),
    SecondRequested(),
    OpinionGiven(
        verb=Verb.CORRECT, reason="é", note="n", result={"a": 0.5}, corrections={("a", "x"): 0.5}
    ),
    OpinionWithdrawn(),
    CheckAnswered(caught=True, verb=Verb.REJECT, how="moved_score"),
    ProtocolSwitched(
        protocol=Protocol(blind=0.5, rereview=0.1, gap_items=3, version=2), decided_before=4
    ),
    SessionEnded(),
    DisputeSettled(choice="first", disagreement="rubric", confidence="sure", together=True),
    AuthorsDisclosed(task="auth", k=None),
    MintRequested(
        token="t", batch_id="b", template="a.json5", output="out", key="key.pem", enriched=False
    ),
    MintEnded(token="t", path=""),
)


def test_every_record_comes_back_as_it_was_stored(store: Store) -> None:
    store.journal.open_run(a_plan(), planned(a_task()))
    sent = [
        an_observation(f"{n}", body, purpose=list(AssessmentPurpose)[n % 2])
        for n, body in enumerate(BODIES)
    ]
    stored = store.observations.note(sent)
    assert [replace(observation, id=0) for observation in stored] == sent
    assert store.observations.read() == stored
    assert store.observations.read(purpose=AssessmentPurpose.CONTROL) == stored[1::2]
    assert {type(body) for body in BODIES} == set(KIND_OF)


def a_check(source: AssessmentKey, **more: object) -> ControlItem:
    made = ControlItem(
        key=AssessmentKey(0),
        run_id=RUN,
        source=source,
        reviewer="ann",
        made="2026-01-01T00:00:00Z",
        judged=plain_grades(),
        origin=CheckOrigin(how="known_good"),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def on_control(
    verb: Verb, item: ControlItem, key: str | None = None, *, reason: str = ""
) -> Decision:
    return replace(
        a_decision(verb, item.key, idempotency=key, reason=reason),
        purpose=AssessmentPurpose.CONTROL,
    )


def test_control_items_come_back_as_they_were_put_and_by_every_filter(store: Store) -> None:
    real, other = a_run(store)
    check = store.control_items.put(a_check(real))
    origin = RepeatOrigin(scores={"alice": 0.5}, since=3, after_items=50.0, due="soon")
    repeat = store.control_items.put(a_check(other, reviewer="bob", origin=origin))
    assert len({int(real), int(other), int(check.key), int(repeat.key)}) == 4, "no key is another's"
    assert store.control_items.read(keys=[check.key]) == (check,)
    assert store.control_items.read(reviewer="bob") == (repeat,)
    assert store.control_items.read(source=real) == (check,)
    assert store.control_items.read(keys=[repeat.key, real]) == (repeat,)
    waiting = store.control_items.read(run=RUN, states={STATE.PENDING})
    assert waiting == tuple(sorted((check, repeat), key=lambda item: item.key))
    store.decisions.decide([on_control(Verb.REJECT, check, reason="no")])
    rejected = replace(check, state=STATE.REJECTED)
    assert store.control_items.read(states={STATE.REJECTED}) == (rejected,)
    store.decisions.decide([on_control(Verb.UNDO, check)])
    assert store.control_items.read(states={STATE.REJECTED}) == ()
    assert store.control_items.count(RUN) == 2
    assert store.control_items.count(RUN, before="2026-01-01T00:00:00Z") == 0
    assert [row.key for row in store.archive.assessments.matching(Selection())] == [real, other]


def test_decisions_on_control_items_have_events_of_their_own(store: Store) -> None:
    real, _ = a_run(store)
    check = store.control_items.put(a_check(real))
    assert store.control_items.tally() == {RUN: Counter({STATE.PENDING: 1})}
    (first,) = store.decisions.decide([on_control(Verb.APPROVE, check, "one")])
    assert store.decisions.decide([on_control(Verb.APPROVE, check, "one")]) == (first,)
    with pytest.raises(Refused, match="is approved, not pending"):
        store.decisions.decide([on_control(Verb.REJECT, check, "two", reason="no")])
    assert store.control_items.events([check.key]) == {check.key: (first,)}
    assert store.control_items.tally() == {RUN: Counter({STATE.APPROVED: 1})}
    assert list(store.archive.exports.events(Selection())) == []
    assert store.archive.assessments.detail(real).row.state is STATE.PENDING


def test_a_key_belongs_to_one_item_whatever_its_purpose(store: Store) -> None:
    real, other = a_run(store)
    check = store.control_items.put(a_check(real))
    store.decisions.decide([on_control(Verb.APPROVE, check, "of-the-check")])
    store.decisions.decide([a_decision(Verb.APPROVE, real, idempotency="of-the-real")])
    keys = ("of-the-check", "of-the-real", "new")
    assert [store.decisions.decided_by_key(key) for key in keys] == [check.key, real, None]
    for decision in (
        a_decision(Verb.APPROVE, other, idempotency="of-the-check"),
        on_control(Verb.UNDO, check, "of-the-real"),
    ):
        with pytest.raises(Refused, match="was sent before for another item"):
            store.decisions.decide([decision])


def test_the_operator_cannot_decide_a_control_item_by_its_number(store: Store) -> None:
    real, _ = a_run(store)
    check = store.control_items.put(a_check(real))
    with pytest.raises(UnknownName):
        store.decisions.decide([a_decision(Verb.APPROVE, check.key)])
    with pytest.raises(UnknownName):
        store.decisions.decide(
            [replace(a_decision(Verb.APPROVE, real), purpose=AssessmentPurpose.CONTROL)]
        )


def test_a_further_attempt_replaces_a_control_item_once(store: Store) -> None:
    real, _ = a_run(store)
    check = store.control_items.put(a_check(real))
    attempt = a_check(real, origin=AttemptOrigin(first=check.key), attempt=2)
    wish = on_control(Verb.RERUN, check, "again", reason="look again")
    new = store.control_items.supersede(wish, attempt)
    assert store.control_items.supersede(wish, attempt) == new
    first, second = store.control_items.read(source=real)
    assert {first.key: first.state, second.key: second.state} == {
        check.key: STATE.SUPERSEDED,
        new: STATE.PENDING,
    }
    (event,) = store.control_items.events([check.key])[check.key]
    assert (event.before, event.after, event.decision.verb) == (
        STATE.PENDING,
        STATE.SUPERSEDED,
        Verb.RERUN,
    )


def test_the_newest_decisions_of_a_reviewer_are_counted_from_one_on(store: Store) -> None:
    a_run(store)
    taken = DecisionTaken(verb=Verb.APPROVE, arm=Arm.ASSISTED)
    first, *_ = store.observations.note(
        [an_observation(key, taken) for key in ("one", "two", "three")]
    )
    assert store.observations.decided_since(first.id, reviewer="ann") == 2
    newest = store.observations.read(kinds=(ObservationKind.DECISION,), newest=2)
    assert [observation.idempotency_key for observation in newest] == ["two", "three"]


def test_the_secret_is_the_same_for_every_process(opened: Callable[[], Store]) -> None:
    first, second = opened(), opened()
    assert len(first.secret.value()) == 16
    assert second.secret.value() == first.secret.value()


def a_run(store: Store) -> tuple[AssessmentKey, AssessmentKey]:
    """Two judged assessments of one run."""
    store.journal.open_run(a_plan(), planned(a_task(), trials=2))
    for trial in store.journal.claim(RUN, limit=2):
        wait(store.journal.record(judged(trial)))
    first, second = (row.key for row in store.archive.assessments.matching(Selection()))
    return first, second


def test_every_kind_has_a_word_that_fits_its_column() -> None:
    assert max(len(kind) for kind in (*ControlKind, *ObservationKind, *AssessmentPurpose)) <= 12
