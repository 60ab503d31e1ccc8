"""The deterministic scorers by name, and the evaluator that grades with one of them.

Scorers in `SCORERS` are pure functions; `math` and custom scorers may request a call in a child
process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol, assert_never, cast

from assay.domain.assessment import Assessment
from assay.domain.digest import JsonValue
from assay.domain.errors import did_you_mean
from assay.domain.isolation import IsolatedRequest, Returned, Stopped
from assay.domain.tools import expected_calls
from assay.scoring import custom_scorers, math_scorer, numeric as numbers, tool_calls
from assay.scoring.choice import option_problems as choice_option_problems
from assay.scoring.contains import option_problems as contains_option_problems
from assay.scoring.evaluator import Answer, GradingAttempt, Request, Unscorable
from assay.scoring.extraction import extracted, way_problems
from assay.scoring.function_evaluator import FunctionEvaluator, assessment_by, plain_grade
from assay.scoring.json_match import strict_json
from assay.scoring.numeric import numbers_in
from assay.scoring.regex import pattern_problem
from assay.scoring.scorer_registry import SCORER_REGISTRY
from assay.scoring.scorer_result import Outcome, Score, Unscored
from assay.scoring.task_tests import TESTS, test_problems


class Scorer(Protocol):
    """A pure function that compares a response with its reference and returns a score."""

    def __call__(
        self, response: str, reference: str, options: Mapping[str, JsonValue], /
    ) -> Outcome: ...


# Loaded once: a registry look-up for each of a million responses would cost more than the scorers
# themselves.
SCORERS: Final[Mapping[str, Scorer]] = MappingProxyType(
    {name: cast("Scorer", SCORER_REGISTRY.load(name)) for name in SCORER_REGISTRY.own}
)
"""Built-in scorers that run in this process."""

MATH: Final = "math"
_NUMERIC: Final = ("numeric", "closeness")
TOOL_CALLS: Final = "tool_calls"
JUDGED: Final = ("judge", "code_arena")
"""Scoring methods in which an LLM grades."""

_NUMBER_OPTIONS: Final = ("tolerance", "abs_tolerance", "pick", "curve")
_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "numeric": _NUMBER_OPTIONS,
        "closeness": _NUMBER_OPTIONS,
        "choice": ("options",),
        "contains": ("any_of",),
    }
)


def method_problems(method: str) -> tuple[str, ...]:
    """Return a one-sentence problem if the scoring method is unknown; empty if it is known."""
    known = (*SCORERS, MATH, TESTS, *JUDGED)
    if method in known:
        return ()
    listed = ", ".join(f"`{name}`" for name in known)
    return (
        f"There is no scoring method {method!r}.{did_you_mean(method, known)} Known methods: {listed}.",
    )


def known_options(method: str) -> tuple[str, ...]:
    """Return the names of the options of one of Assay's own methods."""
    if method in JUDGED:
        return ()
    if method == TOOL_CALLS:
        return tool_calls.OPTIONS
    return (*_OPTIONS.get(method, ()), "extract")


def option_problems(method: str, options: Mapping[str, JsonValue]) -> tuple[str, ...]:
    if problems := method_problems(method):
        return problems
    if method == TESTS:
        return test_problems(options)
    known = known_options(method)
    unknown = [
        f"`{method}` has no option {name!r}.{did_you_mean(name, known)}"
        + (
            f" It has {', '.join(f'`{option}`' for option in known)}."
            if known
            else " It has no options."
        )
        for name in options
        if name not in known
    ]
    extraction = way_problems(options["extract"]) if "extract" in options else ()
    if method == TOOL_CALLS:
        return (*unknown, *tool_calls.option_problems(options))
    if method == "choice":
        return (*unknown, *extraction, *choice_option_problems(options))
    if method == "contains":
        return (*unknown, *extraction, *contains_option_problems(options))
    if method in _NUMERIC:
        return (*unknown, *extraction, *numbers.option_problems(options))
    return (*unknown, *extraction)


def reference_problems(method: str, expected: str | None) -> tuple[str, ...]:
    """Return the problems with a task's `expected` for this method, one sentence each."""
    if method not in (*SCORERS, MATH):
        return ()
    if method == TOOL_CALLS and expected is not None:
        try:
            expected_calls(expected)
        except ValueError as error:
            return (f"`expected` {error}",)
        return ()
    if expected is None or not expected.strip():
        missing = "is missing" if expected is None else "is empty"
        return (f"`expected` {missing}, and `score: {method}` compares with it.",)
    if method in _NUMERIC and not numbers_in(expected):
        return (
            f"`expected` is {expected.strip()[:60]!r} and holds no number, which `score: {method}` needs.",
        )
    if method == "json" and strict_json(expected) is None:
        return (
            f"`expected` is {expected.strip()[:60]!r}, which is not JSON; `score: json` compares JSON.",
        )
    if method == "regex" and (problem := pattern_problem(expected.strip())):
        return (f"The pattern {expected.strip()[:80]!r} {problem}",)
    return ()


@dataclass(frozen=True, slots=True)
class ScorerEvaluator(FunctionEvaluator):
    """Grades each response with one deterministic scorer, in this process or in a child process."""

    def ask(self, grading: GradingAttempt, /) -> tuple[Request, ...]:
        """Return the calls for responses that must be scored in a child process; most scorers need
        none.
        """
        if self.scoring.method in SCORERS:
            return ()
        begun = (
            self._begin(response.text, grading.task.reference or "")
            for response in grading.responses
        )
        return tuple(step for step in begun if isinstance(step, IsolatedRequest))

    def read(self, grading: GradingAttempt, answers: tuple[Answer, ...], /) -> Assessment:
        """Return one grade for each response, on a criterion named after the method; raises
        Unscorable if undecided.
        """
        method = self.scoring.method
        grades = []
        waiting = iter(answers)
        for response in grading.responses:
            outcome = self._begin(response.text, grading.task.reference or "")
            if isinstance(outcome, IsolatedRequest):
                outcome = self._finish(next(waiting))
            match outcome:
                case Score(value=value, note=note, confidence=confidence):
                    grades.append(plain_grade(response.candidate, method, value, note, confidence))
                case Unscored(kind=kind, detail=detail, fault=fault):
                    raise Unscorable(kind, detail, fault=fault)
                case _:
                    assert_never(outcome)
        return assessment_by(method, grades)

    def _begin(self, response: str, reference: str) -> Outcome | IsolatedRequest:
        method, options = self.scoring.method, self.scoring.options
        way = options.get("extract")
        if isinstance(way, str):
            part = extracted(response, way)
            if part is None:
                return Score(0.0, f"nothing to extract by `{way}`", 1.0)
            response = part
        if method in SCORERS:
            return SCORERS[self.scoring.rule](response, reference, options)
        if method == MATH:
            return math_scorer.begin(response, reference)
        return custom_scorers.begin(self.scoring, response, reference)

    def _finish(self, answer: Answer) -> Outcome:
        if not isinstance(answer, Returned | Stopped):
            raise TypeError(
                f"{self.scoring.method} expected a function's return value but got a model reply"
            )
        return (
            math_scorer.finish(answer)
            if self.scoring.method == MATH
            else custom_scorers.finish(self.scoring, answer)
        )
