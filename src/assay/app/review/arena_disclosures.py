"""Record reviewers who learned a trial's authors in the arena, and so can no longer review the
trial blind.

A disclosure is recorded before the names are sent. It applies to the trial rather than to
assessments, because some assessments may come later. A response in the suite is the same in every
trial, so its disclosure applies to the whole task.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from assay.app.review.protocol import OF_THE_RUN
from assay.domain.observations import AuthorsDisclosed, Observation, ObservationKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.domain.identifiers import AssessmentKey, RunId
    from assay.domain.selection import AssessmentRow
    from assay.store.opening import Store


def note(store: Store, run: RunId, task: str, k: int | None, *, reviewer: str) -> None:
    """Record that a reviewer learns the authors of trial `k`, or of all trials of the task if `k`
    is None.
    """
    store.observations.note(
        [
            Observation(
                run_id=run,
                assessment=OF_THE_RUN,
                reviewer=reviewer,
                at=store.clock.now(),
                idempotency_key=_idempotency_key(run, task, k, reviewer),
                body=AuthorsDisclosed(task=task, k=k),
            )
        ]
    )


def disclosed(
    store: Store, rows: Iterable[AssessmentRow], *, reviewer: str
) -> frozenset[AssessmentKey]:
    """Return the keys of the assessments whose authors this reviewer learned in the arena."""
    keys_of = {
        row.key: {_idempotency_key(row.run_id, row.task, k, reviewer) for k in (row.k, None)}
        for row in rows
    }
    if not keys_of:
        return frozenset()
    stored = store.observations.read(
        kinds=(ObservationKind.DISCLOSED,), idempotency_keys=set().union(*keys_of.values())
    )
    known = {observation.idempotency_key for observation in stored}
    return frozenset(key for key, either in keys_of.items() if either & known)


def _idempotency_key(run: str, task: str, k: int | None, reviewer: str) -> str:
    return "disclosed:" + json.dumps([run, task, k, reviewer])
