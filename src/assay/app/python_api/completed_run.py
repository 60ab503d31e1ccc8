"""The run that `assay.run` returns, with methods for its results."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, overload

from assay.app.python_api.opened import opened
from assay.app.runs import run_documents
from assay.app.runs.execution import RunResult
from assay.app.statistics import baseline as earlier, notebooks, results
from assay.app.statistics.vetting import require_vetted
from assay.domain.lifecycle import AssessmentState
from assay.domain.margins import Margin, margin_of
from assay.domain.selection import AssessmentRow, Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    import pandas
    import polars

    from assay.app.statistics.notebooks import Frame, FrameLibrary
    from assay.app.workspace import Workspace
    from assay.store.opening import Store


_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletedRun(RunResult):
    """Stored result of a run. Each method reads the store again.

    Attributes:
        folder: folder of `assay.yaml` and the store; None for the working folder.
        store: address of the store; None for the address in the settings.
    """

    folder: Path | None
    store: str | None

    @classmethod
    def of(cls, result: RunResult, *, folder: Path | None, store: str | None) -> CompletedRun:
        """Return a result that remembers its folder and store."""
        own = {each.name: getattr(result, each.name) for each in fields(RunResult)}
        return cls(**own, folder=folder, store=store)

    @property
    def id(self) -> str:
        """The run's id, which commands and functions accept."""
        return str(self.summary.id)

    def stats(self) -> results.CandidateScores:
        """Compute each candidate's score over the counted trials of this run."""
        with self._open() as workspace:
            return results.stats(workspace.store, workspace.settings, self._selection)

    def compare(
        self, a: str, b: str, *, scope: str | None = None, margin: Margin | None = None
    ) -> results.ComparisonResult:
        """Compare A with B in this run."""
        smallest = margin_of(margin, argument="margin")
        with self._open() as workspace:
            return results.compare(
                workspace.store,
                workspace.settings,
                self._selection,
                a,
                b,
                scope=scope,
                margin=smallest,
            )

    def rank(
        self, *, scope: str | None = None, margin: Margin | None = None
    ) -> results.RankingResult:
        """Rank the candidates of this run."""
        smallest = margin_of(margin, argument="margin")
        with self._open() as workspace:
            return results.rank(
                workspace.store, workspace.settings, self._selection, scope=scope, margin=smallest
            )

    def gate(
        self,
        candidate: str,
        *,
        against: str | None = None,
        baseline: str | None = None,
        margin: Margin | None = None,
        require: Requirement | None = None,
    ) -> results.GateResult:
        """Test that a candidate is not worse than another candidate in this run, or than in earlier
        runs.
        """
        with self._open() as workspace:
            return gate_of(
                workspace,
                self._selection,
                candidate,
                against,
                baseline=baseline,
                margin=margin,
                require=require,
            )

    def require_vetted(self) -> None:
        """Raise `Refused` if counted grades of this run were approved by a script or seen by no
        person.
        """
        with self._open() as workspace:
            require_vetted(workspace, self._selection)

    def pending(self) -> tuple[AssessmentRow, ...]:
        """Return the grades of this run that await review."""
        with self._open() as workspace:
            waiting = frozenset({AssessmentState.PENDING})
            return tuple(workspace.archive.assessments.matching(self._selection, states=waiting))

    @overload
    def to_frame(self, library: Literal["pandas"]) -> pandas.DataFrame: ...
    @overload
    def to_frame(self, library: Literal["polars"]) -> polars.DataFrame: ...
    @overload
    def to_frame(self, library: FrameLibrary | None = None) -> Frame: ...
    def to_frame(self, library: FrameLibrary | None = None) -> Frame:
        """Return a data frame (pandas or polars) with a row for each grade, counted or not."""
        with self._open() as workspace:
            rows = list(_grade_rows(workspace.store, self._selection))
        return notebooks.frame_of(rows, library)

    def __repr__(self) -> str:
        return f"Run({self.id}: {self._in_words()})"

    def _repr_html_(self) -> str:
        with self._open() as workspace:
            ranking = results.rank(workspace.store, workspace.settings, self._selection)
            names = [str(place.candidate) for place in ranking.ranking.candidates]
            verdict = (
                results.compare(
                    workspace.store, workspace.settings, self._selection, *names
                ).verdict
                if len(names) == 2
                else ""
            )
        marks = notebooks.estimate_marks([place.estimate for place in ranking.ranking.candidates])
        failures = [
            f"{row.task} trial {row.k} failed: {row.failure.detail}"
            for row in self.failures[:_SHOWN]
            if row.failure
        ]
        more = len(self.failures) - len(failures)
        return notebooks.html_of(
            [f"{self.summary.suite}: {self._in_words()}", *([verdict] if verdict else [])],
            picture=notebooks.drawing(marks) if ranking.basis.n_trials else "",
            notes=[
                *failures,
                *([f"and {more} more failures"] if more > 0 else []),
                results.counted(ranking.basis),
            ],
        )

    @property
    def _selection(self) -> Selection:
        return Selection(runs=(self.id,))

    def _open(self) -> AbstractContextManager[Workspace]:
        return opened(self.folder, self.store)

    def _in_words(self) -> str:
        document = run_documents.run_result(self)
        trials, waiting = document.trials, document.assessments["pending"]
        parts = [f"{trials['done']} of {trials['total']} trials done"]
        parts += [f"{trials['failed']} failed"] if trials["failed"] else []
        parts += (
            [f"{waiting} {'grade awaits' if waiting == 1 else 'grades await'} review"]
            if waiting
            else []
        )
        return (
            ", ".join(parts) if self.pause is None else f"{', '.join(parts)}; {self.pause.sentence}"
        )


Requirement: TypeAlias = Literal["vetted"]
"""`vetted`: refuse grades that a script approved or that no person has seen."""


def gate_of(
    workspace: Workspace,
    selection: Selection,
    candidate: str,
    against: str | None,
    *,
    baseline: str | None,
    margin: Margin | None,
    require: Requirement | None,
) -> results.GateResult:
    """Apply the gate against another candidate or against earlier runs; raises TypeError unless
    exactly one is given.
    """
    if (against is None) == (baseline is None):
        raise TypeError("give either the other candidate or a baseline")
    largest = margin_of(margin, argument="margin")
    if baseline is not None:
        return earlier.gate_baseline(
            workspace,
            selection,
            candidate,
            baseline=baseline,
            margin=largest,
            vetted=require is not None,
        )
    return results.gate(
        workspace, selection, candidate, str(against), margin=largest, vetted=require is not None
    )


def _grade_rows(store: Store, selection: Selection) -> Iterator[Mapping[str, Any]]:
    for row in store.archive.exports.score_rows(selection, everything=True):
        yield {
            "task": row.task,
            "candidate": row.candidate,
            "trial": row.k,
            "judge": row.judge,
            "score": row.score,
            "state": row.state.value,
            "counts": row.not_counted is None,
            "assessment": f"a{row.assessment}",
        }
