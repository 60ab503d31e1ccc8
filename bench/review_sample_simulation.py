"""Estimates from a review sample: do ranges cover and ranks keep their level? A seeded simulation.

Each scenario draws benchmarks in which a judge graded everything and people reviewed a part that
chance chose, and asks the core behind the calibrated number for the mean of a candidate, the
difference of two equal ones, and ranks of five equal ones. Ranges must cover 93 to 97.5% for means
and pairs, and any false "better" among the five may appear in at most 6%. Ranges of scores of only
0 and 1 may cover up to 99%, as they do without a judge. "Width" is the median width of the range of
a difference over that of the reviewed trials alone. First a few benchmarks are put to the public
functions, which must agree. Exits 1 when a promise is broken.

    python bench/review_sample_simulation.py [--quick] [--seed 20241122]

Data. Verdicts of people are quantiles of a normal with 60% of the variance from the task, 20% from
task and candidate, 20% from the trial. "beta" has mean .67, "binary" is 0 or 1. The judge follows
another normal with the stated correlation and has a bias. "approved": the judge is right except in
a share of 1 minus the correlation of the trials, which people correct downwards. "rejected": people
reject one in five low trials, and the truth is the mean of those that they would keep. "strata":
tasks have four tags of different difficulty, and chance chose within tags. "families": four tasks
share a source.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special  # type: ignore[import-untyped]  # SciPy ships no types

from assay.statistics import partial_review
from assay.statistics.distributions import t_quantile, t_two_sided
from assay.statistics.intervals import logit_interval
from assay.statistics.multiplicity import holm
from assay.statistics.sampled_pairs import sampled_difference
from assay.statistics.sampled_review import (
    Influence,
    SampledMean,
    difference,
    influence,
    sampled_mean,
)

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]

COVERAGE, OF_BINARY, LEVEL = (0.93, 0.975), 0.99, 0.06
N_CANDIDATES = 5
FEWEST, FEWEST_BINARY = 10, 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One kind of benchmark, with `share` of its trials reviewed."""

    kind: str
    correlation: float
    n_tasks: int
    n_trials: int
    share: float

    @property
    def n_reviewed(self) -> int:
        return round(self.share * self.n_tasks * self.n_trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Verdicts, judge's scores and keeping, shape (benchmarks, candidates, trials); the sample,
    shape (benchmarks, trials).
    """

    human: Floats
    judge: Floats
    kept: Bools
    sampled: Bools
    stratum: Ints
    truth: float


def drawn(
    scenario: Scenario,
    n_benchmarks: int,
    rng: np.random.Generator,
    n_candidates: int = N_CANDIDATES,
) -> Drawn:
    """Draw benchmarks of equal candidates; the tags of the tasks are the same in all of them."""
    tasks, trials = scenario.n_tasks, scenario.n_trials
    tag = tags_of(scenario, rng)
    hard = rng.standard_normal((n_benchmarks, 1, tasks, 1))
    if scenario.kind == "families":
        shared = rng.standard_normal((n_benchmarks, 1, tasks // 4, 1)).repeat(4, axis=2)
        hard = np.sqrt(0.5) * shared + np.sqrt(0.5) * hard
    if scenario.kind == "strata":
        hard = 0.8 * (tag - 1.5)[None, None, :, None] / 1.118 + 0.6 * hard
    own = rng.standard_normal((n_benchmarks, n_candidates, tasks, 1))
    noise = rng.standard_normal((n_benchmarks, n_candidates, tasks, trials))
    at = np.sqrt(0.6) * hard + np.sqrt(0.2) * own + np.sqrt(0.2) * noise
    other = rng.standard_normal(at.shape)
    rho = scenario.correlation
    seen = rho * at + np.sqrt(1 - rho**2) * other
    # Quantiles are read from a table, because the exact function takes most of the time.
    grid = np.linspace(-6, 6, 2401)
    table = special.betaincinv(4.0, 2.0, special.ndtr(grid))
    kept = np.ones(at.shape, np.bool_)
    if scenario.kind == "binary":
        human, judge = (at > -0.6).astype(np.float64), (seen > -0.9).astype(np.float64)
    else:
        human = np.interp(at, grid, table)
        judge = np.interp(seen + 0.4, grid, table)
    if scenario.kind == "approved":
        changed = rng.random(at.shape) < 1 - rho
        judge = np.where(changed, np.clip(human + rng.uniform(0.05, 0.5, at.shape), 0, 1), human)
    if scenario.kind == "rejected":
        kept = ~((at < 0) & (rng.random(at.shape) < 0.2))
    flat = (n_benchmarks, n_candidates, tasks * trials)
    return Drawn(
        human=human.reshape(flat),
        judge=judge.reshape(flat),
        kept=kept.reshape(flat),
        sampled=chosen(scenario, n_benchmarks, np.repeat(tag, trials), rng),
        stratum=np.repeat(joined(scenario, tag), trials),
        truth=truth_of(scenario),
    )


def chosen(scenario: Scenario, n_benchmarks: int, stratum: Ints, rng: np.random.Generator) -> Bools:
    """Return the review samples: without replacement, among all trials or within the four tags."""
    n = scenario.n_tasks * scenario.n_trials
    order = rng.random((n_benchmarks, n))
    if scenario.kind != "strata":
        return np.asarray(order.argsort(axis=1).argsort(axis=1) < scenario.n_reviewed)
    sampled = np.zeros((n_benchmarks, n), np.bool_)
    for tag in range(4):
        mine = np.flatnonzero(stratum == tag)
        of_tag = order[:, mine].argsort(axis=1).argsort(axis=1) < max(
            round(scenario.share * len(mine)), 3
        )
        sampled[:, mine] = of_tag
    return sampled


def joined(scenario: Scenario, tag: Ints) -> Ints:
    """Return the stratum of each task: its tag, or one stratum for all tags with fewer than five
    reviewed tasks.
    """
    reviewed = np.array(
        [
            max(round(scenario.share * (tag == name).sum() * scenario.n_trials), 3)
            for name in range(4)
        ]
    )
    return np.unique(np.where(reviewed < 5, 4, np.arange(4))[tag], return_inverse=True)[1].reshape(
        -1
    )


def tags_of(scenario: Scenario, rng: np.random.Generator) -> Ints:
    """Return the tag of each task.

    They are drawn, since a fixed mix of tags would not be a sample of tasks like these.
    """
    return np.concatenate([np.repeat(np.arange(4), 3), rng.integers(0, 4, scenario.n_tasks - 12)])


def truth_of(scenario: Scenario) -> float:
    """Return the mean over new tasks, by numerical integration."""
    at = special.ndtri((np.arange(200_000) + 0.5) / 200_000)
    if scenario.kind == "binary":
        return float((at > -0.6).mean())
    if scenario.kind == "strata":  # a mixture of four normals with equal spread
        levels = np.sqrt(0.6) * 0.8 * (np.arange(4) - 1.5) / 1.118
        spread = np.sqrt(0.6 * 0.36 + 0.4)
        values = special.betaincinv(
            4.0, 2.0, special.ndtr(levels[:, None] + spread * at[None, ::20])
        )
        return float(values.mean())
    value = special.betaincinv(4.0, 2.0, special.ndtr(at))
    weight = np.where(at < 0, 0.8, 1.0) if scenario.kind == "rejected" else np.ones(at.size)
    return float((weight * value).sum() / weight.sum())


def parts_of(scenario: Scenario, benchmarks: Drawn) -> list[Influence]:
    n = scenario.n_tasks * scenario.n_trials
    unit = np.repeat(np.arange(scenario.n_tasks), scenario.n_trials)
    families = scenario.kind == "families"
    return [
        influence(
            benchmarks.judge[:, candidate],
            benchmarks.human[:, candidate],
            benchmarks.sampled,
            benchmarks.sampled & benchmarks.kept[:, candidate],
            np.ones(n),
            unit // 4 if families else unit,
            n_units=scenario.n_tasks // 4 if families else scenario.n_tasks,
            stratum=benchmarks.stratum if scenario.kind == "strata" else None,
            by_family=families,
        )
        for candidate in range(benchmarks.human.shape[1])
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table: shares of benchmarks, the mean weight of the judge, and the width
    against people alone.
    """

    covered: float
    covered_pair: float
    false_better: float
    lam: float
    width: float

    def broken(self, scenario: Scenario, slack: float) -> bool:
        """True if a promise is broken by more than the error of the simulation."""
        low, high = COVERAGE
        high = OF_BINARY if scenario.kind == "binary" else high
        covers = all(
            low - slack <= share <= high + slack for share in (self.covered, self.covered_pair)
        )
        return not covers or self.false_better > LEVEL + slack


def measured(scenario: Scenario, n_benchmarks: int, seed: int) -> Line:
    rng = np.random.default_rng(seed)
    parts_done: list[tuple[Floats, ...]] = []
    portions = 100 if scenario.kind == "strata" else 5
    for _ in range(portions):
        benchmarks = drawn(scenario, n_benchmarks // portions, rng)
        parts = parts_of(scenario, benchmarks)
        one = sampled_mean(parts[0])
        low, high = logit_interval(
            np.clip(one.estimate, 1e-9, 1 - 1e-9), np.sqrt(one.variance), one.df
        )
        covered = (low <= benchmarks.truth) & (benchmarks.truth <= high)
        pairs = [
            sampled_mean(difference(parts[a], parts[b]))
            for a, b in combinations(range(N_CANDIDATES), 2)
        ]
        p = np.stack([p_value(pair) for pair in pairs])
        alone = sampled_mean(difference(parts[0], parts[1]), lam=0.0)
        ratio = half_width(pairs[0]) / np.maximum(half_width(alone), 1e-12)
        # All candidates are equal, so that Holm errs exactly if its smallest p does.
        false_better = np.array([holm(column).min() <= 0.05 for column in p.T])
        parts_done.append(
            tuple(
                np.asarray(c, np.float64)
                for c in (covered, p[0] > 0.05, false_better, one.lam, ratio)
            )
        )
    columns = [np.concatenate(column) for column in zip(*parts_done, strict=True)]
    return Line(
        covered=float(columns[0].mean()),
        covered_pair=float(columns[1].mean()),
        false_better=float(columns[2].mean()),
        lam=float(columns[3].mean()),
        width=float(np.median(columns[4])),
    )


def half_width(mean: SampledMean) -> Floats:
    return np.asarray(t_quantile(0.975, mean.df) * np.sqrt(mean.variance))


def p_value(mean: SampledMean) -> Floats:
    std_err = np.sqrt(mean.variance)
    varied = std_err > 1e-12
    return np.where(
        varied, t_two_sided(mean.estimate / np.where(varied, std_err, 1.0), mean.df), 1.0
    )


def check_public_functions(seed: int) -> None:
    """Compare the public functions with the core."""
    scenario = Scenario(kind="rejected", correlation=0.7, n_tasks=40, n_trials=2, share=0.3)
    benchmarks = drawn(scenario, 5, np.random.default_rng(seed), n_candidates=2)
    parts = parts_of(scenario, benchmarks)
    core, pair = sampled_mean(parts[0]), sampled_mean(difference(*parts))
    task = np.repeat(np.arange(scenario.n_tasks), scenario.n_trials)
    for row in range(5):
        kept = benchmarks.sampled[row] & benchmarks.kept[row, 0]
        human = np.where(kept, benchmarks.human[row, 0], np.nan)
        answer = partial_review(
            task, benchmarks.judge[row, 0], human, random=True, sampled=benchmarks.sampled[row]
        ).calibrated
        assert answer.mean is not None
        assert abs(answer.mean - float(core.estimate[row])) < 1e-9
        alone = Drawn(
            human=benchmarks.human[row : row + 1],
            judge=benchmarks.judge[row : row + 1],
            kept=benchmarks.kept[row : row + 1],
            sampled=benchmarks.sampled[row : row + 1],
            stratum=benchmarks.stratum,
            truth=0.0,
        )
        # The public function takes one benchmark, whose arrays have no leading axis.
        single = [first_of(part) for part in parts_of(scenario, alone)]
        compared = sampled_difference(*single, n_tasks=scenario.n_tasks)
        assert compared.std_err is not None
        assert abs(compared.std_err - float(np.sqrt(pair.variance[row]))) < 1e-9


def first_of(part: Influence) -> Influence:
    values = {name: getattr(part, name) for name in part.__dataclass_fields__}
    return Influence(
        **{
            name: value[0] if isinstance(value, np.ndarray) else value
            for name, value in values.items()
        }
    )


def scenarios(*, quick: bool) -> Iterator[Scenario]:
    kinds = ("beta", "approved", "binary", "rejected", "strata", "families")
    for kind in kinds:
        for correlation in (0.7,) if quick else (0.3, 0.7, 0.9):
            for n_tasks, n_trials in (
                ((40, 1), (100, 3)) if quick else ((30, 3), (100, 1), (100, 3), (300, 1))
            ):
                for share in (0.3,) if quick else (0.1, 0.2, 0.5):
                    scenario = Scenario(
                        kind=kind,
                        correlation=correlation,
                        n_tasks=n_tasks // 4 * 4,
                        n_trials=n_trials,
                        share=share,
                    )
                    if scenario.n_reviewed >= (FEWEST_BINARY if kind == "binary" else FEWEST):
                        yield scenario


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer scenarios and benchmarks")
    parser.add_argument("--seed", type=int, default=20241122)
    options = parser.parse_args()
    n_benchmarks = 1_000 if options.quick else 3_000
    check_public_functions(options.seed)
    # Two standard errors of a share of 95% from so many benchmarks: with 180 lines, one and a half
    # would break some by chance.
    slack = 2 * (0.95 * 0.05 / n_benchmarks) ** 0.5
    print(
        "| scenario | tasks | trials | reviewed | mean covered | pair covered | any of 5 false | judge's weight | width |"
    )
    print("|" + " --- |" * 9)
    broken = 0
    for place, scenario in enumerate(scenarios(quick=options.quick)):
        line = measured(scenario, n_benchmarks, options.seed + place)
        mark = " BROKEN" if line.broken(scenario, slack) else ""
        broken += bool(mark)
        print(
            f"| {scenario.kind} {scenario.correlation} | {scenario.n_tasks} | {scenario.n_trials} | {scenario.n_reviewed} "
            f"| {line.covered:.3f} | {line.covered_pair:.3f} | {line.false_better:.3f} | {line.lam:.2f} | {line.width:.2f} |{mark}",
            flush=True,
        )
    print(f"\n{broken} promises broken." if broken else "\nAll promises hold.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
