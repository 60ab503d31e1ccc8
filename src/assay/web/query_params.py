"""Parse and check the query parameters of pages."""

from __future__ import annotations

from enum import EnumType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeVar, get_args, get_origin
from urllib.parse import urlencode

from fastapi import Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from assay.domain.errors import InputError, UnknownName, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

F = TypeVar("F", bound="Callable[..., Any]")

READ: Final[dict[tuple[str, str], frozenset[str]]] = {}
"""Query parameters that a page reads from the request itself, by the name and module of its
function.
"""

LISTED: Final = 8
"""Maximum number of names in a message."""


class PageQuery(BaseModel):
    """Base class of the query parameters of a page: a field each, whose default value is left out
    of addresses.

    An empty parameter is the same as none.
    """

    # A parameter named like a keyword of Python is a field with an underscore, such as `from_`.
    model_config = ConfigDict(
        frozen=True,
        str_strip_whitespace=True,
        alias_generator=lambda name: name.rstrip("_"),
        populate_by_name=True,
    )

    PASSING: ClassVar[tuple[str, ...]] = ()
    """Fields that an address keeps only if they are changed, such as the place in a list."""

    @field_validator("*", mode="before")
    @classmethod
    def _one_of_choices(cls, value: Any, info: ValidationInfo) -> Any:
        """Check a field of an enumeration or a `Literal`; an empty text stands for the default."""
        field = cls.model_fields[info.field_name or ""]
        value = field.default if value == "" else value
        kind: Any = field.annotation
        choices = tuple(map(str, kind)) if isinstance(kind, EnumType) else get_args(kind)
        if get_origin(kind) is not Literal and not isinstance(kind, EnumType):
            return value
        return one_of(info.field_name or "", value, choices)

    def address(self, path: str, changes: Self | None = None) -> str:
        """Return a path with these parameters; the fields that `changes` sets replace them."""
        changed = {} if changes is None else changes.model_dump(exclude_unset=True)
        state = self.model_copy(update={**dict.fromkeys(self.PASSING), **changed})
        pairs = state.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        query = urlencode({name: value for name, value in pairs.items() if value}, doseq=True)
        return path + (f"?{query}" if query else "")


def one_of(name: str, value: str, known: Iterable[str]) -> str:
    """Return a value if it is valid; otherwise raise `InputError` with the nearest valid value and
    a list of all.
    """
    values = tuple(known)
    if value in values:
        return value
    raise InputError(
        name,
        f"is {value!r}.{did_you_mean(value, values)}",
        remedy=f"Use one of {', '.join(values)}.",
    )


def whole(name: str, text: str, *, low: int = 0, high: int = 10**9) -> int:
    """Parse a whole number; raises `InputError` with the bounds if the text is not a number within
    them.
    """
    # Length first: Python itself raises an error for numbers with more than 4,300 digits.
    if text.isascii() and text.isdecimal() and len(text) <= 19 and low <= int(text) <= high:
        return int(text)
    raise InputError(
        name,
        f"is {text!r}, expected a whole number from {low} to {high}.",
        remedy=f"Remove {name}.",
    )


def place_of(name: str, text: str) -> tuple[int, int] | None:
    """Parse the start position of a page, two whole numbers separated by a dot; None if the text is
    empty.
    """
    if not text:
        return None
    first, dot, second = text.partition(".")
    if dot and all(
        part.isascii() and part.isdecimal() and len(part) <= 12 for part in (first, second)
    ):
        return int(first), int(second)
    raise InputError(
        name,
        f"is {text!r}, which is not a valid page position.",
        remedy="Remove it from the address.",
    )


def known(kind: str, value: str, names: Iterable[str]) -> str:
    """Find a name without regard to case, and return its stored spelling; raises `UnknownName`."""
    choices = tuple(dict.fromkeys(names))
    choice = next((each for each in choices if each.casefold() == value.casefold()), None)
    if choice is not None:
        return choice
    listed = ", ".join(choices[:LISTED]) + (", …" if len(choices) > LISTED else "")
    raise UnknownName(
        kind, value, choices, remedy=f"Known: {listed}." if choices else "None are stored yet."
    )


def within(name: str, start: int, of: int) -> int:
    """Return a list position if it is valid; raises `UnknownName` if the list is shorter."""
    if start and start >= of:
        raise UnknownName(
            f"row {start + 1} in a list of {of}; {name} =", str(start), remedy=f"Remove {name}."
        )
    return start


def together(values: Mapping[str, object]) -> None:
    """Raise `InputError` if some of these values are given and others are missing."""
    lacking = [name for name, value in values.items() if value is None]
    if lacking and len(lacking) < len(values):
        given = ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)
        problem = f"is given without {', '.join(lacking)}."
        raise InputError(given, problem, remedy=f"Give {', '.join(values)}, or none of them.")


def reads(*names: str) -> Callable[[F], F]:
    """Declare the query parameters that a page reads beyond those in its signature."""

    def declared(page: F) -> F:
        READ[page.__qualname__, page.__module__] = frozenset(names)
        return page

    return declared


def parameters_of(route: APIRoute) -> frozenset[str]:
    """Return the query parameters that a page reads."""
    declared = READ.get((route.endpoint.__qualname__, route.endpoint.__module__), frozenset())
    for field in route.dependant.query_params:
        model: object = field.field_info.annotation
        if isinstance(model, type) and issubclass(model, PageQuery):
            declared |= {field.alias or "" for field in model.model_fields.values()}
        else:
            declared |= {field.alias}
    return declared


def known_names(request: Request) -> None:
    """Raise an error for query parameters that a page does not read, because a silently ignored
    filter is misleading.

    Addresses below `/api` are described in `/openapi.json` and are not checked.
    """
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or route.include_in_schema or request.method != "GET":
        return
    taken = parameters_of(route)
    for name in request.query_params:
        if name not in taken:
            remedy = f"Known: {', '.join(sorted(taken))}." if taken else "This page has no filters."
            raise UnknownName("filter", name, taken, remedy=remedy)
