"""Coverage (the share of planned trials that count), and a candidate's mean under three assumptions
about missing trials.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from assay.statistics.cells import Cells
from assay.statistics.standard_error import shares_of
from assay.statistics.table import ScoreTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """One candidate's coverage, and its mean under three assumptions.

    `missing_as_zero`, `missing_as_one`: the mean if every missing trial scores 0 or 1, which
    bracket it. `missing_left_out`: the mean if every missing trial scores like the counted trials
    of its task; a task without counted trials is left out. `rate`: counted trials divided by
    planned trials.
    """

    candidate: Hashable
    n_counted: int
    n_planned: int
    rate: float | None
    n_tasks_counted: int
    n_tasks_planned: int
    missing_as_zero: float | None
    missing_as_one: float | None
    missing_left_out: float | None
    reason: str | None


def coverage(
    scores: ScoreTable | Cells,
    candidate: Hashable,
    planned: int | Mapping[Hashable, int],
    *,
    weights: Mapping[Hashable, float] | None = None,
) -> Coverage:
    """Compute a candidate's coverage, and its mean with missing trials scored 0, scored 1 and left
    out.

    Args:
        planned: number of trials planned per task: one number for all tasks of the table, or a
            mapping from task to number, which may include tasks without counted trials. If a task
            has more counted than planned trials, the counted number is used.
        weights: weights of tasks that are not in the table, by default 1.

    Raises ValueError for a negative number of planned trials, or a weight that is negative or not
    finite.
    """
    cells = scores.cells if isinstance(scores, ScoreTable) else scores
    wanted = dict.fromkeys(cells.tasks, planned) if isinstance(planned, int) else dict(planned)
    known = dict(zip(cells.tasks, cells.weight.tolist(), strict=True))
    code = cells.candidate_code(candidate)
    n_of = dict(
        zip(
            cells.tasks,
            cells.n[code].tolist() if code is not None else [0.0] * len(cells.tasks),
            strict=True,
        )
    )
    # zip is not strict here, because an unknown candidate has no means that could be paired with
    # the tasks.
    mean_of = dict(
        zip(cells.tasks, cells.mean[code].tolist() if code is not None else [], strict=False)
    )
    tasks = [task for task in {**dict.fromkeys(cells.tasks), **wanted} if known.get(task, 1.0) > 0]
    plan = np.array([float(wanted.get(task, 0)) for task in tasks])
    n = np.array([n_of.get(task, 0.0) for task in tasks])
    mean = np.array([mean_of.get(task, 0.0) for task in tasks])
    weight = np.array([known.get(task, (weights or {}).get(task, 1.0)) for task in tasks])
    if (plan < 0).any() or not (np.isfinite(weight) & (weight >= 0)).all():
        raise ValueError(
            "coverage: planned trials must be at least 0, and weights finite and at least 0"
        )
    plan = np.maximum(plan, n)
    use = (plan > 0) & (weight > 0)
    total_planned, total = float(plan[use].sum()), float(n[use].sum())
    counted = shares_of(np.where(use & (n > 0), weight, 0.0)) if use.any() else np.zeros(0)
    every = shares_of(np.where(use, weight, 0.0)) if use.any() else np.zeros(0)
    share = n / np.where(plan > 0, plan, 1.0)
    shrunk = mean * share
    return Coverage(
        candidate=candidate,
        n_counted=int(total),
        n_planned=int(total_planned),
        rate=total / total_planned if total_planned else None,
        n_tasks_counted=int((use & (n > 0)).sum()),
        n_tasks_planned=int(use.sum()),
        missing_as_zero=float((every * shrunk).sum()) if use.any() else None,
        missing_as_one=float((every * (shrunk + 1 - share)).sum()) if use.any() else None,
        missing_left_out=float((counted * mean).sum()) if total else None,
        reason=None if total else "no_approved_trials",
    )
