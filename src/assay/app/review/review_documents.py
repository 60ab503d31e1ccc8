"""JSON of assessments and decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.app.wire import ABSENT, Absent, Json, document, inlined, optional
from assay.domain.assessment import Flag, Grade, Response, Verification
from assay.domain.identifiers import shown_assessment
from assay.domain.lifecycle import AssessmentState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.domain.calibration_record import CalibrationRecord
    from assay.domain.decisions import Place
    from assay.domain.failure import Failure
    from assay.domain.opinions import OpinionsShown, StandingOpinion
    from assay.domain.review import Approvals, ReviewEvent
    from assay.domain.selection import AssessmentDetail, AssessmentRow, RunSummary
    from assay.domain.suite import Message


@document
class ApprovalsDocument:
    """JSON of the number of grades that count and that people approved, by how each decision came
    about.

    `shown`: the item was on the reviewer's screen. `scripted`: by a command without a terminal,
    Python, or a program over HTTP. `imported`: stated by a table or record.
    """

    shown: int
    scripted: int
    imported: int


@document
class CalibrationStampDocument:
    """JSON of a judge's current calibration."""

    tier: str
    at: str
    version: int


@document
class FailureReasonDocument:
    """JSON of a failure's kind, detail, and fault."""

    kind: str
    fault: str
    detail: str


@document
class AssessmentDocument:
    """JSON of one row of `assay review list`; `calibration` is null for a scorer or an uncalibrated
    judge.
    """

    id: str
    run_id: str
    suite: str
    task: str
    thing: str
    trial: int
    trials: int
    attempt: int
    state: str
    judge: str
    calibration: CalibrationStampDocument | None
    candidates: tuple[str, ...]
    flags: tuple[Flag, ...]
    grades: tuple[Grade, ...]
    scores: Mapping[str, float | None]
    verdicts: Mapping[str, str | None]
    verifications: tuple[Verification, ...]
    failure: FailureReasonDocument | Absent = optional()


@document
class MessageDocument:
    """JSON of one message of a prompt."""

    role: str
    content: str


@document
class ReviewEventDocument:
    """JSON of one decision. Keys of corrections are `candidate` or `candidate/criterion`.

    `outcome`: `decided`, or `first_opinion`, `disputed` or `withdrawn` if an opinion left the item
    pending. An opinion has no event, so `event` is 0. `road`: `shown` on the reviewer's screen,
    `scripted` or `imported`. `stated_by`: the person who gave the reviewer's name; null if this was
    the reviewer.
    """

    event: int
    id: str
    decision: str
    before: str
    after: str
    outcome: str
    reviewer: str
    at: str
    via: str
    displayed: bool
    road: str
    stated_by: str | None
    reason: str
    note: str
    corrections: Mapping[str, float] | None


@document
class OpinionDocument:
    """JSON of one of two opinions on an item.

    Keys of corrections are `candidate` or `candidate/criterion`.

    `road`: `shown` on the reviewer's screen, or `scripted`. `stated_by`: the person who gave the
    reviewer's name; null if this was the reviewer. `scores`: the scores from 0 to 1 that the
    opinion would make final; empty for a rejection.
    """

    decision: str
    reviewer: str
    at: str
    road: str
    stated_by: str | None
    reason: str
    note: str
    scores: Mapping[str, float]
    corrections: Mapping[str, float]


@document
class AssessmentDetailDocument:
    """JSON of `assay review show`: report, responses, other attempts and past decisions.

    `opinions` are those that the reader may see; `opinions_hidden` counts those that the reader may
    see only after their own. An export has neither.
    """

    assessment: AssessmentDocument = inlined()
    context: str
    prompt: tuple[MessageDocument, ...]
    expected: Json
    ideal: str | None
    final_answer: str | None
    report: str
    ranking: tuple[str, ...]
    labels: Mapping[str, str]
    shown: tuple[str, ...]
    judge_grades: tuple[Grade, ...]
    judge_scores: Mapping[str, float | None]
    raw: str | None
    responses: tuple[Response, ...]
    attempts: tuple[str, ...]
    events: tuple[ReviewEventDocument, ...]
    call: Mapping[str, Json]
    opinions: tuple[OpinionDocument, ...] | Absent = optional()
    opinions_hidden: int | Absent = optional()


def approvals_document(approvals: Approvals) -> ApprovalsDocument:
    return ApprovalsDocument(
        shown=approvals.shown, scripted=approvals.scripted, imported=approvals.imported
    )


def calibration_stamp(record: CalibrationRecord | None) -> CalibrationStampDocument | None:
    if record is None:
        return None
    return CalibrationStampDocument(tier=record.tier, at=record.at, version=record.version)


def message_documents(messages: Iterable[Message]) -> tuple[MessageDocument, ...]:
    return tuple(
        MessageDocument(role=message.role, content=message.content) for message in messages
    )


def assessment_counts(summary: RunSummary) -> dict[str, int]:
    """Return the number of assessments by state.

    `pending` and `not_required` are always included, other states if not 0.
    """
    always = {AssessmentState.PENDING, AssessmentState.NOT_REQUIRED}
    return {
        str(state): summary.assessments.get(state, 0)
        for state in AssessmentState
        if state in always or summary.assessments.get(state)
    }


def assessment_row(
    row: AssessmentRow, record: CalibrationRecord | None = None, *, failure: Failure | None = None
) -> AssessmentDocument:
    """Return the JSON of one row of `assay review list`; `record` is the judge's current
    calibration.
    """
    assessment = row.assessment
    return AssessmentDocument(
        id=shown_assessment(row.key),
        run_id=row.run_id,
        suite=row.suite,
        task=row.task,
        thing=row.thing,
        trial=row.k,
        trials=row.of,
        attempt=row.attempt,
        state=row.state,
        judge=row.grader,
        calibration=calibration_stamp(record),
        candidates=row.candidates,
        flags=assessment.flags,
        grades=assessment.grades,
        scores=assessment.scores,
        verdicts=assessment.verdicts,
        verifications=assessment.verifications,
        failure=ABSENT if failure is None else _failure_reason(failure),
    )


def failure_reason(failure: Failure | None) -> FailureReasonDocument | None:
    return None if failure is None else _failure_reason(failure)


def _failure_reason(failure: Failure) -> FailureReasonDocument:
    return FailureReasonDocument(kind=failure.kind, fault=failure.fault, detail=failure.detail)


def assessment_detail(
    detail: AssessmentDetail,
    record: CalibrationRecord | None = None,
    *,
    opinions: OpinionsShown | None = None,
) -> AssessmentDetailDocument:
    """Return the JSON of an assessment; `opinions` are those that its reader may see, None to leave
    them out.
    """
    task = detail.task
    assessment = detail.row.assessment
    return AssessmentDetailDocument(
        assessment=assessment_row(detail.row, record),
        context=task.context,
        prompt=message_documents(task.prompt),
        expected=task.expected,
        ideal=task.ideal,
        final_answer=task.final_answer,
        report=assessment.report,
        ranking=assessment.ranking,
        labels=assessment.labels,
        shown=assessment.shown,
        judge_grades=detail.judged.grades,
        judge_scores=detail.judged.scores,
        raw=detail.judged.raw,
        responses=detail.responses,
        attempts=tuple(shown_assessment(key) for key in detail.attempts),
        events=tuple(review_event(event) for event in detail.events),
        call=detail.call,
        opinions=ABSENT if opinions is None else tuple(map(_opinion, opinions.visible)),
        opinions_hidden=ABSENT if opinions is None else opinions.hidden,
    )


def _opinion(opinion: StandingOpinion) -> OpinionDocument:
    given = opinion.given
    return OpinionDocument(
        decision=given.verb,
        reviewer=opinion.reviewer,
        at=opinion.at,
        road=given.road,
        stated_by=given.stated_by or None,
        reason=given.reason,
        note=given.note,
        scores=given.result,
        corrections=_corrections(given.corrections),
    )


def review_event(event: ReviewEvent) -> ReviewEventDocument:
    decision = event.decision
    return ReviewEventDocument(
        event=event.id,
        id=shown_assessment(decision.assessment),
        decision=decision.verb,
        before=event.before,
        after=event.after,
        outcome=event.outcome,
        reviewer=decision.reviewer,
        at=event.at,
        via=decision.via,
        displayed=decision.displayed,
        road=decision.road,
        stated_by=decision.stated_by or None,
        reason=decision.reason,
        note=decision.note,
        corrections=_corrections(decision.corrections),
    )


def _corrections(given: Mapping[Place, float]) -> dict[str, float]:
    return {
        name if criterion is None else f"{name}/{criterion}": value
        for (name, criterion), value in given.items()
    }
