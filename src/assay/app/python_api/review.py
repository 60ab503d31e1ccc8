"""Review functions: `assay.review.list()`, `show`, `approve`, `reject`, `correct`, `rerun` and `undo`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.app.python_api.event_loop import outside_loop
from assay.app.review import decisions
from assay.app.review.rerun import rerun_now
from assay.app.workspace import Workspace
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import AssessmentDetail, AssessmentRow, Selection

if TYPE_CHECKING:
    from pathlib import Path

    from assay.domain.failure import Failure
    from assay.domain.identifiers import AssessmentKey
    from assay.domain.review import ReviewEvent


def list(  # noqa: A001 # reads as assay.review.list, the command's name
    *, run: str | None = None, state: str | None = None, store: str | None = None, folder: Path | None = None
) -> tuple[AssessmentRow, ...]:
    """Return assessments in all states, or only those in `state`."""
    states = None if state is None else frozenset({AssessmentState(state)})
    with _open(folder, store) as workspace:
        return tuple(decisions.assessments(workspace, Selection(runs=(run,) if run else ()), states=states))


def show(assessment: str, *, store: str | None = None, folder: Path | None = None) -> AssessmentDetail:
    """Return one assessment with everything that a reviewer sees."""
    with _open(folder, store) as workspace:
        return decisions.assessment(workspace, decisions.assessment_key(assessment))


def approve(
    assessments: Sequence[str], *, reviewer: str | None = None, store: str | None = None, folder: Path | None = None
) -> tuple[ReviewEvent, ...]:
    """Approve the judge's grades, so that they count. If one approval is refused, no approval is stored."""
    with _open(folder, store) as workspace:
        return decisions.approve(workspace, [decisions.assessment_key(a) for a in assessments], reviewer=reviewer)


def reject(
    assessments: Sequence[str],
    *,
    reason: str,
    reviewer: str | None = None,
    store: str | None = None,
    folder: Path | None = None,
) -> tuple[ReviewEvent, ...]:
    """Reject grades, so that they count in no statistic."""
    with _open(folder, store) as workspace:
        keys = [decisions.assessment_key(a) for a in assessments]
        return decisions.reject(workspace, keys, reason=reason, reviewer=reviewer)


def correct(
    assessment: str,
    scores: dict[str, float],
    *,
    reason: str,
    reviewer: str | None = None,
    store: str | None = None,
    folder: Path | None = None,
) -> ReviewEvent:
    """Approve with your own scores from 0 to 1, by `name` or `name/criterion`."""
    with _open(folder, store) as workspace:
        row = decisions.assessment(workspace, decisions.assessment_key(assessment)).row
        corrections = decisions.parsed_corrections((f"{name}={value!r}" for name, value in scores.items()), row)
        return decisions.correct(workspace, row.key, corrections, reason=reason, reviewer=reviewer)


def rerun(
    assessment: str,
    *,
    reason: str,
    note: str = "",
    reviewer: str | None = None,
    store: str | None = None,
    folder: Path | None = None,
) -> tuple[AssessmentKey | None, Failure | None]:
    """Judge one trial again; return the key of the new attempt, or the failure."""

    def work(_: object) -> tuple[AssessmentKey | None, Failure | None]:
        with _open(folder, store) as workspace:
            key = decisions.assessment_key(assessment)
            return rerun_now(workspace, key, reason=reason, note=note, reviewer=reviewer)

    return outside_loop(work)


def undo(assessment: str, *, reviewer: str | None = None, store: str | None = None, folder: Path | None = None) -> ReviewEvent:
    """Undo the last decision on an assessment; the assessment is pending again."""
    with _open(folder, store) as workspace:
        return decisions.undo(workspace, decisions.assessment_key(assessment), reviewer=reviewer)


def _open(folder: Path | None, store: str | None) -> Workspace:
    return Workspace.open(folder, options={"store": store})
