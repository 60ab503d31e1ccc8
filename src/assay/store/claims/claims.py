"""Claim trials for this process, release them, and void the claims of processes that have ended.

All code here runs in the writing thread, inside its transactions. A `Holding` is this process's
cached state of a claimed trial.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cachetools import LRUCache
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Row,
    bindparam,
    delete,
    insert,
    or_,
    select,
    update,
)

from assay.domain.assessment import Response
from assay.domain.calls import Reply, Role, Usage
from assay.domain.errors import Refused, StoreError, UnknownName
from assay.domain.identifiers import RunId, TaskKey, TrialKey, shown_trial
from assay.domain.lifecycle import AssessmentState, RunState, TrialState, standing
from assay.domain.run import ClaimedTrial
from assay.domain.run_removal import check_in_use
from assay.domain.suite import PERSON, Task
from assay.store.claims.held_trial import Holding
from assay.store.claims.process_locks import OwnerLocks
from assay.store.database import schema
from assay.store.database.codec import bytes_text, task_record, tool_calls_record
from assay.store.database.connections import Database, among, portions
from assay.store.database.counters import (
    STANDING,
    TRIAL,
    CounterChanges,
    current_states,
    move_trials,
    unread_among,
)
from assay.store.database.name_keys import candidate_names

_TASKS_KEPT: Final = 256
"""Maximum decoded tasks in memory: enough for neighbouring trials, but far fewer than a large run's
100,000 tasks.
"""

_SPEAKERS: Final = (Role.CANDIDATE.value, Role.USER.value)
_RUNNING: Final = TrialState.RUNNING.value
_PENDING: Final = TrialState.PENDING.value
_SUBMITTED: Final = TrialState.SUBMITTED.value
JOBS: Final = "job"
"""Owner of the budget reservation for a run's batch jobs, which no process holds."""


@dataclass(frozen=True, slots=True)
class UncommittedClaim:
    """Trials claimed in a transaction that is not committed yet."""

    trials: tuple[ClaimedTrial, ...]
    holdings: dict[int, Holding]


class Claims:
    """Claims, holds and releases trials for this process."""

    def __init__(self, database: Database, locks: OwnerLocks) -> None:
        self._database = database
        self._locks = locks
        self._held: dict[int, Holding] = {}
        self._tasks: LRUCache[int, Task] = LRUCache(_TASKS_KEPT)

    @property
    def owner(self) -> str:
        return self._locks.owner

    def hold_lock(self) -> None:
        """Take this process's lock before its first claim, or again after the lock was lost."""
        self._locks.hold()

    def doubt_lock(self) -> None:
        """Check this process's lock again before its next claim or write, because a connection was
        lost.
        """
        self._locks.doubt()

    def owner_gone(self, owner: str) -> bool:
        """True if the process with this owner name has ended.

        Waits briefly for a process that is ending.
        """
        return self._locks.gone(owner, patient=True)

    def seems_gone(self, owner: str) -> bool:
        """True if the process with this owner name has ended. Does not wait."""
        return self._locks.gone(owner)

    def note_execution(self, connection: Connection, run_key: int) -> None:
        """Record that this process executes a run, and delete such records of ended processes."""
        self.hold_lock()
        table = schema.execution
        others = (
            connection.execute(select(table.c.owner).where(table.c.run_key == run_key))
            .scalars()
            .all()
        )
        gone = [owner for owner in others if owner == self.owner or self._locks.gone(owner)]
        if gone:
            connection.execute(
                delete(table).where(table.c.run_key == run_key, table.c.owner.in_(gone))
            )
        connection.execute(insert(table).values(run_key=run_key, owner=self.owner))

    def end_execution(self, connection: Connection, run_key: int) -> None:
        table = schema.execution
        connection.execute(
            delete(table).where(table.c.run_key == run_key, table.c.owner == self.owner)
        )

    def forget_owner(self, owner: str) -> None:
        """Delete an ended process's lock after all of its claims were voided."""
        self._locks.forget(owner)

    def holding(self, trial: int) -> Holding:
        """Return the cached state of a trial.

        Raises `StoreError` if this process does not hold the trial.
        """
        holding = self._held.get(trial)
        if holding is None:
            raise StoreError(
                shown_trial(trial), "is not held by this process, so nothing was recorded for it."
            )
        return holding

    def adopt(self, taken: UncommittedClaim) -> tuple[ClaimedTrial, ...]:
        """Start holding the trials of a committed claim, and return them."""
        self._held.update(taken.holdings)
        return taken.trials

    def let_go(self, trials: Iterable[int]) -> None:
        """Stop holding trials whose release was committed."""
        for key in trials:
            self._held.pop(key, None)

    def take(self, connection: Connection, run_key: int, *, limit: int) -> UncommittedClaim:
        """Claim up to `limit` pending trials of a run, in plan order.

        Call `adopt` with the result after the commit.
        """
        self.hold_lock()
        rows = self._take_rows(connection, run_key, limit)
        # Only when pending trials run out, because each test of another process's lock costs a file
        # or a connection.
        if len(rows) < limit and self.void_dead(connection, run_key):
            rows += self._take_rows(connection, run_key, limit - len(rows))
        # RETURNING guarantees no order.
        return self._taken(connection, sorted(rows, key=lambda row: (row.position, row.k)))

    def take_submitted(
        self, connection: Connection, run_key: int, keys: Sequence[int]
    ) -> UncommittedClaim:
        self.hold_lock()
        table = schema.trial
        waiting = update(table).where(among(table.c.key, keys), table.c.state == _SUBMITTED)
        values = {"state": _RUNNING, "rest": _SUBMITTED, "owner": self.owner}
        rows = connection.execute(waiting.values(**values).returning(*_CLAIMED_COLUMNS)).all()
        move_trials(connection, run_key, _SUBMITTED, _RUNNING, len(rows))
        return self._taken(connection, sorted(rows, key=lambda row: (row.position, row.k)))

    def park(
        self, connection: Connection, run_key: int, state: TrialState, trials: Sequence[int]
    ) -> None:
        """Release this process's trials into a waiting state. Call `let_go` after the commit."""
        table = schema.trial
        for some in portions(trials, 200):
            ours = update(table).where(among(table.c.key, some), table.c.owner == self.owner)
            if connection.execute(
                ours.values(state=state.value, rest=None, owner=None)
            ).rowcount != len(some):
                raise StoreError(
                    shown_trial(some[0]),
                    "is no longer held by this process, because another process took over.",
                )
        move_trials(connection, run_key, _RUNNING, state.value, len(trials))

    def take_one(self, connection: Connection, trial: int) -> UncommittedClaim:
        """Claim one trial in any state, unless a living process holds it."""
        self.hold_lock()
        table = schema.trial
        row = connection.execute(
            select(table.c.run_key, table.c.state, table.c.owner).where(table.c.key == trial)
        ).first()
        if row is None:
            raise UnknownName("trial", shown_trial(trial))
        run_key, state, owner = row
        run = connection.execute(
            select(schema.run.c.id, schema.run.c.state).where(schema.run.c.key == run_key)
        ).one()
        check_in_use(run.id, RunState(run.state))
        if state == _SUBMITTED:
            remedy = f"Collect its answers with `assay batch collect {run.id}`, or discard them with `assay cancel {run.id}`."
            raise Refused(shown_trial(trial), "waits for a batch job at a provider.", remedy=remedy)
        if owner is not None:
            if owner == self.owner or not self._locks.gone(owner, patient=True):
                raise Refused(
                    shown_trial(trial), "is in progress.", remedy="Wait until it is done."
                )
            self._void(connection, run_key, [owner])
            state = connection.execute(
                select(table.c.state).where(table.c.key == trial)
            ).scalar_one()
        rows = connection.execute(
            update(table)
            .where(table.c.key == trial)
            .values(state=_RUNNING, rest=state, owner=self.owner)
            .returning(*_CLAIMED_COLUMNS)
        ).all()
        move_trials(connection, run_key, state, _RUNNING)
        return self._taken(connection, rows)

    def give_back(self, connection: Connection, trials: Collection[int]) -> None:
        """Return trials held by this process to their earlier state.

        Call `let_go` after the commit.
        """
        table = schema.trial
        ours = [key for key in trials if key in self._held]
        if ours:
            self._fall_back(connection, table.c.key.in_(ours), self.owner)

    def void_dead(self, connection: Connection, run_key: int, *, patient: bool = False) -> bool:
        """Void ended processes' claims on a run, and book their reservations as spent; True if such
        claims existed.
        """
        table, reserved = schema.trial, schema.reservation
        owners = set(
            connection.execute(
                select(table.c.owner)
                .where(
                    table.c.run_key == run_key,
                    table.c.state == _RUNNING,
                    table.c.owner != self.owner,
                )
                .distinct()
            ).scalars()
        )
        owners.update(
            connection.execute(
                select(reserved.c.owner).where(
                    reserved.c.run_key == run_key, reserved.c.owner.not_in((self.owner, JOBS))
                )
            ).scalars()
        )
        dead = [owner for owner in sorted(owners) if self._locks.gone(owner, patient=patient)]
        self._void(connection, run_key, dead)
        return bool(dead)

    def held_by_living(self, connection: Connection, run_key: int) -> bool:
        """True if a living process, including this one, holds trials of the run.

        Voids the claims of ended processes first.
        """
        self.void_dead(connection, run_key, patient=True)
        table = schema.trial
        running = (
            select(table.c.key)
            .where(table.c.run_key == run_key, table.c.state == _RUNNING)
            .limit(1)
        )
        return connection.execute(running).first() is not None

    def retry_failed(self, connection: Connection, run_key: int) -> None:
        table = schema.trial
        failed = update(table).where(
            table.c.run_key == run_key, table.c.state == TrialState.FAILED.value
        )
        cleared = {"fail_kind": None, "fail_fault": None, "fail_detail": None, "fail_tries": None}
        rows = connection.execute(
            failed.values(state=_PENDING, **cleared).returning(table.c.key, table.c.standing)
        ).all()
        move_trials(connection, run_key, TrialState.FAILED.value, _PENDING, len(rows))
        self.restand(connection, run_key, [key for key, _ in rows])

    def restand(self, connection: Connection, run_key: int, keys: Sequence[int]) -> None:
        """Update the standings of trials that have become pending.

        A standing is the reason why a trial counts or not.
        """
        table = schema.trial
        changes = CounterChanges()
        for some in portions(keys, 200):
            states = current_states(connection, some)
            rows = connection.execute(
                select(table.c.key, table.c.standing).where(table.c.key.in_(some))
            ).all()
            moved: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
            for key, stood in rows:
                stands = standing(TrialState.PENDING, states[key]).value
                if stands != stood:
                    moved[stood, stands].append(key)
            for (stood, stands), which in moved.items():
                connection.execute(
                    update(table).where(table.c.key.in_(which)).values(standing=stands)
                )
                changes.move(run_key, STANDING, stood, stands, len(which))
        changes.write(connection)

    def close(self) -> None:
        """Release this process's lock, which voids its remaining claims."""
        self._held.clear()
        self._locks.close()

    def _take_rows(self, connection: Connection, run_key: int, limit: int) -> list[Row[Any]]:
        rows = connection.execute(
            _CLAIM, {"of_run": run_key, "at_most": limit, "us": self.owner}
        ).all()
        if rows:
            move_trials(connection, run_key, _PENDING, _RUNNING, len(rows))
        return list(rows)

    def _void(self, connection: Connection, run_key: int, owners: Sequence[str]) -> None:
        table, reserved = schema.trial, schema.reservation
        for owner in owners:
            self._fall_back(connection, table.c.run_key == run_key, owner)
            mine = (reserved.c.run_key == run_key, reserved.c.owner == owner)
            # Its calls in flight may have been charged. When reservations were deleted instead,
            # kill -9 let a budget be spent five times.
            lost = (
                connection.execute(delete(reserved).where(*mine).returning(reserved.c.usd))
                .scalars()
                .all()
            )
            if lost:
                run = schema.run
                booked = run.c.spent_usd + max(sum(lost), 0.0)
                connection.execute(update(run).where(run.c.key == run_key).values(spent_usd=booked))
            # An owner may hold trials of several runs; its lock file is removed with the last of
            # them.
            held = (
                select(table.c.key)
                .where(table.c.state == _RUNNING, table.c.owner == owner)
                .limit(1)
            )
            if connection.execute(held).first() is None:
                self._locks.forget(owner)

    def _fall_back(self, connection: Connection, which: ColumnElement[bool], owner: str) -> None:
        table = schema.trial
        rows = connection.execute(
            update(table)
            .where(which, table.c.state == _RUNNING, table.c.owner == owner)
            .values(state=table.c.rest, rest=None, owner=None)
            .returning(table.c.run_key, table.c.state)
        ).all()
        changes = CounterChanges()
        for run_key, state in rows:
            changes.move(run_key, TRIAL, _RUNNING, state)
        changes.write(connection)

    def _taken(self, connection: Connection, rows: Sequence[Row[Any]]) -> UncommittedClaim:
        """Read the claimed trials with their tasks, responses and assessments in a few queries."""
        if not rows:
            return UncommittedClaim((), {})
        run_key = rows[0].run_key
        keys = [row.key for row in rows]
        run_id = RunId(
            connection.execute(
                select(schema.run.c.id).where(schema.run.c.key == run_key)
            ).scalar_one()
        )
        names = candidate_names(connection, run_key)
        tasks = self._tasks_at(connection, run_key, {row.position for row in rows})
        holdings = {row.key: Holding(run_key, row.task_key, row.rest, row.standing) for row in rows}
        asked = _responses(connection, keys, names, holdings)
        talks = [
            row.key
            for row in rows
            if tasks[row.position][0].turns or tasks[row.position][0].scenario
        ]
        spoken = _spoken(connection, talks, names, holdings) if talks else {}
        slots = _slots(connection, run_key, keys, names, holdings)
        trials = []
        for row in rows:
            task, of = tasks[row.position]
            responses = {
                name: Response(candidate=name, text=snippet.text)
                for name in (names.values() if task.snippets else ())
                if (snippet := task.snippet_of(name)) is not None
            }
            responses.update(asked[row.key])
            of_trial = slots[row.key]
            graded = {
                slot: candidates
                for slot, (_, candidates) in of_trial.items()
                if candidates is not None
            }
            trials.append(
                ClaimedTrial(
                    key=TrialKey(row.key),
                    run_id=run_id,
                    task_key=TaskKey(row.task_key),
                    task=task,
                    k=row.k,
                    of=of,
                    responses=responses,
                    done=frozenset(graded),
                    attempts={slot: attempt for slot, (attempt, _) in of_trial.items()},
                    graded=graded,
                    tries=row.tries,
                    rounds={names[c]: n for c, n in holdings[row.key].rounds.items() if c in names},
                    spoken={
                        name: tuple(replies) for name, replies in spoken.get(row.key, {}).items()
                    },
                )
            )
        return UncommittedClaim(tuple(trials), holdings)

    def _tasks_at(
        self, connection: Connection, run_key: int, positions: set[int]
    ) -> dict[int, tuple[Task, int]]:
        """Return (task, number of trials) by the task's position in the run."""
        table = schema.run_task
        rows = connection.execute(
            select(table.c.position, table.c.trials, table.c.body_key).where(
                table.c.run_key == run_key, among(table.c.position, positions)
            )
        ).all()
        keys = {row.body_key for row in rows}
        tasks = {key: self._tasks[key] for key in keys if key in self._tasks}
        missing = keys.difference(tasks)
        if missing:
            body = schema.body
            bodies = connection.execute(
                select(body.c.key, body.c.content).where(among(body.c.key, missing))
            )
            tasks.update((key, task_record(content)) for key, content in bodies)
            # of more, each would displace another before it is used
            if len(missing) <= _TASKS_KEPT:
                self._tasks.update((key, tasks[key]) for key in missing)
        return {row.position: (tasks[row.body_key], row.trials) for row in rows}


def _responses(
    connection: Connection, keys: Sequence[int], names: dict[int, str], holdings: dict[int, Holding]
) -> dict[int, dict[str, Response]]:
    responses: dict[int, dict[str, Response]] = {key: {} for key in keys}
    table, body = schema.response, schema.body
    rows = connection.execute(
        select(
            table.c.trial_key,
            table.c.candidate_key,
            table.c.round,
            table.c.truncated,
            body.c.content,
        )
        .join(body, body.c.key == table.c.body_key)
        .where(among(table.c.trial_key, keys))
        .order_by(table.c.trial_key, table.c.round)
    )
    for trial, candidate, number, truncated, content in rows:
        holdings[trial].rounds[candidate] = number
        name = names.get(candidate)
        if name is not None:
            responses[trial][name] = Response(
                candidate=name, text=bytes_text(content), truncated=truncated
            )
    return responses


def _spoken(
    connection: Connection, keys: Sequence[int], names: dict[int, str], holdings: dict[int, Holding]
) -> dict[int, dict[str, list[Reply]]]:
    """Return the stored replies of unfinished conversations by trial and candidate, in order."""
    spoken: dict[int, dict[str, list[Reply]]] = {}
    table, body = schema.call, schema.body
    rows = connection.execute(
        select(
            *(
                table.c.trial_key,
                table.c.candidate_key,
                table.c.attempt,
                table.c.finish_reason,
                table.c.tool_calls,
            ),
            *(table.c.input_tokens, table.c.output_tokens, table.c.cost_usd, body.c.content),
        )
        .outerjoin(body, body.c.key == table.c.body_key)
        .where(
            table.c.trial_key.in_(keys), table.c.role.in_(_SPEAKERS), table.c.fail_kind.is_(None)
        )
        .where(or_(table.c.body_key.is_not(None), table.c.tool_calls.is_not(None)))
        .order_by(table.c.key)
    )
    for trial, candidate, attempt, finish, calls, into, out, cost, content in rows:
        name = names.get(candidate)
        if name is not None and attempt == holdings[trial].rounds.get(candidate, 0) + 1:
            used = {"usage": Usage(input_tokens=into, output_tokens=out), "cost_usd": cost}
            reply = Reply(
                text=bytes_text(content or b""),
                finish_reason=finish,
                tool_calls=tool_calls_record(calls),
                **used,
            )
            spoken.setdefault(trial, {}).setdefault(name, []).append(reply)
    return spoken


def _slots(
    connection: Connection,
    run_key: int,
    keys: Sequence[int],
    names: dict[int, str],
    holdings: dict[int, Holding],
) -> dict[int, dict[tuple[str, str | None], tuple[int, frozenset[str] | None]]]:
    """Return (attempt, graded candidates) of each slot's assessment by trial, and record the slots
    in the holdings.

    The candidates are None if the judge's reply was unreadable, so that the slot is graded again.
    """
    slots: dict[int, dict[tuple[str, str | None], tuple[int, frozenset[str] | None]]] = {
        key: {} for key in keys
    }
    table, grader, score = schema.assessment, schema.grader, schema.score
    rows = connection.execute(
        select(
            table.c.key,
            table.c.trial_key,
            table.c.grader_key,
            grader.c.name,
            table.c.candidate_key,
            table.c.attempt,
            table.c.state,
        )
        .join(grader, grader.c.key == table.c.grader_key)
        .where(among(table.c.trial_key, keys), table.c.state != AssessmentState.SUPERSEDED.value)
    ).all()
    if not rows:
        return slots
    pending = [
        row.key for row in rows if row.state == AssessmentState.PENDING.value and row.name != PERSON
    ]
    unread = unread_among(connection, pending)
    graded: defaultdict[int, set[str]] = defaultdict(set)
    scores = connection.execute(
        select(score.c.assessment_key, score.c.candidate_key).where(
            score.c.run_key == run_key, score.c.assessment_key.in_([row.key for row in rows])
        )
    )
    for assessment, candidate in scores:
        if candidate in names:
            graded[assessment].add(names[candidate])
    for row in rows:
        holdings[row.trial_key].slots[row.grader_key, row.candidate_key] = AssessmentState(
            row.state
        )
        slot = (row.name, names.get(row.candidate_key))
        slots[row.trial_key][slot] = (
            row.attempt,
            None if row.key in unread else frozenset(graded[row.key]),
        )
    return slots


_CLAIMED_COLUMNS: Final = (
    schema.trial.c.key,
    schema.trial.c.run_key,
    schema.trial.c.task_key,
    schema.trial.c.position,
    schema.trial.c.k,
    schema.trial.c.rest,
    schema.trial.c.standing,
    schema.trial.c.tries,
)

# A CTE, because PostgreSQL has no UPDATE … LIMIT and SQLite has it only if compiled with it.
_NEXT = (
    select(schema.trial.c.key)
    .where(schema.trial.c.run_key == bindparam("of_run"), schema.trial.c.state == _PENDING)
    .order_by(schema.trial.c.position, schema.trial.c.k)
    .limit(bindparam("at_most", type_=Integer))
    .cte("following")
)

_CLAIM: Final = (
    update(schema.trial)
    .where(schema.trial.c.key.in_(select(_NEXT.c.key)))
    .values(state=_RUNNING, rest=_PENDING, owner=bindparam("us"))
    .returning(*_CLAIMED_COLUMNS)
)
