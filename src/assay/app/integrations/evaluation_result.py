"""State and results of an evaluation that another program submitted.

Scores, reasons and names are returned only for assessments that count; pending assessments are only
counted. The client's metadata may name a model, so it is returned only if no assessment is pending.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from assay.app.exports.graded_answers import (
    CriterionScoreDocument,
    GradedAnswerDocument,
    JudgeOutputDocument,
    StructuredDocument,
    graded_answers,
    unreviewed_answer,
)
from assay.app.exports.pseudonyms import Anonymiser
from assay.app.integrations.evaluations import run_of_evaluation
from assay.app.review.decisions import assessment_key
from assay.app.review.review_documents import ApprovalsDocument, assessment_counts
from assay.app.runs.causes import Pause, pause_of
from assay.app.runs.counts import trial_counts
from assay.app.runs.run_documents import (
    FailedTrialDocument,
    TokensDocument,
    failed_trial,
    tokens_document,
)
from assay.app.statistics import results, statistics_documents
from assay.app.statistics.statistics_documents import MeanDocument
from assay.app.wire import Json, document
from assay.domain.assessment import Grade
from assay.domain.errors import UnknownName
from assay.domain.identifiers import shown_assessment, shown_trial
from assay.domain.lifecycle import COUNTS, AssessmentState, RunState, TrialState
from assay.domain.selection import AssessmentRow, Excluded, RunSummary, Selection
from assay.statistics.warnings import Caution

if TYPE_CHECKING:
    from assay.app.settings import Settings
    from assay.store.opening import Store

MAX_SHOWN: Final = 1000
"""Maximum number of assessments in one response; further pages return the rest."""

_BY_PEOPLE: Final = (AssessmentState.APPROVED, AssessmentState.CORRECTED, AssessmentState.REJECTED)

Scores: TypeAlias = Mapping[str, float | None]


@document
class EvaluatedTrialDocument:
    """JSON of one assessment.

    Judge, scores, grades and report are null unless the assessment counts.
    """

    id: str
    trial_id: str
    trial: int
    trials: int
    attempt: int
    state: str
    judge: str | None
    scores: Scores | None
    grades: tuple[Grade, ...] | None
    report: str | None


@document
class EvaluationDocument:
    """JSON of an evaluation's state and results.

    The keys from `task_id` on are those of a line of `assay export evaluations`. They describe the
    first answer of an evaluation of one candidate, whose `evaluation_id` is the evaluation's; with
    several candidates they are null, and `answers` has each.
    """

    evaluation_id: str
    run_id: str
    state: str
    """pending, running, paused, interrupted, cancelled, needs_review, approved, rejected or failed
    """
    message: str
    suite: str
    task: str
    thing: str
    batch_id: str | None
    created_at: str
    finished_at: str | None
    trials: dict[str, int]
    assessments: dict[str, int]
    waiting: int
    results: tuple[MeanDocument, ...]
    excluded: Excluded
    approvals: ApprovalsDocument
    warnings: tuple[Caution, ...]
    evaluations: tuple[EvaluatedTrialDocument, ...]
    answers: tuple[GradedAnswerDocument, ...]
    """each answer with a grade that counts, as a line of `assay export evaluations`; as many as
    `evaluations` covers
    """
    failures: tuple[FailedTrialDocument, ...]
    tokens: TokensDocument
    cost_usd: float | None
    next: str | None
    submitted: Mapping[str, Json] | None
    task_id: str | int
    model_id: str | None
    trial: int | None
    response_id: Json
    ideal_response_id: Json
    judge_llm_model: str | None
    judge_prompt_template_path: str | None
    judge_prompt_template_version: Json
    raw_judge_output: JudgeOutputDocument | None
    parsed_rubric_scores: Mapping[str, CriterionScoreDocument] | None
    """what the judge gave, before corrections"""
    aggregated_score: str | float | None
    """the verdict (Pass, Partial or Fail) if the rubric has rules for it, otherwise the number"""
    aggregated_number: float | None
    final_answer_verified: bool | None
    verification_message: str | None
    needs_human_review: bool
    """true if the grade awaits review, or was flagged for review"""
    review_reasons: tuple[str, ...]
    parsing_error: str | None
    human_review_status: str
    human_reviewer_id: str | None
    human_review_timestamp: str | None
    human_review_road: str | None
    human_corrected_scores: Mapping[str, CriterionScoreDocument] | None
    human_review_comments: str | None
    structured_model_response: StructuredDocument | None
    structured_ideal_response: StructuredDocument | None
    answering_api_calls: int | None
    structuring_api_calls: int | None
    judging_api_calls: int | None
    answering_time_seconds: float | None
    structuring_time_seconds: float | None
    judging_time_seconds: float | None
    total_time_seconds: float | None


def evaluation(
    store: Store, settings: Settings, evaluation_id: str, *, after: str | None = None
) -> EvaluationDocument:
    """Return the state and results of an evaluation; raises `UnknownName`."""
    summary = run_of_evaluation(store, evaluation_id)
    if summary is None:
        raise UnknownName(
            "evaluation",
            evaluation_id,
            remedy="The response to POST /submit_evaluation contains the id.",
        )
    plan = store.journal.plan_of(summary.id)
    selection = Selection(runs=(summary.id,))
    pause = pause_of(store, summary)
    start = assessment_key(after) if after else None
    rows = list(store.archive.assessments.matching(selection, after=start, limit=MAX_SHOWN))
    failed = list(store.archive.trials.matching(selection, failed_only=True))
    planned, count = next(iter(store.journal.tasks_of(summary.id)))
    waiting = summary.assessments.get(AssessmentState.PENDING, 0)
    state = _state(summary)
    scores = statistics_documents.scores_document(
        results.stats(store, settings, selection, diagnose=False)
    )
    kept = plan.environment.get("submission")
    # `content` is the digest that recognises a repeated request; the client did not send it.
    about = (
        {key: value for key, value in kept.items() if key != "content"}
        if isinstance(kept, dict)
        else {}
    )
    more = len(rows) == MAX_SHOWN
    # All answers are read even for a later page, because a call belongs to the first answer that
    # used its reply.
    graded = list(graded_answers(store, selection, Anonymiser()))
    shown = {row.key for row in rows}
    problem = next(
        (row.failure.detail for row in failed if row.failure),
        None if pause is None else pause.detail,
    )
    first = next(
        (answer.document for answer in graded if answer.document.evaluation_id == summary.id), None
    )
    if first is None:
        first = unreviewed_answer(
            plan,
            task=planned.task.id,
            model=summary.candidates[0] if len(plan.candidates) == 1 else None,
            waiting=waiting,
            decided=any(summary.assessments.get(state) for state in _BY_PEOPLE),
            problem=problem,
        )
    return EvaluationDocument(
        run_id=summary.id,
        state=state,
        message=_message(state, summary, waiting, pause),
        suite=summary.suite,
        task=planned.task.id,
        thing=planned.task.thing,
        batch_id=summary.batch_id,
        finished_at=summary.finished,
        trials={"needed": count, **trial_counts(summary)},
        assessments=assessment_counts(summary),
        waiting=waiting,
        results=scores.candidates,
        excluded=scores.counted.excluded,
        approvals=scores.counted.approvals,
        warnings=scores.warnings,
        evaluations=tuple(_evaluated_trial(row) for row in rows),
        answers=tuple(answer.document for answer in graded if answer.detail.row.key in shown),
        failures=tuple(failed_trial(row) for row in failed),
        tokens=tokens_document(summary),
        cost_usd=summary.cost_usd,
        next=f"/get_evaluation_result/{summary.id}?after={shown_assessment(rows[-1].key)}"
        if more
        else None,
        submitted=about,
        evaluation_id=first.evaluation_id,
        created_at=first.created_at,
        task_id=first.task_id,
        model_id=first.model_id,
        trial=first.trial,
        response_id=first.response_id,
        ideal_response_id=first.ideal_response_id,
        judge_llm_model=first.judge_llm_model,
        judge_prompt_template_path=first.judge_prompt_template_path,
        judge_prompt_template_version=first.judge_prompt_template_version,
        raw_judge_output=first.raw_judge_output,
        parsed_rubric_scores=first.parsed_rubric_scores,
        aggregated_score=first.aggregated_score,
        aggregated_number=first.aggregated_number,
        final_answer_verified=first.final_answer_verified,
        verification_message=first.verification_message,
        needs_human_review=first.needs_human_review,
        review_reasons=first.review_reasons,
        parsing_error=first.parsing_error,
        human_review_status=first.human_review_status,
        human_reviewer_id=first.human_reviewer_id,
        human_review_timestamp=first.human_review_timestamp,
        human_review_road=first.human_review_road,
        human_corrected_scores=first.human_corrected_scores,
        human_review_comments=first.human_review_comments,
        structured_model_response=first.structured_model_response,
        structured_ideal_response=first.structured_ideal_response,
        answering_api_calls=first.answering_api_calls,
        structuring_api_calls=first.structuring_api_calls,
        judging_api_calls=first.judging_api_calls,
        answering_time_seconds=first.answering_time_seconds,
        structuring_time_seconds=first.structuring_time_seconds,
        judging_time_seconds=first.judging_time_seconds,
        total_time_seconds=first.total_time_seconds,
    )


def _state(summary: RunSummary) -> str:
    if summary.state is RunState.PLANNED:
        return str(TrialState.PENDING)
    if summary.state is not RunState.FINISHED:
        return str(summary.state)
    reached = {state for state, n in summary.trials.items() if n}
    order = (
        TrialState.NEEDS_REVIEW,
        TrialState.APPROVED,
        TrialState.REJECTED,
        TrialState.LEFT_OUT,
        TrialState.FAILED,
    )
    return str(next((state for state in order if state in reached), TrialState.PENDING))


def _message(state: str, summary: RunSummary, waiting: int, pause: Pause | None) -> str:
    if pause is not None:
        return f"It is {pause.sentence} {pause.remedy(summary.id, None)}"
    if state == RunState.INTERRUPTED:
        return (
            f"It was stopped early; finished work is kept. Continue with: assay resume {summary.id}"
        )
    texts = {
        TrialState.PENDING: f"It is stored but has not started. If its server was stopped: assay resume {summary.id}",
        RunState.RUNNING: "It is being judged.",
        RunState.SUBMITTED: "It is waiting for the answers of a provider's batch API.",
        RunState.PAUSED: "It is paused.",
        RunState.CANCELLED: "It was cancelled; finished work is kept.",
        TrialState.NEEDS_REVIEW: "It was judged.",
        TrialState.APPROVED: "It was judged, and no assessment awaits review.",
        TrialState.REJECTED: "It was judged, and a person rejected every assessment.",
        TrialState.LEFT_OUT: "It was judged, and the random review sample contains no assessment of it.",
        TrialState.FAILED: "Every trial failed; `failures` lists the reasons.",
    }
    text = next(text for word, text in texts.items() if word == state)
    noun = "assessment awaits" if waiting == 1 else "assessments await"
    return f"{text} {waiting} {noun} review." if waiting else text


def _evaluated_trial(row: AssessmentRow) -> EvaluatedTrialDocument:
    shown = row.assessment if row.state in COUNTS else None
    return EvaluatedTrialDocument(
        id=shown_assessment(row.key),
        trial_id=shown_trial(row.trial),
        trial=row.k,
        trials=row.of,
        attempt=row.attempt,
        state=row.state,
        judge=row.grader,
        scores=None if shown is None else shown.scores,
        grades=None if shown is None else shown.grades,
        report=None if shown is None else shown.report,
    )
