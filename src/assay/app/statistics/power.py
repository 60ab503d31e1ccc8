"""`assay plan`: compute the number of tasks or trials needed to show a difference, and their cost
in money and reviews.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from assay.analysis.costs import TrialCost, trial_cost
from assay.app.statistics import results
from assay.domain.errors import InputError
from assay.report import wording
from assay.statistics.designs import design_variances
from assay.statistics.planning import Plan, plan as planned
from assay.statistics.sampled_pairs import SampledDifference, more_reviews
from assay.statistics.scopes import TASKS_LIKE_THESE, THESE_TASKS

if TYPE_CHECKING:
    from assay.app.settings import Settings
    from assay.app.statistics.basis import Basis
    from assay.domain.selection import Selection
    from assay.statistics.ranking import RankedPair
    from assay.store.opening import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSize:
    """A sample size and its cost, reached by more tasks or by more trials of the same tasks.

    Attributes:
        needed: total number of tasks, or of trials per task.
        trials: number of new trials over all candidates, including those that will probably be
            rejected.
        reviews: number of assessments that people will review; None if unknown.
        usd: cost of the calls in US dollars; None if unknown.
    """

    needed: int
    trials: int
    reviews: int | None
    usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPlan:
    """Sample sizes to show a difference between two candidates; `plan` is None if they share no
    counted task.

    `more_reviews` is the number of further reviews after which the review sample would show the
    difference: 0 if it already does, None without a sample or if even a review of every trial would
    not be enough.
    """

    pair: RankedPair
    plan: Plan | None
    more_tasks: SampleSize | None
    more_trials: SampleSize | None
    words: str
    more_reviews: int | None = None

    @property
    def undecided(self) -> bool:
        """True if the pair is not decided yet."""
        return self.pair.decision == "not_decided"

    @property
    def already(self) -> bool:
        """True if the present sample size is enough to show the difference."""
        return (
            self.plan is not None
            and self.plan.mde is not None
            and self.plan.mde <= self.plan.detect
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PowerPlan:
    """Plans of all pairs in rank order, with the two most important pairs.

    Attributes:
        hardest: pair that needs the most trials, so that its size is enough for all pairs; None if
            any size is unknown.
        closest: undecided pair that ranks highest.
    """

    detect: float
    power: float
    scope: str
    pairs: tuple[PairPlan, ...]
    hardest: PairPlan | None
    closest: PairPlan | None
    cost: TrialCost
    basis: Basis
    words: str

    def __repr__(self) -> str:
        return f"PowerPlan({self.words})"


def parsed_power(text: str) -> float:
    """Parse a power such as `0.8`; raises `InputError` outside (0, 1)."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise InputError(
            "--power",
            f"{text!r} is not a number between 0 and 1.",
            remedy="Write 0.8 for 4 times in 5.",
        )
    return value


def plan(
    store: Store,
    settings: Settings,
    selection: Selection,
    *,
    detect: float,
    power: float = 0.8,
    scope: str | None = None,
) -> PowerPlan:
    """Plan how many tasks or trials each pair needs to show a difference of `detect`; raises
    `InputError`.
    """
    if not 0 < detect < 1:
        raise InputError(
            "--detect",
            f"{detect} is not a difference between 0 and 1.",
            remedy="Write 0.03, or 3pts.",
        )
    if not 0 < power < 1:
        raise InputError(
            "--power",
            f"{power} is not a number between 0 and 1.",
            remedy="Write 0.8 for 4 times in 5.",
        )
    ranks = results.rank(store, settings, selection, scope=scope)
    if len(ranks.ranking.candidates) < 2:
        problem = "the selected runs have fewer than two candidates."
        raise InputError("", problem, remedy="Select runs with at least two.")
    basis = ranks.basis
    runs = store.archive.runs.matching(basis.chosen.selection)
    cost = trial_cost(runs, basis.excluded, counted=basis.n_trials)
    sampled = (
        {(pair.a, pair.b): pair.result for pair in ranks.calibrated.pairs}
        if ranks.calibrated
        else {}
    )
    pairs = tuple(
        _pair(
            basis, pair, cost, sampled.get((str(pair.a), str(pair.b))), detect=detect, power=power
        )
        for pair in ranks.ranking.pairs
    )
    known = [pair for pair in pairs if pair.plan is not None and pair.plan.reason is None]
    # If the need of one pair is unknown, no size is known to be enough for all.
    hardest = max(known, key=_effort) if known and len(known) == len(pairs) else None
    closest = next((pair for pair in pairs if pair.undecided), None)
    return PowerPlan(
        detect=detect,
        power=power,
        scope=ranks.ranking.scope,
        pairs=pairs,
        hardest=hardest,
        closest=closest,
        cost=cost,
        basis=basis,
        words=wording.plan_summary(
            detect=detect,
            n_pairs=len(pairs),
            n_already=sum(pair.already for pair in pairs),
            hardest=None if hardest is None else hardest.words,
            closest=None if closest is None else closest.words,
            all_decided=closest is None,
        ),
    )


def _pair(
    basis: Basis,
    pair: RankedPair,
    cost: TrialCost,
    result: SampledDifference | None,
    *,
    detect: float,
    power: float,
) -> PairPlan:
    design = design_variances(basis.table, pair.a, pair.b)
    names = (str(pair.a), str(pair.b))
    reviews = None if result is None else more_reviews(result, detect=detect, power=power)
    by_reviews = (
        "" if result is None or result.std_err is None else wording.reviews_planned(result, reviews)
    )
    if design is None:
        words = wording.no_plan(*names, reason=pair.reason) + by_reviews
        return PairPlan(
            pair=pair,
            plan=None,
            more_tasks=None,
            more_trials=None,
            words=words,
            more_reviews=reviews,
        )
    scope = TASKS_LIKE_THESE if pair.scope == TASKS_LIKE_THESE else THESE_TASKS
    plan = planned(design, detect=detect, power=power, scope=scope, cost_trial=cost.usd_counted)
    tasks = trials = None
    if plan.tasks_needed is not None:
        tasks = _way(
            plan.tasks_needed, max(plan.tasks_needed - plan.n_tasks, 0) * plan.n_trials, cost
        )
    if plan.trials_needed is not None:
        trials = _way(
            plan.trials_needed, max(plan.trials_needed - plan.n_trials, 0.0) * plan.n_tasks, cost
        )
    sentence = wording.plan_sentence(
        *names,
        plan,
        more_tasks=None if tasks is None else (tasks.trials, tasks.reviews, tasks.usd),
        more_trials=None if trials is None else (trials.trials, trials.reviews, trials.usd),
    )
    return PairPlan(
        pair=pair,
        plan=plan,
        more_tasks=tasks,
        more_trials=trials,
        words=sentence + by_reviews,
        more_reviews=reviews,
    )


def _way(needed: int, counted: float, cost: TrialCost) -> SampleSize:
    # The margin keeps 3.0000000001, which is a whole number except for rounding, from becoming 4.
    trials = ceil(counted / cost.kept - 1e-9)
    return SampleSize(
        needed=needed,
        trials=trials,
        reviews=None if cost.reviews is None else ceil(trials * cost.reviews - 1e-9),
        usd=None if cost.usd is None else trials * cost.usd,
    )


def _effort(pair: PairPlan) -> float:
    ways = [way.trials for way in (pair.more_tasks, pair.more_trials) if way is not None]
    return float(min(ways)) if ways else float("inf")
