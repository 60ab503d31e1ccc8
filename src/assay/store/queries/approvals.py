"""Count the counted assessments that rest on a person's decision, by the road of the decision.

Three kinds of rows count as imported: those of a decision that an import recorded, those that a table of scores states as
approved or corrected (they have no decision here), and grades that people gave before the import.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, Table, exists, func, or_, select

from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import DECIDED, AssessmentState
from assay.domain.review import Approvals, Road, Via, road_of
from assay.domain.selection import Selection
from assay.store.database import schema
from assay.store.database.counters import ASSESSMENT
from assay.store.queries.filters import Scope, scope_of
from assay.store.queries.score_columns import COUNTING

BY_PEOPLE: Final = tuple(sorted(state.value for state in set(DECIDED.values()) if state.value in COUNTING))
"""States of counted assessments that a person decided."""


def approvals(connection: Connection, selection: Selection, /) -> Approvals:
    """Count the selection's counted assessments that a person decided or gave, by the road of the decision."""
    scope = scope_of(connection, selection)
    numbers: Counter[Road] = Counter()
    for via, displayed, n in connection.execute(_decided_here(scope)):
        numbers[road_of(Via(via), displayed=bool(displayed))] += int(n)
    without_decision = _decided(connection, scope) - numbers.total()
    numbers[Road.IMPORTED] += max(0, without_decision) + _given_by_people(connection, scope)
    return Approvals.by_road(numbers)


def scripted(connection: Connection, selection: Selection, /, *, limit: int) -> tuple[AssessmentKey, ...]:
    """Return the first counted assessments that a script decided."""
    event, score = schema.review_event, schema.score
    ways = [(via, displayed) for via in Via for displayed in (False, True)]
    by_script = [
        (event.c.via == via.value) & event.c.displayed.is_(displayed)
        for via, displayed in ways
        if road_of(via, displayed=displayed) is Road.SCRIPTED
    ]
    statement = _last_decisions(scope_of(connection, selection), score.c.assessment_key).where(or_(*by_script))
    keys = connection.execute(statement.distinct().order_by(score.c.assessment_key).limit(limit)).scalars()
    return tuple(AssessmentKey(key) for key in keys)


def unreviewed(connection: Connection, selection: Selection, /) -> int:
    """Count the assessments that count although no person has seen them."""
    scope, tally = scope_of(connection, selection), schema.run_tally
    exempt = AssessmentState.EXEMPT.value
    of_runs = (*scope.where_run(tally), tally.c.subject == ASSESSMENT, tally.c.state == exempt, tally.c.n > 0)
    if connection.execute(select(tally.c.run_key).where(*of_runs).limit(1)).first() is None:
        return 0
    return _count(connection, schema.score, _counted(scope, (exempt,)))


def _decided_here(scope: Scope) -> Select[Any]:
    """Select the number of decided assessments by the interface of their last decision; reads decisions, not all scores."""
    event, score = schema.review_event, schema.score
    columns = (event.c.via, event.c.displayed, func.count(score.c.assessment_key.distinct()))
    return _last_decisions(scope, *columns).group_by(event.c.via, event.c.displayed)


def _last_decisions(scope: Scope, *columns: ColumnElement[Any]) -> Select[Any]:
    """Select columns of the decisions and scores of counted assessments that a person decided."""
    event, score, later = schema.review_event, schema.score, schema.review_event.alias("later")
    # The newest event of an assessment in these states is the decision: an undo or a rerun would have changed the state.
    last = select(func.max(later.c.id).label("id")).where(*scope.where_key(later.c.run_key))
    newest = last.group_by(later.c.assessment_key).subquery()
    return (
        select(*columns)
        .select_from(event)
        .join(newest, newest.c.id == event.c.id)
        .join(score, (score.c.run_key == event.c.run_key) & (score.c.assessment_key == event.c.assessment_key))
        .where(*_counted(scope, BY_PEOPLE))
    )


def _decided(connection: Connection, scope: Scope) -> int:
    """Count the decided assessments, with or without a decision in this store."""
    tally, score = schema.run_tally, schema.score
    of_runs = (*scope.where_run(tally), tally.c.subject == ASSESSMENT, tally.c.state.in_(BY_PEOPLE))
    total = int(connection.execute(select(func.coalesce(func.sum(tally.c.n), 0)).where(*of_runs)).scalar_one())
    parts = (scope.graders, scope.criteria)
    whole = not scope.narrows_tasks and not scope.families.contested and all(part is None for part in parts)
    if whole or not total:  # from the stored counters, because reading a million scores takes a second
        return total
    return _count(connection, score, _counted(scope, BY_PEOPLE))


def _given_by_people(connection: Connection, scope: Scope) -> int:
    """Count the grades that people gave before the import, with the states that a scorer's grades have too."""
    own, score = schema.run_grader, schema.score
    people = connection.execute(select(own.c.run_key).where(*scope.where_run(own), own.c.reference).distinct()).scalars().all()
    if not people:
        return 0
    same = (own.c.run_key == score.c.run_key, own.c.grader_key == score.c.grader_key)
    by_person = exists().where(*same, own.c.reference)
    of_runs = score.c.run_key.in_(people)
    return _count(connection, score, [of_runs, by_person, *_counted(scope, (AssessmentState.NOT_REQUIRED.value,))])


def _count(connection: Connection, score: Table, where: Iterable[ColumnElement[bool]]) -> int:
    return int(connection.execute(select(func.count(score.c.assessment_key.distinct())).where(*where)).scalar_one())


def _counted(scope: Scope, states: tuple[str, ...]) -> list[ColumnElement[bool]]:
    """Return the conditions on `score` of `score_columns`, for assessments in some of the states that count."""
    score, grade = schema.score, schema.grade
    conditions = [
        *scope.where(score),
        *scope.where_grader(score),
        *scope.families.hold(score),
        score.c.state.in_(states),
        score.c.value.is_not(None),
    ]
    if scope.criteria is not None:
        of_score = (grade.c.run_key == score.c.run_key, grade.c.assessment_key == score.c.assessment_key)
        on_criterion = grade.c.criterion_key.in_(scope.criteria)
        conditions.append(exists().where(*of_score, on_criterion, grade.c.value.is_not(None)))
    return conditions
