"""Conversion of jointly graded trials to pairwise preferences."""

from dataclasses import dataclass

import numpy as np

from assay.statistics.arrays import Ints
from assay.statistics.preferences import BradleyTerry, bradley_terry_from_codes
from assay.statistics.table import ScoreTable


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Preferences:
    """Pairwise comparisons as columns of codes.

    `twice_points` is 2 if left scored higher, 1 for a tie, else 0.
    """

    left: Ints
    right: Ints
    twice_points: Ints
    task: Ints


def preferences_of(table: ScoreTable) -> Preferences:
    """Compare every pair of candidates in every trial that both have; the higher score wins.

    Use this for joint trials, whose scores come from one judge call. If candidates were graded
    separately, trial k of one candidate and trial k of the other share nothing but their number.
    Scores within 1e-12 of each other are a tie. Tasks with weight 0 are left out.
    """
    n_trials = int(table.trial_codes.max(initial=0)) + 1
    rows = np.flatnonzero((table.weight > 0)[table.task_codes])
    units, line = np.unique(
        table.task_codes[rows] * n_trials + table.trial_codes[rows], return_inverse=True
    )
    score = np.full((len(table.candidates), units.size), np.nan)
    score[table.candidate_codes[rows], line.reshape(-1)] = table.score[rows]
    task = units // n_trials
    parts: list[tuple[Ints, Ints, Ints, Ints]] = []
    for i, j in zip(*np.triu_indices(len(table.candidates), 1), strict=True):
        both = np.flatnonzero(~np.isnan(score[i]) & ~np.isnan(score[j]))
        ahead = np.round(score[i][both] - score[j][both], 12)
        points = (np.sign(ahead) + 1).astype(np.int64)
        parts.append((np.full(both.size, i), np.full(both.size, j), points, task[both]))
    columns = [
        np.concatenate(column) if parts else np.zeros(0, np.int64)
        for column in zip(*parts, strict=True)
    ]
    left, right, points, tasks = columns or [np.zeros(0, np.int64)] * 4
    return Preferences(left=left, right=right, twice_points=points, task=tasks)


def strengths(table: ScoreTable) -> BradleyTerry:
    """Estimate Bradley-Terry strengths from the order of the scores within each trial.

    Comparisons are clustered by task, or by family if any tasks share a family.
    """
    preferences = preferences_of(table)
    family = table.cells.family
    return bradley_terry_from_codes(
        preferences.left,
        preferences.right,
        preferences.twice_points,
        n_items=len(table.candidates),
        task=preferences.task if family is None else family[preferences.task],
        n_tasks=len(table.tasks),
        items=table.candidates,
    )
