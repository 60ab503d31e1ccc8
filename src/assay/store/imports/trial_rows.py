"""Store an import's new trials, and update earlier portions' trials that receive answers or
grades.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from sqlalchemy import select, update

from assay.domain.failure import Failure
from assay.domain.lifecycle import AssessmentState, TrialState, standing, trial_state
from assay.store.database import schema
from assay.store.database.codec import plain
from assay.store.database.connections import portions
from assay.store.database.counters import STANDING, TRIAL, current_states
from assay.store.imports.portion import Portion, Row
from assay.store.imports.task_rows import Place

_AT_ONCE: Final = 500


@dataclass(slots=True)
class ImportedTrial:
    """A trial in the portion; `fresh` is True if no earlier portion stored it."""

    key: int
    place: Place
    k: int
    fresh: bool
    usable: bool = False
    failure: Failure | None = None
    states: list[AssessmentState] | None = None


Trials = dict[tuple[str, int], ImportedTrial]
"""Trials by task id and trial number."""


class GradedPlace(Protocol):
    """A record with a task and a trial number."""

    @property
    def task(self) -> str: ...
    @property
    def trial(self) -> int: ...


def trials_of(portion: Portion, places: dict[str, Place], records: Iterable[GradedPlace]) -> Trials:
    run = portion.run
    old: dict[tuple[int, int], int] = {}
    if run.trials:
        positions = [place.position for place in places.values() if not place.new]
        text = "SELECT position, k, key FROM trial WHERE run_key = {} AND position"
        for position, k, key in portion.rows_among(text, (run.run_key,), positions):
            old[position, k] = key
    trials: Trials = {}
    for record in records:
        name = (plain(record.task), record.trial)
        if name in trials:
            continue
        place = places[name[0]]
        old_key = old.get((place.position, record.trial))
        fresh = old_key is None
        key = next(portion.trial_keys) if old_key is None else old_key
        trials[name] = ImportedTrial(key, place, record.trial, fresh)
        run.most_k = max(run.most_k, record.trial)
        run.trials += fresh
    return trials


def write_new_trials(portion: Portion, trials: Trials) -> None:
    rows: list[Row] = []
    run_key = portion.run.run_key
    for trial in trials.values():
        if not trial.fresh:
            continue
        states = frozenset(trial.states or ())
        state = _state(states, failed=trial.failure is not None and not trial.usable)
        after = standing(state, states).value
        failed: Row = (None, None, None, None)
        if state is TrialState.FAILED and trial.failure is not None:
            failure = trial.failure
            failed = (
                plain(failure.kind),
                failure.fault.value,
                plain(failure.detail),
                failure.tries,
            )
        place = trial.place
        rows.append(
            (
                trial.key,
                run_key,
                place.task_key,
                place.position,
                trial.k,
                state.value,
                after,
                None,
                None,
                1,
                *failed,
            )
        )
        portion.counters.add(run_key, TRIAL, state.value)
        portion.counters.add(run_key, STANDING, after)
    portion.insert_many(schema.trial, rows)


def settle_old_trials(portion: Portion, trials: Trials) -> None:
    """Update the states of earlier portions' trials that received answers or grades in this
    portion.
    """
    old = {
        trial.key: trial
        for trial in trials.values()
        if not trial.fresh and (trial.usable or trial.states)
    }
    table, run_key = schema.trial, portion.run.run_key
    for some in portions(old, _AT_ONCE):
        states = current_states(portion.connection, some)
        rows = portion.connection.execute(
            select(table.c.key, table.c.state, table.c.standing).where(table.c.key.in_(some))
        ).all()
        for key, state, standing_before in rows:
            failed = state == TrialState.FAILED.value and not old[key].usable
            now = _state(states[key], failed=failed)
            after = standing(now, states[key]).value
            if (now.value, after) == (state, standing_before):
                continue
            values: dict[str, object] = {"state": now.value, "standing": after}
            if now is not TrialState.FAILED:
                values |= {
                    "fail_kind": None,
                    "fail_fault": None,
                    "fail_detail": None,
                    "fail_tries": None,
                }
            portion.connection.execute(update(table).where(table.c.key == key).values(**values))
            portion.counters.move(run_key, TRIAL, state, now.value)
            portion.counters.move(run_key, STANDING, standing_before, after)


def _state(states: frozenset[AssessmentState], *, failed: bool) -> TrialState:
    if states:
        return trial_state(states)
    return TrialState.FAILED if failed else TrialState.NEEDS_REVIEW
