"""Record review observations, such as grades shown, verdicts and decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.observations import Observation, ObservationBody

if TYPE_CHECKING:
    from assay.domain.selection import AssessmentDetail
    from assay.ports import Clock
    from assay.store.opening import Store


def observation_on(
    clock: Clock,
    detail: AssessmentDetail,
    reviewer: str,
    idempotency_key: str,
    body: ObservationBody,
) -> Observation:
    """Create an observation with the current time.

    The idempotency key prevents a repeated request from counting twice.
    """
    row = detail.row
    return Observation(
        run_id=row.run_id,
        assessment=row.key,
        purpose=row.purpose,
        reviewer=reviewer,
        at=clock.now(),
        idempotency_key=idempotency_key,
        body=body,
    )


def note(
    store: Store,
    detail: AssessmentDetail,
    reviewer: str,
    idempotency_key: str,
    body: ObservationBody,
) -> Observation:
    """Store an observation with the current time and return it; for a repeated idempotency key,
    return the stored observation.
    """
    (kept,) = store.observations.note(
        [observation_on(store.clock, detail, reviewer, idempotency_key, body)]
    )
    return kept
