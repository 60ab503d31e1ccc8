"""Read all assessments in any state as NumPy columns, for statistics about reviewing only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Double, Select, and_, case, cast, func, select

from assay.analysis.columns import STATES, ReviewColumns
from assay.domain.errors import StoreError
from assay.store.database import schema
from assay.store.database.connections import portions
from assay.store.queries.exact_means import weighted
from assay.store.queries.filters import Scope, scope_of
from assay.store.queries.score_columns import (
    candidates_of,
    codes_of,
    judges_of,
    labels_of,
    matrix_of,
    one_criterion,
    scores_apart,
    without_rounding_errors,
)
from assay.store.queries.variants import Variant, split_keys
from assay.store.queries.verdict_columns import reviewed_verdicts

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np
    from numpy.typing import NDArray

    from assay.domain.identifiers import TrialKey
    from assay.domain.selection import Selection

_KEYS_AT_ONCE: Final = 5_000
"""Maximum keys in one statement; databases accept about ten thousand."""


def review_columns(
    connection: Connection, selection: Selection, /, *, trials: Collection[TrialKey] | None = None
) -> ReviewColumns:
    """Read all assessments of a selection, with the grader's original score and the final score.

    With `trials`, only these trials' assessments are read, by index. The labels are then those of
    their tasks, `planned` is 0, and no verdicts are read.
    """
    import numpy as np

    scope = scope_of(connection, selection)
    of_trials = None if trials is None else _tasks_of(connection, trials)
    labels, task_keys = labels_of(connection, scope, of_trials)
    variants = scope.variants(connection)
    candidates = candidates_of(connection, scope, variants)
    judges = judges_of(connection, scope)
    rows = (
        scores_apart(connection, _reviews(scope), variants)
        if trials is None
        else _reviews_of(connection, scope, trials, variants)
    )
    if np.isnan(rows[:, 6]).any():
        problem = "is damaged: an assessment has a state that does not exist."
        raise StoreError(
            "store",
            problem,
            remedy="Restore it from a backup; `assay doctor --check-store` lists the damage.",
        )
    order = np.lexsort((rows[:, 1], rows[:, 4]))
    rows = rows[order]
    number, run = (None, None) if trials is not None else _numbers(connection, scope, rows[:, 3])
    return ReviewColumns(
        tasks=labels,
        candidates=tuple(candidates.values()),
        judges=tuple(judges.values()),
        task=codes_of(rows[:, 0], task_keys),
        candidate=codes_of(rows[:, 1], tuple(candidates)),
        judge=codes_of(rows[:, 2], tuple(judges)),
        trial=rows[:, 3].astype(np.int64),
        assessment=rows[:, 4].astype(np.int64),
        attempt=rows[:, 5].astype(np.int64),
        state=rows[:, 6].astype(np.int64),
        judged=without_rounding_errors(np.where(rows[:, 7] < 0, np.nan, rows[:, 7])),
        final=without_rounding_errors(np.where(rows[:, 8] < 0, np.nan, rows[:, 8])),
        joint=rows[:, 9] != 0,
        by_model=rows[:, 10] != 0,
        planned=_planned(connection, scope, tuple(candidates), task_keys, variants)
        if trials is None
        else np.zeros((len(candidates), len(task_keys)), dtype=np.int64),
        place=rows[:, 11].astype(np.int64),
        number=number,
        run=run,
        verdicts=None
        if trials is not None
        else reviewed_verdicts(
            connection,
            scope,
            tasks=task_keys,
            candidates=tuple(candidates),
            judges=tuple(judges),
            variants=variants,
        ),
    )


def _reviews(scope: Scope) -> Select[Any]:
    """Select all rows of `ReviewColumns`; -1 represents a missing score."""
    table, assessment, grade = schema.score, schema.assessment, schema.grade
    state = case({state.value: code for code, state in enumerate(STATES)}, value=assessment.c.state)
    first = (
        table.c.task_key,
        table.c.candidate_key,
        table.c.grader_key,
        table.c.trial_key,
        assessment.c.key,
        assessment.c.attempt,
    )
    last = (table.c.joint, assessment.c.by_model, func.coalesce(table.c.place, 0))
    where = (*scope.where(table), *scope.where_grader(table), *scope.families.hold(table))
    if scope.criteria is None:
        scores = (func.coalesce(table.c.judged_value, -1.0), func.coalesce(table.c.value, -1.0))
        return (
            select(*first, state, *scores, *last)
            .join(assessment, assessment.c.key == table.c.assessment_key)
            .where(*where)
        )
    own = (table.c.run_key, table.c.assessment_key, table.c.candidate_key)
    same = and_(*(column == grade.c[column.name] for column in own))
    values = (grade.c.judged_value, grade.c.value)
    over = (
        values
        if one_criterion(scope)
        else tuple(cast(weighted(value, grade.c.weight), Double) for value in values)
    )
    rows = (
        select(*first, state, *(func.coalesce(score, -1.0) for score in over), *last)
        .join(assessment, assessment.c.key == table.c.assessment_key)
        .join(grade, same)
        .where(*where, grade.c.criterion_key.in_(scope.criteria))
    )
    if one_criterion(scope):
        return rows
    return rows.group_by(table.c.run_key, table.c.assessment_key, *first, assessment.c.state, *last)


def _reviews_of(
    connection: Connection, scope: Scope, trials: Collection[int], variants: tuple[Variant, ...]
) -> NDArray[np.float64]:
    import numpy as np

    assessment, statement = schema.assessment, _reviews(scope)
    parts = []
    # Keys are looked up first: joined to the trials, SQLite reads through the whole run.
    for some in portions(trials, _KEYS_AT_ONCE):
        keys = (
            connection.execute(select(assessment.c.key).where(assessment.c.trial_key.in_(some)))
            .scalars()
            .all()
        )
        parts += [
            scores_apart(
                connection, statement.where(schema.score.c.assessment_key.in_(part)), variants
            )
            for part in portions(keys, _KEYS_AT_ONCE)
        ]
    return np.concatenate([np.empty((0, len(statement.selected_columns))), *parts])


def _tasks_of(connection: Connection, trials: Collection[int]) -> list[int]:
    table = schema.trial
    tasks: set[int] = set()
    for keys in portions(trials, _KEYS_AT_ONCE):
        tasks.update(
            connection.execute(
                select(table.c.task_key).where(table.c.key.in_(keys)).distinct()
            ).scalars()
        )
    return sorted(tasks)


def _numbers(
    connection: Connection, scope: Scope, keys: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each trial's number within its task, and the number of its run, for the trial keys in
    `keys`.

    A separate query reads them, because there are fewer trials than scores.
    """
    import numpy as np

    table = schema.trial
    columns = (table.c.key, table.c.k, table.c.run_key)
    rows = matrix_of(connection, select(*columns).where(*scope.where(table)).order_by(table.c.key))
    if not len(rows):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    at = np.searchsorted(rows[:, 0], keys)
    return rows[at, 1].astype(np.int64), np.unique(rows[:, 2], return_inverse=True)[1].reshape(-1)[
        at
    ].astype(np.int64)


def _planned(
    connection: Connection,
    scope: Scope,
    candidates: tuple[int, ...],
    tasks: tuple[int, ...],
    variants: tuple[Variant, ...],
) -> NDArray[np.int64]:
    import numpy as np

    task, trial, own = schema.run_task, schema.trial, schema.run_candidate
    # if several trials grade the same responses, only one counts as planned
    if scope.families.contested:
        counted = (
            select(own.c.candidate_key, trial.c.task_key, func.count())
            .join(own, own.c.run_key == trial.c.run_key)
            .where(*scope.where(trial), *scope.families.stand(trial))
            .group_by(own.c.candidate_key, trial.c.task_key)
        )
    else:
        counted = (
            select(own.c.candidate_key, task.c.task_key, func.sum(task.c.trials))
            .join(own, own.c.run_key == task.c.run_key)
            .where(*scope.where(task))
            .group_by(own.c.candidate_key, task.c.task_key)
        )
    if variants:
        counted = counted.add_columns(own.c.run_key).group_by(own.c.run_key)
    rows = matrix_of(connection, counted)
    keys = split_keys(variants, rows[:, 0], rows[:, -1]) if variants else rows[:, 0]
    laid = np.zeros((len(candidates), len(tasks)), dtype=np.int64)
    np.add.at(
        laid, (codes_of(keys, candidates), codes_of(rows[:, 1], tasks)), rows[:, 2].astype(np.int64)
    )
    return laid
