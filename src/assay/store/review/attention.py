"""Read the timed decisions of a review, to look for signs that items were decided unread."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from sqlalchemy import Connection, Select, exists, func, literal, select

from assay.domain.attention import TimedDecision
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import DECIDED, AssessmentPurpose, Verb
from assay.domain.observations import DecisionTaken, ObservationKind, OpinionGiven
from assay.domain.review import Road, Via, road_of
from assay.store.database import schema
from assay.store.database.connections import portions
from assay.store.database.observation_codec import decoded

_AT_ONCE: Final = 5_000  # maximum keys in one statement
_DECISION: Final = "decision:"  # start of the idempotency key of an observed decision; the event's key follows
_OPINION: Final = "opinion:"


def timed_decisions(connection: Connection, runs: Collection[RunId]) -> Iterator[TimedDecision]:
    """Yield the decisions that hold on items of these runs and that were made on a screen, oldest first.

    Control items are not included: a figure that does not change after a decision would reveal one.
    """
    for some in portions([str(run) for run in runs], _AT_ONCE):
        for reviewer, body, via, displayed, opinion in connection.execute(_decisions(some)):
            taken = decoded(ObservationKind.DECISION, body)
            if not isinstance(taken, DecisionTaken) or taken.verb not in DECIDED:
                continue
            if _was_shown(via, displayed, opinion):
                yield TimedDecision(reviewer=reviewer, verb=taken.verb, active_ms=taken.active_ms, size=taken.size)


def _decisions(runs: Collection[str]) -> Select[Any]:
    """Select the observed decisions that nobody has undone, with the event or the opinion that they led to."""
    table, run, event = schema.observation, schema.run, schema.review_event
    opinion, undone, later = table.alias("opinion"), event.alias("undone"), table.alias("later")
    own_key = func.substr(table.c.idempotency_key, len(_DECISION) + 1)
    # A decision leads to no state that a second one could change without an undo in between.
    is_undone = exists().where(
        undone.c.assessment_key == event.c.assessment_key, undone.c.verb == Verb.UNDO.value, undone.c.id > event.c.id
    )
    # The first of two opinions has no event; a later record of the same person withdraws or replaces it.
    is_withdrawn = exists().where(
        later.c.assessment_key == opinion.c.assessment_key,
        later.c.kind == ObservationKind.OPINION.value,
        later.c.reviewer == opinion.c.reviewer,
        later.c.id > opinion.c.id,
    )
    return (
        select(table.c.reviewer, table.c.body, event.c.via, event.c.displayed, opinion.c.body.label("opinion"))
        .join(run, run.c.key == table.c.run_key)
        .outerjoin(event, event.c.idempotency_key == own_key)
        .outerjoin(opinion, opinion.c.idempotency_key == literal(_OPINION).concat(own_key))
        .where(
            run.c.id.in_(runs),
            table.c.kind == ObservationKind.DECISION.value,
            table.c.purpose == AssessmentPurpose.WORK.value,
            ~is_undone,
            ~is_withdrawn,
        )
        .order_by(table.c.at, table.c.id)  # a restore numbers observations by trial
    )


def _was_shown(via: str | None, displayed: bool | None, opinion: bytes | None) -> bool:
    """True if the item was on the reviewer's screen; False as well if neither an event nor an opinion was stored."""
    if via is not None:
        return road_of(Via(via), displayed=bool(displayed)) is Road.SHOWN
    given = None if opinion is None else decoded(ObservationKind.OPINION, opinion)
    return isinstance(given, OpinionGiven) and not given.scripted
