"""Results of people's votes: preferences, side effects, and agreement between judges and voters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from assay.domain.arena import Choice, Vote
from assay.statistics.comparisons import ALPHA
from assay.statistics.distributions import expit, t_quantile
from assay.statistics.intervals import Proportion, proportion
from assay.statistics.kappa import Kappa, cohen_kappa
from assay.statistics.multiplicity import multiplicity
from assay.statistics.preferences import BradleyTerry, bradley_terry

if TYPE_CHECKING:
    from collections.abc import Sequence


NOT_DECIDED: Final = "not_decided"
"""The decision on two candidates if the votes do not show which one people prefer."""

_POINTS = {Choice.LEFT: 1.0, Choice.RIGHT: 0.0, Choice.EQUAL: 0.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Strength:
    """A candidate's Bradley-Terry strength from people's votes.

    Attributes:
        wins, ties, losses: number of votes of each kind; `both_bad` votes count for neither
            candidate.
        strength: log-odds against the average candidate; None if no chain of votes connects the
            candidate to the others.
        ci95: 95% interval of the strength; None without a strength, or with too few votes.
        preferred: probability, with its range, that people prefer the candidate to an average
            candidate.
        rank_low: best possible rank: 1 plus the number of candidates shown to be preferred to this
            one.
        rank_high: worst possible rank: the number of candidates minus those that this one is shown
            to be preferred to. Both ranks are None without a strength.
    """

    candidate: str
    wins: int
    ties: int
    losses: int
    both_bad: int
    strength: float | None
    ci95: tuple[float, float] | None
    preferred: float | None
    preferred_ci95: tuple[float, float] | None
    elo: float | None
    rank_low: int | None = None
    rank_high: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVotes:
    """Votes between two candidates.

    Attributes:
        preferred: share of the `compared` votes for `a`; a tie counts half.
        p_holm: p-value of the difference in strength, adjusted for all pairs; None if there is no
            p-value.
        decision: `a` or `b` if the votes show at 5% (Holm) that people prefer that candidate, else
            `not_decided`.
    """

    a: str
    b: str
    wins: int
    ties: int
    losses: int
    both_bad: int
    preferred: float | None
    difference_ci95: tuple[float, float] | None
    p_value: float | None
    p_holm: float | None = None
    decision: str = NOT_DECIDED

    @property
    def compared(self) -> int:
        """Number of votes that prefer one candidate or declare a tie, without `both_bad`."""
        return self.wins + self.ties + self.losses


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    """Agreement of a judge's scores with people's votes, leaving out `both_bad` votes and ungraded
    trials.
    """

    judge: str
    agreed: Proportion
    kappa: Kappa


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteFindings:
    """Results of a run's votes.

    Attributes:
        votes: number of valid votes: `compared` of them rank two candidates, and `both_bad` do not.
        left: share of decided votes for the left side; None without such votes. Sides are drawn at
            random, so 50% is expected.
        telling: number of votes on pairs in which a response reveals its author.
        again: number of votes cast again after the authors' names were shown.
        method: how ranges were computed.
        reason: why some strengths are None.
    """

    votes: int
    compared: int
    both_bad: int
    telling: int
    again: int
    reviewers: int
    tasks: int
    strengths: tuple[Strength, ...]
    pairs: tuple[PairVotes, ...]
    left: Proportion | None
    method: str | None
    reason: str | None

    @property
    def side_is_even(self) -> bool | None:
        """True if the range of `left` includes one half; None if `left` is None."""
        return None if self.left is None else self.left.ci95[0] <= 0.5 <= self.left.ci95[1]


def vote_findings(votes: Sequence[Vote], names: Sequence[str]) -> VoteFindings:
    """Compute Bradley-Terry strengths (a tie counts as half a win), vote counts by pair, and the
    share of votes for the left side.

    Votes on one task are not independent, so ranges are clustered by task if votes cover at least
    two tasks, or by family if tasks share families.

    Args:
        votes: valid votes.
        names: candidates by their position in the run's order.
    """
    compared = [vote for vote in votes if vote.choice is not Choice.BOTH_BAD]
    # A `both_bad` vote says nothing about the order of the two, and counting it as a tie would pull
    # their strengths together.
    tasks = [vote.task for vote in compared]
    families = [vote.family or f"\0{vote.task}" for vote in compared]
    clusters = families if len(set(families)) > 1 else tasks
    fitted = bradley_terry(
        [names[vote.pairing.left] for vote in compared],
        [names[vote.pairing.right] for vote in compared],
        [_POINTS[vote.choice] for vote in compared],
        task=clusters if len(set(clusters)) > 1 else None,
    )
    counts: Counter[tuple[int, int, str]] = Counter()
    for vote in votes:
        counts.update(_counted(vote))
    n = range(len(names))
    pairs = _decided(
        [_pair(names[a], names[b], _tally(counts, a, b), fitted) for a, b in combinations(n, 2)],
        fitted,
    )
    strengths = [
        _placed(
            _strength(
                names[place],
                [_tally(counts, place, other) for other in n if other != place],
                fitted,
            ),
            pairs,
            len(names),
        )
        for place in n
    ]
    strengths.sort(
        key=lambda strength: (
            strength.strength is None,
            -(strength.strength or 0.0),
            strength.candidate,
        )
    )
    decided = [vote.choice for vote in compared if vote.choice is not Choice.EQUAL]
    return VoteFindings(
        votes=len(votes),
        compared=len(compared),
        both_bad=len(votes) - len(compared),
        telling=sum(vote.telling for vote in votes),
        again=sum(vote.again for vote in votes),
        reviewers=len({vote.reviewer for vote in votes}),
        tasks=len({vote.task for vote in votes}),
        strengths=tuple(strengths),
        pairs=tuple(pairs),
        # Ties say nothing about a habit of choosing one side.
        left=proportion(sum(choice is Choice.LEFT for choice in decided), len(decided))
        if decided
        else None,
        method=fitted.method,
        reason=fitted.reason,
    )


def judge_agreement(judge: str, choices: Sequence[tuple[Choice, Choice]]) -> JudgeAgreement | None:
    """Compare people's choices with a judge's, given (person, judge) pairs; None without pairs."""
    if not choices:
        return None
    return JudgeAgreement(
        judge=judge,
        agreed=proportion(sum(person is other for person, other in choices), len(choices)),
        kappa=cohen_kappa(
            [str(person) for person, _ in choices], [str(other) for _, other in choices]
        ),
    )


def _counted(vote: Vote) -> list[tuple[int, int, str]]:
    """Return a vote's outcome for each of its candidates: won, tied, lost or both_bad."""
    left, right = vote.pairing.left, vote.pairing.right
    match vote.choice:
        case Choice.LEFT:
            return [(left, right, "won"), (right, left, "lost")]
        case Choice.RIGHT:
            return [(right, left, "won"), (left, right, "lost")]
        case Choice.EQUAL:
            return [(left, right, "tied"), (right, left, "tied")]
        case Choice.BOTH_BAD:
            return [(left, right, "both_bad"), (right, left, "both_bad")]


def _tally(counts: Counter[tuple[int, int, str]], a: int, b: int) -> tuple[int, int, int, int]:
    return (
        counts[a, b, "won"],
        counts[a, b, "tied"],
        counts[a, b, "lost"],
        counts[a, b, "both_bad"],
    )


def _strength(
    name: str, tallies: Sequence[tuple[int, int, int, int]], fitted: BradleyTerry
) -> Strength:
    won, tied, lost, both_bad = (sum(column) for column in zip(*tallies, strict=True))
    at = fitted.items.index(name) if name in fitted.items else None
    strength = None if at is None else fitted.log_strength[at]
    ci95 = None
    if at is not None and strength is not None:
        spread = fitted.spread(np.eye(len(fitted.items))[at])
        if spread is not None:
            far = spread[0] * float(t_quantile(0.975, spread[1]))
            ci95 = (strength - far, strength + far)
    return Strength(
        candidate=name,
        wins=won,
        ties=tied,
        losses=lost,
        both_bad=both_bad,
        strength=strength,
        ci95=ci95,
        preferred=None if strength is None else float(expit(strength)),
        preferred_ci95=None if ci95 is None else (float(expit(ci95[0])), float(expit(ci95[1]))),
        elo=None if at is None else fitted.elo[at],
    )


def _placed(strength: Strength, pairs: Sequence[PairVotes], n: int) -> Strength:
    if strength.strength is None:
        return strength
    mine = [
        (pair.decision, "a" if pair.a == strength.candidate else "b")
        for pair in pairs
        if strength.candidate in (pair.a, pair.b)
    ]
    better = sum(decision == side for decision, side in mine)
    worse = sum(decision not in (side, NOT_DECIDED) for decision, side in mine)
    return replace(strength, rank_low=1 + worse, rank_high=n - better)


def _decided(pairs: Sequence[PairVotes], fitted: BradleyTerry) -> list[PairVotes]:
    decided = []
    # A share from only three votes was once shown alone and looked like a result, so every pair
    # says if it is decided.
    for pair, p_holm in zip(
        pairs, multiplicity([pair.p_value for pair in pairs]).holm, strict=True
    ):
        decision = NOT_DECIDED
        if p_holm is not None and p_holm < ALPHA:
            decision = "a" if (fitted.contrast(pair.a, pair.b).difference or 0.0) > 0 else "b"
        decided.append(replace(pair, p_holm=p_holm, decision=decision))
    return decided


def _pair(a: str, b: str, tally: tuple[int, int, int, int], fitted: BradleyTerry) -> PairVotes:
    won, tied, lost, both_bad = tally
    met = won + tied + lost
    contrast = fitted.contrast(a, b) if a in fitted.items and b in fitted.items else None
    return PairVotes(
        a=a,
        b=b,
        wins=won,
        ties=tied,
        losses=lost,
        both_bad=both_bad,
        preferred=(won + tied / 2) / met if met else None,
        difference_ci95=None if contrast is None else contrast.win_probability_ci95,
        p_value=None if contrast is None else contrast.p_value,
    )
