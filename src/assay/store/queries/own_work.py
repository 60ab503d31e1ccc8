"""Find the assessments that grade a reviewer's own work, which this reviewer may not decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import AssessmentState
from assay.store.database import schema
from assay.store.database.connections import portions
from assay.store.database.name_keys import candidates_called
from assay.store.queries.filters import scope_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from assay.domain.selection import Selection

_AT_ONCE = 5_000


def own_work_among(
    connection: Connection, keys: Collection[AssessmentKey], candidates: Collection[int]
) -> frozenset[AssessmentKey]:
    """Return those of the assessments that grade one of these candidates."""
    table = schema.score
    own: set[AssessmentKey] = set()
    for some in portions([int(key) for key in keys], _AT_ONCE):
        graded = (table.c.assessment_key.in_(some), table.c.candidate_key.in_(candidates))
        own.update(
            map(
                AssessmentKey,
                connection.execute(select(table.c.assessment_key).where(*graded)).scalars(),
            )
        )
    return frozenset(own)


def own_work(
    connection: Connection, keys: Collection[AssessmentKey], reviewer: str, /
) -> frozenset[AssessmentKey]:
    """Return those of the assessments that grade a candidate with the reviewer's name."""
    candidates = candidates_called(connection, reviewer)
    return own_work_among(connection, keys, candidates) if candidates else frozenset()


def own_work_waiting(
    connection: Connection, selection: Selection, reviewer: str, /
) -> dict[AssessmentKey, RunId]:
    """Return the pending assessments of a selection that grade the reviewer's own work, with their
    runs.
    """
    candidates = candidates_called(connection, reviewer)
    if not candidates:
        return {}
    item, score, run = schema.assessment, schema.score, schema.run
    scope = scope_of(connection, selection)
    rows = connection.execute(
        select(item.c.key, run.c.id)
        .join(score, (score.c.run_key == item.c.run_key) & (score.c.assessment_key == item.c.key))
        .join(run, run.c.key == item.c.run_key)
        .where(
            item.c.state == AssessmentState.PENDING.value,
            score.c.candidate_key.in_(candidates),
            *scope.where(item),
            *scope.where_grader(item),
            *scope.of_tasks(connection, item),
        )
    )
    return {AssessmentKey(key): RunId(run_id) for key, run_id in rows}
