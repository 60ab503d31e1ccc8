"""Forest chart: scores with their 95% ranges, best first; also used for strengths from votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.report import wording
from assay.report.charts.chart import SPOKEN, Chart, points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.analysis.votes import Strength
    from assay.statistics.estimates import Estimate
    from assay.statistics.ranking import Ranking


def forest_of_ranking(ranking: Ranking) -> Chart:
    return forest(
        [candidate.estimate for candidate in ranking.candidates], about_scope=_scope_words(ranking)
    )


def forest(estimates: Sequence[Estimate], *, about_scope: str) -> Chart:
    """Chart each candidate's score with its 95% range, best first."""
    known = sorted(
        (estimate for estimate in estimates if estimate.mean is not None),
        key=lambda estimate: -(estimate.mean or 0.0),
    )
    rows = tuple(
        {
            "candidate": str(estimate.candidate),
            "mean": points(estimate.mean),
            "low": points(None if estimate.ci95 is None else estimate.ci95[0]),
            "high": points(None if estimate.ci95 is None else estimate.ci95[1]),
            "label": _score_label(estimate),
            "n_tasks": estimate.n_tasks,
            "n_trials": estimate.n_trials,
            SPOKEN: f"{estimate.candidate}: {_score_label(estimate)}, {wording.count(estimate.n_tasks, 'task')}, "
            f"{wording.count(estimate.n_trials, 'trial')}",
        }
        for estimate in known
    )
    return Chart(
        kind="forest",
        title="Scores with their 95% ranges",
        about=f"Mean score of each candidate with its 95% range, {about_scope}.",
        rows=rows,
    )


def strengths(by_candidate: Sequence[Strength]) -> Chart:
    """Chart each candidate's probability of being preferred to an average one, with 95% ranges,
    from people's votes.
    """
    rows = tuple(
        {
            "candidate": strength.candidate,
            "mean": points(strength.preferred),
            "low": points(None if strength.preferred_ci95 is None else strength.preferred_ci95[0]),
            "high": points(None if strength.preferred_ci95 is None else strength.preferred_ci95[1]),
            "label": _strength_label(strength),
            "wins": strength.wins,
            "ties": strength.ties,
            "losses": strength.losses,
            "both_bad": strength.both_bad,
            SPOKEN: f"{strength.candidate}: {_strength_label(strength)}, {strength.wins} won, {strength.ties} equal, "
            f"{strength.losses} lost",
        }
        for strength in by_candidate
        if strength.preferred is not None
    )
    return Chart(
        kind="strengths",
        title="Strengths from votes",
        about="How often each candidate would be preferred to an average one, with its 95% range.",
        rows=rows,
        settings={"axis": "preferred to an average candidate, %"},
    )


def _scope_words(ranking: Ranking) -> str:
    about = {"tasks_like_these": "on tasks of this kind", "these_tasks": "on exactly these tasks"}
    scopes = {candidate.estimate.scope for candidate in ranking.candidates}
    return about.get(scopes.pop(), "on this task") if len(scopes) == 1 else "each for its own scope"


def _score_label(estimate: Estimate) -> str:
    assert estimate.mean is not None
    if estimate.ci95 is None:
        return f"{wording.number(estimate.mean)} (no range)"
    return f"{wording.number(estimate.mean)} ({wording.range_words(estimate.ci95)})"


def _strength_label(strength: Strength) -> str:
    if strength.preferred is None or strength.preferred_ci95 is None:
        return "no range" if strength.preferred is None else f"{100 * strength.preferred:.0f}%"
    return f"{100 * strength.preferred:.0f}%, {100 * strength.preferred_ci95[0]:.0f} to {100 * strength.preferred_ci95[1]:.0f}"
