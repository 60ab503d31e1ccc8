"""Grades an agent's workspace by rules and by an LLM together; as the LLM is one of the evaluators,
the whole grade awaits review.

The judge sees the diff and the output of the validation commands. Its categories are criteria
beside those of the rules and share the weight of the evaluator `llm_judge`, so the score is Σ(score
· weight) / Σ weight over all evaluators.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from assay.domain.assessment import Assessment, Flag, FlagKind, weighted_scores
from assay.domain.calls import ModelRequest
from assay.domain.scenarios import WorkspaceReport
from assay.domain.suite import PERSON, JudgeSpec, Task
from assay.scoring.evaluator import Answer, GradingAttempt
from assay.scoring.human_judge import empty_form
from assay.scoring.judge import assessment_of, request_of
from assay.scoring.prompts import WORKSPACE
from assay.scoring.rubric_evaluator import RubricEvaluator
from assay.scoring.workspace_grader import WorkspaceGrader, judge_rubric, scenario_rubric

SHOWN_DIFF: Final = 120_000
"""Maximum characters of the diff that a judge sees, about 30,000 tokens; the validation output
follows it.
"""


@dataclass(frozen=True, slots=True)
class WorkspaceJudge(RubricEvaluator):
    """Grades one workspace at a time; `rubric` has the criteria of the judge alone."""

    slots = RubricEvaluator.slot_for_each

    def ask(self, grading: GradingAttempt, /) -> tuple[ModelRequest, ...]:
        """Return the request to the judge; none if a person takes its place."""
        if self.spec.model.provider == PERSON:
            return ()
        shown, _ = self._shown(grading)
        return (
            request_of(
                self.spec,
                self.rubric,
                shown,
                candidate=shown.responses[0].candidate,
                template=WORKSPACE,
            ),
        )

    def read(self, grading: GradingAttempt, answers: tuple[Answer, ...], /) -> Assessment:
        """Return the grades of rules and judge; raises Unscorable (response is no report) or
        UnreadableReply (no grades).
        """
        if self.spec.model.provider == PERSON:
            return self.form(grading)
        shown, flags = self._shown(grading)
        judged = assessment_of(self.spec, self.rubric, shown, answers)
        return self._with_rules(grading, replace(judged, flags=(*flags, *judged.flags)))

    def form(self, grading: GradingAttempt, *, reply: str = "", problem: str = "") -> Assessment:
        """Return the grades of the rules with an empty form for the judge's categories, which a
        person fills in.
        """
        return self._with_rules(
            grading, empty_form(self.rubric, grading, reply=reply, problem=problem)
        )

    def _shown(self, grading: GradingAttempt) -> tuple[GradingAttempt, tuple[Flag, ...]]:
        """Return the grading attempt with diff and validation output as its response, and a flag if
        the diff was cut.
        """
        (response,) = grading.responses
        report = WorkspaceReport.from_text(response.text)
        if report is None:
            return grading, ()
        flags: tuple[Flag, ...] = ()
        if (size := len(report.diff)) > SHOWN_DIFF:
            detail = f"The judge saw the first {SHOWN_DIFF:,} of {size:,} characters of the diff."
            flags = (Flag(kind=FlagKind.CODE_CUT, detail=detail, candidate=response.candidate),)
            report = replace(report, diff=f"{report.diff[:SHOWN_DIFF]}\n({detail})")
        return replace(
            grading, responses=(replace(response, text=report.to_markdown(only_work=True)),)
        ), flags

    def _with_rules(self, grading: GradingAttempt, judged: Assessment) -> Assessment:
        scenario = grading.task.scenario
        rules = WorkspaceGrader(grading.task.scoring).read(grading, ())
        weights = (
            {each.name: each.weight for each in scenario_rubric(scenario).criteria}
            if scenario
            else {}
        )
        grades = tuple(
            sorted(
                (*rules.grades, *judged.grades), key=lambda grade: [*weights].index(grade.criterion)
            )
        )
        return replace(
            judged,
            grades=grades,
            weights=weights,
            scores=weighted_scores(judged.scores, grades, weights),
        )


def workspace_evaluators(
    task: Task, judges: tuple[JudgeSpec, ...]
) -> tuple[WorkspaceGrader | WorkspaceJudge, ...]:
    judge = None if task.scenario is None else task.scenario.judge
    if judge is None:
        return (WorkspaceGrader(task.scoring),)
    return tuple(WorkspaceJudge(spec, judge_rubric(judge.options)) for spec in judges)
