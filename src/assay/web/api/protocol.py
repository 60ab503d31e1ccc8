"""Endpoints for a run's review protocol: show it, estimate the cost of a change, and change it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from fastapi import APIRouter, Request, Response
from pydantic import Field

from assay.app.registry import runs
from assay.app.review import protocol as protocols
from assay.domain.selection import Selection
from assay.web.api.start import ProtocolBody
from assay.web.context import reviewer_of, services_of
from assay.web.responses import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

router = APIRouter()


class SwitchBody(ProtocolBody):
    """A new protocol for a run; with `only_look`, only the review work is estimated."""

    only_look: bool = False
    reviewer: str | None = Field(default=None, max_length=120)


class ProtocolStanding(TypedDict):
    """A run's current protocol, its review work, and the number of decisions before the last
    switch.
    """

    protocol: dict[str, object]
    numbers: Mapping[str, object]
    version: int
    decided_before: int
    review: object


@router.get("/api/runs/{run_id}/protocol", tags=["runs"])
def protocol(request: Request, run_id: str) -> Response:
    """Return a run's current protocol and the remaining review work."""
    workspace = services_of(request).workspace
    (summary,) = runs.runs(workspace.store, Selection(runs=(run_id,)))
    return Answer(standing(request, str(summary.id)))


@router.post("/api/runs/{run_id}/protocol", tags=["runs"])
def switch(request: Request, run_id: str, body: SwitchBody) -> Response:
    """Change the protocol for the rest of a run's review; with `only_look`, only estimate the
    review work.
    """
    workspace = services_of(request).workspace
    (summary,) = runs.runs(workspace.store, Selection(runs=(run_id,)))
    changes = body.model_dump(exclude_none=True, exclude={"only_look", "reviewer"})
    if body.only_look:
        wished = protocols.wished(workspace.store, summary.id, changes)
        return Answer(
            {"review": protocols.cost(wished, protocols.load_left(workspace.store, summary))}
        )
    protocols.switch(workspace, summary.id, changes, reviewer=reviewer_of(request, body.reviewer))
    # Concealment remembers protocols for a second, and the next request must already follow the new
    # one.
    services_of(request).concealment.forget()
    return Answer(standing(request, str(summary.id)))


def standing(request: Request, run_id: str) -> ProtocolStanding:
    workspace = services_of(request).workspace
    (summary,) = runs.runs(workspace.store, Selection(runs=(run_id,)))
    plan = workspace.journal.plan_of(summary.id)
    (current,) = protocols.in_use(workspace.store, [plan])
    holds = protocols.holding(workspace.store, plan)
    late = current.get("switched") or []
    return {
        "protocol": {name: value for name, value in current.items() if name != "runs"},
        "numbers": protocols.numbers(holds),
        "version": holds.version,
        "decided_before": late[-1]["decided_before"] if late else 0,
        "review": protocols.cost(holds, protocols.load_left(workspace.store, summary)),
    }
