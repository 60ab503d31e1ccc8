"""Tasks that are probably the same task, entered several times: all candidates have the same scores
on them.

Theory. A task entered ten times counts as ten tasks, so its luck is taken for agreement: six tasks
entered ten times each turn p = .23 into .00002. Equal scores alone prove little, because with
yes-or-no scores two candidates have only four patterns of scores. Copies differ from chance in two
ways, and either one is reported:

* One candidate's score determines the scores of all others. Among different tasks, those on which A
  scores 80 give B various scores; among copies, they do not. Candidates that agree on every task
  show nothing and count once.
* All patterns occur equally often, at least five times each. By chance this happens in at most 1 of
  100 benchmarks.

Copies of tasks whose scores take only a few values cannot be recognised by their scores. Where the
content of tasks is known, `store.queries.task_copies` recognises them, and they share a family.
"""

import numpy as np

from assay.statistics.arrays import Floats, Ints
from assay.statistics.cells import Cells
from assay.statistics.warnings import Caution, caution

FEWEST_PATTERNS = 5
"""Minimum number of patterns if one candidate's scores determine them; yes-or-no scores of up to
three trials have at most 4.
"""

FEWEST_EQUAL_PATTERNS = 4
FEWEST_COPIES = 5
"""Minimum numbers of patterns and of copies of each, if all patterns occur equally often."""


def identical_tasks(cells: Cells) -> tuple[Caution, ...]:
    """Return a warning if many tasks are probably copies of others, else nothing.

    A task with weight 0 or without counted trials is left out. Checked by simulation of yes-or-no,
    ten-point and continuous scores in tests/unit/statistics/test_identical_tasks.py.
    """
    used = cells.counted.any(axis=0)
    n_tasks = int(used.sum())
    if n_tasks < 2 * FEWEST_EQUAL_PATTERNS or len(cells.candidates) < 2:
        return ()
    counts, values = cells.n[:, used], cells.mean[:, used]
    # One number per task, in one pass; only if many coincide are the patterns compared exactly.
    mixing = 1.0 + np.sqrt(np.arange(2.0, len(values) + 2.0))
    sketch = np.round(mixing @ (values + counts), 9)
    n_patterns = np.unique(sketch).size
    if not FEWEST_EQUAL_PATTERNS <= n_patterns <= n_tasks // 2:
        return ()
    patterns = _codes_of_columns(np.vstack([counts, values, cells.m2[:, used]]))
    times = np.bincount(patterns)
    if cells.family is not None and _within_families(patterns, cells.family[used]):
        return ()
    if not (_determined(counts, values, times) or _equally_often(times)):
        return ()
    return (caution("identical_tasks", n=n_tasks, patterns=times.size),)


def _determined(counts: Floats, values: Floats, times: Ints) -> bool:
    """True if one candidate's scores determine those of all candidates, and every pattern occurs at
    least twice.
    """
    if times.size < FEWEST_PATTERNS or times.min() < 2:
        return False
    different = np.unique(np.round(np.hstack([counts, values]), 12), axis=0)
    if len(different) < 2:
        return False
    return any(np.unique(np.round(row, 12)).size == times.size for row in values)


def _equally_often(times: Ints) -> bool:
    return times.size >= FEWEST_EQUAL_PATTERNS and bool(
        (times == times[0]).all() and times[0] >= FEWEST_COPIES
    )


def _within_families(patterns: Ints, family: Ints) -> bool:
    """True if equal tasks already share a family, so that they count as one source."""
    return len(np.unique(np.column_stack([patterns, family]), axis=0)) == len(np.unique(patterns))


def _codes_of_columns(columns: Floats) -> Ints:
    return np.unique(np.round(columns, 12), axis=1, return_inverse=True)[1].reshape(-1)
