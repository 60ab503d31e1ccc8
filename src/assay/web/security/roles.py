"""The addresses that each role may open. No other module decides who may see what.

House rules. A route that is not listed here is open to the owner only, so a new page is closed to reviewers and viewers until it
is listed. A page shows the same to every role that may open it. The review page hides names, the grades of blind items and
planted checks from everybody, including the owner, until the decision.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.routing import compile_path

from assay.domain.people import Person, VisitorRole, session_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.app.workspace import Workspace

LOOK_S: Final = 1.0
"""Seconds until a revoked invitation stops working, even if another process revoked it."""


def _pages(*routes: str) -> tuple[str, ...]:
    """Return the routes of pages and of their JSON."""
    return tuple(f"GET {route}{ending}" for route in routes for ending in ("", ".json"))


_REVIEW: Final = (
    *_pages("/review", "/assessments/{assessment_id}"),
    *_pages("/reviewers/{own_name}", "/reviewers/{own_name}/checks", "/reviewers/{own_name}/decisions"),
    "GET /api/assessments/{assessment_id}",
    "GET /api/assessments/{assessment_id}/drawn",
    "GET /api/assessments/{assessment_id}/panes/{pane}",
    "GET /api/review/next",
    "POST /api/review/end",
    "POST /api/review/leave",
    "POST /api/review/second",
    "POST /api/review/skip",
    "POST /api/review/verdict",
    "POST /api/decisions",
    "POST /api/rerun",
)

_RESULTS: Final = (
    "GET /",
    "GET /index.json",
    "GET /queue.json",
    "GET /api/live",
    "GET /api/runs",
    "GET /api/runs/{run_id}",
    "GET /api/runs/{run_id}/jobs",
    "GET /api/batches",
    "GET /api/batches/{batch_id}",
    "GET /get_evaluation_result/{evaluation_id}",
    *_pages("/runs", "/runs/{run_id}", "/runs/{run_id}/record", "/runs/{run_id}/trials/{trial_id}/answers"),
    "GET /runs/compare",
    "GET /runs/{run_id}/suite",
    "GET /runs/{run_id}/trials/{trial_id}",
    "GET /runs/{run_id}/trials/{trial_id}/answers/{place}.txt",
    *_pages("/batches/{batch_id:path}", "/registry", "/registry/task", "/registry/trend", "/registry/diff"),
    *_pages("/candidates", "/candidates/{name:path}", "/criteria", "/criteria/{name}"),
    "GET /criteria/{name}/grades.csv",
    "GET /results",
    "GET /results/report.{ending}",
    *_pages("/results/task", "/results/trend"),
    "GET /results/trend/chart.{ending}",
    *_pages("/statistics", "/statistics/behind", "/statistics/trials"),
    "GET /statistics/charts/{name}",
    "GET /statistics/tables/{name}.csv",
    "GET /statistics/trials/{trial_id}",
    *_pages("/compare", "/compare/agreement", "/compare/grades", "/arena/{run_id}/ranking"),
    "GET /arena/{run_id}/charts/strengths.{ending}",
    "GET /arena/{run_id}/pairs.csv",
    "GET /arena/{run_id}/votes.csv",
)

LISTED: Final[Mapping[VisitorRole, tuple[str, ...]]] = {
    VisitorRole.OWNER: (),
    VisitorRole.REVIEWER: _REVIEW,
    VisitorRole.VIEWER: _RESULTS,
}
"""Method and route of every address that a role may open; the owner may open all."""

_HIDES_QUERY: Final[Mapping[VisitorRole, re.Pattern[str]]] = {VisitorRole.REVIEWER: re.compile(r"(?:^|&)judge=")}
"""Query parameters that a role may not use: a filter by judge would confirm who graded an item."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The sender of a request; `name` is None for the owner, who may review under any name."""

    role: VisitorRole
    name: str | None = None

    @property
    def home(self) -> str:
        """Return the page on which this visitor starts."""
        return "/review" if self.role is VisitorRole.REVIEWER else "/"

    def may_open(self, method: str, path: str, query: str = "") -> bool:
        """True if the role lists the address; only the owner may open the others."""
        if self.role is VisitorRole.OWNER:
            return True
        if self.role in _HIDES_QUERY and _HIDES_QUERY[self.role].search(query):
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


class InvitedPeople:
    """A store's invited people by session; changes by another process take effect after `LOOK_S` seconds."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._people: Mapping[str, Person] = {}
        self._looked = float("-inf")

    async def with_session(self, session: str) -> Person | None:
        """Return the person of a session, even if their invitation is revoked; None for an unknown session."""
        now = self._workspace.clock.monotonic()
        if now - self._looked >= LOOK_S:
            self._people = await asyncio.to_thread(self._workspace.store.people.read)
            self._looked = now
        # Looked up by hash, so that the duration reveals nothing about the tokens.
        return self._people.get(session_digest(session))
