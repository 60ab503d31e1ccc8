"""Verdicts of a grading (Pass, Partial, Fail), the rules that give them, and the reasons to show a grading to a person."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


class Verdict(StrEnum):
    """The verdict on one response."""

    PASS = "Pass"
    PARTIAL = "Partial"
    FAIL = "Fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRules:
    """Rules that turn the grades of one response into a verdict, and the flags that they raise.

    A grade of 0 is a no, one of 1 a yes, and anything between is partial. `trivial_chars` is the length up to which a
    justification of a grade below 1 is trivial. `parse_error` puts a reply that cannot be read into the queue.
    """

    fail_if_any_no: bool = True
    partial_if_any_partial: bool = True
    pass_if_all_yes: bool = True
    partial_score: bool = True
    trivial_justification: bool = True
    trivial_chars: int = 10
    failed_verification: bool = True
    parse_error: bool = True
    aggregation_trouble: bool = True

    def verdict(self, scores: Collection[float | None]) -> Verdict | None:
        """Return the verdict on grades from 0 to 1 (None: missing); None if no rule decides, which counts as Fail."""
        graded = [score for score in scores if score is not None]
        if self.fail_if_any_no and 0.0 in graded:
            return Verdict.FAIL
        if not graded or len(graded) < len(scores):
            return None
        if self.partial_if_any_partial and any(0.0 < score < 1.0 for score in graded):
            return Verdict.PARTIAL
        return Verdict.PASS if self.pass_if_all_yes and all(score == 1.0 for score in graded) else None


def verdict_of_score(score: float) -> Verdict:
    """Return the verdict that a score by itself means: Pass for the full score, Fail for 0, else Partial."""
    return Verdict.PASS if score >= 1.0 else Verdict.FAIL if score <= 0.0 else Verdict.PARTIAL
