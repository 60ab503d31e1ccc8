"""Chooses the evaluators that grade a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from assay.domain.errors import SuiteError
from assay.domain.suite import PERSON, JudgeMode, JudgeSpec, Rubric, Task
from assay.scoring.arena import ArenaJudge
from assay.scoring.conversations import ReplyScorer, rubric_by_turn
from assay.scoring.evaluator import Evaluator
from assay.scoring.graders import GRADERS, GraderEvaluator
from assay.scoring.human_judge import PersonJudge
from assay.scoring.judge import EachJudge, JointJudge
from assay.scoring.pairwise import PairwiseJudge
from assay.scoring.rubric_evaluator import RubricEvaluator
from assay.scoring.rubrics import ARENA_RUBRIC, default_rubric
from assay.scoring.scorer_registry import SCORER_REGISTRY
from assay.scoring.scorers import TOOL_CALLS, ScorerEvaluator, option_problems
from assay.scoring.task_tests import TESTS, TestsEvaluator
from assay.scoring.workspace_grader import EVALUATORS
from assay.scoring.workspace_judge import workspace_evaluators


def evaluators_for(
    task: Task, judges: tuple[JudgeSpec, ...], rubric: Rubric | None, *, k: int | None = None
) -> tuple[Evaluator, ...]:
    """Return the evaluators for a task: all judges for `score: judge`, else the single
    deterministic scorer.

    The result is empty for a judged task in a plan without judges, whose answers are graded later.

    Args:
        rubric: the suite's rubric; None selects the default for the task and the judge.
        k: return only evaluators that grade the k-th trial, counted from 1; None returns all.

    Raises SuiteError if the scorer does not exist or has wrong options.
    """
    method = task.scoring.method
    serving = judges if k is None else tuple(judge for judge in judges if judge.grades_trial(k))
    if task.scoring.judged:
        if method == "code_arena":
            return tuple(_page_judge(judge, rubric or ARENA_RUBRIC) for judge in serving)
        return tuple(
            _judge(judge, rubric_by_turn(task, rubric or default_rubric(task))) for judge in serving
        )
    if task.scoring.plugin:
        if method in GRADERS.plugin_names():
            return (GraderEvaluator(task.scoring),)
        if method not in SCORER_REGISTRY.plugin_names():
            raise SuiteError(
                f"tasks[{task.id}].score",
                f"is `{method}`, which no installed package offers.",
                remedy="Install the package that offers it.",
            )
    if method == EVALUATORS:
        return workspace_evaluators(task, serving)
    if method == TESTS:
        return (TestsEvaluator(task.scoring),)
    ours = not (task.scoring.source or task.scoring.plugin)
    if ours and (problems := option_problems(method, task.scoring.options)):
        raise SuiteError(f"tasks[{task.id}].score", problems[0])
    by_reply = task.turns and method != TOOL_CALLS
    return (ReplyScorer(task.scoring) if by_reply else ScorerEvaluator(task.scoring),)


def rubric_of(evaluator: Evaluator) -> Rubric | None:
    """Return the rubric that a model grades by; None for scorers."""
    if isinstance(evaluator, RubricEvaluator) and not isinstance(evaluator, PersonJudge):
        return evaluator.rubric
    return None


def _page_judge(spec: JudgeSpec, rubric: Rubric) -> Evaluator:
    if spec.model.provider == PERSON:
        return PersonJudge(replace(spec, mode=JudgeMode.EACH), rubric)
    return ArenaJudge(spec, rubric)


def _judge(spec: JudgeSpec, rubric: Rubric) -> Evaluator:
    if spec.model.provider == PERSON:
        return PersonJudge(spec, rubric)
    judges: dict[JudgeMode, Callable[[JudgeSpec, Rubric], Evaluator]] = {
        JudgeMode.JOINT: JointJudge,
        JudgeMode.EACH: EachJudge,
        JudgeMode.PAIRWISE: PairwiseJudge,
    }
    return judges[spec.mode](spec, rubric)
