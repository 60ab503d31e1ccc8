"""Differences of scores as people write them: 0.03, or `3pts` for 3 points."""

from __future__ import annotations

from numbers import Real
from typing import TypeAlias

from assay.domain.errors import InputError

Margin: TypeAlias = float | str
"""A difference of scores as a program gives it: 0.03, or `3pts` for 3 points."""


def parsed_margin(text: str, *, option: str = "--margin") -> float:
    """Parse a margin such as `0.03` or `3pts`; raises `InputError` outside (0, 1)."""
    stripped = text.strip().lower()
    points = stripped.removesuffix("pts").strip() if stripped.endswith("pts") else None
    try:
        value = float(points) / 100 if points is not None else float(stripped)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise InputError(
            option, f"{text!r} is not a difference between 0 and 1.", remedy="Write 0.03, or 3pts."
        )
    return value


def required_margin(value: Margin, *, argument: str) -> float:
    """Return a difference that Python gives as a number or as text such as `3pts`; raises
    `InputError` outside (0, 1).
    """
    # True is a number in Python, and NaN compares false with everything.
    if isinstance(value, str):
        return parsed_margin(value, option=argument)
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < 1:
        points = (
            f"For {value:g} points write '{value:g}pts'."
            if isinstance(value, Real) and 1 <= value < 100
            else ""
        )
        raise InputError(
            argument,
            f"{value!r} is not a difference between 0 and 1.",
            remedy=points or "Write 0.03, or '3pts'.",
        )
    return float(value)


def margin_of(value: Margin | None, *, argument: str) -> float | None:
    """Return a margin as `required_margin` does, or None if none is given."""
    return None if value is None else required_margin(value, argument=argument)
