"""Pages that compare grades in columns: by judge, by attempt, or judge against person.

A page reads only the trials that it shows. A page in the order of the run continues after the
previous page. A page sorted by gap uses the run's cached figures (`grade_summary`). While these are
read for the first time, rows keep the order of the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Final

import numpy as np

from assay.app.comparison import grade_rows
from assay.app.comparison.grade_summary import GradeFigures, GradeFiguresCache, matching_rows
from assay.domain.identifiers import AssessmentKey, TrialKey
from assay.domain.lifecycle import AssessmentState, Verb

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.analysis.columns import TaskLabel
    from assay.domain.assessment import Assessment, Grade
    from assay.domain.selection import AssessmentDetail
    from assay.store.opening import Store

PORTION: Final = 20

SCAN_S: Final = 0.1
"""Maximum seconds to search for rows that match a page's filter; the next page continues where the
search stopped.
"""

_FIRST_LOOK: Final = 40
_LONGEST_LOOK: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PaneGrades:
    """One grader's grades in a row. `who` and `reason` are set only if a person decided."""

    assessment: AssessmentKey
    state: AssessmentState
    score: float | None
    grades: tuple[Grade, ...]
    report: str
    who: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradesRow:
    """The grades of one candidate in one trial, in each pane; `gap` is None if fewer than two panes
    have a score.
    """

    task: TaskLabel
    k: int
    candidate: str
    gap: float | None
    sheets: tuple[PaneGrades | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GradesPage:
    """A page of rows, with the names to filter by.

    Attributes:
        panes: names of the panes from left to right.
        judges, tasks, candidates, criteria: names that the filters offer; `tasks` contains only the
            first tasks of a large run.
        wanted: the query after its names were looked up.
        figures: summary of all rows; None while a large run is read for the first time.
        by_gap: True if rows are sorted by gap, False if they keep the order of the run.
        more: True if more rows follow. The next page needs a row number if rows are sorted by gap,
            otherwise `after`.
        looked_at: number of trials that were read for this page.
    """

    panes: tuple[str, ...]
    judges: tuple[str, ...]
    tasks: tuple[str, ...]
    candidates: tuple[str, ...]
    criteria: tuple[str, ...]
    wanted: grade_rows.GradeQuery
    rows: tuple[GradesRow, ...]
    figures: GradeFigures | None
    by_gap: bool
    more: bool
    after: tuple[int, int] | None
    looked_at: int


class GradeComparison:
    """Provides pages of grades in columns, and caches the figures of each run. Thread-safe."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._figures = GradeFiguresCache(store)
        self._clock = clock

    def page(
        self,
        wanted: grade_rows.GradeQuery,
        *,
        start: int = 0,
        after: tuple[int, int] | None = None,
        limit: int = PORTION,
    ) -> GradesPage:
        """Return a page of rows.

        Args:
            start: number of rows to skip if rows are sorted by gap, below `WIDEST`.
            after: position after which the page begins if rows keep the order of the run.

        Raises:
            UnknownName: an unknown run, judge, task, candidate or criterion.
            InputError: a run compared with itself, or a query for a judge in a run that no model
                graded.
        """
        resolved = grade_rows.resolve_query(self._store, wanted)
        figures = self._figures.of(resolved)
        own = () if figures is None else figures.own
        listed = None if figures is None or not wanted.by_gap else figures.widest[wanted.only]
        place, looked = None, 0
        if listed is not None:
            chunk = self._picked(resolved, listed[start : start + limit], own)
            more = start + limit < len(listed)
        else:
            chunk, place, looked = self._next(resolved, own, after, limit)
            more = place is not None
        run = resolved.run
        return GradesPage(
            panes=(*resolved.panes, *own),
            judges=run.judges,
            tasks=run.tasks,
            candidates=run.candidates,
            criteria=run.criteria,
            wanted=resolved.wanted,
            rows=self._shown(resolved, chunk),
            figures=figures,
            by_gap=listed is not None,
            more=more,
            after=place,
            looked_at=looked,
        )

    def close(self) -> None:
        self._figures.close()

    def _picked(
        self,
        resolved: grade_rows.ResolvedGradeQuery,
        listed: tuple[tuple[TrialKey, str], ...],
        own: tuple[str, ...],
    ) -> grade_rows.GradeChunk:
        """Return the listed rows in the same order, without rows that became pending again."""
        places = {(int(key), name): at for at, (key, name) in enumerate(listed)}
        chunk = resolved.chunk(list(dict.fromkeys(key for key, _ in listed)), own)
        names, rows = chunk.columns.candidates, chunk.rows
        at = [
            places.get((int(key), names[code]), -1)
            for key, code in zip(rows.trial, rows.candidate, strict=True)
        ]
        order = [row for row in np.argsort(at, kind="stable").tolist() if at[row] >= 0]
        return replace(chunk, rows=rows.only(np.array(order, np.int64)))

    def _next(
        self,
        resolved: grade_rows.ResolvedGradeQuery,
        own: tuple[str, ...],
        after: tuple[int, int] | None,
        limit: int,
    ) -> tuple[grade_rows.GradeChunk, tuple[int, int] | None, int]:
        """Search for matching rows for up to `SCAN_S` seconds; return (rows, position reached,
        number of trials read).
        """
        began, size, looked, place, ended = self._clock(), _FIRST_LOOK, 0, after, False
        keys = []
        while True:
            trials = resolved.trials(after=place, limit=size)
            looked, ended = looked + len(trials), len(trials) < size
            chunk = resolved.chunk([trial.key for trial in trials], own)
            through = matching_rows(chunk.rows, resolved.wanted.only, resolved.wanted.apart)
            wanted = set(chunk.rows.trial[through].tolist())
            rows_of = dict(
                zip(*np.unique(chunk.rows.trial[through], return_counts=True), strict=True)
            )
            for number, trial in enumerate(trials):
                place = trial.place
                if int(trial.key) in wanted:
                    keys.append(trial.key)
                    limit -= int(rows_of[trial.key])
                    if limit <= 0:
                        ended = ended and number == len(trials) - 1
                        break
            if ended or limit <= 0 or self._clock() - began > SCAN_S:
                break
            # Doubled, because a filter that seldom matches would cost many small reads.
            size = min(2 * size, _LONGEST_LOOK)
        chunk = resolved.chunk(keys, own)
        through = matching_rows(chunk.rows, resolved.wanted.only, resolved.wanted.apart)
        ended = ended or not resolved.trials(after=place, limit=1)
        return replace(chunk, rows=chunk.rows.only(through)), None if ended else place, looked

    def _shown(
        self, resolved: grade_rows.ResolvedGradeQuery, chunk: grade_rows.GradeChunk
    ) -> tuple[GradesRow, ...]:
        rows, columns = chunk.rows, chunk.columns
        keys = sorted({int(key) for key in rows.assessment.ravel() if key >= 0})
        details = {
            detail.row.key: detail
            for detail in self._store.archive.assessments.details(
                [AssessmentKey(key) for key in keys]
            )
        }
        gaps, criterion = rows.gap, resolved.wanted.criterion
        shown = []
        for place in range(len(rows.task)):
            candidate = columns.candidates[rows.candidate[place]]
            written = resolved.written(candidate)
            sheets: list[PaneGrades | None] = []
            for pane, key in zip(rows.panes, rows.assessment[place].tolist(), strict=True):
                detail = details.get(AssessmentKey(key))
                if detail is None:
                    sheets.append(None)
                elif (own := chunk.own.get((pane, key))) is not None and pane.endswith(
                    (grade_rows.BLIND, grade_rows.OPINION)
                ):
                    sheets.append(_own_sheet(detail, written, pane, own, criterion))
                else:
                    sheets.append(
                        _sheet(detail, written, criterion, final=pane == grade_rows.PERSONS)
                    )
            first = next(
                details[AssessmentKey(key)]
                for key in rows.assessment[place].tolist()
                if key in details
            )
            shown.append(
                GradesRow(
                    task=columns.tasks[rows.task[place]],
                    k=first.row.k,
                    candidate=candidate,
                    gap=None if np.isnan(gaps[place]) else float(gaps[place]),
                    sheets=tuple(sheets),
                )
            )
        return tuple(shown)


def _sheet(detail: AssessmentDetail, candidate: str, criterion: str, *, final: bool) -> PaneGrades:
    """Build the pane of a judge's grades; with `final`, the pane of the person's decisions on
    them.
    """
    shown = detail.row.assessment if final else detail.judged
    rejected = final and detail.row.state is AssessmentState.REJECTED
    last = next(
        (
            event.decision
            for event in reversed(detail.events)
            if event.decision.verb is not Verb.UNDO
        ),
        None,
    )
    grades = () if rejected else _grades(shown, candidate, criterion)
    score = (
        next((grade.score for grade in grades), None) if criterion else shown.scores.get(candidate)
    )
    if final:  # the reasons are the judge's, and the judge's pane shows them
        grades = tuple(replace(grade, reason="", evidence=()) for grade in grades)
    return PaneGrades(
        assessment=detail.row.key,
        state=detail.row.state,
        score=None if rejected else score,
        grades=grades,
        report="" if final or criterion else shown.report,
        who=last.reviewer if final and last else "",
        reason=" ".join(part for part in (last.reason, last.note) if part)
        if final and last
        else "",
    )


def _own_sheet(
    detail: AssessmentDetail, candidate: str, pane: str, own: grade_rows.OwnScores, criterion: str
) -> PaneGrades:
    given = {
        named: score for (name, named), score in own.scores.items() if name == candidate and named
    }
    grades = tuple(
        replace(grade, score=given[grade.criterion], reason="", evidence=())
        for grade in _grades(detail.judged, candidate, criterion)
        if grade.criterion in given
    )
    return PaneGrades(
        assessment=detail.row.key,
        state=detail.row.state,
        score=own.of(candidate, criterion),
        grades=grades,
        report="",
        who=pane.removesuffix(grade_rows.BLIND).removesuffix(grade_rows.OPINION),
        reason=own.reason,
    )


def _grades(shown: Assessment, candidate: str, criterion: str) -> tuple[Grade, ...]:
    return tuple(
        grade
        for grade in shown.grades
        if grade.candidate == candidate and criterion in ("", grade.criterion)
    )
