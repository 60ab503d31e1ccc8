"""JSON of `diagnostics` in `assay stats` and `assay compare`: figures that accompany a result but
do not change it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from assay.analysis.partial_review import CalibratedRank
from assay.analysis.positions import JudgePositions
from assay.app.statistics.reference_documents import ReferenceAgreementDocument, reference_agreement
from assay.app.wire import Absent, document, inlined

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from assay.analysis.agreement import JudgeAgainstPeople, JudgesAmongThemselves
    from assay.analysis.diagnostics import (
        ComparisonDiagnostics,
        ScoreDiagnostics,
        VerdictDiagnostics,
    )
    from assay.analysis.fair_play import FairPlay, PairRejection, ReviewRates
    from assay.analysis.partial_review import CalibratedPair, CalibratedRanking, PartlyReviewed
    from assay.analysis.verdict_agreement import VerdictAgreement
    from assay.statistics.bounds import Coverage
    from assay.statistics.comparisons import Comparison
    from assay.statistics.estimates import Estimate
    from assay.statistics.fair_play import RateTest
    from assay.statistics.partly_reviewed import PartialMean
    from assay.statistics.planning import DesignVariances
    from assay.statistics.variances import VarianceComponents

Range: TypeAlias = tuple[float, float]


@document
class ReviewRatesDocument:
    """JSON of reviewers' decisions on one candidate's assessments."""

    candidate: str
    n_judged: int
    n_decided: int
    approved: int
    corrected: int
    rejected: int
    rerun: int
    graded_by_person: int
    approval_rate: float | None
    rejection_rate: float | None
    rerun_rate: float | None


@document
class RateTestDocument:
    """JSON of a test that all candidates have equal rates."""

    p_value: float | None
    method: str | None
    reason: str | None


@document
class SelectiveRejectionDocument:
    """JSON of a test for rejections that favour one of two candidates."""

    a: str
    b: str
    excess: float | None
    p_value: float | None
    p_holm: float | None
    n_rejected: int
    n_counted: int
    n_tasks: int
    method: str | None
    reason: str | None


@document
class FairPlayDocument:
    """JSON of the rates and tests that show whether review treated all candidates equally."""

    rates: tuple[ReviewRatesDocument, ...]
    approval_test: RateTestDocument | None
    rerun_test: RateTestDocument | None
    selective_rejection: tuple[SelectiveRejectionDocument, ...]


@document
class ScoreDocument:
    """JSON of one candidate's mean under a different rule for counting."""

    candidate: str
    mean: float | None
    ci95: Range | None
    n_trials: int
    n_tasks: int
    scope: str
    reason: str | None


@document
class ScoreListDocument:
    """JSON of all candidates' means under a different rule for counting."""

    scores: tuple[ScoreDocument, ...]


@document
class PutBackDocument:
    """JSON of the means if rejected assessments counted with the judge's scores; `put_back` is
    their number.
    """

    scores: tuple[ScoreDocument, ...]
    put_back: int


@document
class BoundsDocument:
    """JSON of the lowest and highest possible mean if rejected assessments counted."""

    candidate: str
    lowest: float | None
    highest: float | None


@document
class FirstAttemptDocument:
    """JSON of one candidate's means over first attempts and over final attempts."""

    candidate: str
    first: float | None
    final: float | None
    n_trials: int


@document
class FirstAttemptsDocument:
    """JSON of all candidates' means if first attempts counted; `rerun` is the number of assessments
    that were rerun.
    """

    rerun: int
    scores: tuple[FirstAttemptDocument, ...]


@document
class CoverageDocument:
    """JSON of the fraction of a candidate's planned trials that count."""

    candidate: str
    n_counted: int
    n_planned: int
    rate: float | None
    missing_as_zero: float | None
    missing_as_one: float | None
    missing_left_out: float | None
    reason: str | None


@document
class CriterionScoresDocument:
    """JSON of all candidates' means on one criterion."""

    scores: tuple[ScoreDocument, ...]
    criterion: str


@document
class JudgeScoresDocument:
    """JSON of all candidates' means according to one judge."""

    scores: tuple[ScoreDocument, ...]
    judge: str


@document
class TrialScoresDocument:
    """JSON of all candidates' means over trials with one trial number, such as the first trial of
    each task.
    """

    scores: tuple[ScoreDocument, ...]
    trial: int


@document
class VerdictAgreementDocument:
    """JSON of a judge's agreement with people's decisions on verdicts; `confusion` counts its
    verdicts for each of theirs.
    """

    labels: tuple[str, ...]
    n: int
    agreement: float | None
    ci95: Range | None
    n_tasks: int
    kappa: float | None
    kappa_ci95: Range | None
    bias: float | None
    bias_ci95: Range | None
    people_rates: dict[str, float]
    judge_rates: dict[str, float]
    confusion: dict[str, dict[str, int]]
    reason: str | None


@document
class JudgeAccuracyDocument:
    """JSON of a judge's accuracy, measured against grades that people approved or entered."""

    judge: str
    n: int
    n_corrected: int
    bias: float | None
    bias_ci95: Range | None
    mae: float | None
    max_error: float | None
    tolerance: float
    within_tolerance: float | None
    pearson: float | None
    concordance: float | None
    concordance_ci95: Range | None
    limits_of_agreement: Range | None
    label: str | None
    pairs_advised: int
    reason: str | None
    verdicts: VerdictAgreementDocument | None


@document
class JudgeAgreementDocument:
    """JSON of the agreement between judges that graded the same trials."""

    judges: tuple[str, ...]
    alpha: float | None
    alpha_ci95: Range | None
    reading: str | None
    agreement: float | None
    tolerance: float | None
    icc_a1: float | None
    icc_a1_ci95: Range | None
    n_units: int
    reason: str | None


@document
class VarianceDocument:
    """JSON of the variance of a candidate's scores, by source."""

    candidate: str
    var_task: float | None
    var_trial: float | None
    var_judge: float | None
    icc1: float | None
    icc1_ci95: Range | None
    reliability: float | None
    n_tasks: int
    n_trials: int
    reason: str | None


@document
class PartialMeanDocument:
    """JSON of a candidate's mean under one assumption about the pending assessments."""

    mean: float | None
    ci95: Range | None
    scope: str
    n_trials: int
    n_tasks: int
    assumes: str
    reason: str | None


@document
class CalibratedMeanDocument:
    """JSON of a mean estimated from a review sample: method, weight of the judge, and number of
    reviewed trials.
    """

    mean: PartialMeanDocument = inlined()
    method: str | None
    lam: float | None
    n_reviewed: int | None


@document
class PartialReviewDocument:
    """JSON of a candidate's mean while assessments are pending, under three assumptions."""

    candidate: str
    n_waiting: int
    n_left_out: int
    vetted_only: PartialMeanDocument
    judge_as_it_is: PartialMeanDocument
    calibrated: CalibratedMeanDocument


@document
class CalibratedPairDocument:
    """JSON of a difference estimated from a review sample. It is never the result.

    `more_reviews` is the number of further reviews that decide the difference with 80% power if it
    stays unchanged; null if it is decided, or if a review of every trial would not decide it.
    """

    a: str
    b: str
    difference: float | None
    ci95: Range | None
    p_value: float | None
    p_holm: float | None
    decision: str
    scope: str
    method: str | None
    lam: float | None
    n_tasks: int
    n_reviewed: int
    n_trials: int
    more_reviews: int | None
    assumes: str
    reason: str | None


@document
class CalibratedRankingDocument:
    """JSON of ranks and pairs, estimated from a review sample. They are never the result."""

    candidates: tuple[CalibratedRank, ...]
    pairs: tuple[CalibratedPairDocument, ...]
    reason: str | None


@document
class ScoreDiagnosticsDocument:
    """JSON of `diagnostics` in `assay stats`.

    A page omits fields that would show a reviewer the judge's grades.
    """

    fair_play: FairPlayDocument
    with_rejected: PutBackDocument
    rejected_bounds: tuple[BoundsDocument, ...]
    first_attempts: FirstAttemptsDocument
    judge_as_it_is: ScoreListDocument | Absent
    coverage: tuple[CoverageDocument, ...]
    by_criterion: tuple[CriterionScoresDocument, ...]
    by_judge: tuple[JudgeScoresDocument, ...]
    by_trial: tuple[TrialScoresDocument, ...]
    by_position: tuple[JudgePositions, ...]
    judge_against_people: tuple[JudgeAccuracyDocument, ...]
    judge_against_references: tuple[ReferenceAgreementDocument, ...]
    judges_among_themselves: JudgeAgreementDocument | None
    variance: tuple[VarianceDocument, ...]
    partial_review: tuple[PartialReviewDocument, ...] | Absent
    calibrated: CalibratedRankingDocument | Absent | None


@document
class VerdictDiagnosticsDocument:
    """JSON of `diagnostics` in `assay stats` and `compare` with `--criterion verdict`; all figures
    are about verdicts.
    """

    judge_against_people: tuple[JudgeAccuracyDocument, ...]
    judge_against_references: tuple[ReferenceAgreementDocument, ...]


@document
class OtherResultDocument:
    """JSON of a comparison under a different rule for counting."""

    a_minus_b: float | None
    ci95: Range | None
    p_value: float | None
    would_be: str
    reason: str | None


@document
class OtherResultWithRejectedDocument:
    """JSON of a comparison if rejected assessments counted; `changes` is True if this changes the
    decision.
    """

    result: OtherResultDocument = inlined()
    put_back: int
    changes: bool


@document
class FirstAttemptsComparedDocument:
    """JSON of the difference between two candidates over first attempts and over final attempts."""

    rerun: int
    a_minus_b_first: float | None
    a_minus_b_final: float | None
    would_be: str


@document
class DesignVarianceDocument:
    """JSON of the variance of a paired comparison, by source."""

    interaction: float | None
    trial: float | None
    n_tasks: int
    n_trials: float
    paired: bool
    split_known: bool


@document
class ComparisonDiagnosticsDocument:
    """JSON of `diagnostics` in `assay compare`.

    A page omits fields that would show a reviewer the judge's grades.
    """

    fair_play: FairPlayDocument
    with_rejected: OtherResultWithRejectedDocument
    first_attempts: FirstAttemptsComparedDocument
    judge_as_it_is: OtherResultDocument | Absent
    coverage: tuple[CoverageDocument, ...]
    judge_against_people: tuple[JudgeAccuracyDocument, ...]
    variance: DesignVarianceDocument | None
    calibrated: CalibratedPairDocument | Absent | None


def score_diagnostics(diagnostics: ScoreDiagnostics) -> ScoreDiagnosticsDocument:
    bounds = zip(diagnostics.rejected_worst, diagnostics.rejected_best, strict=True)
    attempts = zip(diagnostics.first_attempts, diagnostics.final_attempts, strict=True)
    return ScoreDiagnosticsDocument(
        fair_play=_fair_play(diagnostics.fair_play),
        with_rejected=PutBackDocument(
            scores=_scores(diagnostics.with_rejected), put_back=diagnostics.n_put_back
        ),
        rejected_bounds=tuple(
            BoundsDocument(candidate=str(low.candidate), lowest=low.mean, highest=high.mean)
            for low, high in bounds
        ),
        first_attempts=FirstAttemptsDocument(
            rerun=diagnostics.n_rerun,
            scores=tuple(
                FirstAttemptDocument(
                    candidate=str(first.candidate),
                    first=first.mean,
                    final=final.mean,
                    n_trials=first.n_trials,
                )
                for first, final in attempts
            ),
        ),
        judge_as_it_is=ScoreListDocument(scores=_scores(diagnostics.as_judged)),
        coverage=_coverage(diagnostics.coverage),
        by_criterion=tuple(
            CriterionScoresDocument(scores=_scores(split.estimates), criterion=split.name)
            for split in diagnostics.by_criterion
        ),
        by_judge=tuple(
            JudgeScoresDocument(scores=_scores(split.estimates), judge=split.name)
            for split in diagnostics.by_judge
        ),
        by_trial=tuple(
            TrialScoresDocument(scores=_scores(split.estimates), trial=int(split.name))
            for split in diagnostics.by_trial
        ),
        by_position=diagnostics.positions,
        judge_against_people=_accuracies(diagnostics.against_people),
        judge_against_references=tuple(map(reference_agreement, diagnostics.against_references)),
        judges_among_themselves=None
        if diagnostics.among_judges is None
        else _judge_agreement(diagnostics.among_judges),
        variance=tuple(map(_variance, diagnostics.variance)),
        partial_review=tuple(_partial_review(partial) for partial in diagnostics.partly),
        calibrated=None
        if diagnostics.calibrated is None
        else calibrated_ranking(diagnostics.calibrated),
    )


def _scores(estimates: Iterable[Estimate]) -> tuple[ScoreDocument, ...]:
    return tuple(
        ScoreDocument(
            candidate=str(estimate.candidate),
            mean=estimate.mean,
            ci95=estimate.ci95,
            n_trials=estimate.n_trials,
            n_tasks=estimate.n_tasks,
            scope=estimate.scope,
            reason=estimate.reason,
        )
        for estimate in estimates
    )


def _coverage(shares: Iterable[Coverage]) -> tuple[CoverageDocument, ...]:
    return tuple(
        CoverageDocument(
            candidate=str(coverage.candidate),
            n_counted=coverage.n_counted,
            n_planned=coverage.n_planned,
            rate=coverage.rate,
            missing_as_zero=coverage.missing_as_zero,
            missing_as_one=coverage.missing_as_one,
            missing_left_out=coverage.missing_left_out,
            reason=coverage.reason,
        )
        for coverage in shares
    )


def _variance(components: VarianceComponents) -> VarianceDocument:
    return VarianceDocument(
        candidate=str(components.candidate),
        var_task=components.var_task,
        var_trial=components.var_trial,
        var_judge=components.var_judge,
        icc1=components.icc1,
        icc1_ci95=components.icc1_ci95,
        reliability=components.reliability,
        n_tasks=components.n_tasks,
        n_trials=components.n_trials,
        reason=components.reason,
    )


def _judge_agreement(judges: JudgesAmongThemselves) -> JudgeAgreementDocument:
    alpha = judges.alpha
    return JudgeAgreementDocument(
        judges=judges.judges,
        alpha=alpha.alpha,
        alpha_ci95=alpha.ci95,
        reading=alpha.reading,
        agreement=alpha.agreement,
        tolerance=alpha.tolerance,
        icc_a1=judges.icc.icc_a1,
        icc_a1_ci95=judges.icc.icc_a1_ci95,
        n_units=alpha.n_units,
        reason=alpha.reason,
    )


def verdict_diagnostics(diagnostics: VerdictDiagnostics) -> VerdictDiagnosticsDocument:
    return VerdictDiagnosticsDocument(
        judge_against_people=_accuracies(diagnostics.against_people),
        judge_against_references=tuple(map(reference_agreement, diagnostics.against_references)),
    )


def comparison_diagnostics(diagnostics: ComparisonDiagnostics) -> ComparisonDiagnosticsDocument:
    first, final = diagnostics.first_attempts, diagnostics.final_attempts
    return ComparisonDiagnosticsDocument(
        fair_play=_fair_play(diagnostics.fair_play),
        with_rejected=OtherResultWithRejectedDocument(
            result=_other_result(diagnostics.with_rejected),
            put_back=diagnostics.n_put_back,
            changes=diagnostics.changes,
        ),
        first_attempts=FirstAttemptsComparedDocument(
            rerun=diagnostics.n_rerun,
            a_minus_b_first=first.difference,
            a_minus_b_final=final.difference,
            would_be=first.decision,
        ),
        judge_as_it_is=_other_result(diagnostics.as_judged),
        coverage=_coverage(diagnostics.coverage),
        judge_against_people=_accuracies(diagnostics.against_people),
        variance=None if diagnostics.variance is None else _design_variance(diagnostics.variance),
        calibrated=None
        if diagnostics.calibrated is None
        else _calibrated_pair(diagnostics.calibrated),
    )


def _other_result(comparison: Comparison) -> OtherResultDocument:
    return OtherResultDocument(
        a_minus_b=comparison.difference,
        ci95=comparison.ci95,
        p_value=comparison.p_value,
        would_be=comparison.decision,
        reason=comparison.reason,
    )


def _design_variance(variances: DesignVariances) -> DesignVarianceDocument:
    return DesignVarianceDocument(
        interaction=variances.interaction,
        trial=variances.trial,
        n_tasks=variances.n_tasks,
        n_trials=variances.n_trials,
        paired=variances.paired,
        split_known=variances.split_known,
    )


def calibrated_ranking(ranking: CalibratedRanking) -> CalibratedRankingDocument:
    return CalibratedRankingDocument(
        candidates=ranking.candidates,
        pairs=tuple(_calibrated_pair(pair) for pair in ranking.pairs),
        reason=ranking.reason,
    )


def _calibrated_pair(pair: CalibratedPair) -> CalibratedPairDocument:
    result = pair.result
    return CalibratedPairDocument(
        a=pair.a,
        b=pair.b,
        difference=result.difference,
        ci95=result.ci95,
        p_value=result.p_value,
        p_holm=result.p_holm,
        decision=result.decision,
        scope="tasks_like_these",
        method=result.method,
        lam=result.lam,
        n_tasks=result.n_tasks,
        n_reviewed=result.n_reviewed,
        n_trials=result.n_trials,
        more_reviews=pair.more_reviews,
        assumes=result.assumes,
        reason=result.reason,
    )


def _fair_play(fair_play: FairPlay) -> FairPlayDocument:
    return FairPlayDocument(
        rates=tuple(_rates(rates) for rates in fair_play.rates),
        approval_test=_rate_test(fair_play.approval),
        rerun_test=_rate_test(fair_play.rerun),
        selective_rejection=tuple(map(_selective_rejection, fair_play.joint)),
    )


def _rate_test(test: RateTest | None) -> RateTestDocument | None:
    if test is None:
        return None
    return RateTestDocument(p_value=test.p_value, method=test.method, reason=test.reason)


def _selective_rejection(pair: PairRejection) -> SelectiveRejectionDocument:
    test = pair.test
    return SelectiveRejectionDocument(
        a=pair.a,
        b=pair.b,
        excess=test.excess,
        p_value=test.p_value,
        p_holm=pair.p_holm,
        n_rejected=test.n_rejected,
        n_counted=test.n_counted,
        n_tasks=test.n_tasks,
        method=test.method,
        reason=test.reason,
    )


def _rates(rates: ReviewRates) -> ReviewRatesDocument:
    return ReviewRatesDocument(
        candidate=rates.candidate,
        n_judged=rates.n_judged,
        n_decided=rates.n_decided,
        approved=rates.approved,
        corrected=rates.corrected,
        rejected=rates.rejected,
        rerun=rates.rerun,
        graded_by_person=rates.by_person,
        # A corrected assessment was also kept, and fairness concerns only the rejected ones.
        approval_rate=_share(rates.approved + rates.corrected, rates.n_decided),
        rejection_rate=_share(rates.rejected, rates.n_decided),
        rerun_rate=_share(rates.rerun, rates.n_judged),
    )


def _accuracies(judges: Sequence[JudgeAgainstPeople]) -> tuple[JudgeAccuracyDocument, ...]:
    return tuple(map(_accuracy, judges))


def _accuracy(judge: JudgeAgainstPeople) -> JudgeAccuracyDocument:
    calibration = judge.calibration
    return JudgeAccuracyDocument(
        judge=judge.judge,
        n=calibration.n,
        n_corrected=judge.n_corrected,
        bias=calibration.bias,
        bias_ci95=calibration.bias_ci95,
        mae=calibration.mae,
        max_error=calibration.max_error,
        tolerance=calibration.tolerance,
        within_tolerance=calibration.pass_rate,
        pearson=calibration.pearson,
        concordance=calibration.concordance,
        concordance_ci95=calibration.concordance_ci95,
        limits_of_agreement=calibration.limits_of_agreement,
        label=calibration.label,
        pairs_advised=calibration.pairs_advised,
        reason=calibration.reason,
        verdicts=None if judge.verdicts is None else _verdict_agreement(judge.verdicts),
    )


def _verdict_agreement(verdicts: VerdictAgreement) -> VerdictAgreementDocument:
    agreement = verdicts.agreement
    return VerdictAgreementDocument(
        labels=verdicts.labels,
        n=verdicts.calibration.n,
        agreement=agreement.mean,
        ci95=agreement.ci95,
        n_tasks=agreement.n_tasks,
        kappa=verdicts.kappa.kappa,
        kappa_ci95=verdicts.kappa.ci95,
        bias=verdicts.calibration.bias,
        bias_ci95=verdicts.calibration.bias_ci95,
        people_rates=dict(verdicts.people_rates),
        judge_rates=dict(verdicts.judge_rates),
        confusion={
            people: {judge: verdicts.confusion.get((people, judge), 0) for judge in verdicts.labels}
            for people in verdicts.labels
        },
        reason=agreement.reason,
    )


def _partial_review(partial: PartlyReviewed) -> PartialReviewDocument:
    vetted = partial.vetted
    calibrated = partial.review.calibrated
    return PartialReviewDocument(
        candidate=str(vetted.candidate),
        n_waiting=partial.n_waiting,
        n_left_out=partial.n_left_out,
        vetted_only=PartialMeanDocument(
            mean=vetted.mean,
            ci95=vetted.ci95,
            scope=vetted.scope,
            n_trials=vetted.n_trials,
            n_tasks=vetted.n_tasks,
            assumes="nothing",
            reason=vetted.reason,
        ),
        judge_as_it_is=_partial_mean(partial.review.judge_as_it_is),
        calibrated=CalibratedMeanDocument(
            mean=_partial_mean(calibrated),
            method=calibrated.method,
            lam=calibrated.lam,
            n_reviewed=calibrated.n_reviewed,
        ),
    )


def _partial_mean(mean: PartialMean) -> PartialMeanDocument:
    return PartialMeanDocument(
        mean=mean.mean,
        ci95=mean.ci95,
        scope="tasks_like_these",
        n_trials=mean.n_trials,
        n_tasks=mean.n_tasks,
        assumes=mean.assumes,
        reason=mean.reason,
    )


def _share(k: int, n: int) -> float | None:
    return k / n if n else None
