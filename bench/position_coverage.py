"""Do the ranges of position effects cover: a seeded simulation over sizes, and over kinds of
scores.

Each benchmark draws candidates of different ability that are better at some tasks than at others,
tasks that react to positions differently, and orders as judges see them. From 6 tasks on, ranges
must cover 93 to 97.5%. Exits 1 if they do not.

    python bench/position_coverage.py [--draws 4000]
"""

import argparse
import sys

import numpy as np
from numpy.typing import NDArray

from assay.scoring.blinding import shown_order
from assay.statistics.positions import position_effects

SIZES = (
    (6, 1, 2),
    (6, 2, 2),
    (6, 3, 3),
    (6, 5, 4),
    (8, 1, 3),
    (10, 1, 2),
    (12, 3, 4),
    (30, 1, 2),
    (30, 5, 3),
)
KINDS = ("normal", "uneven", "binary", "ceiling")
BAND = (0.93, 0.975)


def benchmark(
    rng: np.random.Generator, kind: str, size: tuple[int, int, int], effect: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scores, and rows of (position, candidate, sitting, task)."""
    tasks, trials, count = size
    ability = rng.normal(0, 0.1, count)
    rows, scores = [], []
    for task in range(tasks):
        own = 0.6 + rng.normal(0, 0.15) + rng.normal(0, 0.15, count) + ability
        moved = rng.normal(0, 0.05, count) if kind == "uneven" else np.zeros(count)
        moved += effect - moved.mean()
        seed = int(rng.integers(2**31))
        for turn in range(trials):
            shift = rng.normal(0, 0.05)
            for place, name in enumerate(
                shown_order([str(n) for n in range(count)], seed=seed, turn=turn)
            ):
                mean = own[int(name)] + shift + moved[place]
                score = mean + rng.normal(0, 0.07)
                if kind == "binary":
                    score = float(rng.random() < mean)
                rows.append((place + 1, int(name), task * trials + turn, task))
                scores.append(min(score, 1.0) if kind == "ceiling" else score)
    return np.array(scores), np.array(rows)


def coverage(kind: str, size: tuple[int, int, int], draws: int) -> tuple[float, float]:
    """Return the share of ranges that hold the true effect of position 1, and the share of
    benchmarks with a range.
    """
    rng = np.random.default_rng(20240607)
    effect = np.linspace(0.03, -0.03, size[2]) * (kind in ("normal", "uneven"))
    covered = ranges = 0
    for _ in range(draws):
        scores, rows = benchmark(rng, kind, size, effect)
        position, candidate, grading, task = rows.T
        first = position_effects(
            scores, position=position, candidate=candidate, grading=grading, task=task
        )[0]
        if first.ci95 is not None:
            ranges += 1
            covered += first.ci95[0] <= effect[0] <= first.ci95[1]
    return covered / ranges, ranges / draws


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4000)
    draws = parser.parse_args().draws
    slack = 2 * (0.05 * 0.95 / draws) ** 0.5
    broken = 0
    print(
        "| scores | tasks x trials x candidates | covered | with a range |\n| --- | --- | --- | --- |"
    )
    for kind in KINDS:
        for size in SIZES:
            covered, answered = coverage(kind, size, draws)
            broken += not BAND[0] - slack <= covered <= BAND[1] + slack
            print(
                f"| {kind} | {'x'.join(map(str, size))} | {covered:.3f} | {answered:.3f} |",
                flush=True,
            )
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
