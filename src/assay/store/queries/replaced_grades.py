"""Find grades that counted until a newer run graded the same responses."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, case, func, select

from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import ReplacedGrades, Selection
from assay.store.database import schema
from assay.store.queries.filters import scope_of
from assay.store.queries.score_columns import COUNTING

_BY_PERSON: Final = (AssessmentState.APPROVED.value, AssessmentState.CORRECTED.value)


def replaced_grades(connection: Connection, selection: Selection, /) -> tuple[ReplacedGrades, ...]:
    """Count, by run, the trials whose grades would count without another selected run's grades of the same responses."""
    scope = scope_of(connection, selection)
    if not scope.families.contested:
        return ()
    score = schema.score
    person = case((score.c.state.in_(_BY_PERSON), score.c.trial_key))
    rows = connection.execute(
        select(score.c.run_key, func.count(score.c.trial_key.distinct()), func.count(person.distinct()))
        .where(
            *scope.where(score),
            *scope.where_grader(score),
            *scope.families.give_way(score),
            score.c.state.in_(COUNTING),
            score.c.value.is_not(None),
        )
        .group_by(score.c.run_key)
    )
    ids = dict(scope.listed.rows)
    return tuple(
        ReplacedGrades(
            run=ids[run],
            newer=tuple(ids[key] for key in scope.families.newer[run]),
            trials=int(n),
            by_person=int(n_person),
            references=any(key in scope.families.references for key in scope.families.newer[run]),
        )
        for run, n, n_person in rows
    )
