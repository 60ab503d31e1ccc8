"""Do the intervals cover and do the tests keep their level: a seeded simulation, beside the naive
methods.

Each scenario draws 10,000 benchmarks with a known truth and asks the array core behind `estimate`
and `compare` for all of them at once; the first few are also put to the public functions, which
must give the same numbers. A scenario with a promise must cover 93 to 97.5% and reject a true null
at most 6%; where discreteness or one dominant task makes that impossible for any method known to
us, the row is for information. Exits 1 when a promise is broken.

    python bench/statistics_simulation.py [--quick] [--output FILE] [--seed 20240607]

Data. "beta": task means Beta with mean .75 and sd .18, trials Beta around them with sd about .08.
"ceiling": a trial scores 1 with a task's own probability (mean .65; "near-ceiling" .85), else
Beta(8, 2). "binary": 0 or 1 with the task mean as probability. Candidates share their task
difficulties ("no interaction") or correlate .85 through a Gaussian copula ("interaction"). 10x5 is
10 tasks of 5 trials. "W": weights 1, ..., 1, 5, 5, 10. Joint trials: normal noise with the stated
correlation.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special  # type: ignore[import-untyped]  # SciPy ships no types

from assay.statistics import ScoreTable, compare, estimate
from assay.statistics.intervals import identical_interval, logit_interval, trial_intervals
from assay.statistics.standard_error import across_tasks, satterthwaite, shares_of, within_tasks

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Bounds: TypeAlias = tuple[Floats, Floats]

COVERAGE, LEVEL = (0.93, 0.975), 0.06
Z = 1.959963984540054
AGREEING = 25
MARKS = ("<!-- simulation: begin -->", "<!-- simulation: end -->")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Benchmarks of one candidate: scores of shape (benchmarks, tasks, trials), counted ones, and
    true task means.
    """

    score: Floats
    counted: Bools
    truth: Floats
    population: float

    def moments(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """n, mean, M2, smallest and largest score, each of shape (benchmarks, tasks)."""
        n = self.counted.sum(axis=2).astype(np.float64)
        mean = np.where(self.counted, self.score, 0.0).sum(axis=2) / np.maximum(n, 1)
        low = np.where(self.counted, self.score, np.inf).min(axis=2)
        high = np.where(self.counted, self.score, -np.inf).max(axis=2)
        same = (low == high) & (n > 0)
        mean = np.where(same, low, mean)
        m2 = (np.where(self.counted, self.score - mean[:, :, None], 0.0) ** 2).sum(axis=2)
        empty = n == 0
        return (
            n,
            mean,
            np.where(same, 0.0, m2),
            np.where(empty, 0.0, low),
            np.where(empty, 0.0, high),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table: a method in a scenario.

    `promised`: ours, in a scenario where the band is held.
    """

    question: str
    scenario: str
    method: str
    covered: float
    rejected: float | None
    answered: float
    width: float
    promised: bool

    def broken(self, slack: float) -> bool:
        outside = not COVERAGE[0] - slack <= self.covered <= COVERAGE[1] + slack
        return self.promised and (
            outside or (self.rejected is not None and self.rejected > LEVEL + slack)
        )


# ---- data
# --------------------------------------------------------------------------------------------------


def beta_parameters(mean: float, sd: float) -> tuple[float, float]:
    size = mean * (1 - mean) / sd**2 - 1
    return mean * size, (1 - mean) * size


def beta_quantiles(mean: float, sd: float, normal: Floats) -> Floats:
    """Beta quantiles at Φ(normal), from a fine table: the exact ones would take most of the run."""
    grid = np.linspace(-6, 6, 4801)
    return np.asarray(
        np.interp(normal, grid, special.betaincinv(*beta_parameters(mean, sd), special.ndtr(grid)))
    )


def trials(kind: str, task_mean: Floats, n: int, rng: np.random.Generator) -> Floats:
    shape = (*task_mean.shape, n)
    centre = np.broadcast_to(task_mean[:, :, None], shape)
    if kind == "binary":
        return (rng.random(shape) < centre).astype(np.float64)
    if kind.endswith("ceiling"):
        return np.where(rng.random(shape) < centre, 1.0, rng.beta(8.0, 2.0, shape))
    inside = np.clip(centre, 1e-6, 1 - 1e-6)
    return rng.beta(23.2 * inside, 23.2 * (1 - inside))


def true_means(kind: str, task_mean: Floats) -> Floats:
    return task_mean + (1 - task_mean) * 0.8 if kind.endswith("ceiling") else task_mean


def candidates(
    kind: str,
    size: tuple[int, int, int],
    rng: np.random.Generator,
    *,
    correlation: float,
    rejected: float = 0.0,
) -> tuple[Draw, Draw]:
    """Two candidates equal over the population of tasks; their task means correlate through a
    Gaussian copula.
    """
    benchmarks, tasks, n = size
    average = {"ceiling": 0.65, "near-ceiling": 0.85}.get(kind, 0.75)
    common, own = rng.standard_normal((2, benchmarks, tasks))
    other = correlation * common + np.sqrt(1 - correlation**2) * own
    draws = []
    for normal in (common, other):
        task_mean = beta_quantiles(average, 0.18, normal)
        score = trials(kind, task_mean, n, rng)
        truth = true_means(kind, task_mean)
        population = float(true_means(kind, np.array(average)))
        counted = rng.random(score.shape) >= rejected
        draws.append(Draw(score=score, counted=counted, truth=truth, population=population))
    return draws[0], draws[1]


def joint_candidates(
    size: tuple[int, int, int], rng: np.random.Generator, *, correlation: float, interaction: float
) -> tuple[Draw, Draw]:
    """Jointly graded trials: normal noise of sd .06 that correlates between the two within a
    trial.
    """
    benchmarks, tasks, n = size
    base = rng.uniform(0.45, 0.65, (benchmarks, tasks))
    shift = (
        rng.normal(0.0, interaction, (benchmarks, tasks))
        if interaction
        else np.zeros((benchmarks, tasks))
    )
    noise = rng.standard_normal((2, benchmarks, tasks, n))
    noise[1] = correlation * noise[0] + np.sqrt(1 - correlation**2) * noise[1]
    draws = []
    for sign, side in ((0.5, noise[0]), (-0.5, noise[1])):
        truth = base + sign * shift
        score = np.clip(truth[:, :, None] + 0.06 * side, 0.0, 1.0)
        everywhere = np.ones(score.shape, np.bool_)
        draws.append(Draw(score=score, counted=everywhere, truth=truth, population=0.55))
    return draws[0], draws[1]


def heavy_weights(tasks: int) -> Floats:
    weights = np.ones(tasks)
    weights[-3:] = (5.0, 5.0, 10.0)
    return weights


# ---- methods
# --------------------------------------------------------------------------------------------------


def t_quantile(df: Floats | float) -> Floats:
    return np.asarray(special.stdtrit(df, 0.975))


def around(centre: Floats, std_err: Floats, factor: Floats | float) -> Bounds:
    return centre - factor * std_err, centre + factor * std_err


def flat(draw: Draw) -> tuple[Floats, Floats, Floats]:
    """Count, mean and variance of all counted trials, tasks ignored."""
    n = draw.counted.sum(axis=(1, 2)).astype(np.float64)
    mean = np.where(draw.counted, draw.score, 0.0).sum(axis=(1, 2)) / n
    off = np.where(draw.counted, draw.score - mean[:, None, None], 0.0)
    return n, mean, (off**2).sum(axis=(1, 2)) / (n - 1)


def run_means(draw: Draw, share: Floats) -> Floats:
    """Weighted mean of the tasks of each run (trial k of every task): shape (benchmarks,
    trials).
    """
    weight = draw.counted * share[:, :, None]
    total = weight.sum(axis=1)
    return np.asarray(
        (weight * np.where(draw.counted, draw.score, 0.0)).sum(axis=1) / np.maximum(total, 1e-9)
    )


def mean_like_these(draw: Draw, weights: Floats) -> Iterator[tuple[str, Bounds, Bools]]:
    """The recommended interval first, then naive ones; with the benchmarks in which the method
    answers.
    """
    n, mean, _, _, _ = draw.moments()
    across = across_tasks(mean, np.where(n > 0, weights, 0.0))
    std_err = np.sqrt(across.variance)
    low, high = logit_interval(across.estimate, std_err, across.df)
    same = identical_interval(np.clip(across.estimate, 0, 1), across.n_tasks)
    ours = (np.where(across.constant, same[0], low), np.where(across.constant, same[1], high))
    yield "CR2, Kish df, logit (ours)", ours, across.n_tasks >= 2
    share = shares_of(np.where(n > 0, weights, 0.0))
    count, flat_mean, flat_variance = flat(draw)
    everywhere = np.ones(count.shape, np.bool_)
    yield "z on all trials", around(flat_mean, np.sqrt(flat_variance / count), Z), everywhere
    runs = run_means(draw, share)
    yield (
        "z on run means",
        around(runs.mean(axis=1), runs.std(axis=1, ddof=1) / np.sqrt(runs.shape[1]), Z),
        everywhere,
    )
    cr1 = cr1_error(mean, across.estimate, share, across.n_tasks)
    yield "CR1, z", around(across.estimate, cr1, Z), everywhere
    yield (
        "CR1, t(G-1)",
        around(across.estimate, cr1, t_quantile(np.maximum(across.n_tasks - 1, 1))),
        everywhere,
    )


def cr1_error(values: Floats, centre: Floats, share: Floats, n_tasks: Floats) -> Floats:
    off = share * (values - centre[:, None])
    return np.asarray(np.sqrt((off**2).sum(axis=1) * n_tasks / np.maximum(n_tasks - 1, 1)))


def mean_these(draw: Draw, weights: Floats) -> Iterator[tuple[str, Bounds, Bools]]:
    n, mean, m2, low, high = draw.moments()
    share = shares_of(np.where(n > 0, weights, 0.0))
    if n.shape[1] == 1:
        intervals = trial_intervals(n[:, 0], mean[:, 0], m2[:, 0], low[:, 0], high[:, 0])
        yield "logit t, Wilson, bounded (ours)", (intervals.low, intervals.high), n[:, 0] >= 2
        error = np.sqrt(m2[:, 0] / np.maximum(n[:, 0] - 1, 1) / n[:, 0])
        yield "z on trials", around(mean[:, 0], error, Z), n[:, 0] >= 2
        yield "t on trials", around(mean[:, 0], error, t_quantile(n[:, 0] - 1)), n[:, 0] >= 2
        return
    centre = (share * mean).sum(axis=1)
    noise = within_tasks(n, m2, share)
    std_err = np.sqrt(noise.variance)
    df = satterthwaite(noise.variance, noise.df_denominator)
    answered = noise.known & ~noise.constant
    yield "stratified t, logit (ours)", logit_interval(centre, std_err, df), answered
    yield "stratified t, plain", around(centre, std_err, t_quantile(df)), answered
    count, flat_mean, flat_variance = flat(draw)
    yield "z on all trials", around(flat_mean, np.sqrt(flat_variance / count), Z), answered
    runs = run_means(draw, share)
    error = runs.std(axis=1, ddof=1) / np.sqrt(runs.shape[1])
    yield "z on run means", around(runs.mean(axis=1), error, Z), answered


def difference_like_these(a: Draw, b: Draw, weights: Floats) -> Iterator[tuple[str, Bounds, Bools]]:
    (n_a, mean_a, _, _, _), (n_b, mean_b, _, _, _) = a.moments(), b.moments()
    used = np.where((n_a > 0) & (n_b > 0), weights, 0.0)
    across = across_tasks(mean_a - mean_b, used)
    answered = (across.n_tasks >= 2) & ~across.constant
    yield (
        "paired, CR2, Kish df (ours)",
        around(across.estimate, np.sqrt(across.variance), t_quantile(across.df)),
        answered,
    )
    share = shares_of(used)
    cr1 = cr1_error(mean_a - mean_b, across.estimate, share, across.n_tasks)
    yield "paired, CR1, z", around(across.estimate, cr1, Z), answered
    yield from naive_differences(a, b, share, answered)


def naive_differences(
    a: Draw, b: Draw, share: Floats, answered: Bools
) -> Iterator[tuple[str, Bounds, Bools]]:
    (count_a, flat_a, var_a), (count_b, flat_b, var_b) = flat(a), flat(b)
    error = np.sqrt(var_a / count_a + var_b / count_b)
    yield "z on all trials", around(flat_a - flat_b, error, Z), answered
    runs_a, runs_b = run_means(a, share), run_means(b, share)
    k = runs_a.shape[1]
    if k > 1:
        pooled = np.sqrt((runs_a.var(axis=1, ddof=1) + runs_b.var(axis=1, ddof=1)) / k)
        centre = runs_a.mean(axis=1) - runs_b.mean(axis=1)
        yield "pooled t on run means", around(centre, pooled, t_quantile(2.0 * k - 2)), answered


def difference_these(
    a: Draw, b: Draw, weights: Floats, *, joint: bool
) -> Iterator[tuple[str, Bounds, Bools]]:
    (n_a, mean_a, m2_a, _, _), (n_b, mean_b, m2_b, _, _) = a.moments(), b.moments()
    share = shares_of(np.where((n_a > 0) & (n_b > 0), weights, 0.0))
    centre = (share * (mean_a - mean_b)).sum(axis=1)
    apart = [within_tasks(n_a, m2_a, share), within_tasks(n_b, m2_b, share)]
    d = a.score - b.score
    m2_d = ((d - d.mean(axis=2, keepdims=True)) ** 2).sum(axis=2)
    together = [within_tasks(n_a, m2_d, share)]
    for name, noise in (
        (
            "paired by trial (ours)" if joint else "Welch, stratified t (ours)",
            together if joint else apart,
        ),
        ("Welch, stratified t" if joint else "", apart if joint else []),
    ):
        if noise:
            variance = np.sum([side.variance for side in noise], axis=0)
            df = satterthwaite(variance, np.sum([side.df_denominator for side in noise], axis=0))
            known = np.logical_and.reduce([side.known for side in noise])
            varied = ~np.logical_and.reduce([side.constant for side in noise])
            yield name, around(centre, np.sqrt(variance), t_quantile(df)), known & varied
    yield from naive_differences(a, b, share, share.sum(axis=1) > 0)


# ---- scenarios
# --------------------------------------------------------------------------------------------------


def judged(
    question: str,
    scenario: str,
    methods: Iterator[tuple[str, Bounds, Bools]],
    truth: Floats | float,
    *,
    promised: bool,
    null: bool = False,
) -> Iterator[Row]:
    for method, (low, high), answered in methods:
        inside = ((low <= truth) & (truth <= high))[answered]
        zero_out = ~((low <= 0) & (high >= 0))
        yield Row(
            question=question,
            scenario=scenario,
            method=method,
            covered=float(inside.mean()),
            # A benchmark without an answer rejects nothing.
            rejected=float((zero_out & answered).mean()) if null else None,
            answered=float(answered.mean()),
            width=float(np.median((high - low)[answered])),
            promised=promised and method.endswith("(ours)"),
        )


SIZES = {
    "10x5": (10, 5, 0.0, False),
    "50x3": (50, 3, 0.0, False),
    "2x5": (2, 5, 0.0, False),
    "3x5": (3, 5, 0.0, False),
    "5x5": (5, 5, 0.0, False),
    "10x5, 30% rejected": (10, 5, 0.3, False),
    "10x5 W": (10, 5, 0.0, True),
    "50x3 W": (50, 3, 0.0, True),
    "10x3": (10, 3, 0.0, False),
}
PLAN = (
    *(("beta", size) for size in SIZES),
    *(("ceiling", size) for size in ("10x5", "50x3", "10x5 W")),
    *(("binary", size) for size in ("10x5", "50x3")),
    *(("near-ceiling", size) for size in ("10x3", "3x5")),
)


def over_tasks(benchmarks: int, seed: int) -> Iterator[Row]:
    for place, (kind, name) in enumerate(PLAN):
        tasks, n, rejected, heavy = SIZES[name]
        weights = heavy_weights(tasks) if heavy else np.ones(tasks)
        rng = np.random.default_rng([seed, 1, place])
        a, b = candidates(kind, (benchmarks, tasks, n), rng, correlation=0.85, rejected=rejected)
        scenario, promised = f"{kind} {name}", kind != "near-ceiling"
        agree(a, b, weights, joint=False)
        share = shares_of(np.where(a.counted.any(axis=2), weights, 0.0))
        shared = shares_of(np.where(a.counted.any(axis=2) & b.counted.any(axis=2), weights, 0.0))
        yield from judged(
            "mean, tasks like these",
            scenario,
            mean_like_these(a, weights),
            a.population,
            promised=promised,
        )
        yield from judged(
            "mean, these tasks",
            scenario,
            mean_these(a, weights),
            (share * a.truth).sum(axis=1),
            promised=promised,
        )
        yield from judged(
            "difference, tasks like these, interaction",
            scenario,
            difference_like_these(a, b, weights),
            0.0,
            promised=promised,
            null=True,
        )
        yield from judged(
            "difference, these tasks, interaction",
            scenario,
            difference_these(a, b, weights, joint=False),
            (shared * (a.truth - b.truth)).sum(axis=1),
            promised=promised,
        )
        a, b = candidates(kind, (benchmarks, tasks, n), rng, correlation=1.0, rejected=rejected)
        yield from judged(
            "difference, these tasks, no interaction",
            scenario,
            difference_these(a, b, weights, joint=False),
            0.0,
            promised=promised,
            null=True,
        )
        yield from judged(
            "difference, tasks like these, no interaction",
            scenario,
            difference_like_these(a, b, weights),
            0.0,
            promised=promised,
            null=True,
        )


ONE_TASK = (
    ("beta", 0.75, True),
    ("ceiling", 0.65, False),
    ("binary", 0.5, False),
    ("binary", 0.8, False),
)


def one_task(benchmarks: int, seed: int) -> Iterator[Row]:
    for place, (kind, centre, promised) in enumerate(ONE_TASK):
        for n in (3, 5, 10):
            rng = np.random.default_rng([seed, 2, place, n])
            task_mean = np.full((benchmarks, 1), centre)
            draws = []
            for _ in range(2):
                score = trials(kind, task_mean, n, rng)
                everywhere = np.ones(score.shape, np.bool_)
                truth = true_means(kind, task_mean)
                draws.append(Draw(score=score, counted=everywhere, truth=truth, population=centre))
            a, b = draws
            scenario = f"{kind} {centre} n={n}"
            agree(a, b, np.ones(1), joint=False)
            yield from judged(
                "mean, one task",
                scenario,
                mean_these(a, np.ones(1)),
                a.truth[:, 0],
                promised=promised,
            )
            yield from judged(
                "difference, one task",
                scenario,
                difference_these(a, b, np.ones(1), joint=False),
                0.0,
                promised=promised,
                null=True,
            )


JOINT = tuple(
    (tasks, n, r) for tasks, n in ((1, 5), (3, 5), (10, 5)) for r in (-1.0, -0.5, 0.0, 0.6, 0.9)
)


def jointly_graded(benchmarks: int, seed: int) -> Iterator[Row]:
    for place, (tasks, n, correlation) in enumerate(JOINT):
        rng = np.random.default_rng([seed, 3, place])
        a, b = joint_candidates(
            (benchmarks, tasks, n), rng, correlation=correlation, interaction=0.0
        )
        weights = np.ones(tasks)
        scenario = f"joint {tasks}x{n}, correlation {correlation:+.1f}"
        agree(a, b, weights, joint=True)
        yield from judged(
            "difference, these tasks, joint trials",
            scenario,
            difference_these(a, b, weights, joint=True),
            0.0,
            promised=True,
            null=True,
        )
        if tasks > 1:
            a, b = joint_candidates(
                (benchmarks, tasks, n), rng, correlation=correlation, interaction=0.05
            )
            yield from judged(
                "difference, tasks like these, joint trials",
                scenario,
                difference_like_these(a, b, weights),
                0.0,
                promised=True,
                null=True,
            )


# ---- the same numbers from the public functions
# ----------------------------------------------------------------------


def agree(a: Draw, b: Draw, weights: Floats, *, joint: bool) -> None:
    """The first benchmarks through `estimate` and `compare`: the simulation must speak of what is
    shipped.
    """
    tasks = a.score.shape[1]
    for i in range(min(AGREEING, len(a.score))):
        table = table_of(a, b, weights, i, joint=joint)
        for scope in ("these_tasks", "tasks_like_these"):
            if scope == "tasks_like_these" and tasks == 1:
                continue
            mean = mean_these if scope == "these_tasks" else mean_like_these
            draw = Draw(
                score=a.score[i : i + 1],
                counted=a.counted[i : i + 1],
                truth=a.truth,
                population=a.population,
            )
            two = Draw(
                score=b.score[i : i + 1],
                counted=b.counted[i : i + 1],
                truth=b.truth,
                population=b.population,
            )
            _, bounds, answered = next(mean(draw, weights))
            same(estimate(table, "A", scope).ci95, bounds, bool(answered[0]))
            methods = (
                difference_these(draw, two, weights, joint=joint)
                if scope == "these_tasks"
                else difference_like_these(draw, two, weights)
            )
            _, bounds, answered = next(methods)
            same(compare(table, "A", "B", scope).ci95, bounds, bool(answered[0]))


def table_of(a: Draw, b: Draw, weights: Floats, i: int, *, joint: bool) -> ScoreTable:
    parts = [
        (name, *np.nonzero(draw.counted[i]), draw.score[i]) for name, draw in (("A", a), ("B", b))
    ]
    return ScoreTable.from_columns(
        task=np.concatenate([task for _, task, _, _ in parts]),
        candidate=[name for name, task, _, _ in parts for _ in task],
        trial=np.concatenate([trial for _, _, trial, _ in parts]),
        score=np.concatenate([score[task, trial] for _, task, trial, score in parts]),
        weight=np.concatenate([weights[task] for _, task, _, _ in parts]),
        joint=joint,
    )


def same(interval: tuple[float, float] | None, bounds: Bounds, answered: bool) -> None:
    expected = (float(bounds[0][0]), float(bounds[1][0])) if answered else None
    if (interval is None) != (expected is None) or (
        interval is not None
        and expected is not None
        and not np.allclose(interval, expected, rtol=1e-6, atol=1e-8)
    ):
        raise AssertionError(f"the public function says {interval}, the simulation {expected}")


# ---- the table
# --------------------------------------------------------------------------------------------------


def written(rows: list[Row], slack: float, benchmarks: int) -> str:
    lines = [
        f"{benchmarks:,} benchmarks per scenario. Each entry is the share of 95% intervals that contain the true value. If",
        "the true difference is zero, the share called significant at 5% follows in brackets. **Bold**: guaranteed to stay",
        "within .93 to .975 and .06. answered: share of benchmarks in which our method gives an interval. width: the median",
        "width of our interval, in points.",
    ]
    for question in dict.fromkeys(row.question for row in rows):
        mine = [row for row in rows if row.question == question]
        methods = list(dict.fromkeys(row.method for row in mine))
        lines += ["", f"### {question[0].upper()}{question[1:]}", ""]
        lines += [
            f"| data | {' | '.join(methods)} | answered | width |",
            "| --- |" + " --- |" * (len(methods) + 2),
        ]
        for scenario in dict.fromkeys(row.scenario for row in mine):
            by_method = {row.method: row for row in mine if row.scenario == scenario}
            ours = next(row for row in by_method.values() if row.method.endswith("(ours)"))
            entries = [
                entry(by_method[name], slack) if name in by_method else "" for name in methods
            ]
            lines.append(
                f"| {scenario} | {' | '.join(entries)} | {ours.answered:.3f} | {100 * ours.width:.1f} |"
            )
    return "\n".join(lines) + "\n"


def placed(page: Path, table: str) -> str:
    """The page with the table between its two marks, or the table alone."""
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    before, marked, rest = old.partition(MARKS[0])
    _, closed, after = rest.partition(MARKS[1])
    return f"{before}{marked}\n\n{table}\n{closed}{after}" if marked and closed else table


def entry(row: Row, slack: float) -> str:
    text = f"{row.covered:.3f}" + ("" if row.rejected is None else f" ({row.rejected:.3f})")
    return (f"**{text}**" if row.promised else text) + (" broken" if row.broken(slack) else "")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="1,000 benchmarks a scenario, bars wider by chance"
    )
    parser.add_argument(
        "--output", type=Path, help="write the table there, between its marks if it has any"
    )
    parser.add_argument("--seed", type=int, default=20240607)
    options = parser.parse_args()
    benchmarks = 1_000 if options.quick else 10_000
    slack = 3 * float(np.sqrt(0.05 * 0.95 / benchmarks)) if options.quick else 0.0
    studies: tuple[Callable[[int, int], Iterator[Row]], ...] = (
        over_tasks,
        one_task,
        jointly_graded,
    )
    rows = [row for study in studies for row in study(benchmarks, options.seed)]
    rows.sort(key=lambda row: row.question)
    table = written(rows, slack, benchmarks)
    if options.output:
        options.output.write_text(placed(options.output, table), encoding="utf-8")
    else:
        print(table)
    broken = [row for row in rows if row.broken(slack)]
    promised = sum(row.promised for row in rows)
    print(f"{promised} promises, {len(broken)} broken", file=sys.stderr)
    for row in broken:
        print(
            f"broken: {row.question}: {row.scenario}: covered {row.covered}, rejected {row.rejected}",
            file=sys.stderr,
        )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
