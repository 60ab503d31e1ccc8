"""The interval of an estimate at another confidence level, for several statements that hold at
once.
"""

from assay.statistics.arrays import Interval
from assay.statistics.estimates import Estimate
from assay.statistics.intervals import identical_interval, logit_interval, wilson_bounds


def level_for(n_statements: int) -> float:
    """Return the level at which each of `n_statements` intervals holds, so that all hold at once in
    95% (Bonferroni).
    """
    return 1.0 - 0.05 / max(n_statements, 1)


def interval_at(estimate: Estimate, level: float) -> Interval | None:
    """Compute the interval of `estimate.ci95` by the same method at another level; None if the
    estimate has no interval.
    """
    if estimate.ci95 is None or estimate.mean is None:
        return None
    if estimate.method == "bounded_identical":
        units = (
            estimate.n_trials if estimate.n_tasks == 1 else estimate.n_families or estimate.n_tasks
        )
        bounds = identical_interval(estimate.mean, units, level=level)
    elif estimate.method == "wilson":
        bounds = wilson_bounds(estimate.mean, estimate.n_trials, level=level)
    elif estimate.std_err is None or estimate.df is None:
        return None
    else:
        bounds = logit_interval(estimate.mean, estimate.std_err, estimate.df, level=level)
    return max(float(bounds[0]), 0.0), min(float(bounds[1]), 1.0)
