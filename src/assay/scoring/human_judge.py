"""Grading by people alone: an empty form based on the rubric, which a reviewer fills in.

No model is called. The pending assessment has no score, so a reviewer cannot approve it but only
fill it in (as a correction) or reject it. Its counted scores are recorded as a person's.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.domain.assessment import Assessment, Flag, FlagKind, weights_of
from assay.domain.run import Slot
from assay.domain.suite import JudgeMode, Rubric
from assay.scoring.evaluator import Answer, GradingAttempt, Request
from assay.scoring.rubric_evaluator import RubricEvaluator, grade_on


@dataclass(frozen=True, slots=True)
class PersonJudge(RubricEvaluator):
    """The `Evaluator` for `judge: human`.

    Its `by_model` is True, so that the form enters the review queue.
    """

    def slots(self, candidates: tuple[str, ...], /) -> tuple[Slot, ...]:
        if self.spec.mode is JudgeMode.EACH:
            return self.slot_for_each(candidates)
        return RubricEvaluator.slots(self, candidates)  # `super()` fails in a dataclass with slots

    def ask(self, grading: GradingAttempt, /) -> tuple[Request, ...]:
        return ()

    def read(self, grading: GradingAttempt, answers: tuple[Answer, ...], /) -> Assessment:
        return empty_form(self.rubric, grading)


def empty_form(
    rubric: Rubric, grading: GradingAttempt, *, reply: str = "", problem: str = ""
) -> Assessment:
    """Return an assessment without scores for a person to fill in; `reply`: a judge's unreadable
    reply, or empty.
    """
    names = [response.candidate for response in grading.responses]
    return Assessment(
        grades=tuple(grade_on(criterion, name) for name in names for criterion in rubric.criteria),
        scores=dict.fromkeys(names),
        weights=weights_of(rubric),
        report=reply,
        labels={name: grading.labels[name] for name in names},
        shown=grading.shown,
        flags=(Flag(kind=FlagKind.PARSE_ERROR, detail=problem),) if problem else (),
        raw=reply,
        rules=rubric.rules,
    )
