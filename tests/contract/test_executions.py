"""Executions of a run, and its state once no process carries it out; on both databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.contract.stores import a_plan, a_task, judged, planned, wait

from assay.app.runs.causes import pause_of
from assay.domain.failure import Failure, Fault
from assay.domain.lifecycle import RunState
from assay.domain.run import Entry
from assay.store.opening import Store

RUN = a_plan().id


def open_run(store: Store, trials: int = 2) -> None:
    store.journal.open_run(a_plan(), planned(a_task(), trials=trials))


def shown(store: Store) -> RunState:
    (run,) = store.archive.runs.matching()
    return run.state


def test_run_is_interrupted_when_its_process_has_ended(opened: Callable[[], Store]) -> None:
    one, other = opened(), opened()
    open_run(one)
    one.journal.begin(RUN, retry_failed=False)
    assert (shown(other), other.journal.is_carried_out(RUN)) == (RunState.RUNNING, True)
    one.close()
    assert (shown(other), other.journal.is_carried_out(RUN)) == (RunState.INTERRUPTED, False)
    other.journal.begin(RUN, retry_failed=False)
    assert (shown(other), other.journal.is_carried_out(RUN)) == (RunState.RUNNING, True)


def test_the_last_of_two_processes_to_leave_decides(opened: Callable[[], Store]) -> None:
    one, other = opened(), opened()
    open_run(one)
    for store in (one, other):
        store.journal.begin(RUN, retry_failed=False)
    (first,) = one.journal.claim(RUN, limit=1)
    (second,) = other.journal.claim(RUN, limit=1)
    wait(one.journal.record(judged(first)))
    one.journal.set_state(RUN, RunState.FINISHED)
    assert shown(one) is RunState.RUNNING, "a trial is held by the other"
    wait(other.journal.record(judged(second)))
    other.journal.set_state(RUN, RunState.FINISHED)
    assert shown(one) is RunState.FINISHED
    assert not one.journal.is_carried_out(RUN)


@pytest.mark.parametrize("end", [RunState.FINISHED, RunState.INTERRUPTED])
def test_a_cancelled_run_stays_cancelled_when_its_process_leaves(
    store: Store, end: RunState
) -> None:
    open_run(store)
    store.journal.begin(RUN, retry_failed=False)
    store.journal.set_state(RUN, RunState.CANCELLED)
    store.journal.set_state(RUN, end)
    assert shown(store) is RunState.CANCELLED
    assert not store.journal.is_carried_out(RUN)


def test_a_paused_run_stays_paused_when_its_process_is_stopped(opened: Callable[[], Store]) -> None:
    one, other = opened(), opened()
    open_run(one)
    one.journal.begin(RUN, retry_failed=False)
    other.journal.set_state(RUN, RunState.PAUSED)
    assert other.journal.is_carried_out(RUN), "it waits to go on"
    one.journal.set_state(RUN, RunState.INTERRUPTED)
    assert (shown(other), other.journal.is_carried_out(RUN)) == (RunState.PAUSED, False)


def test_run_queries_seek_and_never_scan(store: Store) -> None:
    open_run(store, trials=3)
    first, failed = store.archive.trials.under_way(RUN)
    assert first is not None
    assert (first.k, failed) == (1, None)
    one, _ = store.journal.claim(RUN, limit=2)
    wait(store.journal.record(judged(one)))
    first, _ = store.archive.trials.under_way(RUN)
    assert first is not None
    assert first.k == 2


def stretch(store: Store) -> tuple[str | None, int]:
    (run,) = store.archive.runs.matching()
    return run.since, run.done_before


def test_a_break_begins_a_new_stretch_and_a_process_that_joins_does_not(
    opened: Callable[[], Store],
) -> None:
    one, other = opened(), opened()
    open_run(one, trials=4)
    assert stretch(one) == (None, 0)
    one.journal.begin(RUN, retry_failed=False)
    assert (stretch(one)[0] is None, stretch(one)[1]) == (False, 0)
    (trial,) = one.journal.claim(RUN, limit=1)
    wait(one.journal.record(judged(trial)))
    other.journal.begin(RUN, retry_failed=False)
    assert stretch(one)[1] == 0, "it goes on without a break"
    one.journal.set_state(RUN, RunState.PAUSED)
    assert stretch(one) == (None, 0), "only of a run that goes on"
    other.journal.set_state(RUN, RunState.RUNNING)
    assert stretch(one)[1] == 1
    (trial,) = one.journal.claim(RUN, limit=1)
    wait(one.journal.record(judged(trial)))
    one.close()
    other.close()
    third = opened()
    third.journal.begin(RUN, retry_failed=False)
    assert stretch(third)[1] == 2, "its processes had ended"


def test_a_run_that_pauses_itself_is_paused_and_carried_out_by_nobody(store: Store) -> None:
    open_run(store)
    store.journal.begin(RUN, retry_failed=False)
    store.journal.leave_paused(RUN)
    assert store.journal.state_of(RUN) is RunState.PAUSED
    assert not store.journal.is_carried_out(RUN)


def test_a_run_that_another_process_goes_on_with_is_not_paused(opened: Callable[[], Store]) -> None:
    one, other = opened(), opened()
    open_run(one)
    one.journal.begin(RUN, retry_failed=False)
    other.journal.begin(RUN, retry_failed=False)
    one.journal.leave_paused(RUN)
    assert one.journal.state_of(RUN) is RunState.RUNNING
    assert one.journal.is_carried_out(RUN)
    other.journal.leave_paused(RUN)
    assert one.journal.state_of(RUN) is RunState.PAUSED


def test_a_cancelled_run_does_not_pause_itself(store: Store) -> None:
    open_run(store)
    store.journal.begin(RUN, retry_failed=False)
    store.journal.set_state(RUN, RunState.CANCELLED)
    store.journal.leave_paused(RUN)
    assert store.journal.state_of(RUN) is RunState.CANCELLED
    assert not store.journal.is_carried_out(RUN)


def paused_after(store: Store, kind: str) -> Any:
    """Let the first trial fail, pause the run, and return the reason of the pause."""
    open_run(store)
    store.journal.begin(RUN, retry_failed=False)
    (first,) = store.journal.claim(RUN, limit=1)
    failure = Failure(kind=kind, fault=Fault.PROVIDER, detail="the agent ended.")
    wait(store.journal.record(Entry(trial=first.key, finished=True, failure=failure)))
    store.journal.leave_paused(RUN)
    (summary,) = store.archive.runs.matching()
    return pause_of(store, summary)


def test_a_fatal_failure_of_the_first_trial_is_the_reason_of_the_pause(store: Store) -> None:
    pause = paused_after(store, "http_401")
    assert (pause.kind, pause.detail, pause.trials) == ("http_401", "the agent ended.", 1)


def test_a_failure_that_others_need_not_meet_is_no_reason_of_a_pause(store: Store) -> None:
    assert paused_after(store, "http_500") is None
