"""Contract of jobs: what waits at a provider outlives processes, is claimed by nobody else, and is
read once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.rows import assert_derived_agrees
from tests.contract.stores import StandingClock, a_call, a_plan, a_task, planned, wait

from assay.domain.assessment import Response
from assay.domain.budget import Grant, Reservation
from assay.domain.calls import Role
from assay.domain.errors import Refused
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import TrialKey
from assay.domain.jobs import (
    JobAnswer,
    JobRequest,
    JobStage,
    JobState,
    ParkedTrial,
    RequestKey,
    RequestState,
)
from assay.domain.lifecycle import RunState, TrialState
from assay.domain.run import ClaimedTrial, Entry
from assay.store.opening import Store, open_store

RUN = a_plan().id


def a_job(store: Store, *, token: str = "abc") -> int:
    return store.jobs.plan(
        RUN,
        token=token,
        stage=JobStage.ANSWERS,
        place="api.test",
        model="echo",
        base_url=None,
        habits="{}",
    )


def asked(
    job: int, number: int, trial: TrialKey, *, usd: float = 0.0, digest: str = "d"
) -> JobRequest:
    return JobRequest(
        key=RequestKey(job, number),
        trial=trial,
        role=Role.CANDIDATE,
        digest=f"{digest}{number}",
        visit=0,
        usd=usd,
    )


def parked(
    store: Store, *, trials: int = 3, usd: float = 0.0, **plan: object
) -> tuple[int, list[TrialKey]]:
    """A run whose trials all wait for one job."""
    run = a_plan(**plan)  # type: ignore[arg-type]
    store.journal.open_run(run, planned(a_task(), trials=trials), state=RunState.SUBMITTED)
    job = a_job(store)
    keys = [trial.key for trial in store.journal.claim(RUN, limit=trials)]
    waiting = [
        ParkedTrial(trial=key, requests=(asked(job, n, key, usd=usd),))
        for n, key in enumerate(keys, 1)
    ]
    assert not store.jobs.park(RUN, waiting)
    store.jobs.note(job, state=JobState.SENT, remote_id="batch_1", requests=trials)
    return job, keys


def answered(store: Store, claimed: ClaimedTrial, job: int, number: int) -> None:
    """Store the answer to a request of a claimed trial, which ends it."""
    call = replace(a_call(claimed), job=JobAnswer(key=RequestKey(job, number), digest=f"d{number}"))
    response = Response(candidate="alice", text="Hello.")
    wait(
        store.journal.record(
            Entry(trial=claimed.key, calls=(call,), responses=((response, 0),), finished=True)
        )
    )


@pytest.mark.quick_postgresql
def test_waiting_trials_are_claimed_only_for_their_answers(
    opened: Callable[[], Store], url: str
) -> None:
    store = opened()
    job, keys = parked(store)
    assert store.journal.claim(RUN, limit=9) == ()
    with pytest.raises(Refused, match="waits for a batch job at a provider"):
        store.journal.claim_trial(keys[0])
    store.close()
    later = opened()
    assert later.jobs.trials_of(job) == tuple(keys)
    (claimed,) = later.jobs.claim(RUN, keys[:1])
    assert opened().jobs.claim(RUN, keys[:1]) == ()
    answered(later, claimed, job, 1)
    assert later.archive.runs.matching()[0].trials == {
        TrialState.SUBMITTED: 2,
        TrialState.NEEDS_REVIEW: 1,
    }
    assert later.jobs.trials_of(job) == tuple(keys[1:])
    (row,) = later.jobs.of_runs([RUN])
    assert (row.answered, row.requests, row.state) == (1, 3, JobState.SENT)
    assert_derived_agrees(url)


def test_a_killed_collector_leaves_trials_waiting(opened: Callable[[], Store]) -> None:
    store = opened()
    job, keys = parked(store)
    dying = opened()
    dying.jobs.claim(RUN, keys)
    dying.close()
    store.jobs.void_dead(RUN)
    assert store.jobs.trials_of(job) == tuple(keys)


@pytest.mark.quick_postgresql
def test_money_is_reserved_until_an_answer_is_stored(opened: Callable[[], Store]) -> None:
    store = opened()
    job, keys = parked(store, usd=0.25, budget_usd=1.0)
    store.close()
    later = opened()
    later.jobs.void_dead(RUN)
    assert wait(later.journal.reserve(RUN, Reservation(0.3, 0.3))) is Grant.REFUSED
    assert wait(later.journal.reserve(RUN, Reservation(0.2, 0.2))) is Grant.GRANTED
    wait(later.journal.settle(RUN, Reservation(0.2, 0.2), 0.0))
    (claimed,) = later.jobs.claim(RUN, keys[:1])
    answered(later, claimed, job, 1)
    cost = 0.001  # of `a_call`
    assert later.archive.runs.matching()[0].booked_usd == pytest.approx(cost)
    assert later.jobs.finish(job, answered={2})
    # The second was answered and never used, so its worst case stays booked; the third was not
    # carried out.
    assert later.archive.runs.matching()[0].booked_usd == pytest.approx(cost + 0.25)


def test_requests_beyond_the_budget_are_refused(store: Store) -> None:
    store.journal.open_run(
        a_plan(budget_usd=0.5), planned(a_task(), trials=3), state=RunState.SUBMITTED
    )
    job = a_job(store)
    keys = [trial.key for trial in store.journal.claim(RUN, limit=3)]
    waiting = [
        ParkedTrial(trial=key, requests=(asked(job, n, key, usd=0.2),))
        for n, key in enumerate(keys, 1)
    ]
    assert store.jobs.park(RUN, waiting) == {keys[2]}
    assert store.archive.runs.matching()[0].trials == {
        TrialState.SUBMITTED: 2,
        TrialState.RUNNING: 1,
    }


@pytest.mark.quick_postgresql
def test_a_dropped_job_strands_its_trials(store: Store) -> None:
    job, keys = parked(store, usd=0.25, budget_usd=1.0)
    assert store.jobs.stranded(RUN) == ()
    store.jobs.drop(job)
    assert store.jobs.stranded(RUN) == tuple(keys)
    assert wait(store.journal.reserve(RUN, Reservation(1.0, 1.0))) is Grant.GRANTED


def test_a_job_is_held_by_one_process(opened: Callable[[], Store]) -> None:
    first, second = opened(), opened()
    job, _ = parked(first)
    assert first.jobs.hold(job)
    assert second.jobs.hold(job) is None
    first.jobs.note(job, status="in_progress")
    first.close()
    held = second.jobs.hold(job)
    assert held is not None
    assert (held.state, held.status) == (JobState.SENT, "in_progress"), (
        "as it is now, and not as it was listed"
    )


def test_a_job_is_not_closed_while_another_process_reads_it(opened: Callable[[], Store]) -> None:
    first, second = opened(), opened()
    job, keys = parked(first)
    second.jobs.claim(RUN, keys[:1])
    assert not first.jobs.finish(job, answered=())
    second.close()
    first.jobs.void_dead(RUN)
    assert first.jobs.finish(job, answered=())
    assert first.jobs.of_runs([RUN], only_open=True) == ()


def test_a_failed_answer_is_known_to_the_next_process(opened: Callable[[], Store]) -> None:
    store = opened()
    job, keys = parked(store)
    (claimed,) = store.jobs.claim(RUN, keys[:1])
    failure = Failure(kind="refused", fault=Fault.REFUSAL, detail="It refused.", tries=2)
    call = replace(a_call(claimed), reply=None, failure=failure)
    answer = JobAnswer(key=RequestKey(job, 1), digest="d1", given_up=True, unread="Eh?")
    wait(store.journal.record(Entry(trial=keys[0], calls=(replace(call, job=answer),))))
    store.close()
    (request,) = [known for known in opened().jobs.requests_of(keys) if known.trial == keys[0]]
    assert (request.state, request.unread) == (RequestState.GIVEN_UP, "Eh?")
    assert request.failure == failure


def test_a_run_that_waits_for_a_job_cannot_be_deleted(store: Store) -> None:
    parked(store)
    with pytest.raises(Refused, match="waits for batch jobs at a provider"):
        store.run_removal.take_out([RUN], reviewer="ada", reason="")


def test_a_restored_run_does_not_wait_for_jobs_of_another_store(
    store: Store, tmp_path: Path
) -> None:
    parked(store)
    lines = [json.dumps(line) for line in store.archive.records.whole(RUN)]
    other = open_store(f"sqlite:///{tmp_path / 'other.db'}", clock=StandingClock())
    other.restoring.restore([(RUN, lambda: map(json.loads, lines))])
    (summary,) = other.archive.runs.matching()
    assert (summary.state, summary.trials) == (RunState.INTERRUPTED, {TrialState.PENDING: 3})
    other.close()
