"""Scores during an unfinished review: reviewed trials only, judge only, and judge corrected by
reviews.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from assay.analysis.review_tables import in_state
from assay.analysis.tables import family_rows, names_of_tasks
from assay.domain.lifecycle import COUNTS, AssessmentState
from assay.statistics.partly_reviewed import PartialReview, partial_review, refusal
from assay.statistics.sampled_pairs import (
    SampledDifference,
    adjusted,
    more_reviews,
    sampled_difference,
)
from assay.statistics.sampled_review import Influence, influence, sampled_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from assay.analysis.columns import ReviewColumns
    from assay.statistics.estimates import Estimate

MAX_RANKED: Final = 30
"""With more candidates, not all pairs are estimated from a review sample: 435 pairs of 3,000 trials
take 0.2 s.
"""

_FEWEST_OF_A_STRATUM: Final = 5
"""Minimum number of reviewed tasks in a stratum; smaller strata are merged."""

_UNSEEN: Final = (AssessmentState.PENDING, AssessmentState.LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewDraw:
    """Sampling design of the selected runs' reviews.

    `refused`: a reason code if the trials were not chosen at random in every run. `strata`: maps
    each task (suite, id) to its stratum, if trials were drawn separately within strata; tasks that
    are not listed form one stratum.
    """

    refused: str | None = None
    strata: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartlyReviewed:
    """A candidate's scores while reviews are pending.

    `vetted` is the headline so far; `review` holds the two other estimates.

    `n_left_out`: number of unreviewed trials that were not drawn for the review sample.
    """

    vetted: Estimate
    review: PartialReview
    n_waiting: int
    n_left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedPair:
    """The difference A - B, estimated from a review sample."""

    a: str
    b: str
    result: SampledDifference

    @property
    def more_reviews(self) -> int | None:
        """Number of further reviews that would decide the pair; None if the pair is decided or no
        number suffices.
        """
        if self.result.decision != "not_decided" or not self.result.difference:
            return None
        return more_reviews(self.result, detect=abs(self.result.difference))


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedRank:
    """A candidate's rank from a review sample.

    Pairwise tests (Holm) allow the ranks from `rank_low` to `rank_high`.
    """

    candidate: str
    mean: float | None
    rank: int | None
    rank_low: int | None
    rank_high: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedRanking:
    """Ranks and all pairs estimated from a review sample, best candidate first; never used as the
    result itself.
    """

    candidates: tuple[CalibratedRank, ...]
    pairs: tuple[CalibratedPair, ...]
    reason: str | None


def unseen(columns: ReviewColumns) -> NDArray[np.bool_]:
    """Return the rows without a decision: pending, or not drawn for the sample."""
    return in_state(columns, *_UNSEEN)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledTrials:
    """Aligned arrays of all candidates' trials, for estimates from a review sample.

    `task`, `unit`, `stratum`: codes of shape (trials,); the unit is the task or the task's family.
    `weight`: weight of each task, shape (tasks,). `present`, `judge`, `human`, `sampled`, `kept`:
    shape (candidates, trials); `sampled` is True if a person decided on the trial.
    """

    candidates: tuple[str, ...]
    task: NDArray[np.int64]
    unit: NDArray[np.int64]
    stratum: NDArray[np.int64] | None
    by_family: bool
    weight: NDArray[np.float64]
    present: NDArray[np.bool_]
    judge: NDArray[np.float64]
    human: NDArray[np.float64]
    sampled: NDArray[np.bool_]
    kept: NDArray[np.bool_]
    refused: str | None


def sampled_trials(columns: ReviewColumns, draw: ReviewDraw) -> SampledTrials:
    """Arrange current grades by trial and candidate; if several judges scored a trial, their scores
    are averaged first.

    A rejected trial counts as decided but not kept. The same applies to a trial that a person sent
    back for a rerun and nobody has decided since: it stays in the sample, and no other trial
    replaces it.
    """
    live = ~in_state(columns, AssessmentState.SUPERSEDED) & ~np.isnan(columns.judged)
    rows = np.flatnonzero(
        live & (np.array([label.weight for label in columns.tasks])[columns.task] > 0)
    )
    keys, first, place = np.unique(columns.trial[rows], return_index=True, return_inverse=True)
    cell = columns.candidate[rows] * len(keys) + place.reshape(-1)
    shape = (len(columns.candidates), len(keys))

    def summed(values: NDArray[np.float64] | NDArray[np.bool_]) -> NDArray[np.float64]:
        sums = np.bincount(cell, weights=values, minlength=shape[0] * shape[1])
        return np.asarray(sums.reshape(shape), np.float64)

    again = in_state(columns, AssessmentState.PENDING) & (columns.attempt > 1)
    unseen = (in_state(columns, *_UNSEEN, AssessmentState.EXEMPT) & ~again)[rows]
    kept = (
        in_state(columns, *COUNTS)
        & ~in_state(columns, AssessmentState.EXEMPT)
        & ~np.isnan(columns.final)
    )[rows]
    n, n_kept = summed(np.ones(len(rows))), summed(kept)
    judge = summed(columns.judged[rows]) / np.maximum(n, 1)
    human = summed(np.where(kept, columns.final[rows], 0.0)) / np.maximum(n_kept, 1)
    present = n > 0
    # A trial with several judge calls is reviewed only once a person has decided on each of them.
    sampled = present & (summed(unseen) == 0)
    task = columns.task[rows][first]
    family = family_rows(columns.tasks, task)
    by_rule = np.asarray((present & (summed(~columns.by_model[rows]) == n) | ~present).all(axis=0))
    return SampledTrials(
        candidates=columns.candidates,
        task=task,
        unit=task if family is None else np.asarray(family, np.int64),
        stratum=_strata(columns, draw, rows[first], sampled.any(axis=0), by_rule),
        by_family=family is not None,
        weight=np.array([label.weight for label in columns.tasks], np.float64),
        present=present,
        judge=np.clip(judge, 0.0, 1.0),
        human=np.clip(human, 0.0, 1.0),
        sampled=sampled,
        kept=sampled & (n_kept > 0),
        refused=draw.refused,
    )


def _strata(
    columns: ReviewColumns,
    draw: ReviewDraw,
    rows: NDArray[np.int64],
    sampled: NDArray[np.bool_],
    by_rule: NDArray[np.bool_],
) -> NDArray[np.int64] | None:
    """Return each trial's stratum: one per run and task stratum, and one for trials graded by
    rules.

    Each run draws its own sample, so trials of different runs must not share a stratum.
    """
    run = np.zeros(len(rows), np.int64) if columns.run is None else columns.run[rows]
    names = sorted(set(draw.strata.values()))
    codes = {name: code + 1 for code, name in enumerate(names)}
    of_task = np.array(
        [codes.get(draw.strata.get((task.suite, task.task), ""), 0) for task in columns.tasks],
        np.int64,
    )
    task = columns.task[rows]
    wanted = np.where(by_rule, -1, run * (len(names) + 1) + of_task[task] if len(of_task) else 0)
    # Small strata of one run are merged: with three reviews in each of four strata, ranges of pairs
    # covered 92.9%, after merging 94.8%.
    for code in np.unique(wanted[wanted >= 0]).tolist():
        mine = wanted == code
        few = len(np.unique(task[mine & sampled])) < _FEWEST_OF_A_STRATUM
        if few and len(names):
            wanted[mine] = run[mine] * (len(names) + 1)
    strata, stratum = np.unique(wanted, return_inverse=True)
    return None if len(strata) < 2 else stratum.reshape(-1)


def partly_reviewed(
    columns: ReviewColumns,
    estimates: tuple[Estimate, ...],
    draw: ReviewDraw,
    trials: SampledTrials | None = None,
) -> tuple[PartlyReviewed, ...]:
    trials = sampled_trials(columns, draw) if trials is None else trials
    names = np.array(names_of_tasks(columns.tasks), dtype=object)
    candidates = []
    for estimate in estimates:
        code = (
            columns.candidates.index(str(estimate.candidate))
            if estimate.candidate in columns.candidates
            else -1
        )
        mine = columns.candidate == code
        waiting = len(np.unique(columns.trial[mine & in_state(columns, AssessmentState.PENDING)]))
        left_out = len(np.unique(columns.trial[mine & in_state(columns, AssessmentState.LEFT_OUT)]))
        if not waiting + left_out:
            continue
        at = np.flatnonzero(trials.present[code])
        review = partial_review(
            names[trials.task[at]],
            trials.judge[code, at],
            np.where(trials.kept[code, at], trials.human[code, at], np.nan),
            weight=trials.weight[trials.task[at]],
            random=trials.refused is None,
            family=trials.unit[at] if trials.by_family else None,
            sampled=trials.sampled[code, at],
            stratum=None if trials.stratum is None else _dense(trials.stratum[at]),
        )
        if trials.refused is not None:
            review = _refused(review, trials.refused)
        candidates.append(
            PartlyReviewed(vetted=estimate, review=review, n_waiting=waiting, n_left_out=left_out)
        )
    return tuple(candidates)


def calibrated_pair(
    trials: SampledTrials, a: str, b: str, known: dict[object, Influence] | None = None
) -> CalibratedPair:
    """Compare two candidates over their shared tasks.

    `known` caches influences for other pairs over the same tasks.
    """
    known = {} if known is None else known
    first, second = trials.candidates.index(a), trials.candidates.index(b)
    n_all = len(trials.weight)
    shared = _tasks_of(trials, first, n_all) & _tasks_of(trials, second, n_all)
    of_both = trials.sampled[first] & trials.sampled[second] & shared[trials.task]
    refused = trials.refused or refusal(
        np.concatenate([trials.judge[first, of_both], trials.judge[second, of_both]]),
        np.concatenate([trials.human[first, of_both], trials.human[second, of_both]]),
        np.ones(2 * int(of_both.sum()), np.bool_),
        random=True,
        each=2,
    )
    parts = []
    for code in (first, second):
        key = (code, shared.tobytes())
        if key not in known:
            known[key] = _influence(trials, code, shared)
        parts.append(known[key])
    return CalibratedPair(
        a=a, b=b, result=sampled_difference(*parts, n_tasks=int(shared.sum()), refused=refused)
    )


def calibrated_ranking(trials: SampledTrials, names: Sequence[str]) -> CalibratedRanking:
    if trials.refused is not None or len(names) > MAX_RANKED:
        return CalibratedRanking(
            candidates=(), pairs=(), reason=trials.refused or "too_many_candidates"
        )
    known: dict[object, Influence] = {}
    made = [calibrated_pair(trials, a, b, known) for a, b in combinations(names, 2)]
    pairs = tuple(
        CalibratedPair(a=pair.a, b=pair.b, result=result)
        for pair, result in zip(made, adjusted([pair.result for pair in made]), strict=True)
    )
    means = {name: _mean(trials, name) for name in names}
    ranked = [name for name in names if means[name] is not None]
    worse = dict.fromkeys(names, 0)
    better = dict(worse)
    for pair in pairs:
        if pair.result.decision != "not_decided":
            up, down = (pair.a, pair.b) if pair.result.decision == "better" else (pair.b, pair.a)
            better[down] += 1
            worse[up] += 1
    order = sorted(ranked, key=lambda name: -(means[name] or 0.0))
    return CalibratedRanking(
        candidates=tuple(
            CalibratedRank(
                candidate=name,
                mean=means[name],
                rank=1
                + sum((means[other] or 0.0) > (means[name] or 0.0) + 1e-12 for other in ranked),
                rank_low=1 + better[name],
                rank_high=len(ranked) - worse[name],
            )
            for name in order
        ),
        pairs=pairs,
        reason=None
        if order
        else next((pair.result.reason for pair in pairs), "no_approved_trials"),
    )


def _mean(trials: SampledTrials, name: str) -> float | None:
    code = trials.candidates.index(name)
    sampled = trials.sampled[code]
    if refusal(trials.judge[code], trials.human[code], sampled, random=True) is not None:
        return None
    result = sampled_mean(_influence(trials, code, _tasks_of(trials, code, len(trials.weight))))
    return float(np.clip(result.estimate, 0.0, 1.0)) if result.known else None


def _tasks_of(trials: SampledTrials, code: int, n_tasks: int) -> NDArray[np.bool_]:
    return np.bincount(trials.task[trials.present[code]], minlength=n_tasks) > 0


def _influence(trials: SampledTrials, code: int, shared: NDArray[np.bool_]) -> Influence:
    mine = trials.present[code] & shared[trials.task]
    n = np.bincount(trials.task[mine], minlength=len(trials.weight))
    weight = np.where(mine, trials.weight[trials.task] / np.maximum(n, 1)[trials.task], 0.0)
    return influence(
        trials.judge[code],
        trials.human[code],
        trials.sampled[code] & mine,
        trials.kept[code] & mine,
        weight,
        trials.unit,
        n_units=int(trials.unit.max(initial=-1)) + 1,
        stratum=trials.stratum,
        by_family=trials.by_family,
    )


def _refused(review: PartialReview, reason: str) -> PartialReview:
    return replace(review, calibrated=replace(review.calibrated, reason=reason))


def _dense(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(codes, return_inverse=True)[1].reshape(-1)
