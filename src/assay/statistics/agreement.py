"""Krippendorff's alpha for any pattern of missing ratings, in time and memory proportional to the
number of ratings.

Theory. Alpha is 1 - D_o / D_e, where D_o is the observed and D_e the expected disagreement between
pairable ratings. For squared differences both are moments: with n_u ratings in unit u, and SS_u the
sum of their squared deviations from the unit's mean, D_o = (1/n) Σ 2 n_u SS_u / (n_u - 1) and D_e =
2 SS_total / (n - 1), where n = Σ n_u over units with at least two ratings. Ordinal alpha is the
interval alpha of the midranks, because its metric is the squared distance between midranks. Nominal
alpha needs counts of (unit, value). Only the ratio metric needs all pairs of distinct values.
"""

from dataclasses import dataclass, field

import numpy as np

from assay.statistics.arrays import Bools, Floats, Interval, Ints
from assay.statistics.cells import ROWS_AT_A_TIME
from assay.statistics.factorize import places
from assay.statistics.table import Column, Numbers

# Percentile bootstraps of few units are too narrow: with 10 tasks, tests based on them err in 10 to
# 12% of cases instead of 5%.
FEWEST_UNITS_FOR_INTERVAL = 20
# The table of all pairs of values takes 128 MB at this size.
MAX_VALUES_FOR_RATIO = 4000
# Krippendorff's own bounds.
READING = ((0.667, "not reliable"), (0.8, "tentative"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Alpha:
    """Agreement beyond chance: 1 is perfect agreement, 0 is what chance alone would give.

    Always read `agreement` together with alpha: alpha is low if the ratings hardly vary, however
    well the raters agree. `reading` is a label for the lower end of `ci95` (for alpha itself
    without an interval): reliable from .80, tentative from .667, otherwise not reliable. `ci95` is
    None below 20 units or without a random generator.
    """

    alpha: float | None
    ci95: Interval | None
    tolerance: float
    metric: str
    reading: str | None
    n_units: int
    n_ratings: int
    reason: str | None
    ratings: "Pairable" = field(repr=False, compare=False)

    @property
    def agreement(self) -> float | None:
        """Return the share of rating pairs within units that differ by at most `tolerance`; None if
        there are no pairs.
        """
        return _share_within(self.ratings, self.tolerance)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairable:
    """Ratings as arrays: `unit` codes and scores have shape (ratings,); the number of ratings per
    unit has shape (units,).
    """

    unit: Ints
    score: Floats
    count: Ints


def krippendorff_alpha(
    unit: Column,
    score: Numbers,
    *,
    metric: str = "interval",
    tolerance: float = 0.0,
    rng: np.random.Generator | None = None,
    resamples: int = 999,
) -> Alpha:
    """Compute Krippendorff's alpha of ratings grouped by unit.

    Which rater gave a rating does not matter.

    Args:
        unit: the rated unit of each rating.
        score: the rating, finite; leave missing ratings out.
        metric: `interval` for scores, `ordinal` for ranked grades, `nominal` for categories coded
            as numbers, `ratio` for amounts of at least 0.
        tolerance: two ratings that differ by at most this much count as agreeing in `agreement`.
        rng: draws the bootstrap resamples of units for the interval.
        resamples: number of bootstrap resamples.

    Raises ValueError for an unknown metric, columns of unequal length, a rating that is not finite,
    or a negative ratio rating.

    Source: Krippendorff (2011), Computing Krippendorff's alpha-reliability; checked against the
    printed example there (.743, .815, .849, .797) and the krippendorff package.
    """
    codes, n_units = places(unit)
    values = np.asarray(score, np.float64)
    if values.shape != codes.shape:
        raise ValueError(
            f"unit has {codes.size} rows, score has {values.size}; both must have the same length"
        )
    # The sum is a quick check that can overflow even if all ratings are finite, so only the second
    # check decides.
    if values.size and not np.isfinite(values.sum()) and not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"row {row} (counted from 0): score {values[row]} is not a finite number")
    return alpha_from_codes(
        codes,
        values,
        n_units=n_units,
        metric=metric,
        tolerance=tolerance,
        rng=rng,
        resamples=resamples,
    )


def alpha_from_codes(
    unit: Ints,
    score: Floats,
    *,
    n_units: int,
    metric: str = "interval",
    tolerance: float = 0.0,
    rng: np.random.Generator | None = None,
    resamples: int = 999,
) -> Alpha:
    """Compute `krippendorff_alpha` from whole-number unit codes below `n_units`, for millions of
    ratings.
    """
    if metric not in ("interval", "ordinal", "nominal", "ratio"):
        raise ValueError(f"metric is {metric!r}; it must be interval, ordinal, nominal or ratio")
    if metric == "ratio" and (score < 0).any():
        raise ValueError("metric ratio accepts only ratings of at least 0")
    count = np.bincount(unit, minlength=n_units)
    disagreement = _Disagreement(unit, score, count, metric)
    alpha = disagreement.alpha(None)
    ci95 = disagreement.interval(rng, resamples) if alpha is not None and rng is not None else None
    reason = None
    if alpha is None:
        too_many = metric == "ratio" and disagreement.too_many_values
        reason = (
            "no_pairable_ratings"
            if score.size == 0
            else "too_many_distinct_values"
            if too_many
            else "no_variation"
        )
    judged = ci95[0] if ci95 is not None else alpha
    return Alpha(
        alpha=alpha,
        ci95=ci95,
        tolerance=tolerance,
        metric=metric,
        reading=None
        if judged is None
        else next((word for bar, word in READING if judged < bar), "reliable"),
        n_units=int(np.count_nonzero(disagreement.count)),
        n_ratings=int(disagreement.count.sum()),
        reason=reason,
        ratings=Pairable(unit=unit, score=score, count=count),
    )


class _Disagreement:
    """Per-unit sums from which alpha is computed quickly, for all units or for a bootstrap
    resample.
    """

    def __init__(self, unit: Ints, score: Floats, count: Ints, metric: str) -> None:
        paired = count >= 2
        self.count: Floats = np.where(paired, count, 0).astype(np.float64)
        self.metric = metric
        self.too_many_values = False
        if metric in ("interval", "ordinal"):
            if metric == "ordinal":
                keep = paired[unit]
                unit, score = unit[keep], midranks(score[keep])
            self._moments(unit, score, paired)
        else:
            keep = paired[unit]
            self._distinct(unit[keep], score[keep], self.count)

    def _moments(self, unit: Ints, value: Floats, paired: Bools) -> None:
        size = self.count.size
        low, high = (float(value.min()), float(value.max())) if value.size else (0.0, 0.0)
        # Alpha is the same for shifted and scaled ratings; between -1 and 1 no square overflows or
        # makes the others vanish by rounding.
        centre, scale = low / 2 + high / 2, max(high / 2 - low / 2, 1e-300)
        total, squares = np.zeros(size), np.zeros(size)
        step = max(ROWS_AT_A_TIME, size)
        for start in range(0, value.size, step):
            part, key = value[start : start + step] - centre, unit[start : start + step]
            part /= scale
            total += np.bincount(key, weights=part, minlength=size)
            part *= part
            squares += np.bincount(key, weights=part, minlength=size)
        self.total, self.squares = total * paired, squares * paired
        n_pairable = float(self.count.sum())
        spread = float(self.squares.sum()) - float(self.total.sum()) ** 2 / max(n_pairable, 1.0)
        if spread < 1e-6 * n_pairable and n_pairable < value.size:
            # Units that were rated only once can widen the scale so far that rounding hides the
            # variation of the others, so the scale is set without them.
            keep = paired[unit]
            self._moments(unit[keep], value[keep], paired)
            return
        n = np.maximum(self.count, 2.0)
        self.observed = 2 * (self.count * self.squares - self.total * self.total) / (n - 1)

    def _distinct(self, unit: Ints, score: Floats, count: Floats) -> None:
        self.unit = unit
        self.values, self.value = np.unique(score, return_inverse=True)
        self.value = self.value.reshape(-1)
        self.too_many_values = self.metric == "ratio" and self.values.size > MAX_VALUES_FOR_RATIO
        order = np.argsort(unit, kind="stable")
        self.observed = np.zeros(count.size)
        starts = np.concatenate([[0], np.cumsum(count).astype(np.int64)])[:-1]
        place = np.arange(unit.size) - starts[unit[order]]
        width = int(count.max(initial=0))
        grid = np.full((count.size, width), -1)
        grid[unit[order], place] = self.value[order]
        for i in range(width):
            for j in range(i + 1, width):
                both = np.flatnonzero(grid[:, j] >= 0)
                self.observed[both] += 2 * self._distance(grid[both, i], grid[both, j])
        self.observed = self.observed / np.maximum(count - 1, 1)

    def _distance(self, first: Ints, second: Ints) -> Floats:
        if self.metric == "nominal":
            return np.asarray(first != second, np.float64)
        a, b = self.values[first], self.values[second]
        both = np.where(a + b > 0, a + b, 1.0)
        return np.asarray(((a - b) / both) ** 2)

    def _expected(self, times: Floats | None) -> float:
        n = float(self.count.sum() if times is None else (self.count * times).sum())
        if self.metric in ("interval", "ordinal"):
            weight = 1.0 if times is None else times
            total = float((weight * self.total).sum())
            squares = float((weight * self.squares).sum())
            return float(2 * (squares - total * total / n) * n / (n - 1))
        frequency = np.bincount(
            self.value,
            weights=None if times is None else times[self.unit],
            minlength=self.values.size,
        ).astype(np.float64)
        if self.metric == "nominal":
            return float(n * n - (frequency * frequency).sum()) / (n - 1)
        a, b = self.values[:, None], self.values[None, :]
        distance = ((a - b) / np.where(a + b > 0, a + b, 1.0)) ** 2
        return float(frequency @ distance @ frequency) / (n - 1)

    def alpha(self, times: Floats | None) -> float | None:
        """Return alpha, counting unit u `times[u]` times.

        Returns None if the ratings do not vary.
        """
        n = float(self.count.sum() if times is None else (self.count * times).sum())
        if n < 2 or self.too_many_values:
            return None
        expected = self._expected(times)
        observed = float(self.observed.sum() if times is None else (self.observed * times).sum())
        # Below this, the ratings are equal apart from rounding errors in their sums.
        floor = 1e-24 * n if self.metric != "nominal" else 0.0
        return None if expected <= floor else 1.0 - observed / expected

    def interval(self, rng: np.random.Generator, resamples: int) -> Interval | None:
        units = np.flatnonzero(self.count > 0)
        # the same ratings give the same interval, whatever their order
        if self.metric in ("interval", "ordinal"):
            sums = np.round((self.squares[units], self.total[units], self.count[units]), 9)
            units = units[np.lexsort(sums)]
        if units.size < FEWEST_UNITS_FOR_INTERVAL:
            return None
        alphas = []
        for _ in range(resamples):
            times = np.zeros(self.count.size)
            times[units] = np.bincount(
                rng.integers(0, units.size, units.size), minlength=units.size
            )
            alpha = self.alpha(times)
            if alpha is not None:
                alphas.append(alpha)
        if len(alphas) < resamples / 2:
            return None
        low, high = np.quantile(alphas, (0.025, 0.975))
        return float(low), float(high)


def midranks(score: Floats) -> Floats:
    """Return each score's rank from 1; tied scores share the mean of their ranks."""
    _, value, count = np.unique(score, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2.0)[value.reshape(-1)])


def _share_within(ratings: Pairable, tolerance: float) -> float | None:
    count, score = ratings.count, ratings.score
    pairs = float((count * (count - 1.0) / 2).sum())
    if pairs < 1:
        return None
    span = float(score.max() - score.min())
    if span <= tolerance:
        return 1.0
    # Units are laid out end to end, further apart than any two scores, so that one sorted search
    # handles all of them.
    scaled = (score - score.min()) / span
    near = tolerance / span + 1e-9
    line = np.sort(scaled + ratings.unit * (2.0 + near))
    reach = np.searchsorted(line, line + near, side="right")
    return float((reach - np.arange(1, line.size + 1)).sum()) / pairs
