"""Rank candidates by people's votes, and measure how often judges agree with the votes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.analysis.votes import (
    JudgeAgreement,
    PairVotes,
    Strength,
    VoteFindings,
    judge_agreement,
    vote_findings,
)
from assay.app.arena.voting import ArenaVoting, judges_say
from assay.domain.arena import Choice, Vote
from assay.report.charts.chart import Chart
from assay.report.charts.forest import strengths
from assay.report.charts.output import as_csv

if TYPE_CHECKING:
    from assay.domain.selection import RunSummary
    from assay.statistics.intervals import Proportion
    from assay.store.opening import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaRanking:
    """A run's votes and ranking; `agreement` compares votes with each judge's grades and is only a
    diagnostic.
    """

    summary: RunSummary
    votes: tuple[Vote, ...]
    findings: VoteFindings
    agreement: tuple[JudgeAgreement, ...]


def standing(store: Store, booth: ArenaVoting, run: str) -> ArenaRanking:
    """Rank a run's candidates by votes; raises `UnknownName`."""
    summary = booth.summary(run)
    votes = store.arena.votes(summary.id)
    judged = store.arena.judged(summary.id, votes)
    choices: defaultdict[str, list[tuple[Choice, Choice]]] = defaultdict(list)
    for vote in votes:
        if vote.choice is Choice.BOTH_BAD:
            continue
        for opinion in judges_say(judged.get((vote.pairing.position, vote.pairing.k), {}), vote):
            choices[opinion.judge].append((vote.choice, opinion.says))
    agreement = (judge_agreement(judge, pairs) for judge, pairs in choices.items())
    return ArenaRanking(
        summary=summary,
        votes=tuple(votes),
        findings=vote_findings(votes, summary.candidates),
        agreement=tuple(opinion for opinion in agreement if opinion is not None),
    )


def chart_of(ranking: ArenaRanking) -> Chart:
    return strengths(ranking.findings.strengths)


def pairs_csv(ranking: ArenaRanking) -> str:
    """Return a CSV with one row per pair of candidates; text that a spreadsheet would run as a
    formula is escaped.
    """
    rows = tuple(
        {
            "a": pair.a,
            "b": pair.b,
            "a_better": pair.wins,
            "equal": pair.ties,
            "b_better": pair.losses,
            "both_bad": pair.both_bad,
            "a_preferred": pair.preferred,
            "p_value": pair.p_value,
            "p_holm": pair.p_holm,
            "decision": pair.decision,
        }
        for pair in ranking.findings.pairs
    )
    return as_csv(Chart(kind="votes", title="", about="", rows=rows))


def votes_csv(ranking: ArenaRanking) -> str:
    """Return a CSV with one row per valid vote, oldest first; text that a spreadsheet would run as
    a formula is escaped.
    """
    names = ranking.summary.candidates
    rows = tuple(
        {
            "id": vote.id,
            "at": vote.at,
            "reviewer": vote.reviewer,
            "task": vote.task,
            "trial": vote.pairing.k,
            "left": names[vote.pairing.left],
            "right": names[vote.pairing.right],
            "choice": str(vote.choice),
            "active_ms": vote.active_ms,
            "telling": vote.telling,
            "again": vote.again,
        }
        for vote in ranking.votes
    )
    return as_csv(Chart(kind="votes", title="", about="", rows=rows))


def standing_document(ranking: ArenaRanking) -> dict[str, Any]:
    """Return the ranking as JSON. Each missing number has a `reason`."""
    findings = ranking.findings
    return {
        "run": ranking.summary.id,
        "votes": findings.votes,
        "compared": findings.compared,
        "both_bad": findings.both_bad,
        "reviewers": findings.reviewers,
        "tasks": findings.tasks,
        "telling": {
            "votes": findings.telling,
            "share": findings.telling / findings.votes if findings.votes else None,
        },
        "again": findings.again,
        "method": findings.method,
        "reason": findings.reason,
        "candidates": [_strength(strength) for strength in findings.strengths],
        "pairs": [_pair(pair) for pair in findings.pairs],
        "left": None
        if findings.left is None
        else {**_share(findings.left), "covers_half": findings.side_is_even},
        "diagnostics": {
            "judges": [
                {
                    "judge": agreement.judge,
                    "agreed": _share(agreement.agreed),
                    "kappa": agreement.kappa.kappa,
                    "kappa_ci95": agreement.kappa.ci95,
                    "reason": agreement.kappa.reason,
                }
                for agreement in ranking.agreement
            ]
        },
    }


def _strength(strength: Strength) -> dict[str, Any]:
    return {
        "candidate": strength.candidate,
        "strength": strength.strength,
        "ci95": strength.ci95,
        "preferred": strength.preferred,
        "preferred_ci95": strength.preferred_ci95,
        "elo": strength.elo,
        "wins": strength.wins,
        "ties": strength.ties,
        "losses": strength.losses,
        "both_bad": strength.both_bad,
        "rank_low": strength.rank_low,
        "rank_high": strength.rank_high,
    }


def _pair(pair: PairVotes) -> dict[str, Any]:
    return {
        "a": pair.a,
        "b": pair.b,
        "wins": pair.wins,
        "ties": pair.ties,
        "losses": pair.losses,
        "both_bad": pair.both_bad,
        "preferred": pair.preferred,
        "compared": pair.compared,
        "win_probability_ci95": pair.difference_ci95,
        "p_value": pair.p_value,
        "p_holm": pair.p_holm,
        "decision": pair.decision,
    }


def _share(proportion: Proportion) -> dict[str, Any]:
    return {"share": proportion.mean, "ci95": list(proportion.ci95), "n": proportion.n_trials}
