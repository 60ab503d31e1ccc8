"""How often `assay gate` calls an unchanged bot worse, and how often it finds a bot that lost 15
points.

A bot answers 60 questions once in the baseline and once in the new run. Questions differ in how
hard they are, and every answer is drawn anew. Yes-or-no scores are 0 or 1; graded scores have 11
levels around the question's own value. Exits 1 if an unchanged bot is called worse in more than 5%
of the reruns, or a loss of 15 points is found in less than 80% with graded scores. With yes-or-no
scores, 60 questions of one trial find it in about half of the reruns; `--questions 120` finds it in
80%.

    python bench/gate_simulation.py [--reruns 200] [--seed 28]
"""

import argparse
import sys
from collections import Counter

import numpy as np

from assay.app.statistics.results import gate_outcome
from assay.statistics import ScoreTable, compare
from assay.statistics.arrays import Floats

QUESTIONS, MARGIN, LOSS = 60, 0.05, 0.15


def yes_or_no(quality: Floats, rng: np.random.Generator) -> Floats:
    return (rng.random(quality.size) < quality).astype(np.float64)


def graded(quality: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(
        np.round(np.clip(quality + rng.normal(0, 0.12, quality.size), 0, 1), 1), np.float64
    )


def gated(new: Floats, old: Floats) -> str:
    n = new.size
    table = ScoreTable.from_columns(
        task=list(range(n)) * 2,
        candidate=["new"] * n + ["old"] * n,
        trial=[1] * 2 * n,
        score=np.concatenate([new, old]),
    )
    return gate_outcome(compare(table, "new", "old", None, MARGIN), MARGIN)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reruns", type=int, default=200)
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    options = parser.parse_args()
    kept = True
    for name, draw in (("yes-or-no", yes_or_no), ("graded", graded)):
        for loss in (0.0, LOSS):
            rng = np.random.default_rng(options.seed)
            outcomes: Counter[str] = Counter()
            for _ in range(options.reruns):
                # Most questions are nearly always right or nearly always wrong, as in benchmarks of
                # real bots.
                quality = np.clip(rng.beta(2.4, 0.6, options.questions), 0.0, 1.0)
                outcomes[
                    gated(draw(np.clip(quality - loss, 0.0, 1.0), rng), draw(quality, rng))
                ] += 1
            share = outcomes["worse"] / options.reruns
            print(f"{name:10} loss {100 * loss:4.0f} points: worse {share:6.1%}, {dict(outcomes)}")
            kept &= share <= 0.05 if loss == 0 else share >= 0.8 or name == "yes-or-no"
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
