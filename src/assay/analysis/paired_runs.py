"""Comparison of one candidate in two groups of runs, as a score table with two candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.analysis.tables import family_codes
from assay.statistics.table import ScoreTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.analysis.columns import ScoreColumns, TaskLabel


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSide:
    """One candidate's counted scores in a group of runs.

    `mark` is its name in the table, `rows` has a list per column, `labels` is keyed by the names in
    the column `task`.
    """

    mark: str
    rows: Mapping[str, Sequence[Any]]
    labels: Mapping[str, TaskLabel]

    @property
    def tasks(self) -> dict[str, set[str]]:
        """Return the content digests of each task, keyed by task id."""
        digests: dict[str, set[str]] = {}
        for task in set(self.rows["task"]):
            task_id, _, digest = task.partition("\0")
            digests.setdefault(task_id, set()).add(digest)
        return digests


def side_of(columns: ScoreColumns, candidate: str, mark: str) -> RunSide:
    """Return one candidate's rows.

    Tasks are identified by their content, and trial names include the mark.
    """
    mine = np.flatnonzero(columns.candidate == columns.candidates.index(candidate))
    labels = [columns.tasks[code] for code in columns.task[mine]]
    names = [_name_of(label) for label in labels]
    return RunSide(
        mark=mark,
        rows={
            "task": names,
            "candidate": [mark] * len(labels),
            "trial": [f"{mark} {trial}" for trial in columns.trial[mine].tolist()],
            "score": columns.score[mine].tolist(),
            "weight": [label.weight for label in labels],
        },
        labels=dict(zip(names, labels, strict=True)),
    )


def _name_of(label: TaskLabel) -> str:
    """Identify a task by id and content, because a task whose content changed must not be
    compared.
    """
    return f"{label.task}\0{label.digest}"


def paired_table(before: RunSide, after: RunSide, *, task: str | None = None) -> ScoreTable:
    """Return both sides as one score table.

    If a task's weights differ, the weight in `after` is used.
    """
    rows = {key: [*before.rows[key], *after.rows[key]] for key in before.rows}
    weights = dict(zip(rows["task"], rows["weight"], strict=True))
    labels = {**before.labels, **after.labels}
    family_of = dict(zip(labels, family_codes(list(labels.values())).tolist(), strict=True))
    kept = [place for place, name in enumerate(rows["task"]) if task is None or name == task]
    return ScoreTable.from_columns(
        task=[rows["task"][i] for i in kept],
        candidate=[rows["candidate"][i] for i in kept],
        trial=[rows["trial"][i] for i in kept],
        score=[rows["score"][i] for i in kept],
        weight=[weights[rows["task"][i]] for i in kept],
        family=np.array([family_of[rows["task"][i]] for i in kept], np.int64),
    )


def changed_tasks(before: RunSide, after: RunSide) -> tuple[str, ...]:
    ids, others = before.tasks, after.tasks
    return tuple(
        sorted(task for task in ids.keys() & others.keys() if not ids[task] & others[task])
    )
