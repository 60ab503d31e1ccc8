"""Reviewer metrics: catch rate, self-consistency, agreement with others, pace, drift and anchoring.

None of these figures affects statistics about candidates. Each has a range and its number of cases;
without cases it is None and has a reason. If several figures look bad, check the assessments before
you judge the reviewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from assay.analysis.figures import Figure, difference_of_shares, median, share
from assay.statistics.agreement import krippendorff_alpha
from assay.statistics.distributions import normal_quantile, t_quantile

ENOUGH: Final = 20
"""Minimum number of planted checks for a catch rate: even at 20 of 20, its interval begins at 0.83.
"""

TOLERANCE: Final = 0.05
"""Two scores that differ by at most this much agree."""

BASE: Final = 30
"""Number of first verdicts that form a reviewer's baseline; later verdicts are compared with it."""

_MEMORY: Final = 0.2  # weight of the newest verdict in the moving average
_LIMIT: Final = 3.0  # limits of the moving average, in standard deviations of the average
_FLOOR: Final = 0.05  # share of all decisions that count as quickest
_TARGET: Final = 0.8  # share of checks with an error that a careful reviewer finds
_FEW: Final = 0.02  # share of corrections and rejections among decisions
_MOVE: Final = 0.005  # smallest change of a score (0 to 1) that counts as a move


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerDecision:
    """One decision, with its timing and its distance from the judge's scores.

    Attributes:
        arm: `blind` or `assisted`.
        active_s: seconds that the reviewer looked at the item; None if not measured.
        size: characters that were read; 0 if unknown.
        apart: mean distance of the resulting scores from the judge's, between 0 and 1; None for a
            rejection.
        before: the same distance for the blind verdict that preceded the decision; None without a
            blind verdict.
        left: True if the first candidate on the page scored higher than the last.
    """

    verb: str
    arm: str
    active_s: float | None
    size: int = 0
    apart: float | None = None
    before: float | None = None
    left: bool | None = None

    @property
    def pace(self) -> float | None:
        """Return the reading pace in characters per second."""
        return self.size / self.active_s if self.active_s and self.size else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Two scores per unit, as parallel sequences, all between 0 and 1."""

    first: Sequence[float] = ()
    second: Sequence[float] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewerEvidence:
    """One reviewer's records, in the order they were made.

    Attributes:
        plants: for each answered planted check, the kind of error and whether the reviewer caught
            it.
        good: for each answered check without an error, whether the reviewer suspected one.
        shifts: for each item, the mean over candidates of the reviewer's own verdict minus the
            judge's score.
        reruns: number of times that a trial was judged again at this reviewer's request.
        quickest: the pace in characters per second that 5% of all reviewers' decisions exceed; None
            if unknown.
        again: the scores from first decisions and from their blind repeats.
        against_judge: the reviewer's verdicts before they saw the judge's scores, and those scores.
        others: the scores by this reviewer and by the second one, for items that two people
            decided.
        same: for each item that two people decided, True if their results agree.
    """

    taken: Sequence[ReviewerDecision] = ()
    plants: Sequence[tuple[str, bool]] = ()
    good: Sequence[bool] = ()
    shifts: Sequence[float] = ()
    reruns: int = 0
    quickest: float | None = None
    again: Pairs = field(default_factory=Pairs)
    against_judge: Pairs = field(default_factory=Pairs)
    others: Pairs = field(default_factory=Pairs)
    same: Sequence[bool] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewer:
    """All figures about one reviewer.

    Shares and scores are between 0 and 1, differences between -1 and 1, times in seconds.
    """

    decisions: int
    by_verb: Mapping[str, int]
    blind: int
    acceptance: Figure
    catch_rate: Figure
    caught_by_kind: Mapping[str, tuple[int, int]]
    enough_plants: bool
    self_alike: Figure
    self_alpha: Figure
    self_distance: Figure
    judge_alpha: Figure
    judge_distance: Figure
    anchoring: Figure
    active_s: Figure
    drift: Figure
    drift_parts: tuple[Figure, ...]
    others_alike: Figure
    others_alpha: Figure
    false_alarms: Figure
    sensitivity: Figure
    caution: Figure
    rejections: Figure
    reruns: Figure
    pace: Figure
    hasty: Figure
    position: Figure
    toward: Figure
    away: Figure
    apart_blind: Figure
    apart_assisted: Figure
    watch: DriftChart | None
    stamp: RubberStampSigns


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftChart:
    """A moving average of a reviewer's verdict minus the judge's score, compared with the same
    reviewer's first verdicts.

    Attributes:
        centre: mean difference in the first verdicts, between -1 and 1.
        points: for each later verdict, the moving average and its limits, which it rarely exceeds
            by chance.
        left_at: number (from 1) of the first point outside the limits; None if all points lie
            inside.
    """

    centre: float
    points: tuple[tuple[float, float, float], ...]
    left_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RubberStampSigns:
    """Signs that a reviewer approves without reading.

    A sign is None if there is too little data.
    """

    few_changes: bool | None
    quick: bool | None
    misses: bool | None

    @property
    def raised(self) -> bool:
        """True if all three signs are present."""
        return self.few_changes is True and self.quick is True and self.misses is True


def reviewer_of(material: ReviewerEvidence, *, rng: np.random.Generator) -> Reviewer:
    """Compute the figures about one reviewer; `rng` is used for the ranges of alpha."""
    decided = [
        decision for decision in material.taken if decision.verb in ("approve", "correct", "reject")
    ]
    approvals = [decision.verb == "approve" for decision in decided]
    assisted = [decision.verb == "approve" for decision in decided if decision.arm == "assisted"]
    blind = [decision.verb == "approve" for decision in decided if decision.arm == "blind"]
    half = len(approvals) // 2
    kinds = dict.fromkeys(kind for kind, _ in material.plants)
    caught = [was_caught for _, was_caught in material.plants]
    hits, alarms = rated(share(caught)), rated(share(list(material.good)))
    sensitivity, caution = detection(caught, material.good)
    moved = [
        (decision.apart, decision.before)
        for decision in decided
        if decision.apart is not None and decision.before is not None
    ]
    paces = [decision.pace for decision in decided if decision.pace is not None]
    quick = [pace > material.quickest for pace in paces] if material.quickest is not None else []
    return Reviewer(
        decisions=len(decided),
        by_verb={
            verb: sum(decision.verb == verb for decision in decided)
            for verb in ("approve", "correct", "reject")
        },
        blind=len(blind),
        acceptance=share(assisted),
        catch_rate=hits,
        caught_by_kind={
            kind: (
                sum(c for k, c in material.plants if k == kind),
                sum(k == kind for k, _ in material.plants),
            )
            for kind in kinds
        },
        enough_plants=len(material.plants) >= ENOUGH and len(material.good) >= ENOUGH,
        self_alike=_alike(material.again),
        self_alpha=_alpha(material.again, rng),
        self_distance=_distance(material.again),
        judge_alpha=_alpha(material.against_judge, rng),
        judge_distance=_distance(material.against_judge),
        anchoring=difference_of_shares(
            [not approved for approved in blind], [not approved for approved in assisted]
        ),
        active_s=median(
            [decision.active_s for decision in decided if decision.active_s is not None]
        ),
        drift=difference_of_shares(approvals[half:], approvals[:half]),
        drift_parts=tuple(share(part) for part in _parts(approvals)),
        others_alike=share(list(material.same)),
        others_alpha=_alpha(material.others, rng),
        false_alarms=alarms,
        sensitivity=sensitivity,
        caution=caution,
        rejections=share([decision.verb == "reject" for decision in decided]),
        reruns=share([True] * material.reruns + [False] * len(decided)),
        pace=median(paces),
        hasty=share(quick) if material.quickest is not None else _none("pace_unknown"),
        position=share([decision.left for decision in decided if decision.left is not None]),
        # Only verdicts that differed from the judge's score count: a verdict equal to it could only
        # move away from it.
        toward=share([after < before - _MOVE for after, before in moved if before > _MOVE]),
        away=share([after > before + _MOVE for after, before in moved if before > _MOVE]),
        apart_blind=_mean([decision.before for decision in decided if decision.before is not None]),
        apart_assisted=_mean(
            [
                decision.apart
                for decision in decided
                if decision.arm == "assisted" and decision.apart is not None
            ]
        ),
        watch=watch(material.shifts),
        stamp=_stamp(approvals, paces, material.quickest, caught),
    )


def rated(catch_share: Figure) -> Figure:
    """Return the share; below 20 checks, return a reason instead of a value."""
    if 0 < catch_share.n < ENOUGH:
        return Figure(n=catch_share.n, reason="fewer_than_20")
    return catch_share


def detection(caught: Sequence[bool], suspected: Sequence[bool]) -> tuple[Figure, Figure]:
    """Compute sensitivity d' and criterion c for detecting errors, with normal ranges; None below
    20 checks of each kind.

    Rates are (count + 0.5) / (total + 1) (log-linear), so that rates of 0 and 1 have finite values.
    c above 0 means that the reviewer rarely suspects an error.

    Source: Hautus (1995), Behavior Research Methods 27:46-51, for the correction; Gourevitch and
    Galanter (1967), Psychometrika 32:25-33, for the variance.
    """
    n = len(caught) + len(suspected)
    if min(len(caught), len(suspected)) < ENOUGH:
        none = _none("fewer_than_20" if n else "nothing_yet", n)
        return none, none
    z, parts = [], []
    for outcomes in (caught, suspected):
        rate = (sum(outcomes) + 0.5) / (len(outcomes) + 1)
        at = float(normal_quantile(rate))
        height = float(np.exp(-at * at / 2) / np.sqrt(2 * np.pi))
        z.append(at)
        parts.append(rate * (1 - rate) / (len(outcomes) * height**2))
    half = 1.96 * sum(parts) ** 0.5
    d, c = z[0] - z[1], -(z[0] + z[1]) / 2
    return (
        Figure(value=d, ci95=(d - half, d + half), n=n),
        # d' is the difference of two z values and c half of their sum, so the error of c is half as
        # large.
        Figure(value=c, ci95=(c - half / 2, c + half / 2), n=n),
    )


def watch(shifts: Sequence[float]) -> DriftChart | None:
    """Compare the moving average of later verdicts with the first 30 verdicts; None with 30
    verdicts or fewer.

    The limits are three standard deviations of the average. They are computed from the spread of
    the first verdicts and widened because the mean of those verdicts is also an estimate.

    Source: Lucas and Saccucci (1990), Technometrics 32:1-12, for the variance of the average.
    """
    if len(shifts) <= BASE:
        return None
    first = np.asarray(shifts[:BASE], np.float64)
    centre, spread = float(first.mean()), float(first.std(ddof=1))
    average, points, left_at = centre, [], None
    for step, shift in enumerate(shifts[BASE:], start=1):
        average = _MEMORY * shift + (1 - _MEMORY) * average
        grown = 1 - (1 - _MEMORY) ** step  # the mean's own error enters the average only gradually
        variance = _MEMORY / (2 - _MEMORY) * (1 - (1 - _MEMORY) ** (2 * step)) + grown**2 / BASE
        half = _LIMIT * spread * variance**0.5
        points.append((average, centre - half, centre + half))
        # If all verdicts are equal, the limits have no width, and rounding errors of the average
        # must not count as leaving them.
        if left_at is None and abs(average - centre) > half + 1e-12:
            left_at = BASE + step
    return DriftChart(centre=centre, points=tuple(points), left_at=left_at)


def quickest(paces: Sequence[float]) -> float | None:
    """Return the 95th percentile of the pace; None with fewer than 30 decisions."""
    return float(np.quantile(np.asarray(paces), 1 - _FLOOR)) if len(paces) >= BASE else None


def _stamp(
    approvals: Sequence[bool], paces: Sequence[float], limit: float | None, caught: Sequence[bool]
) -> RubberStampSigns:
    n = sum(approvals)
    return RubberStampSigns(
        few_changes=(len(approvals) - n) / len(approvals) <= _FEW if n >= ENOUGH else None,
        quick=float(np.median(paces)) > limit
        if limit is not None and len(paces) >= ENOUGH
        else None,
        misses=sum(caught) / len(caught) < _TARGET if len(caught) >= ENOUGH else None,
    )


def _none(reason: str, n: int = 0) -> Figure:
    return Figure(n=n, reason=reason)


def _distance(pairs: Pairs) -> Figure:
    return _mean(
        [abs(first - second) for first, second in zip(pairs.first, pairs.second, strict=True)]
    )


def _mean(values: Sequence[float]) -> Figure:
    """Return the mean of distances, with Student's range limited to between 0 and 1."""
    apart = np.asarray(values, np.float64)
    n = apart.size
    if n == 0:
        return Figure(reason="nothing_yet")
    mean = float(apart.mean())
    if n < 2:
        return Figure(value=mean, n=n)
    half = float(t_quantile(0.975, n - 1)) * float(apart.std(ddof=1)) / n**0.5
    return Figure(value=mean, ci95=(max(0.0, mean - half), min(1.0, mean + half)), n=n)


def _alike(pairs: Pairs) -> Figure:
    both = zip(pairs.first, pairs.second, strict=True)
    # In floating point, 0.4 - 0.35 is slightly above 0.05, but should still count as agreement.
    return share([abs(first - second) <= TOLERANCE + 1e-9 for first, second in both])


def _alpha(pairs: Pairs, rng: np.random.Generator) -> Figure:
    n = len(pairs.first)
    if n == 0:
        return Figure(reason="nothing_yet")
    unit = [*range(n), *range(n)]
    agreement = krippendorff_alpha(
        unit, [*pairs.first, *pairs.second], tolerance=TOLERANCE, rng=rng
    )
    return Figure(value=agreement.alpha, ci95=agreement.ci95, n=n, reason=agreement.reason)


def _parts(outcomes: Sequence[bool]) -> list[Sequence[bool]]:
    """Split the outcomes into up to ten equal groups of at least ten decisions."""
    parts = min(10, len(outcomes) // 10)
    return [
        outcomes[len(outcomes) * k // parts : len(outcomes) * (k + 1) // parts]
        for k in range(parts)
    ]
