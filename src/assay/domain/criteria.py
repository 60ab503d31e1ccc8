"""Records for the analysis of rubrics: the runs that use a rubric, and the grades and decisions on
its criteria.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.domain.identifiers import RunId
from assay.domain.suite import Rubric


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricUse:
    """One run that used a rubric; later runs in the store have a greater `run_key`."""

    run_key: int
    run_id: RunId
    suite: str
    started: str
    rubric: Rubric


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeCount:
    """Number of counted grades with one value (`thousandths` of the scale), and the first
    assessment with such a grade.
    """

    criterion: str
    thousandths: int
    n: int
    assessment: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedGrade:
    """A grade that a person changed; `change` is the new grade minus the old one, on a scale of 0
    to 1.
    """

    criterion: str
    assessment: int
    change: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindGrade:
    """A person's blind grade and the judge's grade for the same response, both between 0 and 1."""

    criterion: str
    assessment: int
    candidate: int
    person: float
    judge: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionFacts:
    """Grades and decisions on the criteria of the selected runs.

    Attributes:
        counted: the grades that count, grouped by criterion and value.
        decided: judged assessments that a person decided, in order of decision, each with True if
            it was rejected.
        corrected: every grade that was changed in the decided assessments.
        blind: grades in decided assessments that people gave before they saw the judge's.
        blind_assessments: the assessments that contain the grades in `blind`.
        graded: for each criterion, the number of decided assessments in which the judge graded it.
    """

    counted: tuple[GradeCount, ...]
    decided: tuple[tuple[int, bool], ...]
    corrected: tuple[CorrectedGrade, ...]
    blind: tuple[BlindGrade, ...]
    blind_assessments: frozenset[int]
    graded: Mapping[str, int]
