"""Scores without the rounding errors that earlier versions stored.

They added up the criteria's scores as floats, so the mean of 0.9, 0.9 and 0.9 was stored as
0.8999999999999999.
"""

from __future__ import annotations

from typing import Final

DECIMALS: Final = 12
ERROR: Final = 1e-15
"""A number that is at most this far from a decimal fraction of 12 places is that fraction.

Sums of 20 criteria err by less.
"""


def without_rounding_error(score: float) -> float:
    """Return the decimal fraction of 12 places that a score between 0 and 1 differs from by
    rounding, else the score itself.
    """
    decimal = round(score, DECIMALS)
    return decimal if abs(score - decimal) <= ERROR else score
