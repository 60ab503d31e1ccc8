"""Find a candidate's trials: all trials of a run, except that imported trials may have only some of
the candidates.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import ColumnElement, Connection, Table, exists, or_, select

from assay.domain.identifiers import folded
from assay.domain.lifecycle import TO_COME, TrialState
from assay.store.database import schema
from assay.store.database.name_keys import is_named
from assay.store.queries.filters import Scope

_OPEN: Final = (*(state.value for state in TO_COME), TrialState.FAILED.value)
"""States of trials whose answers may be incomplete; all candidates of the run take part in such
trials.
"""


def runs_of(connection: Connection, scope: Scope, name: str) -> tuple[int, frozenset[int]]:
    """Return (candidate's key or 0 if unknown, keys of the selected runs that include the
    candidate).
    """
    table, own = schema.candidate, schema.run_candidate
    for variant in scope.variants(connection):
        if folded(variant.label) == folded(name):
            return variant.candidate, frozenset(variant.runs).intersection(scope.runs)
    rows = connection.execute(
        select(table.c.key, own.c.run_key)
        .join(own, own.c.candidate_key == table.c.key)
        .where(is_named(table.c.folded, name), *scope.where_run(own))
    ).all()
    return (rows[0].key if rows else 0), frozenset(row.run_key for row in rows)


def takes_part(trial: Table, candidate: int) -> ColumnElement[bool]:
    """Return a condition that uses indexes: the candidate takes part in a trial of its run.

    It does not take part in a finished trial that has answers or scores of other candidates only.
    """
    response, assessment, score = schema.response, schema.assessment, schema.score
    answered = response.c.trial_key == trial.c.key
    same_assessment = (
        score.c.run_key == assessment.c.run_key,
        score.c.assessment_key == assessment.c.key,
    )
    scored = (assessment.c.trial_key == trial.c.key, *same_assessment)
    return or_(
        trial.c.state.in_(_OPEN),
        exists().where(answered, response.c.candidate_key == candidate),
        exists().where(*scored, score.c.candidate_key == candidate),
        ~exists().where(answered) & ~exists().where(*scored),
    )
