"""Sums from which a report is computed: number, mean and spread of trials per task and candidate.

Theory. For each (task, candidate) cell, a report needs only n, the mean, M2 (the sum of squared
deviations), and the smallest and the largest score. If one judge call graded all candidates, it
also needs n, mean and M2 of each pair's differences.

House rules. Arrays have the axes (candidate, task) and (pair, task), so that a sum over tasks reads
contiguous memory.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property

import numpy as np

from assay.statistics.arrays import Bools, Floats, Ints
from assay.statistics.exact_means import group_means

# A column of floats for a piece of this size takes half a megabyte.
ROWS_AT_A_TIME = 65_536


class Cells:
    """Sufficient statistics per task and candidate.

    Attributes:
        tasks, candidates: labels; `task_code` and `candidate_code` return a label's position.
        n, mean, m2, low, high: shape (candidates, tasks). A cell without trials has 0 in all of
            these arrays.
        weight: shape (tasks,), at least 0; a task with weight 0 is left out.
        pairs: differences in jointly graded trials, or None if candidates were graded separately.
        planned_tasks: number of planned tasks, at least 0, which decides the default scope.
        family: shape (tasks,), code of each task's family; None if every planned task is its own
            family.
        planned_families: number of families among the planned tasks.
    """

    def __init__(
        self,
        *,
        tasks: Sequence[Hashable],
        candidates: Sequence[Hashable],
        weight: Floats | None = None,
        planned_tasks: int | None = None,
        family: Ints | None = None,
        planned_families: int | None = None,
    ) -> None:
        """Create empty cells, one per task and candidate.

        Raises ValueError if a weight is negative, NaN or infinite, or if there is not exactly one
        weight and one family per task.
        """
        shape = (len(candidates), len(tasks))
        self.tasks = tuple(tasks)
        self.candidates = tuple(candidates)
        self.weight = np.ones(len(tasks)) if weight is None else np.asarray(weight, np.float64)
        if (
            self.weight.shape != (len(tasks),)
            or not (np.isfinite(self.weight) & (self.weight >= 0)).all()
        ):
            raise ValueError(
                f"weight must hold {len(tasks)} finite numbers that are not negative, one for each task"
            )
        self.n = np.zeros(shape)
        self.mean, self.m2, self.low, self.high = (np.zeros(shape) for _ in range(4))
        self.pairs: PairCells | None = None
        self.planned_tasks = (
            int((self.weight > 0).sum()) if planned_tasks is None else planned_tasks
        )
        if family is not None and family.shape != (len(tasks),):
            raise ValueError(f"family must hold {len(tasks)} codes, one for each task")
        own = self.planned_tasks if family is None else np.unique(family[self.weight > 0]).size
        self.planned_families = own if planned_families is None else planned_families
        self.family = family if self.planned_families < self.planned_tasks else None
        self._places = {label: place for place, label in enumerate(self.candidates)}

    @classmethod
    def from_codes(
        cls,
        task: Ints,
        candidate: Ints,
        score: Floats,
        *,
        n_tasks: int,
        n_candidates: int,
        weight: Floats | None = None,
        planned_tasks: int | None = None,
        tasks: Sequence[Hashable] | None = None,
        candidates: Sequence[Hashable] | None = None,
        family: Ints | None = None,
    ) -> "Cells":
        """Build cells from rows of integer codes, in a few passes.

        Average repeated judge calls of a trial first, as `ScoreTable` does.

        Args:
            task, candidate: shape (rows,), codes from 0.
            score: shape (rows,), between 0 and 1, without NaN.
            n_tasks, n_candidates: number of tasks and of candidates.
            weight: shape (n_tasks,).
            tasks, candidates: labels, by default the codes themselves.
            family: shape (n_tasks,), code of each task's family; None if tasks are independent.

        Raises ValueError for columns of unequal length, a code out of range, a score outside 0 to 1
        (the message names its row), or an invalid weight.
        """
        check_codes("task", task, n_tasks, len(score))
        check_codes("candidate", candidate, n_candidates, len(score))
        bad = first_outside_unit(score)
        if bad is not None:
            raise ValueError(f"row {bad} (counted from 0): score {score[bad]} is outside 0 to 1")
        cells = cls(
            tasks=range(n_tasks) if tasks is None else tasks,
            candidates=range(n_candidates) if candidates is None else candidates,
            weight=weight,
            planned_tasks=planned_tasks,
            family=family,
        )
        cells.fill(task, candidate, np.asarray(score, np.float64))
        return cells

    def fill(self, task: Ints, candidate: Ints, score: Floats) -> None:
        """Set all cells from rows with the columns that `from_codes` takes, without checking
        them.
        """
        size = self.n.size
        n = np.zeros(size)
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        # Rows are summed in pieces, because temporary arrays of a million rows would cost as much
        # as the sums.
        step = max(ROWS_AT_A_TIME, size)
        # A piece never has fewer rows than there are cells, because every piece also needs a pass
        # over the cells.
        pieces = [slice(start, start + step) for start in range(0, score.size, step)]
        for piece in pieces:
            key, part = self._key(task[piece], candidate[piece]), score[piece]
            n += np.bincount(key, minlength=size)
            np.minimum.at(low, key, part)
            np.maximum.at(high, key, part)
        mean, m2 = group_means(self._key(task, candidate), score, size), np.zeros(size)
        for piece in pieces:
            key = self._key(task[piece], candidate[piece])
            # This is a second pass, because subtracting a squared sum from a sum of squares cancels
            # if the scores hardly vary.
            off = mean.take(key)
            off -= score[piece]
            off *= off
            m2 += np.bincount(key, weights=off, minlength=size)
        empty, same = n == 0, low == high
        self.n = n.reshape(self.n.shape)
        self.low = np.where(empty, 0.0, low).reshape(self.n.shape)
        self.high = np.where(empty, 0.0, high).reshape(self.n.shape)
        self.mean = mean.reshape(self.n.shape)
        self.m2 = np.where(same, 0.0, m2).reshape(self.n.shape)

    def _key(self, task: Ints, candidate: Ints) -> Ints:
        key = candidate.astype(np.int64) * len(self.tasks)
        key += task
        return key

    @property
    def planned_units(self) -> int:
        """Number of independent units among the planned tasks: families if any tasks share a
        family, otherwise tasks.
        """
        return self.planned_tasks if self.family is None else self.planned_families

    def candidate_code(self, candidate: Hashable) -> int | None:
        return self._places.get(candidate)

    @property
    def counted(self) -> Bools:
        """Return a mask of shape (candidates, tasks): True if the cell has a counted trial and its
        task has a positive weight.
        """
        return (self.n > 0) & (self.weight > 0)


class PairCells:
    """Moments of score differences in jointly graded trials, for each pair of candidates and each
    task.

    Pair p of candidates i < j holds differences i - j. Most reports need one pair only, so the
    moments of all pairs (40 MB with 50 candidates and 1,000 tasks) are computed when first needed.

    Attributes:
        source: computes the moments of some pairs, as `of` does.
    """

    def __init__(self, n_candidates: int, source: Callable[[Ints, Ints], Floats]) -> None:
        self.n_candidates = n_candidates
        self.first, self.second = np.triu_indices(n_candidates, 1)
        self.source = source

    @cached_property
    def moments(self) -> Floats:
        """Return shape (4, pairs, tasks): n, mean and m2 of the differences, and the mean of (i +
        j) / 2.

        n is the number of trials that count for both, 0 if the pair is not compared by trial on
        that task.
        """
        return self.source(self.first, self.second)

    def of(self, first: Ints, second: Ints) -> Floats:
        """Return the moments of the differences first - second, shape (4, len(first), tasks)."""
        low, high = np.minimum(first, second), np.maximum(first, second)
        at = low * self.n_candidates - low * (low + 1) // 2 + high - low - 1
        every = "moments" in self.__dict__ or len(first) >= len(self.first)
        moments = self.moments[:, at] if every else self.source(low, high)
        # Stored pairs have the lower code first; for the other order only the sign of the mean
        # changes.
        moments[1] *= np.where(first < second, 1.0, -1.0)[:, None]
        return moments


def check_codes(name: str, codes: Ints, limit: int, length: int) -> None:
    """Raise ValueError unless there are `length` codes from 0 to limit - 1."""
    if len(codes) != length:
        raise ValueError(
            f"{name} has {len(codes)} rows, score has {length}; all columns must have the same length"
        )
    # Read as unsigned numbers, negative codes are huge, so that a single pass finds both kinds.
    if length and int(codes.astype(np.int64, copy=False).view(np.uint64).max()) >= limit:
        row = int(np.flatnonzero((codes < 0) | (codes >= limit))[0])
        raise ValueError(
            f"row {row} (counted from 0): {name} code {codes[row]} is not in 0 to {limit - 1}"
        )


def first_outside_unit(score: Floats) -> int | None:
    """Return the first position whose value is NaN or outside 0 to 1, or None."""
    # NaN makes both comparisons false, so the two quick passes also find it.
    if score.size == 0 or (score.min() >= 0.0 and score.max() <= 1.0):
        return None
    return int(np.flatnonzero(~((score >= 0.0) & (score <= 1.0)))[0])
