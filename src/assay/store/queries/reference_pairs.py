"""Pair judges' scores with the grades that people gave the same responses before the import."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from statistics import median

from sqlalchemy import Connection, and_, or_, select

from assay.analysis.columns import ReferencePair
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import Selection
from assay.domain.verdicts import Verdict
from assay.store.database import schema
from assay.store.database.codec import bytes_json, rubric_record
from assay.store.queries.filters import scope_of
from assay.store.queries.plans import run_key_of
from assay.store.queries.score_columns import COUNTING, candidates_of, judges_of


def reference_graders(connection: Connection, run: RunId, /) -> frozenset[str]:
    """Return the people whose grades were imported together with a run's responses."""
    own, grader = schema.run_grader, schema.grader
    rows = select(grader.c.name).join(own, own.c.grader_key == grader.c.key)
    of_run = (own.c.run_key == run_key_of(connection, run), own.c.reference)
    return frozenset(connection.execute(rows.where(*of_run)).scalars())


def reference_pairs(connection: Connection, selection: Selection, /) -> tuple[ReferencePair, ...]:
    """Pair each judge's newest score of a response with people's imported grades; empty without
    such people or judges.

    The judge's score is the original one, before any correction. If several people graded, the
    reference is their median.
    """
    scope = scope_of(connection, selection)
    own, trial, score, assessment = schema.run_grader, schema.trial, schema.score, schema.assessment
    people: defaultdict[int, list[int]] = defaultdict(list)
    for run, grader in connection.execute(
        select(own.c.run_key, own.c.grader_key).where(*scope.where_run(own), own.c.reference)
    ):
        people[run].append(grader)
    if not people:
        return ()
    origin = {run: run for run in people}
    for run, others in scope.families.newer.items():
        origin.update((run, other) for other in others if other in people)
    place = (score.c.run_key, trial.c.position, trial.c.k, score.c.candidate_key)
    judged = (
        select(
            *place,
            score.c.grader_key,
            score.c.task_key,
            score.c.judged_value,
            score.c.assessment_key,
        )
        .join(trial, trial.c.key == score.c.trial_key)
        .join(assessment, assessment.c.key == score.c.assessment_key)
        .where(score.c.run_key.in_(list(origin)), *scope.where(score), *scope.where_grader(score))
        .where(assessment.c.by_model, score.c.judged_value.is_not(None))
        .where(assessment.c.state != AssessmentState.SUPERSEDED.value)
        .order_by(score.c.run_key)
    )
    newest = {
        ((origin[row.run_key], row.position, row.k, row.candidate_key), row.grader_key): row
        for row in connection.execute(judged)
    }
    if not newest:
        return ()
    given = or_(
        *(
            and_(score.c.run_key == run, score.c.grader_key.in_(keys))
            for run, keys in people.items()
        )
    )
    references: defaultdict[tuple[int, ...], list[float]] = defaultdict(list)
    for *response, value in connection.execute(
        select(*place, score.c.value)
        .join(trial, trial.c.key == score.c.trial_key)
        .where(given, score.c.value.is_not(None), score.c.state.in_(COUNTING))
    ):
        references[tuple(response)].append(value)
    verdicts = _verdicts(connection, {row.run_key for row in newest.values()})
    judges, candidates = judges_of(connection, scope), candidates_of(connection, scope, ())
    return tuple(
        ReferencePair(
            judge=judges[grader],
            candidate=candidates[row.candidate_key],
            task=row.task_key,
            trial=response[:3],
            reference=median(references[response]),
            judged=row.judged_value,
            verdict=verdicts.get((row.assessment_key, row.candidate_key)),
        )
        for (response, grader), row in newest.items()
        if response in references
    )


def _verdicts(connection: Connection, runs: Collection[int]) -> dict[tuple[int, int], Verdict]:
    """Return verdicts by assessment and candidate, for runs whose rubric defines verdict rules."""
    run, body, grade = schema.run, schema.body, schema.grade
    plans = (
        select(run.c.key, body.c.content)
        .join(body, body.c.key == run.c.plan_key)
        .where(run.c.key.in_(list(runs)))
    )
    verdicts: dict[tuple[int, int], Verdict] = {}
    for key, content in connection.execute(plans):
        rules = rubric_record(bytes_json(content)["rubric"]).rules
        grades: defaultdict[tuple[int, int], list[float | None]] = defaultdict(list)
        given = select(grade.c.assessment_key, grade.c.candidate_key, grade.c.judged_value)
        for *place, value in (
            connection.execute(given.where(grade.c.run_key == key)) if rules else ()
        ):
            grades[place[0], place[1]].append(value)
        if rules is not None:
            verdicts |= {
                place: rules.verdict(values) or Verdict.FAIL for place, values in grades.items()
            }
    return verdicts
