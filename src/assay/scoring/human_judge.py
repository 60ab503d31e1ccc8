"""Grading by people alone: an empty form against the rubric, which a reviewer fills in.

No model is called. The waiting assessment has no score, so it cannot be approved, only filled in (a correction) or
rejected. The scores that count are then a person's, and are marked as such.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.domain.assessment import Assessment, Flag, FlagKind, Grade, weights_of
from assay.domain.run import Slot
from assay.domain.suite import JudgeMode

if TYPE_CHECKING:
    from assay.domain.suite import JudgeSpec, Rubric
    from assay.scoring.evaluator import Answer, Request, Sitting


@dataclass(frozen=True, slots=True)
class PersonJudge:
    """The `Evaluator` for `judge: human`; its `by_model` is True, so that a person must review."""

    spec: JudgeSpec
    rubric: Rubric

    @property
    def grader(self) -> str:
        return self.spec.name

    @property
    def by_model(self) -> bool:
        return True

    def slots(self, candidates: tuple[str, ...], /) -> tuple[Slot, ...]:
        """Return one form for all candidates together, or one for each."""
        if self.spec.mode is JudgeMode.EACH:
            return tuple(Slot(grader=self.grader, candidate=name, by_model=True) for name in candidates)
        return (Slot(grader=self.grader, candidate=None, by_model=True),) if candidates else ()

    def ask(self, sitting: Sitting, /) -> tuple[Request, ...]:
        """Request nothing."""
        return ()

    def foreseen(self, sitting: Sitting, /) -> tuple[Request, ...]:
        """Nothing."""
        return ()

    def read(self, sitting: Sitting, answers: tuple[Answer, ...], /) -> Assessment:
        """Return the empty form as an assessment."""
        return empty_form(self.rubric, sitting)


def empty_form(rubric: Rubric, sitting: Sitting, *, reply: str = "", problem: str = "") -> Assessment:
    """Return an assessment without any score, for a person to fill; `reply` is a judge's that could not be read."""
    names = [response.candidate for response in sitting.responses]
    grades = tuple(
        Grade(
            candidate=name,
            criterion=criterion.name,
            score=None,
            raw_score=None,
            min_score=criterion.low,
            max_score=criterion.high,
        )
        for name in names
        for criterion in rubric.criteria
    )
    return Assessment(
        grades=grades,
        scores=dict.fromkeys(names),
        weights=weights_of(rubric),
        report=reply,
        labels={name: sitting.labels[name] for name in names},
        shown=sitting.shown,
        flags=(Flag(kind=FlagKind.PARSE_ERROR, detail=problem),) if problem else (),
        raw=reply,
        rules=rubric.rules,
    )
