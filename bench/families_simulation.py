"""Tasks in families: do ranges cover and tests keep their level when tasks share a source? A seeded
simulation.

Each scenario draws benchmarks in which tasks of a family share part of their difficulty and part of
what separates the candidates, and asks the array core behind `estimate`, `compare` and `rank` for
all of them at once; the first few are also put to the public functions, which must agree. From 6
families on, ranges must cover 93 to 97.5% and a true null be rejected at most 6%, for means, pairs
and ranks (any false "better" among 5 equal candidates). Evidence that is looked at after every
family, from the 4th to the last, may call a false winner in at most 5%. With 4 and 5 families the
public functions must warn, and with fewer they must refuse. "Tasks alone" ignores families, as
before there were any. Exits 1 when a promise is broken.

    python bench/families_simulation.py [--quick] [--seed 20241122]

Data. A family has 2 to 10 tasks; "mixed" draws sizes from 2 to 10, "three large" has three families
of 10 and others of 2. Each task has 3 trials. "beta": task means are Beta quantiles (mean .75, sd
.18) of a normal in which the family accounts for the stated share of the variance; trials are Beta
around them. "binary": 0 or 1 with the task mean as probability. Candidates correlate .85 through a
Gaussian copula, within families and within tasks.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special  # type: ignore[import-untyped]  # SciPy ships no types

from assay.analysis.anytime import anytime_difference
from assay.statistics import ScoreTable, compare, estimate, rank
from assay.statistics.distributions import t_two_sided
from assay.statistics.families import across
from assay.statistics.intervals import logit_interval
from assay.statistics.standard_error import AcrossTasks

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

COVERAGE, LEVEL = (0.93, 0.975), 0.06
N_TRIALS, N_CANDIDATES, CORRELATION = 3, 5, 0.85
AGREEING = 5
FEWEST_PROMISED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmarks:
    """Task means of shape (benchmarks, candidates, tasks), the family of each task, and the mean of
    all candidates.
    """

    means: Floats
    family: Ints
    truth: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table, families as the units next to tasks as the units."""

    scenario: str
    n_families: int
    covered: tuple[float, float]
    covered_pair: tuple[float, float]
    rejected: tuple[float, float]
    false_better: tuple[float, float]
    ever: float

    def broken(self, slack: float) -> bool:
        """True if a promise about families is broken by more than the error of the simulation."""
        low, high = COVERAGE[0] - slack, COVERAGE[1] + slack
        covers = all(low <= share <= high for share in (self.covered[0], self.covered_pair[0]))
        wrong = max(self.rejected[0], self.false_better[0]) > LEVEL + slack
        return self.ever > 0.05 + slack or (
            self.n_families >= FEWEST_PROMISED and (not covers or wrong)
        )


def sizes_of(kind: str, n_families: int, rng: np.random.Generator) -> Ints:
    if kind == "mixed":
        return rng.integers(2, 11, n_families)
    if kind == "three large":
        return np.where(np.arange(n_families) < 3, 10, 2)
    return np.full(n_families, int(kind.removeprefix("of ")))


def drawn(
    n_benchmarks: int,
    sizes: Ints,
    *,
    scores: str,
    shared: float,
    rng: np.random.Generator,
    n_candidates: int,
) -> Benchmarks:
    """Draw benchmarks of equal candidates."""
    family = np.repeat(np.arange(sizes.size), sizes)

    def normal(width: int) -> Floats:
        common = rng.standard_normal((n_benchmarks, 1, width))
        own = rng.standard_normal((n_benchmarks, n_candidates, width))
        return np.asarray(np.sqrt(CORRELATION) * common + np.sqrt(1 - CORRELATION) * own)

    at = np.sqrt(shared) * normal(sizes.size)[:, :, family] + np.sqrt(1 - shared) * normal(
        family.size
    )
    size = 0.75 * 0.25 / 0.18**2 - 1
    grid = np.linspace(-6, 6, 4801)
    table = special.betaincinv(0.75 * size, 0.25 * size, special.ndtr(grid))
    centre = np.interp(at, grid, table)[..., None]
    shape = (*at.shape, N_TRIALS)
    if scores == "binary":
        trials = (rng.random(shape) < centre).astype(np.float64)
    else:
        inside = np.clip(centre, 1e-6, 1 - 1e-6)
        trials = rng.beta(
            np.broadcast_to(23.2 * inside, shape), np.broadcast_to(23.2 * (1 - inside), shape)
        )
    return Benchmarks(means=trials.mean(axis=-1), family=family, truth=0.75)


def measured(
    n_benchmarks: int, kind: str, n_families: int, scores: str, shared: float, seed: int
) -> Line:
    """Measure a scenario; sizes of families are drawn anew for each tenth of the benchmarks."""
    rng = np.random.default_rng(seed)
    parts: list[list[tuple[Floats, ...]]] = [[], []]
    ever = []
    for _ in range(10):
        sizes = sizes_of(kind, n_families, rng)
        drawn_part = drawn(
            n_benchmarks // 10,
            sizes,
            scores=scores,
            shared=shared,
            rng=rng,
            n_candidates=N_CANDIDATES,
        )
        for place, family in enumerate((drawn_part.family, None)):
            parts[place].append(answers(drawn_part, family))
        ever.append(ever_claimed(drawn_part))
    shares = [
        [float(np.concatenate(column).mean()) for column in zip(*side, strict=True)]
        for side in parts
    ]
    covered, covered_pair, rejected, false_better = zip(*shares, strict=True)
    return Line(
        scenario=f"{scores}, families {kind}, share {shared:g}",
        n_families=n_families,
        covered=covered,
        covered_pair=covered_pair,
        rejected=rejected,
        false_better=false_better,
        ever=float(np.concatenate(ever).mean()),
    )


def answers(drawn_part: Benchmarks, family: Ints | None) -> tuple[Floats, ...]:
    """Return, for each benchmark: mean covered, difference covered, difference rejected, and any
    false better.
    """
    means = drawn_part.means
    weight = np.ones(means.shape[-1])
    first = across(means[:, 0], weight, family)
    low, high = logit_interval(np.clip(first.estimate, 0, 1), np.sqrt(first.variance), first.df)
    held = (low <= drawn_part.truth) & (drawn_part.truth <= high) | first.constant
    p = np.stack(
        [
            p_values(across(means[:, i] - means[:, j], weight, family))
            for i, j in zip(*np.triu_indices(N_CANDIDATES, 1), strict=True)
        ]
    )
    rejected = p[0] <= 0.05
    # All nulls are true, so that Holm errs exactly where Bonferroni's first step does.
    false_better = p.min(axis=0) * p.shape[0] <= 0.05
    return tuple(
        np.asarray(column, np.float64) for column in (held, ~rejected, rejected, false_better)
    )


def ever_claimed(drawn_part: Benchmarks) -> Floats:
    """Return 1 for each benchmark whose evidence reached 20 at some look, a look after every family
    from the 4th on.
    """
    difference = drawn_part.means[:, 0] - drawn_part.means[:, 1]
    claimed = np.zeros(len(difference), np.bool_)
    for n_families in range(4, int(drawn_part.family.max()) + 2):
        seen = drawn_part.family < n_families
        moments = across(difference[:, seen], np.ones(int(seen.sum())), drawn_part.family[seen])
        varied = ~moments.constant
        t2 = np.where(varied, moments.estimate**2 / np.where(varied, moments.variance, 1.0), 0.0)
        k = moments.df + 2.0
        log_e = -0.5 * np.log(k) + (moments.df + 1) / 2 * (
            np.log1p(t2 / moments.df) - np.log1p(t2 / (moments.df * k))
        )
        claimed |= log_e >= np.log(20.0)
    return claimed.astype(np.float64)


def p_values(moments: AcrossTasks) -> Floats:
    """p-values of a difference; 1 where all families tie."""
    std_err = np.sqrt(moments.variance)
    varied = ~moments.constant
    p = t_two_sided(moments.estimate / np.where(varied, std_err, 1.0), moments.df)
    return np.where(
        varied, p, np.where(np.abs(moments.estimate) < 1e-12, 1.0, 2.0 ** (1 - moments.n_units))
    )


def table_of(means: Floats, family: Ints) -> ScoreTable:
    """Build the table of one benchmark, with one trial that holds the mean of each task."""
    candidates, tasks = means.shape
    task = np.tile(np.arange(tasks), candidates)
    return ScoreTable.from_columns(
        task=task,
        candidate=np.repeat(np.arange(candidates), tasks),
        trial=np.ones(means.size, np.int64),
        score=np.clip(means, 0, 1).reshape(-1),
        family=family[task],
    )


def check_public_functions(seed: int) -> None:
    """Compare the public functions with the core, and check that they warn and refuse below the
    promise.
    """
    rng = np.random.default_rng(seed)
    for n_families in (2, 3, 4, 5, 6, 12):
        sizes = sizes_of("mixed", n_families, rng)
        benchmarks = drawn(
            AGREEING, sizes, scores="beta", shared=0.5, rng=rng, n_candidates=N_CANDIDATES
        )
        for means in benchmarks.means:
            table = table_of(means, benchmarks.family)
            pair, mean, ranks = compare(table, 0, 1), estimate(table, 0), rank(table)
            codes = {warning.code for warning in pair.warnings}
            if n_families < 4:
                assert pair.p_value is None
                assert mean.ci95 is None
                assert pair.reason == mean.reason == "need_at_least_4_families"
                assert all(row.p_value is None for row in ranks.pairs)
                continue
            assert ("few_families" in codes) == (n_families < FEWEST_PROMISED)
            core = across((means[0] - means[1])[None], np.ones(means.shape[1]), benchmarks.family)
            path = Benchmarks(means=means[None], family=benchmarks.family, truth=0.75)
            evidence = anytime_difference(table, compare(table, 0, 1, "tasks_like_these"))
            assert evidence.e_value is not None
            assert evidence.e_value < 20 or ever_claimed(path)[0]
            assert pair.p_value is not None
            assert abs(pair.p_value - float(p_values(core)[0])) < 1e-9
            assert ranks.pairs[0].p_value is not None
            assert abs(ranks.pairs[0].p_value - pair.p_value) < 1e-6


def scenarios(*, quick: bool) -> Iterator[tuple[str, int, str, float]]:
    counts = (4, 6, 20) if quick else (4, 5, 6, 8, 12, 20, 40)
    for kind in ("mixed", "of 2", "of 6", "of 10", "three large"):
        for n_families in counts:
            for shared in (0.3,) if quick else (0.0, 0.3, 0.7):
                yield kind, n_families, "beta", shared
    for n_families in counts:
        yield "mixed", n_families, "binary", 0.5


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer scenarios and benchmarks")
    parser.add_argument("--seed", type=int, default=20241122)
    options = parser.parse_args()
    n_benchmarks = 2_000 if options.quick else 6_000
    check_public_functions(options.seed)
    # One and a half standard errors of a share of 95% from so many benchmarks.
    slack = 1.5 * (0.95 * 0.05 / n_benchmarks) ** 0.5
    head = "| scenario | families | mean covered | pair covered | false winner | any of 5 false | ever, with looks |"
    print(f"{head}\n|{' --- |' * 7}")
    broken = 0
    for place, (kind, n_families, scores, shared) in enumerate(scenarios(quick=options.quick)):
        line = measured(n_benchmarks, kind, n_families, scores, shared, options.seed + place)
        columns = (line.covered, line.covered_pair, line.rejected, line.false_better)
        cells = " | ".join(f"{by_family:.3f} ({by_task:.3f})" for by_family, by_task in columns)
        mark = " BROKEN" if line.broken(slack) else ""
        broken += bool(mark)
        print(f"| {line.scenario} | {n_families} | {cells} | {line.ever:.3f} |{mark}", flush=True)
    print(
        f"\nIn brackets: tasks alone. {broken} promises broken."
        if broken
        else "\nIn brackets: tasks alone. All promises hold."
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
