"""JSON of assessments and decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.app.wire import ABSENT, Absent, Json, attributes, document, fill, optional, source
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
class FlagDocument:
    """JSON of a flag: a reason to doubt a grade."""

    kind: str
    detail: str
    candidate: str | None
    criterion: str | None


@document
class GradeDocument:
    """JSON of a candidate's score on one criterion, from 0 to 1; `raw_score` is on the judge's
    scale.
    """

    candidate: str
    criterion: str | None
    score: float | None
    raw_score: float | None
    min_score: float | None
    max_score: float | None
    reason: str
    evidence: tuple[str, ...]
    confidence: float | None


@document
class FailureReasonDocument:
    """JSON of a failure's kind, detail, and fault."""

    kind: str
    fault: str
    detail: str


@document
class VerificationDocument:
    """JSON of a scorer's check of one final answer; `verified` is null if the scorer could not
    decide.
    """

    candidate: str
    scorer: str
    verified: bool | None
    message: str


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
    trial: int = source("k")
    trials: int = source("of")
    attempt: int
    state: str
    judge: str = source("grader")
    calibration: CalibrationStampDocument | None
    candidates: tuple[str, ...]
    flags: tuple[FlagDocument, ...] = source("assessment.flags")
    grades: tuple[GradeDocument, ...] = source("assessment.grades")
    scores: Mapping[str, float | None] = source("assessment.scores")
    verdicts: Mapping[str, str | None] = source("assessment.verdicts")
    verifications: tuple[VerificationDocument, ...] = source("assessment.verifications")
    failure: FailureReasonDocument | Absent = optional()


@document
class MessageDocument:
    """JSON of one message of a prompt."""

    role: str
    content: str


@document
class ResponseDocument:
    """JSON of one candidate's answer."""

    candidate: str
    text: str
    truncated: bool


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
    decision: str = source("decision.verb")
    before: str
    after: str
    outcome: str
    reviewer: str = source("decision.reviewer")
    at: str
    via: str = source("decision.via")
    displayed: str | None = source("decision.displayed")
    road: str = source("decision.road")
    stated_by: str | None
    reason: str = source("decision.reason")
    note: str = source("decision.note")
    corrections: Mapping[str, float] | None


@document
class OpinionDocument:
    """JSON of one of two opinions on an item.

    Keys of corrections are `candidate` or `candidate/criterion`.

    `road`: `shown` on the reviewer's screen, or `scripted`. `stated_by`: the person who gave the
    reviewer's name; null if this was the reviewer. `scores`: the scores from 0 to 1 that the
    opinion would make final; empty for a rejection.
    """

    decision: str = source("given.verb")
    reviewer: str
    at: str
    road: str = source("given.road")
    stated_by: str | None
    reason: str = source("given.reason")
    note: str = source("given.note")
    scores: Mapping[str, float] = source("given.result")
    corrections: Mapping[str, float]


@document
class AssessmentDetailDocument(AssessmentDocument):
    """JSON of `assay review show`: report, responses, other attempts and past decisions.

    `opinions` are those that the reader may see; `opinions_hidden` counts those that the reader may
    see only after their own. An export has neither.
    """

    context: str
    prompt: tuple[MessageDocument, ...]
    expected: Json
    ideal: str | None
    final_answer: str | None
    report: str
    ranking: tuple[str, ...]
    labels: Mapping[str, str]
    shown: tuple[str, ...]
    judge_grades: tuple[GradeDocument, ...]
    judge_scores: Mapping[str, float | None]
    raw: str | None
    responses: tuple[ResponseDocument, ...]
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
    return fill(
        AssessmentDocument,
        row,
        id=shown_assessment(row.key),
        calibration=record,
        failure=ABSENT if failure is None else failure,
    )


def assessment_detail(
    detail: AssessmentDetail,
    record: CalibrationRecord | None = None,
    *,
    opinions: OpinionsShown | None = None,
) -> AssessmentDetailDocument:
    """Return the JSON of an assessment; `opinions` are those that its reader may see, None to leave
    them out.
    """
    return fill(
        AssessmentDetailDocument,
        detail.row,
        id=shown_assessment(detail.row.key),
        calibration=record,
        **attributes(detail.task, "context", "prompt", "expected", "ideal", "final_answer"),
        **attributes(detail.row.assessment, "report", "ranking", "labels", "shown"),
        **attributes(detail, "responses", "call"),
        judge_grades=detail.judged.grades,
        judge_scores=detail.judged.scores,
        raw=detail.judged.raw,
        attempts=tuple(shown_assessment(key) for key in detail.attempts),
        events=tuple(review_event(event) for event in detail.events),
        opinions=ABSENT if opinions is None else tuple(map(_opinion, opinions.visible)),
        opinions_hidden=ABSENT if opinions is None else opinions.hidden,
    )


def _opinion(opinion: StandingOpinion) -> OpinionDocument:
    corrections = _corrections(opinion.given.corrections)
    return fill(
        OpinionDocument, opinion, stated_by=opinion.given.stated_by or None, corrections=corrections
    )


def review_event(event: ReviewEvent) -> ReviewEventDocument:
    return fill(
        ReviewEventDocument,
        event,
        event=event.id,
        id=shown_assessment(event.decision.assessment),
        stated_by=event.decision.stated_by or None,
        corrections=_corrections(event.decision.corrections),
    )


def _corrections(given: Mapping[Place, float]) -> dict[str, float]:
    return {
        name if criterion is None else f"{name}/{criterion}": value
        for (name, criterion), value in given.items()
    }
