"""Contract of the archive: columns hold counted scores only, filters hold, unknown names are
reported.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from tests.contract.stores import (
    a_call,
    a_decision,
    a_plan,
    a_task,
    grades,
    judged,
    plain_grades,
    planned,
    wait,
)

from assay.analysis.columns import STATES
from assay.domain.assessment import Response
from assay.domain.errors import InputError, UnknownName
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import AssessmentKey, RunId, TrialKey
from assay.domain.lifecycle import AssessmentState, RunState, TrialState, Verb
from assay.domain.run import Entry
from assay.domain.selection import Excluded, Selection
from assay.store.opening import Store

EVERYTHING = Selection()
STATE = AssessmentState
OLD, NEW = "20250101-000000-alpha-aaaa", "20250201-000000-beta-bbbb"


def run_all(
    store: Store, run: str, value: float, *, state: STATE = STATE.EXEMPT, grader: str = "judge"
) -> None:
    """Grade every trial of a run alike."""
    for trial in store.journal.claim(RunId(run), limit=100):
        wait(store.journal.record(judged(trial, plain_grades(value), state=state, grader=grader)))


def test_a_store_bears_a_number_of_its_own_and_keeps_it(opened: Callable[[], Store]) -> None:
    first = opened()
    number = first.identity()
    assert re.fullmatch("[0-9a-f]{16}", number)
    assert first.identity() == opened().identity() == number


@pytest.fixture
def two_runs(store: Store) -> Store:
    """An older run of suite alpha with two tasks and two trials, and a newer one of suite beta with
    one of each.
    """
    old = a_plan(OLD, suite="alpha", started="2025-01-01T00:00:00.000Z", batch_id="January")
    auth = a_task("auth", tags=["security"], language="python", thing="Auth Service")
    store.journal.open_run(
        old, planned(auth, a_task("pay", tags=["money", "security"], language="go"), trials=2)
    )
    run_all(store, OLD, 0.25)
    new = a_plan(
        NEW,
        suite="beta",
        started="2025-02-01T00:00:00.000Z",
        candidates=("Bob", "carol"),
        judges=("Second",),
    )
    store.journal.open_run(new, planned(a_task("mail", language="go")))
    (trial,) = store.journal.claim(RunId(NEW), limit=1)
    graded = grades(
        {"Bob": {"integrity": 1.0, "fitness": 0.0}, "carol": {"integrity": 0.5, "fitness": 0.5}}
    )
    wait(store.journal.record(judged(trial, graded, state=STATE.EXEMPT, grader="Second")))
    return store


# Columns


@pytest.mark.quick_postgresql
def test_score_columns_hold_exactly_the_counted_scores(store: Store) -> None:
    store.journal.open_run(a_plan(OLD), planned(a_task(), trials=7))
    trials = store.journal.claim(RunId(OLD), limit=7)
    for trial, value in zip(trials[:6], (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), strict=True):
        state = {0: STATE.NOT_REQUIRED, 1: STATE.EXEMPT}.get(trial.k - 1, STATE.PENDING)
        wait(store.journal.record(judged(trial, plain_grades(value, ["alice"]), state=state)))
    third, fourth, fifth, sixth = (
        row.key for row in list(store.archive.assessments.matching(EVERYTHING))[2:]
    )
    store.decisions.decide(
        [
            a_decision(Verb.APPROVE, third),
            a_decision(Verb.CORRECT, fourth, corrections={("alice", None): 0.95}),
            a_decision(Verb.REJECT, fifth, reason="no"),
        ]
    )
    again = store.journal.claim_trial(trials[0].key)
    wait(
        store.journal.record(
            judged(again, plain_grades(0.7, ["alice"]), attempt=2, state=STATE.PENDING)
        )
    )
    columns = store.archive.scores.columns(EVERYTHING)
    by_name = dict(zip(columns.trial.tolist(), columns.score.tolist(), strict=True))
    assert by_name == pytest.approx({trials[1].key: 0.2, trials[2].key: 0.3, trials[3].key: 0.95})
    assert columns.unseen.tolist() == [True, False, False]
    excluded = store.archive.scores.excluded(EVERYTHING)
    assert excluded == Excluded(pending=3, rejected=1, failed=0, superseded=1, under_way=1)
    assert len(by_name) + excluded.pending + excluded.rejected + excluded.failed == 7
    assert sixth not in by_name


def test_columns_name_tasks_candidates_and_judges_by_code(two_runs: Store) -> None:
    columns = two_runs.archive.scores.columns(EVERYTHING)
    rows = sorted(
        (
            columns.tasks[t].suite,
            columns.tasks[t].task,
            columns.candidates[c],
            columns.judges[j],
            round(float(s), 6),
        )
        for t, c, j, s in zip(
            columns.task, columns.candidate, columns.judge, columns.score, strict=True
        )
    )
    assert rows == sorted(
        [
            ("alpha", task, name, "judge", 0.25)
            for task in ("auth", "pay")
            for name in ("alice", "bob")
        ]
        * 2
        + [
            ("beta", "mail", "bob", "Second", round(2 / 3, 6)),
            ("beta", "mail", "carol", "Second", 0.5),
        ]
    )
    assert columns.runs == (OLD, NEW)
    assert columns.joint.all()
    assert [(setting.judge, setting.runs) for setting in columns.settings] == [
        ("judge", (OLD,)),
        ("Second", (NEW,)),
    ]
    assert columns.task.dtype == columns.trial.dtype == "int64"


def test_an_empty_store_gives_empty_columns(store: Store) -> None:
    columns = store.archive.scores.columns(EVERYTHING)
    assert (len(columns.score), columns.tasks, columns.candidates, columns.runs) == (0, (), (), ())
    assert store.archive.scores.excluded(EVERYTHING) == Excluded(
        pending=0, rejected=0, failed=0, superseded=0
    )


def test_tasks_without_a_score_are_planned_all_the_same(store: Store) -> None:
    store.journal.open_run(a_plan(OLD), planned(a_task("auth"), a_task("pay", weight=3.0)))
    columns = store.archive.scores.columns(EVERYTHING)
    assert [(label.task, label.weight) for label in columns.tasks] == [("auth", 1.0), ("pay", 3.0)]
    assert columns.candidates == ("alice", "bob")


def test_a_task_that_changed_is_another_task_and_said_to_be(store: Store) -> None:
    store.journal.open_run(
        a_plan(OLD), planned(a_task("auth", prompt="one", weight=1.0), a_task("pay"))
    )
    later = a_plan(NEW, started="2025-02-01T00:00:00.000Z")
    store.journal.open_run(
        later, planned(a_task("auth", prompt="two"), a_task("pay", weight=5.0, thing="Payments"))
    )
    run_all(store, OLD, 0.1)
    run_all(store, NEW, 0.9)
    columns = store.archive.scores.columns(EVERYTHING)
    assert sorted((label.task, label.changed) for label in columns.tasks) == [
        ("auth", True),
        ("auth", True),
        ("pay", False),
    ]
    pay = next(label for label in columns.tasks if label.task == "pay")
    assert (pay.weight, pay.thing) == (5.0, "Payments")  # the newest selected run's
    for code, label in enumerate(columns.tasks):
        if label.changed:
            assert len(set(columns.score[columns.task == code].tolist())) == 1
    assert not any(
        label.changed for label in store.archive.scores.columns(Selection(runs=(NEW,))).tasks
    )


def test_candidates_are_one_across_runs_whatever_their_case(two_runs: Store) -> None:
    assert two_runs.archive.scores.columns(EVERYTHING).candidates == ("alice", "bob", "carol")


def test_criteria_are_weighted_within_themselves(two_runs: Store) -> None:
    of_beta = Selection(suites=("beta",), criteria=("integrity",))
    assert sorted(two_runs.archive.scores.columns(of_beta).score.tolist()) == [0.5, 1.0]
    both = Selection(suites=("beta",), criteria=("Integrity", "fitness"))
    assert sorted(two_runs.archive.scores.columns(both).score.tolist()) == pytest.approx(
        [0.5, 2 / 3]
    )


def test_a_missing_criterion_gives_no_score_on_it(store: Store) -> None:
    store.journal.open_run(a_plan(OLD), planned(a_task()))
    (trial,) = store.journal.claim(RunId(OLD), limit=1)
    half = grades(
        {"alice": {"integrity": None, "fitness": 0.4}, "bob": {"integrity": 0.8, "fitness": 0.8}}
    )
    wait(store.journal.record(judged(trial, half, state=STATE.EXEMPT)))

    def scores(*criteria: str) -> list[float]:
        return sorted(store.archive.scores.columns(Selection(criteria=criteria)).score.tolist())

    assert scores() == pytest.approx([0.8])
    assert scores("integrity") == pytest.approx([0.8])
    assert scores("fitness") == pytest.approx([0.4, 0.8])
    assert scores("integrity", "fitness") == pytest.approx([0.8])


def test_equal_settings_are_one_setting_and_seeds_make_no_difference(store: Store) -> None:
    for number, temperature in ((1, 0.1), (2, 0.1), (3, 0.9)):
        plan = a_plan(f"2025010{number}-x", judge_temperature=temperature)
        store.journal.open_run(plan, planned(a_task()))
        state = STATE.PENDING if number == 2 else STATE.EXEMPT
        wait(store.journal.record(judged(store.journal.claim(plan.id, limit=1)[0], state=state)))
    settings = store.archive.scores.columns(EVERYTHING).settings
    # nothing counts in the second
    assert [setting.runs for setting in settings] == [("20250101-x",), ("20250103-x",)]
    assert len(store.archive.scores.columns(Selection(runs=("20250101", "20250102"))).settings) == 1


# Filters


@pytest.mark.parametrize(
    ("selection", "rows"),
    [
        (Selection(runs=("20250101",)), 8),
        (Selection(runs=(OLD, "20250201-0")), 10),
        (Selection(suites=("BETA",)), 2),
        (Selection(batch_ids=("january",)), 8),
        (Selection(tasks=("auth",)), 4),
        (Selection(tasks=("AUTH SERVICE", "Pay")), 8),
        (Selection(tags=("money",)), 4),
        (Selection(tags=("security",)), 8),
        (Selection(languages=("Go",)), 6),
        (Selection(languages=("go",), suites=("alpha",)), 4),
        (Selection(judges=("second",)), 2),
        (Selection(judges=("judge", "second")), 10),
        (Selection(tags=("security",), tasks=("pay",)), 4),
        (Selection(criteria=("fitness",), languages=("python",)), 4),
        (Selection(tasks=("mail",), tags=("money",)), 0),
    ],
)
def test_filters_keep_the_rows_they_name(two_runs: Store, selection: Selection, rows: int) -> None:
    columns = two_runs.archive.scores.columns(selection)
    assert len(columns.score) == rows
    assert len(list(two_runs.archive.assessments.matching(selection))) == rows / 2
    labelled = set(columns.task.tolist())
    assert labelled == set(range(len(columns.tasks)))


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(runs=("20250301",)), "no run '20250301'"),
        (Selection(suites=("alpa",)), "no suite 'alpa'. Did you mean 'alpha'"),
        (Selection(batch_ids=("Januar",)), "no batch 'Januar'. Did you mean 'January'"),
        (Selection(tasks=("auht",)), "no task 'auht'. Did you mean 'auth'"),
        (Selection(tags=("secruity",)), "no tag 'secruity'. Did you mean 'security'"),
        (Selection(languages=("pyton",)), "no language 'pyton'. Did you mean 'python'"),
        (Selection(judges=("jugde",)), "no judge 'jugde'. Did you mean 'judge'"),
        (Selection(criteria=("fitnes",)), "no criterion 'fitnes'. Did you mean 'fitness'"),
        (Selection(suites=("beta",), tasks=("auth",)), "no task 'auth'"),
    ],
)
def test_a_name_that_is_not_there_is_an_error(
    two_runs: Store, selection: Selection, message: str
) -> None:
    for ask in (
        two_runs.archive.scores.columns,
        two_runs.archive.scores.excluded,
        two_runs.archive.runs.matching,
    ):
        with pytest.raises(UnknownName, match=message):
            ask(selection)
    with pytest.raises(UnknownName, match=message):
        list(two_runs.archive.assessments.matching(selection))


def test_the_beginning_of_an_id_must_say_which_run(two_runs: Store) -> None:
    with pytest.raises(InputError, match="several runs begin with '2025'"):
        two_runs.archive.runs.matching(Selection(runs=("2025",)))
    assert two_runs.archive.runs.find("20250201") == NEW
    with pytest.raises(UnknownName):
        two_runs.archive.runs.find("2025%")


def test_excluded_trials_follow_the_filters(two_runs: Store) -> None:
    two_runs.journal.open_run(
        a_plan("20250301-x", suite="alpha"), planned(a_task("auth"), a_task("slow"), trials=2)
    )
    (trial, *_) = two_runs.journal.claim(RunId("20250301-x"), limit=1)
    failure = Failure(kind="timeout", fault=Fault.PROVIDER, detail="no answer")
    wait(two_runs.journal.record(Entry(trial=trial.key, finished=True, failure=failure)))
    assert two_runs.archive.scores.excluded(EVERYTHING) == Excluded(
        pending=3, rejected=0, failed=1, superseded=0, not_started=3
    )
    of_auth = two_runs.archive.scores.excluded(Selection(tasks=("auth",)))
    assert of_auth == Excluded(pending=1, rejected=0, failed=1, superseded=0, not_started=1)
    assert two_runs.archive.scores.excluded(Selection(tags=("money",))).pending == 0


def test_with_a_judge_trials_it_never_graded_are_not_called_rejected(store: Store) -> None:
    store.journal.open_run(
        a_plan(OLD, judges=("first",)), planned(a_task("auth"), a_task("pay"), trials=2)
    )
    for trial in store.journal.claim(RunId(OLD), limit=9):
        by_rule = trial.task.id == "pay"
        state = STATE.NOT_REQUIRED if by_rule else STATE.PENDING
        grader = "exact" if by_rule else "first"
        wait(store.journal.record(judged(trial, grader=grader, state=state, by_model=not by_rule)))
    excluded = store.archive.scores.excluded(Selection(judges=("first",)))
    assert (excluded.pending, excluded.rejected, excluded.failed) == (2, 0, 0)


def test_with_a_judge_trials_are_excluded_as_if_only_it_had_graded(store: Store) -> None:
    store.journal.open_run(a_plan(OLD, judges=("first", "second")), planned(a_task(), trials=3))
    for trial in store.journal.claim(RunId(OLD), limit=3):
        wait(
            store.journal.record(judged(trial, grader="first", state=STATE.EXEMPT, finished=False))
        )
        wait(store.journal.record(judged(trial, grader="second")))
    rows = [row for row in store.archive.assessments.matching(EVERYTHING) if row.grader == "second"]
    store.decisions.decide([a_decision(Verb.REJECT, rows[0].key, reason="no")])
    whole = Excluded(pending=0, rejected=0, failed=0, superseded=0, partly=2)
    assert (
        store.archive.scores.excluded(EVERYTHING)
        == store.archive.scores.excluded(Selection(tasks=("auth",)))
        == whole
    )
    assert store.archive.scores.excluded(Selection(judges=("first",))).pending == 0
    second = store.archive.scores.excluded(Selection(judges=("second",)))
    assert second == Excluded(pending=2, rejected=1, failed=0, superseded=0)


# Lists and single items


def test_runs_are_listed_newest_first_with_their_counts(two_runs: Store) -> None:
    new, old = two_runs.archive.runs.matching()
    assert (new.id, old.id) == (NEW, OLD)
    assert (old.suite, old.batch_id, old.candidates, old.judges) == (
        "alpha",
        "January",
        ("alice", "bob"),
        ("judge",),
    )
    assert new.candidates == ("Bob", "carol")  # as this run writes them
    assert old.trials == {TrialState.APPROVED: 4}
    assert old.assessments == {STATE.EXEMPT: 4}
    assert old.state is RunState.PLANNED
    assert [run.id for run in two_runs.archive.runs.matching(Selection(tasks=("mail",)))] == [NEW]


def test_assessments_come_by_key_in_portions(store: Store) -> None:
    store.journal.open_run(a_plan(OLD), planned(a_task(), trials=450))
    claimed = store.journal.claim(RunId(OLD), limit=430)

    async def all_at_once() -> None:
        await asyncio.gather(*(store.journal.record(judged(trial)) for trial in claimed))

    wait(all_at_once())
    rows = list(store.archive.assessments.matching(EVERYTHING))
    assert [row.key for row in rows] == sorted(row.key for row in rows)
    assert len(rows) == 430
    some = list(store.archive.assessments.matching(EVERYTHING, after=rows[99].key, limit=250))
    assert some == rows[100:350]
    assert list(store.archive.assessments.matching(EVERYTHING, limit=0)) == []
    assert list(store.archive.assessments.matching(EVERYTHING, states=frozenset())) == []
    endless: Iterator[object] = store.archive.assessments.matching(EVERYTHING)
    next(endless)
    # a half-read list holds nobody up
    store.decisions.decide([a_decision(Verb.APPROVE, rows[0].key)])
    waiting = store.archive.assessments.matching(
        EVERYTHING, states=frozenset({STATE.PENDING}), limit=1
    )
    assert next(waiting).key == rows[1].key
    (one,) = store.archive.assessments.matching(EVERYTHING, trial=rows[5].trial)
    assert one == rows[5]


def test_a_row_says_where_it_belongs(two_runs: Store) -> None:
    row = next(iter(two_runs.archive.assessments.matching(Selection(tasks=("Auth Service",)))))
    assert (row.run_id, row.suite, row.task, row.thing) == (OLD, "alpha", "auth", "Auth Service")
    assert (row.k, row.of, row.attempt, row.grader, row.by_model) == (1, 2, 1, "judge", True)
    assert (row.candidate, row.candidates, row.current) == (None, ("alice", "bob"), True)


def test_assessment_details_show_the_graded_text_and_its_call(store: Store) -> None:
    store.journal.open_run(a_plan(OLD), planned(a_task(snippets={"bob": "B"})))
    (trial,) = store.journal.claim(RunId(OLD), limit=1)
    entry = judged(
        trial, candidate="alice", assessment=plain_grades(0.5, ["alice"]), finished=False
    )
    answer = (Response(candidate="alice", text="A", truncated=True), 0)
    ((new, _),) = entry.assessments
    wait(
        store.journal.record(
            Entry(
                trial=trial.key,
                calls=(a_call(trial),),
                responses=(answer,),
                assessments=((new, 0),),
            )
        )
    )
    wait(
        store.journal.record(judged(trial, candidate="bob", assessment=plain_grades(0.5, ["bob"])))
    )
    of_alice, of_bob = store.archive.assessments.matching(EVERYTHING)
    detail = store.archive.assessments.detail(of_alice.key)
    assert detail.responses == (Response(candidate="alice", text="A", truncated=True),)
    assert (detail.call["model"], detail.call["input_tokens"], detail.call["cost_usd"]) == (
        "echo",
        10,
        0.001,
    )
    assert (detail.task, detail.row, detail.judged) == (trial.task, of_alice, of_alice.assessment)
    assert store.archive.assessments.detail(of_bob.key).responses == (
        Response(candidate="bob", text="B"),
    )
    assert store.archive.assessments.detail(of_bob.key).call == {}
    with pytest.raises(UnknownName, match="a999"):
        store.archive.assessments.detail(AssessmentKey(999))


def test_trials_are_listed_in_plan_order(two_runs: Store) -> None:
    rows = list(two_runs.archive.trials.matching(EVERYTHING))
    assert [(row.run_id, row.task, row.k, row.of) for row in rows] == [
        (OLD, "auth", 1, 2),
        (OLD, "auth", 2, 2),
        (OLD, "pay", 1, 2),
        (OLD, "pay", 2, 2),
        (NEW, "mail", 1, 1),
    ]
    assert all(row.state is TrialState.APPROVED and row.failure is None for row in rows)
    assert list(two_runs.archive.trials.matching(Selection(tags=("money",)))) == rows[2:4]
    assert list(two_runs.archive.trials.matching(EVERYTHING, failed_only=True)) == []
    assert two_runs.archive.trials.detail(rows[3].key) == rows[3]
    with pytest.raises(UnknownName, match="t999"):
        two_runs.archive.trials.detail(TrialKey(999))


# Columns for diagnostics


def test_review_columns_hold_state_and_both_scores_of_each_item(store: Store) -> None:
    store.journal.open_run(a_plan(OLD), planned(a_task(), trials=6))
    trials = store.journal.claim(RunId(OLD), limit=6)
    for trial, value in zip(trials[:5], (0.1, 0.2, 0.3, 0.4, 0.5), strict=True):
        wait(store.journal.record(judged(trial, plain_grades(value))))
    keys = [row.key for row in store.archive.assessments.matching(EVERYTHING)]
    store.decisions.decide(
        [
            a_decision(Verb.APPROVE, keys[0]),
            a_decision(Verb.CORRECT, keys[1], corrections={("alice", None): 0.95}),
            a_decision(Verb.REJECT, keys[2], reason="no"),
        ]
    )
    again = store.journal.claim_trial(trials[3].key)
    wait(store.journal.record(judged(again, plain_grades(0.7), attempt=2)))
    result = store.archive.scores.review_columns(EVERYTHING)
    alice = result.candidates.index("alice")
    rows = [
        (int(trial), STATES[state], int(attempt), round(float(judged_), 6), round(float(final), 6))
        for trial, state, attempt, judged_, final, candidate in zip(
            result.trial,
            result.state,
            result.attempt,
            result.judged,
            result.final,
            result.candidate,
            strict=True,
        )
        if candidate == alice
    ]
    assert rows == [
        (trials[0].key, STATE.APPROVED, 1, 0.1, 0.1),
        (trials[1].key, STATE.CORRECTED, 1, 0.2, 0.95),
        (trials[2].key, STATE.REJECTED, 1, 0.3, 0.3),
        (trials[3].key, STATE.SUPERSEDED, 1, 0.4, 0.4),
        (trials[4].key, STATE.PENDING, 1, 0.5, 0.5),
        (trials[3].key, STATE.PENDING, 2, 0.7, 0.7),
    ]
    assert len(result.state) == 12
    assert result.joint.all()
    assert result.by_model.all()
    assert result.planned.tolist() == [[6], [6]]


def test_review_columns_say_where_a_grader_gave_no_score(store: Store) -> None:
    store.journal.open_run(a_plan(OLD), planned(a_task()))
    (trial,) = store.journal.claim(RunId(OLD), limit=1)
    half = grades(
        {"alice": {"integrity": None, "fitness": 0.4}, "bob": {"integrity": 0.8, "fitness": 0.2}}
    )
    wait(store.journal.record(judged(trial, half)))

    def judged_scores(*criteria: str) -> list[float | None]:
        columns = store.archive.scores.review_columns(Selection(criteria=criteria))
        return [None if score != score else round(score, 6) for score in columns.judged.tolist()]

    assert judged_scores() == [None, 0.6]
    assert judged_scores("integrity") == [None, 0.8]
    assert judged_scores("fitness") == [0.4, 0.2]
    assert judged_scores("integrity", "fitness") == [None, 0.6]


def test_review_columns_follow_filters_and_share_codes_with_scores(two_runs: Store) -> None:
    for selection in (
        EVERYTHING,
        Selection(tags=("money",)),
        Selection(judges=("Second",)),
        Selection(runs=(OLD,)),
    ):
        scores, reviews = (
            two_runs.archive.scores.columns(selection),
            two_runs.archive.scores.review_columns(selection),
        )
        assert (scores.tasks, scores.candidates, scores.judges) == (
            reviews.tasks,
            reviews.candidates,
            reviews.judges,
        )
        assert sorted(
            zip(scores.trial, scores.task, scores.candidate, scores.score, strict=True)
        ) == sorted(zip(reviews.trial, reviews.task, reviews.candidate, reviews.final, strict=True))
    assert two_runs.archive.scores.review_columns(EVERYTHING).planned.tolist() == [
        [2, 2, 0],
        [2, 2, 1],
        [0, 0, 1],
    ]


def test_moments_of_criteria_are_those_of_their_trials(store: Store) -> None:
    store.journal.open_run(a_plan(OLD), planned(a_task(), trials=3))
    for trial, value in zip(store.journal.claim(RunId(OLD), limit=3), (0.1, 0.4, 0.7), strict=True):
        graded = grades(
            {
                "alice": {"integrity": value, "fitness": 0.3},
                "bob": {"integrity": 0.9, "fitness": None},
            }
        )
        wait(store.journal.record(judged(trial, graded, state=STATE.EXEMPT)))
    by_name = {one.criterion: one for one in store.archive.scores.criterion_moments(EVERYTHING)}
    alice = store.archive.scores.columns(EVERYTHING).candidates.index("alice")
    integrity, fitness = by_name["integrity"], by_name["fitness"]
    assert integrity.n[alice, 0] == 3
    assert integrity.mean[alice, 0] == pytest.approx(0.4)
    assert integrity.m2[alice, 0] == pytest.approx(0.18)
    assert (integrity.low[alice, 0], integrity.high[alice, 0]) == pytest.approx((0.1, 0.7))
    assert fitness.m2[alice, 0] == 0.0
    assert fitness.mean[alice, 0] == 0.3
    assert fitness.n[1 - alice, 0] == 0
    only = store.archive.scores.criterion_moments(Selection(criteria=("fitness",)))
    assert [one.criterion for one in only] == ["fitness"]


def test_scores_of_single_trials_are_those_that_count_now(store: Store) -> None:
    store.journal.open_run(a_plan(OLD, judges=("first", "second")), planned(a_task(), trials=2))
    for trial in store.journal.claim(RunId(OLD), limit=2):
        wait(store.journal.record(judged(trial, plain_grades(0.2), grader="first", finished=False)))
        wait(store.journal.record(judged(trial, plain_grades(0.6), grader="second")))
    rows = list(store.archive.assessments.matching(EVERYTHING))
    newest, touched = store.archive.trials.decided_since(0)
    assert (newest, touched) == (0, ())
    store.decisions.decide([a_decision(Verb.APPROVE, row.key) for row in rows[:2]])
    newest, touched = store.archive.trials.decided_since(0)
    assert touched == (rows[0].trial,)
    (scores,) = store.archive.scores.of_trials(EVERYTHING, touched)
    assert (scores.suite, scores.task, scores.joint) == ("arithmetic", "auth", True)
    assert scores.scores == pytest.approx({"alice": 0.4, "bob": 0.4})
    (first,) = store.archive.scores.of_trials(Selection(judges=("first",)), touched)
    assert first.scores == pytest.approx({"alice": 0.2, "bob": 0.2})
    store.decisions.decide([a_decision(Verb.UNDO, row.key) for row in rows[:2]])
    assert store.archive.trials.decided_since(newest)[1] == (rows[0].trial,)
    assert store.archive.trials.decided_since(None) == (newest + 2, ())
    (nothing,) = store.archive.scores.of_trials(EVERYTHING, touched)
    assert nothing.scores == {}
    assert store.archive.scores.of_trials(Selection(tasks=("auth",)), [TrialKey(999)]) == ()


# Regrades


REGRADE = "20250301-000000-alpha-cccc"


def regraded(
    store: Store, identifier: str = REGRADE, *, of: str = OLD, judge: str = "Second"
) -> None:
    """A run beside another, over its responses and in its places."""
    origin = store.journal.plan_of(RunId(of))
    plan = replace(
        a_plan(
            identifier,
            suite="alpha",
            started=f"2025-0{identifier[5]}-01T00:00:00.000Z",
            judges=(judge,),
        ),
        regrade_of=origin.id,
        candidates=origin.candidates,
    )
    store.journal.open_run(plan, [one for one, _ in store.journal.tasks_of(origin.id)])


def counted(store: Store, *runs: str) -> list[tuple[str, float]]:
    """(candidate, score) of everything that counts in these runs."""
    columns = store.archive.scores.columns(Selection(runs=runs))
    return sorted(
        (columns.candidates[c], round(float(s), 6))
        for c, s in zip(columns.candidate, columns.score, strict=True)
    )


@pytest.fixture
def regrade(two_runs: Store) -> Store:
    regraded(two_runs)
    return two_runs


def test_a_regrade_gets_the_responses_and_their_latest_round(store: Store) -> None:
    store.journal.open_run(a_plan(OLD), planned(a_task(), trials=2))
    first, _ = store.journal.claim(RunId(OLD), limit=2)
    for text in ("first", "second"):
        wait(
            store.journal.record(
                Entry(
                    trial=first.key,
                    responses=((Response(candidate="alice", text=text, truncated=True), None),),
                )
            )
        )
    store.journal.release((first.key,))
    regraded(store)
    claimed = store.journal.claim(RunId(REGRADE), limit=5)
    assert claimed[0].responses == {
        "alice": Response(candidate="alice", text="second", truncated=True)
    }
    assert claimed[1].responses == {}
    assert store.journal.plan_of(RunId(REGRADE)).regrade_of == OLD


def test_an_ungraded_regrade_takes_nothing_away(regrade: Store) -> None:
    assert counted(regrade, OLD, REGRADE) == counted(regrade, OLD)
    assert regrade.archive.scores.excluded(
        Selection(runs=(OLD, REGRADE))
    ) == regrade.archive.scores.excluded(Selection(runs=(OLD,)))
    assert len(regrade.archive.scores.columns(Selection(runs=(OLD, REGRADE))).settings) == 1


def test_newer_grading_counts_and_a_trial_is_counted_once(regrade: Store) -> None:
    run_all(regrade, REGRADE, 0.75, grader="Second")
    both = Selection(runs=(OLD, REGRADE))
    assert counted(regrade, OLD, REGRADE) == [("alice", 0.75)] * 4 + [("bob", 0.75)] * 4
    assert counted(regrade, OLD) == [("alice", 0.25)] * 4 + [("bob", 0.25)] * 4
    assert regrade.archive.scores.excluded(both) == Excluded(
        pending=0, rejected=0, failed=0, superseded=0
    )
    assert len(regrade.archive.scores.columns(both).settings) == 1
    narrowed = Selection(runs=(OLD, REGRADE), criteria=("fitness",))
    assert {round(float(score), 6) for score in regrade.archive.scores.columns(narrowed).score} == {
        0.75
    }


def test_pending_or_rejected_newer_grading_replaces_the_older(regrade: Store) -> None:
    both = Selection(runs=(OLD, REGRADE))
    run_all(regrade, REGRADE, 0.75, grader="Second", state=STATE.PENDING)
    assert counted(regrade, OLD, REGRADE) == []
    assert regrade.archive.scores.excluded(both) == Excluded(
        pending=4, rejected=0, failed=0, superseded=0
    )
    first, second, *_ = regrade.archive.assessments.matching(Selection(runs=(REGRADE,)))
    regrade.decisions.decide(
        [a_decision(Verb.APPROVE, first.key), a_decision(Verb.REJECT, second.key, reason="no")]
    )
    assert counted(regrade, OLD, REGRADE) == [("alice", 0.75), ("bob", 0.75)]
    assert regrade.archive.scores.excluded(both) == Excluded(
        pending=2, rejected=1, failed=0, superseded=0
    )


def test_only_responses_that_were_graded_again_give_way(regrade: Store) -> None:
    trials = regrade.journal.claim(RunId(REGRADE), limit=10)
    wait(
        regrade.journal.record(
            judged(
                trials[0],
                plain_grades(1.0, ["alice"]),
                state=STATE.EXEMPT,
                grader="Second",
                candidate="alice",
            )
        )
    )
    failure = Failure(kind="http_500", fault=Fault.PROVIDER, detail="broke")
    wait(regrade.journal.record(Entry(trial=trials[1].key, finished=True, failure=failure)))
    regrade.journal.release([trial.key for trial in trials[2:]])
    assert (
        counted(regrade, OLD, REGRADE)
        == [("alice", 0.25)] * 3 + [("alice", 1.0)] + [("bob", 0.25)] * 4
    )
    both = regrade.archive.scores.excluded(Selection(runs=(OLD, REGRADE)))
    assert both == Excluded(pending=0, rejected=0, failed=0, superseded=0)


def test_newest_regrade_counts_and_judge_filter_picks_the_judge(regrade: Store) -> None:
    run_all(regrade, REGRADE, 0.75, grader="Second")
    last = "20250401-000000-alpha-dddd"
    regraded(regrade, last, of=REGRADE, judge="Third")
    run_all(regrade, last, 0.5, grader="Third")
    assert {score for _, score in counted(regrade, OLD, REGRADE, last)} == {0.5}
    assert {score for _, score in counted(regrade, OLD, last)} == {0.5}
    by_second = Selection(judges=("Second",), suites=("alpha",))
    assert {round(float(s), 6) for s in regrade.archive.scores.columns(by_second).score} == {0.75}
    assert regrade.archive.scores.excluded(by_second) == Excluded(
        pending=0, rejected=0, failed=0, superseded=0
    )


# Grades beside each other


def test_trials_are_read_page_by_page_and_grades_by_key(two_runs: Store) -> None:
    archive, old = two_runs.archive, RunId(OLD)
    every = archive.trials.graded(old, limit=10)
    assert [one.place for one in every] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert archive.trials.graded(old, after=every[1].place, limit=1) == (every[2],)
    assert archive.trials.graded(old, task="pay", limit=10) == every[2:]
    with pytest.raises(UnknownName, match="payy"):
        archive.trials.graded(old, task="payy", limit=10)
    whole = archive.scores.review_columns(Selection(runs=(old,)))
    part = archive.scores.review_columns(
        Selection(runs=(old,)), trials=[every[3].key, every[2].key]
    )
    mine = [key in (every[2].key, every[3].key) for key in whole.trial.tolist()]
    assert part.assessment.tolist() == whole.assessment[mine].tolist()
    assert part.final.tolist() == whole.final[mine].tolist()
    assert [label.task for label in part.tasks] == ["pay"], (
        "labels are those of the tasks that were asked for"
    )
    assert set(part.task.tolist()) == {0}
    assert len(archive.scores.review_columns(Selection(runs=(old,)), trials=[]).trial) == 0


def test_graders_of_a_run_include_its_regrades(two_runs: Store) -> None:
    archive, old = two_runs.archive, RunId(OLD)
    before = archive.runs.graded(old)
    assert (before.candidates, before.judges, before.tasks) == (
        ("alice", "bob"),
        ("judge",),
        ("auth", "pay"),
    )
    assert (before.criteria, before.attempts) == (("integrity", "fitness"), {})
    assert archive.trials.graded(old, again=True, limit=10) == ()
    row = next(archive.assessments.matching(Selection(runs=(old,), tasks=("pay",))))
    again = two_runs.journal.claim_trial(row.trial)
    wait(
        two_runs.journal.record(
            judged(again, plain_grades(0.9), state=STATE.EXEMPT, attempt=2, finished=False)
        )
    )
    two_runs.journal.release([again.key])
    assert archive.runs.graded(old).attempts == {"judge": 1}
    assert [one.key for one in archive.trials.graded(old, again=True, limit=10)] == [row.trial]
    assert archive.runs.graded(RunId(NEW)).written == {"bob": "Bob", "carol": "carol"}, (
        "as the run itself writes them"
    )


def test_trials_of_two_runs_are_paired_by_task_and_number(two_runs: Store) -> None:
    two_runs.journal.open_run(
        a_plan("20250301-000000-alpha-ffff", suite="alpha"), planned(a_task("pay"), trials=1)
    )
    archive, again = two_runs.archive, RunId("20250301-000000-alpha-ffff")
    mine = {one.place: one.key for one in archive.trials.graded(RunId(OLD), limit=10)}
    (theirs,) = archive.trials.graded(again, limit=10)
    assert archive.trials.paired(again, list(mine.values())) == {theirs.key: mine[1, 1]}
    assert archive.trials.paired(again, [mine[0, 1]]) == {}


def test_a_matrix_has_each_task_once_with_the_trials_of_every_run(two_runs: Store) -> None:
    archive, again = two_runs.archive, RunId("20250301-000000-alpha-ffff")
    two_runs.journal.open_run(
        a_plan(again, suite="alpha"), planned(a_task("pay"), a_task("sum"), trials=3)
    )
    runs = [again, RunId(OLD)]
    rows = archive.trials.matrix(runs, limit=10, trials=2)
    assert [row.task for row in rows] == ["pay", "sum", "auth"]
    assert [
        (run, [(one.k, one.state) for one in result]) for run, result in rows[0].trials.items()
    ] == [
        (again, [(1, TrialState.PENDING), (2, TrialState.PENDING)]),
        (OLD, [(1, TrialState.APPROVED), (2, TrialState.APPROVED)]),
    ]
    assert (rows[0].planned, rows[2].thing) == ({again: 3, OLD: 2}, "Auth Service")
    assert archive.trials.matrix(runs, after=rows[0].place, limit=1, trials=2) == (rows[1],)


def test_review_columns_say_which_trial_of_its_task_each_row_is_of(two_runs: Store) -> None:
    result = two_runs.archive.scores.review_columns(Selection(suites=("alpha",)))
    trials = {int(row.key): row.k for row in two_runs.archive.trials.matching(EVERYTHING)}
    assert result.number is not None
    assert result.number.tolist() == [trials[key] for key in result.trial.tolist()]
    assert set(result.number.tolist()) == {1, 2}


def test_trial_without_a_grader_does_not_wait(two_runs: Store) -> None:
    other = "20250301-000000-gamma-cccc"
    plan = a_plan(other, suite="gamma", candidates=("bob", "dan"))
    two_runs.journal.open_run(plan, planned(a_task("auth"), a_task("slow"), trials=2))
    for trial in two_runs.journal.claim(RunId(other), limit=3):
        wait(two_runs.journal.record(Entry(trial=trial.key, finished=True)))
    ungraded = Excluded(pending=1, rejected=0, failed=0, superseded=0, not_graded=3, not_started=1)
    assert (
        two_runs.archive.scores.excluded(EVERYTHING)
        == two_runs.archive.scores.excluded(Selection(suites=("gamma",)))
        == ungraded
    )
    assert two_runs.archive.scores.excluded(Selection(tasks=("auth",))).not_graded == 2
    assert two_runs.archive.scores.excluded(Selection(compared=("bob", "dan"))) == ungraded
    elsewhere = two_runs.archive.scores.excluded(Selection(compared=("alice", "bob")))
    assert elsewhere == Excluded(pending=0, rejected=0, failed=0, superseded=0)


# Trials of one candidate


def test_a_candidates_trials_are_those_it_took_part_in(two_runs: Store) -> None:
    trials = two_runs.archive.trials.matching
    assert {str(one.run_id) for one in trials(EVERYTHING, candidate="Carol")} == {NEW}
    assert len(list(trials(EVERYTHING, candidate="bob"))) == 5
    assert [one.k for one in trials(EVERYTHING, candidate="bob", number=2)] == [2, 2]
    assert list(trials(Selection(suites=("alpha",)), candidate="carol")) == []
    assert list(trials(EVERYTHING, candidate="nobody")) == []
    assert two_runs.archive.scores.took_part(EVERYTHING) == {"alice": 4, "bob": 5, "carol": 1}


def test_a_trial_that_others_answered_alone_is_not_a_candidates(store: Store) -> None:
    names = ("ann", "bob", "cas")
    store.journal.open_run(
        a_plan(OLD, candidates=names), planned(a_task("auth"), a_task("pay"), a_task("mail"))
    )
    auth, pay, _ = store.journal.claim(RunId(OLD), limit=3)
    one = {"integrity": 1.0, "fitness": 0.5}
    wait(store.journal.record(judged(auth, grades({"ann": one, "bob": one}))))
    wait(store.journal.record(judged(pay, grades({"cas": one}), state=STATE.EXEMPT)))
    own = {
        name: [row.task for row in store.archive.trials.matching(EVERYTHING, candidate=name)]
        for name in names
    }
    # mail is still to be done
    assert own == {"ann": ["auth", "mail"], "bob": ["auth", "mail"], "cas": ["pay", "mail"]}
    assert store.archive.scores.took_part(EVERYTHING) == {"cas": 1}
