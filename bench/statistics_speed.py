"""Speed of `assay.statistics` on a million rows, as ratios to a pandas group-by in the same
process.

Q is pandas' group-by on two integer columns with mean, variance and size over the same rows.
Everything is timed in interleaved rounds, so that a busy machine slows both sides of a ratio; the
median round counts. Exits 1 when a goal is missed.

    python bench/statistics_speed.py [--rows 1000000] [--rounds 7]
"""

import argparse
import gc
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # pandas ships no types

from assay.statistics import (
    Cells,
    ScoreTable,
    bradley_terry,
    kept_cells,
    krippendorff_alpha,
    report,
)
from assay.statistics.agreement import alpha_from_codes
from assay.statistics.preferences import bradley_terry_from_codes

N_TASKS, N_CANDIDATES = 1000, 10
IMPORT_GOAL = 4.0


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def works(
    rows: int,
) -> tuple[Callable[[], object], dict[str, tuple[Callable[[], object], float | None]]]:
    """The baseline, and each piece of work with its goal in units of the baseline (None: for
    information).
    """
    rng = np.random.default_rng(20240607)
    trials = max(rows // (N_TASKS * N_CANDIDATES), 1)
    task = np.repeat(np.arange(N_TASKS), N_CANDIDATES * trials)
    candidate = np.tile(np.repeat(np.arange(N_CANDIDATES), trials), N_TASKS)
    trial = np.tile(np.arange(trials), N_TASKS * N_CANDIDATES)
    score = np.clip(rng.normal(0.7 + 0.01 * candidate, 0.1), 0.0, 1.0)
    order = rng.permutation(task.size)
    task, candidate, trial, score = task[order], candidate[order], trial[order], score[order]
    frame = pd.DataFrame({"task": task, "candidate": candidate, "score": score})
    task_names = [f"suite/task-{code:04d}" for code in task]
    candidate_names = [f"provider/model-{code:02d}" for code in candidate]
    coded = ScoreTable.from_columns(task=task, candidate=candidate, trial=trial, score=score)
    cells = kept_cells(coded)

    def from_arrays(**more: object) -> object:
        columns = {"task": task, "candidate": candidate, "trial": trial, "score": score, **more}
        return report(ScoreTable.from_columns(**columns))  # type: ignore[arg-type]

    def from_strings() -> object:
        return report(
            ScoreTable.from_columns(
                task=task_names, candidate=candidate_names, trial=trial, score=score
            )
        )

    def from_codes() -> object:
        made = Cells.from_codes(task, candidate, score, n_tasks=N_TASKS, n_candidates=N_CANDIDATES)
        return report(made)

    def one_more() -> object:
        cells.add(int(rng.integers(N_TASKS)), int(rng.integers(N_CANDIDATES)), float(rng.random()))
        return report(cells)

    left = rng.integers(0, N_CANDIDATES, rows)
    right = (left + rng.integers(1, N_CANDIDATES, rows)) % N_CANDIDATES
    points = rng.integers(0, 3, rows)
    unit = rng.integers(0, rows // 3, rows)
    rating = rng.random(rows)
    return lambda: frame.groupby(["task", "candidate"])["score"].agg(["mean", "var", "size"]), {
        "whole report from coded arrays, as cells": (from_codes, 0.5),
        "whole report from coded arrays, as a table": (from_arrays, 0.5),
        "whole report from a table of joint trials": (lambda: from_arrays(joint=True), 0.5),
        "whole report from string labels": (from_strings, 4.0),
        "report after one more approval": (one_more, 0.05),
        "Bradley-Terry with clustered intervals, coded": (
            lambda: bradley_terry_from_codes(
                left, right, points, n_items=N_CANDIDATES, task=task, n_tasks=N_TASKS
            ).contrast(0, 1),
            0.8,
        ),
        "Bradley-Terry with clustered intervals, labels": (
            lambda: bradley_terry(left, right, points / 2, task=task).contrast(0, 1),
            0.8,
        ),
        "Krippendorff's alpha, coded": (
            lambda: alpha_from_codes(unit, rating, n_units=rows // 3),
            0.6,
        ),
        "Krippendorff's alpha, labels": (lambda: krippendorff_alpha(unit, rating), 0.6),
    }


def import_ratio(rounds: int) -> float:
    """Median time of a fresh interpreter importing the room, over one importing NumPy, both less a
    bare start.
    """

    def start(statement: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", statement], check=True))

    ratios = []
    for _ in range(rounds):
        bare, numpy_alone, ours = (
            start(statement) for statement in ("pass", "import numpy", "import assay.statistics")
        )
        ratios.append((ours - bare) / (numpy_alone - bare))
    return median(ratios)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    baseline, pieces = works(options.rows)
    for work in (baseline, *(work for work, _ in pieces.values())):
        work()
    gc.collect()
    ratios: dict[str, list[float]] = {name: [] for name in pieces}
    q_ms = []
    for _ in range(options.rounds):
        for name, (work, _) in pieces.items():
            q = seconds(baseline)
            q_ms.append(1000 * q)
            ratios[name].append(seconds(work) / q)
    missed = False
    print(f"| {options.rows} rows, Q = {median(q_ms):.1f} ms | median / Q | range | goal |")
    print("| --- | --- | --- | --- |")
    for name, (_, goal) in pieces.items():
        measured = ratios[name]
        missed |= goal is not None and median(measured) > goal
        print(
            f"| {name} | {median(measured):.3f} | {min(measured):.3f} to {max(measured):.3f} | {goal} |"
        )
    ratio = import_ratio(options.rounds)
    missed |= ratio > IMPORT_GOAL
    print(f"| import, over that of NumPy | {ratio:.2f} | | {IMPORT_GOAL} |")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
