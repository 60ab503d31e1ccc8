"""Cache of score sums by task and candidate, so that a decision updates the statistics page of a
large suite quickly.

A report needs only a few moments per task and candidate (`statistics.cells`), which are computed
once. Each decision concerns one trial: its previous scores are subtracted and its current scores
added. This works for every decision (approve, correct, reject, undo, rerun, one judge of a panel),
so the cache contains no review rules. The store no longer has the previous scores, so the cache
keeps them: in arrays, and in a dict for changed trials. All cells are recomputed after other
changes: a new task or candidate, scores without a decision, or a mix of jointly and separately
graded trials. Not thread-safe.
"""

from __future__ import annotations

from collections import defaultdict
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
from assay.statistics.exact_means import group_means
from assay.statistics.paired_trials import pair_cells, pair_moments
from assay.statistics.reports import report as whole_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from assay.analysis.columns import ScoreColumns, TrialScores
    from assay.domain.identifiers import TrialKey
    from assay.domain.review import ReviewEvent
    from assay.domain.selection import Selection
    from assay.statistics.reports import Report
    from assay.store.queries.archive import Archive

MAX_TRIALS_AT_ONCE: Final = 2000
"""Number of changed trials above which a full recomputation is faster."""

_EXACT_UP_TO: Final = 10_000
"""Number of scores of a task up to which the means of its changed cells are computed from all
scores again.
"""

_UNREVIEWED: Final = (AssessmentState.NOT_REQUIRED, AssessmentState.EXEMPT)


class KeptCells:
    """Cached cells of one selection. A cell contains the sums of one candidate on one task.

    Attributes:
        rebuilt: number of full computations, including the first.
        tasks: label of each task. Like runs, cautions and graded_by, it comes from the last full
            computation, because decisions do not change it.
        n_trials: current number of counted trials.
        newest: id of the newest review event that the cells include.
    """

    def __init__(self, archive: Archive, selection: Selection) -> None:
        self._archive = archive
        self._selection = selection
        self.rebuilt = 0
        self._event = 0
        self._held: tuple[int, ...] = ()
        self._joint: bool | None = None
        self._rebuild()

    @property
    def newest(self) -> int:
        return self._event

    def refresh(self) -> int:
        """Update the cells with all decisions since the last call; return the number of changed
        trials.
        """
        # With 200,000 scores and 45 pairs a decision costs 3.6 ms this way; computing everything
        # again costs 690 ms.
        newest, trials = self._archive.trials.decided_since(self._event)
        if (
            self._arrived() != self._held
            or len(trials) > MAX_TRIALS_AT_ONCE
            or (trials and self._joint is None)
        ):
            self._rebuild()
        elif trials:
            self._take(trials)
            self._event = newest
        return len(trials)

    def note(self, events: Iterable[ReviewEvent]) -> int:
        """Refresh the cells if `events` is not empty; otherwise, the store is not read."""
        return self.refresh() if any(True for _ in events) else 0

    def report(self, *, scope: str | None = None, margin: float | None = None) -> Report:
        """Return all candidates' scores and all pairs' comparisons, computed from the current
        cells.
        """
        return whole_report(self.cells, scope, margin)

    @property
    def cells(self) -> Cells:
        """Return the current cells. Cells that lost precision are recomputed from their trials."""
        for task, candidate in {*self._cells.stale, *self._drifting}:
            scores = self._scores_of(task)[candidate]
            self._cells.recompute(task, candidate, scores[~np.isnan(scores)])
        self._drifting.clear()
        for task in self._worn_pairs:
            self._renew_pairs(task)
        self._worn_pairs.clear()
        return self._cells

    def _rebuild(self) -> None:
        self.rebuilt += 1
        # Read before the scores: a decision made in between is then applied twice, and the second
        # application changes nothing.
        self._event, _ = self._archive.trials.decided_since(None)
        self._held = self._arrived()
        columns = self._archive.scores.columns(self._selection)
        names = names_of_tasks(columns.tasks)
        self.tasks = dict(zip(names, columns.tasks, strict=True))
        self.runs, self.cautions = columns.runs, cautions(columns)
        self.graded_by = frozenset(columns.judges[code] for code in np.unique(columns.judge))
        self._cells = _all_planned(columns, names)
        place = {name: code for code, name in enumerate(self._cells.tasks)}
        self._tasks = {
            (label.suite, label.task, label.digest): place[name]
            for label, name in zip(columns.tasks, names, strict=True)
        }
        self._candidates = {str(name): code for code, name in enumerate(self._cells.candidates)}
        self._remember(columns, np.array([place[name] for name in names], dtype=np.int64))
        self._joint = _jointness(columns)
        self.n_trials = len(np.unique(self._trial))
        self._changed: dict[int, Mapping[int, float]] = {}
        self._changed_in: dict[int, set[int]] = defaultdict(set)
        self._worn_pairs: set[int] = set()
        self._drifting: set[tuple[int, int]] = set()

    def _remember(
        self, columns: ScoreColumns, task_place: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> None:
        """Store the counted scores of each trial (averaged over judge calls, sorted by trial) and
        the rows of each task.
        """
        candidate = np.array(
            [self._candidates[name] for name in columns.candidates], dtype=np.int64
        )
        key = columns.trial * max(len(candidate), 1) + columns.candidate
        _, first, line = np.unique(key, return_index=True, return_inverse=True)
        self._trial = columns.trial[first]
        self._score = group_means(line.reshape(-1), columns.score, len(first))
        self._candidate = candidate[columns.candidate[first]] if len(first) else first
        task = task_place[columns.task[first]] if len(first) else first
        self._by_task = np.argsort(task, kind="stable")
        self._starts = np.searchsorted(task[self._by_task], np.arange(len(self._cells.tasks) + 1))

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

    def _take(self, trials: tuple[TrialKey, ...]) -> None:
        for trial in self._archive.scores.of_trials(self._selection, trials):
            task = self._tasks.get((trial.suite, trial.task, trial.digest))
            known = all(name in self._candidates for name in trial.scores)
            if task is None or not known or (trial.scores and trial.joint != self._joint):
                self._rebuild()
                return
            self._replace(trial, task)

    def _replace(self, trial: TrialScores, task: int) -> None:
        old = self._counted_of(trial.trial)
        # A mean over judge calls can be outside 0 to 1 by the last digit, and cells refuse such a
        # score.
        new = {
            self._candidates[name]: min(max(score, 0.0), 1.0)
            for name, score in trial.scores.items()
        }
        if old == new:
            return
        for candidate, score in old.items():
            self._cells.withdraw(task, candidate, score)
        # Pairs do not record their loss of precision, so every withdrawal requires a new
        # computation.
        if self._cells.pairs is not None and (old or not self._cells.pairs.computed):
            self._worn_pairs.add(task)
        if self._cells.pairs is not None and task not in self._worn_pairs:
            self._cells.add_joint(task, new)
        else:
            for candidate, score in new.items():
                self._cells.add(task, candidate, score)
        # Each update of a mean rounds, so that many of them would change its last digits.
        if self._starts[task + 1] - self._starts[task] <= _EXACT_UP_TO:
            self._drifting |= {(task, candidate) for candidate in {*old, *new}}
        self.n_trials += bool(new) - bool(old)
        self._changed[trial.trial] = new
        self._changed_in[task].add(trial.trial)

    def _counted_of(self, trial: int) -> Mapping[int, float]:
        if trial in self._changed:
            return self._changed[trial]
        low, high = np.searchsorted(self._trial, [trial, trial + 1])
        return dict(
            zip(self._candidate[low:high].tolist(), self._score[low:high].tolist(), strict=True)
        )

    def _scores_of(self, task: int) -> NDArray[np.float64]:
        """Return a task's counted scores, shape (candidates, trials) with at least one trial; NaN
        if a trial has no score.
        """
        changed = self._changed_in.get(task, set())
        rows = self._by_task[self._starts[task] : self._starts[task + 1]]
        rows = rows[~np.isin(self._trial[rows], list(changed))]
        trials, line = np.unique(self._trial[rows], return_inverse=True)
        scores = np.full((len(self._candidates), len(trials) + len(changed) + 1), np.nan)
        scores[self._candidate[rows], line.reshape(-1)] = self._score[rows]
        for place, trial in enumerate(changed, start=len(trials)):
            by_candidate = self._changed[trial]
            scores[list(by_candidate), place] = list(by_candidate.values())
        return scores

    def _renew_pairs(self, task: int) -> None:
        pairs = self._cells.pairs
        # a task's pairs are renewed only after a change of its joint trials
        assert pairs is not None
        pairs.renew(
            task,
            pair_moments(self._scores_of(task), np.zeros(1, np.int64), pairs.first, pairs.second)[
                :, :, 0
            ],
        )


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
    if _jointness(columns):
        cells.pairs = pair_cells(counted, at, len(tasks))
    return cells


def _jointness(columns: ScoreColumns) -> bool | None:
    """True if all counted trials were graded jointly, None if only some were; False without
    trials.
    """
    together = np.unique(columns.joint)
    return None if len(together) > 1 else bool(together[0]) if len(together) else False
