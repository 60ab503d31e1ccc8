"""Decision rules: which decisions an assessment's state allows, and how corrections change its
scores.

All functions are pure. The store calls them in the transaction that writes the decision, so two
reviewers cannot both be the first to decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from assay.domain.assessment import Assessment, Grade, weighted_score
from assay.domain.errors import InputError, Refused, UnknownName
from assay.domain.lifecycle import DECIDED, UNDOABLE, AssessmentState, Verb
from assay.domain.review import Decision

Place: TypeAlias = tuple[str, str | None]
"""(candidate, criterion), or (candidate, None) for the candidate's overall score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """One assessment's scores by candidate (None: no score), grades by (candidate, criterion), and
    weights by criterion.
    """

    scores: Mapping[str, float | None]
    grades: Mapping[tuple[str, str], float | None]
    weights: Mapping[str, float]

    @property
    def unscored(self) -> tuple[str, ...]:
        """Return the candidates without a score."""
        return tuple(name for name, score in self.scores.items() if score is None)


def after(verb: Verb, before: AssessmentState, *, where: str) -> AssessmentState:
    """Return an assessment's state after a decision; raises `Refused` if it is not allowed.

    `where`: the assessment's id in messages, such as `a17`.
    """
    if verb is Verb.UNDO:
        if before in UNDOABLE:
            return AssessmentState.PENDING
        raise Refused(where, f"is {_words(before)}, so there is no decision to undo.")
    target = DECIDED.get(verb)
    if target is None:
        raise Refused(where, f"{verb} is not a decision on scores.")
    if before is AssessmentState.PENDING:
        return target
    remedy = (
        f"Undo that first: assay review undo {where}" if before in UNDOABLE else _WHY_CLOSED[before]
    )
    raise Refused(where, f"is {_words(before)}, not pending.", remedy=remedy)


def check_key(assessment: int, *, of: int) -> None:
    """Raise `Refused` if the idempotency key was already used for a decision on another
    assessment.
    """
    # Without this check, the reply reported success with the state of the first item, while the
    # second stayed pending.
    if assessment != of:
        raise Refused(
            "key",
            "was sent before for another item.",
            remedy="Use a different key for each decision.",
        )


def check_same(decision: Decision, *, stored: Decision) -> None:
    """Raise `Refused` if the idempotency key was already used for a different decision on this
    assessment.
    """
    same_way = replace(
        decision,
        via=stored.via,
        displayed=stored.displayed,
        stated_by=stored.stated_by,
        login=stored.login,
        purpose=stored.purpose,
    )
    if same_way != stored:
        raise Refused(
            "key",
            f"was sent before with another decision: {stored.verb} by {stored.reviewer}.",
            remedy="Use a different key for each decision.",
        )


def check_approval(grading: Grading, *, where: str) -> None:
    """Raise `Refused` if a candidate has no score: such an assessment must be corrected or
    rejected.
    """
    if grading.unscored:
        problem = (
            f"has no score for {_listed(grading.unscored)}, so it cannot be approved as it is."
        )
        raise Refused(where, problem, remedy="Correct the missing scores, reject it or rerun it.")


def corrected(judged: Grading, corrections: Mapping[Place, float], *, where: str) -> Grading:
    """Return scores and grades with a person's corrections applied.

    Correcting a criterion recomputes the candidate's weighted score. Correcting the candidate's
    overall score replaces the weighted score and leaves the criteria unchanged.

    Raises:
        InputError: nothing is corrected, a value is outside 0 to 1, or both a candidate and one of
            its criteria are corrected.
        UnknownName: the assessment has no such candidate or criterion.
        Refused: a candidate would still have no score.
    """
    if not corrections:
        raise InputError(
            where, "the correction names no score.", remedy="Give at least one NAME=VALUE."
        )
    grades = dict(judged.grades)
    scores = dict(judged.scores)
    # The weights name criteria too, because a person may grade a criterion that the judge left out.
    criteria = tuple(
        dict.fromkeys((*judged.weights, *(criterion for _, criterion in judged.grades)))
    )
    for (candidate, criterion), value in corrections.items():
        if candidate not in scores:
            raise UnknownName("candidate", candidate, scores, remedy=_known("Candidates", scores))
        if criterion is not None and criterion not in criteria:
            raise UnknownName("criterion", criterion, criteria, remedy=_known("Criteria", criteria))
        if not (math.isfinite(value) and 0 <= value <= 1):
            raise InputError(
                where,
                f"{_place(candidate, criterion)} is {value!r}, but scores lie between 0 and 1.",
            )
        if criterion is not None and (candidate, None) in corrections:
            problem = f"{candidate} is corrected both as a whole and on {criterion}."
            raise InputError(
                where, problem, remedy="Give either the candidate's score or scores of criteria."
            )
        if criterion is not None:
            grades[candidate, criterion] = value
    for candidate in {name for name, _ in corrections}:
        own = corrections.get((candidate, None))
        if own is None:
            own = weighted_score(
                _of(candidate, grades), judged.weights or dict.fromkeys(criteria, 1.0)
            )
        scores[candidate] = own
    grading = Grading(scores=scores, grades=grades, weights=judged.weights)
    if grading.unscored:
        raise Refused(
            where,
            f"would still have no score for {_listed(grading.unscored)}{_missing(grading)}.",
            remedy="Correct these as well.",
        )
    return grading


def counted(
    verb: Verb, judged: Grading, corrections: Mapping[Place, float], *, where: str
) -> Grading | None:
    """Return the scores that count after a decision, or None.

    Raises the errors of `check_approval` and `corrected`.
    """
    if verb is Verb.APPROVE:
        check_approval(judged, where=where)
        return judged
    return corrected(judged, corrections, where=where) if verb is Verb.CORRECT else None


def grading_of(assessment: Assessment) -> Grading:
    """Return an assessment's scores and grades without corrections."""
    return Grading(
        scores=assessment.scores,
        grades={(grade.candidate, grade.criterion): grade.score for grade in assessment.grades},
        weights=assessment.weights,
    )


def with_corrections(judged: Assessment, corrections: Mapping[Place, float]) -> Assessment:
    """Return the assessment with a person's corrections applied to scores and raw scores."""
    numbers = corrected(grading_of(judged), corrections, where="")
    grades = []
    for grade in judged.grades:
        score = numbers.grades[grade.candidate, grade.criterion]
        if score is not None and score != grade.score:
            raw = grade.min_score + score * (grade.max_score - grade.min_score)
            grade = replace(grade, score=score, raw_score=raw)
        grades.append(grade)
    known = {(grade.candidate, grade.criterion) for grade in grades}
    for (candidate, criterion), score in numbers.grades.items():
        if (candidate, criterion) not in known:  # the judge left this criterion out
            grades.append(
                Grade(
                    candidate=candidate,
                    criterion=criterion,
                    score=score,
                    raw_score=score,
                    min_score=0.0,
                    max_score=1.0,
                )
            )
    return replace(judged, scores=numbers.scores, grades=tuple(grades))


_WHY_CLOSED = {
    AssessmentState.SUPERSEDED: "A later attempt replaced it; decide on that one.",
    AssessmentState.NOT_REQUIRED: "A deterministic scorer's results need no decision.",
    AssessmentState.EXEMPT: "The suite's review policy lets it pass unseen.",
    AssessmentState.LEFT_OUT: "Chance left its trial out of the review sample, which must stay as it was drawn.",
}


def _words(state: AssessmentState) -> str:
    return state.value.replace("_", " ")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _known(kind: str, names: Iterable[str]) -> str:
    return f"{kind}: {_listed(names)}."


def _place(candidate: str, criterion: str | None) -> str:
    return candidate if criterion is None else f"{candidate}/{criterion}"


def _of(candidate: str, grades: Mapping[tuple[str, str], float | None]) -> dict[str, float | None]:
    return {criterion: grade for (name, criterion), grade in grades.items() if name == candidate}


def _missing(grading: Grading) -> str:
    places = [
        _place(candidate, criterion)
        for candidate in grading.unscored
        for criterion, weight in grading.weights.items()
        if weight > 0 and grading.grades.get((candidate, criterion)) is None
    ]
    return f" (missing: {_listed(places)})" if places else ""
