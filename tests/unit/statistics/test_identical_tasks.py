"""The warning about tasks that were entered several times."""

import numpy as np
import pytest

from assay.statistics import ScoreTable, compare, estimate, rank
from assay.statistics.identical_tasks import identical_tasks


def of_columns(columns: np.ndarray, **more: object) -> ScoreTable:
    """A table of one trial per cell from scores of shape (candidates, tasks) or (candidates, tasks,
    trials).
    """
    scores = columns[..., None] if columns.ndim == 2 else columns
    candidate, task, trial = (axis.reshape(-1) for axis in np.indices(scores.shape))
    return ScoreTable.from_columns(
        task=task,
        candidate=candidate,
        trial=trial,
        score=scores.reshape(-1),
        **more,  # type: ignore[arg-type]  # keywords passed through
    )


def codes(result: object) -> list[str]:
    return [warning.code for warning in result.warnings]  # type: ignore[attr-defined]  # estimates, comparisons and rankings


def test_six_tasks_entered_ten_times_are_noticed_by_every_function() -> None:
    scores = np.tile(np.random.default_rng(4).random((3, 6)), 10)
    table = of_columns(scores)
    assert "identical_tasks" in codes(compare(table, 0, 1))
    assert "identical_tasks" in codes(rank(table))
    assert "identical_tasks" in codes(estimate(table, 0))
    once = of_columns(scores[:, :6])
    assert "identical_tasks" not in codes(compare(once, 0, 1))


def test_copies_are_noticed_in_scores_of_ten_points_and_in_another_order() -> None:
    rng = np.random.default_rng(8)
    scores = np.tile(rng.integers(4, 11, (4, 12)) / 10, 5)
    assert identical_tasks(of_columns(scores[:, rng.permutation(60)]).cells)


def test_copies_beside_single_tasks_are_not_called_copies_of_all() -> None:
    rng = np.random.default_rng(9)
    scores = np.hstack([np.repeat(rng.random((2, 2)), 3, axis=1), rng.random((2, 30))])
    assert not identical_tasks(of_columns(scores).cells)


def test_candidates_that_agree_everywhere_are_no_sign_of_copies() -> None:
    scores = np.random.default_rng(10).integers(0, 11, 60) / 10
    assert not identical_tasks(of_columns(np.vstack([scores, scores])).cells)


@pytest.mark.parametrize("kind", ["yes or no", "three trials", "ten points", "near the ceiling"])
@pytest.mark.parametrize("candidates", [2, 4])
def test_different_tasks_seldom_look_like_copies(kind: str, candidates: int) -> None:
    rng = np.random.default_rng(2028)
    warned = 0
    for _ in range(200):
        hard = rng.normal(0, 1.5, 60)[None, :, None] + rng.normal(0, 0.3, (candidates, 60, 1))
        share = 1 / (1 + np.exp(-hard - (3.0 if kind == "near the ceiling" else 0.5)))
        trials = 3 if kind == "three trials" else 1
        scores = (rng.random((candidates, 60, trials)) < share).astype(float)
        if kind == "ten points":
            scores = np.round(np.clip(share + rng.normal(0, 0.1, share.shape), 0, 1), 1)
        warned += bool(identical_tasks(of_columns(scores).cells))
    assert warned <= 2, f"{warned} of 200 benchmarks"
