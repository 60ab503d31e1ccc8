"""Export rows: exactly the scores that statistics read, other rows with their reason, whole
assessments.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.contract.stores import (
    a_call,
    a_decision,
    a_plan,
    a_task,
    judged,
    plain_grades,
    planned,
    wait,
)

from assay.analysis.tables import score_table
from assay.domain.assessment import Response
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.selection import NotCounted, Selection
from assay.statistics import ScoreTable, estimate
from assay.store.opening import Store

FIRST, SECOND = "20250101-000000-alpha-aaaa", "20250201-000000-alpha-bbbb"
EVERYTHING = Selection()
STATE = AssessmentState


@pytest.fixture
def two_runs(store: Store) -> Store:
    """Two runs of the same tasks: in the first one trial of each decision, in the second everything
    exempt.
    """
    tasks = [a_task("auth", weight=2.0), a_task("pay")]
    store.journal.open_run(
        a_plan(FIRST, suite="alpha", started="2025-01-01T00:00:00.000Z"), planned(*tasks, trials=3)
    )
    for number, trial in enumerate(store.journal.claim(RunId(FIRST), limit=9)):
        wait(store.journal.record(judged(trial, plain_grades(0.1 * number))))
    keys = [row.key for row in store.archive.assessments.matching(EVERYTHING)]
    store.decisions.decide(
        [
            a_decision(Verb.APPROVE, keys[0], reviewer="rita"),
            a_decision(Verb.CORRECT, keys[1], corrections={("alice", "integrity"): 0.9}),
            a_decision(Verb.REJECT, keys[2], reason="no"),
            a_decision(Verb.APPROVE, keys[3]),
        ]
    )
    again = store.journal.claim_trial(next(iter(store.archive.trials.matching(EVERYTHING))).key)
    wait(store.journal.record(judged(again, plain_grades(0.7), attempt=2)))
    newer = a_plan(
        SECOND, suite="alpha", started="2025-02-01T00:00:00.000Z", candidates=("Bob", "carol")
    )
    store.journal.open_run(newer, planned(*tasks, trials=2))
    for trial in store.journal.claim(RunId(SECOND), limit=9):
        answer = Response(candidate="Bob", text=f"answer {trial.k}")
        wait(
            store.journal.record(
                judged(
                    trial,
                    plain_grades(0.3 * trial.k, ("Bob", "carol")),
                    state=STATE.EXEMPT,
                    responses=[answer],
                    calls=[a_call(trial, candidate="Bob")],
                )
            )
        )
    return store


def table_of(store: Store, selection: Selection) -> ScoreTable:
    rows = list(store.archive.exports.score_rows(selection))
    return ScoreTable.from_columns(
        task=[row.task for row in rows],
        candidate=[row.candidate for row in rows],
        trial=[row.trial for row in rows],
        score=[row.score for row in rows if row.score is not None],
        weight=[row.weight for row in rows],
        joint=[row.joint for row in rows],
    )


@pytest.mark.parametrize(
    "selection",
    [
        EVERYTHING,
        Selection(runs=(FIRST,)),
        Selection(tasks=("pay",)),
        Selection(criteria=("integrity",)),
    ],
    ids=["everything", "run", "task", "criterion"],
)
def test_the_rows_give_the_numbers_that_the_columns_give(
    two_runs: Store, selection: Selection
) -> None:
    columns = two_runs.archive.scores.columns(selection)
    rows = list(two_runs.archive.exports.score_rows(selection))
    assert sorted(row.score for row in rows if row.score is not None) == pytest.approx(
        sorted(columns.score.tolist())
    )
    assert rows
    inside, outside = score_table(columns), table_of(two_runs, selection)
    for name in columns.candidates:
        mine, theirs = estimate(inside, name), estimate(outside, name)
        if name in {row.candidate for row in rows}:
            assert (mine.mean, mine.ci95, mine.n_trials) == (
                theirs.mean,
                theirs.ci95,
                theirs.n_trials,
            )


def test_excluded_rows_keep_their_state_and_give_a_reason(two_runs: Store) -> None:
    rows = list(two_runs.archive.exports.score_rows(Selection(runs=(FIRST,)), everything=True))
    why = {(row.state, row.not_counted) for row in rows}
    assert why == {
        (STATE.SUPERSEDED, NotCounted.SUPERSEDED),
        (STATE.CORRECTED, None),
        (STATE.REJECTED, NotCounted.REJECTED),
        (STATE.APPROVED, None),
        (STATE.PENDING, NotCounted.PENDING),
    }
    counting = [row for row in rows if row.not_counted is None]
    assert counting == list(two_runs.archive.exports.score_rows(Selection(runs=(FIRST,))))


def test_trials_of_two_runs_of_a_task_never_share_a_number(two_runs: Store) -> None:
    rows = list(two_runs.archive.exports.score_rows(EVERYTHING, everything=True))
    owners: dict[tuple[str, int], set[tuple[str, int]]] = {}
    for row in rows:
        owners.setdefault((row.task, row.trial), set()).add((row.run_id, row.k))
    assert all(len(entry) == 1 for entry in owners.values())
    assert len(owners) == 10
    alone = list(two_runs.archive.exports.score_rows(Selection(runs=(SECOND,))))
    assert {(row.trial, row.k) for row in alone} == {(1, 1), (2, 2)}


def test_a_corrected_score_leaves_as_it_counts(two_runs: Store) -> None:
    (row,) = (
        row
        for row in two_runs.archive.exports.score_rows(EVERYTHING)
        if row.state is STATE.CORRECTED and row.candidate == "alice"
    )
    assert row.score == pytest.approx((2 * 0.9 + 0.1) / 3)


def test_details_in_portions_are_the_details_one_by_one(two_runs: Store) -> None:
    items = list(two_runs.archive.exports.assessments(EVERYTHING, everything=True))
    assert len(items) == 11
    for detail, _ in items:
        assert detail == two_runs.archive.assessments.detail(detail.row.key)
    counting = [detail.row.key for detail, why in items if why is None]
    assert counting == [
        detail.row.key for detail, _ in two_runs.archive.exports.assessments(EVERYTHING)
    ]
    assert [len(detail.attempts) for detail, _ in items][:2] == [2, 1]
    assert {event.decision.reviewer for detail, _ in items for event in detail.events} == {"rita"}
    answered = [r.text for detail, _ in items for r in detail.responses]
    assert answered.count("answer 2") == 2


def test_a_newer_grading_takes_the_place_of_the_older_one(store: Store) -> None:
    store.journal.open_run(a_plan(FIRST), planned(a_task(), trials=2))
    for trial in store.journal.claim(RunId(FIRST), limit=2):
        wait(store.journal.record(judged(trial, plain_grades(0.2), state=STATE.EXEMPT)))
    newer = replace(a_plan(SECOND, started="2025-02-01T00:00:00.000Z"), regrade_of=RunId(FIRST))
    store.journal.open_run(newer, planned(a_task(), trials=2))
    (trial,) = store.journal.claim(RunId(SECOND), limit=1)
    wait(store.journal.record(judged(trial, plain_grades(0.8), state=STATE.EXEMPT)))
    rows = list(store.archive.exports.score_rows(EVERYTHING, everything=True))
    scores = sorted(
        (row.k, round(row.score or 0, 6), row.not_counted)
        for row in rows
        if row.candidate == "alice"
    )
    assert scores == [(1, 0.2, NotCounted.GRADED_ANEW), (1, 0.8, None), (2, 0.2, None)]
    whole = [
        (d.row.run_id, d.row.k, why)
        for d, why in store.archive.exports.assessments(EVERYTHING, everything=True)
    ]
    assert whole == [(FIRST, 1, NotCounted.GRADED_ANEW), (FIRST, 2, None), (SECOND, 1, None)]
    columns = store.archive.scores.columns(EVERYTHING)
    assert sorted(columns.score.tolist()) == sorted(
        r.score for r in store.archive.exports.score_rows(EVERYTHING) if r.score
    )
    assert np.isfinite(columns.score).all()
