"""Count the counted assessments that rest on a person's decision, by the road of the decision.

Three kinds of rows count as imported: those of a decision that an import recorded, those that a
table of scores states as approved or corrected (they have no decision here), and grades that people
gave before the import.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, Table, exists, func, or_, select

from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import DECIDED, AssessmentState
from assay.domain.review import Approvals, Road, Via, road_of
from assay.domain.selection import Selection
from assay.store.database import schema
from assay.store.database.connections import portions
from assay.store.database.counters import ASSESSMENT
from assay.store.queries.filters import Scope, scope_of
from assay.store.queries.score_columns import COUNTING

_RUNS_AT_ONCE: Final = 5_000  # maximum runs in one statement

BY_PEOPLE: Final = tuple(
    sorted(state.value for state in set(DECIDED.values()) if state.value in COUNTING)
)
"""States of counted assessments that a person decided."""


def approvals(connection: Connection, selection: Selection, /) -> Approvals:
    """Count the selection's counted assessments that a person decided or gave, by the road of the
    decision.
    """
    scope = scope_of(connection, selection)
    numbers: Counter[Road] = Counter()
    for via, displayed, n in connection.execute(_decided_here(scope)):
        numbers[road_of(Via(via), displayed=bool(displayed))] += int(n)
    without_decision = _decided(connection, scope) - numbers.total()
    numbers[Road.IMPORTED] += max(0, without_decision) + _given_by_people(connection, scope)
    return Approvals.by_road(numbers)


def approvals_by_run(connection: Connection, runs: Collection[RunId], /) -> dict[RunId, Approvals]:
    """Count each run's assessments that a person decided or gave, as `approvals` does; for lists of
    runs, with three queries.
    """
    table = schema.run
    by_run: dict[RunId, Approvals] = {}
    for some in portions([str(run) for run in runs], _RUNS_AT_ONCE):
        keys = {
            int(key): RunId(run)
            for key, run in connection.execute(
                select(table.c.key, table.c.id).where(table.c.id.in_(some))
            )
        }
        numbers = _numbers_by_run(connection, keys)
        by_run |= {run: Approvals.by_road(numbers.get(key, {})) for key, run in keys.items()}
    return by_run


def scripted(
    connection: Connection, selection: Selection, /, *, limit: int
) -> tuple[AssessmentKey, ...]:
    """Return the first counted assessments that a script decided."""
    scope, event, score = scope_of(connection, selection), schema.review_event, schema.score
    ways = [(via, displayed) for via in Via for displayed in (False, True)]
    by_script = [
        (event.c.via == via.value) & event.c.displayed.is_(displayed)
        for via, displayed in ways
        if road_of(via, displayed=displayed) is Road.SCRIPTED
    ]
    statement = _last_decisions(scope, _counted(scope, BY_PEOPLE), score.c.assessment_key).where(
        or_(*by_script)
    )
    keys = connection.execute(
        statement.distinct().order_by(score.c.assessment_key).limit(limit)
    ).scalars()
    return tuple(AssessmentKey(key) for key in keys)


def unreviewed(connection: Connection, selection: Selection, /) -> int:
    """Count the assessments that count although no person has seen them."""
    scope, tally = scope_of(connection, selection), schema.run_tally
    exempt = AssessmentState.EXEMPT.value
    of_runs = (
        *scope.where_run(tally),
        tally.c.subject == ASSESSMENT,
        tally.c.state == exempt,
        tally.c.n > 0,
    )
    if connection.execute(select(tally.c.run_key).where(*of_runs).limit(1)).first() is None:
        return 0
    return _count(connection, schema.score, _counted(scope, (exempt,)))


def _numbers_by_run(connection: Connection, runs: Collection[int]) -> dict[int, Counter[Road]]:
    tally, item, event, later = (
        schema.run_tally,
        schema.assessment,
        schema.review_event,
        schema.review_event.alias("later"),
    )
    of_runs = (
        tally.c.run_key.in_(runs),
        tally.c.subject == ASSESSMENT,
        tally.c.state.in_(BY_PEOPLE),
    )
    totals = select(tally.c.run_key, func.sum(tally.c.n)).where(*of_runs).group_by(tally.c.run_key)
    decided = {int(key): int(n) for key, n in connection.execute(totals) if n}
    numbers: dict[int, Counter[Road]] = {key: Counter() for key in decided}
    # One seek for each decided assessment of these runs: reading all decisions of the store would
    # be slower for a page of runs.
    last = (
        select(func.max(later.c.id)).where(later.c.assessment_key == item.c.key).scalar_subquery()
    )
    roads = (
        select(item.c.run_key, event.c.via, event.c.displayed, func.count())
        .select_from(item)
        .join(event, event.c.id == last)
        .where(item.c.run_key.in_(decided), item.c.state.in_(BY_PEOPLE))
        .group_by(item.c.run_key, event.c.via, event.c.displayed)
    )
    for key, via, displayed, n in connection.execute(roads) if decided else ():
        numbers[int(key)][road_of(Via(via), displayed=bool(displayed))] += int(n)
    for key, total in decided.items():
        numbers[key][Road.IMPORTED] += max(0, total - numbers[key].total())
    for key, n in _given_by_run(connection, runs).items():
        numbers.setdefault(key, Counter())[Road.IMPORTED] += n
    return numbers


def _given_by_run(connection: Connection, runs: Collection[int]) -> dict[int, int]:
    """Count by run the grades that people gave before the import, as `_given_by_people` does."""
    own, score = schema.run_grader, schema.score
    people = (
        connection.execute(
            select(own.c.run_key).where(own.c.run_key.in_(runs), own.c.reference).distinct()
        )
        .scalars()
        .all()
    )
    if not people:
        return {}
    by_person = exists().where(
        own.c.run_key == score.c.run_key, own.c.grader_key == score.c.grader_key, own.c.reference
    )
    counting = (score.c.state == AssessmentState.NOT_REQUIRED.value, score.c.value.is_not(None))
    statement = (
        select(score.c.run_key, func.count(score.c.assessment_key.distinct()))
        .where(score.c.run_key.in_(people), by_person, *counting)
        .group_by(score.c.run_key)
    )
    return {int(key): int(n) for key, n in connection.execute(statement)}


def replaced_approvals(connection: Connection, scope: Scope) -> dict[int, Approvals]:
    """Count by run the approvals of grades that counted until a newer run graded the same
    responses.
    """
    event, score = schema.review_event, schema.score
    n = func.count(score.c.assessment_key.distinct())
    replaced = _conditions(scope, BY_PEOPLE, scope.families.give_way(score))
    totals = connection.execute(
        select(score.c.run_key, n).where(*replaced).group_by(score.c.run_key)
    )
    decided = {int(key): int(number) for key, number in totals}
    numbers: dict[int, Counter[Road]] = {key: Counter() for key in decided}
    roads = _last_decisions(scope, replaced, score.c.run_key, event.c.via, event.c.displayed, n)
    for key, via, displayed, number in connection.execute(
        roads.group_by(score.c.run_key, event.c.via, event.c.displayed)
    ):
        numbers[int(key)][road_of(Via(via), displayed=bool(displayed))] += int(number)
    for key, total in decided.items():
        numbers[key][Road.IMPORTED] += max(0, total - numbers[key].total())
    return {key: Approvals.by_road(by_road) for key, by_road in numbers.items()}


def _decided_here(scope: Scope) -> Select[Any]:
    """Select the number of decided assessments by the interface of their last decision; reads
    decisions, not all scores.
    """
    event, score = schema.review_event, schema.score
    columns = (event.c.via, event.c.displayed, func.count(score.c.assessment_key.distinct()))
    return _last_decisions(scope, _counted(scope, BY_PEOPLE), *columns).group_by(
        event.c.via, event.c.displayed
    )


def _last_decisions(
    scope: Scope, where: Iterable[ColumnElement[bool]], *columns: ColumnElement[Any]
) -> Select[Any]:
    """Select columns of the last decisions and of the scores on which `where` holds."""
    event, score, later = schema.review_event, schema.score, schema.review_event.alias("later")
    # The newest event of an assessment in these states is the decision: an undo or a rerun would
    # have changed the state.
    last = select(func.max(later.c.id).label("id")).where(*scope.where_key(later.c.run_key))
    newest = last.group_by(later.c.assessment_key).subquery()
    return (
        select(*columns)
        .select_from(event)
        .join(newest, newest.c.id == event.c.id)
        .join(
            score,
            (score.c.run_key == event.c.run_key)
            & (score.c.assessment_key == event.c.assessment_key),
        )
        .where(*where)
    )


def _decided(connection: Connection, scope: Scope) -> int:
    """Count the decided assessments, with or without a decision in this store."""
    tally, score = schema.run_tally, schema.score
    of_runs = (*scope.where_run(tally), tally.c.subject == ASSESSMENT, tally.c.state.in_(BY_PEOPLE))
    total = int(
        connection.execute(
            select(func.coalesce(func.sum(tally.c.n), 0)).where(*of_runs)
        ).scalar_one()
    )
    parts = (scope.graders, scope.criteria)
    whole = (
        not scope.narrows_tasks
        and not scope.families.contested
        and all(part is None for part in parts)
    )
    # from the stored counters, because reading a million scores takes a second
    if whole or not total:
        return total
    return _count(connection, score, _counted(scope, BY_PEOPLE))


def _given_by_people(connection: Connection, scope: Scope) -> int:
    """Count the grades that people gave before the import, with the states that a scorer's grades
    have too.
    """
    own, score = schema.run_grader, schema.score
    people = (
        connection.execute(
            select(own.c.run_key).where(*scope.where_run(own), own.c.reference).distinct()
        )
        .scalars()
        .all()
    )
    if not people:
        return 0
    same = (own.c.run_key == score.c.run_key, own.c.grader_key == score.c.grader_key)
    by_person = exists().where(*same, own.c.reference)
    of_runs = score.c.run_key.in_(people)
    return _count(
        connection,
        score,
        [of_runs, by_person, *_counted(scope, (AssessmentState.NOT_REQUIRED.value,))],
    )


def _count(connection: Connection, score: Table, where: Iterable[ColumnElement[bool]]) -> int:
    return int(
        connection.execute(
            select(func.count(score.c.assessment_key.distinct())).where(*where)
        ).scalar_one()
    )


def _counted(scope: Scope, states: tuple[str, ...]) -> list[ColumnElement[bool]]:
    """Return the conditions on `score` of `score_columns`, for assessments in some of the states
    that count.
    """
    return _conditions(scope, states, scope.families.hold(schema.score))


def _conditions(
    scope: Scope, states: tuple[str, ...], families: Iterable[ColumnElement[bool]]
) -> list[ColumnElement[bool]]:
    score, grade = schema.score, schema.grade
    conditions = [
        *scope.where(score),
        *scope.where_grader(score),
        *families,
        score.c.state.in_(states),
        score.c.value.is_not(None),
    ]
    if scope.criteria is not None:
        of_score = (
            grade.c.run_key == score.c.run_key,
            grade.c.assessment_key == score.c.assessment_key,
        )
        on_criterion = grade.c.criterion_key.in_(scope.criteria)
        conditions.append(exists().where(*of_score, on_criterion, grade.c.value.is_not(None)))
    return conditions
