"""Create and extend runs.

Tasks are read one by one and rows are written in batches, to limit memory use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from assay.domain.candidate_identity import identity_of
from assay.domain.errors import InputError, Refused
from assay.domain.identifiers import AssessmentKey, TrialKey
from assay.domain.jobs import JobRequest
from assay.domain.lifecycle import AssessmentState, RunState, Standing, TrialState
from assay.domain.run import FirstRequests, PlannedTask, RunPlan
from assay.domain.suite import Task
from assay.store.claims.claims import Claims
from assay.store.database import schema
from assay.store.database.codec import json_text, plain, plan_bytes, task_bytes, text_bytes
from assay.store.database.connections import Database, portions, take_keys
from assay.store.database.counters import ASSESSMENT, STANDING, TRIAL, CounterChanges, settle
from assay.store.database.name_keys import NameKeys
from assay.store.execution.copy_responses import copy_responses
from assay.store.execution.job_requests import request_row, reserve
from assay.store.queries.plans import _TASKS_AT_ONCE, run_key_of, settings_of

_TRIALS_AT_ONCE: Final = 4000


@dataclass(frozen=True, slots=True)
class RunPlanner:
    """Writes a run's plan, tasks and trials.

    The writing thread uses this class inside its transactions.
    """

    database: Database
    names: NameKeys
    claims: Claims

    def open(
        self,
        connection: Connection,
        plan: RunPlan,
        planned: Iterable[PlannedTask],
        state: RunState = RunState.PLANNED,
        ask: FirstRequests | None = None,
    ) -> None:
        run = schema.run
        if connection.execute(select(run.c.key).where(run.c.id == plan.id)).first() is not None:
            raise InputError(plan.id, "a run with this id already exists.")
        _keep_copy(self.database, connection, plan)
        row = {
            "id": plan.id,
            "suite_key": self.names.suite(connection, plan.suite),
            "state": state.value,
            "finished": None,
            "spent_usd": 0.0,
            "calls": 0,
            "unpriced_calls": 0,
            "input_tokens": 0,
            "output_tokens": 0,
            "cost_usd": 0.0,
            "regrade_of": None
            if plan.regrade_of is None
            else run_key_of(connection, plan.regrade_of),
            **_columns_of(self.database, connection, plan),
        }
        run_key = connection.execute(insert(run).values(**row).returning(run.c.key)).scalar_one()
        self._note_names(connection, run_key, plan)
        self._add_tasks(connection, plan, planned, _Trials(self.database, connection, run_key, ask))
        if plan.regrade_of is not None:
            origin_key = run_key_of(connection, plan.regrade_of)
            copy_responses(self.database, connection, run_key=run_key, origin_key=origin_key)

    def extend(
        self,
        connection: Connection,
        plan: RunPlan,
        planned: Iterable[PlannedTask],
        drawn: Sequence[AssessmentKey] = (),
    ) -> None:
        """Add tasks, trials or candidates, and add the assessments in `drawn` to the review sample.

        With a new candidate, every finished trial becomes pending.
        """
        run_key = run_key_of(connection, plan.id)
        run = schema.run
        known = set(
            connection.execute(
                select(schema.run_candidate.c.candidate_key).where(
                    schema.run_candidate.c.run_key == run_key
                )
            ).scalars()
        )
        wanted = {self.names.candidate(connection, candidate.name) for candidate in plan.candidates}
        if not known <= wanted:
            raise InputError(plan.id, "the new plan lacks a candidate of the run.")
        # A process that is executing the run has the old list of candidates, and would finish
        # trials without the new one.
        if wanted - known and self.claims.held_by_living(connection, run_key):
            remedy = "Wait until the run has finished, or stop it. Then extend it."
            raise Refused(
                plan.id, "is being executed, so you cannot add a candidate now.", remedy=remedy
            )
        _keep_copy(self.database, connection, plan)
        state, budget = connection.execute(
            select(run.c.state, run.c.budget_usd).where(run.c.key == run_key)
        ).one()
        if state != RunState.RUNNING:
            state = RunState.PLANNED.value
        columns = _columns_of(self.database, connection, plan)
        if budget is None and plan.budget_usd is not None:
            # calls without a budget are not booked, but count towards it
            columns["spent_usd"] = run.c.cost_usd
        connection.execute(
            update(run).where(run.c.key == run_key).values(state=state, finished=None, **columns)
        )
        self._note_names(connection, run_key, plan)
        if wanted - known:
            self._reopen(connection, run_key)
        self._add_tasks(connection, plan, planned, _Trials(self.database, connection, run_key))
        for some in portions(drawn, _TRIALS_AT_ONCE):
            _await_review(connection, run_key, some)

    def _note_names(self, connection: Connection, run_key: int, plan: RunPlan) -> None:
        candidates = schema.run_candidate
        connection.execute(delete(candidates).where(candidates.c.run_key == run_key))
        rows = [
            {
                "run_key": run_key,
                "candidate_key": self.names.candidate(connection, candidate.name),
                "position": position,
                "name": plain(candidate.name),
                "identity": plain(identity_of(plan, candidate)),
            }
            for position, candidate in enumerate(plan.candidates)
        ]
        if len({row["candidate_key"] for row in rows}) < len(rows):
            raise InputError(
                plan.id,
                "two of its candidates have the same name.",
                remedy=("Names are compared without regard to case. Rename one of them."),
            )
        if rows:
            connection.execute(insert(candidates), rows)
        judges = {self.names.grader(connection, judge.name) for judge in plan.judges}
        criteria = (
            {self.names.criterion(connection, row.name) for row in plan.rubric.criteria}
            if judges
            else set()
        )
        for table, keys in ((schema.run_grader, judges), (schema.run_criterion, criteria)):
            run_column, other_column, *_ = table.c
            known = set(
                connection.execute(select(other_column).where(run_column == run_key)).scalars()
            )
            new = [
                {run_column.name: run_key, other_column.name: key} for key in sorted(keys - known)
            ]
            if new:
                connection.execute(insert(table), new)

    def _reopen(self, connection: Connection, run_key: int) -> None:
        table = schema.trial
        ended = (
            TrialState.NEEDS_REVIEW.value,
            TrialState.APPROVED.value,
            TrialState.REJECTED.value,
        )
        of_run = (table.c.run_key == run_key, table.c.state.in_(ended))
        counts = connection.execute(
            select(table.c.state, func.count()).where(*of_run).group_by(table.c.state)
        ).all()
        # A rejected trial that is reopened awaits review again; every other trial keeps its
        # standing.
        rejected = list(
            connection.execute(
                select(table.c.key).where(*of_run, table.c.standing == Standing.REJECTED.value)
            ).scalars()
        )
        connection.execute(update(table).where(*of_run).values(state=TrialState.PENDING.value))
        changes = CounterChanges()
        for state, n in counts:
            changes.move(run_key, TRIAL, state, TrialState.PENDING.value, n)
        changes.write(connection)
        self.claims.restand(connection, run_key, rejected)

    def _add_tasks(
        self, connection: Connection, plan: RunPlan, planned: Iterable[PlannedTask], trials: _Trials
    ) -> None:
        suite_key = self.names.suite(connection, plan.suite)
        waiting: list[PlannedTask] = []
        run_key = trials.run_key
        try:
            for task in planned:
                waiting.append(task)
                if len(waiting) == _TASKS_AT_ONCE:
                    self._add_portion(connection, run_key, suite_key, waiting, trials)
                    waiting.clear()
            self._add_portion(connection, run_key, suite_key, waiting, trials)
        except IntegrityError as error:
            # The unique indexes find duplicates: a check in Python would keep the ids of all tasks
            # in memory.
            problem = "two of its tasks have the same id or position, or a trial already exists."
            raise InputError(plan.id, problem) from error
        changes = CounterChanges()
        changes.add(run_key, TRIAL, TrialState.PENDING.value, trials.added - trials.submitted)
        changes.add(run_key, TRIAL, TrialState.SUBMITTED.value, trials.submitted)
        changes.add(run_key, STANDING, Standing.PENDING.value, trials.added)
        changes.write(connection)

    def _add_portion(
        self,
        connection: Connection,
        run_key: int,
        suite_key: int,
        portion: list[PlannedTask],
        trials: _Trials,
    ) -> None:
        table = schema.run_task
        known = {
            row.position: row
            for row in connection.execute(
                select(table).where(
                    table.c.run_key == run_key,
                    table.c.position.in_([item.position for item in portion]),
                )
            )
        }
        keys = self._store_tasks(connection, suite_key, [item.task for item in portion])
        rows: list[tuple[object, ...]] = []
        tags: list[tuple[object, ...]] = []
        for item, (task_key, body_key) in zip(portion, keys, strict=True):
            task, row = item.task, known.get(item.position)
            if row is None:
                text = (plain(task.id), plain(task.thing))
                rows.append(
                    (
                        run_key,
                        item.position,
                        task_key,
                        *text,
                        task.weight,
                        len(item.trials),
                        body_key,
                    )
                )
                tags.extend(
                    (run_key, task_key, tag) for tag in sorted({plain(tag) for tag in task.tags})
                )
            elif row.task_key != task_key:
                problem = f"position {item.position} contains task {row.task_id!r} with other content than {task.id!r} has now."
                raise InputError("", problem, remedy="Run the changed task in a new run.")
            else:
                # The text may have gained the snippet of a new candidate, which the digest does not
                # cover.
                now = {"trials": row.trials + len(item.trials), "body_key": body_key}
                place = (table.c.run_key == run_key, table.c.position == item.position)
                connection.execute(update(table).where(*place).values(**now))
        self.database.insert(connection, table, rows)
        self.database.insert(connection, schema.run_tag, tags)
        for item, (task_key, _) in zip(portion, keys, strict=True):
            trials.add(task_key, item)
        trials.flush()  # its trials hold the tasks

    def _store_tasks(
        self, connection: Connection, suite_key: int, tasks: list[Task]
    ) -> list[tuple[int, int]]:
        """Store tasks, sharing texts that an earlier run stored; return each task's key and body
        key.
        """
        if not tasks:
            return []
        table = schema.task
        ids = {plain(task.id) for task in tasks}
        known: dict[tuple[str, str], Any] = {
            (row.task_id, row.digest): row
            for row in connection.execute(
                select(table).where(table.c.suite_key == suite_key, table.c.task_id.in_(ids))
            )
        }
        keys = take_keys(connection, task=len(tasks), body=len(tasks))
        task_keys, body_keys = iter(keys["task"]), iter(keys["body"])
        answers: list[tuple[int, int]] = []
        bodies: list[tuple[object, ...]] = []
        rows: list[tuple[object, ...]] = []
        for task in tasks:
            content = task_bytes(task)
            # The task's own digest leaves out tags and snippets, but runs share a text only if
            # these are equal too.
            content_digest = hashlib.sha256(content).hexdigest()[:32]
            identity = (plain(task.id), task.digest)
            stored = known.get(identity)
            if stored is not None and stored.body_digest == content_digest:
                answers.append((stored.key, stored.body_key))
                continue
            body_key = next(body_keys)
            bodies.append((body_key, content))
            if stored is not None:
                newest = {"body_key": body_key, "body_digest": content_digest}
                answers.append((stored.key, body_key))
                self.database.insert(connection, schema.body, bodies)
                bodies.clear()
                connection.execute(update(table).where(table.c.key == stored.key).values(**newest))
                continue
            task_key = next(task_keys)
            answers.append((task_key, body_key))
            words = (plain(task.language), plain(task.family))
            rows.append((task_key, suite_key, *identity, *words, body_key, content_digest))
        self.database.insert(connection, schema.body, bodies)
        self.database.insert(connection, table, rows)
        return answers


def _await_review(connection: Connection, run_key: int, keys: Sequence[AssessmentKey]) -> None:
    table, score, changes = schema.assessment, schema.score, CounterChanges()
    left_out, pending = AssessmentState.LEFT_OUT.value, AssessmentState.PENDING.value
    where = (table.c.run_key == run_key, table.c.key.in_(keys), table.c.state == left_out)
    rows = connection.execute(select(table.c.key, table.c.trial_key).where(*where)).all()
    moved = [row.key for row in rows]
    connection.execute(update(table).where(table.c.key.in_(moved)).values(state=pending))
    of_moved = (score.c.run_key == run_key, score.c.assessment_key.in_(moved))
    connection.execute(update(score).where(*of_moved).values(state=pending))
    changes.move(run_key, ASSESSMENT, left_out, pending, len(moved))
    settle(connection, {row.trial_key for row in rows}, changes)
    changes.write(connection)


class _Trials:
    """Writes trials in batches, however many trials a task has."""

    def __init__(
        self,
        database: Database,
        connection: Connection,
        run_key: int,
        ask: FirstRequests | None = None,
    ) -> None:
        self._database = database
        self._connection = connection
        self.run_key = run_key
        self._ask = ask
        self._waiting: list[tuple[int, PlannedTask, int]] = []
        self.added = self.submitted = 0

    def add(self, task_key: int, planned: PlannedTask) -> None:
        for k in planned.trials:
            self._waiting.append((task_key, planned, k))
            if len(self._waiting) == _TRIALS_AT_ONCE:
                self.flush()

    def flush(self) -> None:
        keys = take_keys(self._connection, trial=len(self._waiting))["trial"]
        pending, submitted = TrialState.PENDING.value, TrialState.SUBMITTED.value
        rest: tuple[object, ...] = (Standing.PENDING.value, None, None, 0, None, None, None, None)
        rows: list[tuple[object, ...]] = []
        requests: list[JobRequest] = []
        for key, (task_key, planned, k) in zip(keys, self._waiting, strict=True):
            asked = () if self._ask is None else self._ask(planned, k, TrialKey(key))
            requests += asked
            self.submitted += bool(asked)
            state = submitted if asked else pending
            rows.append((key, self.run_key, task_key, planned.position, k, state, *rest))
        self._database.insert(self._connection, schema.trial, rows)
        self._database.insert(
            self._connection, schema.job_request, list(map(request_row, requests))
        )
        reserve(self._connection, self.run_key, sum(request.usd for request in requests))
        self.added += len(rows)
        self._waiting.clear()


def _keep_copy(database: Database, connection: Connection, plan: RunPlan) -> None:
    table = schema.suite_copy
    if (
        connection.execute(select(table.c.digest).where(table.c.digest == plan.copy.digest)).first()
        is None
    ):
        key = _keep(database, connection, text_bytes(plan.copy.text))
        connection.execute(insert(table).values(digest=plan.copy.digest, body_key=key))


def _keep(database: Database, connection: Connection, content: bytes) -> int:
    key = take_keys(connection, body=1)["body"].start
    database.insert(connection, schema.body, [(key, content)])
    return key


def _columns_of(database: Database, connection: Connection, plan: RunPlan) -> dict[str, object]:
    """Return the run's columns for lists and filters, which therefore need not read the plan."""
    return {
        "suite_digest": plan.copy.digest,
        "started": plan.started,
        "batch_id": None if plan.batch_id is None else plain(plan.batch_id),
        "budget_usd": plan.budget_usd,
        "judges": json_text([judge.name for judge in plan.judges]),
        "settings": json_text(settings_of(plan)),
        "plan_key": _keep(database, connection, plan_bytes(plan)),
    }
