"""Families of related tasks: questions on one passage, issues of one repository, variants of one
template.

Theory. Tasks of a family share causes of difficulty, so they are not independent. In 100 benchmarks
with 8 families of 6 tasks each, a test over tasks declared a false winner in 32, and its 95% range
covered only 68%. The family is therefore the unit. A family's value is the weighted mean of its
tasks, and its weight is the sum of their weights. `across_tasks` then computes the CR2 variance of
the mean over families; tasks within a family may correlate in any way. A task without a family
counts as a family with one task.

Degrees of freedom. Kish's formula assumes that large families vary less; the formula of Bell and
McCaffrey (Satterthwaite) assumes that all families vary equally. If 3 of 20 families have 10 tasks
and the others have 2, intervals cover 93.9% with Kish's formula and 97.9% with Bell and
McCaffrey's. With sizes drawn from 2 to 10, they cover 94.3 to 95.6% and 95.0 to 97.0%. Which
formula is right depends on how strongly tasks of a family correlate, so the mean of both is used.
With families of equal size, all three equal the number of families minus one.
"""

from dataclasses import replace

import numpy as np

from assay.statistics.arrays import Floats, Ints
from assay.statistics.standard_error import AcrossTasks, across_pairs, across_tasks, shares_of

FEWEST_FAMILIES = 4
"""Minimum number of families for a statement about tasks like these."""


def by_family(values: Floats, weights: Floats, family: Ints) -> tuple[Floats, Floats]:
    """Return the weighted mean and the weight of each family, each of shape (..., families).

    Args:
        values, weights: shape (..., tasks); weight 0 means that the task is absent.
        family: shape (tasks,), code of each task's family; a family gets weight 0 if all its tasks
            are absent.
    """
    values, weights = np.broadcast_arrays(values, weights)
    order = np.argsort(family, kind="stable")
    ordered = family[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    total = np.add.reduceat(weights[..., order], starts, axis=-1)
    sums = np.add.reduceat((weights * values)[..., order], starts, axis=-1)
    return np.where(total > 0, sums / np.where(total > 0, total, 1.0), 0.0), total


def across(values: Floats, weights: Floats, family: Ints | None) -> AcrossTasks:
    """Compute `across_tasks` with families as the units, or with tasks as the units if `family` is
    None.

    Args:
        values, weights: as in `across_tasks`.
        family: as in `by_family`, or None.

    Source: Bell & McCaffrey (2002), Survey Methodology 28:169-181; equals scipy.stats.ttest_1samp
    on family means
    if all families have the same size and weight. Simulation: bench/families_simulation.py.
    """
    if family is None or family.size == 0:
        return across_tasks(values, weights)
    means, totals = by_family(values, weights, family)
    return _of_families(across_tasks(means, totals), totals, weights)


def across_family_pairs(
    values: Floats, weights: Floats, first: Ints, second: Ints, family: Ints | None
) -> AcrossTasks:
    """Compute `across_pairs` with families as the units; the arguments are as in `across_pairs` and
    `by_family`.
    """
    if family is None or family.size == 0:
        return across_pairs(values, weights, first, second)
    means, totals = by_family(values, weights, family)
    totals = totals[0] if totals.ndim > 1 else totals
    return _of_families(across_pairs(means, totals, first, second), totals, weights)


def _of_families(moments: AcrossTasks, totals: Floats, weights: Floats) -> AcrossTasks:
    df = (moments.df + bell_mccaffrey(totals)) / 2
    n_tasks = np.broadcast_to((weights > 0).sum(axis=-1).astype(np.float64), moments.n_units.shape)
    return replace(moments, df=df, n_tasks=n_tasks, share=shares_of(weights))


def bell_mccaffrey(weights: Floats) -> Floats:
    """Return the Satterthwaite degrees of freedom, at least 1, for the CR2 variance of a weighted
    mean; shape (...).

    Args:
        weights: shape (..., units), not negative.

    Source: Bell & McCaffrey (2002); this closed form was checked against the matrix form.
    """
    share = shares_of(weights)
    square = (share * share).sum(axis=-1, keepdims=True)
    rest = 1.0 - 2.0 * share + square
    # If one unit has nearly all the weight, its own term cannot be computed.
    usable = rest > 1e-12
    a = np.where(usable, share * share / np.where(usable, rest, 1.0), 0.0)
    u = square / 2 - share
    spread = (a * a * (rest * rest - (square - 2.0 * share) ** 2)).sum(axis=-1)
    crossed = a.sum(axis=-1) * (a * u * u).sum(axis=-1) + (a * u).sum(axis=-1) ** 2
    denominator = 2.0 * crossed + spread
    df = square[..., 0] ** 2 / np.where(denominator > 0, denominator, 1.0)
    most = np.maximum((weights > 0).sum(axis=-1) - 1.0, 1.0)
    return np.where(denominator > 0, np.clip(df, 1.0, most), 1.0)
