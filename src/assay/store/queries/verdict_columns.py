"""Read the verdicts that count, derived from the counted grades with corrections included; no
verdict is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Select,
    Table,
    and_,
    case,
    cast,
    func,
    or_,
    select,
)

from assay.analysis.columns import ReviewedVerdicts, VerdictColumns
from assay.domain.errors import InputError
from assay.domain.lifecycle import AssessmentState
from assay.domain.verdict_scales import VerdictScale, verdict_scale
from assay.store.database import schema
from assay.store.database.codec import bytes_json, rubric_record
from assay.store.queries.filters import Scope, scope_of
from assay.store.queries.score_columns import (
    COUNTING,
    codes_of,
    columns_of,
    marks_of,
    matrix_of,
    score_columns,
    scores_by_trial,
    trial_scores,
)
from assay.store.queries.variants import Variant, split_keys

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from assay.analysis.columns import ScoreColumns, TrialScores
    from assay.domain.identifiers import TrialKey
    from assay.domain.selection import Selection

MAX_RUNS: Final = 500
"""Maximum number of selected runs whose rubrics are read.

Each costs 0.1 ms, and nobody reads the verdicts of more at once.
"""

_SCORE: Final = 4
_ASSESSMENT: Final = 5
_ROUNDING: Final = 1e-9


def verdict_columns(connection: Connection, selection: Selection, /) -> VerdictColumns | None:
    """Read the value of each counted verdict as its score; None if no selected run gives verdicts,
    or if their labels differ.
    """
    scope = scope_of(connection, selection)
    if scope.criteria is not None or len(scope.runs) > MAX_RUNS:
        return None
    scales = _scales(connection, scope)
    if len({scale.labels for scale in scales.values()}) != 1:
        return None
    variants = scope.variants(connection)
    rows = _rows(
        connection, _graded(scope, tuple(scales)), scales, by_score=scope.families.references
    )
    if variants:
        rows[:, 1] = split_keys(variants, rows[:, 1], rows[:, -1])
    labels, values = zip(*next(iter(scales.values())).labels, strict=True)
    return VerdictColumns(
        labels=labels, values=values, scores=columns_of(connection, scope, rows[:, :6], variants)
    )


def chosen_columns(connection: Connection, selection: Selection, /) -> ScoreColumns:
    """Read all scores that count, over the selected criteria; the criterion `verdict` gives the
    values of verdicts.
    """
    if not scope_of(connection, selection).verdict:
        return score_columns(connection, selection)
    verdicts = verdict_columns(connection, selection)
    if verdicts is None:
        raise _no_verdicts()
    return verdicts.scores


def chosen_trials(
    connection: Connection, selection: Selection, trials: Collection[TrialKey], /
) -> tuple[TrialScores, ...]:
    """Read the counting scores of some trials, over the selected criteria or as the values of
    verdicts.
    """
    scope = scope_of(connection, selection)
    if not scope.verdict:
        return trial_scores(connection, selection, trials)
    scales = _scales(connection, scope)
    of_trials = _graded(scope, tuple(scales)).where(schema.score.c.trial_key.in_(list(trials)))
    rows = [
        (*map(int, row[:4]), row[4], int(row[5]))
        for row in _rows(connection, of_trials, scales, by_score=scope.families.references)
    ]
    return scores_by_trial(connection, scope, trials, rows)


def reviewed_verdicts(
    connection: Connection,
    scope: Scope,
    *,
    tasks: tuple[int, ...],
    candidates: tuple[int, ...],
    judges: tuple[int, ...],
    variants: tuple[Variant, ...],
) -> ReviewedVerdicts | None:
    """Read the verdicts of models' grades before and after review; None under the conditions of
    `verdict_columns`.

    The codes of the result are the places of keys in `tasks`, `candidates` and `judges`.
    """
    import numpy as np

    if scope.criteria is not None or len(scope.runs) > MAX_RUNS:
        return None
    scales = _scales(connection, scope)
    if len({scale.labels for scale in scales.values()}) != 1:
        return None
    runs = tuple(scales)
    judged = _rows(connection, _reviewed(scope, runs, original=True), scales)
    final = _rows(connection, _reviewed(scope, runs, original=False), scales)
    most = max(judged[:, 1].max(initial=0.0), final[:, 1].max(initial=0.0)) + 1
    # An assessment has one row for each candidate. A reply that could not be read has no verdict of
    # the judge.
    place_before = judged[:, _ASSESSMENT] * most + judged[:, 1]
    place_after = final[:, _ASSESSMENT] * most + final[:, 1]
    _, before, after = np.intersect1d(
        place_before, place_after, assume_unique=True, return_indices=True
    )
    judged, final = judged[before], final[after]
    keys = split_keys(variants, final[:, 1], final[:, -1]) if variants else final[:, 1]
    labels, values = zip(*next(iter(scales.values())).labels, strict=True)
    return ReviewedVerdicts(
        labels=labels,
        values=values,
        task=codes_of(final[:, 0], tasks),
        candidate=codes_of(keys, candidates),
        judge=codes_of(final[:, 2], judges),
        trial=final[:, 3].astype(np.int64),
        judged=judged[:, _SCORE],
        final=final[:, _SCORE],
    )


def _no_verdicts() -> InputError:
    problem = "is verdict, but no selected run gives verdicts with the same labels."
    remedy = "Verdicts need a rubric with rules, or with a single criterion whose scale has words; select one run with --run."
    return InputError("--criterion", problem, remedy=remedy)


def _rows(
    connection: Connection,
    statement: Select[Any],
    scales: Mapping[int, VerdictScale],
    *,
    by_score: Collection[int] = (),
) -> NDArray[np.float64]:
    """Read rows with each verdict's value as the score; `by_score`: runs whose grades are no grades
    on the rubric.
    """
    import numpy as np

    rows = matrix_of(connection, statement)
    run = rows[:, -1].astype(np.int64)
    for key, scale in scales.items():
        rows[run == key, _SCORE] = _values(rows[run == key], scale, by_score=key in by_score)
    return rows


def _scales(connection: Connection, scope: Scope) -> dict[int, VerdictScale]:
    run, body = schema.run, schema.body
    plans = (
        select(run.c.key, body.c.content)
        .join(body, body.c.key == run.c.plan_key)
        .where(*scope.where_key(run.c.key))
    )
    scales: dict[int, VerdictScale] = {}
    for key, content in connection.execute(plans):
        scale = verdict_scale(rubric_record(bytes_json(content)["rubric"]))
        if scale is not None:
            scales[key] = scale
    return {**scales, **_of_references(scope, scales)}


def _of_references(scope: Scope, scales: Mapping[int, VerdictScale]) -> dict[int, VerdictScale]:
    """Return the scale for runs with people's imported grades: that of the newest run that grades
    the same responses.

    These grades count in place of the judge's, so without a scale the rates of verdicts were
    missing.
    """
    families = scope.families
    of_people: dict[int, VerdictScale] = {}
    for run in families.references:
        graded_again = (*families.newer.get(run, ()), *families.older.get(run, ()))
        newest = max((other for other in graded_again if other in scales), default=None)
        if newest is not None:
            of_people[run] = scales[newest]
    return of_people


def _graded(scope: Scope, runs: tuple[int, ...]) -> Select[Any]:
    """Select counted scores with the numbers of their grades, as `_with_numbers` lists them."""
    table, grade = schema.score, schema.grade
    return _with_numbers(scope, runs, table.c.value, grade.c.value, marks_of()).where(
        table.c.state.in_(COUNTING),
        # A deterministic scorer gives no verdict, also if a judge of the same run does.
        or_(table.c.state != AssessmentState.NOT_REQUIRED.value, *_by_people(scope, table)),
    )


def _by_people(scope: Scope, table: Table) -> list[ColumnElement[bool]]:
    """Return conditions that are true for people's grades that were imported with the responses."""
    references = scope.families.references.items()
    return [
        and_(table.c.run_key == run, table.c.grader_key.in_(graders)) for run, graders in references
    ]


def _reviewed(scope: Scope, runs: tuple[int, ...], *, original: bool) -> Select[Any]:
    """Select models' scores that people approved or corrected: the judge's own, or those after
    review.
    """
    table, grade, assessment = schema.score, schema.grade, schema.assessment
    score = table.c.judged_value if original else table.c.value
    value = grade.c.judged_value if original else grade.c.value
    by_people = (AssessmentState.APPROVED.value, AssessmentState.CORRECTED.value)
    return (
        _with_numbers(scope, runs, score, value, table.c.assessment_key)
        .join(assessment, assessment.c.key == table.c.assessment_key)
        .where(table.c.state.in_(by_people), assessment.c.by_model)
    )


def _with_numbers(
    scope: Scope,
    runs: tuple[int, ...],
    score: ColumnElement[Any],
    value: ColumnElement[Any],
    mark: ColumnElement[Any],
) -> Select[Any]:
    """Select scores with the numbers of their grades: all, given, no (0), yes (1), and the weighted
    sum of them.
    """
    table, grade = schema.score, schema.grade
    own = (table.c.run_key, table.c.assessment_key, table.c.candidate_key)
    same = and_(*(column == grade.c[column.name] for column in own))
    shown = (table.c.task_key, table.c.candidate_key, table.c.grader_key, table.c.trial_key)
    heavy = grade.c.weight > 0
    missing = func.sum(case((and_(heavy, value.is_(None)), 1), else_=0))
    return (
        select(
            *shown,
            cast(score, Double),
            mark,
            func.count(),
            func.count(value),
            func.sum(case((value == 0.0, 1), else_=0)),
            func.sum(case((value == 1.0, 1), else_=0)),
            func.sum(case((heavy, grade.c.weight * value), else_=0.0)),
            case((missing > 0, 0.0), else_=func.sum(case((heavy, grade.c.weight), else_=0.0))),
            table.c.run_key,
        )
        .join(grade, same)
        .where(
            *scope.where(table),
            *scope.where_grader(table),
            *scope.families.hold(table),
            table.c.run_key.in_(runs),
            score.is_not(None),
        )
        .group_by(
            table.c.run_key,
            table.c.assessment_key,
            *shown,
            score,
            table.c.joint,
            table.c.state,
            table.c.place,
        )
    )


def _values(
    rows: NDArray[np.float64], scale: VerdictScale, *, by_score: bool
) -> NDArray[np.float64]:
    """Return the value of each row's verdict, by the rules of
    `domain.assessment.Assessment.verdicts`.

    `by_score`: treat each score as one that a person set directly.
    """
    import numpy as np

    score = rows[:, _SCORE]
    best, *_, worst = (value for _, value in scale.labels)
    rules = scale.rules
    if rules is None:
        values = np.array([value for _, value in scale.labels])
        return (
            values[np.abs(score[:, None] - values[None, :]).argmin(axis=1)] if len(rows) else score
        )
    count, given, no, yes, total, weight = rows[:, 6:12].T
    as_set = np.where(score >= 1.0, best, np.where(score <= 0.0, worst, 0.5))
    if by_score:
        return as_set
    # A person set the overall score directly if it is not the mean of the grades.
    direct = (weight <= 0) | (np.abs(score - total / np.where(weight > 0, weight, 1.0)) > _ROUNDING)
    by_rule = np.full(len(rows), worst)
    if rules.pass_if_all_yes:
        by_rule[yes == given] = best
    if rules.partial_if_any_partial:
        by_rule[given - no - yes > 0] = 0.5
    by_rule[given < count] = worst
    if rules.fail_if_any_no:
        by_rule[no > 0] = worst
    return np.where(direct, as_set, by_rule)
