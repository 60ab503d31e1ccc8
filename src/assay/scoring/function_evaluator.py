"""Base class of evaluators that grade each response with a function instead of a model, in one round of requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.domain.run import Slot

if TYPE_CHECKING:
    from assay.domain.suite import Scoring
    from assay.scoring.evaluator import Request, Sitting


@dataclass(frozen=True, slots=True)
class FunctionEvaluator(ABC):
    """Gives each candidate a slot of its own, under the name of the scoring method."""

    scoring: Scoring

    @property
    def grader(self) -> str:
        return self.scoring.method

    @property
    def by_model(self) -> bool:
        return False

    def slots(self, candidates: tuple[str, ...], /) -> tuple[Slot, ...]:
        """Return one slot for each candidate."""
        return tuple(Slot(grader=self.grader, candidate=candidate, by_model=False) for candidate in candidates)

    @abstractmethod
    def ask(self, sitting: Sitting, /) -> tuple[Request, ...]:
        """Return the calls of the function that must not run in this process."""

    def foreseen(self, sitting: Sitting, /) -> tuple[Request, ...]:
        """Return the requests of `ask`, which is the only round."""
        return self.ask(sitting)
