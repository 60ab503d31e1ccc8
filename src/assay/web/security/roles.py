"""The addresses that each role may open: the one place that decides who sees what.

House rules. A route that is not listed here is open to the owner only, so a new page is closed to reviewers and viewers until it
is listed. A page shows the same to every role that may open it. The review page hides names, the grades of blind items and
planted checks from everybody, the owner included, until the decision.
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

_REVIEW: Final = (
    "GET /review",
    "GET /review.json",
    "GET /assessments/{assessment_id}",
    "GET /assessments/{assessment_id}.json",
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
    "GET /reviewers/{own_name}",
    "GET /reviewers/{own_name}.json",
    "GET /reviewers/{own_name}/checks",
    "GET /reviewers/{own_name}/checks.json",
    "GET /reviewers/{own_name}/decisions",
    "GET /reviewers/{own_name}/decisions.json",
)

_RESULTS: Final = (
    "GET /",
    "GET /index.json",
    "GET /queue.json",
    "GET /api/live",
    "GET /api/runs",
    "GET /api/runs/{run_id}",
    "GET /api/runs/{run_id}/jobs",
    "GET /api/batches/{batch_id}",
    "GET /get_evaluation_result/{evaluation_id}",
    "GET /runs",
    "GET /runs.json",
    "GET /runs/compare",
    "GET /runs/{run_id}",
    "GET /runs/{run_id}.json",
    "GET /runs/{run_id}/record",
    "GET /runs/{run_id}/record.json",
    "GET /runs/{run_id}/suite",
    "GET /runs/{run_id}/trials/{trial_id}",
    "GET /runs/{run_id}/trials/{trial_id}/answers",
    "GET /runs/{run_id}/trials/{trial_id}/answers.json",
    "GET /runs/{run_id}/trials/{trial_id}/answers/{place}.txt",
    "GET /batches/{batch_id:path}",
    "GET /batches/{batch_id:path}.json",
    "GET /registry",
    "GET /registry.json",
    "GET /registry/task",
    "GET /registry/task.json",
    "GET /registry/trend",
    "GET /registry/trend.json",
    "GET /registry/diff",
    "GET /registry/diff.json",
    "GET /results/task",
    "GET /results/task.json",
    "GET /results/trend",
    "GET /results/trend.json",
    "GET /results/trend/chart.{ending}",
    "GET /candidates",
    "GET /candidates.json",
    "GET /candidates/{name:path}",
    "GET /candidates/{name:path}.json",
    "GET /results",
    "GET /results/report.{ending}",
    "GET /statistics",
    "GET /statistics.json",
    "GET /statistics/behind",
    "GET /statistics/behind.json",
    "GET /statistics/charts/{name}",
    "GET /statistics/tables/{name}.csv",
    "GET /statistics/trials",
    "GET /statistics/trials.json",
    "GET /statistics/trials/{trial_id}",
    "GET /compare",
    "GET /compare.json",
    "GET /compare/agreement",
    "GET /compare/agreement.json",
    "GET /compare/grades",
    "GET /compare/grades.json",
    "GET /criteria",
    "GET /criteria.json",
    "GET /criteria/{name}",
    "GET /criteria/{name}.json",
    "GET /criteria/{name}/grades.csv",
    "GET /arena/{run_id}/ranking",
    "GET /arena/{run_id}/ranking.json",
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
    """The invited people of a store by session; changes by another process take effect after `LOOK_S` seconds."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._people: Mapping[str, Person] = {}
        self._looked = float("-inf")

    async def with_session(self, session: str) -> Person | None:
        """Return the person to whom a session belongs, even if their invitation is revoked; None for an unknown one."""
        now = self._workspace.clock.monotonic()
        if now - self._looked >= LOOK_S:
            self._people = await asyncio.to_thread(self._workspace.store.people.read)
            self._looked = now
        # Looked up by hash, so that the duration reveals nothing about the tokens.
        return self._people.get(session_digest(session))
