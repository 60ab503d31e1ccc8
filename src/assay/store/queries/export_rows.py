"""Rows for exports: scores, whole assessments and review events, each from one snapshot.

A score counts under the same condition as in `score_columns`, so an exported table reproduces the
statistics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, case, exists, func, select

from assay.domain.errors import InputError
from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import AssessmentState
from assay.domain.review import ReviewEvent
from assay.domain.rounding import without_rounding_error
from assay.domain.selection import AssessmentDetail, AssessmentRow, NotCounted, ScoreRow, Selection
from assay.store.database import schema
from assay.store.event_chain import event_of
from assay.store.queries.assessments import AssessmentReader
from assay.store.queries.exact_means import weighted
from assay.store.queries.filters import Scope, scope_of
from assay.store.queries.score_columns import COUNTING, labels_without_texts
from assay.store.queries.snapshots import Queries, snapshot, streamed

_ROWS_AT_ONCE: Final = 2000
_ASSESSMENTS_AT_ONCE: Final = 100

_WHY: Final = {
    AssessmentState.PENDING: NotCounted.PENDING,
    AssessmentState.REJECTED: NotCounted.REJECTED,
    AssessmentState.SUPERSEDED: NotCounted.SUPERSEDED,
    AssessmentState.LEFT_OUT: NotCounted.LEFT_OUT,
}


def score_rows(
    connection: Connection, selection: Selection, /, *, everything: bool = False
) -> Iterator[ScoreRow]:
    """Yield scores of one run after another, oldest run first, in the order of assessments.

    Only scores that count are included, unless `everything` is True.
    """
    from assay.analysis.tables import names_of_tasks  # NumPy, which is not needed to open a store

    scope = scope_of(connection, selection)
    if scope.verdict:
        remedy = "Use `assay export evaluations`, which has the verdict of each response."
        raise InputError(
            "--criterion", "is verdict, which this export does not contain.", remedy=remedy
        )
    labels, task_keys = labels_without_texts(connection, scope)
    tasks = {
        key: (label, name)
        for key, label, name in zip(task_keys, labels, names_of_tasks(labels), strict=True)
    }
    candidates = _names_by_run(connection, scope)
    graders = _names(connection, schema.grader)
    criterion = _criterion_names(connection, scope)
    before = _trials_before(connection, scope)
    for run_key, run_id in zip(scope.runs, scope.ids, strict=True):
        rows = connection.execute(
            _scores(scope, run_key, everything=everything),
            execution_options={"yield_per": _ROWS_AT_ONCE},
        )
        for row in rows:
            label, name = tasks[row.task_key]
            yield ScoreRow(
                assessment=AssessmentKey(row.assessment_key),
                run_id=run_id,
                suite=label.suite,
                task=name,
                task_id=label.task,
                thing=label.thing,
                weight=label.weight,
                candidate=candidates[run_key, row.candidate_key],
                k=row.k,
                trial=before.get((run_key, row.task_key), 0) + row.k,
                attempt=row.attempt,
                score=None if row.value is None else without_rounding_error(row.value),
                criterion=criterion,
                judge=graders[row.grader_key],
                by_model=row.by_model,
                state=AssessmentState(row.state),
                joint=row.joint,
                family=label.family,
                not_counted=None if row.counts else _why(AssessmentState(row.state), row.value),
            )
        rows.close()


def candidate_names(
    connection: Connection, selection: Selection, /
) -> dict[tuple[RunId, str], str]:
    """Return candidates' names in statistics, by run and by the name in the run.

    The two names differ after a rename, or if runs used one name for several models.
    """
    scope = scope_of(connection, selection)
    names, ids, own = (
        _names_by_run(connection, scope),
        dict(zip(scope.runs, scope.ids, strict=True)),
        schema.run_candidate,
    )
    rows = connection.execute(
        select(own.c.run_key, own.c.candidate_key, own.c.name).where(*scope.where_run(own))
    )
    return {(ids[row.run_key], row.name): names[row.run_key, row.candidate_key] for row in rows}


def details(
    connection: Connection, selection: Selection, /, *, everything: bool = False
) -> Iterator[tuple[AssessmentDetail, NotCounted | None]]:
    """Yield assessments with responses, reviews and calls, each with the reason why it does not
    count (None if it counts).
    """
    scope = scope_of(connection, selection)
    reader = AssessmentReader()
    table = schema.assessment
    for run_key in scope.runs:
        after = -1
        while True:
            counts = _counts(scope)
            statement = (
                select(table.c.key, case((counts, 1), else_=0).label("counts"))
                .where(
                    *scope.where(table),
                    *scope.where_grader(table),
                    *_of_criteria(scope),
                    table.c.run_key == run_key,
                    table.c.key > after,
                )
                .order_by(table.c.key)
                .limit(_ASSESSMENTS_AT_ONCE)
            )
            if not everything:
                statement = statement.where(counts)
            counted = {row.key: bool(row.counts) for row in connection.execute(statement)}
            for detail in reader.details(connection, list(counted)):
                scores = (
                    score for score in detail.row.assessment.scores.values() if score is not None
                )
                yield (
                    detail,
                    None if counted[detail.row.key] else _why(detail.row.state, next(scores, None)),
                )
            if len(counted) < _ASSESSMENTS_AT_ONCE:
                break
            after = max(counted)


def events(
    connection: Connection, selection: Selection, /
) -> Iterator[tuple[AssessmentRow, ReviewEvent]]:
    """Yield the review events of the selected assessments, oldest first, each with its
    assessment.
    """
    scope = scope_of(connection, selection)
    table, assessment = schema.review_event, schema.assessment
    reader = AssessmentReader()
    after = -1
    while True:
        rows = connection.execute(
            select(table)
            .join(assessment, assessment.c.key == table.c.assessment_key)
            .where(
                *scope.where(assessment),
                *scope.where_grader(assessment),
                *_of_criteria(scope),
                table.c.id > after,
            )
            .order_by(table.c.id)
            .limit(_ASSESSMENTS_AT_ONCE)
        ).all()
        about = {
            row.key: row for row in reader.rows_of(connection, {row.assessment_key for row in rows})
        }
        for row in rows:
            yield about[row.assessment_key], event_of(row)
        if len(rows) < _ASSESSMENTS_AT_ONCE:
            return
        after = rows[-1].id


def _scores(scope: Scope, run_key: int, *, everything: bool) -> Select[Any]:
    table, assessment, trial = schema.score, schema.assessment, schema.trial
    value: ColumnElement[Any] = table.c.value
    if scope.criteria is not None:
        grade = schema.grade
        value = (
            select(weighted(grade.c.value, grade.c.weight))
            .where(
                grade.c.run_key == table.c.run_key,
                grade.c.assessment_key == table.c.assessment_key,
                grade.c.candidate_key == table.c.candidate_key,
                grade.c.criterion_key.in_(scope.criteria),
            )
            .correlate(table)
            .scalar_subquery()
        )
    counts = and_(table.c.state.in_(COUNTING), value.is_not(None), *scope.families.hold(table))
    statement = (
        select(
            table.c.assessment_key,
            table.c.task_key,
            table.c.candidate_key,
            table.c.grader_key,
            table.c.state,
            table.c.joint,
            value.label("value"),
            assessment.c.attempt,
            assessment.c.by_model,
            trial.c.k,
            case((counts, 1), else_=0).label("counts"),
        )
        .join(assessment, assessment.c.key == table.c.assessment_key)
        .join(trial, trial.c.key == table.c.trial_key)
        .where(*scope.where(table), *scope.where_grader(table), table.c.run_key == run_key)
        .order_by(table.c.assessment_key, table.c.candidate_key)
    )
    return statement if everything else statement.where(counts)


def _counts(scope: Scope) -> ColumnElement[bool]:
    table, assessment = schema.score, schema.assessment
    return and_(
        assessment.c.state.in_(COUNTING),
        exists().where(
            table.c.run_key == assessment.c.run_key,
            table.c.assessment_key == assessment.c.key,
            table.c.value.is_not(None),
            *scope.families.hold(table),
        ),
    )


def _of_criteria(scope: Scope) -> list[ColumnElement[bool]]:
    if scope.criteria is None:
        return []
    grade, assessment = schema.grade, schema.assessment
    return [
        exists().where(
            grade.c.run_key == assessment.c.run_key,
            grade.c.assessment_key == assessment.c.key,
            grade.c.criterion_key.in_(scope.criteria),
        )
    ]


def _why(state: AssessmentState, value: float | None) -> NotCounted:
    unscored = NotCounted.NO_SCORE if value is None else NotCounted.GRADED_ANEW
    return _WHY.get(state, unscored)


def _names(connection: Connection, table: Table) -> dict[int, str]:
    return {row.key: row.name for row in connection.execute(select(table.c.key, table.c.name))}


def _names_by_run(connection: Connection, scope: Scope) -> dict[tuple[int, int], str]:
    own = schema.run_candidate
    names = _names(connection, schema.candidate)
    rows = connection.execute(
        select(own.c.run_key, own.c.candidate_key).where(*scope.where_run(own))
    )
    current = {(row.run_key, row.candidate_key): names[row.candidate_key] for row in rows}
    apart = {
        (run, variant.candidate): variant.label
        for variant in scope.variants(connection)
        for run in variant.runs
    }
    return current | apart


def _criterion_names(connection: Connection, scope: Scope) -> str:
    if scope.criteria is None:
        return ""
    table = schema.criterion
    rows = connection.execute(
        select(table.c.name).where(table.c.key.in_(scope.criteria)).order_by(table.c.key)
    )
    return " + ".join(rows.scalars())


def _trials_before(connection: Connection, scope: Scope) -> dict[tuple[int, int], int]:
    """Count the trials planned in earlier exported runs by (run, task), for tasks in several runs.

    Equal trial numbers in different runs mean different trials. A table without a run column
    therefore continues the numbering from one run to the next.
    """
    table = schema.run_task
    shared = (
        select(table.c.task_key)
        .where(*scope.where(table))
        .group_by(table.c.task_key)
        .having(func.count() > 1)
        .scalar_subquery()
    )
    rows = connection.execute(
        select(table.c.run_key, table.c.task_key, table.c.trials).where(
            *scope.where(table), table.c.task_key.in_(shared)
        )
    ).all()
    order = {run_key: place for place, run_key in enumerate(scope.runs)}
    counted: defaultdict[int, int] = defaultdict(int)
    before = {}
    for run_key, task_key, trials in sorted(rows, key=lambda row: order[row.run_key]):
        before[run_key, task_key] = counted[task_key]
        counted[task_key] += trials
    return before


class ExportQueries(Queries):
    """Export queries, which stream their rows."""

    candidate_names = snapshot(candidate_names)
    score_rows = streamed(score_rows)
    assessments = streamed(details)
    events = streamed(events)
