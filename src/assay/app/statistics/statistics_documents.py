"""JSON of `assay stats`, `compare`, `rank`, `gate` and `plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from assay.analysis.anytime import Anytime, Looks
from assay.analysis.verdict_rates import RateDifference, VerdictRates
from assay.app.review.attention import AttentionDocument, attention_document
from assay.app.review.review_documents import ApprovalsDocument, approvals_document
from assay.app.statistics.diagnostic_documents import (
    CalibratedRankingDocument,
    ComparisonDiagnosticsDocument,
    ScoreDiagnosticsDocument,
    VerdictDiagnosticsDocument,
    calibrated_ranking,
    comparison_diagnostics,
    score_diagnostics,
    verdict_diagnostics,
)
from assay.app.wire import Json, document, inlined
from assay.domain.run_choice import RunRead
from assay.domain.selection import Excluded
from assay.report import wording as wording  # re-exported for surfaces
from assay.statistics.equivalence import NonInferiority
from assay.statistics.superiority import WinProbability
from assay.statistics.warnings import Caution

if TYPE_CHECKING:
    from assay.analysis.diagnostics import VerdictDiagnostics
    from assay.analysis.verdict_rates import VerdictComparison
    from assay.app.statistics.basis import Basis
    from assay.app.statistics.power import PairPlan, PowerPlan, SampleSize
    from assay.app.statistics.results import (
        CandidateScores,
        ComparisonResult,
        GateResult,
        OnUndecided,
        RankingResult,
    )
    from assay.domain.run_choice import RunsRead
    from assay.statistics.equivalence import Equivalence
    from assay.statistics.estimates import Estimate
    from assay.statistics.preferences import BradleyTerry
    from assay.statistics.ranking import RankedPair

Range: TypeAlias = tuple[float, float]


@document
class RunsReadDocument:
    """JSON of the choice of runs: how they were chosen, each run, and the runs that were not read.

    `of` is the number of matching runs of the suite. `newer` is a newer run without one of the
    compared candidates, and `counted_before` the newest run with counted trials, if the chosen run
    has none. `differences` is not empty only with `--pool-anyway`.
    """

    choice: str
    runs: tuple[RunRead, ...]
    n_trials: int
    of: int | None
    other_suites: tuple[str, ...]
    newer: str | None
    counted_before: str | None
    differences: str


@document
class TaskMeanDocument:
    """JSON of one candidate's mean on one task."""

    task: str
    mean: float
    ci95: Range | None
    n_trials: int
    weight: float
    reason: str | None


@document
class OtherMeanDocument:
    """JSON of the mean in the alternative scope, `these_tasks` or `tasks_like_these`."""

    scope: str
    ci95: Range | None
    reason: str | None


@document
class MeanDocument:
    """JSON of one candidate's mean over all counted trials; `reason` explains a missing number.

    `n_families` is null if tasks have no families. `n_eff` is the effective number of tasks or,
    with families, of families.
    """

    candidate: str
    mean: float | None
    sd: float | None
    min: float | None
    max: float | None
    ci95: Range | None
    n_trials: int
    n_tasks: int
    n_families: int | None
    n_eff: float | None
    scope: str
    method: str | None
    reason: str | None
    by_task: tuple[TaskMeanDocument, ...]
    other_scope: OtherMeanDocument | None


@document
class CandidateAnytimeDocument:
    """JSON of anytime-valid evidence about one candidate."""

    anytime: Anytime = inlined()
    candidate: str


@document
class ComparisonAnytimeDocument:
    """JSON of anytime-valid evidence about two candidates; `looks` is null without planned
    looks.
    """

    anytime: Anytime = inlined()
    looks: Looks | None


@document
class VerdictComparisonDocument:
    """JSON of the verdicts of two candidates side by side."""

    labels: tuple[str, ...]
    level: float
    differences: tuple[RateDifference, ...]
    win: WinProbability | None


@document
class RunsUsedDocument:
    """JSON of the runs behind a result, and the number of runs that are pooled."""

    runs: tuple[str, ...]
    pooled: int
    read: RunsReadDocument


@document
class CountedDocument:
    """JSON of the trials that do not count, of the approvals, and of the signs of careless
    reviewing.
    """

    excluded: Excluded
    approvals: ApprovalsDocument
    attention: AttentionDocument


@document
class ScoresDocument:
    """JSON of `assay stats`."""

    used: RunsUsedDocument = inlined()
    protocol: tuple[Mapping[str, Json], ...]
    candidates: tuple[MeanDocument, ...]
    counted: CountedDocument = inlined()
    warnings: tuple[Caution, ...]
    diagnostics: ScoreDiagnosticsDocument | VerdictDiagnosticsDocument | dict[str, Json]
    anytime: tuple[CandidateAnytimeDocument, ...] | None
    looks: Looks | None
    verdicts: VerdictRates | None


@document
class EquivalenceDocument:
    """JSON of an equivalence test: two one-sided tests against the margin."""

    margin: float
    p_value: float
    holds: bool


@document
class OtherDifferenceDocument:
    """JSON of the difference in the alternative scope, `these_tasks` or `tasks_like_these`."""

    scope: str
    ci95: Range | None
    p_value: float | None
    reason: str | None


@document
class SecondOpinionDocument:
    """JSON of a second test of the same difference."""

    method: str
    p_value: float | None
    reason: str | None


@document
class TaskDifferenceDocument:
    """JSON of the difference between two candidates on one task."""

    task: str
    mean_a: float
    mean_b: float
    difference: float
    n_trials_a: int
    n_trials_b: int
    weight: float


@document
class ComparisonDocument:
    """JSON of `assay compare`."""

    a: str
    b: str
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    points: float | None
    ci95: Range | None
    std_err: float | None
    t: float | None
    df: float | None
    p_value: float | None
    significant: bool
    decision: str
    equivalence: EquivalenceDocument | None
    non_inferiority: NonInferiority | None
    prob_superiority: float | None
    d_total: float | None
    effect_label: str | None
    tasks_won: int
    tasks_lost: int
    tasks_tied: int
    n_tasks: int
    n_families: int | None
    n_eff: float | None
    n_trials_a: int
    n_trials_b: int
    scope: str
    method: str | None
    reason: str | None
    warnings: tuple[Caution, ...]
    diagnostics: ComparisonDiagnosticsDocument | VerdictDiagnosticsDocument | dict[str, Json]
    anytime: ComparisonAnytimeDocument | None
    verdict: str
    used: RunsUsedDocument = inlined()
    protocol: tuple[Mapping[str, Json], ...]
    counted: CountedDocument = inlined()
    other_scope: OtherDifferenceDocument | None
    second_opinion: SecondOpinionDocument | None
    by_task: tuple[TaskDifferenceDocument, ...]
    verdicts: VerdictComparisonDocument | None


@document
class GateDocument:
    """JSON of `assay gate`: the comparison and its outcome.

    `baseline` lists the earlier runs of `--baseline`.

    `passed`: true if A is shown to be within the margin. `outcome`: `fine`, `worse` or `undecided`.
    `tasks_needed`: number of tasks in all that would decide an undecided gate.
    """

    comparison: ComparisonDocument = inlined()
    passed: bool
    outcome: str
    on_undecided: str
    smallest_margin: float | None
    tasks_needed: int | None
    margin: float
    baseline: tuple[str, ...] | None


@document
class RankDocument:
    """JSON of one candidate in a ranking, with the range of ranks that the data support."""

    candidate: str
    mean: float | None
    ci95: Range | None
    rank: int | None
    rank_low: int | None
    rank_high: int | None


@document
class RankedPairDocument:
    """JSON of the comparison of two candidates in a ranking."""

    a: str
    b: str
    difference: float | None
    ci95: Range | None
    p_value: float | None
    p_holm: float | None
    p_bh: float | None
    decision: str
    decision_alone: str
    n_tasks: int
    reason: str | None


@document
class StrengthDocument:
    """JSON of a candidate's strength in log-odds; null if the candidate never lost or never won."""

    candidate: str
    strength: float | None
    elo: float | None
    share_won: float | None


@document
class StrengthsDocument:
    """JSON of all strengths, strongest first, computed from the winner of each trial."""

    method: str | None
    comparisons: float
    n_tasks: int
    reason: str | None
    candidates: tuple[StrengthDocument, ...]


@document
class RankingDocument:
    """JSON of `assay rank`."""

    protocol: tuple[Mapping[str, Json], ...]
    used: RunsUsedDocument = inlined()
    scope: str
    candidates: tuple[RankDocument, ...]
    pairs: tuple[RankedPairDocument, ...]
    comparisons: int
    groups: tuple[tuple[str, ...], ...]
    preferences: StrengthsDocument | None
    calibrated: CalibratedRankingDocument | None
    verdicts: VerdictRates | None
    counted: CountedDocument = inlined()
    warnings: tuple[Caution, ...]


@document
class SampleSizeDocument:
    """JSON of the sample size for a precision: the total number of tasks or trials, and the cost of
    the new ones.
    """

    needed: int
    new_trials: int
    reviews: int | None
    cost_usd: float | None


@document
class PairPlanDocument:
    """JSON of a plan to show a difference between two candidates."""

    a: str
    b: str
    difference: float | None
    decision: str
    scope: str
    n_tasks: int
    n_trials: float | None
    mde: float | None
    floor_mde: float | None
    more_trials_can_decide: bool | None
    tasks_needed: int | None
    families_needed: int | None
    trials_needed: int | None
    more_tasks: SampleSizeDocument | None
    more_trials: SampleSizeDocument | None
    more_reviews: int | None
    reason: str | None
    words: str


@document
class NamedPairDocument:
    """JSON of the names of two candidates."""

    a: str
    b: str


@document
class PlanSummaryDocument:
    """JSON of a plan's summary: the pair that needs the most trials, the undecided pair that needs
    the fewest, and a sentence.
    """

    hardest: NamedPairDocument | None
    closest_undecided: NamedPairDocument | None
    words: str


@document
class PowerPlanDocument:
    """JSON of `assay plan`."""

    used: RunsUsedDocument = inlined()
    detect: float
    power: float
    scope: str | None
    pairs: tuple[PairPlanDocument, ...]
    summary: PlanSummaryDocument
    cost_per_trial_usd: float | None
    cost_reason: str | None
    reviews_per_trial: float | None
    kept_share: float
    excluded: Excluded
    approvals: ApprovalsDocument
    warnings: tuple[Caution, ...]


def scores_document(scores: CandidateScores) -> ScoresDocument:
    diagnostics = scores.diagnostics
    cautions = () if diagnostics is None else diagnostics.cautions
    return ScoresDocument(
        used=runs_used(scores.basis),
        protocol=scores.basis.protocols,
        candidates=tuple(map(mean_document, scores.estimates)),
        counted=_counted(scores.basis),
        warnings=warnings_of(
            scores.basis, *(estimate.warnings for estimate in scores.estimates), cautions
        ),
        diagnostics=_of_verdicts(scores.on_verdicts)
        if diagnostics is None
        else score_diagnostics(diagnostics),
        anytime=None
        if scores.anytime is None
        else tuple(
            CandidateAnytimeDocument(anytime=anytime, candidate=str(estimate.candidate))
            for estimate, anytime in zip(scores.estimates, scores.anytime, strict=True)
        ),
        looks=scores.looks,
        verdicts=scores.verdicts,
    )


def mean_document(estimate: Estimate) -> MeanDocument:
    # A property that is computed each time it is read.
    other_scope = estimate.other_scope
    return MeanDocument(
        candidate=str(estimate.candidate),
        mean=estimate.mean,
        sd=estimate.sd,
        min=estimate.min,
        max=estimate.max,
        ci95=estimate.ci95,
        n_trials=estimate.n_trials,
        n_tasks=estimate.n_tasks,
        n_families=estimate.n_families,
        n_eff=estimate.n_eff,
        scope=estimate.scope,
        method=estimate.method,
        reason=estimate.reason,
        by_task=tuple(
            TaskMeanDocument(
                task=str(mean.task),
                mean=mean.mean,
                ci95=mean.ci95,
                n_trials=mean.n_trials,
                weight=mean.weight,
                reason=mean.reason,
            )
            for mean in estimate.by_task
        ),
        other_scope=None
        if other_scope is None
        else OtherMeanDocument(
            scope=other_scope.scope, ci95=other_scope.ci95, reason=other_scope.reason
        ),
    )


def _of_verdicts(
    diagnostics: VerdictDiagnostics | None,
) -> VerdictDiagnosticsDocument | dict[str, Json]:
    return {} if diagnostics is None else verdict_diagnostics(diagnostics)


def comparison_document(result: ComparisonResult) -> ComparisonDocument:
    comparison = result.comparison
    diagnostics = result.diagnostics
    cautions = () if diagnostics is None else diagnostics.cautions
    other_scope = comparison.other_scope
    opinion = comparison.second_opinion
    return ComparisonDocument(
        a=str(comparison.a),
        b=str(comparison.b),
        mean_a=comparison.mean_a,
        mean_b=comparison.mean_b,
        difference=comparison.difference,
        points=comparison.points,
        ci95=comparison.ci95,
        std_err=comparison.std_err,
        t=comparison.t,
        df=comparison.df,
        p_value=comparison.p_value,
        significant=comparison.significant,
        decision=comparison.decision,
        equivalence=_equivalence(comparison.equivalence),
        non_inferiority=comparison.non_inferiority,
        prob_superiority=comparison.prob_superiority,
        d_total=comparison.d_total,
        effect_label=comparison.effect_label,
        tasks_won=comparison.tasks_won,
        tasks_lost=comparison.tasks_lost,
        tasks_tied=comparison.tasks_tied,
        n_tasks=comparison.n_tasks,
        n_families=comparison.n_families,
        n_eff=comparison.n_eff,
        n_trials_a=comparison.n_trials_a,
        n_trials_b=comparison.n_trials_b,
        scope=comparison.scope,
        method=comparison.method,
        reason=comparison.reason,
        warnings=warnings_of(result.basis, comparison.warnings, cautions),
        diagnostics=_of_verdicts(result.on_verdicts)
        if diagnostics is None
        else comparison_diagnostics(diagnostics),
        anytime=None
        if result.anytime is None
        else ComparisonAnytimeDocument(anytime=result.anytime, looks=result.looks),
        verdict=result.verdict,
        used=runs_used(result.basis),
        protocol=result.basis.protocols,
        counted=_counted(result.basis),
        other_scope=None
        if other_scope is None
        else OtherDifferenceDocument(
            scope=other_scope.scope,
            ci95=other_scope.ci95,
            p_value=other_scope.p_value,
            reason=other_scope.reason,
        ),
        second_opinion=None
        if opinion is None
        else SecondOpinionDocument(
            method=opinion.method, p_value=opinion.p_value, reason=opinion.reason
        ),
        by_task=tuple(
            TaskDifferenceDocument(
                task=str(row.task),
                mean_a=row.mean_a,
                mean_b=row.mean_b,
                difference=row.difference,
                n_trials_a=row.n_trials_a,
                n_trials_b=row.n_trials_b,
                weight=row.weight,
            )
            for row in comparison.by_task
        ),
        verdicts=_verdict_comparison(result.verdicts),
    )


def _equivalence(test: Equivalence | None) -> EquivalenceDocument | None:
    if test is None:
        return None
    return EquivalenceDocument(margin=test.margin, p_value=test.p_value, holds=test.holds)


def _verdict_comparison(comparison: VerdictComparison | None) -> VerdictComparisonDocument | None:
    if comparison is None:
        return None
    return VerdictComparisonDocument(
        labels=comparison.labels,
        level=comparison.level,
        differences=comparison.differences,
        win=comparison.win,
    )


def gate_document(gate: GateResult, on_undecided: OnUndecided = "pass") -> GateDocument:
    return GateDocument(
        comparison=comparison_document(gate.contrast),
        passed=gate.passed,
        outcome=gate.outcome,
        on_undecided=on_undecided,
        smallest_margin=gate.smallest_margin,
        tasks_needed=gate.tasks_needed,
        margin=gate.margin,
        baseline=gate.baseline,
    )


def ranking_document(result: RankingResult) -> RankingDocument:
    ranking = result.ranking
    return RankingDocument(
        protocol=result.basis.protocols,
        used=runs_used(result.basis),
        scope=ranking.scope,
        candidates=tuple(
            RankDocument(
                candidate=str(place.candidate),
                mean=place.mean,
                ci95=place.estimate.ci95,
                rank=place.rank,
                rank_low=place.rank_low,
                rank_high=place.rank_high,
            )
            for place in ranking.candidates
        ),
        pairs=tuple(map(_ranked_pair, ranking.pairs)),
        comparisons=ranking.n_tested,
        groups=tuple(tuple(map(str, group)) for group in ranking.groups),
        preferences=None if result.preferences is None else _strengths_document(result.preferences),
        calibrated=None if result.calibrated is None else calibrated_ranking(result.calibrated),
        verdicts=result.verdicts,
        counted=_counted(result.basis),
        warnings=warnings_of(result.basis, ranking.warnings),
    )


def _ranked_pair(pair: RankedPair) -> RankedPairDocument:
    return RankedPairDocument(
        a=str(pair.a),
        b=str(pair.b),
        difference=pair.difference,
        ci95=pair.ci95,
        p_value=pair.p_value,
        p_holm=pair.p_holm,
        p_bh=pair.p_bh,
        decision=pair.decision,
        decision_alone=pair.decision_alone,
        n_tasks=pair.n_tasks,
        reason=pair.reason,
    )


def power_plan_document(plan: PowerPlan) -> PowerPlanDocument:
    basis = plan.basis
    return PowerPlanDocument(
        used=runs_used(basis),
        detect=plan.detect,
        power=plan.power,
        scope=plan.scope,
        pairs=tuple(_pair_plan_document(pair) for pair in plan.pairs),
        summary=PlanSummaryDocument(
            hardest=_named_pair(plan.hardest),
            closest_undecided=_named_pair(plan.closest),
            words=plan.words,
        ),
        cost_per_trial_usd=plan.cost.usd,
        cost_reason=plan.cost.reason,
        reviews_per_trial=plan.cost.reviews,
        kept_share=plan.cost.kept,
        excluded=basis.excluded,
        approvals=approvals_document(basis.approvals),
        warnings=warnings_of(basis),
    )


def _named_pair(plan: PairPlan | None) -> NamedPairDocument | None:
    return None if plan is None else NamedPairDocument(a=str(plan.pair.a), b=str(plan.pair.b))


def runs_used(basis: Basis) -> RunsUsedDocument:
    return RunsUsedDocument(
        runs=basis.runs, pooled=basis.read.pooled, read=runs_read_document(basis.read)
    )


def runs_read_document(read: RunsRead) -> RunsReadDocument:
    return RunsReadDocument(
        choice=read.choice,
        runs=read.runs,
        n_trials=read.n_trials,
        of=read.of,
        other_suites=read.other_suites,
        newer=read.newer,
        counted_before=read.counted_before,
        differences=read.differences,
    )


def _counted(basis: Basis) -> CountedDocument:
    return CountedDocument(
        excluded=basis.excluded,
        approvals=approvals_document(basis.approvals),
        attention=attention_document(basis.attention),
    )


def warnings_of(basis: Basis, *groups: tuple[Caution, ...]) -> tuple[Caution, ...]:
    """Return each distinct warning; warnings of the basis come first."""
    # Estimates of several candidates can carry the same warning.
    return tuple(dict.fromkeys(caution for group in (basis.cautions, *groups) for caution in group))


def _strengths_document(strengths: BradleyTerry) -> StrengthsDocument:
    rows = zip(strengths.items, strengths.log_strength, strengths.elo, strengths.borda, strict=True)
    candidates = [
        StrengthDocument(candidate=str(item), strength=strength, elo=elo, share_won=share)
        for item, strength, elo, share in rows
    ]
    return StrengthsDocument(
        method=strengths.method,
        comparisons=strengths.n_comparisons,
        n_tasks=strengths.n_tasks,
        reason=strengths.reason,
        # Sorted by the share won, because a candidate that never lost has no finite strength.
        candidates=tuple(sorted(candidates, key=lambda row: -(row.share_won or 0.0))),
    )


def _pair_plan_document(pair: PairPlan) -> PairPlanDocument:
    plan = pair.plan
    ranked = pair.pair
    return PairPlanDocument(
        a=str(ranked.a),
        b=str(ranked.b),
        difference=ranked.difference,
        decision=ranked.decision,
        scope=ranked.scope,
        n_tasks=ranked.n_tasks,
        n_trials=None if plan is None else plan.n_trials,
        mde=None if plan is None else plan.mde,
        floor_mde=None if plan is None else plan.floor_mde,
        more_trials_can_decide=None if plan is None else plan.more_trials_can_decide,
        tasks_needed=None if plan is None else plan.tasks_needed,
        families_needed=None if plan is None else plan.families_needed,
        trials_needed=None if plan is None else plan.trials_needed,
        more_tasks=_sample_size(pair.more_tasks),
        more_trials=_sample_size(pair.more_trials),
        more_reviews=pair.more_reviews,
        reason=ranked.reason if plan is None else plan.reason,
        words=pair.words,
    )


def _sample_size(size: SampleSize | None) -> SampleSizeDocument | None:
    if size is None:
        return None
    return SampleSizeDocument(
        needed=size.needed, new_trials=size.trials, reviews=size.reviews, cost_usd=size.usd
    )
