"""Convert a submitted decision to candidates and scores, and compare it with the judge's grades."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.app.review.decisions import check_words
from assay.app.review.item_view import named, panes_of
from assay.domain import decisions as rules
from assay.domain.assessment import weighted_score
from assay.domain.identifiers import shown_assessment
from assay.domain.lifecycle import AssessmentPurpose, Verb
from assay.domain.observations import Arm, BlindVerdict, DecisionTaken
from assay.domain.review import Decision, Via, stated_by

if TYPE_CHECKING:
    from assay.domain.decisions import Place
    from assay.domain.protocol import Protocol
    from assay.domain.selection import AssessmentDetail


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedDecision:
    """A decision as submitted on the review page or in a terminal.

    Attributes:
        idempotency_key: prevents a decision that is sent twice from counting twice.
        corrections: (pane, criterion or None for the overall score, score from 0 to 1); panes count
            from 0.
        active_ms: milliseconds that the reviewer spent on the item.
        run: run that must contain the item; None to accept any run.
        signed_in: the person whose name needs no statement: the owner of the invitation, token or
            login that sent the decision; empty if this is the reviewer.
        login: the owner of the login that sent the decision, if a terminal accepts another name of
            this person; otherwise empty, and the same as `signed_in`.
    """

    verb: Verb
    reviewer: str
    idempotency_key: str
    reason: str = ""
    note: str = ""
    corrections: tuple[tuple[int, str | None, float], ...] = ()
    active_ms: int | None = None
    run: str | None = None
    via: Via = Via.PAGE
    signed_in: str = ""
    login: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedDecision:
    """A submitted decision with candidates instead of panes.

    `decision` is what the store applies. `result` contains the scores that would count; empty
    unless the decision approves or corrects.
    """

    decision: Decision
    result: Mapping[str, float]

    @property
    def corrections(self) -> Mapping[Place, float]:
        """Corrected scores by (candidate, criterion or None)."""
        return self.decision.corrections


def resolve(
    detail: AssessmentDetail,
    submitted: SubmittedDecision,
    *,
    labels: Mapping[str, str],
    displayed: bool,
) -> ResolvedDecision:
    """Convert a submitted decision to candidates and scores, regardless of the item's state.

    Real items, opinions and control items all use this function, so that the same mistake always
    gets the same message. `labels` are the candidates' names for messages. `displayed`: True if the
    service sent the item to this reviewer.

    Raises InputError or UnknownName for a missing reason or score, or for a score that the item
    does not have. Raises Refused if a candidate would have no score.
    """
    verb, reason, note = submitted.verb, submitted.reason, submitted.note
    corrections = named(detail.row, submitted.corrections if verb is Verb.CORRECT else ())
    check_words(
        verb, reason=reason if verb is Verb.REJECT else reason or note, corrections=corrections
    )
    if verb is Verb.CORRECT:  # the store keeps a single text for a correction
        reason, note = f"{reason}: {note}" if reason and note else reason or note, ""
    if verb not in (Verb.CORRECT, Verb.REJECT):
        reason = note = ""
    decision = Decision(
        assessment=detail.row.key,
        verb=verb,
        reviewer=submitted.reviewer,
        via=submitted.via,
        displayed=displayed and verb is not Verb.UNDO,
        login=submitted.login or submitted.signed_in,
        stated_by=stated_by(
            submitted.reviewer,
            signed_in=submitted.signed_in or submitted.reviewer,
            via=submitted.via,
            displayed=displayed,
        ),
        reason=reason,
        note=note,
        corrections=corrections,
        key=submitted.idempotency_key,
        purpose=detail.row.purpose,
    )
    return ResolvedDecision(decision=decision, result=_result(detail, decision, labels))


def decision_taken(
    detail: AssessmentDetail,
    submitted: SubmittedDecision,
    resolved: ResolvedDecision,
    *,
    arm: Arm,
    protocol: Protocol,
    disclosed: bool,
) -> DecisionTaken:
    """Record how a decision was made and how far it differs from the judge's grades."""
    result, judged = resolved.result, detail.judged.scores
    differences = [
        result[name] - score for name in result if (score := judged.get(name)) is not None
    ]
    order = [name for name in panes_of(detail.row) if name in result]
    first, last = (result[order[0]], result[order[-1]]) if len(order) > 1 else (0.0, 0.0)
    return DecisionTaken(
        verb=submitted.verb,
        arm=arm,
        active_ms=submitted.active_ms,
        corrections=len(submitted.corrections),
        protocol=protocol.version,
        disclosed=disclosed,
        size=sum(len(response.text) for response in detail.responses),
        distance=sum(map(abs, differences)) / len(differences) if differences else None,
        shift=sum(differences) / len(differences) if differences else None,
        left_won=None if first == last else first > last,
        result=result if detail.row.purpose is AssessmentPurpose.CONTROL else {},
    )


def candidate_scores(
    detail: AssessmentDetail, scores: Mapping[Place, float]
) -> dict[str, float | None]:
    """Return each candidate's score from 0 to 1: the overall score, otherwise the weighted mean of
    the criteria, or None.
    """
    criteria = [criterion for _, criterion in scores if criterion is not None]
    weights = dict(detail.judged.weights) or dict.fromkeys(criteria, 1.0)
    overall: dict[str, float | None] = {}
    for name in detail.row.candidates:
        given = scores.get((name, None))
        graded = {
            criterion: score
            for (of, criterion), score in scores.items()
            if of == name and criterion
        }
        overall[name] = weighted_score(graded, weights) if given is None else given
    return overall


def by_pane(
    verdict: BlindVerdict, detail: AssessmentDetail
) -> tuple[tuple[int, str | None, float], ...]:
    order = panes_of(detail.row)
    scores = verdict.scores.items()
    return tuple(
        (order.index(name), criterion, value)
        for (name, criterion), value in scores
        if name in order
    )


def _result(
    detail: AssessmentDetail, decision: Decision, label_of: Mapping[str, str]
) -> dict[str, float]:
    """Return the candidates' scores after this decision; errors use the names that the page
    shows.
    """
    judged = rules.grading_of(detail.judged)
    labelled = rules.Grading(
        scores={label_of[name]: score for name, score in judged.scores.items()},
        grades={
            (label_of[name], criterion): score for (name, criterion), score in judged.grades.items()
        },
        weights=judged.weights,
    )
    corrections = {
        (label_of[name], criterion): value
        for (name, criterion), value in decision.corrections.items()
    }
    counted = rules.counted(
        decision.verb, labelled, corrections, where=shown_assessment(detail.row.key)
    )
    if counted is None:
        return {}
    scores = ((name, counted.scores[label_of[name]]) for name in judged.scores)
    return {name: score for name, score in scores if score is not None}
