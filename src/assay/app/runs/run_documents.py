"""JSON of runs, for the command line, the web app and the Python functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from assay.app.review.review_documents import (
    ApprovalsDocument,
    CalibrationStampDocument,
    MessageDocument,
    approvals_document,
    assessment_counts,
    calibration_stamp,
    message_documents,
)
from assay.app.runs.causes import Cause, Pause
from assay.app.runs.counts import trial_counts
from assay.app.statistics.reference_documents import ReferenceAgreementDocument, reference_agreement
from assay.app.wire import document, inlined
from assay.domain.first_look import SampleAnswer, Sign
from assay.domain.identifiers import shown_assessment, shown_trial
from assay.domain.remaining_cost import RemainingCost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.provenance import Provenance
    from assay.app.runs.execution import RunResult
    from assay.app.runs.preflight import LookAhead
    from assay.app.runs.regrade import Conclusion, Regraded, RegradePlan
    from assay.domain.calls import ModelRequest
    from assay.domain.identifiers import RunId
    from assay.domain.jobs import BatchJob
    from assay.domain.review import Approvals
    from assay.domain.selection import RunSummary, TrialRow
    from assay.domain.suite import Rubric
    from assay.engine.estimate import CostEstimate
    from assay.statistics.comparisons import Comparison

Range: TypeAlias = tuple[float, float]


class CountsTokens(Protocol):
    """A record with the numbers of tokens sent and received."""

    @property
    def input_tokens(self) -> int: ...

    @property
    def output_tokens(self) -> int: ...


@document
class TokensDocument:
    """JSON of the number of tokens sent and received."""

    input: int
    output: int


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
    trial: int
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
class PauseDocument:
    """JSON of the reason why a run paused itself, with the model whose calls failed; `trials` are
    pending, not failed.
    """

    pause: Pause = inlined()
    remedy: str


@document
class RunResultDocument:
    """JSON of `assay run`, `assay resume` and `assay extend`."""

    run_id: str
    suite: str
    state: str
    trials: dict[str, int]
    assessments: dict[str, int]
    failures: tuple[FailedTrialDocument, ...]
    causes: tuple[Cause, ...]
    paused: PauseDocument | None
    tokens: TokensDocument
    cost_usd: float | None
    unpriced_calls: int
    budget: BudgetDocument | None
    remaining: RemainingCost | None
    judges: tuple[JudgeStampDocument, ...]
    answers: tuple[SampleAnswer, ...]
    signs: tuple[Sign, ...]
    seconds: float


@document
class BatchJobDocument:
    """JSON of a batch at a provider. `answered` counts the requests with stored answers."""

    id: str
    run_id: str
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
    trial: int
    candidate: str
    judge_before: str
    judge: str
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
class RegradeDocument:
    """JSON of `assay regrade`: the run and the changed scores."""

    run: RunResultDocument = inlined()
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

    role: str
    model: str
    task: str
    candidate: str | None
    messages: tuple[MessageDocument, ...]


@document
class DryRunDocument:
    """JSON of `assay run --dry-run`; `reviews` counts the assessments that will or may await
    review.
    """

    estimate: CostEstimateDocument = inlined()
    suite: str
    tasks: int
    trials: int
    reviews: int
    budget_usd: float | None
    notes: tuple[str, ...]
    failures: tuple[FailedTrialDocument, ...]
    prompts: tuple[PromptDocument, ...]


@document
class RegradePlanDocument:
    """JSON of `assay regrade --dry-run`."""

    estimate: CostEstimateDocument = inlined()
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
    failed_calls: int
    tokens: TokensDocument
    cost_usd: float | None
    latency_s: float | None
    first_call: str
    last_call: str


@document
class CriterionDocument:
    """JSON of a rubric's criterion, with the lowest and highest score of its scale."""

    name: str
    weight: float
    scale: tuple[float, float]


@document
class GuidedCriterionDocument:
    """JSON of a rubric's criterion, with its guidance for judges."""

    criterion: CriterionDocument = inlined()
    guidance: str


def job_document(job: BatchJob) -> BatchJobDocument:
    return BatchJobDocument(
        id=job.token,
        run_id=job.run,
        stage=job.stage,
        place=job.place,
        model=job.model,
        state=job.state,
        status=job.status,
        requests=job.requests,
        answered=job.answered,
        remote_id=job.remote_id,
        created=job.created,
        sent=job.sent,
        ended=job.ended,
        detail=job.detail,
    )


def criteria(rubric: Rubric) -> tuple[GuidedCriterionDocument, ...]:
    return tuple(
        GuidedCriterionDocument(
            criterion=CriterionDocument(
                name=criterion.name, weight=criterion.weight, scale=(criterion.low, criterion.high)
            ),
            guidance=criterion.guidance,
        )
        for criterion in rubric.criteria
    )


def cost_estimate(estimate: CostEstimate) -> CostEstimateDocument:
    return CostEstimateDocument(
        calls=estimate.calls,
        likely_usd=estimate.likely_usd,
        most_usd=estimate.most_usd,
        unpriced=estimate.unpriced,
    )


def tokens_document(counts: CountsTokens) -> TokensDocument:
    return TokensDocument(input=counts.input_tokens, output=counts.output_tokens)


def answered(provenance: Provenance) -> tuple[CallTotalsDocument, ...]:
    return tuple(
        CallTotalsDocument(
            role=totals.role,
            name=totals.name,
            model=totals.model,
            model_version=totals.model_version,
            calls=totals.calls,
            failed_calls=totals.failed,
            tokens=tokens_document(totals),
            cost_usd=totals.cost_usd,
            latency_s=totals.latency_s,
            first_call=totals.first,
            last_call=totals.last,
        )
        for totals in provenance.totals
    )


def dry_run(ahead: LookAhead, *, prompts: Sequence[ModelRequest]) -> DryRunDocument:
    return DryRunDocument(
        estimate=cost_estimate(ahead.estimate),
        suite=ahead.plan.suite,
        tasks=ahead.tasks,
        trials=ahead.trials,
        reviews=ahead.reviews,
        budget_usd=ahead.plan.budget_usd,
        notes=ahead.notes,
        failures=(),
        prompts=tuple(
            PromptDocument(
                role=request.purpose.role,
                model=request.model.ref,
                task=request.purpose.task,
                candidate=request.purpose.candidate,
                messages=message_documents(request.messages),
            )
            for request in prompts
        ),
    )


def planned_regrade(ahead: RegradePlan, *, trials: int) -> RegradePlanDocument:
    return RegradePlanDocument(
        estimate=cost_estimate(ahead.estimate),
        regrade_of=ahead.plan.regrade_of,
        tasks=len(ahead.tasks),
        trials=trials,
        notes=ahead.notes,
        failures=(),
    )


def run_result(result: RunResult) -> RunResultDocument:
    """Return the JSON of `assay run`, `assay resume` and `assay extend`."""
    summary = result.summary
    return RunResultDocument(
        run_id=summary.id,
        suite=summary.suite,
        state=summary.state,
        trials=trial_counts(summary),
        assessments=assessment_counts(summary),
        failures=tuple(failed_trial(row) for row in result.failures),
        causes=result.causes,
        paused=None
        if result.pause is None
        else pause_document(result.pause, summary.id, result.enough_usd),
        tokens=tokens_document(summary),
        cost_usd=summary.cost_usd,
        unpriced_calls=summary.unpriced_calls,
        budget=_budget(result),
        remaining=result.remaining,
        judges=tuple(
            JudgeStampDocument(judge=name, calibration=calibration_stamp(record))
            for name, record in result.calibrations.items()
        ),
        answers=result.look.answers,
        signs=result.look.signs,
        seconds=round(result.seconds, 3),
    )


def pause_document(pause: Pause, run: RunId, enough_usd: float | None) -> PauseDocument:
    return PauseDocument(pause=pause, remedy=pause.remedy(run, enough_usd))


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
    return RegradeDocument(
        run=run_result(regraded.result),
        regrade_of=regraded.origin,
        grades=GradeChangesDocument(
            changed=len(regraded.changed),
            unchanged=regraded.unchanged,
            kept_reviews=regraded.kept_reviews,
        ),
        changed=tuple(
            GradeChangeDocument(
                id=shown_assessment(change.assessment),
                task=change.task,
                thing=change.thing,
                trial=change.k,
                candidate=change.candidate,
                judge_before=change.grader_before,
                judge=change.grader_after,
                before=change.before,
                after=change.after,
                state=change.state,
            )
            for change in regraded.changed
        ),
        conclusions=tuple(_conclusion(conclusion) for conclusion in regraded.conclusions),
        agreement=tuple(map(reference_agreement, regraded.agreement)),
        notes=regraded.notes,
    )


def run_summary(summary: RunSummary, given: Approvals) -> RunSummaryDocument:
    """Return the JSON of a run; `given` counts its approvals."""
    return RunSummaryDocument(
        run_id=summary.id,
        suite=summary.suite,
        state=summary.state,
        started=summary.started,
        finished=summary.finished,
        batch_id=summary.batch_id,
        candidates=summary.candidates,
        judges=summary.judges,
        trials=trial_counts(summary),
        assessments=assessment_counts(summary),
        approvals=approvals_document(given),
        tokens=tokens_document(summary),
        cost_usd=summary.cost_usd,
        started_from=summary.started_from,
    )


def failed_trial(row: TrialRow) -> FailedTrialDocument:
    failure = row.failure
    return FailedTrialDocument(
        id=shown_trial(row.key),
        task=row.task,
        trial=row.k,
        kind=None if failure is None else failure.kind,
        fault=None if failure is None else failure.fault,
        detail=None if failure is None else failure.detail,
        tries=None if failure is None else failure.tries,
    )


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
    return ConclusionSideDocument(
        decision=comparison.decision,
        difference=comparison.difference,
        ci95=comparison.ci95,
        p_value=comparison.p_value,
        reason=comparison.reason,
        verdict=verdict,
    )
