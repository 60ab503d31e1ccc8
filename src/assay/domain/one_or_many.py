"""Arguments that accept one identifier or several, so that a string is never taken apart into its
characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import TypeAlias

from assay.domain.errors import InputError

Identifier: TypeAlias = str | int
"""A name or an id; 17 means the same as `"17"`."""

OneOrMany: TypeAlias = Identifier | Iterable[Identifier]
"""One identifier, or an iterable of identifiers."""


def identifiers(given: OneOrMany, *, argument: str) -> tuple[str, ...]:
    """Return one identifier, or each of an iterable, as text; raises `InputError` for any other
    value.

    `assay.review.approve("12")` once approved a1 and a2, because it took the string apart. A
    mapping and bytes are refused for the same reason: both can be iterated, and neither is a list
    of ids.
    """
    if isinstance(given, str | Integral):
        return (identifier(given, argument=argument),)
    if isinstance(given, bytes | bytearray | Mapping) or not isinstance(given, Iterable):
        raise _not_an_identifier(given, argument, f"{argument}='a17' or {argument}=['a17', 'a18']")
    return tuple(
        identifier(item, argument=f"{argument}[{place}]") for place, item in enumerate(given)
    )


def identifier(given: object, *, argument: str) -> str:
    """Return exactly one identifier as text; raises `InputError` for any other value, True and
    False included.
    """
    if isinstance(given, str):
        return str(given)
    if isinstance(given, Integral) and not isinstance(given, bool):
        return str(int(given))
    raise _not_an_identifier(given, argument, "'a17'")


def _not_an_identifier(given: object, argument: str, example: str) -> InputError:
    problem = f"is {given!r:.60} ({type(given).__name__}), expected a name or an id"
    return InputError(argument, f"{problem}.", remedy=f"Write it like {example}.")
