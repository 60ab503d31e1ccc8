"""Review verbs of a project: `project.review.list()`, `show`, `approve`, `reject`, `correct`,
`rerun` and `undo`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.app.python_api.event_loop import outside_loop
from assay.app.python_api.opened import opened
from assay.app.review import decisions
from assay.app.review.rerun import rerun_now
from assay.domain.errors import UnknownName
from assay.domain.lifecycle import AssessmentState
from assay.domain.one_or_many import Identifier, OneOrMany, identifier, identifiers
from assay.domain.selection import AssessmentDetail, AssessmentRow, Selection

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from assay.app.workspace import Workspace
    from assay.domain.failure import Failure
    from assay.domain.identifiers import AssessmentKey
    from assay.domain.review import ReviewEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewDesk:
    """The assessments of a project, to list, read and decide.

    Ids are those that the command line shows: `a17`, `"17"` or 17.
    """

    folder: str | Path | None = None
    store: str | None = None

    def list(
        self, *, run: OneOrMany | None = None, state: str | None = None
    ) -> tuple[AssessmentRow, ...]:
        """Return assessments in all states, or only those of some runs or in `state`."""
        states = None if state is None else frozenset({_state(state)})
        runs = () if run is None else identifiers(run, argument="run")
        with self._open() as workspace:
            return tuple(
                decisions.assessments(workspace.store, Selection(runs=runs), states=states)
            )

    def show(self, assessment: Identifier) -> AssessmentDetail:
        """Return one assessment with everything that a reviewer sees."""
        key = _key(assessment)
        with self._open() as workspace:
            return decisions.assessment(workspace.store, key)

    def approve(
        self, assessments: OneOrMany, *, reviewer: str | None = None
    ) -> tuple[ReviewEvent, ...]:
        """Approve the judge's grades, so that they count.

        If one approval is refused, no approval is stored.
        """
        keys = _keys(assessments)
        with self._open() as workspace:
            return decisions.approve(workspace, keys, reviewer=reviewer)

    def reject(
        self, assessments: OneOrMany, *, reason: str, reviewer: str | None = None
    ) -> tuple[ReviewEvent, ...]:
        """Reject grades, so that they count in no statistic."""
        keys = _keys(assessments)
        with self._open() as workspace:
            return decisions.reject(workspace, keys, reason=reason, reviewer=reviewer)

    def correct(
        self,
        assessment: Identifier,
        scores: Mapping[str, float | str],
        *,
        reason: str,
        reviewer: str | None = None,
    ) -> ReviewEvent:
        """Approve with your own scores by `name` or `name/criterion`: from 0 to 1, or words of the
        scale such as `Yes`.
        """
        key = _key(assessment)
        with self._open() as workspace:
            row = decisions.assessment(workspace.store, key).row
            texts = [f"{name}={value}" for name, value in scores.items()]
            corrections = decisions.parsed_corrections(
                texts, row, decisions.scale_words(workspace.store, row)
            )
            return decisions.correct(
                workspace, row.key, corrections, reason=reason, reviewer=reviewer
            )

    def rerun(
        self, assessment: Identifier, *, reason: str, note: str = "", reviewer: str | None = None
    ) -> tuple[AssessmentKey | None, Failure | None]:
        """Judge one trial again; return the key of the new attempt, or the failure."""
        key = _key(assessment)

        def work(_: object) -> tuple[AssessmentKey | None, Failure | None]:
            with self._open() as workspace:
                return rerun_now(workspace, key, reason=reason, note=note, reviewer=reviewer)

        return outside_loop(work)

    def undo(self, assessment: Identifier, *, reviewer: str | None = None) -> ReviewEvent:
        """Undo the last decision on an assessment; the assessment is pending again."""
        key = _key(assessment)
        with self._open() as workspace:
            return decisions.undo(workspace, key, reviewer=reviewer)

    def _open(self) -> AbstractContextManager[Workspace]:
        return opened(self.folder, self.store)


def _key(assessment: Identifier) -> AssessmentKey:
    return decisions.assessment_key(identifier(assessment, argument="assessment"))


def _keys(assessments: OneOrMany) -> tuple[AssessmentKey, ...]:
    return tuple(
        decisions.assessment_key(text) for text in identifiers(assessments, argument="assessments")
    )


def _state(word: str) -> AssessmentState:
    states = [state.value for state in AssessmentState]
    if word not in states:
        raise UnknownName("state", str(word), states, remedy=f"States are: {', '.join(states)}.")
    return AssessmentState(word)
