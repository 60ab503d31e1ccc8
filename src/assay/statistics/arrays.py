"""Array types for this package, and the threshold below which a spread counts as 0."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Interval: TypeAlias = tuple[float, float]

# Scores are between 0 and 1 with rounding errors of about 1e-16, so a range below this is due to
# rounding and not to variation.
NO_SPREAD = 1e-12


def beyond_rounding(variance: float) -> float:
    """Return the variance, or 0 if it is so small that rounding explains it."""
    return variance if variance > NO_SPREAD * NO_SPREAD else 0.0


def finite(value: float) -> float | None:
    """Return the number as a plain float, or None if it is NaN or infinite."""
    return float(value) if np.isfinite(value) else None


def finite_interval(low: float, high: float) -> Interval | None:
    """Return both ends as plain floats, or None if either is NaN or infinite."""
    return (float(low), float(high)) if np.isfinite(low) and np.isfinite(high) else None
