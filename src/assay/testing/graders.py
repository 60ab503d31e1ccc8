"""Contract tests that every grader must pass."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from assay.domain.digest import JsonValue


class GraderContract:
    """Contract tests for one grader: inherit, and set `grader`, `task`, `good` and `bad`.

    Attributes:
        grader: the function, as `staticmethod(function)`.
        task: keys of a task that the grader reads; all other keys are empty.
        good: response that must score higher than `bad`.
        options: options for grading both responses.
    """

    grader: ClassVar[Callable[..., object]]
    good: ClassVar[str]
    bad: ClassVar[str]
    task: ClassVar[Mapping[str, JsonValue]] = {}
    options: ClassVar[Mapping[str, JsonValue]] = {}

    def test_a_good_response_scores_higher_than_a_bad_one(self) -> None:
        assert self._mean(self.good) > self._mean(self.bad)

    def test_every_response_gets_scores_from_0_to_1_with_weights(self) -> None:
        # Models do produce lone surrogates, and answers of any length.
        for response in (
            self.good,
            "",
            " \n",
            "{}",
            "Ünïcode \N{SNOWMAN}",
            "\ud800",
            "word " * 10_000,
        ):
            criteria = self._criteria(response)
            assert criteria, f"{response[:40]!r} got no criterion"
            for criterion, row in criteria.items():
                for key in ("score", "confidence"):
                    number = row.get(key, 0.0)
                    assert isinstance(number, int | float), (
                        f"{criterion!r} has the {key} {number!r}"
                    )
                    assert 0 <= number <= 1, f"{criterion!r} has the {key} {number!r}"
                weight = row.get("weight", 1.0)
                assert isinstance(weight, int | float), f"{criterion!r} has the weight {weight!r}"
                assert 0 < weight < math.inf, f"{criterion!r} has the weight {weight!r}"

    def test_the_same_response_gets_the_same_grades(self) -> None:
        assert self._criteria(self.good) == self._criteria(self.good)

    def _mean(self, response: str) -> float:
        rows = self._criteria(response).values()
        weights = [float(row.get("weight", 1.0)) for row in rows]
        scores = [float(row["score"]) for row in rows]
        return sum(score * weight for score, weight in zip(scores, weights, strict=True)) / sum(
            weights
        )

    def _criteria(self, response: str) -> dict[str, dict[str, float]]:
        """Grade a response and convert the result to JSON and back, as Assay does between
        processes.
        """
        plain: dict[str, JsonValue] = dict.fromkeys(("thing", "context", "prompt", "language"), "")
        plain |= {
            "id": "task",
            "expected": None,
            "ideal": None,
            "final_answer": None,
            "messages": [],
            "tags": [],
        }
        result = type(self).grader(
            {**plain, "columns": {}, "metadata": {}, **self.task}, response, self.options
        )
        assert isinstance(result, Mapping), (
            f"a grader returns a mapping of criteria to scores, not {result!r:.80}"
        )
        grades = json.loads(json.dumps({str(criterion): row for criterion, row in result.items()}))
        return {
            name: row if isinstance(row, dict) else {"score": row} for name, row in grades.items()
        }
