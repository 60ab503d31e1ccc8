"""Settle items on which two reviewers disagree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.app.review.observations import note
from assay.domain.errors import InputError, Refused
from assay.domain.identifiers import AssessmentKey, shown_assessment
from assay.domain.lifecycle import AssessmentPurpose, AssessmentState, Verb
from assay.domain.observations import DisputeSettled, ObservationKind, OpinionGiven, with_body
from assay.domain.opinions import StandingOpinion, differ, standing_by_item
from assay.domain.review import Decision, Via, stated_by

if TYPE_CHECKING:
    from assay.app.results_folder import ProjectingDecisions
    from assay.app.review.service import ReviewService
    from assay.domain.selection import AssessmentDetail
    from assay.store.opening import Store


DISAGREEMENTS: Final = ("fact", "overlooked", "rubric", "weight", "scale", "task", "slip", "other")
"""Subjects of a disagreement. If it is about the rubric or its scale, improve the rubric."""


CONFIDENCES: Final = ("sure", "fairly", "unsure")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispute:
    """An item with two different verdicts; `opinions` contains both, earliest first."""

    detail: AssessmentDetail
    opinions: tuple[StandingOpinion, ...]


def disputes(store: Store, review: ReviewService) -> tuple[Dispute, ...]:
    """Return disputed items, oldest first, including control items while their run hides which
    items are control items.
    """
    opinions = store.observations.read(kinds=(ObservationKind.OPINION,))
    disputes = []
    for key, standing in standing_by_item(opinions).items():
        if not differ(standing):
            continue
        detail = review.control_items.disputable(key)
        if detail is not None and detail.row.state is AssessmentState.PENDING:
            disputes.append(Dispute(detail=detail, opinions=tuple(standing.values())[:2]))
    return tuple(disputes)


def settle(
    store: Store,
    decisions: ProjectingDecisions,
    review: ReviewService,
    key: AssessmentKey,
    *,
    choice: str,
    reason: str,
    kind: str,
    confidence: str,
    reviewer: str,
    via: Via = Via.SCRIPT,
    signed_in: str = "",
    together: bool = False,
    idempotency_key: str | None = None,
) -> str:
    """Settle a dispute with the `first` or `second` reviewer's verdict, or with `reject`; return
    the item's new state.

    Args:
        kind: subject of the disagreement, from `DISAGREEMENTS`.
        confidence: how sure the adjudicator is, from `CONFIDENCES`.
        reviewer: a third person, or one of the two reviewers if both settle the dispute together.
        via: interface of the decision; it counts as displayed only if the service sent the dispute
            to this reviewer.
        signed_in: the person whose invitation, token or login sent the decision; empty if this is
            the reviewer.

    Raises Refused if the item is not disputed, or if one of the two reviewers tries to settle it
    without the other. Raises InputError without a reason, or for an unknown choice, kind or
    confidence.
    """
    where = shown_assessment(key)
    if choice not in ("first", "second", "reject"):
        raise InputError("choice", f"is {choice!r}.", remedy="Use first, second or reject.")
    for name, value, known in (
        ("kind", kind, DISAGREEMENTS),
        ("confidence", confidence, CONFIDENCES),
    ):
        if value not in known:
            raise InputError(name, f"is {value!r}.", remedy=f"Use one of: {', '.join(known)}.")
    if not reason.strip():
        raise InputError("reason", "is empty.", remedy="Give a short reason.")
    dispute = next(
        (dispute for dispute in disputes(store, review) if dispute.detail.row.key == key), None
    )
    if dispute is None:
        events = review.control_items.detail(key).events if idempotency_key is not None else ()
        known_event = next(
            (event for event in events if event.decision.key == idempotency_key), None
        )
        if known_event is not None:
            return str(known_event.after)
        raise Refused(where, "is not disputed.", remedy="/adjudication lists the disputed ones.")
    place = {"first": 0, "second": 1}.get(choice)
    chosen = OpinionGiven(verb=Verb.REJECT) if place is None else dispute.opinions[place].given
    reason = f"adjudicated{', together' if together else ''}: {reason.strip()}"
    displayed = via is not Via.SCRIPT and review.was_served(key, reviewer=reviewer)
    decision = Decision(
        assessment=key,
        verb=chosen.verb,
        reviewer=reviewer,
        via=via,
        displayed=displayed,
        login=signed_in,
        stated_by=stated_by(
            reviewer, signed_in=signed_in or reviewer, via=via, displayed=displayed
        ),
        reason="" if chosen.verb is Verb.APPROVE else reason,
        corrections=chosen.corrections,
        key=idempotency_key,
        purpose=dispute.detail.row.purpose,
    )
    event = decisions.settle(decision, together=together)
    outcome = DisputeSettled(
        choice=choice, disagreement=kind, confidence=confidence, together=together
    )
    note(store, dispute.detail, reviewer, f"settled:{key}:{event.id}", outcome)
    return str(event.after)


def settled(store: Store) -> dict[str, dict[str, int]]:
    """Count settled disputes on real items, by subject and by the adjudicator's confidence."""
    counts = {kind: dict.fromkeys(CONFIDENCES, 0) for kind in DISAGREEMENTS}
    last: dict[AssessmentKey, DisputeSettled] = {}
    observations = store.observations.read(kinds=(ObservationKind.SETTLED,))
    for observation, outcome in with_body(observations, DisputeSettled):
        if observation.purpose is AssessmentPurpose.WORK:
            last[observation.assessment] = outcome
    for outcome in last.values():
        counts[outcome.disagreement][outcome.confidence] += 1
    return {
        kind: by_confidence for kind, by_confidence in counts.items() if any(by_confidence.values())
    }
