"""Update values derived from assessments: the states and standings of trials, and the counters of
runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from typing import Final

from sqlalchemy import Connection, bindparam, delete, exists, insert, select, update

from assay.domain.lifecycle import AssessmentState, TrialState, standing, trial_state
from assay.store.database import schema

TRIAL: Final = "trial"
STANDING: Final = "standing"
ASSESSMENT: Final = "assessment"

_UNPARSABLE: Final = "unparsable"
_SETTLED: Final = frozenset(
    {TrialState.NEEDS_REVIEW, TrialState.APPROVED, TrialState.REJECTED, TrialState.LEFT_OUT}
)
"""States derived from assessments; a pending or failed trial keeps its state until it is executed.
"""


class CounterChanges:
    """Changes to runs' counters, collected during a transaction and written at its end."""

    def __init__(self) -> None:
        self._changes: Counter[tuple[int, str, str]] = Counter()

    def add(self, run_key: int, subject: str, state: str, n: int = 1) -> None:
        self._changes[run_key, subject, state] += n

    def move(self, run_key: int, subject: str, before: str, after: str, n: int = 1) -> None:
        if before != after:
            self._changes[run_key, subject, before] -= n
            self._changes[run_key, subject, after] += n

    def write(self, connection: Connection) -> None:
        """Write the changes. This is the last step of a write transaction."""
        for (run_key, subject, state), n in sorted(self._changes.items()):
            if (
                n
                and not connection.execute(
                    _ADD, {"of_run": run_key, "of": subject, "which": state, "by": n}
                ).rowcount
            ):
                row = {"run_key": run_key, "subject": subject, "state": state, "n": n}
                connection.execute(insert(schema.run_tally), row)
        lessened = {run_key for (run_key, _, _), n in self._changes.items() if n < 0}
        # An undo must restore every row as it was, and before the decision there was no row for
        # this state.
        if lessened:  # a counter that is back at 0 has no row
            table = schema.run_tally
            connection.execute(delete(table).where(table.c.run_key.in_(lessened), table.c.n == 0))
        self._changes.clear()


def move_trials(connection: Connection, run_key: int, before: str, after: str, n: int = 1) -> None:
    """Move `n` trials of a run to another state's counter, in a transaction that changes no other
    counter.
    """
    changes = CounterChanges()
    changes.move(run_key, TRIAL, before, after, n)
    changes.write(connection)


_ADD = (
    update(schema.run_tally)
    .where(
        schema.run_tally.c.run_key == bindparam("of_run"),
        schema.run_tally.c.subject == bindparam("of"),
        schema.run_tally.c.state == bindparam("which"),
    )
    .values(n=schema.run_tally.c.n + bindparam("by"))
)


def current_states(
    connection: Connection, trial_keys: Collection[int]
) -> dict[int, frozenset[AssessmentState]]:
    """Return the set of states of each trial's current assessments; empty for a trial without
    assessments.
    """
    table = schema.assessment
    states: dict[int, set[AssessmentState]] = defaultdict(set)
    rows = connection.execute(
        select(table.c.trial_key, table.c.state).where(
            table.c.trial_key.in_(trial_keys), table.c.state != AssessmentState.SUPERSEDED.value
        )
    )
    for key, state in rows:
        states[key].add(AssessmentState(state))
    return {key: frozenset(states.get(key, ())) for key in trial_keys}


def unread_among(connection: Connection, assessment_keys: Collection[int]) -> frozenset[int]:
    """Return the assessments that have no grade because the grader's reply was unreadable."""
    if not assessment_keys:
        return frozenset()
    table, grade = schema.assessment, schema.grade
    own = (grade.c.run_key == table.c.run_key, grade.c.assessment_key == table.c.key)
    none_given = ~exists().where(*own, grade.c.judged_value.is_not(None))
    return frozenset(
        connection.execute(
            select(table.c.key).where(table.c.key.in_(assessment_keys), none_given)
        ).scalars()
    )


def _was_read(connection: Connection, trial_key: int) -> bool:
    """True if all unreadable replies in a trial were later regraded or graded by a person."""
    table = schema.assessment
    rows = connection.execute(
        select(table.c.key, table.c.state).where(table.c.trial_key == trial_key, table.c.by_model)
    ).all()
    unread = unread_among(connection, [row.key for row in rows])
    return bool(unread) and not any(
        row.state == AssessmentState.PENDING.value for row in rows if row.key in unread
    )


def settle(connection: Connection, trial_keys: Collection[int], tally: CounterChanges) -> None:
    """Update trials whose assessments changed.

    A held trial stays `running`; its state after release is updated.
    """
    table = schema.trial
    states = current_states(connection, trial_keys)
    rows = connection.execute(
        select(
            table.c.key,
            table.c.run_key,
            table.c.state,
            table.c.rest,
            table.c.standing,
            table.c.fail_kind,
        ).where(table.c.key.in_(trial_keys))
    ).all()
    for key, run_key, state, rest, stands, fail_kind in rows:
        resting = TrialState(rest or state)
        read_now = (
            resting is TrialState.FAILED and fail_kind == _UNPARSABLE and _was_read(connection, key)
        )
        if (resting in _SETTLED or read_now) and states[key]:
            resting = trial_state(states[key])
        now_stands = standing(resting, states[key]).value
        after: dict[str, str | None] = {"rest": resting.value} if rest else {"state": resting.value}
        if read_now:
            after |= dict.fromkeys(("fail_kind", "fail_fault", "fail_detail", "fail_tries"))
        if now_stands == stands and resting.value == (rest or state):
            continue
        connection.execute(
            update(table).where(table.c.key == key).values(standing=now_stands, **after)
        )
        tally.move(run_key, STANDING, stands, now_stands)
        if not rest:
            tally.move(run_key, TRIAL, state, resting.value)
