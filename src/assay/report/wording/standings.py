"""The headline of a ranking: which candidate is best, and which ones cannot be separated from the
best.
"""

from __future__ import annotations

from itertools import combinations
from typing import Final

from assay.report.wording.numbers import number, range_words
from assay.statistics.ranking import Ranked, Ranking

SEPARATED: Final = ("better", "worse")
NAMED: Final = 3
"""Maximum number of names in one list; if there are more, their number is stated."""


def standings(ranking: Ranking) -> str:
    """State which candidate is best and which ones are not separated, by decisions corrected for
    the number of pairs.
    """
    ranked = [candidate for candidate in ranking.candidates if candidate.rank is not None]
    if not ranked:
        return "No trials count yet."
    if len(ranked) == 1:
        return _alone(ranked[0])
    names = [str(candidate.candidate) for candidate in ranked]
    decisions = {(str(pair.a), str(pair.b)): pair.decision for pair in ranking.pairs}
    if len(names) == 2 and decisions[names[0], names[1]] == "better":
        return f"{names[0]} is better than {names[1]}."
    beaten = {
        b if decision == "better" else a
        for (a, b), decision in decisions.items()
        if decision in SEPARATED
    }
    best, rest = names[0], names[1:]
    if all(decisions[best, other] == "better" for other in rest):
        return f"{best} is best{_among(rest, decisions)}."
    leading = [name for name in names if name not in beaten]
    if len(leading) == len(names):
        return f"{_among(names, decisions).removeprefix('; ')}."
    if len(leading) == 1:
        return f"{leading[0]} leads, but is not separated from every other candidate."
    together = (
        _names(leading) if len(leading) <= NAMED else f"{len(leading)} of {len(names)} candidates"
    )
    return f"{together} lead; which of them is best is not decided."


def standings_line(ranking: Ranking) -> str:
    """State the standings in one line for a list; with only two candidates, the line includes their
    difference.
    """
    text = standings(ranking)
    (pair, *more) = ranking.compared or (None,)
    if more or pair is None or pair.difference is None or len(ranking.candidates) > 2:
        return text
    points = number(abs(pair.difference))
    if text.endswith("are not separated."):
        if points == number(0.0):
            return f"{pair.a} and {pair.b} score the same."
        ahead, behind = (pair.a, pair.b) if pair.difference >= 0 else (pair.b, pair.a)
        return f"{ahead} is {points} points ahead of {behind}, not decided."
    return f"{text.removesuffix('.')} by {points} points."


def _alone(candidate: Ranked) -> str:
    estimate = candidate.estimate
    assert estimate.mean is not None
    interval = "" if estimate.ci95 is None else f" (95% range {range_words(estimate.ci95)})"
    return f"{candidate.candidate} scores {number(estimate.mean)}{interval}."


def _among(names: list[str], decisions: dict[tuple[str, str], str]) -> str:
    """State how the candidates in a group differ from each other, with the best first."""
    if len(names) == 1:
        return f"; {names[0]} is worse"
    seen = {decisions[pair] for pair in combinations(names, 2)}
    shown = _names(names) if len(names) <= NAMED else f"the {len(names)} others"
    if seen == {"better"} and len(names) <= NAMED:
        return f", then {', then '.join(names)}"
    if seen == {"equivalent"}:
        return f"; {shown} are practically equal"
    if "better" not in seen:
        return f"; {shown} are not separated"
    return f"; some of the {len(names)} others are not separated"


def _names(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
