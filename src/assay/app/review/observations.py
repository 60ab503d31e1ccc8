"""Records of review observations, such as grades shown, verdicts given and decisions made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.observations import Observation, ObservationBody

if TYPE_CHECKING:
    from assay.app.workspace import Workspace
    from assay.domain.selection import AssessmentDetail


def observation_on(
    workspace: Workspace, detail: AssessmentDetail, reviewer: str, idempotency_key: str, body: ObservationBody
) -> Observation:
    """Return an observation made now; the idempotency key keeps a repeated request from counting twice."""
    row = detail.row
    return Observation(
        run_id=row.run_id,
        assessment=row.key,
        purpose=row.purpose,
        reviewer=reviewer,
        at=workspace.clock.now(),
        idempotency_key=idempotency_key,
        body=body,
    )


def note(
    workspace: Workspace, detail: AssessmentDetail, reviewer: str, idempotency_key: str, body: ObservationBody
) -> Observation:
    """Store an observation made now and return it; if the idempotency key was used before, return the stored one."""
    (kept,) = workspace.observations.note([observation_on(workspace, detail, reviewer, idempotency_key, body)])
    return kept
