"""One candidate in two groups of runs: copies and families join as they do within one run."""

from __future__ import annotations

from typing import Any

from assay.analysis.columns import TaskLabel
from assay.analysis.paired_runs import RunSide, paired_table


def side(mark: str, labels: list[TaskLabel]) -> RunSide:
    names = [f"{label.task}\0{label.digest}" for label in labels]
    rows: dict[str, list[Any]] = {
        "task": names,
        "candidate": [mark] * len(names),
        "trial": [f"{mark} {place}" for place in range(len(names))],
        "score": [0.5] * len(names),
        "weight": [1.0] * len(names),
    }
    return RunSide(mark=mark, rows=rows, labels=dict(zip(names, labels, strict=True)))


def test_copies_in_different_declared_families_are_one_family() -> None:
    labels = [
        TaskLabel(
            suite="s",
            task=f"q{question}-{copy}",
            digest=f"d{question}",
            thing="",
            weight=1.0,
            family=f"f{copy}",
            content=f"q{question}",
        )
        for question in range(3)
        for copy in range(2)
    ]
    table = paired_table(side("before", labels), side("after", labels))
    assert table.cells.family is not None
    assert len(set(table.cells.family.tolist())) == 1


def test_tasks_that_share_nothing_are_their_own_families() -> None:
    labels = [
        TaskLabel(suite="s", task=f"t{n}", digest="d", thing="", weight=1.0) for n in range(3)
    ]
    assert paired_table(side("before", labels), side("after", labels)).cells.family is None
