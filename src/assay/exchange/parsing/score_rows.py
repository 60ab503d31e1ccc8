"""Combine rows with one score each into assessments; the rows may have any order."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from assay.domain.import_records import FoundAssessment, FoundGrade, GradedBy

MAX_WAITING: Final = 100_000


class _Cell(NamedTuple):
    """Key of one score in the file; a second score with the same key starts a second assessment."""

    task: str
    trial: int
    judge: str
    candidate: str
    criterion: str
    state: str | None


class _Judging(NamedTuple):
    """Key of the rows that form one assessment; `candidate` is None if the judge graded all
    candidates together.
    """

    task: str
    trial: int
    judge: str
    state: str | None
    joint: bool
    candidate: str | None
    attempt: int


class _Gathered(NamedTuple):
    """Grades read so far for one assessment; `where` is the file and line of its first row."""

    by: GradedBy
    where: str
    grades: list[FoundGrade]


class AssessmentGatherer:
    """Combines grades into assessments; `ready` yields them in large batches, and `rest` yields the
    remaining ones.

    Rows with the same task, trial and judge form an assessment, per candidate or, if `joint`, for
    all candidates. A criterion that is repeated for a candidate starts another assessment.
    """

    def __init__(self) -> None:
        self._waiting: dict[_Judging, _Gathered] = {}
        self._seen: dict[_Cell, int] = {}

    def add(
        self,
        grade: FoundGrade,
        *,
        task: str,
        trial: int,
        judge: str,
        by: GradedBy,
        where: str,
        joint: bool = False,
        state: str | None = None,
    ) -> None:
        cell = _Cell(task, trial, judge, grade.candidate, grade.criterion, state)
        attempt = self._seen[cell] = self._seen.get(cell, 0) + 1
        key = _Judging(
            task, trial, judge, state, joint, None if joint else grade.candidate, attempt
        )
        gathered = self._waiting.get(key)
        if gathered is None:
            gathered = self._waiting[key] = _Gathered(by, where, [])
        gathered.grades.append(grade)

    def ready(self) -> Iterator[FoundAssessment]:
        """Yield the collected assessments if there are many of them, to limit memory use."""
        if len(self._waiting) >= MAX_WAITING:
            yield from self.rest()

    def rest(self) -> Iterator[FoundAssessment]:
        for key, gathered in self._waiting.items():
            yield FoundAssessment(
                task=key.task,
                trial=key.trial,
                judge=key.judge,
                by=gathered.by,
                where=gathered.where,
                grades=tuple(gathered.grades),
                joint=key.joint,
                state=key.state,
            )
        self._waiting.clear()
        self._seen.clear()


def cell_number(value: object) -> float | None:
    """Return the finite number in a cell, otherwise None. True and false are 1 and 0."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            value = float(value.strip())
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def cell_text(value: object) -> str:
    """Return a cell as text; empty for an empty cell.

    Spreadsheets turn `7` into 7.0, which is read as `7`.
    """
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value.strip() if isinstance(value, str) else str(value)
