"""Rates of verdicts per candidate and their differences, from the counted verdicts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from assay.analysis.tables import score_table
from assay.statistics.arrays import Interval
from assay.statistics.comparisons import compare
from assay.statistics.distributions import t_quantile
from assay.statistics.estimates import estimates
from assay.statistics.levels import interval_at, level_for
from assay.statistics.superiority import WinProbability, win_probability

if TYPE_CHECKING:
    from assay.analysis.columns import VerdictColumns
    from assay.statistics.table import ScoreTable


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRate:
    """Rate of one verdict, as the weighted mean over tasks; `interval` is None if there are too few
    tasks or trials.
    """

    verdict: str
    rate: float
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateVerdicts:
    """Rates of one candidate's verdicts, best verdict first; empty without counted verdicts."""

    candidate: str
    rates: tuple[VerdictRate, ...]
    n_trials: int
    n_tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRates:
    """Rates of all verdicts.

    `level`: confidence of each interval, chosen so that those of one candidate hold at once in 95%.
    """

    labels: tuple[str, ...]
    level: float
    candidates: tuple[CandidateVerdicts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RateDifference:
    """Difference of one verdict's rates on the tasks that both candidates share."""

    verdict: str
    rate_a: float
    rate_b: float
    difference: float
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictComparison:
    """Verdicts of A and B side by side, with the probability that A gets the better verdict."""

    a: str
    b: str
    labels: tuple[str, ...]
    level: float
    differences: tuple[RateDifference, ...]
    win: WinProbability | None


def verdict_rates(columns: VerdictColumns) -> VerdictRates:
    """Compute the rate of each verdict with its interval: CR2 over tasks on the logit scale, as for
    any mean.
    """
    level = _level(columns)
    by_verdict = [estimates(_indicator(columns, value)) for value in columns.values]
    candidates = []
    for each in zip(*by_verdict, strict=True):
        rates = tuple(
            VerdictRate(verdict=label, rate=estimate.mean, interval=interval_at(estimate, level))
            for label, estimate in zip(columns.labels, each, strict=True)
            if estimate.mean is not None
        )
        named = each[0]
        candidates.append(
            CandidateVerdicts(
                candidate=str(named.candidate),
                rates=rates,
                n_trials=named.n_trials,
                n_tasks=named.n_tasks,
            )
        )
    return VerdictRates(labels=columns.labels, level=level, candidates=tuple(candidates))


def verdict_comparison(
    columns: VerdictColumns, a: str, b: str, *, scope: str | None = None
) -> VerdictComparison:
    """Compare the rates of each verdict, and the verdicts as an order."""
    level = _level(columns)
    differences = []
    for label, value in zip(columns.labels, columns.values, strict=True):
        comparison = compare(_indicator(columns, value), a, b, scope)
        if comparison.mean_a is None or comparison.mean_b is None or comparison.difference is None:
            continue
        interval = None
        if comparison.ci95 is not None and comparison.std_err and comparison.df is not None:
            half = float(t_quantile(0.5 + level / 2, comparison.df)) * comparison.std_err
            interval = (
                max(comparison.difference - half, -1.0),
                min(comparison.difference + half, 1.0),
            )
        differences.append(
            RateDifference(
                verdict=label,
                rate_a=comparison.mean_a,
                rate_b=comparison.mean_b,
                difference=comparison.difference,
                interval=interval,
            )
        )
    table = score_table(columns.scores)
    codes = [table.cells.candidate_code(name) for name in (a, b)]
    win = (
        None if codes[0] is None or codes[1] is None else win_probability(table, codes[0], codes[1])
    )
    return VerdictComparison(
        a=a, b=b, labels=columns.labels, level=level, differences=tuple(differences), win=win
    )


def _level(columns: VerdictColumns) -> float:
    # The rates of two verdicts add up to 1, so one interval says all.
    return level_for(1 if len(columns.labels) == 2 else len(columns.labels))


def _indicator(columns: VerdictColumns, value: float) -> ScoreTable:
    given = np.isclose(columns.scores.score, value, rtol=0.0, atol=1e-9).astype(np.float64)
    return score_table(replace(columns.scores, score=given))
