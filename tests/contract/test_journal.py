"""Contract of the journal: runs are stored whole, trials claimed once, entries on disk when
awaited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from tests.contract.rows import all_rows, assert_derived_agrees
from tests.contract.stores import a_call, a_plan, a_task, judged, plain_grades, planned, wait

from assay.domain.assessment import Response
from assay.domain.budget import Grant, Reservation
from assay.domain.calls import Role
from assay.domain.errors import InputError, Refused, StoreError, UnknownName
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import RunId, TrialKey
from assay.domain.lifecycle import AssessmentState, RunState, TrialState
from assay.domain.run import Entry, PlannedTask
from assay.domain.selection import Selection
from assay.domain.suite import Task
from assay.store.opening import Store

RUN = a_plan().id
EVERYTHING = Selection()


def states_of(store: Store) -> dict[TrialState, int]:
    return dict(store.archive.runs.matching()[0].trials)


def open_run(store: Store, *tasks: Task, trials: int = 1, **plan: object) -> None:
    store.journal.open_run(a_plan(**plan), planned(*(tasks or (a_task(),)), trials=trials))  # type: ignore[arg-type]


# Opening and extending


def test_a_run_comes_back_as_it_was_planned(store: Store) -> None:
    plan = a_plan(budget_usd=2.5, batch_id="batch")
    tasks = planned(
        a_task(snippets={"alice": "a", "bob": "b"}, tags=["x"]), a_task("pay"), trials=3
    )
    store.journal.open_run(plan, tasks)
    assert store.journal.plan_of(plan.id) == plan
    assert list(store.journal.tasks_of(plan.id)) == [(task, 3) for task in tasks]
    assert states_of(store) == {TrialState.PENDING: 6}
    assert store.journal.state_of(plan.id) is RunState.PLANNED


def test_a_run_opened_by_one_process_is_seen_by_another(opened: Callable[[], Store]) -> None:
    open_run(opened())
    assert opened().journal.plan_of(RUN) == a_plan()


def test_an_unknown_run_is_named_with_the_nearest_one(store: Store) -> None:
    open_run(store)
    with pytest.raises(UnknownName, match="Did you mean '20250102-030405-arithmetic-abcd'"):
        store.journal.plan_of(RunId("20250102-030405-arithmetic-abce"))


def test_tasks_are_taken_one_by_one_and_none_is_kept(store: Store) -> None:
    alive = 0
    most = 0

    class Watched(list[str]):
        """A tag list that counts how many of its like are alive."""

        def __init__(self) -> None:
            nonlocal alive, most
            super().__init__(["x"])
            alive += 1
            most = max(most, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def tasks() -> Iterator[PlannedTask]:
        for position in range(3000):
            task = a_task(f"task-{position}")
            watched = Watched()
            object.__setattr__(task, "extra", {"watched": watched})
            yield PlannedTask(task=task, position=position, trials=range(1, 2))

    store.journal.open_run(a_plan(), tasks())
    assert states_of(store) == {TrialState.PENDING: 3000}
    assert most <= 1002


def test_a_failing_source_of_tasks_leaves_no_run_behind(store: Store) -> None:
    def tasks() -> Iterator[PlannedTask]:
        yield from planned(a_task())
        raise InputError("tasks.jsonl:2", "is not JSON.")

    with pytest.raises(InputError, match=r"tasks\.jsonl:2"):
        store.journal.open_run(a_plan(), tasks())
    assert store.archive.runs.matching() == ()
    open_run(store)
    assert len(store.archive.runs.matching()) == 1


@pytest.mark.parametrize("prompt", ["Review auth.", "Review that."])
def test_two_tasks_of_one_id_are_refused(store: Store, prompt: str) -> None:
    with pytest.raises(InputError, match="same id"):
        open_run(store, a_task("auth"), a_task("auth", prompt=prompt))
    assert store.archive.runs.matching() == ()


def test_a_run_id_is_used_once(store: Store) -> None:
    open_run(store)
    with pytest.raises(InputError, match="already"):
        open_run(store)


def test_candidates_that_differ_in_case_only_are_one_too_many(store: Store) -> None:
    with pytest.raises(InputError, match="same name"):
        open_run(store, candidates=("Alice", "alice"))


def test_running_a_suite_again_stores_its_texts_once(store: Store, url: str) -> None:
    open_run(store, a_task(snippets={"alice": "a"}))
    bodies = len(all_rows(url)["body"])
    open_run(store, a_task(snippets={"alice": "a"}), identifier="20250103-030405-arithmetic-abcd")
    rows = all_rows(url)
    assert len(rows["task"]) == 1
    assert len(rows["body"]) == bodies + 1  # the second run's own plan


def test_a_run_is_extended_by_trials_and_tasks(store: Store) -> None:
    open_run(store, a_task("auth"), trials=2)
    more = [
        PlannedTask(task=a_task("auth"), position=0, trials=range(3, 6)),
        PlannedTask(task=a_task("pay"), position=1, trials=range(1, 3)),
    ]
    store.journal.extend_run(a_plan(), more)
    assert states_of(store) == {TrialState.PENDING: 7}
    assert [(one.task.id, n) for one, n in store.journal.tasks_of(RUN)] == [("auth", 5), ("pay", 2)]
    assert [trial.of for trial in store.journal.claim(RUN, limit=9)] == [5] * 5 + [2] * 2


def test_a_task_that_changed_is_not_mixed_into_a_run(store: Store) -> None:
    open_run(store, a_task("auth"))
    with pytest.raises(InputError, match="other content"):
        store.journal.extend_run(a_plan(), planned(a_task("auth", prompt="Something else.")))


def test_new_candidate_reopens_trials_and_keeps_their_grades(store: Store, url: str) -> None:
    open_run(store, trials=2)
    first, second = store.journal.claim(RUN, limit=2)
    wait(store.journal.record(judged(first, responses=[Response(candidate="alice", text="a")])))
    wait(store.journal.record(judged(second)))
    assert store.journal.finish(RUN)
    store.journal.extend_run(a_plan(candidates=("alice", "bob", "carol")), [])
    assert states_of(store) == {TrialState.PENDING: 2}
    assert store.journal.state_of(RUN) is RunState.PLANNED
    again = store.journal.claim(RUN, limit=2)[0]
    slot = ("judge", None)
    assert again.done == {slot}
    assert again.graded[slot] == {"alice", "bob"}  # carol is not among them: the engine judges anew
    assert again.attempts[slot] == 1
    assert set(again.responses) == {"alice"}
    new = judged(again, plain_grades(candidates=("alice", "bob", "carol")), attempt=2)
    wait(store.journal.record(new))
    assert store.archive.runs.matching()[0].assessments == {
        AssessmentState.PENDING: 2,
        AssessmentState.SUPERSEDED: 1,
    }
    assert_derived_agrees(url)


def test_a_run_under_way_gets_no_new_candidate(opened: Callable[[], Store]) -> None:
    one, other = opened(), opened()
    open_run(one)
    held = one.journal.claim(RUN, limit=1)
    wider = a_plan(candidates=("alice", "bob", "carol"))
    with pytest.raises(Refused, match="being executed"):
        other.journal.extend_run(wider, [])
    one.journal.release([trial.key for trial in held])
    other.journal.extend_run(wider, [])


# Claiming


def test_trials_are_claimed_in_plan_order_with_all_they_need(store: Store) -> None:
    snippets = {"alice": "A's code", "bob": "B's code", "stranger": "not in the run"}
    open_run(store, a_task("auth", snippets=snippets), a_task("pay"), trials=2)
    claimed = store.journal.claim(RUN, limit=3)
    assert [(trial.task.id, trial.k, trial.of, trial.tries) for trial in claimed] == [
        ("auth", 1, 2, 0),
        ("auth", 2, 2, 0),
        ("pay", 1, 2, 0),
    ]
    assert {name: response.text for name, response in claimed[0].responses.items()} == {
        "alice": "A's code",
        "bob": "B's code",
    }
    assert claimed[0].task == a_task("auth", snippets=snippets)
    assert states_of(store) == {TrialState.RUNNING: 3, TrialState.PENDING: 1}


@pytest.mark.quick_postgresql
def test_a_trial_is_claimed_by_one_process_only(opened: Callable[[], Store]) -> None:
    one, other = opened(), opened()
    open_run(one, trials=4)
    first = one.journal.claim(RUN, limit=3)
    second = other.journal.claim(RUN, limit=3)
    assert len(first) == 3
    assert len(second) == 1
    assert {trial.key for trial in first}.isdisjoint(trial.key for trial in second)
    assert one.journal.claim(RUN, limit=1) == ()


def test_claims_of_a_closed_process_are_free_at_once(opened: Callable[[], Store], url: str) -> None:
    one, other = opened(), opened()
    open_run(one, trials=3)
    one.journal.claim(RUN, limit=2)
    one.close()
    assert len(other.journal.claim(RUN, limit=5)) == 3
    assert_derived_agrees(url)


def test_begin_frees_claims_of_dead_processes_only(opened: Callable[[], Store]) -> None:
    dead, living, third = opened(), opened(), opened()
    open_run(dead, trials=3)
    dead.journal.claim(RUN, limit=1)
    living.journal.claim(RUN, limit=1)
    dead.close()
    third.journal.begin(RUN, retry_failed=False)
    assert states_of(third) == {TrialState.RUNNING: 1, TrialState.PENDING: 2}
    assert third.journal.state_of(RUN) is RunState.RUNNING


def test_released_trials_are_as_they_were(store: Store, url: str) -> None:
    open_run(store, trials=2)
    before = all_rows(url)
    claimed = store.journal.claim(RUN, limit=2)
    store.journal.release([trial.key for trial in claimed])
    assert all_rows(url) == before
    store.journal.release([TrialKey(999)])
    assert len(store.journal.claim(RUN, limit=2)) == 2


def test_one_trial_is_claimed_whatever_its_state(opened: Callable[[], Store]) -> None:
    one, other = opened(), opened()
    open_run(one)
    (trial,) = one.journal.claim(RUN, limit=1)
    with pytest.raises(Refused, match="is in progress"):
        other.journal.claim_trial(trial.key)
    wait(one.journal.record(judged(trial, state=AssessmentState.EXEMPT)))
    again = other.journal.claim_trial(trial.key)
    assert again.key == trial.key
    assert again.done == {("judge", None)}
    assert again.tries == 1
    other.journal.release([again.key])
    assert states_of(one) == {TrialState.APPROVED: 1}
    with pytest.raises(UnknownName, match="t999"):
        one.journal.claim_trial(TrialKey(999))


# Recording


def test_recorded_responses_are_visible_to_the_next_process(opened: Callable[[], Store]) -> None:
    store = opened()
    open_run(store, trials=2)
    first, second = store.journal.claim(RUN, limit=2)
    call = a_call(first)
    wait(
        store.journal.record(
            judged(first, calls=[call], responses=[Response(candidate="alice", text="An answer.")])
        )
    )
    wait(
        store.journal.record(
            Entry(trial=second.key, responses=((Response(candidate="bob", text="B"), None),))
        )
    )
    store.close()
    after = opened()
    (row,) = after.archive.assessments.matching(EVERYTHING)
    assert row.assessment == plain_grades()
    detail = after.archive.assessments.detail(row.key)
    assert detail.responses == (Response(candidate="alice", text="An answer."),)
    (left,) = after.journal.claim(RUN, limit=5)
    assert left.key == second.key
    assert left.responses == {"bob": Response(candidate="bob", text="B")}
    assert left.done == frozenset()


def test_a_trial_may_be_stored_step_by_step(store: Store, url: str) -> None:
    open_run(store)
    (trial,) = store.journal.claim(RUN, limit=1)
    by_rule = judged(
        trial,
        grader="exact",
        state=AssessmentState.NOT_REQUIRED,
        candidate="alice",
        finished=False,
        by_model=False,
        assessment=plain_grades(candidates=("alice",)),
    )

    async def steps() -> None:
        answers = [Response(candidate=name, text=name) for name in ("alice", "bob")]
        await asyncio.gather(
            *(
                store.journal.record(Entry(trial=trial.key, responses=((answer, None),)))
                for answer in answers
            )
        )
        await store.journal.record(by_rule)

    wait(steps())
    assert states_of(store) == {TrialState.RUNNING: 1}
    assert store.archive.scores.excluded(EVERYTHING).pending == 0  # something of it counts already
    assert_derived_agrees(url)
    wait(store.journal.record(judged(trial)))
    assert states_of(store) == {TrialState.NEEDS_REVIEW: 1}
    assert_derived_agrees(url)


def test_trials_without_any_assessment_wait_for_a_person(store: Store) -> None:
    open_run(store)
    (trial,) = store.journal.claim(RUN, limit=1)
    wait(store.journal.record(Entry(trial=trial.key, finished=True)))
    assert states_of(store) == {TrialState.NEEDS_REVIEW: 1}


def test_failed_trial_keeps_its_responses_and_gives_a_reason(store: Store) -> None:
    open_run(store)
    (trial,) = store.journal.claim(RUN, limit=1)
    failure = Failure(
        kind="http_500", fault=Fault.PROVIDER, detail="the server \ud800 broke\0", tries=5
    )
    answer = Response(candidate="alice", text="kept")
    wait(
        store.journal.record(
            Entry(trial=trial.key, responses=((answer, None),), finished=True, failure=failure)
        )
    )
    (row,) = store.archive.trials.matching(EVERYTHING, failed_only=True)
    assert row.state is TrialState.FAILED
    assert row.failure is not None
    assert (row.failure.kind, row.failure.fault, row.failure.tries) == (
        "http_500",
        Fault.PROVIDER,
        5,
    )
    assert row.failure.detail == "the server ? broke\ufffd"
    assert store.journal.claim(RUN, limit=1) == ()
    store.journal.begin(RUN, retry_failed=False)
    assert store.journal.claim(RUN, limit=1) == ()
    store.journal.begin(RUN, retry_failed=True)
    (again,) = store.journal.claim(RUN, limit=1)
    assert again.tries == 1
    assert again.responses == {"alice": answer}
    wait(store.journal.record(judged(again)))
    assert states_of(store) == {TrialState.NEEDS_REVIEW: 1}


def test_a_failed_trial_that_is_tried_again_is_counted_once(store: Store, url: str) -> None:
    open_run(store)
    (trial,) = store.journal.claim(RUN, limit=1)
    failure = Failure(kind="http_500", fault=Fault.PROVIDER, detail="the server broke", tries=5)
    wait(store.journal.record(Entry(trial=trial.key, finished=True, failure=failure)))
    again = store.journal.claim_trial(trial.key)
    wait(
        store.journal.record(
            judged(again, grader="first", state=AssessmentState.EXEMPT, finished=False)
        )
    )
    assert store.archive.scores.excluded(EVERYTHING).failed == 0
    assert_derived_agrees(url)
    wait(store.journal.record(judged(again, grader="second", state=AssessmentState.EXEMPT)))
    assert store.archive.scores.excluded(EVERYTHING).failed == 0
    assert_derived_agrees(url)


def test_every_text_survives_the_store(store: Store) -> None:
    text = "nul \0, lone \ud800 surrogate, \u202e bidi, é, 漢, \U0001f600"
    open_run(store, a_task(snippets={"bob": text}))
    (trial,) = store.journal.claim(RUN, limit=1)
    assert trial.responses["bob"].text == text
    graded = plain_grades()
    graded = type(graded)(
        grades=graded.grades, scores=graded.scores, weights=graded.weights, report=text, raw=text
    )
    wait(
        store.journal.record(
            judged(trial, graded, responses=[Response(candidate="alice", text=text)])
        )
    )
    (row,) = store.archive.assessments.matching(EVERYTHING)
    assert row.assessment == graded
    assert [response.text for response in store.archive.assessments.detail(row.key).responses] == [
        text,
        text,
    ]


def test_tokens_and_costs_add_up_and_unknown_prices_are_counted(store: Store) -> None:
    open_run(store, trials=2)
    first, second = store.journal.claim(RUN, limit=2)
    priced = a_call(first)
    unpriced = type(priced)(
        request=priced.request,
        reply=type(priced.reply)(text="?", usage=priced.reply.usage) if priced.reply else None,
        failure=Failure(kind="unparsable", fault=Fault.JUDGE, detail="no JSON"),
        number=2,
        started=priced.started,
    )
    assert store.archive.runs.matching()[0].cost_usd == 0.0
    wait(store.journal.record(Entry(trial=first.key, calls=(unpriced,))))
    assert store.archive.runs.matching()[0].cost_usd is None
    wait(store.journal.record(Entry(trial=second.key, calls=(priced, priced), finished=True)))
    (run,) = store.archive.runs.matching()
    assert (run.input_tokens, run.output_tokens, run.unpriced_calls) == (30, 15, 1)
    assert run.cost_usd == pytest.approx(0.002)


@pytest.mark.quick_postgresql
def test_many_waiting_entries_share_few_commits(store: Store) -> None:
    open_run(store, trials=200)
    claimed = store.journal.claim(RUN, limit=200)
    before = store.journal.commits

    async def all_at_once() -> None:
        await asyncio.gather(*(store.journal.record(judged(trial)) for trial in claimed))

    wait(all_at_once())
    assert store.journal.commits - before <= 20
    assert states_of(store) == {TrialState.NEEDS_REVIEW: 200}


def test_a_bad_entry_spoils_no_other(store: Store, url: str) -> None:
    open_run(store, trials=20)
    claimed = store.journal.claim(RUN, limit=20)

    async def all_at_once() -> list[BaseException | None]:
        entries = [judged(trial) for trial in claimed]
        entries.insert(7, Entry(trial=TrialKey(999), finished=True))
        return await asyncio.gather(*map(store.journal.record, entries), return_exceptions=True)

    outcomes = wait(all_at_once())
    assert [place for place, outcome in enumerate(outcomes) if outcome is not None] == [7]
    assert isinstance(outcomes[7], StoreError)
    assert states_of(store) == {TrialState.NEEDS_REVIEW: 20}
    assert_derived_agrees(url)


def test_a_trial_that_was_taken_over_can_no_longer_be_recorded(
    opened: Callable[[], Store], url: str
) -> None:
    one, other = opened(), opened()
    open_run(one)
    (trial,) = one.journal.claim(RUN, limit=1)
    one.journal._claims._locks.close()  # as if its lock had been lost while it lives
    (taken,) = other.journal.claim(RUN, limit=1)
    with pytest.raises(StoreError, match="no longer held"):
        wait(one.journal.record(judged(trial)))
    with pytest.raises(StoreError, match="no longer held"):
        wait(one.journal.record(judged(trial, finished=False)))
    wait(other.journal.record(judged(taken)))
    assert len(list(one.archive.assessments.matching(EVERYTHING))) == 1
    assert_derived_agrees(url)


# Reruns


def test_a_rerun_supersedes_in_the_commit_that_stores_it(store: Store, url: str) -> None:
    open_run(store)
    (trial,) = store.journal.claim(RUN, limit=1)
    wait(store.journal.record(judged(trial, plain_grades(0.2), state=AssessmentState.EXEMPT)))
    again = store.journal.claim_trial(trial.key)
    new = judged(again, plain_grades(0.9), state=AssessmentState.EXEMPT, attempt=2, finished=False)
    wait(store.journal.record(new))
    store.journal.release([again.key])
    old_row, new_row = store.archive.assessments.matching(EVERYTHING)
    assert (old_row.state, old_row.current) == (AssessmentState.SUPERSEDED, False)
    assert (new_row.state, new_row.current, new_row.attempt) == (AssessmentState.EXEMPT, True, 2)
    assert store.archive.scores.columns(EVERYTHING).score.tolist() == pytest.approx([0.9, 0.9])
    assert store.archive.scores.excluded(EVERYTHING).superseded == 1
    assert states_of(store) == {TrialState.APPROVED: 1}
    assert_derived_agrees(url)


def test_a_rerun_that_fails_leaves_everything_as_it_was(store: Store, url: str) -> None:
    open_run(store)
    (trial,) = store.journal.claim(RUN, limit=1)
    wait(store.journal.record(judged(trial)))
    before = all_rows(url, without=("call", "run", "key_source"))
    again = store.journal.claim_trial(trial.key)
    wait(store.journal.record(Entry(trial=again.key, calls=(a_call(again, role=Role.JUDGE),))))
    store.journal.release([again.key])
    assert all_rows(url, without=("call", "run", "key_source")) == before


def test_responses_asked_anew_leave_the_old_ones_with_the_old_attempt(store: Store) -> None:
    open_run(store, candidates=("alice",))
    (trial,) = store.journal.claim(RUN, limit=1)
    one = plain_grades(candidates=("alice",))
    wait(
        store.journal.record(
            judged(trial, one, responses=[Response(candidate="alice", text="first")])
        )
    )
    again = store.journal.claim_trial(trial.key)
    fresh = judged(again, one, attempt=2, responses=[Response(candidate="alice", text="second")])
    wait(store.journal.record(fresh))
    old, new = store.archive.assessments.matching(EVERYTHING)
    assert store.archive.assessments.detail(old.key).responses[0].text == "first"
    detail = store.archive.assessments.detail(new.key)
    assert detail.responses[0].text == "second"
    assert detail.attempts == (old.key, new.key)


# Budget and states


def held(usd: float) -> Reservation:
    return Reservation(usd, usd)


def test_the_budget_holds_across_processes_also_dead_ones(opened: Callable[[], Store]) -> None:
    one, other = opened(), opened()
    open_run(one, budget_usd=1.0)
    assert wait(one.journal.reserve(RUN, held(0.6))) is Grant.GRANTED
    assert wait(other.journal.reserve(RUN, held(0.6))) is Grant.WAIT
    wait(one.journal.settle(RUN, held(0.6), 0.1))
    assert wait(other.journal.reserve(RUN, held(0.6))) is Grant.GRANTED
    assert wait(one.journal.reserve(RUN, held(0.3))) is Grant.GRANTED
    assert wait(one.journal.reserve(RUN, held(0.01))) is Grant.WAIT
    other.close()
    assert wait(one.journal.reserve(RUN, held(0.01))) is Grant.WAIT
    wait(one.journal.settle(RUN, held(0.3), 0.0))
    assert one.archive.runs.matching()[0].booked_usd == pytest.approx(0.7)
    assert wait(one.journal.reserve(RUN, held(0.4))) is Grant.REFUSED
    assert wait(one.journal.reserve(RUN, held(0.3))) is Grant.GRANTED


def test_a_call_that_may_cost_more_than_is_left_goes_alone(opened: Callable[[], Store]) -> None:
    one, other = opened(), opened()
    open_run(one, budget_usd=1.0)
    small, large = Reservation(0.01, 0.1), Reservation(0.5, 50.0)
    assert wait(one.journal.reserve(RUN, small)) is Grant.GRANTED
    assert wait(other.journal.reserve(RUN, large)) is Grant.WAIT
    wait(one.journal.settle(RUN, small, 0.01))
    assert wait(other.journal.reserve(RUN, large)) is Grant.GRANTED
    assert wait(one.journal.reserve(RUN, small)) is Grant.WAIT
    other.close()  # its call is booked, and nobody has to wait for it
    assert wait(one.journal.reserve(RUN, small)) is Grant.GRANTED
    assert one.archive.runs.matching()[0].booked_usd == pytest.approx(0.51)


def test_without_a_budget_everything_may_be_spent(store: Store) -> None:
    open_run(store)
    assert wait(store.journal.reserve(RUN, held(1e6))) is Grant.GRANTED


def test_a_run_is_finished_only_when_nothing_is_left_anywhere(opened: Callable[[], Store]) -> None:
    one, other = opened(), opened()
    open_run(one, trials=2)
    (first,) = one.journal.claim(RUN, limit=1)
    (second,) = other.journal.claim(RUN, limit=1)
    wait(one.journal.record(judged(first)))
    assert not one.journal.finish(RUN)
    wait(other.journal.record(judged(second)))
    assert other.journal.finish(RUN)
    (run,) = one.archive.runs.matching()
    assert (run.state, run.finished) == (RunState.FINISHED, "2025-01-02T03:04:05.678Z")


def test_wishes_are_seen_by_other_processes(opened: Callable[[], Store]) -> None:
    one, other = opened(), opened()
    open_run(one)
    for wish in (RunState.PAUSED, RunState.CANCELLED):
        other.journal.set_state(RUN, wish)
        assert one.journal.state_of(RUN) is wish


def test_a_closed_journal_says_so_and_closes_twice(store: Store) -> None:
    open_run(store)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.journal.begin(RUN, retry_failed=False)
