"""Cache of score sums by task and candidate, from which the statistics page is computed.

A report needs only a few moments per task and candidate (`statistics.cells`). They are read again
after every decision and every other change of the scores: 20,000 scores take 0.06 s, 200,000 take
0.43 s. Cells that followed single decisions took 4 ms, and twice the code. Not thread-safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from assay.analysis.tables import (
    cautions,
    family_codes,
    names_of_tasks,
    planned_families,
    planned_tasks,
    score_table,
)
from assay.domain.lifecycle import AssessmentState
from assay.statistics.cells import Cells
from assay.statistics.paired_trials import pair_cells
from assay.statistics.reports import report as whole_report

if TYPE_CHECKING:
    from assay.analysis.columns import ScoreColumns
    from assay.domain.selection import Selection
    from assay.statistics.reports import Report
    from assay.store.queries.archive import Archive

_UNREVIEWED: Final = (AssessmentState.NOT_REQUIRED, AssessmentState.EXEMPT)


class KeptCells:
    """Cached cells of one selection. A cell contains the sums of one candidate on one task.

    Attributes:
        cells: the sums.
        arrivals: number of times that scores were read because some came or went without a
            decision, including the first time.
        tasks: label of each task. Like runs, cautions and graded_by, it does not change by
            decisions alone.
        n_trials: number of counted trials.
        newest: id of the newest review event that the cells include.
    """

    def __init__(self, archive: Archive, selection: Selection) -> None:
        self._archive = archive
        self._selection = selection
        self.arrivals = 1
        self._held = self._arrived()
        self._read()

    def refresh(self) -> bool:
        """Read the cells again if there are decisions or other scores since the last call; return
        True if so.
        """
        newest, _ = self._archive.trials.decided_since(None)
        held = self._arrived()
        if held == self._held and newest == self.newest:
            return False
        self.arrivals += held != self._held
        self._held = held
        self._read()
        return True

    def report(self, *, scope: str | None = None, margin: float | None = None) -> Report:
        """Return all candidates' scores and all pairs' comparisons."""
        return whole_report(self.cells, scope, margin)

    def _read(self) -> None:
        # Read before the scores: a decision made in between is then read twice, and not missed.
        self.newest, _ = self._archive.trials.decided_since(None)
        columns = self._archive.scores.columns(self._selection)
        names = names_of_tasks(columns.tasks)
        self.tasks = dict(zip(names, columns.tasks, strict=True))
        self.runs, self.cautions = columns.runs, cautions(columns)
        self.graded_by = frozenset(columns.judges[code] for code in np.unique(columns.judge))
        self.cells = _all_planned(columns, names)
        self.n_trials = len(np.unique(columns.trial))

    def _arrived(self) -> tuple[int, ...]:
        """Return counts that change if assessments are added or removed without a decision, for
        example by a regrade.
        """
        totals = self._archive.runs.totals(self._selection)
        current = sum(
            n for state, n in totals.assessments.items() if state is not AssessmentState.SUPERSEDED
        )
        aside = self._archive.runs.newest_run_event()  # a replaced run may have the same totals
        unreviewed = sum(totals.assessments.get(state, 0) for state in _UNREVIEWED)
        return aside, totals.runs, totals.trials, current, unreviewed


def _all_planned(columns: ScoreColumns, names: list[str]) -> Cells:
    counted = score_table(columns)
    # In the order of score tables: a report from these cells must equal a report computed from all
    # rows.
    tasks = sorted(names)
    weight_of = dict(zip(names, (label.weight for label in columns.tasks), strict=True))
    family_of = dict(zip(names, family_codes(columns.tasks).tolist(), strict=True))
    cells = Cells(
        tasks=tasks,
        candidates=counted.candidates,
        weight=np.array([weight_of[name] for name in tasks], dtype=np.float64),
        planned_tasks=planned_tasks(columns),
        family=np.array([family_of[name] for name in tasks], dtype=np.int64),
        planned_families=planned_families(columns.tasks),
    )
    place = {name: code for code, name in enumerate(tasks)}
    at = np.array([place[str(name)] for name in counted.tasks], dtype=np.int64)
    for moment in ("n", "mean", "m2", "low", "high"):
        getattr(cells, moment)[:, at] = getattr(counted.cells, moment)
    if _are_joint(columns):
        cells.pairs = pair_cells(counted, at, len(tasks))
    return cells


def _are_joint(columns: ScoreColumns) -> bool:
    """True if all counted trials were graded jointly."""
    return columns.joint.size > 0 and bool(columns.joint.all())
