"""Rates of verdicts for `stats`, `rank`, `compare` and `gate`, computed from counted grades with
corrections included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.analysis.verdict_rates import (
    VerdictComparison,
    VerdictRates,
    verdict_comparison,
    verdict_rates,
)

if TYPE_CHECKING:
    from assay.domain.selection import Selection
    from assay.store.opening import Store


def rates_of(store: Store, selection: Selection) -> VerdictRates | None:
    """Return the rates of every candidate's verdicts; None if the selected runs give none, or
    criteria are selected.
    """
    columns = store.archive.scores.verdicts(selection)
    return None if columns is None or not len(columns.scores.score) else verdict_rates(columns)


def comparison_of(
    store: Store, selection: Selection, a: str, b: str, *, scope: str | None = None
) -> VerdictComparison | None:
    """Compare the verdicts of two candidates; None if the selected runs give none, or criteria are
    selected.
    """
    columns = store.archive.scores.verdicts(selection)
    return (
        None
        if columns is None or not len(columns.scores.score)
        else verdict_comparison(columns, a, b, scope=scope)
    )
