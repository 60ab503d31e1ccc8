"""Contract of decisions: all or none, once each, undone completely, also when others decide at the
same time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from tests.contract.rows import all_rows, assert_derived_agrees, driven
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

from assay.domain.assessment import Assessment
from assay.domain.errors import InputError, Refused, UnknownName
from assay.domain.failure import Failure, Fault
from assay.domain.lifecycle import AssessmentState, TrialState, Verb
from assay.domain.run import Entry
from assay.domain.selection import AssessmentRow, Selection
from assay.store.opening import Store

RUN = a_plan().id
EVERYTHING = Selection()


def with_assessments(
    store: Store, *assessments: Assessment, trials: int = 3
) -> list[AssessmentRow]:
    """A run whose trials were judged so, one trial each."""
    wanted = assessments or tuple(plain_grades(0.5) for _ in range(trials))
    store.journal.open_run(a_plan(), planned(a_task(), trials=len(wanted)))
    for trial, assessment in zip(store.journal.claim(RUN, limit=len(wanted)), wanted, strict=True):
        wait(store.journal.record(judged(trial, assessment)))
    return list(store.archive.assessments.matching(EVERYTHING))


def scores_of(store: Store, key: int) -> Mapping[str, float | None]:
    return store.archive.assessments.detail(key).row.assessment.scores  # type: ignore[arg-type] # AssessmentKey is int


def counted(store: Store) -> list[float]:
    return sorted(store.archive.scores.columns(EVERYTHING).score.tolist())


def test_nothing_counts_before_a_decision(store: Store) -> None:
    with_assessments(store)
    assert counted(store) == []
    assert store.archive.scores.excluded(EVERYTHING).pending == 3


@pytest.mark.quick_postgresql
def test_an_approval_lets_the_judges_scores_count(store: Store, url: str) -> None:
    rows = with_assessments(store)
    (event,) = store.decisions.decide([a_decision(Verb.APPROVE, rows[0].key, reason="fine")])
    assert (event.before, event.after) == (AssessmentState.PENDING, AssessmentState.APPROVED)
    assert (event.at, event.decision.reviewer) == ("2025-01-02T03:04:05.678Z", "rita")
    assert counted(store) == [0.5, 0.5]
    assert store.archive.assessments.detail(rows[0].key).events == (event,)
    assert store.archive.runs.matching()[0].trials == {
        TrialState.APPROVED: 1,
        TrialState.NEEDS_REVIEW: 2,
    }
    assert_derived_agrees(url)


def test_a_rejection_keeps_the_trial_out(store: Store, url: str) -> None:
    rows = with_assessments(store)
    store.decisions.decide([a_decision(Verb.REJECT, rows[0].key, reason="nonsense")])
    assert counted(store) == []
    assert store.archive.scores.excluded(EVERYTHING).rejected == 1
    assert store.archive.runs.matching()[0].trials == {
        TrialState.REJECTED: 1,
        TrialState.NEEDS_REVIEW: 2,
    }
    assert_derived_agrees(url)


def test_a_corrected_criterion_recomputes_the_candidate(store: Store) -> None:
    low = grades(
        {"alice": {"integrity": 0.4, "fitness": 0.7}, "bob": {"integrity": 0.1, "fitness": 0.1}}
    )
    (row,) = with_assessments(store, low)
    store.decisions.decide(
        [
            a_decision(
                Verb.CORRECT, row.key, corrections={("alice", "integrity"): 1.0}, reason="right"
            )
        ]
    )
    detail = store.archive.assessments.detail(row.key)
    assert detail.row.state is AssessmentState.CORRECTED
    assert detail.row.assessment.scores == pytest.approx({"alice": (2 * 1.0 + 0.7) / 3, "bob": 0.1})
    assert detail.judged.scores["alice"] == pytest.approx((2 * 0.4 + 0.7) / 3)
    laid = next(
        g
        for g in detail.row.assessment.grades
        if (g.candidate, g.criterion) == ("alice", "integrity")
    )
    assert (laid.score, laid.raw_score, laid.max_score) == (1.0, 10.0, 10.0)
    assert detail.events[0].decision.corrections == {("alice", "integrity"): 1.0}
    (listed,) = store.archive.assessments.matching(EVERYTHING)
    assert listed == detail.row
    assert counted(store) == pytest.approx([0.1, 0.9])


def test_a_corrected_candidate_overrides_the_criteria(store: Store) -> None:
    (row,) = with_assessments(store, plain_grades(0.2))
    store.decisions.decide([a_decision(Verb.CORRECT, row.key, corrections={("bob", None): 0.8})])
    assert scores_of(store, row.key) == pytest.approx({"alice": 0.2, "bob": 0.8})
    by_criterion = store.archive.scores.columns(Selection(criteria=("integrity",)))
    assert by_criterion.score.tolist() == pytest.approx([0.2, 0.2])


def test_undo_restores_every_row(store: Store, url: str) -> None:
    rows = with_assessments(store)
    kept = {name: result for name, result in all_rows(url).items() if name != "review_event"}
    for verb, more in (
        (Verb.APPROVE, {}),
        (Verb.REJECT, {"reason": "no"}),
        (Verb.CORRECT, {"corrections": {("alice", "integrity"): 0.9, ("bob", None): 0.123456789}}),
    ):
        store.decisions.decide([a_decision(verb, rows[1].key, **more)])
        assert {
            name: result for name, result in all_rows(url).items() if name != "review_event"
        } != kept
        (event,) = store.decisions.decide([a_decision(Verb.UNDO, rows[1].key, reviewer="sam")])
        assert event.after is AssessmentState.PENDING
        assert {
            name: result for name, result in all_rows(url).items() if name != "review_event"
        } == kept
    assert len(store.archive.assessments.detail(rows[1].key).events) == 6


@pytest.mark.parametrize("verb", [Verb.APPROVE, Verb.REJECT, Verb.CORRECT])
def test_a_second_decision_is_refused_and_says_how_to_mend_it(store: Store, verb: Verb) -> None:
    rows = with_assessments(store)
    store.decisions.decide([a_decision(Verb.REJECT, rows[0].key, reason="no")])
    corrections: dict[str, Any] = (
        {"corrections": {("alice", None): 1.0}} if verb is Verb.CORRECT else {}
    )
    with pytest.raises(
        Refused, match=r"a1: is rejected, not pending\. Undo that first: assay review undo a1"
    ):
        store.decisions.decide([a_decision(verb, rows[0].key, **corrections)])
    assert len(store.archive.assessments.detail(rows[0].key).events) == 1


def test_assessment_that_needs_no_decision_refuses_one(store: Store) -> None:
    store.journal.open_run(a_plan(), planned(a_task(), trials=2))
    exempt, by_rule = store.journal.claim(RUN, limit=2)
    wait(store.journal.record(judged(exempt, state=AssessmentState.EXEMPT)))
    wait(store.journal.record(judged(by_rule, state=AssessmentState.NOT_REQUIRED, by_model=False)))
    for row in store.archive.assessments.matching(EVERYTHING):
        with pytest.raises(Refused, match="not pending"):
            store.decisions.decide([a_decision(Verb.APPROVE, row.key)])
        with pytest.raises(Refused, match="no decision to undo"):
            store.decisions.decide([a_decision(Verb.UNDO, row.key)])


def test_a_superseded_attempt_is_closed(store: Store) -> None:
    (row,) = with_assessments(store, plain_grades())
    again = store.journal.claim_trial(row.trial)
    wait(store.journal.record(judged(again, attempt=2)))
    for verb in (Verb.APPROVE, Verb.UNDO):
        with pytest.raises(Refused, match="superseded"):
            store.decisions.decide([a_decision(verb, row.key)])


@pytest.mark.quick_postgresql
def test_several_decisions_are_all_or_none(store: Store, url: str) -> None:
    rows = with_assessments(store)
    before = all_rows(url)
    for bad in (
        a_decision(Verb.APPROVE, 999),
        a_decision(Verb.APPROVE, rows[0].key),  # a second time
        a_decision(Verb.CORRECT, rows[2].key, corrections={("alice", "integrety"): 0.5}),
    ):
        with pytest.raises(InputError):
            store.decisions.decide([*(a_decision(Verb.APPROVE, row.key) for row in rows[:2]), bad])
        assert all_rows(url) == before
    events = store.decisions.decide([a_decision(Verb.APPROVE, row.key) for row in rows])
    assert [event.decision.assessment for event in events] == [row.key for row in rows]
    assert store.decisions.decide([]) == ()


def test_an_unknown_assessment_is_named_as_people_see_it(store: Store) -> None:
    with pytest.raises(UnknownName, match="a999"):
        store.decisions.decide([a_decision(Verb.APPROVE, 999)])


def test_unscored_assessment_can_be_corrected_but_not_approved(store: Store, url: str) -> None:
    half = grades({"alice": {"integrity": 0.5, "fitness": 0.5}, "bob": {"integrity": None}})
    (row,) = with_assessments(store, half)
    with pytest.raises(Refused, match="no score for bob"):
        store.decisions.decide([a_decision(Verb.APPROVE, row.key)])
    with pytest.raises(Refused, match=r"missing: bob/fitness"):
        store.decisions.decide(
            [a_decision(Verb.CORRECT, row.key, corrections={("bob", "integrity"): 0.3})]
        )
    kept = {name: result for name, result in all_rows(url).items() if name != "review_event"}
    both = {("bob", "integrity"): 0.3, ("bob", "fitness"): 0.9}
    store.decisions.decide([a_decision(Verb.CORRECT, row.key, corrections=both)])
    detail = store.archive.assessments.detail(row.key)
    assert detail.row.assessment.scores["bob"] == pytest.approx(0.5)
    assert ("bob", "fitness", 0.9) in [
        (g.candidate, g.criterion, g.score) for g in detail.row.assessment.grades
    ]
    assert counted(store) == pytest.approx([0.5, 0.5])
    store.decisions.decide([a_decision(Verb.UNDO, row.key)])
    assert {
        name: result for name, result in all_rows(url).items() if name != "review_event"
    } == kept


@pytest.mark.parametrize(
    ("corrections", "message"),
    [
        ({}, "names no score"),
        ({("alice", "integrity"): 1.01}, "between 0 and 1"),
        ({("alice", None): float("nan")}, "between 0 and 1"),
        ({("alice", None): 0.5, ("alice", "fitness"): 0.5}, "both as a whole and on fitness"),
        ({("alise", None): 0.5}, "Did you mean 'alice'"),
        ({("alice", "integrety"): 0.5}, "Did you mean 'integrity'"),
    ],
)
def test_a_correction_that_makes_no_sense_changes_nothing(
    store: Store, corrections: dict[tuple[str, str | None], float], message: str
) -> None:
    (row,) = with_assessments(store, plain_grades())
    with pytest.raises(InputError, match=message):
        store.decisions.decide([a_decision(Verb.CORRECT, row.key, corrections=corrections)])
    assert store.archive.assessments.detail(row.key).row.state is AssessmentState.PENDING


def test_a_key_seen_before_changes_nothing_and_gives_the_event_of_then(store: Store) -> None:
    rows = with_assessments(store)
    first = store.decisions.decide([a_decision(Verb.APPROVE, rows[0].key, idempotency="k1")])
    again = store.decisions.decide([a_decision(Verb.APPROVE, rows[0].key, idempotency="k1")])
    assert again == first
    twice = a_decision(Verb.APPROVE, rows[1].key, idempotency="k2")
    one, same = store.decisions.decide([twice, twice])
    assert one == same
    assert len(store.archive.assessments.detail(rows[1].key).events) == 1


def test_a_key_used_for_one_assessment_is_refused_for_another(store: Store, url: str) -> None:
    rows = with_assessments(store)
    store.decisions.decide([a_decision(Verb.APPROVE, rows[0].key, idempotency="k1")])
    before = all_rows(url)
    other = a_decision(Verb.APPROVE, rows[1].key, idempotency="k1")
    with pytest.raises(Refused, match="key: was sent before for another item"):
        store.decisions.decide([a_decision(Verb.APPROVE, rows[2].key), other])
    assert all_rows(url) == before
    assert [store.decisions.decided_by_key(key) for key in ("k1", "k2")] == [rows[0].key, None]


@pytest.mark.parametrize(
    ("verb", "more"),
    [
        (Verb.REJECT, {}),
        (Verb.APPROVE, {"reason": "Other."}),
        (Verb.APPROVE, {"note": "Other."}),
        (Verb.APPROVE, {"reviewer": "sam"}),
        (Verb.CORRECT, {"corrections": {("alice", None): 0.25}}),
    ],
)
def test_a_used_key_is_refused_with_other_content(
    store: Store, url: str, verb: Verb, more: dict[str, Any]
) -> None:
    (row,) = with_assessments(store, plain_grades())
    odd = {"reason": "As \0 it is.", "note": "\ud800"}  # columns hold neither
    first = store.decisions.decide([a_decision(Verb.APPROVE, row.key, idempotency="k1", **odd)])
    before = all_rows(url)
    with pytest.raises(
        Refused, match="key: was sent before with another decision: approve by rita"
    ):
        store.decisions.decide([a_decision(verb, row.key, idempotency="k1", **{**odd, **more})])
    assert all_rows(url) == before
    assert (
        store.decisions.decide([a_decision(Verb.APPROVE, row.key, idempotency="k1", **odd)])
        == first
    )


def test_a_rerun_is_noted_with_the_state_the_old_attempt_had(store: Store) -> None:
    (row,) = with_assessments(store, plain_grades())
    store.decisions.decide([a_decision(Verb.APPROVE, row.key)])
    again = store.journal.claim_trial(row.trial)
    decision = a_decision(Verb.RERUN, 0, note="mind the tests", idempotency="r1")
    wait(store.journal.record(judged(again, attempt=2, rerun=decision)))
    approval, event = store.archive.assessments.detail(row.key).events
    assert (event.before, event.after) == (AssessmentState.APPROVED, AssessmentState.SUPERSEDED)
    assert approval.decision.verb is Verb.APPROVE
    assert event.decision == replace(decision, assessment=row.key)


def test_a_decision_during_a_rerun_is_not_lost_when_the_rerun_fails(store: Store, url: str) -> None:
    (row,) = with_assessments(store, plain_grades())
    again = store.journal.claim_trial(row.trial)
    store.decisions.decide([a_decision(Verb.APPROVE, row.key)])
    assert_derived_agrees(url)
    store.journal.release([again.key])
    assert store.archive.runs.matching()[0].trials == {TrialState.APPROVED: 1}
    assert_derived_agrees(url)


def test_one_judge_of_a_failed_trial_may_be_approved(store: Store, url: str) -> None:
    store.journal.open_run(a_plan(judges=("judge", "second")), planned(a_task()))
    (trial,) = store.journal.claim(RUN, limit=1)
    wait(store.journal.record(judged(trial, finished=False)))
    failure = Failure(kind="timeout", fault=Fault.PROVIDER, detail="no answer")
    wait(store.journal.record(Entry(trial=trial.key, finished=True, failure=failure)))
    assert store.archive.scores.excluded(EVERYTHING).pending == 1
    (row,) = store.archive.assessments.matching(EVERYTHING)
    store.decisions.decide([a_decision(Verb.APPROVE, row.key)])
    assert store.archive.runs.matching()[0].trials == {TrialState.FAILED: 1}
    excluded = store.archive.scores.excluded(EVERYTHING)
    assert (excluded.pending, excluded.failed) == (0, 0)  # it counts, by the judge it has
    assert_derived_agrees(url)


def test_eight_reviewers_at_once_lose_nothing_and_double_nothing(
    opened: Callable[[], Store], url: str
) -> None:
    desks = [opened() for _ in range(4)]  # four processes, two reviewers each
    rows = with_assessments(desks[0], trials=24)

    def review(number: int) -> tuple[int, int]:
        done = refused = 0
        for row in rows:
            verb = (Verb.APPROVE, Verb.REJECT)[(number + row.key) % 2]
            try:
                decision = a_decision(
                    verb, row.key, reviewer=f"r{number}", idempotency=f"{number}-{row.key}"
                )
                desks[number % 4].decisions.decide([decision])
                done += 1
            except Refused:
                refused += 1
        return done, refused

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(review, range(8)))
    assert sum(done for done, _ in outcomes) == len(rows)
    assert sum(refused for _, refused in outcomes) == 7 * len(rows)
    assert len(all_rows(url)["review_event"]) == len(rows)
    assert all(
        row.state is not AssessmentState.PENDING
        for row in desks[1].archive.assessments.matching(EVERYTHING)
    )
    assert desks[0].event_log.first_broken() is None
    assert_derived_agrees(url)


def test_an_event_edited_behind_our_back_is_found(store: Store, url: str) -> None:
    rows = with_assessments(store)
    for row in rows:
        store.decisions.decide([a_decision(Verb.REJECT, row.key, reason="é \ud800\0")])
    assert store.event_log.first_broken() is None
    engine = create_engine(driven(url))
    with engine.begin() as connection:
        connection.execute(text("UPDATE review_event SET reviewer = 'somebody' WHERE id = 2"))
    engine.dispose()
    assert store.event_log.first_broken() == 2
