"""Values of an address: what a page takes, and one way to say that it does not take this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable


def one_of(name: str, value: str, known: Iterable[str]) -> str:
    """A value out of a few; raises `InputError` with the nearest and with all of them."""
    values = tuple(known)
    if value in values:
        return value
    raise InputError(name, f"is {value!r}.{did_you_mean(value, values)}", remedy=f"Say one of {', '.join(values)}.")


def whole(name: str, text: str, *, low: int = 0, high: int = 10**9) -> int:
    """A whole number; raises `InputError` with its bounds."""
    if text.isascii() and text.isdecimal() and len(text) <= 19 and low <= int(text) <= high:
        return int(text)
    raise InputError(name, f"is {text!r}, expected a whole number from {low} to {high}.", remedy=f"Take {name} away.")


def place(name: str, text: str) -> tuple[int, int] | None:
    """Two whole numbers with a dot between, where a page goes on; None where nothing is said."""
    if not text:
        return None
    first, dot, second = text.partition(".")
    if dot and all(part.isascii() and part.isdecimal() and len(part) <= 12 for part in (first, second)):
        return int(first), int(second)
    raise InputError(name, f"is {text!r}, and no place of a page.", remedy="Open the page without it.")
