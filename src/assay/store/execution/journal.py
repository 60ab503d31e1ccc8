"""The journal of a run: writes its plan, trials, calls and results during execution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy import Connection, func, insert, select, update

from assay.domain.budget import Grant, Reservation, decide
from assay.domain.calls import ModelRequest, Role
from assay.domain.identifiers import AssessmentKey, RunId, TrialKey
from assay.domain.lifecycle import TO_COME, RunState, TrialState
from assay.domain.run import ClaimedTrial, Entry, FirstRequests, PlannedTask, RunPlan
from assay.ports import Clock
from assay.store.claims.claims import JOBS, Claims
from assay.store.database import schema
from assay.store.database.codec import bytes_text, request_digest
from assay.store.database.connections import Database
from assay.store.database.counters import TRIAL
from assay.store.database.name_keys import NameKeys
from assay.store.execution.new_runs import RunPlanner
from assay.store.execution.writer_thread import Writer
from assay.store.queries.plans import plan_of, run_key_of, tasks_of
from assay.store.queries.run_summaries import left_alone

_ENDS = (RunState.FINISHED, RunState.INTERRUPTED)


class StoreJournal:
    """Implements `ports.Journal`.

    One thread makes all writes; the methods may be called from any thread.
    """

    def __init__(
        self, database: Database, writer: Writer, names: NameKeys, claims: Claims, clock: Clock
    ) -> None:
        self._database = database
        self._writer = writer
        self._claims = claims
        self._clock = clock
        self._planning = RunPlanner(database, names, claims)
        self._run_keys: dict[RunId, int] = {}

    @property
    def commits(self) -> int:
        """Number of transactions committed so far."""
        return self._writer.commits

    def open_run(
        self,
        plan: RunPlan,
        planned: Iterable[PlannedTask],
        /,
        *,
        state: RunState = RunState.PLANNED,
        ask: FirstRequests | None = None,
    ) -> None:
        """Store a run with its suite copy, tasks and snippets, and all trials as `pending`, in one
        transaction.

        Tasks are read one by one, which saves memory. If `ask` returns requests in planned jobs for
        a trial, the trial is stored as `submitted`. Raises `InputError`, and stores nothing, if
        tasks or names collide.
        """
        self._writer.call(
            lambda connection: self._planning.open(connection, plan, planned, state, ask), once=True
        )

    def extend_run(
        self,
        plan: RunPlan,
        planned: Iterable[PlannedTask],
        /,
        *,
        drawn: Sequence[AssessmentKey] = (),
    ) -> None:
        """Extend a run.

        `planned` contains new tasks at new positions, and known tasks with their new trial numbers.

        The assessments in `drawn`, which were outside the review sample, are added to it. With a
        new candidate in the plan, every finished trial becomes pending, and its assessments stay
        unchanged. Raises `Refused` for a new candidate while a living process works on the run.
        """
        self._writer.call(
            lambda connection: self._planning.extend(connection, plan, planned, drawn), once=True
        )

    def plan_of(self, run: RunId, /) -> RunPlan:
        """Return the run's current plan, including extensions; raises `UnknownName`."""
        with self._database.reading() as connection:
            return plan_of(connection, run)

    def tasks_of(self, run: RunId, /) -> Iterator[tuple[PlannedTask, int]]:
        """Yield (task, number of trials) for each task of the run, in plan order."""
        return tasks_of(self._database, run)

    def begin(self, run: RunId, *, retry_failed: bool) -> None:
        def begin(connection: Connection) -> None:
            run_key = run_key_of(connection, run)
            table = schema.run
            state = connection.execute(
                select(table.c.state).where(table.c.key == run_key)
            ).scalar_one()
            # The time left is estimated again after a pause or a kill, but not if a process joins a
            # run in progress.
            goes_on = state == RunState.RUNNING.value and not left_alone(
                connection, self._claims, [run_key]
            )
            connection.execute(
                update(table)
                .where(table.c.key == run_key)
                .values(state=RunState.RUNNING.value, finished=None)
            )
            self._claims.note_execution(connection, run_key)
            self._claims.void_dead(connection, run_key, patient=True)
            if retry_failed:
                self._claims.retry_failed(connection, run_key)
            if not goes_on:
                self._begin_stretch(connection, run_key)

        self._writer.call(begin)

    def state_of(self, run: RunId, /) -> RunState:
        table = schema.run

        def read() -> RunState:
            with self._database.reading() as connection:
                of_run = select(table.c.state).where(table.c.key == self._key(connection, run))
                return RunState(connection.execute(of_run).scalar_one())

        return self._database.patiently(read)

    def is_carried_out(self, run: RunId, /) -> bool:
        """True if a living process, including this one, executes the run or waits to continue
        it.
        """
        with self._database.reading() as connection:
            run_key = self._key(connection, run)
            owners = connection.execute(
                select(schema.execution.c.owner).where(schema.execution.c.run_key == run_key)
            ).scalars()
            return any(not self._claims.seems_gone(owner) for owner in owners)

    def set_state(self, run: RunId, state: RunState, /) -> None:
        """Set the run's state.

        `FINISHED` and `INTERRUPTED` also record that this process has stopped executing the run.
        `FINISHED` only takes effect if no trial is unfinished, and `INTERRUPTED` only if nobody
        paused or cancelled the run.
        """

        def set_it(connection: Connection) -> None:
            run_key = run_key_of(connection, run)
            if state in _ENDS:
                self._claims.end_execution(connection, run_key)
                table = schema.run
                before = connection.execute(
                    select(table.c.state).where(table.c.key == run_key)
                ).scalar_one()
                if state is RunState.FINISHED and (left := _unfinished(connection, run_key)):
                    if left == {TrialState.SUBMITTED} and before != RunState.CANCELLED.value:
                        self._set_state(connection, run_key, RunState.SUBMITTED)
                    return
                if state is RunState.INTERRUPTED and before in (
                    RunState.CANCELLED.value,
                    RunState.PAUSED.value,
                ):
                    return
            self._set_state(connection, run_key, state)
            if state is RunState.RUNNING:
                self._begin_stretch(connection, run_key)

        self._writer.call(set_it)

    def leave_paused(self, run: RunId, /) -> None:
        """Record that this process stops executing the run, and pause the run unless another
        process goes on.

        The other process would wait for a person if the run were paused. A run that a person
        cancelled stays cancelled.
        """

        def leave(connection: Connection) -> None:
            run_key = run_key_of(connection, run)
            self._claims.end_execution(connection, run_key)
            others = connection.execute(
                select(schema.execution.c.owner).where(schema.execution.c.run_key == run_key)
            ).scalars()
            state = connection.execute(
                select(schema.run.c.state).where(schema.run.c.key == run_key)
            ).scalar_one()
            if state != RunState.CANCELLED.value and all(
                self._claims.seems_gone(owner) for owner in others
            ):
                self._set_state(connection, run_key, RunState.PAUSED)

        self._writer.call(leave)

    def finish(self, run: RunId, /) -> bool:
        """Mark the run as finished unless one of its trials is pending or claimed; True if it was
        marked.
        """

        def finish(connection: Connection) -> bool:
            run_key = run_key_of(connection, run)
            if _unfinished(connection, run_key):
                return False
            self._set_state(connection, run_key, RunState.FINISHED)
            return True

        return self._writer.call(finish)

    def claim(self, run: RunId, /, *, limit: int) -> Sequence[ClaimedTrial]:
        if limit < 1:
            return ()
        return self._claims.adopt(
            self._writer.call(
                lambda connection: self._claims.take(
                    connection, self._key(connection, run), limit=limit
                )
            )
        )

    def claim_trial(self, trial: TrialKey, /) -> ClaimedTrial:
        """Claim one trial in any state for a rerun; raises `Refused` while a living process holds
        it.
        """
        return self._claims.adopt(
            self._writer.call(lambda connection: self._claims.take_one(connection, trial))
        )[0]

    def structured(self, request: ModelRequest, /) -> str | None:
        table, body = schema.call, schema.body
        with self._database.reading() as connection:
            content = connection.execute(
                select(body.c.content)
                .join(table, table.c.body_key == body.c.key)
                .where(
                    table.c.request_digest == request_digest(request), table.c.fail_kind.is_(None)
                )
                .where(table.c.role == Role.STRUCTURER.value)
                .limit(1)
            ).scalar_one_or_none()
        return None if content is None else bytes_text(content)

    def release(self, trials: Iterable[TrialKey], /) -> None:
        keys = tuple(trials)
        if keys:
            self._writer.call(lambda connection: self._claims.give_back(connection, keys))
            self._claims.let_go(keys)

    async def record(self, entry: Entry, /) -> None:
        """Commit an entry; raises `StoreError` if this process does not hold the entry's trial."""
        await self._writer.share((entry,))

    async def record_together(self, entries: Sequence[Entry], /) -> None:
        await self._writer.share(entries)

    async def reserve(self, run: RunId, reservation: Reservation, /) -> Grant:
        def reserve(connection: Connection) -> Grant:
            run_key = self._key(connection, run)
            table, reserved = schema.run, schema.reservation
            budget, spent = connection.execute(
                select(table.c.budget_usd, table.c.spent_usd).where(table.c.key == run_key)
            ).one()
            if budget is not None:
                of_run = select(reserved.c.owner, reserved.c.most_usd).where(
                    reserved.c.run_key == run_key
                )
                usd_of = {row.owner: row.most_usd for row in connection.execute(of_run)}
                spent += usd_of.pop(JOBS, 0.0)  # a batch takes a day, for which no call waits
                grant = decide(
                    reservation,
                    budget_usd=budget,
                    spent_usd=spent,
                    in_flight_usd=sum(usd_of.values()),
                )
                if grant is Grant.WAIT and self._claims.void_dead(connection, run_key):
                    return reserve(connection)
                if grant is not Grant.GRANTED:
                    return grant
            self._set_aside(connection, run_key, reservation.usd, reservation.most_usd)
            return Grant.GRANTED

        return await self._writer.share(reserve) or Grant.REFUSED

    async def settle(self, run: RunId, reservation: Reservation, spent_usd: float, /) -> None:
        def settle(connection: Connection) -> None:
            run_key = self._key(connection, run)
            table = schema.run
            connection.execute(
                update(table)
                .where(table.c.key == run_key)
                .values(spent_usd=table.c.spent_usd + spent_usd)
            )
            self._set_aside(connection, run_key, -reservation.usd, -reservation.most_usd)

        await self._writer.share(settle)

    def close(self) -> None:
        self._writer.close()
        self._claims.close()
        self._database.close()

    def _set_state(self, connection: Connection, run_key: int, state: RunState) -> None:
        ended = self._clock.now() if state in (RunState.FINISHED, RunState.CANCELLED) else None
        table = schema.run
        connection.execute(
            update(table).where(table.c.key == run_key).values(state=state.value, finished=ended)
        )

    def _begin_stretch(self, connection: Connection, run_key: int) -> None:
        tally, table = schema.run_tally, schema.stretch
        of_trials = (
            tally.c.run_key == run_key,
            tally.c.subject == TRIAL,
            tally.c.state.not_in(TO_COME),
        )
        done = connection.execute(
            select(func.coalesce(func.sum(tally.c.n), 0)).where(*of_trials)
        ).scalar_one()
        row = {"since": self._clock.now(), "done": int(done)}
        if not connection.execute(
            update(table).where(table.c.run_key == run_key).values(**row)
        ).rowcount:
            connection.execute(insert(table).values(run_key=run_key, **row))

    def _set_aside(self, connection: Connection, run_key: int, usd: float, most_usd: float) -> None:
        self._claims.hold_lock()
        table, owner = schema.reservation, self._claims.owner
        mine = (table.c.run_key == run_key, table.c.owner == owner)
        more = {"usd": table.c.usd + usd, "most_usd": table.c.most_usd + most_usd}
        if not connection.execute(update(table).where(*mine).values(more)).rowcount:
            connection.execute(
                insert(table).values(run_key=run_key, owner=owner, usd=usd, most_usd=most_usd)
            )

    def _key(self, connection: Connection, run: RunId) -> int:
        """Return a run's key. It never changes, so it is looked up only once."""
        known = self._run_keys.get(run)
        if known is None:
            known = self._run_keys[run] = run_key_of(connection, run)
        return known


def _unfinished(connection: Connection, run_key: int) -> set[TrialState]:
    table = schema.run_tally
    to_come = (
        table.c.run_key == run_key,
        table.c.subject == TRIAL,
        table.c.state.in_(TO_COME),
        table.c.n > 0,
    )
    return set(map(TrialState, connection.execute(select(table.c.state).where(*to_come)).scalars()))
