"""Plans: how many tasks show a difference, at the edge where the differences of tasks do not
vary.
"""

from __future__ import annotations

import pytest

from assay import statistics as st


@pytest.mark.parametrize(
    ("n_tasks", "is_enough"), [(2, False), (4, False), (5, False), (6, True), (10, True)]
)
def test_differences_that_do_not_vary_need_six_tasks(n_tasks: int, is_enough: bool) -> None:
    table = st.ScoreTable.from_columns(
        task=[f"t{n}" for n in range(n_tasks) for _ in "AB"],
        candidate=["A", "B"] * n_tasks,
        trial=[1] * 2 * n_tasks,
        score=[0.9, 0.4] * n_tasks,
    )
    design = st.design_variances(table, "A", "B")
    assert design is not None
    planned = st.plan(design, detect=0.05)
    assert planned.tasks_needed == 6
    assert (planned.mde is not None) is is_enough
    assert planned.reason == (None if is_enough else "zero_variance")
