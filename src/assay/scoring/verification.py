"""Flags that a rubric's rules raise, and the check of a judge's score by comparing the final
answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from assay.domain.assessment import Assessment, Flag, FlagKind, Grade, Verification
from assay.domain.verdicts import VerdictRules

SKIPPED: Final = "Verification skipped"
MATCHES: Final = "Final answer matches."
DIFFERS: Final = "Final answer does not match."


def rule_flags(
    rules: VerdictRules, grades: Sequence[Grade], labels: Mapping[str, str]
) -> Iterator[Flag]:
    """Yield a flag for each grade that, by the rules, a person should check; `labels` are the
    labels that the judge saw.
    """
    for candidate, label in labels.items():
        own = [grade for grade in grades if grade.candidate == candidate]
        scores = [grade.score for grade in own]
        if rules.partial_score and any(score is not None and 0.0 < score < 1.0 for score in scores):
            detail = f"{label} was judged partly right."
            yield Flag(kind=FlagKind.PARTIAL_SCORE, detail=detail, candidate=candidate)
        for grade in own if rules.trivial_justification else ():
            if (
                grade.score is not None
                and grade.score < 1.0
                and len(grade.reason.strip()) <= rules.trivial_chars
            ):
                detail = f"The justification for {grade.criterion} of {label} has only {len(grade.reason.strip())} characters."
                yield Flag(
                    kind=FlagKind.TRIVIAL_JUSTIFICATION,
                    detail=detail,
                    candidate=candidate,
                    criterion=grade.criterion,
                )
        if rules.aggregation_trouble and rules.verdict(scores) is None:
            detail = f"No rule matches the grades of {label}, so its verdict is Fail."
            yield Flag(kind=FlagKind.AGGREGATION_TROUBLE, detail=detail, candidate=candidate)


def with_verification(
    assessment: Assessment,
    candidate: str,
    score: float | None,
    *,
    scorer: str,
    problem: str = "",
    flags: bool = True,
) -> Assessment:
    """Add the result of verifying one final answer to an assessment; the judge's scores stay
    unchanged.

    `score`: None if the scorer could not decide; `problem` is then the reason. `flags`: True to
    flag a failed check.
    """
    verified = None if score is None else score == 1.0
    message = f"{SKIPPED}: {problem}" if verified is None else MATCHES if verified else DIFFERS
    verification = Verification(
        candidate=candidate, scorer=scorer, verified=verified, message=message
    )
    label = assessment.labels.get(candidate, candidate)
    detail = f"{label}: {message} ({scorer})"
    flag = Flag(kind=FlagKind.FAILED_VERIFICATION, detail=detail, candidate=candidate)
    return replace(
        assessment,
        verifications=(*assessment.verifications, verification),
        flags=(*assessment.flags, flag) if flags and verified is False else assessment.flags,
    )
