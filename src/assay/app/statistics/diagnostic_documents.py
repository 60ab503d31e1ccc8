"""JSON of `diagnostics` in `assay stats` and `assay compare`: figures that accompany a result but
do not change it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from assay.app.wire import Absent, attributes, document, fill, source
from assay.domain.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.analysis.agreement import JudgeAgainstPeople
    from assay.analysis.diagnostics import (
        ComparisonDiagnostics,
        ScoreDiagnostics,
        VerdictDiagnostics,
    )
    from assay.analysis.fair_play import FairPlay, ReviewRates
    from assay.analysis.partial_review import CalibratedPair, CalibratedRanking, PartlyReviewed
    from assay.analysis.references import JudgeAgainstReferences
    from assay.analysis.verdict_agreement import VerdictAgreement

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
    graded_by_person: int = source("by_person")
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
    excess: float | None = source("test.excess")
    p_value: float | None = source("test.p_value")
    p_holm: float | None
    n_rejected: int = source("test.n_rejected")
    n_counted: int = source("test.n_counted")
    n_tasks: int = source("test.n_tasks")
    method: str | None = source("test.method")
    reason: str | None = source("test.reason")


@document
class FairPlayDocument:
    """JSON of the rates and tests that show whether review treated all candidates equally."""

    rates: tuple[ReviewRatesDocument, ...]
    approval_test: RateTestDocument | None = source("approval")
    rerun_test: RateTestDocument | None = source("rerun")
    selective_rejection: tuple[SelectiveRejectionDocument, ...] = source("joint")


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

    scores: tuple[ScoreDocument, ...] = source("estimates")


@document
class PutBackDocument(ScoreListDocument):
    """JSON of the means if rejected assessments counted with the judge's scores; `put_back` is
    their number.
    """

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
class CriterionScoresDocument(ScoreListDocument):
    """JSON of all candidates' means on one criterion."""

    criterion: str = source("name")


@document
class JudgeScoresDocument(ScoreListDocument):
    """JSON of all candidates' means according to one judge."""

    judge: str = source("name")


@document
class TrialScoresDocument(ScoreListDocument):
    """JSON of all candidates' means over trials with one trial number, such as the first trial of
    each task.
    """

    trial: int


@document
class PositionEffectDocument:
    """JSON of the effect of one position (from 1) in a joint prompt, relative to the mean over all
    positions.
    """

    position: int
    effect: float | None
    ci95: Range | None
    n_scores: int
    n_tasks: int
    reason: str | None


@document
class JudgePositionsDocument:
    """JSON of the effect of position on one judge's scores."""

    judge: str
    effects: tuple[PositionEffectDocument, ...]


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
    within_tolerance: float | None = source("pass_rate")
    pearson: float | None
    concordance: float | None
    concordance_ci95: Range | None
    limits_of_agreement: Range | None
    label: str | None
    pairs_advised: int
    reason: str | None
    verdicts: VerdictAgreementDocument | None


@document
class ReferenceAgreementDocument:
    """JSON of a judge's agreement with imported human grades; `confusion` counts the judge's grades
    for each human verdict.
    """

    judge: str
    agreement: float | None
    ci95: Range | None
    n: int
    n_tasks: int
    kappa: float | None
    kappa_ci95: Range | None
    bias: float | None
    bias_ci95: Range | None
    on_verdicts: bool
    people_rates: dict[str, float]
    judge_rates: dict[str, float]
    confusion: dict[str, dict[str, int]]
    by_candidate: dict[str, float | None]
    reason: str | None


@document
class JudgeAgreementDocument:
    """JSON of the agreement between judges that graded the same trials."""

    judges: tuple[str, ...]
    alpha: float | None = source("alpha.alpha")
    alpha_ci95: Range | None = source("alpha.ci95")
    reading: str | None = source("alpha.reading")
    agreement: float | None = source("alpha.agreement")
    tolerance: float | None = source("alpha.tolerance")
    icc_a1: float | None = source("icc.icc_a1")
    icc_a1_ci95: Range | None = source("icc.icc_a1_ci95")
    n_units: int = source("alpha.n_units")
    reason: str | None = source("alpha.reason")


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
class CalibratedMeanDocument(PartialMeanDocument):
    """JSON of a mean estimated from a review sample: method, weight of the judge, and number of
    reviewed trials.
    """

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
class CalibratedRankDocument:
    """JSON of a candidate's rank, estimated from a review sample."""

    candidate: str
    mean: float | None
    rank: int | None
    rank_low: int | None
    rank_high: int | None


@document
class CalibratedRankingDocument:
    """JSON of ranks and pairs, estimated from a review sample. They are never the result."""

    candidates: tuple[CalibratedRankDocument, ...]
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
    by_position: tuple[JudgePositionsDocument, ...] = source("positions")
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

    a_minus_b: float | None = source("difference")
    ci95: Range | None
    p_value: float | None
    would_be: str = source("decision")
    reason: str | None


@document
class OtherResultWithRejectedDocument(OtherResultDocument):
    """JSON of a comparison if rejected assessments counted; `changes` is True if this changes the
    decision.
    """

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
    return fill(
        ScoreDiagnosticsDocument,
        diagnostics,
        fair_play=_fair_play(diagnostics.fair_play),
        with_rejected=fill(
            PutBackDocument,
            diagnostics,
            put_back=diagnostics.n_put_back,
            scores=diagnostics.with_rejected,
        ),
        rejected_bounds=tuple(
            BoundsDocument(candidate=str(low.candidate), lowest=low.mean, highest=high.mean)
            for low, high in bounds
        ),
        first_attempts=FirstAttemptsDocument(
            rerun=diagnostics.n_rerun,
            scores=tuple(
                fill(FirstAttemptDocument, first, first=first.mean, final=final.mean)
                for first, final in attempts
            ),
        ),
        judge_as_it_is=fill(ScoreListDocument, diagnostics, scores=diagnostics.as_judged),
        by_trial=tuple(
            fill(TrialScoresDocument, split, trial=int(split.name))
            for split in diagnostics.by_trial
        ),
        judge_against_people=_accuracies(diagnostics.against_people),
        judge_against_references=tuple(map(reference_agreement, diagnostics.against_references)),
        judges_among_themselves=diagnostics.among_judges,
        partial_review=tuple(_partial_review(partial) for partial in diagnostics.partly),
        calibrated=None
        if diagnostics.calibrated is None
        else calibrated_ranking(diagnostics.calibrated),
    )


def verdict_diagnostics(diagnostics: VerdictDiagnostics) -> VerdictDiagnosticsDocument:
    return VerdictDiagnosticsDocument(
        judge_against_people=_accuracies(diagnostics.against_people),
        judge_against_references=tuple(map(reference_agreement, diagnostics.against_references)),
    )


def comparison_diagnostics(diagnostics: ComparisonDiagnostics) -> ComparisonDiagnosticsDocument:
    first, final = diagnostics.first_attempts, diagnostics.final_attempts
    return fill(
        ComparisonDiagnosticsDocument,
        diagnostics,
        fair_play=_fair_play(diagnostics.fair_play),
        with_rejected=fill(
            OtherResultWithRejectedDocument,
            diagnostics.with_rejected,
            put_back=diagnostics.n_put_back,
            changes=diagnostics.changes,
        ),
        first_attempts=FirstAttemptsComparedDocument(
            rerun=diagnostics.n_rerun,
            a_minus_b_first=first.difference,
            a_minus_b_final=final.difference,
            would_be=first.decision,
        ),
        judge_as_it_is=diagnostics.as_judged,
        judge_against_people=_accuracies(diagnostics.against_people),
        calibrated=None
        if diagnostics.calibrated is None
        else _calibrated_pair(diagnostics.calibrated),
    )


def calibrated_ranking(ranking: CalibratedRanking) -> CalibratedRankingDocument:
    return fill(
        CalibratedRankingDocument,
        ranking,
        pairs=tuple(_calibrated_pair(pair) for pair in ranking.pairs),
    )


def _calibrated_pair(pair: CalibratedPair) -> CalibratedPairDocument:
    own = attributes(pair, "a", "b", "more_reviews")
    return fill(CalibratedPairDocument, pair.result, scope="tasks_like_these", **own)


def _fair_play(fair_play: FairPlay) -> FairPlayDocument:
    return fill(
        FairPlayDocument, fair_play, rates=tuple(_rates(rates) for rates in fair_play.rates)
    )


def _rates(rates: ReviewRates) -> ReviewRatesDocument:
    return fill(
        ReviewRatesDocument,
        rates,
        # A corrected assessment was also kept, and fairness concerns only the rejected ones.
        approval_rate=_share(rates.approved + rates.corrected, rates.n_decided),
        rejection_rate=_share(rates.rejected, rates.n_decided),
        rerun_rate=_share(rates.rerun, rates.n_judged),
    )


def _accuracies(judges: Sequence[JudgeAgainstPeople]) -> tuple[JudgeAccuracyDocument, ...]:
    return tuple(
        fill(
            JudgeAccuracyDocument,
            judge.calibration,
            judge=judge.judge,
            n_corrected=judge.n_corrected,
            verdicts=None if judge.verdicts is None else _verdict_agreement(judge.verdicts),
        )
        for judge in judges
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


def reference_agreement(judge: JudgeAgainstReferences) -> ReferenceAgreementDocument:
    agreement = judge.agreement
    return fill(
        ReferenceAgreementDocument,
        judge.calibration,
        judge=judge.judge,
        agreement=agreement.mean,
        **attributes(agreement, "ci95", "n_tasks", "reason"),
        kappa=judge.kappa.kappa,
        kappa_ci95=judge.kappa.ci95,
        on_verdicts=judge.on_verdicts,
        people_rates={str(verdict): rate for verdict, rate in judge.people_rates.items()},
        judge_rates={str(verdict): rate for verdict, rate in judge.judge_rates.items()},
        confusion={
            str(people): {
                str(verdict): judge.confusion.get((people, verdict), 0) for verdict in Verdict
            }
            for people in Verdict
        },
        by_candidate={str(each.candidate): each.mean for each in judge.by_candidate},
    )


def _partial_review(partial: PartlyReviewed) -> PartialReviewDocument:
    review = partial.review
    return PartialReviewDocument(
        candidate=str(partial.vetted.candidate),
        n_waiting=partial.n_waiting,
        n_left_out=partial.n_left_out,
        vetted_only=fill(PartialMeanDocument, partial.vetted, assumes="nothing"),
        judge_as_it_is=fill(PartialMeanDocument, review.judge_as_it_is, scope="tasks_like_these"),
        calibrated=fill(CalibratedMeanDocument, review.calibrated, scope="tasks_like_these"),
    )


def _share(k: int, n: int) -> float | None:
    return k / n if n else None
