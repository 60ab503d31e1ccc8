"""Quantiles and tail probabilities of common distributions, computed with `scipy.special` alone.

`scipy.stats` returns the same values, but a call takes a hundred times as long and the import three
times as long. `scipy.special` is imported by the first call that needs it, because that import is
slow and many programs that import this package, such as a command line that prints its help, never
compute anything. All functions broadcast.
"""

from functools import cache
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike

from assay.statistics.arrays import Floats


@cache
def _special() -> ModuleType:
    from scipy import special  # type: ignore[import-untyped]  # SciPy ships no types

    return special  # type: ignore[no-any-return]  # a module, whatever its types


def t_quantile(probability: float, df: ArrayLike) -> Floats:
    """Quantile of Student's t; `df` may be fractional, at least 1."""
    return np.asarray(_special().stdtrit(df, probability), dtype=np.float64)


def t_below(value: ArrayLike, df: ArrayLike) -> Floats:
    """Probability that Student's t falls below `value`."""
    return np.asarray(_special().stdtr(df, value), dtype=np.float64)


def t_two_sided(value: ArrayLike, df: ArrayLike) -> Floats:
    """Two-sided p-value of a t statistic; the sign of `value` does not matter."""
    # The lower tail of -|t| is used, because 1 minus the probability below |t| would lose small
    # p-values to rounding.
    return np.asarray(2.0 * _special().stdtr(df, -np.abs(value)), dtype=np.float64)


def normal_quantile(probability: ArrayLike) -> Floats:
    return np.asarray(_special().ndtri(probability), dtype=np.float64)


def normal_below(value: ArrayLike) -> Floats:
    """Probability that a standard normal falls below `value`."""
    return np.asarray(_special().ndtr(value), dtype=np.float64)


def f_quantile(probability: float, df_above: ArrayLike, df_below: ArrayLike) -> Floats:
    """Quantile of the F distribution; the numerator's degrees of freedom come first."""
    return np.asarray(_special().fdtri(df_above, df_below, probability), dtype=np.float64)


def chi_square_above(value: ArrayLike, df: ArrayLike) -> Floats:
    return np.asarray(_special().chdtrc(df, value), dtype=np.float64)


def beta_quantile(probability: float, alpha: ArrayLike, beta: ArrayLike) -> Floats:
    return np.asarray(_special().betaincinv(alpha, beta, probability), dtype=np.float64)


def log_gamma(value: ArrayLike) -> Floats:
    """Return the logarithm of the gamma function of positive arguments."""
    return np.asarray(_special().gammaln(value), dtype=np.float64)


def logit(value: ArrayLike) -> Floats:
    """Return log(p / (1 - p)); it is infinite at 0 and 1, which callers must exclude."""
    return np.asarray(_special().logit(value), dtype=np.float64)


def expit(value: ArrayLike) -> Floats:
    """Return the inverse of `logit`; saturates at 0 and 1 without overflow."""
    return np.asarray(_special().expit(value), dtype=np.float64)
