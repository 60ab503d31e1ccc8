"""Rubrics as runs used them, and the grades and decisions on their criteria."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.domain.identifiers import RunId
    from assay.domain.suite import Rubric


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricUse:
    """A run's use of a rubric. `run_key` grows with every run of the store."""

    run_key: int
    run_id: RunId
    suite: str
    started: str
    rubric: Rubric


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeCount:
    """Number of counted grades of one value, in `thousandths` of the scale, and the first assessment that has one."""

    criterion: str
    thousandths: int
    n: int
    assessment: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedGrade:
    """A grade that a person changed, and the change on a scale of 0 to 1."""

    criterion: str
    assessment: int
    change: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindGrade:
    """A person's grade, given before they saw the judge's, and the judge's grade; both on 0 to 1."""

    criterion: str
    assessment: int
    candidate: int
    person: float
    judge: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionFacts:
    """Grades and decisions on the criteria of some runs.

    Attributes:
        counted: grades that count, by criterion and value.
        decided: judged assessments that a person decided, in the order of the decisions, and whether each was rejected.
        corrected: every changed grade in those assessments.
        blind: grades that people gave before they saw the judge's, of decided assessments.
        blind_assessments: the assessments that hold the grades in `blind`.
        graded: number of decided assessments in which the judge graded the criterion, by criterion.
    """

    counted: tuple[GradeCount, ...]
    decided: tuple[tuple[int, bool], ...]
    corrected: tuple[CorrectedGrade, ...]
    blind: tuple[BlindGrade, ...]
    blind_assessments: frozenset[int]
    graded: Mapping[str, int]
