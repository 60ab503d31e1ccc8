"""Diagnostics that show how reliable a result is. They are never part of the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from assay.analysis import partial_review
from assay.analysis.agreement import (
    JudgeAgainstPeople,
    JudgesAmongThemselves,
    judges_against_people,
    judges_among_themselves,
)
from assay.analysis.coverage import coverages
from assay.analysis.fair_play import FairPlay, fair_play
from assay.analysis.positions import JudgePositions, judges_positions
from assay.analysis.references import JudgeAgainstReferences, judges_against_references
from assay.analysis.review_tables import (
    as_judged,
    attempts,
    counts as counting,
    only,
    put_back,
    rejected_as,
    table_of,
    with_rejected,
)
from assay.analysis.tables import family_codes, names_of_tasks
from assay.statistics.cells import Cells
from assay.statistics.comparisons import Comparison, compare
from assay.statistics.designs import design_variances
from assay.statistics.estimates import Estimate, estimates
from assay.statistics.scopes import asked_scope
from assay.statistics.sensitivity import sensitivity
from assay.statistics.variances import VarianceComponents, variance_components
from assay.statistics.warnings import Caution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.analysis.columns import CriterionMoments, ReferencePair, ReviewColumns
    from assay.statistics.bounds import Coverage
    from assay.statistics.planning import DesignVariances
    from assay.statistics.table import ScoreTable


MAX_NUMBERS: Final = 20
"""Maximum number of trials per task for which separate scores are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Estimates on one subset of the data: one criterion, one judge, or one trial number."""

    name: str
    estimates: tuple[Estimate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreDiagnostics:
    """Diagnostics for `stats`. Each tuple of estimates is in the order of the candidates.

    `rejected_worst`, `rejected_best`: the scores if every rejected trial had scored 0, or 1. The
    result without any rejections lies between them.
    """

    fair_play: FairPlay
    n_put_back: int
    with_rejected: tuple[Estimate, ...]
    rejected_worst: tuple[Estimate, ...]
    rejected_best: tuple[Estimate, ...]
    n_rerun: int
    first_attempts: tuple[Estimate, ...]
    final_attempts: tuple[Estimate, ...]
    as_judged: tuple[Estimate, ...]
    coverage: tuple[Coverage, ...]
    by_criterion: tuple[Split, ...]
    by_judge: tuple[Split, ...]
    by_trial: tuple[Split, ...]
    positions: tuple[JudgePositions, ...]
    against_people: tuple[JudgeAgainstPeople, ...]
    against_references: tuple[JudgeAgainstReferences, ...]
    among_judges: JudgesAmongThemselves | None
    variance: tuple[VarianceComponents, ...]
    partly: tuple[partial_review.PartlyReviewed, ...]
    calibrated: partial_review.CalibratedRanking | None

    @property
    def cautions(self) -> tuple[Caution, ...]:
        return self.fair_play.cautions


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonDiagnostics:
    """Diagnostics for `compare`: the same comparison repeated under different assumptions."""

    fair_play: FairPlay
    n_put_back: int
    with_rejected: Comparison
    changes: bool
    n_rerun: int
    first_attempts: Comparison
    final_attempts: Comparison
    as_judged: Comparison
    coverage: tuple[Coverage, ...]
    against_people: tuple[JudgeAgainstPeople, ...]
    variance: DesignVariances | None
    calibrated: partial_review.CalibratedPair | None
    cautions: tuple[Caution, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictDiagnostics:
    """Agreement of judges with people on verdicts, for results on the criterion `verdict`.

    `against_references` compares with people's imported grades; `compare` leaves it empty.
    """

    against_people: tuple[JudgeAgainstPeople, ...]
    against_references: tuple[JudgeAgainstReferences, ...] = ()


def diagnose_scores(
    table: ScoreTable,
    candidates: tuple[Estimate, ...],
    columns: ReviewColumns,
    criteria: tuple[CriterionMoments, ...],
    *,
    draw: partial_review.ReviewDraw,
    rng: np.random.Generator,
    references: Sequence[ReferencePair] = (),
) -> ScoreDiagnostics:
    """Compute the diagnostics for every candidate.

    Args:
        table, candidates: the counted scores, and the estimates from them.
        draw: how the reviewed trials were chosen.
        rng: draws samples for tests with too many arrangements to enumerate, and for bootstrap
            intervals.
        references: judges' scores with people's reference scores from the imported data.
    """
    names = columns.candidates
    twice = attempts(columns)
    partly = partial_review.partly_reviewed(
        columns, candidates, draw, trials := partial_review.sampled_trials(columns, draw)
    )
    # Diagnostics use the same scope as the headline result, so that the two can be compared.
    scope = candidates[0].scope if candidates else None
    return ScoreDiagnostics(
        fair_play=fair_play(columns, rng=rng),
        n_put_back=len(np.unique(columns.assessment[put_back(columns)])),
        with_rejected=_all(with_rejected(columns), names, scope),
        rejected_worst=_all(rejected_as(columns, 0.0), names, scope),
        rejected_best=_all(rejected_as(columns, 1.0), names, scope),
        n_rerun=twice.n_rerun,
        first_attempts=_all(twice.first, names, scope),
        final_attempts=_all(twice.final, names, scope),
        as_judged=_all(as_judged(columns), names, scope),
        coverage=coverages(table, columns),
        by_criterion=tuple(_criterion(columns, moments, scope) for moments in criteria),
        by_judge=tuple(_judge(columns, code, scope) for code in range(len(columns.judges))),
        by_trial=_by_trial(columns, scope),
        positions=judges_positions(columns),
        against_people=judges_against_people(columns),
        against_references=judges_against_references(references),
        among_judges=judges_among_themselves(columns, rng=rng),
        variance=tuple(variance_components(table, name) for name in names),
        partly=partly,
        calibrated=partial_review.calibrated_ranking(
            trials, [str(row.vetted.candidate) for row in partly]
        )
        if partly
        else None,
    )


def diagnose_comparison(
    table: ScoreTable,
    comparison: Comparison,
    columns: ReviewColumns,
    *,
    margin: float | None,
    draw: partial_review.ReviewDraw,
    rng: np.random.Generator,
) -> ComparisonDiagnostics:
    """Compute the diagnostics for a comparison; `draw` describes how the reviewed trials were
    chosen.
    """
    a, b = str(comparison.a), str(comparison.b)
    # Columns are reduced before the tables are built: with 200,000 scores `compare` then takes 1.0
    # s, of which reading takes 0.9 s.
    columns = only(columns, (a, b))
    scope = asked_scope(comparison.scope)
    other = sensitivity(table, with_rejected(columns), a, b, scope=scope, margin=margin)
    fair = fair_play(columns, rng=rng, candidates=(a, b))
    twice = attempts(columns)
    gone = put_back(columns)
    changes = bool(gone.any()) and other.with_rejected.decision != comparison.decision
    cautions = fair.cautions
    if changes:
        cautions = (*cautions, _would_change(comparison, other.with_rejected))
    return ComparisonDiagnostics(
        fair_play=fair,
        n_put_back=len(np.unique(columns.assessment[gone])),
        with_rejected=other.with_rejected,
        changes=changes,
        n_rerun=twice.n_rerun,
        first_attempts=compare(twice.first, a, b, scope, margin),
        final_attempts=compare(twice.final, a, b, scope, margin),
        as_judged=compare(as_judged(columns), a, b, scope, margin),
        coverage=coverages(table, columns, candidates=(a, b)),
        against_people=judges_against_people(columns, candidates=(a, b)),
        variance=design_variances(table, a, b),
        calibrated=partial_review.calibrated_pair(
            partial_review.sampled_trials(columns, draw), a, b
        )
        if partial_review.unseen(columns).any()
        else None,
        cautions=cautions,
    )


def _would_change(comparison: Comparison, other: Comparison) -> Caution:
    now, then = (_points(result.difference) for result in (comparison, other))
    return Caution(
        code="rejected_would_change_decision",
        text=f"With the rejected trials counted at the judge's score the difference would be {then} points instead of "
        f"{now}, and the conclusion would change ({_said(other.decision)} instead of {_said(comparison.decision)}).",
    )


def _points(difference: float | None) -> str:
    return "unknown" if difference is None else f"{100 * difference:+.1f}".replace("-", "−")


def _said(decision: str) -> str:
    return f"“{decision.replace('_', ' ')}”"


def _all(table: ScoreTable, names: Sequence[str], scope: str | None) -> tuple[Estimate, ...]:
    by_name = {
        estimate.candidate: estimate
        for estimate in estimates(table, None if scope is None else asked_scope(scope))
    }
    return tuple(by_name[name] for name in names)


def _criterion(columns: ReviewColumns, moments: CriterionMoments, scope: str | None) -> Split:
    cells = Cells(
        tasks=names_of_tasks(columns.tasks),
        candidates=columns.candidates,
        weight=np.array([label.weight for label in columns.tasks], dtype=np.float64),
        family=family_codes(columns.tasks),
    )
    for name in ("n", "mean", "m2", "low", "high"):
        setattr(cells, name, getattr(moments, name))
    return Split(
        name=moments.criterion,
        estimates=estimates(cells, None if scope is None else asked_scope(scope)),
    )


def _by_trial(columns: ReviewColumns, scope: str | None) -> tuple[Split, ...]:
    """Return the scores on all tasks' first trials, on their second trials and so on; empty if
    tasks have only one trial.
    """
    if columns.number is None:
        return ()
    numbers = np.unique(columns.number[counting(columns)])
    if len(numbers) < 2:
        return ()
    return tuple(
        Split(
            name=str(number),
            estimates=_all(
                table_of(columns, counting(columns) & (columns.number == number), columns.final),
                columns.candidates,
                scope,
            ),
        )
        for number in numbers[:MAX_NUMBERS].tolist()
    )


def _judge(columns: ReviewColumns, judge: int, scope: str | None) -> Split:
    mine = counting(columns) & (columns.judge == judge)
    return Split(
        name=columns.judges[judge],
        estimates=_all(table_of(columns, mine, columns.final), columns.candidates, scope),
    )
