"""Sensitivity of a comparison to rejections: the comparison repeated with rejected trials at the
judge's score.
"""

from collections.abc import Hashable
from dataclasses import dataclass

from assay.statistics.comparisons import Comparison, compare
from assay.statistics.scopes import asked_scope
from assay.statistics.table import ScoreTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """A comparison without and with rejected trials; `changes` is True if the two decisions
    differ.
    """

    counted: Comparison
    with_rejected: Comparison
    changes: bool


def sensitivity(
    counted: ScoreTable,
    with_rejected: ScoreTable,
    a: Hashable,
    b: Hashable,
    *,
    scope: str | None = None,
    margin: float | None = None,
) -> Sensitivity:
    """Compare a and b on counted trials, and again with rejected trials added at the judge's score.

    Both comparisons have the scope of the first, so that only the trials differ. Raises ValueError
    as `compare` does.
    """
    comparison = compare(counted, a, b, scope, margin)
    other = compare(with_rejected, a, b, scope or asked_scope(comparison.scope), margin)
    return Sensitivity(
        counted=comparison, with_rejected=other, changes=comparison.decision != other.decision
    )
