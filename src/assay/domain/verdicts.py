"""Verdicts (Pass, Partial, Fail) and the rules that derive them from grades."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The verdict on one response."""

    PASS = "Pass"
    PARTIAL = "Partial"
    FAIL = "Fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRules:
    """Rules that turn a response's grades into a verdict, and switches for the flags they raise.

    A grade of 0 means no, a grade of 1 means yes, and anything in between is partial.
    `trivial_chars`: longest justification of a grade below 1 that counts as trivial. `parse_error`:
    True if an unreadable reply enters the review queue.
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
        """Return the verdict for grades between 0 and 1 (None: missing); None if no rule applies,
        which counts as Fail.
        """
        graded = [score for score in scores if score is not None]
        if self.fail_if_any_no and 0.0 in graded:
            return Verdict.FAIL
        if not graded or len(graded) < len(scores):
            return None
        if self.partial_if_any_partial and any(0.0 < score < 1.0 for score in graded):
            return Verdict.PARTIAL
        return (
            Verdict.PASS if self.pass_if_all_yes and all(score == 1.0 for score in graded) else None
        )


def verdict_of_score(score: float) -> Verdict:
    """Return the verdict for a score without rules: Pass for the full score, Fail for 0, otherwise
    Partial.
    """
    return Verdict.PASS if score >= 1.0 else Verdict.FAIL if score <= 0.0 else Verdict.PARTIAL
