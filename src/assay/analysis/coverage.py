"""The share of each candidate's planned trials that count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.analysis.tables import names_of_tasks
from assay.statistics.bounds import Coverage, coverage

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from assay.analysis.columns import ReviewColumns
    from assay.statistics.table import ScoreTable


def coverages(
    table: ScoreTable, columns: ReviewColumns, *, candidates: Sequence[str] | None = None
) -> tuple[Coverage, ...]:
    """Compare each candidate's counted trials with the trials planned in its runs."""
    names = names_of_tasks(columns.tasks)
    weights: dict[Hashable, float] = {
        name: label.weight for name, label in zip(names, columns.tasks, strict=True)
    }
    return tuple(
        coverage(
            table,
            candidate,
            {name: int(n) for name, n in zip(names, columns.planned[code], strict=True)},
            weights=weights,
        )
        for code, candidate in enumerate(columns.candidates)
        if candidates is None or candidate in candidates
    )
