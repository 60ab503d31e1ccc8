"""Review functions: `assay.review.list()`, `show`, `approve`, `reject`, `correct`, `rerun` and
`undo`.

They are the methods of `Project.review`, of the current folder unless `folder` is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.app.python_api.project import Folder, Project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.domain.failure import Failure
    from assay.domain.identifiers import AssessmentKey
    from assay.domain.one_or_many import Identifier, OneOrMany
    from assay.domain.review import ReviewEvent
    from assay.domain.selection import AssessmentDetail, AssessmentRow


def list(  # noqa: A001 # reads as assay.review.list, the command's name
    *,
    run: OneOrMany | None = None,
    state: str | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> tuple[AssessmentRow, ...]:
    """Return assessments in all states, or only those of some runs or in `state`."""
    return Project(folder, store).review.list(run=run, state=state)


def show(
    assessment: Identifier, *, store: str | None = None, folder: Folder = None
) -> AssessmentDetail:
    """Return one assessment with everything that a reviewer sees."""
    return Project(folder, store).review.show(assessment)


def approve(
    assessments: OneOrMany,
    *,
    reviewer: str | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> tuple[ReviewEvent, ...]:
    """Approve the judge's grades, so that they count.

    If one approval is refused, no approval is stored.
    """
    return Project(folder, store).review.approve(assessments, reviewer=reviewer)


def reject(
    assessments: OneOrMany,
    *,
    reason: str,
    reviewer: str | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> tuple[ReviewEvent, ...]:
    """Reject grades, so that they count in no statistic."""
    return Project(folder, store).review.reject(assessments, reason=reason, reviewer=reviewer)


def correct(
    assessment: Identifier,
    scores: Mapping[str, float | str],
    *,
    reason: str,
    reviewer: str | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> ReviewEvent:
    """Approve with your own scores by `name` or `name/criterion`: from 0 to 1, or words of the
    scale such as `Yes`.
    """
    return Project(folder, store).review.correct(
        assessment, scores, reason=reason, reviewer=reviewer
    )


def rerun(
    assessment: Identifier,
    *,
    reason: str,
    note: str = "",
    reviewer: str | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> tuple[AssessmentKey | None, Failure | None]:
    """Judge one trial again; return the key of the new attempt, or the failure."""
    return Project(folder, store).review.rerun(
        assessment, reason=reason, note=note, reviewer=reviewer
    )


def undo(
    assessment: Identifier,
    *,
    reviewer: str | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> ReviewEvent:
    """Undo the last decision on an assessment; the assessment is pending again."""
    return Project(folder, store).review.undo(assessment, reviewer=reviewer)
