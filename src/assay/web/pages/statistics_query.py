"""Parse the address of a statistics page, and build addresses from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from assay.app.statistics import results
from assay.app.statistics.live_report import ComparisonChoice
from assay.domain.margins import parsed_margin
from assay.domain.selection import Selection
from assay.web.query_params import one_of

if TYPE_CHECKING:
    from fastapi import Request

FILTERS: Final = ("run", "suite", "batch_id", "task", "tag", "language", "criterion", "judge")
"""Filters, named as on the command line; each may be repeated."""

SWITCHES: Final = ("all_runs", "pool_anyway")
"""Flags, named as on the command line: `all_runs=1` pools all runs."""


class StatisticsQuery:
    """The state of a statistics page: filters, the two candidates to compare, scope and margin."""

    def __init__(self, request: Request) -> None:
        query = request.query_params
        self.filters = {
            name: tuple(dict.fromkeys(value for value in query.getlist(name) if value))
            for name in FILTERS
        }
        self.a, self.b = query.get("a") or None, query.get("b") or None
        self.scope = one_of("scope", query.get("scope") or "auto", results.SCOPES)
        self.margin = query.get("margin") or ""
        self.family_by = query.get("family_by") or ""
        self.switches = {
            name: one_of(name, query.get(name) or "0", {"0": False, "1": True}) == "1"
            for name in SWITCHES
        }
        self.pair = ComparisonChoice(
            a=self.a,
            b=self.b,
            scope=results.SCOPES[self.scope],
            margin=parsed_margin(self.margin, option="margin") if self.margin else None,
        )

    @property
    def names_no_runs(self) -> bool:
        """True if the address leaves the choice of runs to the page."""
        named = any(self.filters[name] for name in ("run", "suite", "batch_id"))
        return not (self.a or self.b or named or self.switches["all_runs"])

    @property
    def selection(self) -> Selection:
        filters = self.filters
        return Selection(
            runs=filters["run"],
            suites=filters["suite"],
            batch_ids=filters["batch_id"],
            tasks=filters["task"],
            tags=filters["tag"],
            languages=filters["language"],
            criteria=filters["criterion"],
            judges=filters["judge"],
            family_by=self.family_by,
            all_runs=self.switches["all_runs"],
            pool_anyway=self.switches["pool_anyway"],
        )

    def pairs(self) -> list[tuple[str, str]]:
        pairs = [(name, value) for name in FILTERS for value in self.filters[name]]
        scope = None if self.scope == "auto" else self.scope
        rest = {
            "a": self.a,
            "b": self.b,
            "margin": self.margin,
            "scope": scope,
            "family_by": self.family_by,
        }
        switches = [(name, "1") for name, on in self.switches.items() if on]
        return [*pairs, *((name, value) for name, value in rest.items() if value), *switches]

    def address(self, path: str, **other: str | int | None) -> str:
        """Return a path with this state, with some values replaced; None removes a value."""
        pairs = [(name, value) for name, value in self.pairs() if name not in other]
        pairs += [(name, str(value)) for name, value in other.items() if value is not None]
        return path + (f"?{urlencode(pairs)}" if pairs else "")

    def without(self, name: str, value: str) -> str:
        """Return the page's address without one filter value."""
        pairs = [pair for pair in self.pairs() if pair != (name, value)]
        return "/results" + (f"?{urlencode(pairs)}" if pairs else "")
