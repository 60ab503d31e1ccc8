"""Base class for evaluators that grade each response with a function instead of a model, in one
round of requests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from assay.domain.assessment import Assessment, Grade
from assay.domain.run import Slot
from assay.domain.suite import Scoring
from assay.scoring.evaluator import GradingAttempt, Request


@dataclass(frozen=True, slots=True)
class FunctionEvaluator(ABC):
    """Gives each candidate its own slot, under the name of the scoring method."""

    scoring: Scoring

    @property
    def grader(self) -> str:
        return self.scoring.method

    @property
    def by_model(self) -> bool:
        return False

    def slots(self, candidates: tuple[str, ...], /) -> tuple[Slot, ...]:
        return tuple(
            Slot(grader=self.grader, candidate=candidate, by_model=False)
            for candidate in candidates
        )

    @abstractmethod
    def ask(self, grading: GradingAttempt, /) -> tuple[Request, ...]:
        """Return the function calls that must run in a child process."""

    def foreseen(self, grading: GradingAttempt, /) -> tuple[Request, ...]:
        return self.ask(grading)


def plain_grade(
    candidate: str, criterion: str, score: float, reason: str, confidence: float | None = None
) -> Grade:
    """Return a grade whose raw score is the score itself, between 0 and 1."""
    return Grade(
        candidate=candidate,
        criterion=criterion,
        score=score,
        raw_score=score,
        min_score=0.0,
        max_score=1.0,
        reason=reason,
        confidence=confidence,
    )


def assessment_by(criterion: str, grades: Sequence[Grade]) -> Assessment:
    scores = {grade.candidate: grade.score for grade in grades}
    return Assessment(grades=tuple(grades), scores=scores, weights={criterion: 1.0})
