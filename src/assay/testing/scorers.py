"""Contract tests that every scorer must pass."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from assay.domain.isolation import Returned
from assay.domain.suite import Scoring
from assay.scoring.custom_scorers import finish, plain_result
from assay.scoring.scorer_result import Outcome, Score, Unscored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.domain.digest import JsonValue
    from assay.scoring.scorer_registry import PluginScorer


class ScorerContract:
    """Contract tests for one scorer: inherit, and set `scorer`, `right` and `wrong`.

    Attributes:
        scorer: the function, as `staticmethod(function)`.
        right: a response and its reference, which must score higher than `wrong`.
        options: options for scoring both.
    """

    scorer: ClassVar[PluginScorer]
    right: ClassVar[tuple[str, str]]
    wrong: ClassVar[tuple[str, str]]
    options: ClassVar[Mapping[str, JsonValue]] = {}

    def test_a_right_response_scores_higher_than_a_wrong_one(self) -> None:
        right, wrong = self._outcome(*self.right), self._outcome(*self.wrong)
        assert isinstance(right, Score), f"{self.right[0]!r} has no score: {right}"
        assert isinstance(wrong, Score), f"{self.wrong[0]!r} has no score: {wrong}"
        assert right.value > wrong.value

    def test_scores_lie_on_0_to_1_whatever_the_response(self) -> None:
        reference = self.right[1]
        # Models do produce lone surrogates, and answers of any length.
        for response in ("", " \n", "42", "{}", "Ünïcode \N{SNOWMAN}", "\ud800", "word " * 10_000):
            outcome = self._outcome(response, reference)
            assert isinstance(outcome, Score | Unscored)
            assert isinstance(outcome, Unscored) or 0 <= outcome.value <= 1

    def test_the_same_response_has_the_same_score(self) -> None:
        assert self._outcome(*self.right) == self._outcome(*self.right)

    def _outcome(self, response: str, reference: str) -> Outcome:
        """Score a response and convert the result to JSON and back; a result of Assay's own type is
        not converted.
        """
        result = type(self).scorer(response, reference, self.options)
        if isinstance(result, Score | Unscored):
            return result
        value = json.loads(json.dumps(plain_result(result)))
        return finish(Scoring(method="scorer"), Returned(value))
