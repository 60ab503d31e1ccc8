"""Totals of a run by candidate: how many answers were scored, how they scored, and how many were
cut off.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, func, select, true

from assay.domain.first_look import CandidateTotals
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import COUNTS
from assay.store.database import schema
from assay.store.database.name_keys import candidate_names
from assay.store.queries.plans import run_key_of

_COUNTED: Final = [state.value for state in COUNTS]


def candidate_totals(connection: Connection, run: RunId, /) -> tuple[CandidateTotals, ...]:
    """Return the totals of a run's candidates in the order of their names' keys; only scores that
    count are summarised.
    """
    run_key = run_key_of(connection, run)
    score, response, trial = schema.score, schema.response, schema.trial
    scored = {
        row.candidate_key: row
        for row in connection.execute(
            select(
                score.c.candidate_key,
                func.count().label("scores"),
                func.min(score.c.value).label("lowest"),
                func.max(score.c.value).label("highest"),
            )
            .where(
                score.c.run_key == run_key, score.c.state.in_(_COUNTED), score.c.value.is_not(None)
            )
            .group_by(score.c.candidate_key)
        )
    }
    answered = {
        row.candidate_key: row
        for row in connection.execute(
            select(
                response.c.candidate_key,
                func.count().label("answers"),
                func.count().filter(response.c.truncated == true()).label("cut_off"),
            )
            .join(trial, trial.c.key == response.c.trial_key)
            .where(trial.c.run_key == run_key)
            .group_by(response.c.candidate_key)
        )
    }
    totals = []
    for key, name in candidate_names(connection, run_key).items():
        scores, answers = scored.get(key), answered.get(key)
        totals.append(
            CandidateTotals(
                candidate=name,
                scores=0 if scores is None else scores.scores,
                lowest=None if scores is None else scores.lowest,
                highest=None if scores is None else scores.highest,
                answers=0 if answers is None else answers.answers,
                cut_off=0 if answers is None else answers.cut_off,
            )
        )
    return tuple(totals)
