"""Rates of verdicts (Pass, Partial, Fail) in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.report.wording.numbers import (
    count,
    difference_range,
    number,
    p_value,
    range_words,
    signed,
)

if TYPE_CHECKING:
    from assay.analysis.verdict_rates import (
        CandidateVerdicts,
        RateDifference,
        VerdictComparison,
        VerdictRate,
        VerdictRates,
    )
    from assay.statistics.superiority import WinProbability


def verdict_lines(rates: VerdictRates) -> tuple[str, ...]:
    """Write a line per candidate: `alice: Pass 62.0% (54.1 to 70.2), Fail 38.0% (29.8 to 45.9) over
    12 tasks, 36 trials`.
    """
    return tuple(_of_candidate(candidate) for candidate in rates.candidates)


def _of_candidate(candidate: CandidateVerdicts) -> str:
    if not candidate.rates:
        return f"{candidate.candidate}: no verdict counts yet"
    shares = ", ".join(f"{each.verdict} {verdict_rate(each, unit='%')}" for each in candidate.rates)
    return f"{candidate.candidate}: {shares} over {count(candidate.n_tasks, 'task')}, {count(candidate.n_trials, 'trial')}"


def verdict_rate(rate: VerdictRate, *, unit: str = "") -> str:
    """Write a rate with its range: `62.0 (54.1 to 70.2)`."""
    ranged = "no range" if rate.interval is None else range_words(rate.interval)
    return f"{number(rate.rate)}{unit} ({ranged})"


def verdict_level(rates: VerdictRates | VerdictComparison) -> str:
    """Explain the ranges of the rates."""
    n = len(rates.labels)
    if n == 2:
        return "Ranges are 95% ranges."
    return f"Ranges are {100 * rates.level:.1f}% ranges, so that all {n} of a candidate hold at once in 95% of cases."


def verdict_difference_lines(comparison: VerdictComparison) -> tuple[str, ...]:
    """Write a line per verdict that compares the rates, and a line with the win probability."""
    lines = [_difference(each, comparison) for each in comparison.differences]
    if comparison.win is not None:
        lines.append(_win(comparison.win, comparison))
    return tuple(lines)


def _difference(each: RateDifference, comparison: VerdictComparison) -> str:
    rates = f"{each.verdict}: {comparison.a} {number(each.rate_a)}%, {comparison.b} {number(each.rate_b)}%"
    ranged = "no range" if each.interval is None else difference_range(each.interval)
    return f"{rates}, difference {signed(each.difference)} points ({ranged})"


def _win(win: WinProbability, comparison: VerdictComparison) -> str:
    times = f"{100 * win.value:.0f} times in 100"
    ranged = "" if win.ci95 is None else f"{100 * win.ci95[0]:.0f} to {100 * win.ci95[1]:.0f}; "
    odds = "" if win.odds is None else f"; win odds {win.odds:.2f}"
    tested = "" if win.p_value is None else f", {p_value(win.p_value)}"
    start = f"A random answer of {comparison.a} gets a better verdict than one of {comparison.b} {times}"
    return f"{start} ({ranged}ties count half{odds}{tested})."
