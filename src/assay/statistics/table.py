"""Score table: the validated input of all statistics, with one row per task, candidate and
trial.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from assay.statistics.arrays import Bools, Floats, Ints
from assay.statistics.cells import Cells, first_outside_unit
from assay.statistics.exact_means import group_means
from assay.statistics.factorize import Coded, coded, places

Column: TypeAlias = Sequence[Hashable] | NDArray[np.generic]
Numbers: TypeAlias = Sequence[float] | NDArray[np.generic]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCalls:
    """Number and spread of the judge calls that were averaged, per trial.

    `count`: number of averaged calls; `m2`: sum of squared deviations of the calls from their mean.
    """

    count: Floats
    m2: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreTable:
    """Counted scores with one row per (task, candidate, trial), and their cells (sums per task and
    candidate).

    Create a table with `from_columns`. It must contain only trials that count; the caller must
    leave out rejected and pending trials. The order of the given rows does not matter.

    Attributes:
        tasks, candidates: distinct labels, in sorted order.
        task_codes, candidate_codes, trial_codes: shape (rows,).
        score: shape (rows,), between 0 and 1; repeated judge calls are already averaged.
        joint: shape (rows,), True if one judge call graded this trial for all candidates; None if
            no row is joint.
        cells: moments per task and candidate; also holds weights, families and the number of
            planned tasks.
        calls: spread of repeated judge calls; None if every trial has only one call.
    """

    tasks: tuple[Hashable, ...]
    candidates: tuple[Hashable, ...]
    task_codes: Ints
    candidate_codes: Ints
    trial_codes: Ints
    score: Floats
    joint: Bools | None
    cells: Cells
    calls: JudgeCalls | None

    @classmethod
    def from_columns(
        cls,
        *,
        task: Column,
        candidate: Column,
        trial: Column,
        score: Numbers,
        weight: Numbers | float | None = None,
        joint: bool | Sequence[bool] | NDArray[np.generic] = False,
        planned_tasks: int | None = None,
        family: Column | None = None,
        planned_families: int | None = None,
    ) -> "ScoreTable":
        """Build a table from columns of equal length.

        Args:
            task, candidate, trial: labels that together identify a trial. Rows that agree in all
                three are repeated judge calls and are averaged. Candidates graded by one joint
                judge call share the trial.
            score: 0 to 1.
            weight: weight of the row's task, finite and at least 0, the same for all rows of a
                task; by default 1. A task with weight 0 is left out.
            joint: True if one judge call graded all candidates of the trial; one value for all
                rows, or one per row.
            planned_tasks: number of tasks that the selected runs plan, by default the number of
                tasks with positive weight. It decides the default scope, which therefore cannot
                change while reviews come in.
            family: source that the task shares with other tasks (a passage, a repository, a
                template), the same for all rows of a task; None or "" for a task without a shared
                source. Tasks of a family are not independent, so results about tasks like these use
                families as units.
            planned_families: number of families among the planned tasks, by default of those in the
                table with positive weight.

        Raises ValueError for columns of unequal length; a score that is NaN or outside 0 to 1; a
        weight that is negative or not finite; a weight or family that differs within a task. The
        message names the first offending row, counted from 0.
        """
        n_rows = len(score)
        for name, column in (
            ("task", task),
            ("candidate", candidate),
            ("trial", trial),
            ("family", family),
        ):
            if column is not None and len(column) != n_rows:
                raise ValueError(
                    f"{name} has {len(column)} rows, score has {n_rows}; all columns must have the same length"
                )
        if planned_tasks is not None and planned_tasks < 0:
            raise ValueError(
                f"planned_tasks is {planned_tasks}; it must be a number of tasks, at least 0"
            )
        tasks, candidates = coded(task), coded(candidate)
        trials, n_trials = places(trial)
        scores = _numbers("score", score, n_rows)
        where = _Rows(task, candidate, trial)
        bad = first_outside_unit(scores)
        if bad is not None:
            raise ValueError(f"{where.name(bad)}: score {scores[bad]} is not a number in 0 to 1")
        task_weight = _task_weights(weight, tasks, where, n_rows)
        is_joint = _joint_rows(joint, n_rows)
        cells = Cells(
            tasks=tasks.labels,
            candidates=candidates.labels,
            weight=task_weight,
            planned_tasks=planned_tasks,
            family=None if family is None else _task_families(family, tasks, where),
            planned_families=planned_families,
        )
        return _assembled(tasks, candidates, (trials, n_trials), scores, is_joint, cells)

    def including(self, candidates: Sequence[Hashable]) -> "ScoreTable":
        """Return a table that also contains these candidates, even if they have no trials."""
        missing = [
            name for name in dict.fromkeys(candidates) if self.cells.candidate_code(name) is None
        ]
        if not missing:
            return self
        own = self.cells
        every = (*own.candidates, *missing)
        order = coded(every).labels
        cells = Cells(
            tasks=own.tasks,
            candidates=order,
            weight=own.weight,
            planned_tasks=own.planned_tasks,
            family=own.family,
            planned_families=own.planned_families,
        )
        place = np.array([cells.candidate_code(name) for name in own.candidates], np.int64)
        for name in ("n", "mean", "m2", "low", "high"):
            getattr(cells, name)[place] = getattr(own, name)
        codes = place[self.candidate_codes] if len(place) else self.candidate_codes
        return replace(self, candidates=cells.candidates, candidate_codes=codes, cells=cells)

    @property
    def weight(self) -> Floats:
        """Shape (tasks,): the weight of each task."""
        return self.cells.weight

    @property
    def planned_tasks(self) -> int:
        return self.cells.planned_tasks

    def rows_of(self, candidate: int, task: int | None = None) -> Ints:
        """Return the row indices of a candidate (code) on one task (code), or on all tasks with
        positive weight.
        """
        mine = self.candidate_codes == candidate
        mine &= (
            (self.task_codes == task) if task is not None else (self.weight > 0)[self.task_codes]
        )
        return np.flatnonzero(mine)


@dataclass(frozen=True, slots=True)
class _Rows:
    task: Column
    candidate: Column
    trial: Column

    def name(self, row: int) -> str:
        parts = [f"task {_plain(self.task[row])!r}", f"candidate {_plain(self.candidate[row])!r}"]
        return f"row {row} (counted from 0; {', '.join(parts)}, trial {_plain(self.trial[row])!r})"


def _plain(label: object) -> object:
    return label.item() if isinstance(label, np.generic) else label


def _numbers(name: str, column: Numbers, n_rows: int) -> Floats:
    try:
        values = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        row, value = next((i, v) for i, v in enumerate(column) if not _is_number(v))
        raise ValueError(f"row {row} (counted from 0): {name} {value!r} is not a number") from None
    if values.shape != (n_rows,):
        raise ValueError(f"{name} must be one column of {n_rows} rows; it has shape {values.shape}")
    return values


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]  # what cannot be a float raises
    except (TypeError, ValueError):
        return False
    return True


def _task_weights(
    weight: Numbers | float | None, tasks: Coded, where: _Rows, n_rows: int
) -> Floats:
    if weight is None:
        return np.ones(len(tasks.labels))
    column = (
        np.full(n_rows, weight, np.float64)
        if isinstance(weight, (int, float))
        else _numbers("weight", weight, n_rows)
    )
    wrong = ~(np.isfinite(column) & (column >= 0))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{where.name(row)}: weight {column[row]} is not a finite number of at least 0"
        )
    of_task = np.ones(len(tasks.labels))
    # Assigned in reverse, because the last assignment wins: a message should compare with the first
    # weight that was given.
    of_task[tasks.codes[::-1]] = column[::-1]
    differs = of_task[tasks.codes] != column
    if differs.any():
        row = int(np.flatnonzero(differs)[0])
        first = of_task[tasks.codes[row]]
        raise ValueError(
            f"{where.name(row)}: weight {column[row]} differs from {first}, given before for its task"
        )
    return of_task


def _task_families(family: Column, tasks: Coded, where: _Rows) -> Ints:
    """Return the code of each task's family; a task without a family gets its own code."""
    if isinstance(family, np.ndarray) and family.dtype.kind in "iu":
        families = coded(family)
    else:
        # A task without a family is a family of one. Its label is a pair, so it cannot equal any
        # label in a column.
        own = ((None, int(code)) for code in tasks.codes)
        families = coded(
            [
                mine if label in (None, "") else label
                for label, mine in zip(family, own, strict=True)
            ]
        )
    of_task = np.zeros(len(tasks.labels), np.int64)
    of_task[tasks.codes[::-1]] = families.codes[::-1]
    differs = of_task[tasks.codes] != families.codes
    if differs.any():
        row = int(np.flatnonzero(differs)[0])
        first = _plain(family[int(np.flatnonzero(tasks.codes == tasks.codes[row])[0])])
        given = _plain(family[row])
        raise ValueError(
            f"{where.name(row)}: family {given!r} differs from {first!r}, given before for its task"
        )
    return of_task


def _joint_rows(joint: bool | Sequence[bool] | NDArray[np.generic], n_rows: int) -> Bools | None:
    if isinstance(joint, (bool, np.bool_)):
        return np.ones(n_rows, np.bool_) if joint and n_rows else None
    column = np.asarray(joint, dtype=np.bool_)
    if column.shape != (n_rows,):
        raise ValueError(
            f"joint has {len(joint)} rows, score has {n_rows}; all columns must have the same length"
        )
    return column if column.any() else None


def _assembled(
    tasks: Coded,
    candidates: Coded,
    trials: tuple[Ints, int],
    score: Floats,
    joint: Bools | None,
    cells: Cells,
) -> ScoreTable:
    task_codes, candidate_codes, (trial_codes, n_trials) = tasks.codes, candidates.codes, trials
    calls = None
    key = candidate_codes * len(tasks.labels)
    key += task_codes
    key *= max(n_trials, 1)
    key += trial_codes
    size = len(candidates.labels) * len(tasks.labels) * n_trials
    # Judge calls are averaged: if 5 trials with 3 calls each were treated as 15 trials, tests erred
    # in 20% of benchmarks; averaged, in 4.4%.
    if _has_repeats(key, size):
        _, first, place, count = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        place = place.reshape(-1)
        # Equal calls must give their own value, because constant scores would otherwise seem to
        # vary.
        mean = group_means(place, score, len(first))
        off = score - mean[place]
        calls = JudgeCalls(
            count=count.astype(np.float64),
            m2=np.bincount(place, weights=off * off).astype(np.float64),
        )
        task_codes, candidate_codes, trial_codes = (
            task_codes[first],
            candidate_codes[first],
            trial_codes[first],
        )
        if joint is not None:
            # A trial is joint only if each of its calls was joint.
            joint = np.bincount(place, weights=joint) == count
        score = mean
    cells.fill(task_codes, candidate_codes, score)
    return ScoreTable(
        tasks=tasks.labels,
        candidates=candidates.labels,
        task_codes=task_codes,
        candidate_codes=candidate_codes,
        trial_codes=trial_codes,
        score=score,
        joint=joint,
        cells=cells,
        calls=calls,
    )


def _has_repeats(key: Ints, size: int) -> bool:
    if key.size < 2:
        return False
    # A table of flags is faster than sorting, unless it would be mostly empty.
    if size <= 16 * key.size + 4096:
        seen = np.zeros(size, np.bool_)
        seen[key] = True
        return int(np.count_nonzero(seen)) < key.size
    ordered = np.sort(key)
    return bool((ordered[1:] == ordered[:-1]).any())
