"""Rankings: pairwise comparisons, ranks with uncertainty, and groups of candidates that cannot be
separated.

Theory. `contrasts` computes all pairs at once. All pairs together are one claim, so the p-value
adjusted by Holm's method decides which candidate of a pair is better. Ranks and groups follow from
these decisions alone: a rank is possible unless a decided pair excludes it.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from assay.statistics.arrays import Bools, Floats, Interval, Ints
from assay.statistics.cells import Cells
from assay.statistics.comparisons import ALPHA, against_margin, decided
from assay.statistics.contrasts import Contrasts, LikeThese, ScopedDifference, TheseTasks, nothing
from assay.statistics.distributions import chi_square_above, t_quantile
from assay.statistics.equivalence import checked_margin
from assay.statistics.estimates import Estimate, estimates
from assay.statistics.families import by_family
from assay.statistics.identical_tasks import identical_tasks
from assay.statistics.multiplicity import multiplicity
from assay.statistics.scopes import (
    FEWEST_TASKS_TO_GENERALISE,
    TASKS_LIKE_THESE,
    checked_scope,
    default_scope,
)
from assay.statistics.table import ScoreTable
from assay.statistics.warnings import Caution, about_sample, caution


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A candidate with its rank by mean and the range of ranks that the data support.

    `rank`: 1 for the highest mean; candidates with equal means share a rank; None without counted
    trials. `rank_low`: 1 plus the number of candidates shown to be better (Holm). `rank_high`: the
    number of candidates minus the number shown to be worse.
    """

    candidate: Hashable
    mean: float | None
    rank: int | None
    rank_low: int | None
    rank_high: int | None
    estimate: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPair:
    """One pair of a ranking; `decision` is adjusted for all pairs (Holm), `decision_alone` is not.

    `ci95` is for this pair alone; `ci_simultaneous` covers all pairs together (Bonferroni). For
    effect sizes and a second opinion, use `compare`.
    """

    a: Hashable
    b: Hashable
    difference: float | None
    ci95: Interval | None
    ci_simultaneous: Interval | None
    std_err: float | None
    df: float | None
    p_value: float | None
    p_holm: float | None
    p_bh: float | None
    decision: str
    decision_alone: str
    n_tasks: int
    scope: str
    method: str | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Candidates from best to worst, all pairs in that order, and the groups of candidates that
    cannot be separated.

    A group is a longest possible run of neighbours in rank order in which no pair differs
    significantly after Holm's adjustment. Groups may overlap.
    """

    candidates: tuple[Ranked, ...]
    pairs: tuple[RankedPair, ...]
    groups: tuple[tuple[Hashable, ...], ...]
    scope: str
    warnings: tuple[Caution, ...]

    @property
    def compared(self) -> tuple[RankedPair, ...]:
        """Return the pairs that share a counted task; other pairs cannot be compared."""
        return tuple(pair for pair in self.pairs if pair.n_tasks > 0)

    @property
    def n_tested(self) -> int:
        """Return the number of tested pairs, for which p-values are adjusted by Holm's method."""
        return sum(pair.p_value is not None for pair in self.pairs)


def rank(
    scores: ScoreTable | Cells, scope: str | None = None, margin: float | None = None
) -> Ranking:
    """Rank all candidates, with the uncertainty of their ranks, and compare all pairs.

    Args:
        scores: a table, or cells.
        scope: as in `compare`, and the same for all pairs. Exception: a pair that shares only one
            task is compared on that task.
        margin: as in `compare`.

    Raises ValueError if the scope is unknown, or the margin is out of range.

    Source: rank ranges: Mogstad, Romano, Shaikh & Wilhelm (2024), Rev. Econ. Stud. 91:476-518,
    pairwise construction; Holm (1979); Benjamini & Hochberg (1995).
    """
    asked, margin = checked_scope(scope), checked_margin(margin)
    cells = scores.cells if isinstance(scores, ScoreTable) else scores
    each = estimates(scores, asked)
    order = sorted(range(len(each)), key=lambda i: (-_or_last(each[i].mean), i))
    first, second = (np.array(order, np.intp)[side] for side in np.triu_indices(len(order), 1))
    differences, shared, chosen = _scoped_pairs(scores, cells, first, second, asked)
    pairs = _pairs(cells, differences, shared, first, second, margin)
    better = np.zeros((len(each), len(each)), np.bool_)
    for place, pair in enumerate(pairs):
        if pair.decision == "better":
            better[first[place], second[place]] = True
        elif pair.decision == "worse":
            better[second[place], first[place]] = True
    candidates = tuple(_ranked(each, better, i) for i in order)
    return Ranking(
        candidates=candidates,
        pairs=pairs,
        groups=_groups(cells.candidates, [i for i in order if each[i].mean is not None], better),
        scope=chosen,
        warnings=_warnings(cells, each),
    )


def _or_last(mean: float | None) -> float:
    return -1.0 if mean is None else mean


def _scoped_pairs(
    scores: ScoreTable | Cells, cells: Cells, first: Ints, second: Ints, asked: str | None
) -> tuple[list[ScopedDifference], list[int], str]:
    sketch = Contrasts(scores, first, second, pair_trials=False)
    few = (
        cells.planned_units < FEWEST_TASKS_TO_GENERALISE
        if asked is None
        else asked != TASKS_LIKE_THESE
    )
    lonely = asked is None and bool((sketch.n_shared == 1).any())
    # Joint trials matter only for reruns of the same tasks: in task means the pairing has no
    # effect, and it would cost a pass per pair.
    both = Contrasts(scores, first, second) if few or lonely else sketch
    like = LikeThese(both)
    these = TheseTasks(both) if few or lonely else None
    repeated: Bools = both.repeated if few else np.zeros(len(first), np.bool_)
    planned_units = cells.planned_units
    n_shared = both.n_shared.tolist()
    differences = []
    for i, repeats in enumerate(repeated.tolist()):
        scope = asked or default_scope(planned_units=planned_units, repeated=repeats)
        same = scope != TASKS_LIKE_THESE or (asked is None and n_shared[i] == 1)
        differences.append(these.scoped(i) if same and these is not None else like.scoped(i))
    counted: Bools = np.asarray(cells.counted.any(axis=1))
    for i, difference in enumerate(differences):
        if difference.reason == "no_shared_tasks" and not (
            counted[first[i]] and counted[second[i]]
        ):
            differences[i] = nothing(difference.scope, "no_approved_trials")
    scopes = [
        difference.scope for difference, n in zip(differences, n_shared, strict=True) if n > 0
    ]
    # With 1,000 candidates, counting again for each pair took a minute.
    chosen = (
        Counter(scopes).most_common(1)[0][0]
        if scopes
        else default_scope(planned_units=planned_units, repeated=True)
    )
    return differences, n_shared, chosen


def _pairs(
    cells: Cells,
    differences: list[ScopedDifference],
    shared: list[int],
    first: Ints,
    second: Ints,
    margin: float | None,
) -> tuple[RankedPair, ...]:
    # Without adjustment, five equal candidates gave a false "better" in a third of simulated
    # benchmarks. Flipping signs for all pairs at once was tried instead of Holm's method: it erred
    # in 6.4% and had less power.
    adjusted = multiplicity([difference.p_value for difference in differences])
    # Pairs without a shared task were never tested, and must not widen the ranges of the other
    # pairs.
    made = sum(difference.p_value is not None for difference in differences)
    factor: list[float] = t_quantile(
        1 - ALPHA / 2 / max(made, 1),
        np.array(
            [difference.df if difference.df is not None else 1.0 for difference in differences]
        ),
    ).tolist()
    names_a = [cells.candidates[code] for code in first.tolist()]
    names_b = [cells.candidates[code] for code in second.tolist()]
    pairs = []
    for i, difference in enumerate(differences):
        equivalence, _ = against_margin(difference, margin)
        p_holm = adjusted.holm[i]
        alone = decided(difference, equivalence)
        sure = p_holm is not None and p_holm <= ALPHA
        wide = None
        if (
            difference.ci95 is not None
            and difference.difference is not None
            and difference.std_err is not None
        ):
            half = factor[i] * difference.std_err
            wide = (difference.difference - half, difference.difference + half)
        pairs.append(
            RankedPair(
                a=names_a[i],
                b=names_b[i],
                difference=difference.difference,
                ci95=difference.ci95,
                ci_simultaneous=wide,
                std_err=difference.std_err,
                df=difference.df,
                p_value=difference.p_value,
                p_holm=p_holm,
                p_bh=adjusted.bh[i],
                decision=alone if sure or alone == "equivalent" else "not_decided",
                decision_alone=alone,
                n_tasks=shared[i],
                scope=difference.scope,
                method=difference.method,
                reason=difference.reason,
            )
        )
    return tuple(pairs)


def _ranked(each: tuple[Estimate, ...], better: Bools, i: int) -> Ranked:
    mean = each[i].mean
    known = [estimate.mean for estimate in each if estimate.mean is not None]
    return Ranked(
        candidate=each[i].candidate,
        mean=mean,
        # Equal means must share a rank, even if their sums were rounded differently.
        rank=None if mean is None else 1 + sum(other > mean + 1e-12 for other in known),
        # With five equal candidates, bootstrap percentiles contained all true ranks in 13% of
        # benchmarks, these ranges in 95%.
        rank_low=None if mean is None else 1 + int(better[:, i].sum()),
        rank_high=None if mean is None else len(known) - int(better[i].sum()),
        estimate=each[i],
    )


def _groups(
    names: tuple[Hashable, ...], order: list[int], better: Bools
) -> tuple[tuple[Hashable, ...], ...]:
    if not order:
        return ()
    apart = (better | better.T)[np.ix_(order, order)]
    # A group that ends at a place can begin only after the last earlier candidate that differs from
    # the one at this place.
    earlier = np.triu(apart, 1)
    places = np.arange(1, len(order) + 1)
    earliest = np.maximum.accumulate((earlier * places[:, None]).max(axis=0))
    groups: list[tuple[Hashable, ...]] = []
    for end, start in enumerate(earliest.tolist()):
        longest = end + 1 == len(order) or earliest[end + 1] > start
        if longest:
            groups.append(tuple(names[i] for i in order[start : end + 1]))
    return tuple(groups)


def _warnings(cells: Cells, each: tuple[Estimate, ...]) -> tuple[Caution, ...]:
    results = []
    counted = cells.counted
    mine = counted[[estimate.n_tasks > 0 for estimate in each]] if each else counted
    if mine.size and (mine != mine[0]).any():
        results.append(caution("unequal_tasks"))
    n_families = None if cells.family is None else cells.planned_families
    # The effective number of tasks concerns one candidate, and the candidate's own warnings show
    # it.
    return (
        *results,
        *about_sample(cells.planned_tasks, n_families, n_eff=2.0),
        *identical_tasks(cells),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Friedman:
    """Result of Friedman's omnibus test for equal candidates."""

    chi_square: float | None = None
    p_value: float | None = None
    n_tasks: int
    reason: str | None = None


def friedman(scores: ScoreTable | Cells) -> Friedman:
    """Run Friedman's test on task means, over the tasks that all candidates have; ties get the mean
    of their ranks.

    If tasks share families, family means are ranked instead, because tasks of a family are not
    independent.

    Source: Friedman (1937); checked against scipy.stats.friedmanchisquare.
    """
    cells = scores.cells if isinstance(scores, ScoreTable) else scores
    complete = cells.counted.all(axis=0)
    # Equal means can differ in their last digits, and ranking would then not treat them as tied.
    own = cells.mean[:, complete]
    if cells.family is not None and own.size:
        own, _ = by_family(own, cells.weight[complete], cells.family[complete])
    means: Floats = np.round(own, 12)
    k, g = means.shape
    if k < 3 or g < 2:
        return Friedman(n_tasks=g, reason="need_at_least_3_candidates_and_2_tasks")
    below = (means[:, None, :] > means[None, :, :]).sum(axis=1)
    equal = (means[:, None, :] == means[None, :, :]).sum(axis=1)
    ranks = below + (equal + 1) / 2.0
    ties = float(((equal**2 - 1).sum(axis=0)).sum())
    correction = 1 - ties / (g * k * (k * k - 1))
    if correction < 1e-12:
        return Friedman(n_tasks=g, reason="all_ties")
    spread = float(((ranks.sum(axis=1) - g * (k + 1) / 2) ** 2).sum())
    chi_square = 12.0 * spread / (g * k * (k + 1)) / correction
    return Friedman(
        chi_square=chi_square, p_value=float(chi_square_above(chi_square, k - 1.0)), n_tasks=g
    )
