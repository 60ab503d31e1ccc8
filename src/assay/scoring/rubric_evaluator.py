"""Base class for evaluators that grade by a rubric under a judge's name, so that a person must
review the grades.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from assay.domain.assessment import Grade
from assay.domain.run import Slot
from assay.domain.suite import Criterion, JudgeSpec, Rubric
from assay.scoring.evaluator import GradingAttempt, Request


@dataclass(frozen=True, slots=True)
class RubricEvaluator(ABC):
    """Grades all candidates of a trial together, unless a subclass returns other slots."""

    spec: JudgeSpec
    rubric: Rubric

    @property
    def grader(self) -> str:
        return self.spec.name

    @property
    def by_model(self) -> bool:
        return True

    def slots(self, candidates: tuple[str, ...], /) -> tuple[Slot, ...]:
        return (Slot(grader=self.grader, candidate=None, by_model=True),) if candidates else ()

    def slot_for_each(self, candidates: tuple[str, ...], /) -> tuple[Slot, ...]:
        return tuple(
            Slot(grader=self.grader, candidate=candidate, by_model=True) for candidate in candidates
        )

    @abstractmethod
    def ask(self, grading: GradingAttempt, /) -> tuple[Request, ...]:
        """Return the first round of requests."""

    def foreseen(self, grading: GradingAttempt, /) -> tuple[Request, ...]:
        return self.ask(grading)


def grade_on(criterion: Criterion, candidate: str, raw: float | None = None) -> Grade:
    return Grade(
        candidate=candidate,
        criterion=criterion.name,
        score=None if raw is None else criterion.normalised(raw),
        raw_score=raw,
        min_score=criterion.low,
        max_score=criterion.high,
    )
