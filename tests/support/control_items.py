"""Control items put where chance would not put them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.control_items import CheckOrigin, ControlItem, RepeatOrigin
from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import AssessmentState
from assay.scoring.planted_errors import reordered

if TYPE_CHECKING:
    from assay.app.workspace import Workspace
    from assay.domain.control_items import ControlOrigin

WAITING = frozenset({AssessmentState.PENDING})
ANSWERED = frozenset(AssessmentState) - WAITING


def put_check(workspace: Workspace, source: AssessmentKey, *, reviewer: str = "ann") -> ControlItem:
    """An unaltered planted check made from an assessment."""
    return _put(workspace, source, reviewer, CheckOrigin(how="known_good"))


def put_repeat(
    workspace: Workspace, source: AssessmentKey, *, reviewer: str = "ann"
) -> ControlItem:
    """A repeat of a decision, due at once."""
    scores = dict(workspace.archive.assessments.detail(source).row.assessment.scores)
    origin = RepeatOrigin(scores=scores, since=0, after_items=0, due="2020-01-01T00:00:00+00:00")
    return _put(workspace, source, reviewer, origin)


def _put(
    workspace: Workspace, source: AssessmentKey, reviewer: str, origin: ControlOrigin
) -> ControlItem:
    detail = workspace.archive.assessments.detail(source)
    judged = (
        detail.judged
        if isinstance(origin, CheckOrigin)
        else reordered(detail.judged, seed=0, key=int(source))
    )
    return workspace.control_items.put(
        ControlItem(
            key=AssessmentKey(0),
            run_id=detail.row.run_id,
            source=source,
            reviewer=reviewer,
            made=workspace.clock.now(),
            judged=judged,
            origin=origin,
        )
    )
