"""Read runs' rubrics, and the decided or counting grades on their criteria."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import BigInteger, Connection, and_, cast, func, select

from assay.domain.criteria import BlindGrade, CorrectedGrade, CriterionFacts, GradeCount, RubricUse
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import DECIDED, AssessmentState, RunState
from assay.domain.observations import BlindVerdict, ObservationKind
from assay.domain.selection import Selection
from assay.domain.suite import PERSON
from assay.store.database import schema
from assay.store.database.codec import bytes_json, rubric_record
from assay.store.database.connections import portions
from assay.store.database.name_keys import candidate_names
from assay.store.database.observation_codec import decoded
from assay.store.queries.filters import HIDDEN_STATES, Scope, scope_of
from assay.store.queries.score_columns import COUNTING
from assay.store.queries.snapshots import Queries, snapshot

_BY_PEOPLE: Final = tuple(sorted(state.value for state in DECIDED.values()))
_SAME: Final = 1e-9
_AT_ONCE: Final = 500


def rubric_uses(connection: Connection, after: int, /) -> tuple[int, tuple[RubricUse, ...]]:
    """Return rubrics of judged runs with keys above `after`, oldest first, and the key for the next
    call.

    Runs with an unfinished import are returned by a later call.
    """
    run, suite, body = schema.run, schema.suite, schema.body
    rows = connection.execute(
        select(
            run.c.key,
            run.c.id,
            run.c.started,
            run.c.judges,
            run.c.state,
            suite.c.name,
            body.c.content,
        )
        .join(suite, suite.c.key == run.c.suite_key)
        .join(body, body.c.key == run.c.plan_key)
        .where(run.c.key > after)
        .order_by(run.c.key)
    ).all()
    unfinished = [int(row.key) for row in rows if row.state == RunState.IMPORTING.value]
    newest = min(unfinished) - 1 if unfinished else int(rows[-1].key) if rows else after
    return newest, tuple(
        RubricUse(
            run_key=int(row.key),
            run_id=RunId(row.id),
            suite=row.name,
            started=row.started,
            rubric=rubric_record(bytes_json(row.content)["rubric"]),
        )
        for row in rows
        if row.state not in HIDDEN_STATES and bytes_json(row.judges)
    )


def criterion_facts(connection: Connection, selection: Selection, /) -> CriterionFacts:
    """Collect decisions, corrections, blind grades and counting grades per criterion of the
    selected runs.
    """
    scope = scope_of(connection, selection)
    names = {
        row.key: row.name
        for row in connection.execute(select(schema.criterion.c.key, schema.criterion.c.name)).all()
    }
    decided = _decided(connection, scope)
    keys = frozenset(key for key, _ in decided)
    blind = _verdicts(connection, scope, keys)
    return CriterionFacts(
        counted=_counted(connection, scope, names),
        decided=decided,
        corrected=_corrected(connection, scope, names, keys),
        blind=tuple(_pairs(connection, blind, names)),
        blind_assessments=frozenset(key for key, _, _ in blind),
        graded=_graded(connection, scope, names),
    )


def _counted(connection: Connection, scope: Scope, names: dict[int, str]) -> tuple[GradeCount, ...]:
    table, grade = schema.score, schema.grade
    # Grouped by thousandths in the database: however many grades there are, a criterion yields at
    # most 1,001 rows.
    thousandths = cast(func.round(grade.c.value * 1000), BigInteger).label("thousandths")
    rows: Any = connection.execute(
        select(
            grade.c.criterion_key,
            thousandths,
            func.count().label("n"),
            func.min(grade.c.assessment_key).label("first"),
        )
        .select_from(table)
        .join(grade, _same())
        .where(
            *scope.where(table),
            *scope.where_grader(table),
            *scope.families.hold(table),
            table.c.state.in_(COUNTING),
            grade.c.value.is_not(None),
        )
        .group_by(grade.c.criterion_key, thousandths)
        .order_by(grade.c.criterion_key, thousandths)
    ).all()
    return tuple(
        GradeCount(
            criterion=names[row.criterion_key],
            thousandths=int(row.thousandths),
            n=int(row.n),
            assessment=int(row.first),
        )
        for row in rows
    )


def _decided(connection: Connection, scope: Scope) -> tuple[tuple[int, bool], ...]:
    """Return (assessment key, True if rejected) for judged assessments that people decided, by time
    of the last decision.
    """
    assessment, event, grader = schema.assessment, schema.review_event, schema.grader
    last = func.max(event.c.id)
    rows = connection.execute(
        select(assessment.c.key, assessment.c.state)
        .join(event, event.c.assessment_key == assessment.c.key)
        .join(grader, grader.c.key == assessment.c.grader_key)
        .where(
            *scope.where(assessment),
            assessment.c.by_model,
            assessment.c.state.in_(_BY_PEOPLE),
            grader.c.name != PERSON,
        )
        .group_by(assessment.c.key, assessment.c.state)
        .order_by(last)
    )
    return tuple((int(row.key), row.state == AssessmentState.REJECTED.value) for row in rows)


def _corrected(
    connection: Connection, scope: Scope, names: dict[int, str], decided: frozenset[int]
) -> tuple[CorrectedGrade, ...]:
    assessment, grade = schema.assessment, schema.grade
    change = (grade.c.value - grade.c.judged_value).label("change")
    rows = connection.execute(
        select(grade.c.criterion_key, grade.c.assessment_key, change)
        .select_from(assessment)
        .join(
            grade,
            and_(
                grade.c.run_key == assessment.c.run_key, grade.c.assessment_key == assessment.c.key
            ),
        )
        .where(
            *scope.where(assessment),
            assessment.c.state == AssessmentState.CORRECTED.value,
            func.abs(change) > _SAME,
        )
    )
    return tuple(
        CorrectedGrade(
            criterion=names[row.criterion_key],
            assessment=int(row.assessment_key),
            change=float(row.change),
        )
        for row in rows
        if row.assessment_key in decided
    )


def _graded(connection: Connection, scope: Scope, names: dict[int, str]) -> dict[str, int]:
    assessment, grade, grader = schema.assessment, schema.grade, schema.grader
    rows: Any = connection.execute(
        select(grade.c.criterion_key, func.count(grade.c.assessment_key.distinct()).label("n"))
        .select_from(assessment)
        .join(
            grade,
            and_(
                grade.c.run_key == assessment.c.run_key, grade.c.assessment_key == assessment.c.key
            ),
        )
        .join(grader, grader.c.key == assessment.c.grader_key)
        .where(
            *scope.where(assessment),
            assessment.c.by_model,
            assessment.c.state.in_(_BY_PEOPLE),
            grader.c.name != PERSON,
            grade.c.judged_value.is_not(None),
        )
        .group_by(grade.c.criterion_key)
    ).all()
    return {names[row.criterion_key]: int(row.n) for row in rows}


def _verdicts(
    connection: Connection, scope: Scope, decided: frozenset[int]
) -> tuple[tuple[int, int, list[tuple[str, str, float]]], ...]:
    """Return (assessment, run, grades) of decided assessments that a person graded before seeing
    the judge's grades.
    """
    table = schema.observation
    rows = connection.execute(
        select(table.c.assessment_key, table.c.run_key, table.c.body)
        .where(table.c.kind == ObservationKind.VERDICT.value, *scope.where_run(table))
        .order_by(table.c.id)
    )
    verdicts = {}
    for row in rows:
        # the first person's
        if row.assessment_key in decided and row.assessment_key not in verdicts:
            verdict = decoded(ObservationKind.VERDICT, row.body)
            scores = verdict.scores if isinstance(verdict, BlindVerdict) else {}
            grades = [
                (name, criterion, score) for (name, criterion), score in scores.items() if criterion
            ]
            verdicts[row.assessment_key] = (int(row.assessment_key), int(row.run_key), grades)
    return tuple(verdicts.values())


def _pairs(
    connection: Connection,
    verdicts: tuple[tuple[int, int, list[tuple[str, str, float]]], ...],
    names: dict[int, str],
) -> Iterator[BlindGrade]:
    grade = schema.grade
    by_run: dict[int, list[tuple[int, list[tuple[str, str, float]]]]] = {}
    for key, run_key, grades in verdicts:
        by_run.setdefault(run_key, []).append((key, grades))
    for run_key, mine in by_run.items():
        candidates = {name: key for key, name in candidate_names(connection, run_key).items()}
        judged: dict[tuple[int, int, str], float] = {}
        for some in portions([key for key, _ in mine], _AT_ONCE):
            rows = connection.execute(
                select(
                    grade.c.assessment_key,
                    grade.c.candidate_key,
                    grade.c.criterion_key,
                    grade.c.judged_value,
                ).where(
                    grade.c.run_key == run_key,
                    grade.c.assessment_key.in_(some),
                    grade.c.judged_value.is_not(None),
                )
            )
            judged.update(
                (
                    (row.assessment_key, row.candidate_key, names[row.criterion_key]),
                    float(row.judged_value),
                )
                for row in rows
            )
        for key, grades in mine:
            for name, criterion, value in grades:
                candidate = candidates.get(name, -1)
                judge = judged.get((key, candidate, criterion))
                if judge is not None:
                    yield BlindGrade(
                        criterion=criterion,
                        assessment=key,
                        candidate=candidate,
                        person=value,
                        judge=judge,
                    )


def _same() -> Any:
    table, grade = schema.score, schema.grade
    return and_(
        *(table.c[name] == grade.c[name] for name in ("run_key", "assessment_key", "candidate_key"))
    )


class RubricQueries(Queries):
    """Queries about rubrics and their criteria."""

    uses = snapshot(rubric_uses)
    criterion_facts = snapshot(criterion_facts)
