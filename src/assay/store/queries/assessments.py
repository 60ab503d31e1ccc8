"""Read assessments for review: rows with their texts, and with corrections applied to the grader's
scores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, func, or_, select, true

from assay.domain.assessment import Assessment, Grade, Response
from assay.domain.digest import JsonValue
from assay.domain.errors import UnknownName
from assay.domain.identifiers import AssessmentKey, RunId, TrialKey, shown_assessment
from assay.domain.lifecycle import AssessmentState, TrialState
from assay.domain.rounding import without_rounding_error
from assay.domain.scenarios import readable
from assay.domain.selection import AssessmentDetail, AssessmentRow, Selection, TrialMark
from assay.domain.suite import Task
from assay.store.database import schema
from assay.store.database.codec import (
    WHOLE,
    assessment_record,
    bare_score,
    bytes_text,
    plain,
    task_record,
)
from assay.store.database.counters import ASSESSMENT
from assay.store.database.name_keys import candidate_names
from assay.store.event_chain import events_of
from assay.store.queries.filters import Scope, scope_of, unsorted
from assay.store.queries.own_work import own_work, own_work_waiting
from assay.store.queries.snapshots import Queries, snapshot
from assay.store.queries.stated_reviewers import stated_reviewers

_CALL_SHOWN = (
    *(
        "role",
        "attempt",
        "number",
        "model",
        "model_version",
        "finish_reason",
        "input_tokens",
        "output_tokens",
    ),
    *("latency_s", "first_token_s", "cost_usd", "started", "request_digest"),
)

_MAX_MARKS: Final = 400
"""Maximum trials of a task that the review page lists next to an item."""

_PORTION: Final = 200


class AssessmentReader:
    """Reads assessments, and caches the names of each run's candidates, which are never removed."""

    def __init__(self) -> None:
        self._names: dict[int, dict[int, str]] = {}
        self._tasks: dict[int, Task] = {}

    def rows(
        self,
        connection: Connection,
        scope: Scope,
        *,
        states: frozenset[AssessmentState] | None,
        trial: TrialKey | None,
        after: int,
        limit: int,
    ) -> list[AssessmentRow]:
        """Return up to `limit` assessments of the scope with keys above `after`, sorted by key."""
        table = schema.assessment
        of_tasks = scope.of_tasks(connection, table)
        key, state = (
            (unsorted(table.c.key), unsorted(table.c.state))
            if of_tasks
            else (table.c.key, table.c.state)
        )
        statement = _joined().where(
            *of_tasks, *scope.where(table), *scope.where_grader(table), key > after
        )
        if states is not None:
            statement = statement.where(state.in_([each.value for each in states]))
        if trial is not None:
            of_trial = select(table.c.key).where(table.c.trial_key == trial)
            # Looked up first: SQLite would read through the whole run, because it assumes that a
            # run is as short as a trial.
            statement = statement.where(
                table.c.key.in_(connection.execute(of_trial).scalars().all())
            )
        rows = connection.execute(statement.order_by(key).limit(limit)).all()
        return [row for row, _ in self._read(connection, rows)]

    def rows_of(self, connection: Connection, keys: Collection[int]) -> list[AssessmentRow]:
        table = schema.assessment
        rows = connection.execute(
            _joined().where(table.c.key.in_(keys)).order_by(table.c.key)
        ).all()
        return [row for row, _ in self._read(connection, rows)]

    def details(self, connection: Connection, keys: Sequence[int]) -> list[AssessmentDetail]:
        """Return assessments with tasks, responses and events, sorted by key; shared data is read
        once.
        """
        rows = connection.execute(
            _joined().where(schema.assessment.c.key.in_(keys)).order_by(schema.assessment.c.key)
        ).all()
        tasks = self._tasks_of(connection, {row.task_body_key for row in rows})
        asked = _asked(connection, {row.trial_key for row in rows})
        attempts = _attempts(connection, {row.trial_key for row in rows})
        events = events_of(connection, [row.key for row in rows])
        calls = _calls(connection, {row.call_key for row in rows if row.call_key is not None})
        return [
            AssessmentDetail(
                row=row,
                judged=judged,
                task=tasks[stored.task_body_key],
                responses=self._responses(connection, stored, tasks[stored.task_body_key], asked),
                attempts=tuple(attempts[stored.trial_key, stored.grader_key, stored.candidate_key]),
                events=tuple(events.get(stored.key, ())),
                call=calls.get(stored.call_key, {}),
            )
            for stored, (row, judged) in zip(rows, self._read(connection, rows), strict=True)
        ]

    def marks(self, connection: Connection, row: AssessmentRow) -> tuple[TrialMark, ...]:
        """Return the trials of the row's task, each with the state of the same grader's assessment;
        reads no texts.
        """
        trial, table, grader = schema.trial, schema.assessment, schema.grader
        place = connection.execute(
            select(trial.c.run_key, trial.c.position).where(trial.c.key == int(row.trial))
        ).one()
        names = self._names_of(connection, place.run_key)
        candidate = next((key for key, name in names.items() if name == row.candidate), None)
        grader_key = (
            select(grader.c.key).where(grader.c.name == plain(row.grader)).scalar_subquery()
        )
        joined = (
            (table.c.trial_key == trial.c.key)
            & (table.c.grader_key == grader_key)
            & table.c.candidate_key.is_not_distinct_from(candidate)
            & (table.c.state != AssessmentState.SUPERSEDED.value)
        )
        rows = connection.execute(
            select(trial.c.k, trial.c.state, table.c.key, table.c.state)
            .select_from(trial.outerjoin(table, joined))
            .where(trial.c.run_key == place.run_key, trial.c.position == place.position)
            .order_by(trial.c.k)
            .limit(_MAX_MARKS)
        )
        return tuple(
            TrialMark(
                k=k,
                state=TrialState(state),
                assessment=None if key is None else AssessmentKey(key),
                assessment_state=None if stands is None else AssessmentState(stands),
            )
            for k, state, key, stands in rows
        )

    def _read(
        self, connection: Connection, rows: Sequence[Row[Any]]
    ) -> list[tuple[AssessmentRow, Assessment]]:
        """Return each assessment with corrections applied, paired with the grader's original."""
        corrected = [row for row in rows if row.state == AssessmentState.CORRECTED]
        numbers = _numbers(connection, corrected)
        bare = _bare_scores(connection, rows)
        read = []
        for row in rows:
            names = self._names_of(connection, row.run_key)
            if row.body_key is None:
                judged = bare_score(names[row.candidate_key], WHOLE, bare.get(row.key))
            else:
                judged = assessment_record(row.content)
            counts = judged
            if row.key in numbers:
                counts = _laid_over(judged, *numbers[row.key], names=names)
            read.append(
                (
                    AssessmentRow(
                        key=AssessmentKey(row.key),
                        trial=TrialKey(row.trial_key),
                        run_id=RunId(row.run_id),
                        suite=row.suite,
                        task=row.task_id,
                        thing=row.thing,
                        k=row.k,
                        of=row.trials,
                        attempt=row.attempt,
                        state=AssessmentState(row.state),
                        grader=row.grader,
                        by_model=row.by_model,
                        candidate=names.get(row.candidate_key),
                        candidates=tuple(judged.scores),
                        assessment=counts,
                        current=row.state != AssessmentState.SUPERSEDED,
                    ),
                    judged,
                )
            )
        return read

    def _names_of(self, connection: Connection, run_key: int) -> dict[int, str]:
        known = self._names.get(run_key)
        if known is None:
            known = self._names[run_key] = candidate_names(connection, run_key)
        return known

    def _tasks_of(self, connection: Connection, keys: set[int]) -> dict[int, Task]:
        """Return tasks by body key.

        Tasks of the previous batch are cached, because the next batch often needs them.
        """
        table = schema.body
        lacking = keys.difference(self._tasks)
        self._tasks = {key: self._tasks[key] for key in keys - lacking}
        for key, content in connection.execute(
            select(table.c.key, table.c.content).where(table.c.key.in_(lacking))
        ):
            self._tasks[key] = task_record(content)
        return self._tasks

    def _responses(
        self,
        connection: Connection,
        row: Row[Any],
        task: Task,
        asked: Mapping[int, Sequence[Row[Any]]],
    ) -> tuple[Response, ...]:
        """Return the responses that this attempt graded, in the run's order of candidates."""
        # A rerun may have called the candidates again since. The responses that this attempt graded
        # have keys below its limit.
        latest = {
            it.candidate_key: it
            for it in asked.get(row.trial_key, ())
            if it.key < row.response_limit
        }
        responses = []
        for key, name in self._names_of(connection, row.run_key).items():
            if row.candidate_key is not None and key != row.candidate_key:
                continue
            snippet = task.snippet_of(name)
            if key in latest:
                response_row = latest[key]
                responses.append(
                    Response(
                        candidate=name,
                        text=bytes_text(response_row.content),
                        truncated=response_row.truncated,
                    )
                )
            elif snippet is not None:
                responses.append(Response(candidate=name, text=snippet.text))
        return tuple(responses)


def _joined() -> Select[Any]:
    table, trial, planned, body = schema.assessment, schema.trial, schema.run_task, schema.body
    run, suite, grader = schema.run, schema.suite, schema.grader
    return (
        select(
            table,
            run.c.id.label("run_id"),
            suite.c.name.label("suite"),
            planned.c.task_id,
            planned.c.thing,
            planned.c.trials,
            planned.c.body_key.label("task_body_key"),
            trial.c.k,
            grader.c.name.label("grader"),
            body.c.content,
        )
        .join(trial, trial.c.key == table.c.trial_key)
        .join(
            planned,
            (planned.c.run_key == table.c.run_key) & (planned.c.task_key == table.c.task_key),
        )
        .join(run, run.c.key == table.c.run_key)
        .join(suite, suite.c.key == run.c.suite_key)
        .join(grader, grader.c.key == table.c.grader_key)
        .join(body, body.c.key == table.c.body_key, isouter=True)
        .where(or_(table.c.body_key.is_(None), body.c.key.is_not(None)))
    )


def _bare_scores(connection: Connection, rows: Sequence[Row[Any]]) -> dict[int, float | None]:
    score, by_run = schema.score, defaultdict[int, list[int]](list)
    for row in rows:
        if row.body_key is None:
            by_run[row.run_key].append(row.key)
    given: dict[int, float | None] = {}
    for run_key, keys in by_run.items():
        of_rows = (score.c.run_key == run_key, score.c.assessment_key.in_(keys))
        given |= dict(
            map(
                tuple,
                connection.execute(
                    select(score.c.assessment_key, score.c.judged_value).where(*of_rows)
                ),
            )
        )
    return given


def _numbers(
    connection: Connection, rows: Sequence[Row[Any]]
) -> dict[int, tuple[dict[int, float | None], dict[tuple[int, str], float | None]]]:
    """Return each corrected assessment's final scores, and its changed grades."""
    if not rows:
        return {}
    scores: dict[int, dict[int, float | None]] = defaultdict(dict)
    grades: dict[int, dict[tuple[int, str], float | None]] = defaultdict(dict)
    score, grade, criterion = schema.score, schema.grade, schema.criterion
    by_run: defaultdict[int, list[int]] = defaultdict(list)
    for row in rows:
        by_run[row.run_key].append(row.key)
    for run_key, keys in by_run.items():
        for key, candidate, value in connection.execute(
            select(score.c.assessment_key, score.c.candidate_key, score.c.value).where(
                score.c.run_key == run_key, score.c.assessment_key.in_(keys)
            )
        ):
            scores[key][candidate] = None if value is None else without_rounding_error(value)
        for key, candidate, name, value in connection.execute(
            select(grade.c.assessment_key, grade.c.candidate_key, criterion.c.name, grade.c.value)
            .join(criterion, criterion.c.key == grade.c.criterion_key)
            .where(
                grade.c.run_key == run_key,
                grade.c.assessment_key.in_(keys),
                # A comparison with NULL is never true in SQL, so a grade that the judge left out
                # needs a separate condition.
                or_(grade.c.value != grade.c.judged_value, grade.c.judged_value.is_(None)),
                grade.c.value.is_not(None),
            )
        ):
            grades[key][candidate, name] = value
    return {key: (of_assessment, grades[key]) for key, of_assessment in scores.items()}


def _laid_over(
    judged: Assessment,
    scores: Mapping[int, float | None],
    grades: Mapping[tuple[int, str], float | None],
    *,
    names: Mapping[int, str],
) -> Assessment:
    """Replace the grader's scores by a person's; raw scores are converted to the same scale."""
    changed = {
        (names[key], criterion): value for (key, criterion), value in grades.items() if key in names
    }
    laid: list[Grade] = []
    for grade in judged.grades:
        value = changed.pop((grade.candidate, grade.criterion), None)
        if value is not None:
            raw = grade.min_score + value * (grade.max_score - grade.min_score)
            grade = replace(grade, score=value, raw_score=raw)
        laid.append(grade)
    for (candidate, criterion), value in changed.items():
        laid.append(
            Grade(
                candidate=candidate,
                criterion=criterion,
                score=value,
                raw_score=value,
                min_score=0.0,
                max_score=1.0,
            )
        )
    by_name = {names[key]: value for key, value in scores.items() if key in names}
    return replace(
        judged,
        grades=tuple(laid),
        scores={name: by_name.get(name, score) for name, score in judged.scores.items()},
    )


def _asked(connection: Connection, trials: set[int]) -> dict[int, list[Row[Any]]]:
    """Return the candidates' responses in these trials, sorted by round."""
    table, body = schema.response, schema.body
    responses: defaultdict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(
        select(
            table.c.key, table.c.trial_key, table.c.candidate_key, table.c.truncated, body.c.content
        )
        .join(body, body.c.key == table.c.body_key)
        .where(table.c.trial_key.in_(trials))
        .order_by(table.c.trial_key, table.c.round)
    ):
        responses[row.trial_key].append(row)
    return responses


def _attempts(
    connection: Connection, trials: set[int]
) -> dict[tuple[int, int, int | None], list[AssessmentKey]]:
    """Return all attempts at each slot (trial, grader, candidate), from first to last."""
    table = schema.assessment
    attempts: defaultdict[tuple[int, int, int | None], list[AssessmentKey]] = defaultdict(list)
    for row in connection.execute(
        select(table.c.key, table.c.trial_key, table.c.grader_key, table.c.candidate_key)
        .where(table.c.trial_key.in_(trials))
        .order_by(table.c.attempt, table.c.key)
    ):
        attempts[row.trial_key, row.grader_key, row.candidate_key].append(AssessmentKey(row.key))
    return attempts


def _calls(connection: Connection, keys: set[int]) -> dict[int, dict[str, JsonValue]]:
    table = schema.call
    shown = (table.c[name] for name in _CALL_SHOWN)
    rows = connection.execute(select(table.c.key, *shown).where(table.c.key.in_(keys)))
    return {row.key: {name: getattr(row, name) for name in _CALL_SHOWN} for row in rows}


def assessment(connection: Connection, key: AssessmentKey, /) -> AssessmentDetail:
    """Return one assessment with all data that a reviewer sees; raises `UnknownName`."""
    for detail in assessments_of(connection, [key]):
        return detail
    raise UnknownName("assessment", shown_assessment(key))


def assessments_of(
    connection: Connection, keys: Sequence[AssessmentKey], /
) -> tuple[AssessmentDetail, ...]:
    """Return several assessments, sorted by key; unknown keys are omitted."""
    return tuple(map(_readable, AssessmentReader().details(connection, keys)))


def as_stored(
    connection: Connection, keys: Sequence[AssessmentKey], /
) -> tuple[AssessmentDetail, ...]:
    """Return several assessments like `assessments_of`, but with workspace reports as stored
    instead of as Markdown.
    """
    return tuple(AssessmentReader().details(connection, keys))


def _readable(detail: AssessmentDetail) -> AssessmentDetail:
    if detail.task.scenario is None:
        return detail
    return replace(
        detail,
        responses=tuple(replace(each, text=readable(each.text)) for each in detail.responses),
    )


def tally(connection: Connection, selection: Selection, /) -> dict[AssessmentState, int]:
    table, scope = schema.run_tally, scope_of(connection, selection)
    sums = select(table.c.state, func.sum(table.c.n)).where(
        table.c.subject == ASSESSMENT, *scope.where_run(table)
    )
    rows = connection.execute(sums.group_by(table.c.state)).all()
    return {AssessmentState(state): int(n) for state, n in rows if n}


def tally_within(
    connection: Connection, selection: Selection, /, *, most: int
) -> dict[AssessmentState, int] | None:
    """Count a selection's assessments by state, limited to its tasks and judges; None if there are
    more than `most`.
    """
    table, scope = schema.assessment, scope_of(connection, selection)
    where = (*scope.where(table), *scope.where_grader(table), *scope.of_tasks(connection, table))
    # Rows up to the limit instead of COUNT, which would read everything that matches.
    states = (
        connection.execute(select(table.c.state).where(true(), *where).limit(most + 1))
        .scalars()
        .all()
    )
    return (
        None
        if len(states) > most
        else {state: n for state in AssessmentState if (n := states.count(state.value))}
    )


class AssessmentQueries(Queries):
    detail = snapshot(assessment)
    details = snapshot(assessments_of)
    as_stored = snapshot(as_stored)
    own_work = snapshot(own_work)
    own_work_waiting = snapshot(own_work_waiting)
    stated_reviewers = snapshot(stated_reviewers)
    tally = snapshot(tally)
    tally_within = snapshot(tally_within)

    def matching(
        self,
        selection: Selection,
        /,
        *,
        states: frozenset[AssessmentState] | None = None,
        trial: TrialKey | None = None,
        after: AssessmentKey | None = None,
        limit: int | None = None,
    ) -> Iterator[AssessmentRow]:
        """Yield assessments with keys above `after`, sorted by key.

        Each batch is a separate read, so decisions can be stored in between.
        """
        with self._database.reading() as connection:
            scope = scope_of(connection, selection)
        if states is not None and not states:
            return
        last, left = -1 if after is None else int(after), limit
        reader = AssessmentReader()
        while left is None or left > 0:
            size = _PORTION if left is None else min(_PORTION, left)
            with self._database.reading() as connection:
                rows = reader.rows(
                    connection, scope, states=states, trial=trial, after=last, limit=size
                )
            yield from rows
            if len(rows) < size:
                return
            last = rows[-1].key
            left = None if left is None else left - len(rows)

    def marks(self, row: AssessmentRow, /) -> tuple[TrialMark, ...]:
        """Return the trials of the row's task, each with the state of the same grader's
        assessment.
        """
        with self._database.reading() as connection:
            return AssessmentReader().marks(connection, row)
