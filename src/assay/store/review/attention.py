"""Read the timed decisions of a review, to look for signs that items were decided unread.

Every report reads all decisions of its runs, so a row costs little: opinions are looked up only for
decisions without an event, and only the fields that are needed are taken from the stored JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from sqlalchemy import Connection, Select, exists, func, select

from assay.domain.attention import TimedDecision
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import DECIDED, AssessmentPurpose, Verb
from assay.domain.observations import ObservationKind, OpinionGiven
from assay.domain.review import Road, Via, road_of
from assay.store.database import schema
from assay.store.database.codec import bytes_json
from assay.store.database.connections import portions
from assay.store.database.observation_codec import decoded

_AT_ONCE: Final = 5_000  # maximum keys in one statement
# start of the idempotency key of an observed decision; the event's key follows
_DECISION: Final = "decision:"
_OPINION: Final = "opinion:"
_VERBS: Final = {verb.value: verb for verb in DECIDED}
_SHOWN: Final = {
    (via.value, displayed): road_of(via, displayed=displayed) is Road.SHOWN
    for via in Via
    for displayed in (False, True)
}


def timed_decisions(connection: Connection, runs: Collection[RunId]) -> Iterator[TimedDecision]:
    """Yield the decisions that hold on items of these runs and that were made on a screen, oldest
    first.

    Control items are not included: a figure that does not change after a decision would reveal one.
    """
    for some in portions([str(run) for run in runs], _AT_ONCE):
        opinions = _opinions_on_a_screen(connection, some)
        for reviewer, key, body, via, displayed in connection.execute(_decisions(some)):
            # The first of two opinions has no event. Without either, nothing was stored.
            shown = (
                key[len(_DECISION) :] in opinions if via is None else _SHOWN[via, bool(displayed)]
            )
            if not shown:
                continue
            taken = bytes_json(body)
            verb = _VERBS.get(taken["verb"])
            if verb is not None:
                # A field that an earlier version did not store has its default.
                yield TimedDecision(
                    reviewer=reviewer,
                    verb=verb,
                    active_ms=taken.get("active_ms"),
                    size=taken.get("size", 0),
                )


def _decisions(runs: Collection[str]) -> Select[Any]:
    """Select the observed decisions that nobody has undone, with the event that they led to."""
    table, run, event = schema.observation, schema.run, schema.review_event
    undone = event.alias("undone")
    # A decision leads to no state that a second one could change without an undo in between.
    is_undone = exists().where(
        undone.c.assessment_key == event.c.assessment_key,
        undone.c.verb == Verb.UNDO.value,
        undone.c.id > event.c.id,
    )
    return (
        select(
            table.c.reviewer, table.c.idempotency_key, table.c.body, event.c.via, event.c.displayed
        )
        .join(run, run.c.key == table.c.run_key)
        .outerjoin(
            event,
            event.c.idempotency_key == func.substr(table.c.idempotency_key, len(_DECISION) + 1),
        )
        .where(
            run.c.id.in_(runs),
            table.c.kind == ObservationKind.DECISION.value,
            table.c.purpose == AssessmentPurpose.WORK.value,
            ~is_undone,
        )
        .order_by(table.c.at, table.c.id)  # a restore numbers observations by trial
    )


def _opinions_on_a_screen(connection: Connection, runs: Collection[str]) -> frozenset[str]:
    """Return the keys of the decisions that gave one of two opinions, on a screen, which the
    reviewer still holds.
    """
    table, run = schema.observation, schema.run
    rows = connection.execute(
        select(table.c.assessment_key, table.c.reviewer, table.c.idempotency_key, table.c.body)
        .join(run, run.c.key == table.c.run_key)
        .where(run.c.id.in_(runs), table.c.kind == ObservationKind.OPINION.value)
        .order_by(table.c.id)
    )
    # A later record of the same person withdraws or replaces an opinion.
    newest = {(assessment, reviewer): (key, body) for assessment, reviewer, key, body in rows}
    return frozenset(
        key[len(_OPINION) :]
        for key, body in newest.values()
        if key.startswith(_OPINION) and _on_screen(body)
    )


def _on_screen(body: bytes) -> bool:
    given = decoded(ObservationKind.OPINION, body)
    return isinstance(given, OpinionGiven) and not given.scripted
