"""Responses and their grades, which come from a rule, a model or a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Final

from assay.domain.suite import Rubric
from assay.domain.verdicts import Verdict, VerdictRules, verdict_of_score

_ROUNDING: Final = 1e-9
"""Scores that differ by less are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A candidate's response to one task in one trial; `truncated` is True if a token limit cut it
    off.
    """

    candidate: str
    text: str
    truncated: bool = False


# A flag on a clean report teaches reviewers to ignore flags, so a check that cannot decide does not
# raise one.
class FlagKind(StrEnum):
    """Reasons why a person should check an assessment; the flag's `detail` explains the reason."""

    MISSING_CANDIDATE = "missing_candidate"
    MISSING_CRITERION = "missing_criterion"
    SCORE_OUT_OF_SCALE = "score_out_of_scale"
    RANKING_CONTRADICTS_SCORES = "ranking_contradicts_scores"
    EMPTY_REASON = "empty_reason"
    DUPLICATE_REASON = "duplicate_reason"
    QUOTE_NOT_FOUND = "quote_not_found"
    TRUNCATED = "truncated"
    UNKNOWN_CANDIDATE = "unknown_candidate"
    CODE_CUT = "code_cut"
    ADDRESSES_REVIEWER = "addresses_reviewer"
    ORDER_DECIDES = "order_decides"
    NO_SCREENSHOT = "no_screenshot"
    PARSE_ERROR = "parse_error"
    PARTIAL_SCORE = "partial_score"
    TRIVIAL_JUSTIFICATION = "trivial_justification"
    FAILED_VERIFICATION = "failed_verification"
    AGGREGATION_TROUBLE = "aggregation_trouble"


RULE_FLAGS: Final = (
    FlagKind.PARTIAL_SCORE,
    FlagKind.TRIVIAL_JUSTIFICATION,
    FlagKind.FAILED_VERIFICATION,
    FlagKind.AGGREGATION_TROUBLE,
)
"""Flags that a rubric with verdicts may raise; it can switch each of them off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A reason why a person should check an assessment, with the affected candidate and criterion,
    if any.
    """

    kind: FlagKind
    detail: str
    candidate: str | None = None
    criterion: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """One candidate's score on one criterion.

    Attributes:
        score: between 0 and 1; None if it is missing or outside its scale.
        raw_score: the score as the grader wrote it; None if missing.
        min_score, max_score: the raw scores that are worth 0 and 1; `min_score` is the greater one
            if lower is better.
        confidence: between 0 and 1; None if the grader reported none.
    """

    candidate: str
    criterion: str
    score: float | None
    raw_score: float | None
    min_score: float
    max_score: float
    reason: str = ""
    evidence: tuple[str, ...] = ()
    confidence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A scorer's check of a final answer, shown next to the judge's grades; `verified` is None if
    the scorer could not tell.
    """

    candidate: str
    scorer: str
    verified: bool | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The grades that one judge or scorer gave together.

    Attributes:
        grades: in the suite's order of candidates, and for each candidate in the rubric's order of
            criteria.
        scores: each candidate's weighted score, between 0 and 1; None if a criterion has no grade.
        weights: weight of each criterion, by name.
        report: the judge's Markdown report, unchanged, which uses `labels` for candidates; empty
            for scorers.
        ranking: candidates, best first; empty if the judge gave no ranking.
        labels: for each candidate name, the label that the judge saw instead; empty if names were
            not hidden.
        shown: candidates in the random order in which the judge saw them; empty for a single
            candidate or without a random order.
        flags: reasons why a person should check the assessment.
        raw: the judge's reply, unchanged.
        rules: the rubric's rules for verdicts; None if it has none.
        verifications: checks of final answers; never part of a score.
    """

    grades: tuple[Grade, ...]
    scores: Mapping[str, float | None]
    weights: Mapping[str, float] = field(default_factory=dict)
    # The report uses labels instead of names, because the page for blind review shows it unchanged.
    report: str = ""
    ranking: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    shown: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()
    raw: str = ""
    rules: VerdictRules | None = None
    verifications: tuple[Verification, ...] = ()

    @property
    def verdicts(self) -> dict[str, Verdict | None]:
        """Return each candidate's verdict after corrections, or None if it has no score; empty if
        the rubric has no rules.
        """
        return (
            {}
            if self.rules is None
            else {name: self._verdict(name, self.rules) for name in self.scores}
        )

    def _verdict(self, candidate: str, rules: VerdictRules) -> Verdict | None:
        grades = {
            grade.criterion: grade.score for grade in self.grades if grade.candidate == candidate
        }
        score = self.scores[candidate]
        if score is None and all(grade is None for grade in grades.values()):
            return None
        mean = weighted_score(grades, self.weights)
        # Scores of earlier versions, and those of imported files, were not rounded correctly.
        if score is not None and (mean is None or abs(score - mean) > _ROUNDING):
            return verdict_of_score(score)  # a person set the overall score directly
        return rules.verdict(grades.values()) or Verdict.FAIL


def weighted_score(
    grades: Mapping[str, float | None], rubric_weights: Mapping[str, float]
) -> float | None:
    """Return the weighted mean of the criteria's scores; None if a weighted criterion has no score,
    or no weight is above 0.

    Correctly rounded, so that three scores of 0.9 have the mean 0.9. `grades` are between 0 and 1,
    or None; `rubric_weights` are at least 0.
    """
    weighted: list[tuple[float, float]] = []
    for criterion, weight in rubric_weights.items():
        if weight == 0:  # such a criterion may stay ungraded without making the score None
            continue
        score = grades.get(criterion)
        if score is None:
            return None
        weighted.append((weight, score))
    scores = {score for _, score in weighted}
    if len(scores) <= 1:  # also the usual case of one criterion, without the cost of fractions
        return next(iter(scores), None)
    total = sum(Fraction(weight) * Fraction(score) for weight, score in weighted)
    return float(total / sum(Fraction(weight) for weight, _ in weighted))


def weighted_scores(
    candidates: Iterable[str], grades: Sequence[Grade], weights: Mapping[str, float]
) -> dict[str, float | None]:
    """Return each candidate's `weighted_score`, computed from the candidate's grades."""
    return {
        name: weighted_score(
            {grade.criterion: grade.score for grade in grades if grade.candidate == name}, weights
        )
        for name in candidates
    }


def weights_of(rubric: Rubric) -> dict[str, float]:
    """Return each criterion's weight by its name, in the rubric's order."""
    return {criterion.name: criterion.weight for criterion in rubric.criteria}
