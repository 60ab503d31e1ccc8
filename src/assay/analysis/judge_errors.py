"""Judge calibration on references (responses with a known score): error, correlation, biases and
tier.

House rules. A judge reaches a tier only if the conservative end of every interval reaches it. A
figure that was not measured is None with a reason, never 0. A reply that could not be read counts
as a miss in the pass rate and has no error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from assay.analysis.figures import Figure, share, student_mean
from assay.domain.calibration_record import Tier
from assay.statistics.distributions import normal_quantile, t_quantile
from assay.statistics.intervals import identical_interval
from assay.statistics.judge_accuracy import calibration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


LEAST_PAIRS: Final = 8
"""Minimum number of references for a tier; with fewer, no tier is given."""

ADVISED_PAIRS: Final = 30
"""Minimum number of references that can show a judge to be excellent: below 29 of 29, no interval
begins at 90%.
"""

_NEEDED: Final = (
    (Tier.EXCELLENT, 0.90, 0.10, 0.9),
    (Tier.GOOD, 0.75, 0.15, 0.8),
    (Tier.FAIR, 0.50, 0.25, 0.6),
)
"""Thresholds for each tier: minimum pass rate, maximum mean absolute error, minimum correlation;
all three must be met.
"""

_NO_SPREAD: Final = 1e-12
_LEAST_OF_A_KIND: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedReference:
    """One reference and the score that the judge gave it.

    Attributes:
        source: where the reference came from: `sample` or `correction`.
        reference: the correct score. `judged`: the judge's score, None if the judge's reply could
            not be read.
        repeats: the judge's scores for repeated gradings of this reference.
        bypassed: True if no judge is asked about the reference; it counts only in
            `pass_rate_with_bypassed`.
        own_family: True if a model of the judge's family wrote the response; None if unknown.
    """

    id: str
    kind: str
    source: str
    reference: float
    tolerance: float
    judged: float | None
    repeats: tuple[float, ...] = ()
    bypassed: bool = False
    own_family: bool | None = None
    twin_of: str | None = None

    @property
    def error(self) -> float | None:
        """judged - reference; above 0 means that the judge is too generous."""
        return None if self.judged is None else self.judged - self.reference

    @property
    def passed(self) -> bool:
        return self.error is not None and abs(self.error) <= self.tolerance + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """The score lead of the first of two answers in each of the two orders; None if a reply could
    not be read.
    """

    id: str
    lead: float | None
    lead_swapped: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Results of a judge's calibration, with the tier.

    Attributes:
        tier: the tier that the conservative end of every interval reaches. `tier_at_face_value`:
            the tier of the point estimates.
        n: number of references with a score from the judge.
        unread: number of references for which the judge's reply could not be read.
        pass_rate: pass rate on the references that the judge was asked about.
            `pass_rate_with_bypassed` also counts empty answers, as passed.
        max_error: the largest |judged - reference|.
        position_flips: share of pairs in which swapping the order changed the winner.
        first_place_bonus: by how much an answer's score rises if it is shown first.
        length_bias: mean error on the wordy version of an answer minus that on its short version.
        self_preference: mean error on responses by the judge's own model family, minus that on
            other responses.
        repeat_sd: standard deviation of the scores when the same answer is judged repeatedly.
        more_pairs: recommended number of additional references.
    """

    tier: Tier
    tier_at_face_value: Tier
    n: int
    unread: int
    pass_rate: Figure
    pass_rate_with_bypassed: Figure
    mae: Figure
    max_error: float | None
    bias: Figure
    pearson: Figure
    spearman: Figure
    position_flips: Figure
    first_place_bonus: Figure
    length_bias: Figure
    self_preference: Figure
    repeat_sd: Figure
    more_pairs: int


def trust(judged: Sequence[JudgedReference], swaps: Sequence[Swap] = ()) -> Trust:
    # Judges are never asked about empty answers, so these must not raise a judge's pass rate.
    asked = [reference for reference in judged if not reference.bypassed]
    read = [reference for reference in asked if reference.judged is not None]
    a = np.array([reference.judged for reference in read], dtype=np.float64)
    b = np.array([reference.reference for reference in read], dtype=np.float64)
    accuracy = calibration(a, b)
    pass_rate = share([reference.passed for reference in asked], if_empty="no_pairs")
    mae = _mean_error(np.abs(a - b))
    pearson = _correlation(accuracy.pearson, len(read), accuracy.reason, spearman=False)
    shown, plain = _tiers(pass_rate, mae, pearson, len(read))
    return Trust(
        tier=shown,
        tier_at_face_value=plain,
        n=len(read),
        unread=len(asked) - len(read),
        pass_rate=pass_rate,
        pass_rate_with_bypassed=share(
            [reference.passed for reference in judged], if_empty="no_pairs"
        ),
        mae=mae,
        max_error=accuracy.max_error,
        bias=Figure(
            value=accuracy.bias,
            ci95=accuracy.bias_ci95,
            n=len(read),
            reason=None if len(read) else "no_pairs",
        ),
        pearson=pearson,
        spearman=_correlation(accuracy.spearman, len(read), accuracy.reason, spearman=True),
        position_flips=_flips(swaps),
        first_place_bonus=_bonus(swaps),
        length_bias=_length_bias(asked),
        self_preference=_self_preference(read),
        repeat_sd=_repeat_sd(asked),
        more_pairs=max(0, ADVISED_PAIRS - len(read)),
    )


def tier_of(pass_rate: float, mae: float, correlation: float) -> Tier:
    """Return the highest tier whose three thresholds are met, else poor."""
    for tier, least_passed, most_error, least_correlation in _NEEDED:
        if pass_rate >= least_passed and mae <= most_error and correlation >= least_correlation:
            return tier
    return Tier.POOR


def _tiers(pass_rate: Figure, mae: Figure, pearson: Figure, n: int) -> tuple[Tier, Tier]:
    """Return the tier at the conservative interval ends and the tier of the point estimates."""
    if pass_rate.value is None or mae.value is None:
        return Tier.TOO_FEW, Tier.TOO_FEW
    # A judge that gives every answer the same score does not follow the references: that is a
    # result, not a lack of data.
    constant = pearson.reason == "judge_has_no_variation"
    if pearson.value is None and not constant:
        return Tier.TOO_FEW, Tier.TOO_FEW
    plain = tier_of(pass_rate.value, mae.value, pearson.value or 0.0)
    if n < LEAST_PAIRS or pass_rate.ci95 is None or mae.ci95 is None:
        return Tier.TOO_FEW, plain
    low = 0.0 if constant or pearson.ci95 is None else pearson.ci95[0]
    cautious = tier_of(pass_rate.ci95[0], mae.ci95[1], low)
    return (Tier.TOO_FEW if cautious is Tier.POOR and plain is not Tier.POOR else cautious), plain


def _mean_error(errors: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Figure:
    """Return the mean absolute error with Student's interval or, if all errors are equal, with the
    bound for identical scores.
    """
    n = errors.size
    if not n:
        return Figure(reason="no_pairs")
    mean = float(errors.mean())
    spread = float(errors.std(ddof=1)) if n > 1 else 0.0
    if spread < _NO_SPREAD:
        low, high = identical_interval(min(mean, 1.0), n)
        return Figure(value=mean, ci95=(float(low), float(high)), n=n)
    half = float(t_quantile(0.975, n - 1)) * spread / n**0.5
    return Figure(value=mean, ci95=(max(0.0, mean - half), min(1.0, mean + half)), n=n)


def _correlation(r: float | None, n: int, reason: str | None, *, spearman: bool) -> Figure:
    """Return a correlation with Fisher's interval; for Spearman's it follows Bonett & Wright
    (2000), Psychometrika 65:23-28.
    """
    if r is None:
        return Figure(n=n, reason=reason)
    if n < 4:
        return Figure(value=r, n=n)
    # arctanh is infinite at 1 and -1.
    inside = min(max(r, -1 + 1e-12), 1 - 1e-12)
    variance = (1 + r * r / 2) / (n - 3) if spearman else 1 / (n - 3)
    half = float(normal_quantile(0.975)) * variance**0.5
    centre = float(np.arctanh(inside))
    return Figure(value=r, ci95=(float(np.tanh(centre - half)), float(np.tanh(centre + half))), n=n)


def _flips(swaps: Sequence[Swap]) -> Figure:
    """Return the share of pairs whose winner changed with the order, not counting ties."""
    return share([first * second < 0 for first, second in _leads(swaps)], if_empty="no_pairs")


def _bonus(swaps: Sequence[Swap]) -> Figure:
    """Return half of the difference between an answer's lead when shown first and its lead when
    shown second.
    """
    return student_mean(
        [(first - second) / 2 for first, second in _leads(swaps)], if_empty="no_pairs"
    )


def _leads(swaps: Sequence[Swap]) -> list[tuple[float, float]]:
    return [
        (swap.lead, swap.lead_swapped)
        for swap in swaps
        if swap.lead is not None and swap.lead_swapped is not None
    ]


def _length_bias(judged: Sequence[JudgedReference]) -> Figure:
    by_id = {reference.id: reference for reference in judged}
    excess = []
    for wordy in judged:
        short = by_id.get(wordy.twin_of or "")
        if short is not None and short.error is not None and wordy.error is not None:
            # Uses errors instead of scores, because the wordy twin may deserve a different score.
            excess.append(wordy.error - short.error)
    return student_mean(excess, if_empty="no_twins")


def _self_preference(judged: Sequence[JudgedReference]) -> Figure:
    """Return the mean error on responses of the judge's own family minus that on others, with
    Welch's interval.

    Errors are differences from people's scores.
    """
    own = np.array(
        [reference.error for reference in judged if reference.own_family is True], dtype=np.float64
    )
    others = np.array(
        [reference.error for reference in judged if reference.own_family is False], dtype=np.float64
    )
    n = int(own.size + others.size)
    if min(own.size, others.size) < _LEAST_OF_A_KIND:
        return Figure(n=n, reason="too_few_corrections_of_own_family_and_others")
    difference = float(own.mean() - others.mean())
    parts = np.array([own.var(ddof=1) / own.size, others.var(ddof=1) / others.size])
    variance = float(parts.sum())
    if variance < _NO_SPREAD:
        return Figure(value=difference, n=n)
    df = variance**2 / float((parts**2 / np.array([own.size - 1, others.size - 1])).sum())
    half = float(t_quantile(0.975, df)) * variance**0.5
    return Figure(value=difference, ci95=(difference - half, difference + half), n=n)


def _repeat_sd(judged: Sequence[JudgedReference]) -> Figure:
    """Return the standard deviation of repeated scores, pooled over the samples that were judged
    more than once.
    """
    squares = df = 0.0
    for reference in judged:
        if len(reference.repeats) > 1:
            squares += float(np.var(reference.repeats) * len(reference.repeats))
            df += len(reference.repeats) - 1
    if not df:
        return Figure(reason="judged_once")
    return Figure(value=(squares / df) ** 0.5, n=int(df))


def bias_by_criterion(errors: Mapping[str, Sequence[float]]) -> dict[str, Figure]:
    """Return the mean of judged minus deserved grade for each criterion; above 0 means that the
    judge is too generous.
    """
    return {name: student_mean(own, if_empty="no_pairs") for name, own in errors.items()}


def by_kind(judged: Sequence[JudgedReference]) -> Mapping[str, tuple[int, int]]:
    """Return (passed, total) by kind of reference."""
    tallies: dict[str, tuple[int, int]] = {}
    for reference in judged:
        passed, asked = tallies.get(reference.kind, (0, 0))
        tallies[reference.kind] = (passed + reference.passed, asked + 1)
    return tallies
