"""JSON of runs, for the command line, the web app and the Python functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from assay.app.review.review_documents import (
    ApprovalsDocument,
    CalibrationStampDocument,
    MessageDocument,
    assessment_counts,
)
from assay.app.runs.counts import trial_counts
from assay.app.statistics.diagnostic_documents import (
    ReferenceAgreementDocument,
    reference_agreement,
)
from assay.app.wire import attributes, document, fill, source
from assay.domain.identifiers import shown_assessment, shown_trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.provenance import Provenance
    from assay.app.runs.causes import Pause
    from assay.app.runs.execution import RunResult
    from assay.app.runs.preflight import LookAhead
    from assay.app.runs.regrade import Conclusion, Regraded, RegradePlan
    from assay.app.runs.remaining_cost import RemainingCost
    from assay.domain.calls import ModelRequest
    from assay.domain.identifiers import RunId
    from assay.domain.jobs import BatchJob
    from assay.domain.review import Approvals
    from assay.domain.selection import RunSummary, TrialRow
    from assay.domain.suite import Rubric
    from assay.statistics.comparisons import Comparison

Range: TypeAlias = tuple[float, float]


@document
class TokensDocument:
    """JSON of the number of tokens sent and received."""

    input: int = source("input_tokens")
    output: int = source("output_tokens")


@document
class CostEstimateDocument:
    """JSON of the number of planned calls and their cost; an amount is null if a price is
    unknown.
    """

    calls: int
    likely_usd: float | None
    most_usd: float | None
    unpriced: tuple[str, ...]


@document
class FailedTrialDocument:
    """JSON of a failed trial: the failure's kind, fault and detail, and the number of attempts."""

    id: str
    task: str
    trial: int = source("k")
    kind: str | None
    fault: str | None
    detail: str | None
    tries: int | None


@document
class JudgeStampDocument:
    """JSON of a judge with its current calibration."""

    judge: str
    calibration: CalibrationStampDocument | None


@document
class BudgetDocument:
    """JSON of a run's budget and cost; `over_usd` is above 0 if calls cost more than was reserved
    for them.

    `enough_usd` is a budget that probably covers the trials that the budget left undone.
    """

    usd: float
    booked_usd: float
    over_usd: float
    enough_usd: float | None


@document
class SampleAnswerDocument:
    """JSON of one answer of a candidate, shortened; `score` is null if no score of it counts
    yet.
    """

    candidate: str
    task: str
    trial: int = source("k")
    text: str
    expected: str | None
    score: float | None


@document
class SignDocument:
    """JSON of a sign that a run's scores deserve a look; `command` applies the remedy, if a command
    does.
    """

    code: str
    candidate: str | None
    text: str
    command: str | None


@document
class CauseDocument:
    """JSON of one cause of failed trials: its kind and fault, the message of one case, and the
    number of trials.
    """

    kind: str
    fault: str
    detail: str
    trials: int


@document
class PauseDocument(CauseDocument):
    """JSON of the reason why a run paused itself, with the model whose calls failed; `trials` are
    pending, not failed.
    """

    model: str
    remedy: str


@document
class RemainingCostDocument:
    """JSON of what an unfinished run will probably cost, from what its `answered_calls` really
    cost, by role and model.
    """

    answered_calls: int
    paid_usd: float
    remaining_usd: float
    total_usd: float


@document
class RunResultDocument:
    """JSON of `assay run`, `assay resume` and `assay extend`."""

    run_id: str
    suite: str
    state: str
    trials: dict[str, int]
    assessments: dict[str, int]
    failures: tuple[FailedTrialDocument, ...]
    causes: tuple[CauseDocument, ...]
    paused: PauseDocument | None
    tokens: TokensDocument
    cost_usd: float | None
    unpriced_calls: int
    budget: BudgetDocument | None
    remaining: RemainingCostDocument | None
    judges: tuple[JudgeStampDocument, ...]
    answers: tuple[SampleAnswerDocument, ...]
    signs: tuple[SignDocument, ...]
    seconds: float


@document
class BatchJobDocument:
    """JSON of a batch at a provider. `answered` counts the requests with stored answers."""

    id: str = source("token")
    run_id: str = source("run")
    stage: str
    place: str
    model: str
    state: str
    status: str | None
    requests: int
    answered: int
    remote_id: str | None
    created: str
    sent: str | None
    ended: str | None
    detail: str | None


@document
class RunInBatchesDocument:
    """JSON of a run in batch mode: its result so far, its jobs, and the counts of the last check
    for answers.
    """

    run: RunResultDocument
    jobs: tuple[BatchJobDocument, ...]
    answered: int
    unknown_lines: int
    repeated_lines: int
    broken_lines: int
    troubles: tuple[str, ...]


@document
class GradeChangesDocument:
    """JSON of the number of scores that a regrade changed or kept, and of the assessments that kept
    their review.
    """

    changed: int
    unchanged: int
    kept_reviews: int


@document
class GradeChangeDocument:
    """JSON of one candidate's score in one trial, before and after a regrade."""

    id: str
    task: str
    thing: str
    trial: int = source("k")
    candidate: str
    judge_before: str = source("grader_before")
    judge: str = source("grader_after")
    before: float | None
    after: float | None
    state: str


@document
class ConclusionSideDocument:
    """JSON of the comparison of two candidates in one run."""

    decision: str
    difference: float | None
    ci95: Range | None
    p_value: float | None
    reason: str | None
    verdict: str


@document
class ConclusionDocument:
    """JSON of the comparison of two candidates, before and after a regrade."""

    a: str
    b: str
    changed: bool
    before: ConclusionSideDocument
    after: ConclusionSideDocument


@document
class RegradeDocument(RunResultDocument):
    """JSON of `assay regrade`: the run and the changed scores."""

    regrade_of: str
    grades: GradeChangesDocument
    changed: tuple[GradeChangeDocument, ...]
    conclusions: tuple[ConclusionDocument, ...]
    agreement: tuple[ReferenceAgreementDocument, ...]
    notes: tuple[str, ...]


@document
class RunSummaryDocument:
    """JSON of one row of `assay runs`.

    `approvals` counts its grades that people approved or corrected.
    """

    run_id: str
    suite: str
    state: str
    started: str
    finished: str | None
    batch_id: str | None
    candidates: tuple[str, ...]
    judges: tuple[str, ...]
    trials: dict[str, int]
    assessments: dict[str, int]
    approvals: ApprovalsDocument
    tokens: TokensDocument
    cost_usd: float | None
    started_from: str | None


@document
class PromptDocument:
    """JSON of a request to a model, as the run would send it."""

    role: str = source("purpose.role")
    model: str = source("model.ref")
    task: str = source("purpose.task")
    candidate: str | None = source("purpose.candidate")
    messages: tuple[MessageDocument, ...]


@document
class DryRunDocument(CostEstimateDocument):
    """JSON of `assay run --dry-run`; `reviews` counts the assessments that will or may await
    review.
    """

    suite: str
    tasks: int
    trials: int
    reviews: int
    budget_usd: float | None
    notes: tuple[str, ...]
    failures: tuple[FailedTrialDocument, ...]
    prompts: tuple[PromptDocument, ...]


@document
class RegradePlanDocument(CostEstimateDocument):
    """JSON of `assay regrade --dry-run`."""

    regrade_of: str | None
    tasks: int
    trials: int
    notes: tuple[str, ...]
    failures: tuple[FailedTrialDocument, ...]


@document
class CallTotalsDocument:
    """JSON of the total calls of one model in one role; `latency_s` is the mean."""

    role: str
    name: str
    model: str
    model_version: str | None
    calls: int
    failed_calls: int = source("failed")
    tokens: TokensDocument
    cost_usd: float | None
    latency_s: float | None
    first_call: str = source("first")
    last_call: str = source("last")


@document
class CriterionDocument:
    """JSON of a rubric's criterion, with the lowest and highest score of its scale."""

    name: str
    weight: float
    scale: tuple[float, float]


@document
class GuidedCriterionDocument(CriterionDocument):
    """JSON of a rubric's criterion, with its guidance for judges."""

    guidance: str


def job_document(job: BatchJob) -> BatchJobDocument:
    return fill(BatchJobDocument, job)


def criteria(rubric: Rubric) -> tuple[GuidedCriterionDocument, ...]:
    return tuple(
        fill(GuidedCriterionDocument, criterion, scale=(criterion.low, criterion.high))
        for criterion in rubric.criteria
    )


def answered(provenance: Provenance) -> tuple[CallTotalsDocument, ...]:
    return tuple(fill(CallTotalsDocument, totals, tokens=totals) for totals in provenance.totals)


def dry_run(ahead: LookAhead, *, prompts: Sequence[ModelRequest]) -> DryRunDocument:
    return fill(
        DryRunDocument,
        ahead.estimate,
        suite=ahead.plan.suite,
        **attributes(ahead, "tasks", "trials", "reviews", "notes"),
        budget_usd=ahead.plan.budget_usd,
        failures=(),
        prompts=prompts,
    )


def planned_regrade(ahead: RegradePlan, *, trials: int) -> RegradePlanDocument:
    return fill(
        RegradePlanDocument,
        ahead.estimate,
        regrade_of=ahead.plan.regrade_of,
        tasks=len(ahead.tasks),
        trials=trials,
        notes=ahead.notes,
        failures=(),
    )


def run_result(result: RunResult) -> RunResultDocument:
    """Return the JSON of `assay run`, `assay resume` and `assay extend`."""
    return fill(
        RunResultDocument,
        result.summary,
        **_counts(result.summary),
        failures=tuple(failed_trial(row) for row in result.failures),
        causes=result.causes,
        paused=None
        if result.pause is None
        else pause_document(result.pause, result.summary.id, result.enough_usd),
        unpriced_calls=result.summary.unpriced_calls,
        budget=_budget(result),
        remaining=remaining_document(result.remaining),
        judges=tuple(
            fill(JudgeStampDocument, record, judge=name, calibration=record)
            for name, record in result.calibrations.items()
        ),
        answers=tuple(fill(SampleAnswerDocument, answer) for answer in result.look.answers),
        signs=tuple(fill(SignDocument, sign, code=sign.kind.value) for sign in result.look.signs),
        seconds=round(result.seconds, 3),
    )


def remaining_document(remaining: RemainingCost | None) -> RemainingCostDocument | None:
    return None if remaining is None else fill(RemainingCostDocument, remaining)


def pause_document(pause: Pause, run: RunId, enough_usd: float | None) -> PauseDocument:
    return fill(PauseDocument, pause, remedy=pause.remedy(run, enough_usd))


def _budget(result: RunResult) -> BudgetDocument | None:
    summary = result.summary
    if summary.budget_usd is None:
        return None
    over = max(0.0, round(summary.booked_usd - summary.budget_usd, 9))
    return BudgetDocument(
        usd=summary.budget_usd,
        booked_usd=summary.booked_usd,
        over_usd=over,
        enough_usd=result.enough_usd,
    )


def regrade_result(regraded: Regraded) -> RegradeDocument:
    return fill(
        RegradeDocument,
        run_result(regraded.result),
        regrade_of=regraded.origin,
        grades=fill(GradeChangesDocument, regraded, changed=len(regraded.changed)),
        changed=tuple(
            fill(GradeChangeDocument, change, id=shown_assessment(change.assessment))
            for change in regraded.changed
        ),
        conclusions=tuple(_conclusion(conclusion) for conclusion in regraded.conclusions),
        agreement=tuple(map(reference_agreement, regraded.agreement)),
        notes=regraded.notes,
    )


def run_summary(summary: RunSummary, given: Approvals) -> RunSummaryDocument:
    """Return the JSON of a run; `given` counts its approvals."""
    return fill(RunSummaryDocument, summary, **_counts(summary), approvals=given)


def _counts(summary: RunSummary) -> dict[str, object]:
    return {
        "run_id": summary.id,
        "trials": trial_counts(summary),
        "assessments": assessment_counts(summary),
        "tokens": summary,
    }


def failed_trial(row: TrialRow) -> FailedTrialDocument:
    names = ("kind", "fault", "detail", "tries")
    failure = dict.fromkeys(names) if row.failure is None else attributes(row.failure, *names)
    return fill(FailedTrialDocument, row, id=shown_trial(row.key), **failure)


def _conclusion(conclusion: Conclusion) -> ConclusionDocument:
    before, after = conclusion.verdicts
    return ConclusionDocument(
        a=str(conclusion.before.a),
        b=str(conclusion.before.b),
        changed=conclusion.changed,
        before=_side(conclusion.before, before),
        after=_side(conclusion.after, after),
    )


def _side(comparison: Comparison, verdict: str) -> ConclusionSideDocument:
    return fill(ConclusionSideDocument, comparison, verdict=verdict)
