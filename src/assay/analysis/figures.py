"""Shares, differences of shares, means and medians, with a 95% range and the number of cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from assay.statistics.arrays import NO_SPREAD, Interval
from assay.statistics.distributions import t_quantile
from assay.statistics.intervals import plain_interval, proportion, wilson_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number with its 95% range and number of cases.

    If it was not measured, `value` is None and `reason` explains why.
    """

    value: float | None = None
    ci95: Interval | None = None
    n: int = 0
    reason: str | None = None


def share(outcomes: Sequence[bool], *, if_empty: str = "nothing_yet") -> Figure:
    """Return the share of true outcomes with Wilson's range or, if all are equal, the range for
    identical outcomes.
    """
    if not outcomes:
        return Figure(reason=if_empty)
    estimate = proportion(sum(outcomes), len(outcomes))
    return Figure(value=estimate.mean, ci95=estimate.ci95, n=len(outcomes))


def difference_of_shares(a: Sequence[bool], b: Sequence[bool]) -> Figure:
    """Return the share in `a` minus the share in `b`, with Newcombe's range, which combines the two
    Wilson ranges.

    Source: Newcombe (1998), Statistics in Medicine 17:873-890, method 10; his example 56/70 - 48/80
    gives .0524 to .3339.
    """
    if not a or not b:
        return Figure(reason="one_side_is_empty")
    first, second = sum(a) / len(a), sum(b) / len(b)
    (low_a, high_a), (low_b, high_b) = (
        plain_interval(wilson_bounds(sum(c) / len(c), len(c))) for c in (a, b)
    )
    down = ((first - low_a) ** 2 + (high_b - second) ** 2) ** 0.5
    up = ((high_a - first) ** 2 + (second - low_b) ** 2) ** 0.5
    return Figure(
        value=first - second, ci95=(first - second - down, first - second + up), n=len(a) + len(b)
    )


def student_mean(values: Sequence[float], *, if_empty: str = "nothing_yet") -> Figure:
    """Return the mean with Student's range, which is absent if there are fewer than 2 values or all
    are equal.
    """
    n = len(values)
    if not n:
        return Figure(reason=if_empty)
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1)) if n > 1 else 0.0
    if spread < NO_SPREAD:
        return Figure(value=mean, n=n)
    half = float(t_quantile(0.975, n - 1)) * spread / n**0.5
    return Figure(value=mean, ci95=(mean - half, mean + half), n=n)


def median(values: Sequence[float]) -> Figure:
    """Return the median with a 95% range between two order statistics.

    The range is None for fewer than 6 values.
    """
    if not values:
        return Figure(reason="not_measured")
    ordered = np.sort(np.asarray(values, np.float64))
    n = len(ordered)
    # 0.5**n is 0 in floating point for n >= 1,075; the normal approximation is used before that.
    if n >= 1000:
        depth = int(n / 2 - 0.98 * n**0.5)
    else:
        tail, depth, term = 0.0, 0, 0.5**n
        while depth < n // 2 and tail + term <= 0.025:
            tail += term
            term *= (n - depth) / (depth + 1)
            depth += 1
    ci95 = (float(ordered[depth - 1]), float(ordered[n - depth])) if depth >= 1 else None
    return Figure(value=float(np.median(ordered)), ci95=ci95, n=n)
