"""Store batch jobs at providers: their requests, the trials that wait for them, and the money
reserved for them.

A request is stored before a provider receives it. The commit that uses its answer also stores the
answer, marks the request as read and replaces its reservation. Therefore a kill at any time neither
loses nor repeats an answer.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import ColumnElement, Connection, Row, delete, exists, func, insert, select, update

from assay.domain.calls import ModelRequest, Reply, Role
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import RunId, TrialKey
from assay.domain.jobs import (
    BatchJob,
    JobRequest,
    JobStage,
    JobState,
    ParkedTrial,
    RequestKey,
    RequestState,
)
from assay.domain.lifecycle import HIDDEN, RunState, TrialState
from assay.store.database import schema
from assay.store.database.codec import bytes_json, bytes_text, plain, request_digest, text_bytes
from assay.store.database.connections import Database, among, take_keys
from assay.store.execution.job_requests import book, mark_void, request_row, reserve, shareable
from assay.store.queries.plans import run_key_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from assay.domain.run import ClaimedTrial
    from assay.ports import Clock
    from assay.store.claims.claims import Claims
    from assay.store.execution.writer_thread import Writer

_SLACK: Final = 1e-9
_SENT: Final = RequestState.SENT.value


class StoreJobs:
    """Stores batch jobs and the trials that wait for them."""

    def __init__(self, database: Database, writer: Writer, claims: Claims, clock: Clock) -> None:
        self._database = database
        self._writer = writer
        self._claims = claims
        self._clock = clock

    def digest(self, request: ModelRequest, /) -> str:
        return request_digest(request)

    def of_runs(
        self, runs: Sequence[RunId] = (), /, *, only_open: bool = False
    ) -> tuple[BatchJob, ...]:
        """Return the jobs of these runs, or of all runs in use, oldest first."""
        job, run = schema.job, schema.run
        where: list[ColumnElement[bool]] = (
            [run.c.id.in_(runs)] if runs else [run.c.state.not_in(HIDDEN)]
        )
        if only_open:
            where.append(job.c.state != JobState.COLLECTED.value)
        with self._database.reading() as connection:
            return _jobs(connection, *where)

    def plan(
        self,
        run: RunId,
        /,
        *,
        token: str,
        stage: JobStage,
        place: str,
        model: str,
        base_url: str | None,
        habits: str,
    ) -> int:
        row = {
            "token": token,
            "stage": stage.value,
            "place": place,
            "model": plain(model),
            "base_url": base_url,
            "habits": habits,
            "state": JobState.PLANNED.value,
            "owner": self._claims.owner,
            "requests": 0,
            "created": self._clock.now(),
        }

        def insert_it(connection: Connection) -> int:
            self._claims.hold_lock()
            new = (
                insert(schema.job)
                .values(run_key=run_key_of(connection, run), **row)
                .returning(schema.job.c.key)
            )
            return int(connection.execute(new).scalar_one())

        return self._writer.call(insert_it)

    def hold(self, job: int, /) -> BatchJob | None:
        """Reserve a job for this process, which may then send or collect it, and return its current
        state.

        Returns None if another living process holds the job, or if it was collected or dropped.
        """
        table = schema.job

        def hold(connection: Connection) -> BatchJob | None:
            self._claims.hold_lock()
            row = connection.execute(
                select(table.c.owner, table.c.state).where(table.c.key == job)
            ).first()
            if row is None or row.state == JobState.COLLECTED.value:
                return None
            if row.owner not in (None, self._claims.owner) and not self._claims.owner_gone(
                row.owner
            ):
                return None
            connection.execute(
                update(table).where(table.c.key == job).values(owner=self._claims.owner)
            )
            return _jobs(connection, table.c.key == job)[0]

        return self._writer.call(hold)

    def note(self, job: int, /, **changes: object) -> None:
        values = {
            name: str(value) if isinstance(value, JobState) else value
            for name, value in changes.items()
        }
        table = schema.job
        self._writer.call(
            lambda connection: connection.execute(
                update(table).where(table.c.key == job).values(**values)
            )
        )

    def keep_log(self, job: int, text: str, /) -> None:
        def keep(connection: Connection) -> None:
            key = take_keys(connection, body=1)["body"].start
            self._database.insert(connection, schema.body, [(key, text_bytes(text))])
            connection.execute(
                update(schema.job).where(schema.job.c.key == job).values(log_key=key)
            )

        self._writer.call(keep)

    def void_dead(self, run: RunId, /) -> None:
        """Void ended processes' claims on a run's trials."""
        self._writer.call(
            lambda connection: self._claims.void_dead(
                connection, run_key_of(connection, run), patient=True
            )
        )

    def retry_failed(self, run: RunId, /) -> None:
        self._writer.call(
            lambda connection: self._claims.retry_failed(connection, run_key_of(connection, run))
        )

    def claim(self, run: RunId, trials: Sequence[TrialKey], /) -> Sequence[ClaimedTrial]:
        return self._claims.adopt(
            self._writer.call(
                lambda connection: self._claims.take_submitted(
                    connection, run_key_of(connection, run), trials
                )
            )
        )

    def trials_of(self, job: int, /) -> tuple[TrialKey, ...]:
        """Return the trials with unanswered requests in a job, in plan order."""
        asked, trial = schema.job_request, schema.trial
        with self._database.reading() as connection:
            rows = connection.execute(
                select(trial.c.key)
                .where(trial.c.state == TrialState.SUBMITTED.value)
                .where(
                    trial.c.key.in_(
                        select(asked.c.trial_key).where(
                            asked.c.job_key == job, asked.c.state == _SENT
                        )
                    )
                )
                .order_by(trial.c.position, trial.c.k)
            ).scalars()
            return tuple(map(TrialKey, rows))

    def stranded(self, run: RunId, /) -> tuple[TrialKey, ...]:
        """Return waiting trials without an unanswered request; a process was killed before it
        continued them.
        """
        asked, trial = schema.job_request, schema.trial
        with self._database.reading() as connection:
            rows = connection.execute(
                select(trial.c.key)
                .where(
                    trial.c.run_key == run_key_of(connection, run),
                    trial.c.state == TrialState.SUBMITTED.value,
                )
                .where(~exists().where(asked.c.trial_key == trial.c.key, asked.c.state == _SENT))
                .order_by(trial.c.position, trial.c.k)
            ).scalars()
            return tuple(map(TrialKey, rows))

    def requests_of(self, trials: Sequence[TrialKey], /) -> tuple[JobRequest, ...]:
        """Return all batch requests of these trials, and the requests whose answers they share,
        oldest first.
        """
        table = schema.job_request
        with self._database.reading() as connection:
            rows = list(
                connection.execute(select(table).where(among(table.c.trial_key, trials))).all()
            )
            own = {(row.job_key, row.number) for row in rows}
            shared: defaultdict[int, set[int]] = defaultdict(set)
            for row in rows:
                if row.shares is not None and (row.job_key, row.shares) not in own:
                    shared[row.job_key].add(row.shares)
            for job, numbers in shared.items():
                of_job = (table.c.job_key == job, table.c.number.in_(numbers))
                rows += connection.execute(select(table).where(*of_job)).all()
        return tuple(map(_request, sorted(rows, key=lambda row: row[:2])))

    def structuring(self, run: RunId, /) -> dict[str, RequestKey]:
        job, table = schema.job, schema.job_request
        with self._database.reading() as connection:
            rows = connection.execute(
                select(table.c.digest, table.c.job_key, table.c.number)
                .join(job, job.c.key == table.c.job_key)
                .where(
                    job.c.run_key == run_key_of(connection, run),
                    job.c.state != JobState.COLLECTED.value,
                )
                .where(
                    table.c.role == Role.STRUCTURER.value,
                    table.c.state == _SENT,
                    table.c.shares.is_(None),
                )
            ).all()
        return {digest: RequestKey(job_key, number) for digest, job_key, number in rows}

    def heard(self, trials: Sequence[TrialKey], /) -> dict[tuple[int, str], list[Reply]]:
        heard: defaultdict[tuple[int, str], list[Reply]] = defaultdict(list)
        table, body = schema.call, schema.body
        with self._database.reading() as connection:
            rows = connection.execute(
                select(
                    table.c.trial_key, table.c.request_digest, table.c.finish_reason, body.c.content
                )
                .join(body, body.c.key == table.c.body_key)
                .where(
                    among(table.c.trial_key, trials),
                    table.c.role == Role.JUDGE.value,
                    table.c.fail_kind.is_(None),
                )
                .order_by(table.c.key)
            ).all()
        for key, digest, finish, text in rows:
            heard[key, digest].append(Reply(text=bytes_text(text), finish_reason=finish))
        return heard

    def park(
        self, run: RunId, trials: Sequence[ParkedTrial], /, *, void: Iterable[RequestKey] = ()
    ) -> frozenset[TrialKey]:
        """Let claimed trials wait for their requests, or make trials without requests pending.

        Marks the requests in `void` as never carried out. Returns the trials whose requests exceed
        the budget; they stay claimed.
        """

        def park(connection: Connection) -> frozenset[TrialKey]:
            run_key = run_key_of(connection, run)
            mark_void(connection, run_key, void)
            left = self._left_usd(connection, run_key)
            waiting: list[int] = []
            pending: list[int] = []
            refused: list[TrialKey] = []
            rows: list[tuple[Any, ...]] = []
            usd = 0.0
            for trial in trials:
                cost = sum(request.usd for request in trial.requests)
                if left is not None and usd + cost > left + _SLACK:
                    refused.append(trial.trial)
                    continue
                usd += cost
                (waiting if trial.requests or trial.open else pending).append(trial.trial)
                rows += map(request_row, trial.requests)
            self._database.insert(connection, schema.job_request, shareable(connection, rows))
            reserve(connection, run_key, usd)
            self._claims.park(connection, run_key, TrialState.SUBMITTED, waiting)
            self._claims.park(connection, run_key, TrialState.PENDING, pending)
            return frozenset(refused)

        refused = self._writer.call(park)
        self._claims.let_go(trial.trial for trial in trials if trial.trial not in refused)
        return refused

    def drop(self, job: int, /) -> None:
        """Delete a job that no provider has received.

        A later process sends its trials' requests again.
        """

        def drop(connection: Connection) -> None:
            asked = schema.job_request
            run_key = connection.execute(
                select(schema.job.c.run_key).where(schema.job.c.key == job)
            ).scalar_one()
            rows = connection.execute(
                delete(asked).where(asked.c.job_key == job).returning(asked.c.usd)
            ).scalars()
            reserve(connection, run_key, -sum(rows))
            connection.execute(delete(schema.job).where(schema.job.c.key == job))

        self._writer.call(drop)

    def finish(self, job: int, /, *, answered: Collection[int]) -> bool:
        """Mark a job as collected.

        Returns False, and changes nothing, if another process works on one of its trials.

        `answered`: numbers of the requests with an answer. Those that no trial used stay booked at
        their worst case.
        """

        def finish(connection: Connection) -> bool:
            table, asked, trial = schema.job, schema.job_request, schema.trial
            run_key = connection.execute(
                select(table.c.run_key).where(table.c.key == job)
            ).scalar_one()
            rows = connection.execute(
                select(asked.c.number, asked.c.usd, trial.c.state)
                .join(trial, trial.c.key == asked.c.trial_key)
                .where(asked.c.job_key == job, asked.c.state == _SENT)
            ).all()
            if any(row.state == TrialState.RUNNING.value for row in rows):
                return False
            book(
                connection,
                {run_key: [(row.usd, None if row.number in answered else 0.0) for row in rows]},
            )
            void = {"state": RequestState.VOID.value}
            connection.execute(
                update(asked).where(asked.c.job_key == job, asked.c.state == _SENT).values(**void)
            )
            ended = {"state": JobState.COLLECTED.value, "owner": None, "ended": self._clock.now()}
            connection.execute(update(table).where(table.c.key == job).values(**ended))
            return True

        return self._writer.call(finish)

    def rest(self, run: RunId, /) -> RunState:
        """Mark a submitted or paused run as finished if all of its trials have ended, and return
        the run's state.
        """

        def rest(connection: Connection) -> RunState:
            table, tally = schema.run, schema.run_tally
            run_key = run_key_of(connection, run)
            state = RunState(
                connection.execute(select(table.c.state).where(table.c.key == run_key)).scalar_one()
            )
            of_trials = (tally.c.run_key == run_key, tally.c.subject == "trial", tally.c.n > 0)
            states = set(connection.execute(select(tally.c.state).where(*of_trials)).scalars())
            to_come = states & {
                TrialState.PENDING.value,
                TrialState.RUNNING.value,
                TrialState.SUBMITTED.value,
            }
            if state in (RunState.SUBMITTED, RunState.PAUSED) and not to_come:
                values = {"state": RunState.FINISHED.value, "finished": self._clock.now()}
                connection.execute(update(table).where(table.c.key == run_key).values(**values))
                return RunState.FINISHED
            return state

        return self._writer.call(rest)

    def let_go(self, job: int, /) -> None:
        """Release a job, so that another process may send or collect it."""
        self.note(job, owner=None)

    def _left_usd(self, connection: Connection, run_key: int) -> float | None:
        run, reserved = schema.run, schema.reservation
        budget, spent = connection.execute(
            select(run.c.budget_usd, run.c.spent_usd).where(run.c.key == run_key)
        ).one()
        if budget is None:
            return None
        of_run = select(func.coalesce(func.sum(reserved.c.most_usd), 0.0)).where(
            reserved.c.run_key == run_key
        )
        return float(budget - spent - connection.execute(of_run).scalar_one())


def _jobs(connection: Connection, *where: ColumnElement[bool]) -> tuple[BatchJob, ...]:
    job, run, asked = schema.job, schema.run, schema.job_request
    read = (
        asked.c.job_key == job.c.key,
        asked.c.state.in_((RequestState.READ.value, RequestState.GIVEN_UP.value)),
    )
    answered = select(func.count()).where(*read).correlate(job).scalar_subquery()
    all_jobs = select(job, run.c.id.label("run_id"), answered.label("answered")).join(
        run, run.c.key == job.c.run_key
    )
    return tuple(map(_job, connection.execute(all_jobs.where(*where).order_by(job.c.key)).all()))


def _job(row: Row[Any]) -> BatchJob:
    own = {
        field.name: getattr(row, field.name) for field in fields(BatchJob) if field.name != "run"
    }
    words = {"stage": JobStage(row.stage), "state": JobState(row.state)}
    return BatchJob(run=RunId(row.run_id), **{**own, **words})


def _request(row: Row[Any]) -> JobRequest:
    # by name, columns take five times as long
    job, number, trial, role, digest, visit, state, usd, shares, failure = tuple(row)
    failed = None if failure is None else bytes_json(failure)
    unread = "" if failed is None else str(failed.pop("unread"))
    return JobRequest(
        key=RequestKey(job, number),
        trial=TrialKey(trial),
        role=Role(role),
        digest=digest,
        visit=visit,
        state=RequestState(state),
        usd=usd,
        shares=shares,
        failure=None if failed is None else Failure(**{**failed, "fault": Fault(failed["fault"])}),
        unread=unread,
    )
