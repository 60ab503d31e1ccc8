"""How criteria fared, and what models were asked, on both databases."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.stores import a_call, a_decision, a_plan, a_task, grades, judged, planned, wait

from assay.domain.assessment import Response
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import Verb
from assay.domain.observations import BlindVerdict, Observation
from assay.domain.run import Entry
from assay.domain.selection import AssessmentRow, Selection
from assay.domain.suite import Criterion, Rubric
from assay.store.opening import Store

RUN = a_plan().id


def graded(store: Store, trials: int = 4) -> list[AssessmentRow]:
    store.journal.open_run(a_plan(), planned(a_task(), trials=trials))
    whole = {"alice": {"integrity": 0.4, "fitness": 0.7}, "bob": {"integrity": 0.1, "fitness": 0.7}}
    for trial in store.journal.claim(RUN, limit=trials):
        wait(store.journal.record(judged(trial, grades(whole))))
    return list(store.archive.assessments.matching(Selection()))


def verdict(store: Store, key: int, reviewer: str, value: float) -> None:
    scores = {("alice", "integrity"): value, ("bob", "integrity"): value, ("alice", None): 0.5}
    store.observations.note(
        [
            Observation(
                run_id=RUN,
                assessment=AssessmentKey(key),
                reviewer=reviewer,
                at="2026-01-01T00:00:00Z",
                idempotency_key=f"verdict:{key}:{reviewer}",
                body=BlindVerdict(scores=scores, overall={}),
            )
        ]
    )


def test_nothing_that_waits_is_told(store: Store) -> None:
    rows = graded(store)
    verdict(store, rows[0].key, "ann", 0.9)
    result = store.archive.rubrics.criterion_facts(Selection())
    assert result.counted == ()
    assert result.decided == ()
    assert result.blind == ()
    assert result.blind_assessments == frozenset()
    assert result.graded == {}


def test_decisions_are_listed_in_their_order(store: Store) -> None:
    rows = graded(store)
    verdict(store, rows[2].key, "ann", 0.5)
    verdict(store, rows[2].key, "bob", 0.9)
    store.decisions.decide([a_decision(Verb.APPROVE, rows[2].key)])
    store.decisions.decide([a_decision(Verb.REJECT, rows[1].key, reason="no")])
    changed = {("bob", "integrity"): 0.6, ("alice", "fitness"): 0.7}
    store.decisions.decide(
        [a_decision(Verb.CORRECT, rows[0].key, corrections=changed, reason="right")]
    )
    result = store.archive.rubrics.criterion_facts(Selection())
    assert result.decided == ((rows[2].key, False), (rows[1].key, True), (rows[0].key, False))
    assert [(one.criterion, one.assessment) for one in result.corrected] == [
        ("integrity", rows[0].key)
    ]
    assert result.corrected[0].change == pytest.approx(0.5)
    assert result.graded == {"integrity": 3, "fitness": 3}
    assert result.blind_assessments == {rows[2].key}
    assert [(one.criterion, one.person) for one in result.blind] == [("integrity", 0.5)] * 2, (
        "the first who gave a verdict"
    )
    assert [one.judge for one in result.blind] == pytest.approx([0.4, 0.1])
    assert [(one.criterion, one.thousandths, one.n) for one in result.counted] == [
        ("integrity", 100, 1),
        ("integrity", 400, 2),
        ("integrity", 600, 1),
        ("fitness", 700, 4),
    ]


def test_a_person_s_own_grades_are_no_judge_s(store: Store) -> None:
    store.journal.open_run(a_plan(judges=("human",)), planned(a_task()))
    (trial,) = store.journal.claim(RUN, limit=1)
    blank = grades(
        {"alice": {"integrity": None, "fitness": None}, "bob": {"integrity": None, "fitness": None}}
    )
    wait(store.journal.record(judged(trial, blank, grader="human")))
    (row,) = store.archive.assessments.matching(Selection())
    given = {
        (name, criterion): 0.5
        for name in ("alice", "bob")
        for criterion in ("integrity", "fitness")
    }
    store.decisions.decide([a_decision(Verb.CORRECT, row.key, corrections=given, reason="mine")])
    result = store.archive.rubrics.criterion_facts(Selection())
    assert result.decided == ()
    assert result.corrected == ()
    assert result.graded == {}
    assert sum(one.n for one in result.counted) == 4


def test_rubrics_come_with_their_runs_and_only_new_ones_are_read(store: Store) -> None:
    store.journal.open_run(a_plan(), planned(a_task()))
    newest, (first,) = store.archive.rubrics.uses(0)
    assert (first.run_id, first.suite, first.rubric) == (RUN, "arithmetic", a_plan().rubric)
    other = Rubric(criteria=(Criterion(name="tone", labels=(("poor", 0.0), ("good", 10.0))),))
    store.journal.open_run(
        replace(a_plan("20250102-030406-arithmetic-abce"), rubric=other), planned(a_task())
    )
    store.journal.open_run(a_plan("20250102-030407-arithmetic-abcf", judges=()), planned(a_task()))
    again, (second,) = store.archive.rubrics.uses(newest)
    assert second.rubric == other
    assert store.archive.rubrics.uses(again) == (again, ())
    assert set(store.archive.runs.numbers()) == {1, 2, 3}


def test_calls_are_summed_by_how_they_ended_and_only_new_ones_are_read(store: Store) -> None:
    store.journal.open_run(a_plan(), planned(a_task(), trials=2))
    one, two = store.journal.claim(RUN, limit=2)
    wait(
        store.journal.record(
            judged(one, responses=[Response(candidate="alice", text="a")], calls=[a_call(one)])
        )
    )
    newest, (group,) = store.archive.calls.groups(0)
    assert (group.run_id, group.role, group.model, group.kind) == (RUN, "candidate", "echo", None)
    assert (group.calls, group.input_tokens, group.output_tokens, group.unpriced) == (1, 10, 5, 0)
    assert group.cost_usd == pytest.approx(0.001)
    failure = Failure(kind="http_500", fault=Fault.PROVIDER, detail="It broke.")
    lost = replace(a_call(two), reply=None, failure=failure)
    dear = replace(a_call(two), reply=replace(a_call(two).reply, cost_usd=None))  # type: ignore[type-var]
    wait(store.journal.record(Entry(trial=two.key, calls=(lost, dear))))
    later, groups = store.archive.calls.groups(newest)
    assert {(g.kind, g.fault, g.calls, g.unpriced) for g in groups} == {
        ("http_500", "provider", 1, 0),
        (None, None, 1, 1),
    }, "a call that brought nothing cost nothing"
    assert store.archive.calls.groups(later) == (later, ())
    (fact,) = store.archive.calls.facts([g.last_call for g in groups if g.kind])
    assert (fact.kind, fact.detail) == ("http_500", "It broke.")
    assert store.archive.calls.newest_latencies(
        "echo", role="candidate", first=1, last=later, limit=10
    ) == (0.25, 0.25)
