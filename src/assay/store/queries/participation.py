"""Find a candidate's trials: all trials of a run, unless an imported file names only some candidates per trial."""

from __future__ import annotations

from typing import Final

from sqlalchemy import ColumnElement, Connection, Table, exists, or_, select

from assay.domain.identifiers import folded
from assay.domain.lifecycle import TO_COME, TrialState
from assay.store.database import schema
from assay.store.queries.filters import Scope

_OPEN: Final = (*(state.value for state in TO_COME), TrialState.FAILED.value)
"""States of trials whose answers may still be incomplete; every candidate of the run is considered to take part in them."""


def runs_of(connection: Connection, scope: Scope, name: str) -> tuple[int, frozenset[int]]:
    """Return a candidate's key (0 if the name is unknown) and the selected runs in which the candidate takes part."""
    table, own = schema.candidate, schema.run_candidate
    for variant in scope.variants(connection):
        if folded(variant.label) == folded(name):
            return variant.candidate, frozenset(variant.runs).intersection(scope.runs)
    rows = connection.execute(
        select(table.c.key, own.c.run_key)
        .join(own, own.c.candidate_key == table.c.key)
        .where(table.c.folded == folded(name), *scope.where_run(own))
    ).all()
    return (rows[0].key if rows else 0), frozenset(row.run_key for row in rows)


def takes_part(trial: Table, candidate: int) -> ColumnElement[bool]:
    """True if the candidate takes part in a trial of its run, as a condition that uses indexes on the trial.

    It does not take part if the trial is done and has answers or scores of other candidates but not of this one.
    """
    response, assessment, score = schema.response, schema.assessment, schema.score
    answered = response.c.trial_key == trial.c.key
    same_assessment = (score.c.run_key == assessment.c.run_key, score.c.assessment_key == assessment.c.key)
    scored = (assessment.c.trial_key == trial.c.key, *same_assessment)
    return or_(
        trial.c.state.in_(_OPEN),
        exists().where(answered, response.c.candidate_key == candidate),
        exists().where(*scored, score.c.candidate_key == candidate),
        ~exists().where(answered) & ~exists().where(*scored),
    )
