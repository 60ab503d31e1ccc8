"""Contract of answers side by side: rows in the order of the first run's tasks, found by index
seeks.
"""

from __future__ import annotations

import pytest
from tests.contract.stores import a_call, a_decision, a_plan, a_task, grades, judged, planned, wait

from assay.domain.answer_rows import AnswerColumn
from assay.domain.assessment import Response
from assay.domain.errors import UnknownName
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import Verb
from assay.domain.run import Entry
from assay.domain.selection import Selection
from assay.store.opening import Store

FIRST, SECOND = RunId("20250102-030405-arithmetic-abcd"), RunId("20250102-030405-arithmetic-bcde")
SCORES = grades({name: {"integrity": 0.8, "fitness": 0.5} for name in ("alice", "bob")})


def filled(store: Store) -> None:
    """Run one: tasks one, two (fails), three; run two: four, two and three, one of them with
    another text.
    """
    store.journal.open_run(
        a_plan(FIRST),
        planned(
            a_task("one", snippets={"bob": "bob's own"}), a_task("two"), a_task("three"), trials=2
        ),
    )
    store.journal.open_run(
        a_plan(SECOND), planned(a_task("four"), a_task("two"), a_task("three", prompt="Other."))
    )
    for run in (FIRST, SECOND):
        for trial in store.journal.claim(run, limit=10):
            if run == FIRST and trial.task.id == "two":
                failure = Failure(
                    kind="http_400", fault=Fault.PROVIDER, detail="no such model", tries=1
                )
                wait(store.journal.record(Entry(trial=trial.key, finished=True, failure=failure)))
                continue
            answers = [
                Response(candidate="alice", text=f"{trial.task.id} in {run[-4:]}, trial {trial.k}")
            ]
            wait(
                store.journal.record(
                    judged(trial, SCORES, calls=[a_call(trial)], responses=answers)
                )
            )


def test_rows_meet_by_task_and_stand_in_the_order_of_the_first_run(store: Store) -> None:
    filled(store)
    columns = [
        AnswerColumn(run=FIRST, candidate="alice"),
        AnswerColumn(run=SECOND, candidate="alice"),
    ]
    rows = store.archive.trials.answer_rows(columns)
    assert [(row.task.id, [one.text for one in row.answers]) for row in rows] == [
        ("one", ["one in abcd, trial 1", None]),
        ("two", [None, "two in bcde, trial 1"]),
        ("three", ["three in abcd, trial 1", "three in bcde, trial 1"]),
        ("four", [None, "four in bcde, trial 1"]),
    ]
    two, three = rows[1], rows[2]
    assert two.answers[0].failure == Failure(
        kind="http_400", fault=Fault.PROVIDER, detail="no such model", tries=1
    )
    assert two.digests[0] == two.digests[1]
    assert three.digests[0] != three.digests[1]
    assert rows[0].digests[1] is None


def test_pages_go_on_where_the_last_ended(store: Store) -> None:
    filled(store)
    columns = [
        AnswerColumn(run=FIRST, candidate="alice"),
        AnswerColumn(run=SECOND, candidate="alice"),
    ]
    result, place = [], None
    while rows := store.archive.trials.answer_rows(columns, after=place, limit=1):
        result.append(rows[0].task.id)
        place = rows[0].place
    assert result == ["one", "two", "three", "four"]


def test_snippet_trials_show_the_grades_that_count(store: Store) -> None:
    filled(store)
    columns = [
        AnswerColumn(run=FIRST, candidate="bob"),
        AnswerColumn(run=FIRST, candidate="alice", k=2),
    ]
    (row,) = store.archive.trials.answer_rows(columns, limit=1)
    bob, alice = row.answers
    assert (bob.text, alice.text) == ("bob's own", "one in abcd, trial 2")
    assert (bob.score, bob.waits) == (None, True)
    waiting = [
        row.key
        for row in store.archive.assessments.matching(Selection())
        if row.k == 1 and row.task == "one"
    ]
    store.decisions.decide([a_decision(Verb.APPROVE, AssessmentKey(waiting[0]))])
    (row,) = store.archive.trials.answer_rows(columns, limit=1)
    assert row.answers[0].score == pytest.approx(0.7)
    assert not row.answers[0].waits
    assert row.answers[1].waits


def test_an_unknown_candidate_or_run_is_named(store: Store) -> None:
    filled(store)
    with pytest.raises(UnknownName, match=r"no candidate 'alcie'\. Did you mean 'alice'"):
        store.archive.trials.answer_rows([AnswerColumn(run=FIRST, candidate="alcie")])
    with pytest.raises(UnknownName):
        store.archive.trials.answer_rows([AnswerColumn(run=RunId("nowhere"), candidate="alice")])
