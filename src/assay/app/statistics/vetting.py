"""`--require vetted`: refuse a result that rests on grades that no person read on a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.app.review.double_review import what_waits
from assay.app.statistics.basis import approvals_of
from assay.domain.errors import Refused
from assay.domain.identifiers import shown_assessment
from assay.report import wording

if TYPE_CHECKING:
    from assay.app.workspace import Workspace
    from assay.domain.selection import Selection

_NAMED = 5  # maximum number of assessments that the message names


def require_vetted(workspace: Workspace, selection: Selection) -> None:
    """Raise `Refused` if grades count that a script approved, or that no person has seen, or if
    none counts and some wait.

    Imported approvals are accepted, and each result names their number. The setting
    `count_scripted` also accepts scripts.
    """
    scores = workspace.archive.scores
    waiting = scores.excluded(selection).awaiting_review
    if waiting and not scores.counted_by_run(selection):
        raise Refused(
            "--require vetted",
            wording.none_counts(waiting),
            remedy=what_waits(workspace.store, workspace.reviewer, selection),
        )
    given, unseen = (
        approvals_of(workspace.store, workspace.settings, selection),
        scores.unreviewed(selection),
    )
    problems, remedies = [], []
    if given.scripted and not given.scripted_allowed:
        ids = [shown_assessment(key) for key in scores.scripted(selection, limit=_NAMED)]
        problems.append(wording.scripted_refused(given, ids))
        remedies.append(
            "Undo these (`assay review undo ID`) and read them with `assay review` or on the review page, or set "
            "`count_scripted: true` in assay.yaml to accept them."
        )
    if unseen:
        problems.append(wording.unseen_refused(unseen))
        remedies.append(
            "Grade the run again with `review: every` in its suite: assay regrade RUN --suite FILE."
        )
    if problems:
        raise Refused("--require vetted", " ".join(problems), remedy=" ".join(remedies))
