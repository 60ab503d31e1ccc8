"""One document for each graded answer, shared by the exports of evaluations and by `GET
/get_evaluation_result`.

Only counted grades of judges and scorers have a full document; human grades that came with imported
data are listed separately. `aggregated_score` includes a person's corrections, and
`parsed_rubric_scores` contains the judge's own scores. A call is counted only once, in the first
answer that used its reply.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final, cast
from uuid import UUID, uuid5

from assay.app.exports.pseudonyms import Anonymiser
from assay.app.review.structured_answers import structured_answer
from assay.app.wire import Json, document
from assay.domain.assessment import FlagKind
from assay.domain.calls import Role
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import Selection
from assay.suites.tasks import slug

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from assay.domain.assessment import Grade
    from assay.domain.digest import JsonValue
    from assay.domain.identifiers import TrialKey
    from assay.domain.run import RunPlan
    from assay.domain.selection import AssessmentDetail, AssessmentRow, CallsOfTrial, RunSummary
    from assay.store.opening import Store

STAGES: Final = {Role.CANDIDATE: "answering", Role.STRUCTURER: "structuring", Role.JUDGE: "judging"}

_IDS: Final = UUID("6f6e6365-0000-4000-8000-6576616c7300")
_BY_PEOPLE: Final = (AssessmentState.APPROVED, AssessmentState.CORRECTED)


@document
class CriterionScoreDocument:
    """JSON of the score on one criterion in the rubric's words, or on the judge's scale, with the
    judge's reason.
    """

    score: str | float | None
    justification: str


@document
class JudgeOutputDocument:
    """JSON of a judge's reply as it came."""

    raw_content: str


@document
class StructuredDocument:
    """JSON of an answer that a model took apart."""

    model: str
    response: Mapping[str, Json]


@document
class GradedAnswerDocument:
    """JSON of one answer that a judge or scorer graded.

    Everything after the ids is null unless the grade counts.
    """

    evaluation_id: str
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
    """`Needs Review`, `Completed` or `Not Required`"""
    human_reviewer_id: str | None
    human_review_timestamp: str | None
    human_review_road: str | None
    """how the decision came about: `shown` on the reviewer's screen, `scripted` or `imported`; null
    without a decision
    """
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
    created_at: str
    """when a program submitted the evaluation; otherwise when the grading started"""


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """A graded answer with its run and assessment, and its document."""

    run: RunOfAnswers
    detail: AssessmentDetail
    candidate: str
    document: GradedAnswerDocument


@dataclass(slots=True)
class RunOfAnswers:
    """A run, with the calls that no answer has counted yet and the human grades imported with the
    run.
    """

    summary: RunSummary
    plan: RunPlan
    source: str
    calls: dict[tuple[TrialKey, Role, str | None, str | None], CallsOfTrial]
    people: frozenset[str]
    references: dict[tuple[str, int, str], dict[str, JsonValue]]

    def take_calls(self, detail: AssessmentDetail, candidate: str, role: Role) -> _Calls:
        """Return the calls of an answer in one role, and remove them from `calls`."""
        grader = detail.row.grader if role is Role.JUDGE else None
        number, seconds = 0, 0.0
        for name in (candidate, None):
            counted = self.calls.pop((detail.row.trial, role, name, grader), None)
            if counted is not None:
                number += counted.calls
                seconds += counted.seconds
        return _Calls(number, seconds)


@dataclass(frozen=True, slots=True)
class _Calls:
    number: int
    seconds: float


def graded_answers(store: Store, selection: Selection, names: Anonymiser) -> Iterator[GradedAnswer]:
    """Yield every answer with a counted grade of a judge or scorer, oldest run first, in the order
    of assessments.
    """
    shown = store.archive.exports.candidate_names(selection)
    for run in _graded_runs(store, selection):
        only_run = replace(selection, runs=(run.summary.id,))
        for detail, _ in store.archive.exports.assessments(only_run):
            if detail.row.grader in run.people:
                continue
            for candidate, score in detail.row.assessment.scores.items():
                if score is not None:
                    model = names.candidate(shown[run.summary.id, candidate])
                    answer = _graded_answer(store, run, detail, candidate, model, names)
                    yield GradedAnswer(run, detail, candidate, answer)


def criterion_key(criterion: str) -> str:
    """Return the key of a criterion in documents for programs."""
    return slug(criterion).replace("-", "_")


def evaluation_id_of(plan: RunPlan, row: AssessmentRow, candidate: str) -> str:
    """Return the id of a graded answer, the same in every document and export.

    The first answer of a submitted evaluation of one candidate has the id that the client received,
    which is the run's. Every other answer has an id made from run, assessment and candidate.
    """
    if row.k == 1 and names_its_answer(plan):
        first = next((judge.name for judge in plan.judges if judge.grades_trial(1)), row.grader)
        if row.grader == first:
            return plan.id
    return f"eval_{uuid5(_IDS, f'{row.run_id} {row.key} {candidate}')}"


def names_its_answer(plan: RunPlan) -> bool:
    """True if the run is a submitted evaluation of one candidate, so that its id is the id of the
    first graded answer.
    """
    return isinstance(plan.environment.get("submission"), dict) and len(plan.candidates) == 1


def unreviewed_answer(
    plan: RunPlan, *, task: str, model: str | None, waiting: int, decided: bool, problem: str | None
) -> GradedAnswerDocument:
    """Return the document of a submitted evaluation without one answer whose grade counts.

    Args:
        model: the candidate; None if there are several.
        waiting: number of grades that await review.
        decided: True if a person decided a grade.
        problem: why the answer has no grade; None if it has one or is being judged.
    """
    ids = _ids_of(plan)
    return GradedAnswerDocument(
        evaluation_id=plan.id,
        task_id=_task_id(task),
        model_id=model,
        trial=None if model is None else 1,
        response_id=ids.get("model_response_id"),
        ideal_response_id=ids.get("ideal_response_id"),
        judge_llm_model=None,
        judge_prompt_template_path=None,
        judge_prompt_template_version=ids.get("judge_prompt_version"),
        raw_judge_output=None,
        parsed_rubric_scores=None,
        aggregated_score=None,
        aggregated_number=None,
        final_answer_verified=None,
        verification_message=None,
        needs_human_review=bool(waiting),
        review_reasons=(f"assessments that await review: {waiting}",) if waiting else (),
        parsing_error=problem,
        human_review_status="Needs Review"
        if waiting
        else "Completed"
        if decided
        else "Not Required",
        human_reviewer_id=None,
        human_review_timestamp=None,
        human_review_road=None,
        human_corrected_scores=None,
        human_review_comments=None,
        structured_model_response=None,
        structured_ideal_response=None,
        answering_api_calls=None,
        structuring_api_calls=None,
        judging_api_calls=None,
        answering_time_seconds=None,
        structuring_time_seconds=None,
        judging_time_seconds=None,
        total_time_seconds=None,
        created_at=plan.started,
    )


def _graded_runs(store: Store, selection: Selection) -> Iterator[RunOfAnswers]:
    archive, journal = store.archive, store.journal
    for summary in reversed(archive.runs.matching(selection)):
        plan = journal.plan_of(summary.id)
        origin = plan.regrade_of or summary.id
        imported = (plan if origin == summary.id else journal.plan_of(origin)).environment.get(
            "imported"
        )
        source = str(imported.get("from", "")) if isinstance(imported, dict) else ""
        people = archive.scores.reference_graders(origin)
        references: defaultdict[tuple[str, int, str], dict[str, JsonValue]] = defaultdict(dict)
        for detail, _ in archive.exports.assessments(Selection(runs=(origin,))) if people else ():
            if detail.row.grader in people:
                for grade in detail.row.assessment.grades:
                    references[detail.row.task, detail.row.k, grade.candidate] |= _human_grade(
                        grade
                    )
        yield RunOfAnswers(
            summary=summary,
            plan=plan,
            source=source,
            calls={
                (calls.trial, calls.role, calls.candidate, calls.grader): calls
                for calls in archive.calls.by_trial(summary.id)
            },
            people=people if origin == summary.id else frozenset(),
            references=dict(references),
        )


def _human_grade(grade: Grade) -> dict[str, JsonValue]:
    """Return a person's grade by criterion name. On a 0 to 1 scale, 0 and 1 become booleans."""
    yes_or_no = (grade.min_score, grade.max_score) == (0.0, 1.0) and grade.raw_score in (0.0, 1.0)
    value = bool(grade.raw_score) if yes_or_no else grade.raw_score
    comments = {"failure_comments": grade.reason} if grade.reason else {}
    return {criterion_key(grade.criterion or "score"): value, **comments}


def _graded_answer(
    store: Store,
    run: RunOfAnswers,
    detail: AssessmentDetail,
    candidate: str,
    model: str,
    names: Anonymiser,
) -> GradedAnswerDocument:
    row, judged, final = detail.row, detail.judged, detail.row.assessment
    ids = _ids_of(run.plan)
    evaluation_id = evaluation_id_of(run.plan, row, candidate)
    judge = next((judge for judge in run.plan.judges if judge.name == row.grader), None)
    verification = next(
        (check for check in final.verifications if check.candidate == candidate), None
    )
    verdict = final.verdicts.get(candidate)
    flags = [flag for flag in judged.flags if flag.candidate in (None, candidate)]
    event = next((event for event in reversed(detail.events) if event.after in _BY_PEOPLE), None)
    response = next(
        (response for response in detail.responses if response.candidate == candidate), None
    )
    answering = run.take_calls(detail, candidate, Role.CANDIDATE)
    structuring = run.take_calls(detail, candidate, Role.STRUCTURER)
    judging = run.take_calls(detail, candidate, Role.JUDGE)
    # A client's evaluation begins when it is accepted, also where a reply was stored before.
    started = detail.call.get("started")
    created = (
        run.summary.started
        if evaluation_id == run.summary.id or not isinstance(started, str)
        else started
    )
    return GradedAnswerDocument(
        evaluation_id=evaluation_id,
        task_id=_task_id(row.task),
        model_id=model,
        trial=row.k,
        response_id=ids.get("model_response_id"),
        ideal_response_id=ids.get("ideal_response_id"),
        judge_llm_model=row.grader if judge is None else judge.model.ref,
        judge_prompt_template_path=None if judge is None else judge.prompt_path,
        judge_prompt_template_version=ids.get("judge_prompt_version"),
        raw_judge_output=JudgeOutputDocument(raw_content=names.text(judged.raw))
        if judged.raw
        else None,
        parsed_rubric_scores=_scores(run.plan, judged.grades, candidate, names),
        aggregated_score=final.scores[candidate] if verdict is None else str(verdict),
        aggregated_number=final.scores[candidate],
        final_answer_verified=None if verification is None else verification.verified,
        verification_message=None if verification is None else names.text(verification.message),
        needs_human_review=bool(flags),
        review_reasons=tuple(
            names.text(_named(flag.detail, judged.labels.get(candidate), model)) for flag in flags
        ),
        parsing_error=next(
            (names.text(flag.detail) for flag in flags if flag.kind is FlagKind.PARSE_ERROR), None
        ),
        human_review_status="Not Required" if event is None else "Completed",
        human_reviewer_id=None if event is None else names.reviewer(event.decision.reviewer),
        human_review_timestamp=None if event is None else event.at,
        human_review_road=None if event is None else event.decision.road.value,
        human_corrected_scores=(
            _scores(run.plan, final.grades, candidate, names)
            if row.state is AssessmentState.CORRECTED
            else None
        ),
        human_review_comments=None if event is None else names.text(event.decision.reason) or None,
        structured_model_response=(
            None
            if response is None
            else _structured(store, run, detail, response.text, candidate, names)
        ),
        structured_ideal_response=(
            _structured(store, run, detail, detail.task.ideal, None, names)
            if detail.task.ideal
            else None
        ),
        answering_api_calls=answering.number,
        structuring_api_calls=structuring.number,
        judging_api_calls=judging.number,
        answering_time_seconds=round(answering.seconds, 3),
        structuring_time_seconds=round(structuring.seconds, 3),
        judging_time_seconds=round(judging.seconds, 3),
        total_time_seconds=round(structuring.seconds + judging.seconds, 3),
        created_at=created,
    )


def _ids_of(plan: RunPlan) -> Mapping[str, JsonValue]:
    """Return the ids that the client of a submitted evaluation sent."""
    submission = plan.environment.get("submission")
    return submission if isinstance(submission, dict) else {}


def _named(text: str, label: str | None, model: str) -> str:
    return (
        text
        if label is None
        else re.sub(rf"(?<!\w){re.escape(label)}(?!\w)", lambda _: model, text)
    )


def _task_id(task: str) -> str | int:
    return int(task) if task.isdecimal() and str(int(task)) == task else task


def _scores(
    plan: RunPlan, grades: Iterable[Grade], candidate: str, names: Anonymiser
) -> dict[str, CriterionScoreDocument]:
    """Return score and justification by criterion; the rubric's label replaces a score that has
    one.
    """
    words = {c.name: {value: word for word, value in c.labels} for c in plan.rubric.criteria}
    return {
        grade.criterion: CriterionScoreDocument(
            score=words.get(grade.criterion, {}).get(
                cast("float", grade.raw_score), grade.raw_score
            ),
            justification=names.text(grade.reason),
        )
        for grade in grades
        if grade.candidate == candidate and grade.criterion
    }


def _structured(
    store: Store,
    run: RunOfAnswers,
    detail: AssessmentDetail,
    text: str,
    candidate: str | None,
    names: Anonymiser,
) -> StructuredDocument | None:
    """Return the structured form of a response, or of the model solution if `candidate` is None;
    None if it is not stored.
    """
    structuring = run.plan.rubric.structuring
    if structuring is None:
        return None
    answer = structured_answer(store.journal, structuring, detail.task, text, candidate=candidate)
    if answer is None:
        return None
    return StructuredDocument(model=structuring.model.ref, response=names.texts(asdict(answer)))
