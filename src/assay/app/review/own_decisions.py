"""List one reviewer's decisions, newest first.

Real assessments and control items are read together, have the same fields, and are counted
together, so that neither a gap nor a number shows which item was a planted check.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.domain import decisions as rules
from assay.domain.lifecycle import Verb
from assay.domain.observations import DecisionTaken, ObservationKind, OpinionGiven, with_body

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from assay.app.review.control_items import ControlItems
    from assay.app.review.item_view import Showcase
    from assay.domain.identifiers import AssessmentKey
    from assay.domain.observations import Observation
    from assay.domain.selection import AssessmentDetail
    from assay.store.opening import Store

PORTION: Final = 50
"""Decisions on one page."""

_AFTER: Final = {Verb.APPROVE: "approved", Verb.CORRECT: "corrected", Verb.REJECT: "rejected"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnDecision:
    """One decision of a reviewer.

    Attributes:
        scores: score of each candidate after the decision, from 0 to 1, by the label on the review
            page.
        state: current state of the item.
        changed: True if a later decision by another person changed the result.
        stated_by: the signed-in person who gave the reviewer's name; empty if this was the
            reviewer.
    """

    id: str
    suite: str
    task: str
    thing: str
    k: int
    of: int
    at: str
    verb: str
    scores: Mapping[str, float]
    reason: str
    note: str
    state: str
    changed: bool
    stated_by: str


def own_decisions(
    store: Store,
    control_items: ControlItems,
    showcase: Showcase,
    reviewer: str,
    *,
    as_id: Callable[[AssessmentKey], str],
    before: int | None = None,
) -> tuple[list[OwnDecision], int | None]:
    """Return up to `PORTION` decisions from the review page or terminal, and the `before` argument
    for the next page.

    `before` counts decisions from the oldest. Store keys are not used, because their gaps would
    reveal planted checks.
    """
    read = store.observations.read
    taken = with_body(read(kinds=(ObservationKind.DECISION,), reviewer=reviewer), DecisionTaken)
    end = len(taken) if before is None else min(before, len(taken))
    start = max(0, end - PORTION)
    shown = taken[start:end][::-1]
    keys = [*dict.fromkeys(observation.assessment for observation, _ in shown)]
    details = control_items.details(keys)
    opinions = read(kinds=(ObservationKind.OPINION,), assessments=keys, reviewer=reviewer)
    given = {_name(opinion): body for opinion, body in with_body(opinions, OpinionGiven)}
    rows = []
    for observation, body in shown:
        if (detail := details.get(observation.assessment)) is not None:
            item, labels = as_id(observation.assessment), showcase.labels(detail.row)
            rows.append(
                _own_decision(
                    item, detail, observation, body.verb, given.get(_name(observation)), labels
                )
            )
    return rows, start or None


def _name(observation: Observation) -> str:
    """Return the idempotency key that the page sent, without the prefix for the type of
    observation.
    """
    return observation.idempotency_key.partition(":")[2]


def _own_decision(
    item: str,
    detail: AssessmentDetail,
    observation: Observation,
    verb: Verb,
    opinion: OpinionGiven | None,
    labels: Mapping[str, str],
) -> OwnDecision:
    row = detail.row
    own = next((event for event in detail.events if event.decision.key == _name(observation)), None)
    scores: Mapping[str, float | None] = opinion.result if opinion else {}
    if opinion is None and own is not None and verb in (Verb.APPROVE, Verb.CORRECT):
        given = own.decision.corrections
        scores = (rules.with_corrections(detail.judged, given) if given else detail.judged).scores
    later = [event for event in detail.events if own is None or event.id > own.id]
    same = row.state == _AFTER.get(verb, row.state) and (
        not scores or scores == row.assessment.scores
    )
    words = own.decision if own else opinion
    return OwnDecision(
        id=item,
        suite=row.suite,
        task=row.task,
        thing=row.thing,
        k=row.k,
        of=row.of,
        at=observation.at,
        verb=str(verb),
        scores={labels[name]: score for name, score in scores.items() if score is not None},
        reason=words.reason if words else "",
        note=words.note if words else "",
        stated_by=words.stated_by if words else "",
        state=str(row.state),
        changed=not same
        and any(event.decision.reviewer != observation.reviewer for event in later),
    )
