"""Strengths from pairwise preferences: Bradley-Terry with ties as half a win, intervals clustered
by task.

Theory. Item i beats j with probability σ(θ_i - θ_j). With W_ij the wins of i over j (a tie gives
half to each), the log-likelihood Σ W_ij log σ(θ_i - θ_j) is concave; Newton's method on Σθ = 0
takes a handful of solves. Comparisons on the same task are not independent, so the covariance is
the sandwich I⁻ (G/(G-1) Σ g_t g_tᵀ) I⁻ where g_t is the score of task t, with the t distribution
with G - 1 degrees of freedom; without tasks it is the inverse information with the normal
distribution. A few tasks can agree by chance, and the sandwich then collapses. With fewer than
`FEWEST_TASKS_TO_TRUST` tasks, no range is therefore narrower than the one for independent
comparisons.

A maximum exists only if the win graph is strongly connected (Ford 1957). Items outside the largest
strongly connected part have no finite strength relative to it, and are reported as None instead of
a large number.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from assay.statistics.arrays import NO_SPREAD, Bools, Floats, Interval, Ints
from assay.statistics.cells import check_codes
from assay.statistics.distributions import expit, t_quantile, t_two_sided
from assay.statistics.factorize import coded, coded_together
from assay.statistics.table import Column, Numbers
from assay.statistics.warnings import Caution, caution

ELO_CENTRE, ELO_SCALE = 1500.0, 400.0 / float(np.log(10.0))
# Without tasks the reference distribution is the normal; with this many degrees of freedom, t
# agrees with it to nine digits.
NORMAL_DF = 1e12
# With at least this many tasks, the clustered range keeps its level in simulations; with fewer, it
# is made at least as wide as the one for independent comparisons.
FEWEST_TASKS_TO_TRUST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthDifference:
    """Difference of two strengths (a minus b, in log-odds), and the probability that a is preferred
    to b.
    """

    a: Hashable
    b: Hashable
    difference: float | None = None
    std_err: float | None = None
    ci95: Interval | None = None
    p_value: float | None = None
    win_probability: float | None = None
    win_probability_ci95: Interval | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BradleyTerry:
    """Strengths in log-odds, centred at 0 over the items that have a strength.

    Attributes:
        log_strength, elo, borda: one value per item, in the order of `items`. `elo` is centred at
            1500, with 400 points for odds of ten. `borda` is the share of opponents beaten, where a
            tie counts half.
        reason: why strengths are missing: `separation` (an item never loses or never wins against
            the rest), `disconnected` (two groups never met) or `no_comparisons`.
        separated: items whose strength is None for that reason.
        covariance, independent: covariance of the strengths with and without allowance for
            comparisons that share tasks; `spread` selects the one that intervals use.
    """

    items: tuple[Hashable, ...]
    log_strength: tuple[float | None, ...]
    borda: tuple[float | None, ...]
    separated: tuple[Hashable, ...]
    n_comparisons: float
    n_tasks: int
    method: str | None
    reason: str | None
    warnings: tuple[Caution, ...]
    covariance: Floats = field(repr=False, compare=False)
    independent: Floats = field(repr=False, compare=False)

    def spread(self, weights: Floats) -> tuple[float, float] | None:
        """Return the standard error of Σ weights · strength and its degrees of freedom; `weights`
        has shape (items,).

        The standard error comes from `covariance`. With few clustered tasks, the standard error for
        independent comparisons is used if it gives a wider range. Returns None if neither is known
        or the variance is 0 up to rounding.
        """
        if self.method is None:
            return None
        clustered = self.method != "information_z"
        known = [(self.covariance, self.n_tasks - 1.0 if clustered else NORMAL_DF)]
        if clustered and self.n_tasks < FEWEST_TASKS_TO_TRUST:
            known.append((self.independent, NORMAL_DF))
        errors = [(float(np.sqrt(max(float(weights @ v @ weights), 0.0))), df) for v, df in known]
        # Ranges are compared by width instead of standard error, because t with few degrees of
        # freedom can outweigh a smaller error.
        widest = max(errors, key=lambda error: error[0] * float(t_quantile(0.975, error[1])))
        return widest if widest[0] >= NO_SPREAD else None

    @property
    def elo(self) -> tuple[float | None, ...]:
        """Return the strengths on the Elo scale, which adds no information."""
        return tuple(None if s is None else ELO_CENTRE + ELO_SCALE * s for s in self.log_strength)

    def contrast(self, a: Hashable, b: Hashable) -> StrengthDifference:
        """Compare item a with item b. Raises ValueError if either is not among `items`."""
        for name in (a, b):
            if name not in self.items:
                raise ValueError(f"{name!r} is not one of the compared items")
        i, j = self.items.index(a), self.items.index(b)
        strength_a, strength_b = self.log_strength[i], self.log_strength[j]
        if strength_a is None or strength_b is None:
            return StrengthDifference(a=a, b=b, reason=self.reason)
        difference = strength_a - strength_b
        result = StrengthDifference(
            a=a, b=b, difference=difference, win_probability=float(expit(difference))
        )
        # The full covariance is used, because the strengths of two items are correlated.
        weights = np.zeros(len(self.items))
        weights[i], weights[j] = 1.0, -1.0
        spread = self.spread(weights) if i != j else None
        if spread is None:
            return replace(
                result, reason="need_at_least_2_tasks" if self.method is None else "zero_variance"
            )
        std_err, df = spread
        quantile = float(t_quantile(0.975, df))
        low, high = difference - quantile * std_err, difference + quantile * std_err
        return replace(
            result,
            std_err=std_err,
            ci95=(low, high),
            p_value=float(t_two_sided(difference / std_err, df)),
            win_probability_ci95=(float(expit(low)), float(expit(high))),
        )


def bradley_terry(
    left: Column,
    right: Column,
    outcome: Sequence[str | float] | NDArray[np.generic],
    *,
    count: Numbers | None = None,
    task: Column | None = None,
    pseudo_wins: float = 0.0,
) -> BradleyTerry:
    """Estimate strengths from comparisons of pairs.

    Args:
        left, right: the two items of each comparison.
        outcome: "left", "right" or "tie"; or the points of the left item: 1, 0 or 0.5.
        count: number of times that each comparison occurred, at least 0; by default 1.
        task: task of each comparison; intervals are then clustered by task.
        pseudo_wins: wins to add in both directions for every pair that met. Above 0, every strength
            is finite but shrunk; label such strengths as shrunk.

    Raises ValueError for columns of unequal length, an item compared with itself, an unknown
    outcome, or a negative count.

    Source: Bradley & Terry (1952), Biometrika 39:324-345; Ford (1957); checked against statsmodels
    GLM, choix and evalica, and Agresti's baseball table.
    """
    n_rows = len(left)
    if (
        len(right) != n_rows
        or len(outcome) != n_rows
        or (count is not None and len(count) != n_rows)
    ):
        raise ValueError("bradley_terry: left, right, outcome and count must have the same length")
    items, left_codes, right_codes = coded_together(left, right)
    points = _points(outcome)
    clusters = None if task is None else coded(task)
    if clusters is not None and clusters.codes.size != n_rows:
        raise ValueError(f"bradley_terry: task has {clusters.codes.size} rows, left has {n_rows}")
    return bradley_terry_from_codes(
        left_codes,
        right_codes,
        points,
        n_items=len(items),
        count=None if count is None else np.asarray(count, np.float64),
        task=None if clusters is None else clusters.codes,
        n_tasks=0 if clusters is None else len(clusters.labels),
        items=items,
        pseudo_wins=pseudo_wins,
    )


def bradley_terry_from_codes(
    left: Ints,
    right: Ints,
    twice_points: Ints,
    *,
    n_items: int,
    count: Floats | None = None,
    task: Ints | None = None,
    n_tasks: int = 0,
    items: Sequence[Hashable] | None = None,
    pseudo_wins: float = 0.0,
) -> BradleyTerry:
    """Compute `bradley_terry` from whole-number codes, for millions of comparisons.

    Args:
        left, right: shape (comparisons,), codes from 0 below `n_items`.
        twice_points: shape (comparisons,): 2 if left won, 1 for a tie, 0 if right won.
        task: shape (comparisons,), codes from 0 below `n_tasks`.

    Raises ValueError as `bradley_terry` does, and for a code out of range.
    """
    _check(left, right, twice_points, count, n_items)
    meeting = left * n_items
    meeting += right
    # One code for (left, right, outcome), so that millions of comparisons are counted in one pass.
    met_with = meeting * 3
    met_with += twice_points
    tally = np.bincount(met_with, weights=count, minlength=3 * n_items * n_items)
    lost, tied, won = np.moveaxis(tally.reshape(n_items, n_items, 3).astype(np.float64), 2, 0)
    wins = won + tied / 2 + (lost + tied / 2).T
    met = wins + wins.T > 0
    wins = wins + pseudo_wins * met
    names = tuple(range(n_items)) if items is None else tuple(items)
    core, reason = _core(wins)
    theta = np.zeros(n_items)
    covariance, inverse = np.zeros((n_items, n_items)), np.zeros((n_items, n_items))
    method, clusters = None, 0
    if core.size > 1:
        theta[core] = _maximum(wins[np.ix_(core, core)])
        inverse[np.ix_(core, core)] = _inverse_information(theta[core], wins[np.ix_(core, core)])
        if task is None:
            covariance, method = inverse, "information_z"
        else:
            check_codes("task", task, n_tasks, len(left))
            meat, clusters = _meat(
                left, right, twice_points, count, task, n_tasks, theta, meeting, core, n_items
            )
            if clusters >= 2:
                covariance, method = inverse @ meat @ inverse, "sandwich_t"
    finite = np.zeros(n_items, np.bool_)
    finite[core] = core.size > 1 or n_items == 1
    games = wins + wins.T
    opponents = met.sum(axis=1)
    borda = (wins / np.where(games > 0, games, 1.0)).sum(axis=1) / np.maximum(opponents, 1)
    total = float(tally.sum())
    return BradleyTerry(
        items=names,
        log_strength=tuple(float(theta[i]) if finite[i] else None for i in range(n_items)),
        borda=tuple(float(borda[i]) if opponents[i] else None for i in range(n_items)),
        separated=tuple(names[i] for i in range(n_items) if not finite[i]),
        n_comparisons=total,
        n_tasks=clusters,
        method=method,
        reason=reason if total else "no_comparisons",
        warnings=(caution("all_ties"),) if total and float(tied.sum()) == total else (),
        covariance=covariance,
        independent=inverse,
    )


def _points(outcome: Sequence[str | float] | NDArray[np.generic]) -> Ints:
    values = np.asarray(outcome)
    if values.dtype.kind in "UO":
        known = {"left": 2, "right": 0, "tie": 1}
        values = np.array(
            [
                known.get(value, value) if isinstance(value, str) else 2 * value
                for value in values.tolist()
            ],
            object,
        )
        wrong = [i for i, value in enumerate(values.tolist()) if value not in (0, 1, 2)]
        if wrong:
            raise ValueError(
                f"row {wrong[0]} (counted from 0): outcome is not one of left, right, tie, 1, 0.5, 0"
            )
        return values.astype(np.int64)
    twice = values.astype(np.float64) * 2
    # NaN becomes an arbitrary whole number here, which the check below detects.
    with np.errstate(invalid="ignore"):
        codes = twice.astype(np.int64)
    bad = codes != twice
    # Read as unsigned numbers, negative codes are huge.
    bad |= codes.view(np.uint64) > 2
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"row {row} (counted from 0): outcome {values[row]} is not one of 1, 0.5, 0"
        )
    return codes


def _check(left: Ints, right: Ints, twice_points: Ints, count: Floats | None, n_items: int) -> None:
    check_codes("left", left, n_items, len(left))
    check_codes("right", right, n_items, len(left))
    check_codes("twice_points", twice_points, 3, len(left))
    if (left == right).any():
        row = int(np.flatnonzero(left == right)[0])
        raise ValueError(f"row {row} (counted from 0): an item is compared with itself")
    if count is not None and not (np.isfinite(count) & (count >= 0)).all():
        row = int(np.flatnonzero(~(np.isfinite(count) & (count >= 0)))[0])
        raise ValueError(
            f"row {row} (counted from 0): count {count[row]} is not a finite number of at least 0"
        )


def _core(wins: Floats) -> tuple[Ints, str | None]:
    """Return the largest strongly connected component of the win graph, and a reason if some items
    are outside it.
    """
    if wins.size == 0:
        return np.zeros(0, np.int64), None
    reaches = _reachable(wins > 0)
    mutual = reaches & reaches.T
    core = np.flatnonzero(mutual[int(mutual.sum(axis=1).argmax())])
    if core.size == len(wins):
        return core, None
    connected = _reachable((wins + wins.T) > 0)
    return core, "separation" if connected.all() else "disconnected"


def _reachable(edges: Bools) -> Bools:
    reached = edges | np.eye(len(edges), dtype=np.bool_)
    while True:
        # Each product doubles the length of the paths. The matrices hold floats, because matrix
        # products of booleans do not use BLAS.
        further = (reached.astype(np.float64) @ reached.astype(np.float64)) > 0
        if (further == reached).all():
            return reached
        reached = further


def _maximum(wins: Floats) -> Floats:
    games = wins + wins.T
    theta = np.zeros(len(wins))
    # Shifting all strengths equally does not change the likelihood; this term fixes their sum and
    # makes the matrix regular.
    centre = np.full_like(wins, 1.0 / len(wins))
    for _ in range(100):
        p = expit(theta[:, None] - theta[None, :])
        slope = (wins - games * p).sum(axis=1)
        h = games * p * (1 - p)
        step = np.linalg.solve(np.diag(h.sum(axis=1)) - h + centre, slope)
        # Far from the maximum the curvature is small and a Newton step may overshoot, so its length
        # is limited to 2.
        step = step / max(1.0, float(np.abs(step).max()) / 2.0)
        theta = theta + step - step.mean()
        if np.abs(step).max() < 1e-12:
            break
    return np.asarray(theta - theta.mean())


def _inverse_information(theta: Floats, wins: Floats) -> Floats:
    p = expit(theta[:, None] - theta[None, :])
    h = (wins + wins.T) * p * (1 - p)
    centre = np.full_like(h, 1.0 / len(h))
    # The term 1 / n that made the matrix regular is subtracted again, which leaves the
    # pseudo-inverse.
    return np.asarray(np.linalg.inv(np.diag(h.sum(axis=1)) - h + centre) - centre)


def _meat(
    left: Ints,
    right: Ints,
    twice_points: Ints,
    count: Floats | None,
    task: Ints,
    n_tasks: int,
    theta: Floats,
    meeting: Ints,
    core: Ints,
    n_items: int,
) -> tuple[Floats, int]:
    """Return the middle matrix of the sandwich covariance, and the number of tasks in it."""
    inside = np.zeros(n_items, np.bool_)
    inside[core] = True
    expected = expit(theta[:, None] - theta[None, :]).reshape(-1)
    off = twice_points / 2.0 - expected.take(meeting)
    if count is not None:
        off = off * count
    if not inside.all():
        off = np.where(inside[left] & inside[right], off, 0.0)
        used = (
            np.bincount(
                task, weights=(inside[left] & inside[right]).astype(np.float64), minlength=n_tasks
            )
            > 0
        )
    else:
        used = np.bincount(task, minlength=n_tasks) > 0
    at = task * n_items
    score = np.bincount(at + left, weights=off, minlength=n_tasks * n_items)
    score -= np.bincount(at + right, weights=off, minlength=n_tasks * n_items)
    score = score.reshape(n_tasks, n_items)
    clusters = int(used.sum())
    return np.asarray(score.T @ score * (clusters / max(clusters - 1, 1)), np.float64), clusters
