"""A candidate's approved means, suite by suite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.analysis.tables import score_table
from assay.domain.identifiers import folded
from assay.domain.selection import Selection
from assay.statistics.estimates import Estimate, estimates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.wiring import Workspace

MOST_ASSESSMENTS: Final = 20_000
"""Of a suite's runs together; beyond, the statistics page keeps what it read, and this does not read it again."""

MOST_SUITES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A candidate in one suite; `estimate` is None where nothing counts yet, or the suite is `too_large` to be read here."""

    suite: str
    estimate: Estimate | None
    too_large: bool = False


def standings(workspace: Workspace, candidate: str, suites: Sequence[str]) -> tuple[Standing, ...]:
    """The candidate's score in each of the first suites, over all runs of it, as `assay stats --suite` says."""
    return tuple(_standing(workspace, candidate, suite) for suite in suites[:MOST_SUITES])


def _standing(workspace: Workspace, candidate: str, suite: str) -> Standing:
    selection = Selection(suites=(suite,))
    if sum(workspace.archive.run_totals(selection).assessments.values()) > MOST_ASSESSMENTS:
        return Standing(suite=suite, estimate=None, too_large=True)
    columns = workspace.archive.score_columns(selection)
    for one in estimates(score_table(columns)) if len(columns.score) else ():
        if folded(str(one.candidate)) == folded(candidate) and one.mean is not None:
            return Standing(suite=suite, estimate=one)
    return Standing(suite=suite, estimate=None)
