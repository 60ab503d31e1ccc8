"""The effect of a candidate's position in a joint prompt on its score, for each judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from assay.analysis.review_tables import counts
from assay.analysis.tables import family_rows
from assay.statistics.positions import PositionEffect, position_effects

if TYPE_CHECKING:
    from assay.analysis.columns import ReviewColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePositions:
    """One judge's effects of prompt positions on the counted scores (after corrections), in the
    order of the positions.
    """

    judge: str
    effects: tuple[PositionEffect, ...]


def judges_positions(columns: ReviewColumns) -> tuple[JudgePositions, ...]:
    """Return the effects for every judge that saw several candidates in a random order."""
    if columns.place is None:
        return ()
    placed = counts(columns) & (columns.place > 0)
    judges = []
    for code in np.unique(columns.judge[placed]):
        rows = np.flatnonzero(placed & (columns.judge == code))
        effects = position_effects(
            columns.final[rows],
            position=columns.place[rows],
            candidate=columns.candidate[rows],
            sitting=np.unique(columns.assessment[rows], return_inverse=True)[1],
            task=columns.task[rows],
            family=family_rows(columns.tasks, columns.task[rows]),
        )
        if effects:
            judges.append(JudgePositions(judge=columns.judges[int(code)], effects=effects))
    return tuple(judges)
