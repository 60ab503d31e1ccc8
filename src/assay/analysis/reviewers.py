"""How a reviewer reviews: catch rate, agreement with oneself and others, pace, drift, anchoring; each with its range.

None of it is a statistic of candidates. A figure from few cases says how few, and a figure from none says so instead of
being a number. Where two things look bad together, look at the assessments before the person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from assay.statistics.agreement import krippendorff_alpha
from assay.statistics.distributions import t_quantile
from assay.statistics.intervals import proportion, wilson_bounds

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

ENOUGH: Final = 20
"""Planted checks before a catch rate is more than an anecdote: at 20 of 20 its range still begins at 0.83."""

TOLERANCE: Final = 0.05
"""Two scores at most this far apart are alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number with its 95% range; `value` None with a `reason` where there is none."""

    value: float | None
    ci95: tuple[float, float] | None
    n: int
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One decision: `arm` is `blind` or `assisted`; `active_s` None where it was not measured."""

    verb: str
    arm: str
    active_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Two scores on 0 to 1 of the same thing, one pair a unit."""

    first: Sequence[float] = ()
    second: Sequence[float] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What is known of one reviewer, in the order in which it happened.

    Attributes:
        plants: for each answered planted check, whether it was caught; by how it was broken.
        again: scores of the first decision and of the blind repeat.
        against_judge: own verdicts before the judge's scores were seen, and those scores.
        others: own and the other reviewer's resulting scores of items that two decided.
        same: for each item that two decided, whether they came to the same.
    """

    taken: Sequence[Taken] = ()
    plants: Sequence[tuple[str, bool]] = ()
    again: Pairs = field(default_factory=Pairs)
    against_judge: Pairs = field(default_factory=Pairs)
    others: Pairs = field(default_factory=Pairs)
    same: Sequence[bool] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewer:
    """Every figure of one reviewer. Shares and scores are on 0 to 1, differences on -1 to 1, times in seconds."""

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


def reviewer_of(material: Material, *, rng: np.random.Generator) -> Reviewer:
    """The figures of one reviewer; `rng` is for the ranges of alpha."""
    decided = [one for one in material.taken if one.verb in ("approve", "correct", "reject")]
    approvals = [one.verb == "approve" for one in decided]
    assisted = [one.verb == "approve" for one in decided if one.arm == "assisted"]
    blind = [one.verb == "approve" for one in decided if one.arm == "blind"]
    half = len(approvals) // 2
    kinds = dict.fromkeys(kind for kind, _ in material.plants)
    return Reviewer(
        decisions=len(decided),
        by_verb={verb: sum(one.verb == verb for one in decided) for verb in ("approve", "correct", "reject")},
        blind=len(blind),
        acceptance=share(assisted),
        catch_rate=share([caught for _, caught in material.plants]),
        caught_by_kind={
            kind: (sum(c for k, c in material.plants if k == kind), sum(k == kind for k, _ in material.plants))
            for kind in kinds
        },
        enough_plants=len(material.plants) >= ENOUGH,
        self_alike=_alike(material.again),
        self_alpha=_alpha(material.again, rng),
        self_distance=_distance(material.again),
        judge_alpha=_alpha(material.against_judge, rng),
        judge_distance=_distance(material.against_judge),
        anchoring=difference_of_shares([not one for one in blind], [not one for one in assisted]),
        active_s=median([one.active_s for one in decided if one.active_s is not None]),
        drift=difference_of_shares(approvals[half:], approvals[:half]),
        drift_parts=tuple(share(part) for part in _parts(approvals)),
        others_alike=share(list(material.same)),
        others_alpha=_alpha(material.others, rng),
    )


def share(outcomes: Sequence[bool]) -> Figure:
    """A share with Wilson's range, or the one for identical outcomes where all are alike."""
    if not outcomes:
        return Figure(value=None, ci95=None, n=0, reason="nothing_yet")
    found = proportion(sum(outcomes), len(outcomes))
    return Figure(value=found.mean, ci95=found.ci95, n=len(outcomes))


def difference_of_shares(a: Sequence[bool], b: Sequence[bool]) -> Figure:
    """Share of `a` minus share of `b`, with Newcombe's range from the two Wilson ranges.

    Source:
        Newcombe (1998), Statistics in Medicine 17:873-890, method 10; his example 56/70 - 48/80 gives .0524 to .3339.
    """
    n = min(len(a), len(b))
    if n == 0:
        return Figure(value=None, ci95=None, n=0, reason="one_side_is_empty")
    first, second = sum(a) / len(a), sum(b) / len(b)
    (low_a, high_a), (low_b, high_b) = _wilson(first, len(a)), _wilson(second, len(b))
    down = ((first - low_a) ** 2 + (high_b - second) ** 2) ** 0.5
    up = ((high_a - first) ** 2 + (second - low_b) ** 2) ** 0.5
    return Figure(value=first - second, ci95=(first - second - down, first - second + up), n=len(a) + len(b))


def median(values: Sequence[float]) -> Figure:
    """The median with the range between two order statistics that covers it with at least 95%; none below 6 values."""
    if not values:
        return Figure(value=None, ci95=None, n=0, reason="not_measured")
    ordered = np.sort(np.asarray(values, np.float64))
    n = len(ordered)
    tail, depth, term = 0.0, 0, 0.5**n if n < 1000 else 0.0
    if n >= 1000:  # the binomial is normal by then
        depth = int(n / 2 - 0.98 * n**0.5)
    else:
        while depth < n // 2 and tail + term <= 0.025:
            tail += term
            term *= (n - depth) / (depth + 1)
            depth += 1
    ci95 = (float(ordered[depth - 1]), float(ordered[n - depth])) if depth >= 1 else None
    return Figure(value=float(np.median(ordered)), ci95=ci95, n=n)


def _distance(pairs: Pairs) -> Figure:
    """Mean absolute difference with Student's range, kept at 0 or above."""
    apart = np.abs(np.asarray(pairs.first, np.float64) - np.asarray(pairs.second, np.float64))
    n = apart.size
    if n == 0:
        return Figure(value=None, ci95=None, n=0, reason="nothing_yet")
    mean = float(apart.mean())
    if n < 2:
        return Figure(value=mean, ci95=None, n=n)
    half = float(t_quantile(0.975, n - 1)) * float(apart.std(ddof=1)) / n**0.5
    return Figure(value=mean, ci95=(max(0.0, mean - half), min(1.0, mean + half)), n=n)


def _alike(pairs: Pairs) -> Figure:
    both = zip(pairs.first, pairs.second, strict=True)
    return share([abs(one - other) <= TOLERANCE + 1e-9 for one, other in both])


def _alpha(pairs: Pairs, rng: np.random.Generator) -> Figure:
    n = len(pairs.first)
    if n == 0:
        return Figure(value=None, ci95=None, n=0, reason="nothing_yet")
    unit = [*range(n), *range(n)]
    found = krippendorff_alpha(unit, [*pairs.first, *pairs.second], tolerance=TOLERANCE, rng=rng)
    return Figure(value=found.alpha, ci95=found.ci95, n=n, reason=found.reason)


def _parts(outcomes: Sequence[bool]) -> list[Sequence[bool]]:
    """Up to ten parts of equal length, each of at least ten decisions."""
    parts = min(10, len(outcomes) // 10)
    return [outcomes[len(outcomes) * k // parts : len(outcomes) * (k + 1) // parts] for k in range(parts)]


def _wilson(mean: float, n: ArrayLike) -> tuple[float, float]:
    low, high = wilson_bounds(mean, n)
    return float(low), float(high)
