"""Means in SQL that are correct to the last digit, the same on SQLite and PostgreSQL.

`avg` rounds after each addition: it gives 0.8999999999999999 for 0.9, 0.9 and 0.9. Here each value
is split into a multiple of 2^-30, which adds up without rounding, and a small rest; weights are
split at 2^-16. The quotient is split in the same way, so that the only rounding that matters is
that of the last addition. Correctly rounded for values between 2^-20 and 1, for up to 2^20 values
without weights, and for weights whose sum is at most 128 or that are whole numbers.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Double, and_, case, cast, func, literal_column

# Written into the statement: SQLite computes a sum once if its text is the same, but not if it
# contains parameters.
_VALUE_UNITS: Final[ColumnElement[Any]] = literal_column("1073741824.0", Double)
_WEIGHT_UNITS: Final[ColumnElement[Any]] = literal_column("65536.0", Double)
_ZERO: Final[ColumnElement[Any]] = literal_column("0.0", Double)


def exact_mean(value: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return the mean of the values that are not null; null without any."""
    whole = _whole_units(value, _VALUE_UNITS)
    number = cast(func.count(value), Double)
    return _quotient(func.sum(whole), func.sum(value - whole), number, _ZERO)


def weighted(value: ColumnElement[Any], weight: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return the weighted mean, or the plain mean if all weights are 0; null if a value with a
    weight above 0 is null.
    """
    whole, whole_weight = _whole_units(value, _VALUE_UNITS), _whole_units(weight, _WEIGHT_UNITS)
    rest, rest_weight = value - whole, weight - whole_weight
    missing = func.sum(case((and_(value.is_(None), weight > _ZERO), 1), else_=0))
    # A null in a row with a weight makes the result null, so that all other rows may be added up.
    whole_divisor, rest_divisor = func.sum(whole_weight), func.sum(rest_weight)
    wholes, rests = (
        func.sum(whole_weight * whole),
        func.sum(rest_weight * value + whole_weight * rest),
    )
    mean = _quotient(wholes, rests, whole_divisor, rest_divisor)
    # Criteria without weight are rarely selected together; exact sums of them too would make all
    # others slower.
    return case(
        (missing > 0, None), (whole_divisor + rest_divisor > _ZERO, mean), else_=func.avg(value)
    )


def _quotient(
    wholes: ColumnElement[Any],
    rests: ColumnElement[Any],
    whole_divisor: ColumnElement[Any],
    rest_divisor: ColumnElement[Any],
) -> ColumnElement[Any]:
    divisor = func.nullif(whole_divisor + rest_divisor, _ZERO, type_=Double)
    near = _whole_units(wholes / divisor, _VALUE_UNITS)
    return near + ((wholes - near * whole_divisor) + (rests - near * rest_divisor)) / divisor


def _whole_units(number: ColumnElement[Any], units: ColumnElement[Any]) -> ColumnElement[Any]:
    """Return the nearest whole number of units, of which 1 has `units`."""
    return func.round(number * units, type_=Double) / units
