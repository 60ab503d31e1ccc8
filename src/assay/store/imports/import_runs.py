"""Import runs in portions (batches of records); a run stays hidden until the whole import is
stored.

A single transaction for a million lines would block all reviewers and fill the write-ahead log.
Portions are therefore written to a run in state `importing`, which no selection includes
(`queries.filters.scope_of`). The last transaction sets the state to `finished`. An importer holds
its process's lock; if a process ended during an import, the next import deletes the unfinished
runs.

Keys are reserved in blocks. A portion takes a few indexed queries, regardless of the amount of
stored data. Memory use stays constant, because no row is remembered between portions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, update

from assay.domain.candidate_identity import identity_of
from assay.domain.digest import JsonValue
from assay.domain.identifiers import RunId
from assay.domain.import_identity import response_number
from assay.domain.import_records import (
    FoundAssessment,
    FoundResponse,
    FoundScores,
    FoundTask,
    Skipped,
)
from assay.domain.lifecycle import RunState
from assay.domain.review import Decision
from assay.domain.run import RunPlan
from assay.domain.suite import CandidateSpec
from assay.ports import Clock
from assay.store.claims.claims import Claims
from assay.store.database import schema
from assay.store.database.codec import json_text, plain, plan_bytes
from assay.store.database.connections import Database, portions, take_keys
from assay.store.database.counters import STANDING, TRIAL, CounterChanges
from assay.store.database.name_keys import NameKeys, candidate_names
from assay.store.execution.new_runs import RunPlanner
from assay.store.execution.writer_thread import Writer
from assay.store.imports.import_rows import write_portion
from assay.store.imports.known_results import (
    ImportFacts,
    KnownRun,
    begun_imports,
    decisions_to_carry,
    known_runs,
    shown_since,
)
from assay.store.imports.portion import OpenRun, Portion, rows_among
from assay.store.imports.task_rows import ready_task
from assay.store.queries.filters import HIDDEN_STATES
from assay.store.queries.plans import settings_of
from assay.store.review.decisions import StoreDecisions
from assay.store.set_aside import RunNote, refuse_regraded, set_aside

_SWEPT_AT_ONCE: Final = 20_000

_TABLES_OF_RUN: Final = (
    schema.run_tag,
    schema.run_task,
    schema.run_candidate,
    schema.run_grader,
    schema.run_criterion,
    schema.run_tally,
    schema.imported,
    schema.imported_response,
)
"""Tables, besides `run` and the tables of its trials, whose rows are deleted with a run."""


@dataclass(slots=True)
class Imported:
    """Numbers of runs, tasks, responses and assessments that an import stored."""

    runs: int = 0
    tasks: int = 0
    responses: int = 0
    assessments: int = 0


@dataclass(frozen=True, slots=True)
class StoreImports:
    """Starts imports, looks up finished imports, and deletes runs of unfinished imports."""

    database: Database
    writer: Writer
    names: NameKeys
    claims: Claims
    clock: Clock
    decisions: StoreDecisions

    def known(self, digest: str, /) -> tuple[RunId, ...] | None:
        """Return the runs that an earlier import of a file with this digest created; None if the
        file must be imported.

        If a later version has replaced such a run, returns the replacement.
        """
        table, run = schema.imported, schema.run
        with self.database.reading() as connection:
            rows = connection.execute(
                select(table.c.run_key, run.c.id, run.c.state)
                .join(run, run.c.key == table.c.run_key, isouter=True)
                .where(table.c.digest == digest, table.c.owner.is_(None))
                .order_by(table.c.key)
            ).all()
            in_use: dict[RunId, None] = {}
            for run_key, run_id, state in rows:
                while state == RunState.REPLACED.value:
                    run_key, run_id, state = _replacement(connection, run_key)
                if state in HIDDEN_STATES:  # the run was deleted, so the file may be imported again
                    return None
                if run_id is not None:  # None if only tasks were imported
                    in_use[RunId(run_id)] = None
        return tuple(in_use) if rows else None

    def suite_of_dataset(self, dataset: str, /) -> str | None:
        table, suite = schema.imported, schema.suite
        with self.database.reading() as connection:
            return connection.execute(
                select(suite.c.name)
                .join(table, table.c.suite_key == suite.c.key)
                .where(table.c.dataset == dataset, table.c.owner.is_(None))
                .order_by(table.c.key)
                .limit(1)
            ).scalar_one_or_none()

    def assessments_of(self, run_id: str, /) -> frozenset[int] | None:
        """Return the keys of a run's assessments; None if the run does not exist or is not in
        use.
        """
        run, assessment = schema.run, schema.assessment
        with self.database.reading() as connection:
            in_use = (run.c.id == plain(run_id), run.c.state.not_in(HIDDEN_STATES))
            key = connection.execute(select(run.c.key).where(*in_use)).scalar_one_or_none()
            if key is None:
                return None
            keys = connection.execute(select(assessment.c.key).where(assessment.c.run_key == key))
            return frozenset(keys.scalars())

    def runs_of_form(self, form: str, /) -> tuple[RunId, ...]:
        table, run = schema.imported, schema.run
        with self.database.reading() as connection:
            run_ids = connection.execute(
                select(run.c.id)
                .join(table, table.c.run_key == run.c.key)
                .where(
                    table.c.format == form,
                    table.c.owner.is_(None),
                    run.c.state.not_in(HIDDEN_STATES),
                )
                .order_by(table.c.key)
            ).scalars()
            return tuple(map(RunId, run_ids))

    def sweep(self) -> int:
        """Delete the half-written runs of importers that have ended, and return their number."""
        table = schema.imported
        with self.database.reading() as connection:
            left = connection.execute(
                select(table.c.owner, table.c.run_key).where(table.c.owner.is_not(None))
            ).all()
        others = {row.owner for row in left} - {self.claims.owner}
        dead = {owner for owner in others if self.claims.owner_gone(owner)}
        swept = 0
        for owner, run_key in left:
            if owner in dead:
                self.sweep_run(run_key)
                swept += 1
        for owner in dead:
            self.claims.forget_owner(owner)
        return swept

    def begin(self, *, digest: str, name: str, form: str, dataset: str | None) -> StoreImport:
        """Start an import, whose runs become visible together when it is finished."""
        # Before the first row: without a lock another importer would take this one for dead and
        # sweep its run.
        self.claims.hold_lock()
        row: dict[str, object] = {
            "digest": digest,
            "name": plain(name),
            "format": form,
            "dataset": dataset,
            "at": self.clock.now(),
        }
        return StoreImport(self, row)

    def sweep_run(self, run_key: int) -> None:
        """Delete a half-written run in several transactions; the run's tasks stay in the store."""
        run = schema.run
        # Staged, without foreign keys: with them, each deleted text would require a walk through
        # whole tables.
        while self.writer.begin(
            lambda connection: _sweep_trials(connection, run_key), staging=True
        ).result():
            pass

        def rest(connection: Connection) -> None:
            plan_key = connection.execute(
                select(run.c.plan_key).where(run.c.key == run_key)
            ).scalar_one_or_none()
            for table in _TABLES_OF_RUN:
                connection.execute(delete(table).where(table.c.run_key == run_key))
            connection.execute(delete(run).where(run.c.key == run_key))
            if plan_key is not None:
                connection.execute(delete(schema.body).where(schema.body.c.key == plan_key))

        self.writer.call(rest)


class ImportedMeanwhile(Exception):
    """Raised if another import stored some of the same results during this import.

    The file must be read again.
    """


class StoreImport:
    """An import in progress.

    Its runs are opened, filled and closed one after another, and `finish` makes them visible.
    """

    def __init__(self, imports: StoreImports, row: Mapping[str, object]) -> None:
        self._imports = imports
        self._database, self._writer = imports.database, imports.writer
        self._row = row
        self._began: tuple[int, tuple[int, ...]] | None = None
        self._replaced: list[tuple[int, int]] = []
        self._carried: list[Decision] = []
        self._closed: OpenRun
        self._facts: ImportFacts
        self._runs: list[int] = []
        self._all_facts: dict[int, ImportFacts] = {}
        self._plan: RunPlan | None = None
        self._run: OpenRun | None = None
        self._pending: Future[list[Skipped]] | None = None
        self.done = Imported()

    def open_run(self, plan: RunPlan, /) -> None:
        """Start the run that receives the next portions; the previous run must be closed."""

        def begin(connection: Connection) -> OpenRun:
            planning = RunPlanner(self._database, self._imports.names, self._imports.claims)
            planning.open(connection, plan, ())
            run, imported = schema.run, schema.imported
            if self._began is None:
                self._began = begun_imports(connection)
            key = connection.execute(select(run.c.key).where(run.c.id == plan.id)).scalar_one()
            connection.execute(
                update(run).where(run.c.key == key).values(state=RunState.IMPORTING.value)
            )
            suite_key = self._imports.names.suite(connection, plan.suite)
            connection.execute(
                insert(imported).values(
                    **self._row, suite_key=suite_key, run_key=key, owner=self._imports.claims.owner
                )
            )
            task = schema.task
            shared = connection.execute(
                select(task.c.key).where(task.c.suite_key == suite_key).limit(1)
            ).first()
            weights = {criterion.name: criterion.weight for criterion in plan.rubric.criteria}
            known = connection.execute(select(schema.imported_response.c.identity).limit(1)).first()
            free = take_keys(connection, task=0, response=0)
            return OpenRun(
                run_key=int(key),
                suite_key=suite_key,
                shared=shared is not None,
                weights=weights,
                now=str(self._row["at"]),
                looks_up=known is not None,
                next_task=free["task"].start,
                next_response=free["response"].start,
            )

        self._run = self._writer.call(begin)
        self._plan = plan
        self._runs.append(self._run.run_key)
        self.done.runs += 1

    def add(
        self,
        tasks: Sequence[FoundTask],
        responses: Sequence[FoundResponse],
        assessments: Sequence[FoundAssessment],
        scores: Sequence[FoundScores] = (),
        /,
    ) -> Sequence[Skipped]:
        """Store a portion of the open run while the caller reads the next one.

        Returns the records of the previous portion that could not be stored.
        """
        open_run = self._open_run()
        before = self.settle()

        def write(connection: Connection) -> list[Skipped]:
            portion = Portion(self._database, connection, self._imports.names, open_run)
            return write_portion(portion, tasks, responses, assessments, scores)

        self._pending = self._writer.begin(write, staging=True)
        return before

    def settle(self) -> Sequence[Skipped]:
        """Wait for the portion that is being written, and return its records that could not be
        stored.
        """
        pending, self._pending = self._pending, None
        return () if pending is None else pending.result()

    def keep_tasks(self, suite: str, tasks: Sequence[FoundTask], /) -> int:
        """Store tasks without a run, for answers imported later; return the number of new tasks."""

        def keep(connection: Connection) -> int:
            suite_key = self._imports.names.suite(connection, suite)
            return _keep_tasks(self._database, connection, suite_key, tasks)

        return self._writer.call(keep)

    def close_run(
        self,
        *,
        started: str | None = None,
        finished: str | None = None,
        environment: Mapping[str, JsonValue] | None = None,
        facts: ImportFacts,
    ) -> Sequence[Skipped]:
        """Close the open run: store its final plan, and a failed trial for each task without an
        answer.

        `facts` are stored with the run, so that a later import can recognise the same results.
        """
        skipped = self.settle()
        open_run, plan = self._open_run(), self._plan
        assert plan is not None
        plan = replace(
            plan,
            started=started or plan.started,
            environment=plan.environment if environment is None else dict(environment),
        )
        while self._writer.call(
            lambda connection: _fail_missing(self._database, connection, open_run)
        ):
            pass

        def end(connection: Connection) -> None:
            run, body = schema.run, schema.body
            plan_key = connection.execute(
                select(run.c.plan_key).where(run.c.key == open_run.run_key)
            ).scalar_one()
            # A score table names its candidates row by row, so the final plan needs them: the
            # results folder and anonymous exports refused a plan without candidates.
            names = tuple(candidate_names(connection, open_run.run_key).values())
            only_in_rows = tuple(CandidateSpec(name=name) for name in names[len(plan.candidates) :])
            whole = replace(plan, candidates=(*plan.candidates, *only_in_rows))
            connection.execute(
                update(body).where(body.c.key == plan_key).values(content=plan_bytes(whole))
            )
            if open_run.most_k > 1:
                _count_trials(connection, open_run.run_key)
            own = schema.run_candidate
            for candidate in whole.candidates:
                if identity := plain(identity_of(whole, candidate)):
                    named = (own.c.run_key == open_run.run_key, own.c.name == plain(candidate.name))
                    connection.execute(update(own).where(*named).values(identity=identity))
            values = {
                "started": plan.started,
                "finished": finished or plan.started,
                "judges": json_text(sorted(open_run.judges)),
                "settings": json_text(
                    [(name, settings_of(plan)[0][1]) for name in sorted(open_run.judges)]
                    or settings_of(plan)
                ),
            }
            connection.execute(update(run).where(run.c.key == open_run.run_key).values(**values))
            table = schema.imported
            kept = {
                name: getattr(facts, name) for name in ("identity", "version", "content", "answers")
            }
            connection.execute(
                update(table).where(table.c.run_key == open_run.run_key).values(**kept)
            )

        self._writer.call(end)
        self._closed, self._facts = open_run, facts
        self._all_facts[open_run.run_key] = facts
        self.done.tasks += open_run.tasks
        self.done.responses += open_run.responses
        self.done.assessments += open_run.assessments
        self._run = self._plan = None
        return skipped

    def known_runs(self) -> list[KnownRun]:
        """Return the runs in use that have results in common with the most recently closed run."""
        with self._database.reading() as connection:
            return known_runs(connection, self._closed, self._facts)

    @property
    def answers(self) -> int:
        """Return the number of responses and assessments in the most recently closed run."""
        return self._closed.responses + self._closed.assessments

    def held_by(self, identities: Sequence[str], runs: Collection[int], /) -> frozenset[str]:
        by_number = {response_number(identity): identity for identity in identities}
        text = "SELECT run_key, identity FROM imported_response WHERE run_key > {} AND identity"
        with self._database.reading() as connection:
            rows = rows_among(self._database, connection, text, (0,), list(by_number))
        return frozenset(by_number[number] for run_key, number in rows if run_key in runs)

    def drop_run(self) -> None:
        """Delete the most recently closed run, because the store already has all of its results."""
        dropped = self._closed
        self._imports.sweep_run(dropped.run_key)
        self._runs.remove(dropped.run_key)
        self.done.runs -= 1
        self.done.tasks -= dropped.tasks
        self.done.responses -= dropped.responses
        self.done.assessments -= dropped.assessments

    def replace_run(self, known: KnownRun, /, *, by: RunId) -> tuple[int, int]:
        """Replace a stored run with the most recently closed run, with effect from the end of the
        import.

        Returns (decisions carried over to the new run, decisions that do not apply to it). Raises
        `Refused` if another run grades the stored run's answers.
        """
        with self._database.reading() as connection:
            refuse_regraded(connection, known.id, [known.run_key])
            carried, left = decisions_to_carry(connection, known.run_key, self._closed.run_key, by)
        self._replaced.append((known.run_key, self._closed.run_key))
        self._carried += carried
        return len(carried), left

    def finish(self, *, suite: str | None = None) -> Imported:
        """Make all runs of the import visible at once; `suite` is the suite of an import without
        runs.

        Raises `ImportedMeanwhile` if another import has made some of these results visible since
        this import began.
        """

        def show(connection: Connection) -> None:
            run, imported, at = schema.run, schema.imported, str(self._row["at"])
            own = {key: self._all_facts[key] for key in self._runs}
            if self._began is not None and shown_since(connection, self._began, own):
                raise ImportedMeanwhile
            connection.execute(
                update(run).where(run.c.key.in_(self._runs)).values(state=RunState.FINISHED.value)
            )
            connection.execute(
                update(imported).where(imported.c.run_key.in_(self._runs)).values(owner=None)
            )
            for old_key, new_key in self._replaced:
                note = RunNote(
                    reviewer="",
                    reason=f"a later version was imported from {self._row['name']}",
                    at=at,
                )
                set_aside(connection, old_key, RunState.REPLACED, note, other_key=new_key)
            self._imports.decisions.apply(connection, self._carried, at)
            if not self._runs and suite is not None:
                key = self._imports.names.suite(connection, suite)
                connection.execute(
                    insert(imported).values(**self._row, suite_key=key, run_key=None, owner=None)
                )

        self._writer.call(show)
        return self.done

    def abandon(self) -> None:
        if self._pending is not None:
            # Wait for the portion, but do not raise its error: it must be in the store before it
            # can be swept.
            self._pending.exception()
            self._pending = None
        for run_key in self._runs:
            self._imports.sweep_run(run_key)
        self._runs.clear()

    def _open_run(self) -> OpenRun:
        assert self._run is not None, "a run must be open"
        return self._run


def _replacement(connection: Connection, run_key: int) -> tuple[int, str, str]:
    table, run = schema.run_event, schema.run
    row = connection.execute(
        select(run.c.key, run.c.id, run.c.state)
        .join(table, table.c.other_key == run.c.key)
        .where(table.c.run_key == run_key, table.c.after == RunState.REPLACED.value)
        .order_by(table.c.id.desc())
        .limit(1)
    ).one()
    return int(row.key), row.id, row.state


def _sweep_trials(connection: Connection, run_key: int) -> int:
    """Delete some trials of a half-written run with their calls, responses and grades; return their
    number.
    """
    trial, response, call = schema.trial, schema.response, schema.call
    assessment, score, grade, body = schema.assessment, schema.score, schema.grade, schema.body
    keys = list(
        connection.execute(
            select(trial.c.key).where(trial.c.run_key == run_key).limit(_SWEPT_AT_ONCE)
        ).scalars()
    )
    for some in portions(keys, 500):
        bodies = list(
            connection.execute(
                select(response.c.body_key).where(response.c.trial_key.in_(some))
            ).scalars()
        )
        of_trials = select(assessment.c.key, assessment.c.body_key).where(
            assessment.c.trial_key.in_(some)
        )
        assessments = connection.execute(of_trials).all()
        bodies += [row.body_key for row in assessments if row.body_key is not None]
        for graded in portions([row.key for row in assessments], 500):
            for table in (score, grade):
                connection.execute(
                    delete(table).where(
                        table.c.run_key == run_key, table.c.assessment_key.in_(graded)
                    )
                )
        for table in (assessment, response, call):
            connection.execute(delete(table).where(table.c.trial_key.in_(some)))
        connection.execute(delete(trial).where(trial.c.key.in_(some)))
        for part in portions(bodies, 500):
            connection.execute(delete(body).where(body.c.key.in_(part)))
    return len(keys)


def _fail_missing(database: Database, connection: Connection, open_run: OpenRun) -> int:
    """Store a failed trial for each of the next tasks without an answer; return the number of
    trials.
    """
    planned, trial = schema.run_task, schema.trial
    if not open_run.declared:
        return 0
    rows = connection.execute(
        select(planned.c.position, planned.c.task_key)
        .join(
            trial,
            (trial.c.run_key == planned.c.run_key) & (trial.c.position == planned.c.position),
            isouter=True,
        )
        .where(
            planned.c.run_key == open_run.run_key,
            planned.c.position > open_run.seen_missing,
            trial.c.key.is_(None),
        )
        .order_by(planned.c.position)
        .limit(5000)
    ).all()
    if not rows:
        return 0
    open_run.seen_missing = rows[-1].position
    keys = take_keys(connection, trial=len(rows))["trial"]
    detail = "the file contains no answer to this task."
    failed = (1, "failed", "failed", None, None, 1, "missing", "provider", detail, 1)
    trials = [
        (key, open_run.run_key, row.task_key, row.position, *failed)
        for key, row in zip(keys, rows, strict=True)
    ]
    database.insert(connection, trial, trials)
    counters = CounterChanges()
    counters.add(open_run.run_key, TRIAL, "failed", len(rows))
    counters.add(open_run.run_key, STANDING, "failed", len(rows))
    counters.write(connection)
    return len(rows)


def _count_trials(connection: Connection, run_key: int) -> None:
    planned, trial = schema.run_task, schema.trial
    most = (
        select(func.max(trial.c.k))
        .where(trial.c.run_key == planned.c.run_key, trial.c.position == planned.c.position)
        .scalar_subquery()
    )
    connection.execute(
        update(planned).where(planned.c.run_key == run_key).values(trials=func.coalesce(most, 1))
    )


def _keep_tasks(
    database: Database, connection: Connection, suite_key: int, tasks: Iterable[FoundTask]
) -> int:
    ready = {task.id: ready_task(task) for task in tasks}
    text = "SELECT task_id, digest FROM task WHERE suite_key = {} AND task_id"
    known = {
        tuple(row) for row in rows_among(database, connection, text, (suite_key,), list(ready))
    }
    new = [
        (task_id, task) for task_id, task in ready.items() if (task_id, task.digest) not in known
    ]
    keys = take_keys(connection, task=len(new), body=len(new))
    bodies, rows = [], []
    for (task_id, task), task_key, body_key in zip(new, keys["task"], keys["body"], strict=True):
        bodies.append((body_key, task.content))
        words = (task.language, task.family)
        rows.append(
            (task_key, suite_key, task_id, task.digest, *words, body_key, task.content_digest)
        )
    database.insert(connection, schema.body, bodies)
    database.insert(connection, schema.task, rows)
    return len(rows)
