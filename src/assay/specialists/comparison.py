"""Comparison of a specialist with its baseline over the runs in a snapshot.

It uses only the runs in the snapshot.
"""

from __future__ import annotations

from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from assay.domain.specialists import short_name
from assay.statistics.comparisons import Comparison, compare
from assay.statistics.multiplicity import multiplicity
from assay.statistics.table import ScoreTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Run = Mapping[str, Any]

Section: TypeAlias = "dict[str, Any]"
"""A JSON object that is part of a snapshot."""

BASELINE, SPECIALIST = "baseline", "specialist"
_DRAWS_SEED: Final = 20_240_607
_DIGITS: Final = 6


def side_of(run: Run, name: str, version: str) -> str | None:
    """Return the side of a run in the comparison; None for a run with another specialist or
    version.

    Finished runs from other harnesses may state a specialist without its scope, its version or even
    its name.
    """
    if not run["specialist_enabled"]:
        return BASELINE
    stated, of_version = run.get("specialist_name"), run.get("specialist_version")
    scoped = stated is not None and "/" in stated and "/" in name
    same = stated is None or (stated == name if scoped else short_name(stated) == short_name(name))
    return SPECIALIST if same and of_version in (None, version) else None


def compare_runs(runs: Sequence[Run], name: str, version: str) -> tuple[Section, Comparison]:
    """Return the section `comparison` of a snapshot, and the test over all models on which it
    rests.

    The averages include all runs of a side. The test compares the sides only if both worked on the
    same scenario and tier with the same agent and model, so that neither side wins because of its
    models; a scenario's tiers count as one observation.
    """
    sides = [(run, side) for run in runs if (side := side_of(run, name, version)) is not None]
    overall = _tested(sides)
    models = sorted({_model(run) for run, _ in sides})
    by_model = [[(run, side) for run, side in sides if _model(run) == model] for model in models]
    tests = [_tested(own) for own in by_model]
    p_holm = multiplicity([test.p_value for test in tests]).holm
    per_model = [
        {
            "model": model,
            **_averages(own, "{}_score"),
            "test": {**_test(test), "p_holm": _rounded(p)},
        }
        for model, own, test, p in zip(models, by_model, tests, p_holm, strict=True)
    ]
    section = {
        **_averages(sides, "{}_avg_score"),
        "test": _test(overall),
        "models_compared": per_model,
    }
    return section, overall


def _averages(sides: Sequence[tuple[Run, str]], key: str) -> Section:
    """Return mean, standard deviation and number of runs per side, and the improvement; null if a
    side is missing.
    """
    parts: Section = {}
    means: dict[str, float] = {}
    for side in (BASELINE, SPECIALIST):
        scores = [run["overall_score"] for run, of in sides if of == side]
        if scores:
            means[side] = fmean(scores)
        parts[key.format(side)] = _rounded(means.get(side))
        parts |= {
            f"{side}_sd": _rounded(stdev(scores)) if len(scores) > 1 else None,
            f"{side}_runs": len(scores),
        }
    improvement = means[SPECIALIST] - means[BASELINE] if len(means) == 2 else None
    parts["improvement"] = _rounded(improvement)
    if improvement is not None and means[BASELINE] > 0:
        parts["improvement_pct"] = round(100 * improvement / means[BASELINE], 2)
    return parts


def _tested(sides: Sequence[tuple[Run, str]]) -> Comparison:
    tasks = [
        (f"{run['suite']}/{run['scenario']}", run["tier"] or "", run["agent"], run["model"] or "")
        for run, _ in sides
    ]
    table = ScoreTable.from_columns(
        task=tasks,
        candidate=[f"the {side}" for _, side in sides],
        trial=[f"{number}" for number in range(len(sides))],
        score=[run["overall_score"] for run, _ in sides],
        family=[scenario for scenario, *_ in tasks],
    )
    return compare(
        table, f"the {SPECIALIST}", f"the {BASELINE}", rng=np.random.default_rng(_DRAWS_SEED)
    )


def _test(comparison: Comparison) -> Section:
    """Return difference, interval and test of a comparison; `reason` says why one of them is
    null.
    """
    return {
        **{name: _rounded(getattr(comparison, name)) for name in ("difference", "p_value")},
        "ci95": comparison.ci95 and [_rounded(end) for end in comparison.ci95],
        **{name: getattr(comparison, name) for name in ("method", "scope", "decision", "reason")},
        "n_scenarios": comparison.n_tasks
        if comparison.n_families is None
        else comparison.n_families,
        "n_pairs": comparison.n_tasks,
        "n_baseline": comparison.n_trials_b,
        "n_specialist": comparison.n_trials_a,
    }


def _model(run: Run) -> str:
    return str(run["model"] or run["agent"])


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), _DIGITS)
