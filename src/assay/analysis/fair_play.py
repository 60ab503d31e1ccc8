"""Fairness diagnostics: approval rates by candidate, and a test for selective rejection.

Assessments of a single candidate can be approved at different rates. A joint assessment is rejected
for all of its candidates at once, so their rates are always equal. For joint assessments, the
differences in rejected trials are therefore compared with those in kept trials, by a permutation
test within tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from assay.analysis.review_tables import in_state
from assay.domain.lifecycle import AssessmentState
from assay.domain.suite import PERSON
from assay.statistics.fair_play import (
    RateTest,
    SelectiveRejection,
    approval_rates,
    selective_rejection,
)
from assay.statistics.multiplicity import multiplicity
from assay.statistics.warnings import Caution

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from assay.analysis.columns import ReviewColumns

# the number of pairs of ten candidates
MAX_PAIRS: Final = 45
_KEPT: Final = (AssessmentState.APPROVED, AssessmentState.CORRECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRates:
    """Review decisions on one candidate's current LLM assessments.

    `by_person`: number of corrected assessments that have no judge's grade, because only a person
    graded them.
    """

    candidate: str
    n_judged: int
    n_decided: int
    approved: int
    corrected: int
    rejected: int
    rerun: int
    by_person: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRejection:
    """Test of selective rejection for two candidates; `p_holm` is adjusted for all pairs."""

    a: str
    b: str
    test: SelectiveRejection
    p_holm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FairPlay:
    """Review rates by candidate, and tests for unfair reviewing.

    `approval`, `rerun`: tests on assessments of a single candidate; None if all assessments are
    joint or undecided. `joint`: one test for each pair of candidates; empty without joint grading,
    or with more than 45 pairs.
    """

    rates: tuple[ReviewRates, ...]
    approval: RateTest | None
    rerun: RateTest | None
    joint: tuple[PairRejection, ...]
    cautions: tuple[Caution, ...]


def fair_play(
    columns: ReviewColumns, *, rng: np.random.Generator, candidates: Sequence[str] | None = None
) -> FairPlay:
    """Compute the rates and tests over these candidates (all by default).

    Args:
        rng: used for tests with too many arrangements to enumerate.
    """
    chosen = [
        c for c, name in enumerate(columns.candidates) if candidates is None or name in candidates
    ]
    rates = tuple(_rates(columns, c) for c in chosen)
    # A joint assessment is decided for all candidates at once, so its rates are equal by
    # construction.
    apart = ~columns.joint
    own = [_rates(columns, c, only=apart) for c in chosen] if apart.any() else []
    names = [rates.candidate for rates in own]
    approval = rerun = None
    if any(rates.n_decided for rates in own):
        kept = [rates.approved + rates.corrected for rates in own]
        # In simulations with the lowest 15% of one side's trials rejected, a difference of 0 became
        # 0.9 points, and this test gave a warning in 69% of benchmarks.
        approval = approval_rates(names, kept, [rates.n_decided for rates in own], rng=rng)
    if any(rates.rerun for rates in own):
        rerun = approval_rates(
            names, [rates.rerun for rates in own], [rates.n_judged for rates in own], rng=rng
        )
    joint = _joint(columns, chosen, rng)
    return FairPlay(
        rates=rates,
        approval=approval,
        rerun=rerun,
        joint=joint,
        cautions=tuple(_cautions(own, approval, rerun, joint)),
    )


def _rates(
    columns: ReviewColumns, candidate: int, *, only: NDArray[np.bool_] | None = None
) -> ReviewRates:
    mine = (columns.candidate == candidate) & columns.by_model
    if only is not None:
        mine &= only
    current = mine & ~in_state(columns, AssessmentState.SUPERSEDED)

    def n(*states: AssessmentState) -> int:
        return int((current & in_state(columns, *states)).sum())

    approved, corrected = n(AssessmentState.APPROVED), n(AssessmentState.CORRECTED)
    rejected = n(AssessmentState.REJECTED)
    return ReviewRates(
        candidate=columns.candidates[candidate],
        n_judged=int(current.sum()),
        n_decided=approved + corrected + rejected,
        approved=approved,
        corrected=corrected,
        rejected=rejected,
        rerun=int((current & (columns.attempt > 1)).sum()),
        by_person=int(
            (current & _of_people(columns) & in_state(columns, AssessmentState.CORRECTED)).sum()
        ),
    )


def _of_people(columns: ReviewColumns) -> NDArray[np.bool_]:
    return np.isin(
        columns.judge, [code for code, name in enumerate(columns.judges) if name == PERSON]
    )


def _joint(
    columns: ReviewColumns, chosen: list[int], rng: np.random.Generator
) -> tuple[PairRejection, ...]:
    # In simulations, a reviewer rejected 70% of the joint trials in which one side was 5 points
    # ahead. This caused a bias of 1.9 points and 29% false claims, although the approval rates of
    # both candidates stayed equal.
    thrown = in_state(columns, AssessmentState.REJECTED, AssessmentState.SUPERSEDED)
    rows = np.flatnonzero(
        columns.joint
        & columns.by_model
        & ~np.isnan(columns.judged)
        & (thrown | in_state(columns, *_KEPT))
    )
    pairs = list(combinations(chosen, 2))
    if not rows.size or not thrown[rows].any() or not pairs or len(pairs) > MAX_PAIRS:
        return ()
    _, first, line = np.unique(columns.assessment[rows], return_index=True, return_inverse=True)
    score = np.full((len(columns.candidates), len(first)), np.nan)
    score[columns.candidate[rows], line.reshape(-1)] = columns.judged[rows]
    task, gone = columns.task[rows][first], thrown[rows][first]
    tests = []
    for a, b in pairs:
        difference = score[a] - score[b]
        both = ~np.isnan(difference)
        tests.append(selective_rejection(task[both], difference[both], gone[both], rng=rng))
    holm = multiplicity([test.p_value for test in tests]).holm
    return tuple(
        PairRejection(a=columns.candidates[a], b=columns.candidates[b], test=test, p_holm=p)
        for (a, b), test, p in zip(pairs, tests, holm, strict=True)
    )


def _cautions(
    own: list[ReviewRates],
    approval: RateTest | None,
    rerun: RateTest | None,
    joint: tuple[PairRejection, ...],
) -> Iterator[Caution]:
    if approval is not None and approval.warning is not None:
        parts = [
            f"{rates.rejected} of {rates.n_decided} of {rates.candidate}"
            for rates in own
            if rates.n_decided
        ]
        yield Caution(
            code="unequal_approval",
            text=f"Assessments were rejected at different rates ({'; '.join(parts)}; exact "
            f"{_p(approval.p_value)}): the comparison may favour one side.",
        )
    if rerun is not None and rerun.warning is not None:
        parts = [
            f"{rates.rerun} of {rates.n_judged} of {rates.candidate}"
            for rates in own
            if rates.n_judged
        ]
        yield Caution(
            code="unequal_rerun",
            text=f"Assessments were judged again at different rates ({'; '.join(parts)}; exact "
            f"{_p(rerun.p_value)}): the comparison may favour one side.",
        )
    for pair in joint:
        excess = pair.test.excess
        if pair.p_holm is None or pair.p_holm >= 0.05 or excess is None:
            continue
        ahead, behind = (pair.a, pair.b) if excess > 0 else (pair.b, pair.a)
        yield Caution(
            code="selective_rejection",
            text=f"Trials in which {ahead} did well against {behind} were rejected or rerun more often than "
            f"others ({100 * abs(excess):.1f} points apart, {_p(pair.p_holm)}): the comparison may favour "
            f"{behind}.",
        )


def _p(value: float | None) -> str:
    return "p = –" if value is None else "p < .0001" if value < 0.0001 else f"p = {value:.4f}"
