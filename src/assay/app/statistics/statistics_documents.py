"""JSON of `assay stats`, `compare`, `rank`, `gate` and `plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from assay.app.review.attention import AttentionDocument, attention_document
from assay.app.review.review_documents import ApprovalsDocument
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
from assay.app.wire import Json, attributes, document, fill, source
from assay.report import wording as wording  # re-exported for surfaces

if TYPE_CHECKING:
    from assay.analysis.diagnostics import VerdictDiagnostics
    from assay.app.statistics.basis import Basis
    from assay.app.statistics.power import PairPlan, PowerPlan
    from assay.app.statistics.results import (
        CandidateScores,
        ComparisonResult,
        GateResult,
        OnUndecided,
        RankingResult,
    )
    from assay.statistics.preferences import BradleyTerry
    from assay.statistics.warnings import Caution

Range: TypeAlias = tuple[float, float]


@document
class WarningDocument:
    """JSON of a warning: a code for programs and a sentence for people."""

    code: str
    text: str


@document
class ExcludedDocument:
    """JSON of the number of trials that do not count, by reason.

    `superseded` counts attempts. `partly` counts trials that count although some of their
    assessments are pending. `pending` includes `not_started` and `under_way`; its other trials
    await review.
    """

    pending: int
    rejected: int
    failed: int
    superseded: int
    not_graded: int
    partly: int
    left_out: int
    not_started: int
    under_way: int


@document
class RunReadDocument:
    """JSON of a run behind a result.

    `n_trials` counts its counted trials; null if they were not counted by run.
    """

    run_id: str
    suite: str
    started: str
    imported: bool
    n_trials: int | None


@document
class RunsReadDocument:
    """JSON of the choice of runs: how they were chosen, each run, and the runs that were not read.

    `of` is the number of matching runs of the suite. `newer` is a newer run without one of the
    compared candidates, and `counted_before` the newest run with counted trials, if the chosen run
    has none. `differences` is not empty only with `--pool-anyway`.
    """

    choice: str
    runs: tuple[RunReadDocument, ...]
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
class AnytimeDocument:
    """JSON of anytime-valid evidence: it stays valid while more trials may come."""

    e_value: float | None
    p: float | None
    ci95: Range | None
    n: int
    unit: str
    reason: str | None


@document
class CandidateAnytimeDocument(AnytimeDocument):
    """JSON of anytime-valid evidence about one candidate."""

    candidate: str


@document
class LooksDocument:
    """JSON of the number of planned looks, and the number of looks reached."""

    planned: int
    reached: int
    p_to_beat: float | None


@document
class ComparisonAnytimeDocument(AnytimeDocument):
    """JSON of anytime-valid evidence about two candidates; `looks` is null without planned
    looks.
    """

    looks: LooksDocument | None


@document
class VerdictRateDocument:
    """JSON of the rate of one verdict; `interval` has the `level` of all rates and is null if it
    cannot be computed.
    """

    verdict: str
    rate: float
    interval: Range | None


@document
class CandidateVerdictsDocument:
    """JSON of one candidate's rates, best verdict first."""

    candidate: str
    rates: tuple[VerdictRateDocument, ...]
    n_trials: int
    n_tasks: int


@document
class VerdictRatesDocument:
    """JSON of the rates of all verdicts.

    All intervals of one candidate hold at once in 95%, so each has the level `level`.
    """

    labels: tuple[str, ...]
    level: float
    candidates: tuple[CandidateVerdictsDocument, ...]


@document
class RateDifferenceDocument:
    """JSON of the difference of one verdict's rates on shared tasks."""

    verdict: str
    rate_a: float
    rate_b: float
    difference: float
    interval: Range | None


@document
class WinProbabilityDocument:
    """JSON of the probability that a random answer of A gets the better verdict; ties count
    half.
    """

    value: float
    ci95: Range | None
    p_value: float | None
    odds: float | None


@document
class VerdictComparisonDocument:
    """JSON of the verdicts of two candidates side by side."""

    labels: tuple[str, ...]
    level: float
    differences: tuple[RateDifferenceDocument, ...]
    win: WinProbabilityDocument | None


@document
class ScoresDocument:
    """JSON of `assay stats`."""

    runs: tuple[str, ...]
    pooled: int
    read: RunsReadDocument
    protocol: tuple[Mapping[str, Json], ...]
    candidates: tuple[MeanDocument, ...]
    excluded: ExcludedDocument
    approvals: ApprovalsDocument
    attention: AttentionDocument
    warnings: tuple[WarningDocument, ...]
    diagnostics: ScoreDiagnosticsDocument | VerdictDiagnosticsDocument | dict[str, Json]
    anytime: tuple[CandidateAnytimeDocument, ...] | None
    looks: LooksDocument | None
    verdicts: VerdictRatesDocument | None


@document
class EquivalenceDocument:
    """JSON of an equivalence test: two one-sided tests against the margin."""

    margin: float
    p_value: float
    holds: bool


@document
class NonInferiorityDocument(EquivalenceDocument):
    """JSON of a non-inferiority test: a one-sided test against the margin."""

    lower95: float


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
    non_inferiority: NonInferiorityDocument | None
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
    warnings: tuple[WarningDocument, ...]
    diagnostics: ComparisonDiagnosticsDocument | VerdictDiagnosticsDocument | dict[str, Json]
    anytime: ComparisonAnytimeDocument | None
    verdict: str
    runs: tuple[str, ...]
    pooled: int
    read: RunsReadDocument
    protocol: tuple[Mapping[str, Json], ...]
    excluded: ExcludedDocument
    approvals: ApprovalsDocument
    attention: AttentionDocument
    other_scope: OtherDifferenceDocument | None
    second_opinion: SecondOpinionDocument | None
    by_task: tuple[TaskDifferenceDocument, ...]
    verdicts: VerdictComparisonDocument | None


@document
class GateDocument(ComparisonDocument):
    """JSON of `assay gate`: the comparison and its outcome.

    `baseline` lists the earlier runs of `--baseline`.

    `passed`: true if A is shown to be within the margin. `outcome`: `fine`, `worse` or `undecided`.
    `tasks_needed`: number of tasks in all that would decide an undecided gate.
    """

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
    ci95: Range | None = source("estimate.ci95")
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
    runs: tuple[str, ...]
    pooled: int
    read: RunsReadDocument
    scope: str
    candidates: tuple[RankDocument, ...]
    pairs: tuple[RankedPairDocument, ...]
    comparisons: int = source("n_tested")
    groups: tuple[tuple[str, ...], ...]
    preferences: StrengthsDocument | None
    calibrated: CalibratedRankingDocument | None
    verdicts: VerdictRatesDocument | None
    excluded: ExcludedDocument
    approvals: ApprovalsDocument
    attention: AttentionDocument
    warnings: tuple[WarningDocument, ...]


@document
class SampleSizeDocument:
    """JSON of the sample size for a precision: the total number of tasks or trials, and the cost of
    the new ones.
    """

    needed: int
    new_trials: int = source("trials")
    reviews: int | None
    cost_usd: float | None = source("usd")


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

    runs: tuple[str, ...]
    pooled: int
    read: RunsReadDocument
    detect: float
    power: float
    scope: str | None
    pairs: tuple[PairPlanDocument, ...]
    summary: PlanSummaryDocument
    cost_per_trial_usd: float | None = source("cost.usd")
    cost_reason: str | None = source("cost.reason")
    reviews_per_trial: float | None = source("cost.reviews")
    kept_share: float = source("cost.kept")
    excluded: ExcludedDocument
    approvals: ApprovalsDocument
    warnings: tuple[WarningDocument, ...]


def scores_document(scores: CandidateScores) -> ScoresDocument:
    diagnostics = scores.diagnostics
    cautions = () if diagnostics is None else diagnostics.cautions
    return fill(
        ScoresDocument,
        scores,
        **_of_basis(scores.basis),
        candidates=scores.estimates,
        warnings=warning_documents(
            scores.basis, *(estimate.warnings for estimate in scores.estimates), cautions
        ),
        diagnostics=_of_verdicts(scores.on_verdicts)
        if diagnostics is None
        else score_diagnostics(diagnostics),
        anytime=None
        if scores.anytime is None
        else tuple(
            fill(CandidateAnytimeDocument, anytime, candidate=estimate.candidate)
            for estimate, anytime in zip(scores.estimates, scores.anytime, strict=True)
        ),
    )


def _of_verdicts(
    diagnostics: VerdictDiagnostics | None,
) -> VerdictDiagnosticsDocument | dict[str, Json]:
    return {} if diagnostics is None else verdict_diagnostics(diagnostics)


def comparison_document(result: ComparisonResult) -> ComparisonDocument:
    diagnostics = result.diagnostics
    cautions = () if diagnostics is None else diagnostics.cautions
    return fill(
        ComparisonDocument,
        result.comparison,
        warnings=warning_documents(result.basis, result.comparison.warnings, cautions),
        diagnostics=_of_verdicts(result.on_verdicts)
        if diagnostics is None
        else comparison_diagnostics(diagnostics),
        anytime=None
        if result.anytime is None
        else fill(ComparisonAnytimeDocument, result.anytime, looks=result.looks),
        verdict=result.verdict,
        verdicts=result.verdicts,
        **_of_basis(result.basis),
    )


def gate_document(gate: GateResult, on_undecided: OnUndecided = "pass") -> GateDocument:
    return fill(
        GateDocument,
        comparison_document(gate.contrast),
        passed=gate.passed,
        outcome=gate.outcome,
        on_undecided=on_undecided,
        smallest_margin=gate.smallest_margin,
        tasks_needed=gate.tasks_needed,
        margin=gate.margin,
        baseline=gate.baseline,
    )


def ranking_document(result: RankingResult) -> RankingDocument:
    return fill(
        RankingDocument,
        result.ranking,
        **_of_basis(result.basis),
        preferences=None if result.preferences is None else _strengths_document(result.preferences),
        calibrated=None if result.calibrated is None else calibrated_ranking(result.calibrated),
        warnings=warning_documents(result.basis, result.ranking.warnings),
        verdicts=result.verdicts,
    )


def power_plan_document(plan: PowerPlan) -> PowerPlanDocument:
    return fill(
        PowerPlanDocument,
        plan,
        **attributes(plan.basis, "runs", "read"),
        pooled=plan.basis.read.pooled,
        pairs=tuple(_pair_plan_document(pair) for pair in plan.pairs),
        summary=fill(
            PlanSummaryDocument,
            plan,
            hardest=None if plan.hardest is None else plan.hardest.pair,
            closest_undecided=None if plan.closest is None else plan.closest.pair,
        ),
        **attributes(plan.basis, "excluded", "approvals"),
        warnings=warning_documents(plan.basis),
    )


def _of_basis(basis: Basis) -> dict[str, object]:
    given = attributes(basis, "runs", "excluded", "approvals", "read")
    return given | {
        "protocol": basis.protocols,
        "pooled": basis.read.pooled,
        "attention": attention_document(basis.attention),
    }


def warning_documents(basis: Basis, *groups: tuple[Caution, ...]) -> tuple[WarningDocument, ...]:
    """Return each distinct warning as JSON; warnings of the basis come first."""
    # Estimates of several candidates can carry the same warning.
    distinct = {
        (caution.code, caution.text): caution
        for group in (basis.cautions, *groups)
        for caution in group
    }
    return tuple(fill(WarningDocument, caution) for caution in distinct.values())


def _strengths_document(strengths: BradleyTerry) -> StrengthsDocument:
    rows = zip(strengths.items, strengths.log_strength, strengths.elo, strengths.borda, strict=True)
    candidates = [
        StrengthDocument(candidate=str(item), strength=strength, elo=elo, share_won=share)
        for item, strength, elo, share in rows
    ]
    return fill(
        StrengthsDocument,
        strengths,
        comparisons=strengths.n_comparisons,
        # Sorted by the share won, because a candidate that never lost has no finite strength.
        candidates=tuple(sorted(candidates, key=lambda row: -(row.share_won or 0.0))),
    )


def _pair_plan_document(pair: PairPlan) -> PairPlanDocument:
    plan, ranked = pair.plan, pair.pair
    needs = ("tasks_needed", "families_needed", "trials_needed")
    names = ("n_trials", "mde", "floor_mde", "more_trials_can_decide", *needs)
    return fill(
        PairPlanDocument,
        ranked,
        **{name: getattr(plan, name, None) for name in names},
        **attributes(pair, "more_tasks", "more_trials", "more_reviews", "words"),
        reason=ranked.reason if plan is None else plan.reason,
    )
