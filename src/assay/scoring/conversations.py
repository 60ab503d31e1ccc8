"""Grades conversations.

Scorers compare the last reply, or each reply with its own reference; judges can grade each turn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from assay.domain.assessment import Assessment, Grade, weighted_scores
from assay.domain.conversation import Turn, replies_of
from assay.domain.suite import Rubric, Task
from assay.scoring.evaluator import Answer, GradingAttempt, Request, Unscorable
from assay.scoring.function_evaluator import FunctionEvaluator
from assay.scoring.scorers import ScorerEvaluator


def turn_criterion(turn: int, criterion: str) -> str:
    """Return the name of a criterion for one turn; turns are counted from 1."""
    return f"turn {turn}: {criterion}"


def rubric_by_turn(task: Task, rubric: Rubric) -> Rubric:
    """Return the rubric, with every criterion repeated for each turn if the task is graded turn by
    turn.
    """
    if not task.by_turn:
        return rubric
    return Rubric(
        criteria=tuple(
            replace(
                criterion,
                name=turn_criterion(number, criterion.name),
                guidance=f"Only the assistant's reply in turn {number}. {criterion.guidance}{_reference(turn)}".strip(),
            )
            for number, turn in enumerate(task.turns, 1)
            for criterion in rubric.criteria
        )
    )


def _reference(turn: Turn) -> str:
    return "" if turn.expected is None else f" Reference for this reply: {turn.expected}"


@dataclass(frozen=True, slots=True)
class ReplyScorer(FunctionEvaluator):
    """Uses a deterministic scorer to grade the replies in a conversation.

    If a task is graded as a whole, its last reply is compared with the task's `expected`. If it is
    graded turn by turn, each reply is compared with its turn's `expected`, if the turn has one, and
    the score is the mean over these turns.
    """

    def ask(self, grading: GradingAttempt, /) -> tuple[Request, ...]:
        """Return the calls for replies that must be scored in a child process."""
        scorer = ScorerEvaluator(self.scoring)
        return tuple(request for _, part in _parts(grading) for request in scorer.ask(part))

    def read(self, grading: GradingAttempt, answers: tuple[Answer, ...], /) -> Assessment:
        """Return the assessment; a criterion is named after its turn if the task is graded turn by
        turn.

        Raises Unscorable if the scorer could not decide, or a conversation has fewer replies than
        turns.
        """
        scorer = ScorerEvaluator(self.scoring)
        grades: list[Grade] = []
        for turn, part in _parts(grading):
            count = len(scorer.ask(part))
            assessment = scorer.read(part, answers[:count])
            answers = answers[count:]
            if turn is None:
                return assessment
            grades += (
                replace(grade, criterion=turn_criterion(turn, grade.criterion))
                for grade in assessment.grades
            )
        weights = {grade.criterion: 1.0 for grade in grades}
        names = dict.fromkeys(grade.candidate for grade in grades)
        return Assessment(
            grades=tuple(grades), scores=weighted_scores(names, grades, weights), weights=weights
        )


def _parts(grading: GradingAttempt) -> list[tuple[int | None, GradingAttempt]]:
    """Return the replies to score: (turn number, grading attempt) per graded turn, or
    (None, grading attempt) for the last replies.
    """
    replies = [replies_of(response.text) for response in grading.responses]

    def part(place: int, expected: str | None) -> GradingAttempt:
        texts = tuple(
            replace(response, text=of_one[place])
            for response, of_one in zip(grading.responses, replies, strict=True)
        )
        return replace(grading, task=replace(grading.task, expected=expected), responses=texts)

    task = grading.task
    if not task.by_turn:
        return [(None, part(-1, task.reference))]
    if any(len(of_one) < len(task.turns) for of_one in replies):
        raise Unscorable(
            "too_few_replies",
            f"a conversation has fewer replies than the task's {len(task.turns)} turns.",
        )
    return [
        (place + 1, part(place, turn.expected))
        for place, turn in enumerate(task.turns)
        if turn.expected is not None
    ]
