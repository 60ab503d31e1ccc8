"""Build the rows of imported assessments, with their scores and grades."""

from __future__ import annotations

from collections.abc import Sequence

from assay.domain.assessment import Assessment, Grade, weighted_score
from assay.domain.import_records import FoundAssessment, FoundGrade, GradedBy
from assay.domain.lifecycle import AssessmentState
from assay.store.database import schema
from assay.store.database.codec import WHOLE, assessment_bytes, plain
from assay.store.database.counters import ASSESSMENT
from assay.store.imports.portion import Portion, Row, TableRows
from assay.store.imports.trial_rows import ImportedTrial, Trials

GradesByCandidate = dict[str, list[FoundGrade]]


def rows_of_assessments(
    portion: Portion, trials: Trials, assessments: Sequence[FoundAssessment]
) -> TableRows:
    """Return the rows of assessments: one row if the candidates were graded jointly, otherwise one
    row per candidate.
    """
    rows: TableRows = [
        (schema.assessment, []),
        (schema.score, []),
        (schema.grade, []),
        (schema.call, []),
    ]
    for imported in assessments:
        trial = trials[plain(imported.task), imported.trial]
        by_name: GradesByCandidate = {}
        for grade in imported.grades:
            by_name.setdefault(grade.candidate, []).append(grade)
        groups = (
            [by_name] if imported.joint else [{name: grades} for name, grades in by_name.items()]
        )
        grader = portion.grader(imported.judge, imported.by)
        call_key = _add_call(portion, imported, trial, grader, rows[3][1])
        for group in groups:
            _add_assessment(portion, imported, group, trial, grader, rows, call_key)
            call_key = None  # one call graded all candidates
    portion.run.assessments += len(rows[0][1])
    return rows


def _add_assessment(
    portion: Portion,
    imported: FoundAssessment,
    group: GradesByCandidate,
    trial: ImportedTrial,
    grader: int,
    rows: TableRows,
    call_key: int | None,
) -> None:
    (_, assessments), (_, scores), (_, grades), _ = rows
    run_key, task_key, key = (
        portion.run.run_key,
        trial.place.task_key,
        next(portion.assessment_keys),
    )
    by_model = imported.by is GradedBy.MODEL
    # A model's grades await review even if they were published elsewhere, because nobody has
    # checked them.
    state = AssessmentState.PENDING if by_model else AssessmentState.NOT_REQUIRED
    if imported.state is not None:
        state = AssessmentState(imported.state)
    assessment = _assessment(imported, group, portion.run.weights)
    keys = {name: portion.candidate(name) for name in assessment.scores}
    candidate = None if imported.joint else next(iter(keys.values()))
    body_key = next(portion.body_keys)
    portion.bodies.append((body_key, assessment_bytes(assessment)))
    assessments.append(
        (
            key,
            run_key,
            task_key,
            trial.key,
            grader,
            candidate,
            by_model,
            1,
            state.value,
            None,
            0,
            portion.response_limit,
            call_key,
            body_key,
            portion.run.now,
        )
    )
    joint = imported.joint
    for name, value in assessment.scores.items():
        scores.append(
            (
                run_key,
                key,
                keys[name],
                task_key,
                trial.key,
                grader,
                value,
                value,
                joint,
                state.value,
                None,
            )
        )
    for grade in assessment.grades:
        criterion = portion.criterion(grade.criterion)
        weight = assessment.weights.get(grade.criterion, 1.0)
        values: Row = (
            grade.score,
            grade.score,
            grade.raw_score,
            grade.min_score,
            grade.max_score,
            grade.confidence,
        )
        grades.append((run_key, key, keys[grade.candidate], criterion, weight, *values))
    portion.counters.add(run_key, ASSESSMENT, state.value)
    if trial.states is None:
        trial.states = []
    trial.states.append(state)


def _add_call(
    portion: Portion, imported: FoundAssessment, trial: ImportedTrial, grader: int, calls: list[Row]
) -> int | None:
    """Add a judge's call and return its key; None if the file has no data about the call."""
    amounts = (imported.input_tokens, imported.output_tokens, imported.latency_s, imported.cost_usd)
    if amounts == (None, None, None, None):
        return None
    key = next(portion.call_keys)
    portion.sums.add(imported)
    calls.append(
        (
            key,
            portion.run.run_key,
            trial.key,
            "judge",
            None,
            grader,
            1,
            1,
            plain(imported.judge),
            None,
            None,
            imported.input_tokens,
            imported.output_tokens,
            imported.latency_s,
            None,
            imported.cost_usd,
            "",
            None,
            None,
            None,
            "",
            None,
            None,
        )
    )
    return key


def _assessment(
    imported: FoundAssessment, group: GradesByCandidate, rubric: dict[str, float]
) -> Assessment:
    """Return the imported grades as an assessment; criteria missing from the run's rubric have
    weight 1.
    """
    grades: list[Grade] = []
    scores: dict[str, float | None] = {}
    weights: dict[str, float] = {}
    for name, of_candidate in group.items():
        whole = next((grade for grade in of_candidate if not grade.criterion), None)
        parts = [grade for grade in of_candidate if grade.criterion]
        for grade in parts or of_candidate:
            criterion = grade.criterion or WHOLE
            weights.setdefault(criterion, rubric.get(criterion, 1.0))
            grades.append(
                Grade(
                    candidate=name,
                    criterion=criterion,
                    score=grade.score,
                    raw_score=grade.score if grade.raw_score is None else grade.raw_score,
                    min_score=0.0 if grade.min_score is None else grade.min_score,
                    max_score=1.0 if grade.max_score is None else grade.max_score,
                    reason=grade.reason,
                    confidence=grade.confidence,
                )
            )
        if whole is not None:
            scores[name] = whole.score
        else:
            own = {grade.criterion: rubric.get(grade.criterion, 1.0) for grade in parts}
            scores[name] = weighted_score({grade.criterion: grade.score for grade in parts}, own)
    return Assessment(
        grades=tuple(grades), scores=scores, weights=weights, raw=imported.reply or ""
    )
