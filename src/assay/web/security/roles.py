"""The addresses that each role may open, as listed in `roles.toml`.

No other module decides who may see what.

House rules. A route that is not listed there is open to the owner only, so a new page is closed to
reviewers and viewers until it is listed. A page shows the same to every role that may open it. The
review page hides names, the grades of blind items and planted checks from everybody, including the
owner, until the decision.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from starlette.routing import compile_path

from assay.domain.people import VisitorRole

if TYPE_CHECKING:
    from collections.abc import Mapping


def _addresses_of(role: VisitorRole) -> tuple[str, ...]:
    """Return the addresses that `roles.toml` lists for a role; `PAGE` stands for a page and its
    JSON.
    """
    listed: list[str] = tomllib.loads((files(__package__) / "roles.toml").read_text("utf-8")).get(
        role.value, []
    )
    addresses = []
    for line in listed:
        method, _, route = line.partition(" ")
        addresses += [f"GET {route}", f"GET {route}.json"] if method == "PAGE" else [line]
    return tuple(addresses)


LISTED: Final[Mapping[VisitorRole, tuple[str, ...]]] = {
    role: _addresses_of(role) for role in VisitorRole
}
"""Method and route of every address that a role may open; the owner may open all."""

_CLOSED_FILTERS: Final[Mapping[VisitorRole, frozenset[str]]] = {
    VisitorRole.REVIEWER: frozenset({"judge"})
}
"""Filters that a role may not use: a filter by judge would confirm who graded an item."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The sender of a request; `name` is None for the owner, who may review under any name."""

    role: VisitorRole
    name: str | None = None

    @property
    def home(self) -> str:
        return "/review" if self.role is VisitorRole.REVIEWER else "/"

    def may_filter_by(self, name: str) -> bool:
        """True if the role may use a filter, in a query or in the body of a request."""
        return name not in _CLOSED_FILTERS.get(self.role, frozenset())

    def may_open(self, method: str, path: str, query: str = "") -> bool:
        """True if the role lists the address; only the owner may open the others."""
        if self.role is VisitorRole.OWNER:
            return True
        # Read as the routes read it: `%6audge` is `judge` too.
        if not all(
            self.may_filter_by(name) for name, _ in parse_qsl(query, keep_blank_values=True)
        ):
            return False
        for listed, pattern in _PATTERNS[self.role]:
            match = pattern.match(path) if listed == method else None
            if match is not None and match.groupdict().get("own_name", self.name) == self.name:
                return True
        return False


OWNER: Final = Visitor(VisitorRole.OWNER)


def _pattern(listed: str) -> tuple[str, re.Pattern[str]]:
    method, _, route = listed.partition(" ")
    return method, compile_path(route)[0]


_PATTERNS: Final = {role: tuple(map(_pattern, listed)) for role, listed in LISTED.items()}
