"""Find grades that counted until a newer run graded the same responses."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from assay.domain.review import Approvals
from assay.domain.selection import ReplacedGrades, Selection
from assay.store.database import schema
from assay.store.queries.approvals import replaced_approvals
from assay.store.queries.filters import scope_of
from assay.store.queries.score_columns import COUNTING


def replaced_grades(connection: Connection, selection: Selection, /) -> tuple[ReplacedGrades, ...]:
    """Count, by run, the trials whose grades would count without another selected run's grades of
    the same responses.
    """
    scope = scope_of(connection, selection)
    if not scope.families.contested:
        return ()
    score = schema.score
    rows = connection.execute(
        select(score.c.run_key, func.count(score.c.trial_key.distinct()))
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
    approved = replaced_approvals(connection, scope)
    return tuple(
        ReplacedGrades(
            run=ids[run],
            newer=tuple(ids[key] for key in scope.families.newer[run]),
            trials=int(n),
            approvals=approved.get(run, Approvals()),
            references=any(key in scope.families.references for key in scope.families.newer[run]),
        )
        for run, n in rows
    )
