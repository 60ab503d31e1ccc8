"""Effects of positions against least squares with every dummy written out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg, stats  # type: ignore[import-untyped]  # SciPy ships no types

from assay.scoring.blinding import shown_order
from assay.statistics.positions import position_effects

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def design(
    rng: np.random.Generator, *, tasks: int, trials: int, count: int, effect: float
) -> tuple[Floats, Ints]:
    """Scores, and rows of (position, candidate, sitting, task)."""
    ability, rows, scores = rng.normal(0, 0.1, count), [], []
    for task in range(tasks):
        own = rng.normal(0, 0.15, count)
        seed = int(rng.integers(2**31))
        for turn in range(trials):
            for place, name in enumerate(
                shown_order([str(n) for n in range(count)], seed=seed, turn=turn)
            ):
                candidate = int(name)
                rows.append((place + 1, candidate, task * trials + turn, task))
                bias = effect * (place == 0) - effect * (place == count - 1)
                scores.append(
                    0.5 + ability[candidate] + own[candidate] + bias + rng.normal(0, 0.05)
                )
    return np.array(scores), np.array(rows)


def effects(scores: Floats, rows: Ints) -> list[tuple[float | None, tuple[float, float] | None]]:
    position, candidate, sitting, task = rows.T
    result = position_effects(
        scores, position=position, candidate=candidate, sitting=sitting, task=task
    )
    return [(effect.effect, effect.ci95) for effect in result]


def by_dummies(scores: Floats, rows: Ints) -> list[tuple[float, tuple[float, float]]]:
    """The same from a matrix of dummies, whole hat matrices and matrix square roots."""
    position, candidate, sitting, task = rows.T
    last = int(position.max())
    wanted = np.column_stack([(position == p) * 1.0 - (position == last) for p in range(1, last)])
    names = np.column_stack([candidate == c for c in range(1, candidate.max() + 1)]) * 1.0
    sittings = np.column_stack([sitting == s for s in range(sitting.max() + 1)]) * 1.0
    clean = np.eye(len(scores)) - sittings @ np.linalg.pinv(sittings)
    x = clean @ np.column_stack((wanted, names))
    bread = np.linalg.inv(x.T @ x)
    beta = bread @ x.T @ scores
    rest = clean - x @ bread @ x.T
    residual = clean @ scores - x @ beta
    adjusted = np.zeros((len(scores), x.shape[1]))
    for code in np.unique(task):
        mine = np.flatnonzero(task == code)
        inner = np.eye(len(mine)) - x[mine] @ bread @ x[mine].T
        adjusted[mine] = np.real(linalg.inv(linalg.sqrtm(inner))) @ x[mine]
    results = []
    for place in range(last):
        contrast = np.zeros(x.shape[1])
        contrast[: last - 1] = np.eye(last - 1)[place] if place < last - 1 else -1.0
        per_task = [
            adjusted * (task == code)[:, None] @ bread @ contrast for code in np.unique(task)
        ]
        spread = np.array([[(rest @ g) @ (rest @ h) for h in per_task] for g in per_task])
        df = np.trace(spread) ** 2 / np.sum(spread * spread)
        half = stats.t.ppf(0.975, df) * np.sqrt(sum(float(g @ residual) ** 2 for g in per_task))
        value = float(contrast @ beta)
        results.append((value, (value - half, value + half)))
    return results


@pytest.mark.parametrize(("tasks", "trials", "count"), [(6, 2, 2), (8, 3, 3), (7, 5, 4), (9, 1, 3)])
def test_effects_equal_those_of_all_dummies_written_out(
    tasks: int, trials: int, count: int
) -> None:
    scores, rows = design(
        np.random.default_rng(5), tasks=tasks, trials=trials, count=count, effect=0.05
    )
    for ours, theirs in zip(effects(scores, rows), by_dummies(scores, rows), strict=True):
        assert ours[0] == pytest.approx(theirs[0], abs=1e-9)
        assert ours[1] == pytest.approx(theirs[1], abs=1e-9)


def test_a_balanced_effect_is_a_mean_less_the_candidates_means() -> None:
    scores, rows = design(np.random.default_rng(6), tasks=6, trials=6, count=3, effect=0.1)
    means = np.array([scores[rows[:, 1] == candidate].mean() for candidate in range(3)])
    expected = [(scores - means[rows[:, 1]])[rows[:, 0] == place].mean() for place in (1, 2, 3)]
    assert [effect for effect, _ in effects(scores, rows)] == pytest.approx(expected)


def test_a_fixed_order_is_confounded_and_few_tasks_have_no_range() -> None:
    rows = np.array(
        [(place, place - 1, sitting, sitting) for sitting in range(8) for place in (1, 2)]
    )
    scores = np.random.default_rng(1).random(len(rows))
    assert effects(scores, rows) == [(None, None), (None, None)]
    scores, rows = design(np.random.default_rng(2), tasks=4, trials=4, count=2, effect=0.1)
    assert [ci95 for _, ci95 in effects(scores, rows)] == [None, None]
    alone = np.column_stack(
        (np.ones(5, np.int64), np.zeros(5, np.int64), np.arange(5), np.arange(5))
    )
    assert effects(np.ones(5), alone) == []


def test_one_task_that_alone_swaps_the_order_gives_no_range() -> None:
    rows = np.array(
        [
            (place if task else 3 - place, place - 1, task, task)
            for task in range(8)
            for place in (1, 2)
        ]
    )
    scores = np.random.default_rng(3).random(len(rows))
    assert all(effect is not None and ci95 is None for effect, ci95 in effects(scores, rows))


@pytest.mark.parametrize(("tasks", "trials", "count"), [(6, 2, 2), (8, 1, 3), (12, 3, 3)])
def test_ranges_cover_the_true_effect(tasks: int, trials: int, count: int) -> None:
    rng = np.random.default_rng(20240607)
    covered = asked = 0
    for _ in range(400):
        scores, rows = design(rng, tasks=tasks, trials=trials, count=count, effect=0.04)
        _, ci95 = effects(scores, rows)[0]
        asked += ci95 is not None
        covered += ci95 is not None and ci95[0] <= 0.04 <= ci95[1]
    # 400 draws put a true 93% at 90.4% with probability 2.5%; bench/position_coverage.py holds the
    # narrow band.
    assert covered / asked > 0.904


def test_ranges_cover_the_true_effect_if_tasks_share_families() -> None:
    rng = np.random.default_rng(20240608)
    covered = {True: 0, False: 0}
    for _ in range(400):
        scores, rows = design(rng, tasks=48, trials=1, count=2, effect=0.0)
        position, candidate, sitting, task = rows.T
        family = task // 6
        liking = rng.normal(0, 0.1, (8, 2))  # tasks of a family react alike to positions
        scores = scores + liking[family, position - 1]
        columns = {"position": position, "candidate": candidate, "sitting": sitting, "task": task}
        for counted in covered:
            ci95 = position_effects(scores, **columns, family=family if counted else None)[0].ci95
            covered[counted] += ci95 is not None and ci95[0] <= 0.0 <= ci95[1]
    assert covered[True] / 400 > 0.904
    assert covered[False] / 400 < 0.9


def test_five_families_are_too_few_for_a_range() -> None:
    scores, rows = design(np.random.default_rng(4), tasks=30, trials=2, count=2, effect=0.1)
    position, candidate, sitting, task = rows.T
    result = position_effects(
        scores, position=position, candidate=candidate, sitting=sitting, task=task, family=task // 6
    )
    assert [(effect.reason, effect.n_tasks) for effect in result] == [("few_tasks", 30)] * 2
