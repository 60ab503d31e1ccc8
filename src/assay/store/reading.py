"""Assessments as people see them: rows and bodies put together, corrections laid over what the grader said."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, or_, select

from assay.domain.assessment import Grade, Response
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import AssessmentKey, RunId, TrialKey
from assay.domain.lifecycle import AssessmentState, TrialState
from assay.domain.selection import AssessmentDetail, AssessmentRow, TrialRow
from assay.store import schema
from assay.store.codec import assessment_record, bytes_text, task_record
from assay.store.events import events_of
from assay.store.names import candidate_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection, Row

    from assay.domain.assessment import Assessment
    from assay.domain.digest import JsonValue
    from assay.domain.suite import Task
    from assay.store.selecting import Scope

_CALL_SHOWN = (
    "role",
    "attempt",
    "number",
    "model",
    "model_version",
    "finish_reason",
    "input_tokens",
    "output_tokens",
    "latency_s",
    "first_token_s",
    "cost_usd",
    "started",
    "request_digest",
)


class AssessmentReader:
    """Reads assessments; remembers each run's candidates, which never lose a name."""

    def __init__(self) -> None:
        self._names: dict[int, dict[int, str]] = {}

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
        """Up to `limit` assessments of the scope with keys above `after`, in the order of keys."""
        table = schema.assessment
        statement = _joined().where(*scope.where(table), *scope.where_grader(table), table.c.key > after)
        if states is not None:
            statement = statement.where(table.c.state.in_([state.value for state in states]))
        if trial is not None:
            statement = statement.where(table.c.trial_key == trial)
        rows = connection.execute(statement.order_by(table.c.key).limit(limit)).all()
        return [row for row, _ in self._read(connection, rows)]

    def detail(self, connection: Connection, key: AssessmentKey) -> AssessmentDetail | None:
        """One assessment with its surroundings, or None where there is none."""
        table = schema.assessment
        found = connection.execute(_joined().where(table.c.key == key)).first()
        if found is None:
            return None
        ((row, judged),) = self._read(connection, [found])
        task = self._task(connection, found)
        return AssessmentDetail(
            row=row,
            judged=judged,
            task=task,
            responses=self._responses(connection, found, task),
            attempts=_attempts(connection, found),
            events=events_of(connection, key),
            call=_call(connection, found.call_key),
        )

    def _read(self, connection: Connection, rows: Sequence[Row[Any]]) -> list[tuple[AssessmentRow, Assessment]]:
        """Rows as they count, each with the assessment as it was judged."""
        corrected = [row for row in rows if row.state == AssessmentState.CORRECTED]
        numbers = _numbers(connection, corrected)
        found = []
        for row in rows:
            names = self._names_of(connection, row.run_key)
            judged = assessment_record(row.content)
            counts = judged
            if row.key in numbers:
                counts = _laid_over(judged, *numbers[row.key], names=names)
            found.append(
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
        return found

    def _names_of(self, connection: Connection, run_key: int) -> dict[int, str]:
        known = self._names.get(run_key)
        if known is None:
            known = self._names[run_key] = candidate_names(connection, run_key)
        return known

    def _task(self, connection: Connection, row: Row[Any]) -> Task:
        body = schema.body
        return task_record(
            connection.execute(select(body.c.content).where(body.c.key == row.task_body_key)).scalar_one()
        )

    def _responses(self, connection: Connection, row: Row[Any], task: Task) -> tuple[Response, ...]:
        """The responses this attempt graded, in the run's order of candidates."""
        table, body = schema.response, schema.body
        asked = connection.execute(
            select(table.c.candidate_key, table.c.truncated, body.c.content)
            .join(body, body.c.key == table.c.body_key)
            .where(table.c.trial_key == row.trial_key, table.c.key < row.response_limit)
            .order_by(table.c.round)
        )
        latest = {key: (truncated, content) for key, truncated, content in asked}
        responses = []
        for key, name in self._names_of(connection, row.run_key).items():
            if row.candidate_key is not None and key != row.candidate_key:
                continue
            snippet = task.snippet_of(name)
            if key in latest:
                truncated, content = latest[key]
                responses.append(Response(candidate=name, text=bytes_text(content), truncated=truncated))
            elif snippet is not None:
                responses.append(Response(candidate=name, text=snippet.text))
        return tuple(responses)


def trial_rows() -> Select[Any]:
    """Trials with what `trial_row` needs."""
    table, planned, suite, run = schema.trial, schema.run_task, schema.suite, schema.run
    return (
        select(table, planned.c.task_id, planned.c.thing, planned.c.trials, suite.c.name, run.c.id)
        .join(planned, (planned.c.run_key == table.c.run_key) & (planned.c.position == table.c.position))
        .join(run, run.c.key == table.c.run_key)
        .join(suite, suite.c.key == run.c.suite_key)
    )


def trial_row(row: Any) -> TrialRow:
    failure = None
    if row.state == TrialState.FAILED:
        failure = Failure(kind=row.fail_kind, fault=Fault(row.fail_fault), detail=row.fail_detail, tries=row.fail_tries)
    return TrialRow(
        key=TrialKey(row.key),
        run_id=RunId(row.id),
        suite=row.name,
        task=row.task_id,
        thing=row.thing,
        k=row.k,
        of=row.trials,
        state=TrialState(row.state),
        failure=failure,
    )


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
        .join(planned, (planned.c.run_key == table.c.run_key) & (planned.c.task_key == table.c.task_key))
        .join(run, run.c.key == table.c.run_key)
        .join(suite, suite.c.key == run.c.suite_key)
        .join(grader, grader.c.key == table.c.grader_key)
        .join(body, body.c.key == table.c.body_key)
    )


def _numbers(
    connection: Connection, rows: Sequence[Row[Any]]
) -> dict[int, tuple[dict[int, float | None], dict[tuple[int, str], float | None]]]:
    """Scores by candidate and changed grades by (candidate, criterion), as they count, of each corrected assessment."""
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
            scores[key][candidate] = value
        for key, candidate, name, value in connection.execute(
            select(grade.c.assessment_key, grade.c.candidate_key, criterion.c.name, grade.c.value)
            .join(criterion, criterion.c.key == grade.c.criterion_key)
            .where(
                grade.c.run_key == run_key,
                grade.c.assessment_key.in_(keys),
                or_(grade.c.value != grade.c.judged_value, grade.c.judged_value.is_(None)),
                grade.c.value.is_not(None),
            )
        ):
            grades[key][candidate, name] = value
    return {key: (its, grades[key]) for key, its in scores.items()}


def _laid_over(
    judged: Assessment,
    scores: Mapping[int, float | None],
    grades: Mapping[tuple[int, str], float | None],
    *,
    names: Mapping[int, str],
) -> Assessment:
    """The assessment with a person's numbers; raw scores follow on the same scale."""
    changed = {(names[key], criterion): value for (key, criterion), value in grades.items() if key in names}
    laid: list[Grade] = []
    for grade in judged.grades:
        value = changed.pop((grade.candidate, grade.criterion), None)
        if value is not None:
            raw = grade.min_score + value * (grade.max_score - grade.min_score)
            grade = replace(grade, score=value, raw_score=raw)
        laid.append(grade)
    for (candidate, criterion), value in changed.items():
        laid.append(
            Grade(candidate=candidate, criterion=criterion, score=value, raw_score=value, min_score=0.0, max_score=1.0)
        )
    by_name = {names[key]: value for key, value in scores.items() if key in names}
    return replace(
        judged, grades=tuple(laid), scores={name: by_name.get(name, score) for name, score in judged.scores.items()}
    )


def _attempts(connection: Connection, row: Row[Any]) -> tuple[AssessmentKey, ...]:
    """All attempts at the row's slot, first to last."""
    table = schema.assessment
    same = table.c.candidate_key.is_(None) if row.candidate_key is None else table.c.candidate_key == row.candidate_key
    keys = connection.execute(
        select(table.c.key)
        .where(table.c.trial_key == row.trial_key, table.c.grader_key == row.grader_key, same)
        .order_by(table.c.attempt, table.c.key)
    ).scalars()
    return tuple(AssessmentKey(key) for key in keys)


def _call(connection: Connection, key: int | None) -> dict[str, JsonValue]:
    if key is None:
        return {}
    table = schema.call
    row = connection.execute(select(*(table.c[name] for name in _CALL_SHOWN)).where(table.c.key == key)).first()
    return {} if row is None else dict(row._mapping)
