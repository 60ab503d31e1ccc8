"""Graders of packages: their grades, and every answer that is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from assay.domain.assessment import Response
from assay.domain.isolation import Returned, StopKind, Stopped
from assay.domain.suite import Message, Scoring, Task
from assay.scoring.evaluator import GradingAttempt, Unscorable
from assay.scoring.graders import GraderEvaluator

if TYPE_CHECKING:
    from assay.domain.isolation import IsolatedAnswer

SCORING = Scoring(method="manners", options={"longest": 3}, plugin=True)
TASK = Task(
    id="a",
    thing="first",
    prompt=(Message(role="user", content="hi"),),
    expected="x",
    scoring=SCORING,
    tags=("t",),
)
SITTING = GradingAttempt(task=TASK, responses=(Response(candidate="ann", text="hello"),))


def read(answer: IsolatedAnswer) -> Any:
    return GraderEvaluator(SCORING).read(SITTING, (answer,))


def test_a_grader_gets_the_task_the_response_and_the_options() -> None:
    (request,) = GraderEvaluator(SCORING).ask(SITTING)
    arguments: Any = request.arguments  # type: ignore[union-attr] # an IsolatedRequest
    assert (arguments["name"], arguments["response"], arguments["options"]) == (
        "manners",
        "hello",
        {"longest": 3},
    )
    assert {
        **arguments["task"],
        "id": "a",
        "prompt": "hi",
        "expected": "x",
        "tags": ["t"],
    } == arguments["task"]


def test_a_score_is_the_weighted_mean_of_the_criteria() -> None:
    assessment = read(
        Returned({"short": {"score": 1.0, "weight": 3, "reason": "2 words"}, "greets": 0.0})
    )
    assert assessment.scores == {"ann": 0.75}
    assert assessment.weights == {"short": 3.0, "greets": 1.0}
    assert [(grade.criterion, grade.score, grade.reason) for grade in assessment.grades] == [
        ("short", 1.0, "2 words"),
        ("greets", 0.0, ""),
    ]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Stopped(StopKind.TIMEOUT, "It took longer than 10 s."), "grader_timeout"),
        (Returned({}), "grader_bad_value"),
        (Returned([1]), "grader_bad_value"),
        (Returned({"a": 1.5}), "grader_bad_value"),
        (Returned({"a": True}), "grader_bad_value"),
        (Returned({"a": {"score": 1, "weight": 0}}), "grader_bad_value"),
        (Returned({"a": {"score": 1, "confidence": 2}}), "grader_bad_value"),
        (Returned({"a": {"reason": "unsure"}}), "grader_undecided"),
    ],
)
def test_an_answer_that_is_no_grade_leaves_the_trial_unscored(
    answer: IsolatedAnswer, kind: str
) -> None:
    with pytest.raises(Unscorable) as raised:
        read(answer)
    assert raised.value.kind == kind
