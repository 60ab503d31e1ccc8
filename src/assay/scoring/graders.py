"""Graders from installed packages: functions that grade a response on several criteria, with a
reason for each.

A grader is a function `(task, response, options)`. It returns a mapping from each criterion to a
number between 0 and 1, or to `{"score": …, "reason": …, "weight": …, "confidence": …}`. `task` is a
mapping with `id`, `thing`, `context`, `prompt`, `messages`, `expected`, `language`, `tags`,
`columns` and `metadata`. A package registers a grader under the entry-point group `assay.graders`,
and a task selects it with `score: NAME`. It runs in a child process with a time limit and without
access to API keys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from assay.domain.assessment import Assessment, Grade
from assay.domain.digest import JsonValue
from assay.domain.isolation import IsolatedRequest, Returned, Stopped
from assay.domain.suite import Task
from assay.plugin_registry import Registry
from assay.scoring.custom_scorers import TIME_LIMIT_S
from assay.scoring.evaluator import Answer, GradingAttempt, Request, Unscorable
from assay.scoring.function_evaluator import FunctionEvaluator, plain_grade


class Grader(Protocol):
    """Grades one response on several criteria; see the module's docstring for the forms of the
    result.

    It must return the same grades for the same arguments within 10 seconds.
    """

    def __call__(
        self, task: Mapping[str, JsonValue], response: str, options: Mapping[str, JsonValue], /
    ) -> object:
        """Return a mapping from each criterion to its score, or to a mapping with `score`."""
        ...


GRADERS: Final[Registry[Grader]] = Registry(
    kind="grader", group="assay.graders", own={}, members=("__call__",)
)


@dataclass(frozen=True, slots=True)
class GraderEvaluator(FunctionEvaluator):
    """Grades each response with a package's grader."""

    def ask(self, grading: GradingAttempt, /) -> tuple[Request, ...]:
        return tuple(
            IsolatedRequest(
                function="plugin_grader",
                arguments={
                    "name": self.scoring.method,
                    "task": _shown(grading.task),
                    "response": response.text,
                    "options": dict(self.scoring.options),
                },
                time_limit_s=TIME_LIMIT_S,
            )
            for response in grading.responses
        )

    def read(self, grading: GradingAttempt, answers: tuple[Answer, ...], /) -> Assessment:
        """Return the assessment.

        Raises `Unscorable` if the grader failed or returned an invalid result.
        """
        grades: list[Grade] = []
        weights: dict[str, float] = {}
        scores: dict[str, float | None] = {}
        for response, answer in zip(grading.responses, answers, strict=True):
            rows = self._rows(answer)
            for criterion, row in rows.items():
                reason = str(row.get("reason") or "")
                grades.append(
                    plain_grade(
                        response.candidate, criterion, row["score"], reason, row.get("confidence")
                    )
                )
            own = {criterion: float(row.get("weight", 1.0)) for criterion, row in rows.items()}
            weights |= own
            scores[response.candidate] = sum(own[name] * rows[name]["score"] for name in own) / sum(
                own.values()
            )
        return Assessment(grades=tuple(grades), scores=scores, weights=weights)

    def _rows(self, answer: Answer) -> dict[str, dict[str, Any]]:
        name = self.scoring.method
        if isinstance(answer, Stopped):
            raise Unscorable(f"grader_{answer.kind}", f"The grader {name}: {answer.detail}")
        if (
            not isinstance(answer, Returned)
            or not isinstance(answer.value, dict)
            or not answer.value
        ):
            raise Unscorable(
                "grader_bad_value",
                f"The grader {name} did not return a mapping of criteria to scores.",
            )
        rows = {
            criterion: dict(value) if isinstance(value, Mapping) else {"score": value}
            for criterion, value in answer.value.items()
        }
        for criterion, row in rows.items():
            confidence, weight = row.get("confidence"), row.get("weight", 1.0)
            if row.get("score") is None:
                raise Unscorable(
                    "grader_undecided", f"The grader {name} gave no score for {criterion!r}."
                )
            if not _on_scale(row["score"]) or not (confidence is None or _on_scale(confidence)):
                raise Unscorable(
                    "grader_bad_value",
                    f"The grader {name} gave {criterion!r} {row!r:.120}, not a score.",
                )
            if (
                isinstance(weight, bool)
                or not isinstance(weight, int | float)
                or not 0 < weight < math.inf
            ):
                raise Unscorable(
                    "grader_bad_value",
                    f"The grader {name} gave {criterion!r} the weight {weight!r:.40}.",
                )
        return rows


def plugin_grader(
    *, name: str, task: Mapping[str, JsonValue], response: str, options: Mapping[str, JsonValue]
) -> JsonValue:
    """Call the grader that an installed package offers under this name; runs in a child process."""
    value = GRADERS.load(name)(task, response, options)
    if not isinstance(value, Mapping):
        raise TypeError(
            f"a grader returns a mapping of criteria to scores, not a {type(value).__name__}"
        )
    return {
        str(criterion): {str(key): part for key, part in row.items()}
        if isinstance(row, Mapping)
        else float(row)
        for criterion, row in value.items()
    }


def _shown(task: Task) -> dict[str, JsonValue]:
    messages: list[JsonValue] = [
        {"role": message.role, "content": message.content} for message in task.prompt
    ]
    return {
        "id": task.id,
        "thing": task.thing,
        "context": task.context,
        "prompt": next(
            (message.content for message in reversed(task.prompt) if message.role == "user"), ""
        ),
        "messages": messages,
        "expected": task.expected,
        "ideal": task.ideal,
        "final_answer": task.final_answer,
        "language": task.language,
        "tags": list(task.tags),
        "columns": dict(task.columns),
        "metadata": dict(task.extra),
    }


def _on_scale(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
